//! TextUi: the actor around the core of the text mode.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::session::{SessionMsg, Submit};
use interpreter_messages::show::Paper;
use interpreter_messages::ui::{Event, UiInternal, UiMsg};
use interpreter_messages::{ClientId, FaultSwitch, Peer};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;
use tracing::debug;

use super::core::{Core, Effect};
use super::lines::Lines;

/// Unwritten bytes above which the sink is not drained: a terminal that is stuck makes the sink merge deltas, not us
/// queue text. Twice what a fast terminal takes in one go.
const STUCK: usize = 256 * 1024;

/// What a text mode keeps over crashes of its actor.
pub struct Shared {
    core: Mutex<Core>,
    lines: Lines,
    setup: Setup,
}

/// The fixed part.
pub(super) struct Setup {
    pub(super) hub: Peer<UiHubMsg>,
    pub(super) slot: Peer<UiMsg>,
    pub(super) session: SessionHandle,
    pub(super) ready: Event,
    pub(super) paper: Arc<dyn Paper>,
    pub(super) interactive: bool,
    pub(super) resubmit: Duration,
    pub(super) fault: FaultSwitch,
}

impl Shared {
    pub(super) const fn new(core: Core, lines: Lines, setup: Setup) -> Self {
        Self {
            core: Mutex::new(core),
            lines,
            setup,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.core().is_finished()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // Held only within one call of the core. An event that panics there is not counted as shown.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(&self, myself: &ActorRef<UiMsg>) {
        let attach = UiHubMsg::Attach {
            session: self.setup.session.clone(),
            ui: myself.clone(),
            can_answer: self.setup.interactive,
            deltas: true,
            lossless: false,
            since: Some(self.core().last()),
            ready: self.setup.ready.clone(),
            reply: None,
        };
        if self.setup.hub.cast(attach).is_err() {
            // This actor ends with the hub, and its host starts both of them anew.
            debug!("the hub is down");
        }
    }

    /// Lets the core decide, then acts.
    fn decide(&self, myself: &ActorRef<UiMsg>, decide: impl FnOnce(&mut Core) -> Vec<Effect>) {
        let effects = decide(&mut self.core());
        for effect in effects {
            self.act(myself, effect);
        }
    }

    fn act(&self, myself: &ActorRef<UiMsg>, effect: Effect) {
        match effect {
            Effect::Print(text) => self.setup.paper.put(text),
            Effect::Submit { client, parts } => {
                self.send(SessionMsg::Submit(Submit { client, parts }));
            }
            Effect::Interrupt { now } => self.send(SessionMsg::Interrupt { now, by: "user" }),
            Effect::Answer { id, decision } => {
                let Some(by) = self.core().ui() else {
                    return;
                };
                let answer = ApprovalMsg::Answer {
                    id,
                    decision,
                    by,
                    reply: None,
                };
                if self.setup.session.approval.cast(answer).is_err() {
                    debug!("approval is down; answered when it asks again");
                }
            }
            Effect::Want => self.lines.want(),
            Effect::Finish => myself.stop(None),
        }
    }

    /// What is lost because the session is down is sent again by the next tick.
    fn send(&self, message: SessionMsg) {
        if self.setup.session.session.cast(message).is_err() {
            debug!("the session is down; asked again soon");
        }
    }

    fn drain(&self, myself: &ActorRef<UiMsg>) {
        if self.setup.paper.unwritten() > STUCK {
            let slot = self.setup.slot.clone();
            self.setup.paper.when_idle(Box::new(move || {
                // An actor that is down drains when it is back.
                let _ = slot.cast(UiMsg::Wake);
            }));
            return;
        }
        let Some(ui) = self.core().ui() else {
            return;
        };
        let drained = self.setup.session.sink.drain(ui);
        for numbered in &drained.events {
            self.decide(myself, |core| core.drained(numbered));
        }
        if drained.detached && !self.is_finished() {
            self.attach(myself);
        }
    }

    /// Takes the lines that were read.
    fn read(&self, myself: &ActorRef<UiMsg>) {
        while let Some(typed) = self.lines.take() {
            self.decide(myself, |core| {
                core.typed(typed, ClientId::now(), Instant::now())
            });
        }
    }
}

/// Owns nothing but its timer: what it knows lives in [`Shared`], which whoever starts it keeps.
///
/// UiHub supervises it; its host starts it again after a crash, which costs nothing: it attaches anew and reads on from
/// the event it showed last. On restart it sends again what was not accepted (same ids), and answers again what it was
/// asked. It ends when the user leaves or the session cannot go on, with a line that says how to resume.
pub struct TextUi;

/// What ends with the actor.
pub struct TextState {
    shared: Arc<Shared>,
    _ticks: AbortOnDrop,
}

/// Ends the timer with the actor.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// From its own tasks and threads.
pub(super) enum Internal {
    /// It is time to repeat what may have been lost.
    Tick,
    /// A line was read.
    Typed,
}

impl Internal {
    pub(super) fn message(self) -> UiMsg {
        UiMsg::Internal(Box::new(self))
    }
}

impl Actor for TextUi {
    type Msg = UiMsg;
    type State = TextState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        myself: ActorRef<UiMsg>,
        shared: Arc<Shared>,
    ) -> Result<TextState, ActorProcessingErr> {
        let every = shared.setup.resubmit;
        let ticks = tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                if myself.cast(Internal::Tick.message()).is_err() {
                    return;
                }
            }
        });
        Ok(TextState {
            shared,
            _ticks: AbortOnDrop(ticks.abort_handle()),
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<UiMsg>,
        state: &mut TextState,
    ) -> Result<(), ActorProcessingErr> {
        state.shared.attach(&myself);
        state.shared.read(&myself);
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<UiMsg>,
        message: UiMsg,
        state: &mut TextState,
    ) -> Result<(), ActorProcessingErr> {
        let shared = &state.shared;
        shared.setup.fault.hit(point(&message));
        let now = Instant::now();
        match message {
            UiMsg::Attached { ui } => shared.decide(&myself, |core| core.attached(ui)),
            UiMsg::Wake => shared.drain(&myself),
            UiMsg::Ask(request) => shared.decide(&myself, |core| core.ask(request, now)),
            UiMsg::Resolved { id, .. } => shared.decide(&myself, |core| core.resolved(&id, now)),
            UiMsg::Detach { .. } => shared.decide(&myself, Core::finish),
            UiMsg::Signal { .. } => shared.decide(&myself, |core| core.signal(now)),
            UiMsg::Close(reply) => {
                shared.decide(&myself, Core::finish);
                // Whoever asked may be gone.
                let _ = reply.send(());
            }
            UiMsg::Internal(internal) => internal_message(shared, &myself, internal),
        }
        Ok(())
    }
}

fn internal_message(shared: &Shared, myself: &ActorRef<UiMsg>, internal: UiInternal) {
    // Only this crate makes these messages.
    match internal.downcast::<Internal>().as_deref() {
        Ok(Internal::Tick) => shared.decide(myself, |core| core.tick()),
        Ok(Internal::Typed) => shared.read(myself),
        Err(_) => {}
    }
}

fn point(message: &UiMsg) -> &'static str {
    match message {
        UiMsg::Attached { .. } => "text_ui.attached",
        UiMsg::Wake => "text_ui.wake",
        UiMsg::Ask(_) => "text_ui.ask",
        UiMsg::Resolved { .. } => "text_ui.resolved",
        UiMsg::Detach { .. } => "text_ui.detach",
        UiMsg::Signal { .. } => "text_ui.signal",
        UiMsg::Close(_) => "text_ui.close",
        UiMsg::Internal(internal) => match internal.downcast_ref::<Internal>() {
            Some(Internal::Typed) => "text_ui.typed",
            Some(Internal::Tick) | None => "text_ui.tick",
        },
    }
}
