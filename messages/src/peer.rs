//! [`Peer`]: how an actor reaches a sibling that may be restarted.
//!
//! A restarted actor has a new `ActorRef` and the old one fails for ever, so siblings share a slot that their
//! supervisor refills. Nobody looks up names: tests run many trees in one process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use ractor::{ActorRef, Message, MessagingErr, RpcReplyPort, rpc::CallResult};

/// The peer is not running now; the message comes back.
#[derive(Debug)]
pub struct Down<M>(pub M);

/// Why a [`Peer::call`] had no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The peer was not running, or ended before it answered.
    Down,
    /// The time given had passed.
    Timeout,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "the actor is not running",
            Self::Timeout => "the actor did not answer in time",
        })
    }
}

/// A shared slot for the current `ActorRef` of one actor.
pub struct Peer<M: Message> {
    slot: Arc<ArcSwapOption<ActorRef<M>>>,
}

impl<M: Message> Clone for Peer<M> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
        }
    }
}

impl<M: Message> fmt::Debug for Peer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Peer({})",
            if self.slot.load().is_some() {
                "up"
            } else {
                "down"
            }
        )
    }
}

impl<M: Message> Default for Peer<M> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<M: Message> Peer<M> {
    /// A slot with nobody in it yet.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            slot: Arc::new(ArcSwapOption::empty()),
        }
    }

    /// A slot that already holds `actor`.
    #[must_use]
    pub fn to(actor: ActorRef<M>) -> Self {
        let peer = Self::empty();
        peer.fill(actor);
        peer
    }

    /// Called by the supervisor when the actor (re)started.
    pub fn fill(&self, actor: ActorRef<M>) {
        self.slot.store(Some(Arc::new(actor)));
    }

    /// Called by the supervisor when the actor ended.
    pub fn clear(&self) {
        self.slot.store(None);
    }

    /// The current reference, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<ActorRef<M>> {
        self.slot.load_full().map(|actor| (*actor).clone())
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Down`] with the message when the peer is not running; whoever needs delivery sends again on
    /// `PeerRestarted`.
    pub fn cast(&self, message: M) -> Result<(), Down<M>> {
        let slot = self.slot.load();
        let Some(actor) = slot.as_ref() else {
            return Err(Down(message));
        };
        match actor.cast(message) {
            Ok(()) => Ok(()),
            Err(MessagingErr::SendErr(message)) => Err(Down(message)),
            // ChannelClosed and InvalidActorType carry no message; they cannot happen for a typed local cast.
            Err(_) => Ok(()),
        }
    }

    /// Asks and awaits the answer. For edges and tasks, never inside a handler.
    ///
    /// # Errors
    /// [`NoAnswer`] when the peer is down, ends, or takes longer than `within`.
    pub async fn call<T: Send + 'static>(
        &self,
        message: impl FnOnce(RpcReplyPort<T>) -> M,
        within: Duration,
    ) -> Result<T, NoAnswer> {
        let Some(actor) = self.get() else {
            return Err(NoAnswer::Down);
        };
        match actor.call(message, Some(within)).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout) => Err(NoAnswer::Timeout),
            Ok(CallResult::SenderError) | Err(_) => Err(NoAnswer::Down),
        }
    }
}
