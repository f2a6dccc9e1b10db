//! Restart policies, kept apart from the supervisors that use them.
//!
//! ractor restarts nothing by itself; each supervisor decides in `handle_supervisor_evt` with a [`Ledger`] (how often
//! something may fail), an [`Ordered`] list of its children (shut down goes last to first) and [`AbortOnDrop`] (a
//! task that ends with its owner). Nothing here starts an actor, and nothing uses global names.

use std::collections::VecDeque;
use std::time::Duration;

use ractor::{ActorCell, ActorId};
use tokio::time::Instant;

/// Whether an ended child comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// After any end that its supervisor did not order.
    Permanent,
    /// After a failure only.
    Transient,
    /// Never; its end is reported to whoever waits for it.
    Temporary,
}

impl RestartPolicy {
    /// Whether a child that ended like this comes back.
    #[must_use]
    pub const fn restarts(self, failed: bool) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => failed,
            Self::Temporary => false,
        }
    }
}

/// How many ends within which time are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intensity {
    /// Restarts allowed within the window.
    pub restarts: usize,
    /// The window.
    pub within: Duration,
}

/// How long to wait before a restart: the n-th delay for the n-th recent failure, the last one for all that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff(pub &'static [Duration]);

impl Backoff {
    /// No wait.
    pub const NONE: Self = Self(&[]);

    /// The wait before the restart that follows the n-th recent failure (from 1).
    #[must_use]
    pub fn delay(self, failures: usize) -> Duration {
        let at = failures
            .saturating_sub(1)
            .min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again.
    Restart {
        /// After this long.
        after: Duration,
    },
    /// It failed too often: escalate.
    GiveUp,
}

/// Remembers recent failures.
#[derive(Debug)]
pub struct Ledger {
    intensity: Intensity,
    backoff: Backoff,
    failures: VecDeque<Instant>,
}

impl Ledger {
    /// A ledger without failures.
    #[must_use]
    pub const fn new(intensity: Intensity, backoff: Backoff) -> Self {
        Self {
            intensity,
            backoff,
            failures: VecDeque::new(),
        }
    }

    /// Notes a failure and says what follows.
    pub fn failed(&mut self, now: Instant) -> Verdict {
        while self
            .failures
            .front()
            .is_some_and(|first| now.duration_since(*first) > self.intensity.within)
        {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        if self.failures.len() > self.intensity.restarts {
            return Verdict::GiveUp;
        }
        Verdict::Restart {
            after: self.backoff.delay(self.failures.len()),
        }
    }
}

/// The running children of a supervisor, in the order in which they were started.
///
/// A child that was started again keeps its first place, so the order of shutdown does not depend on crashes.
#[derive(Debug)]
pub struct Ordered<K> {
    children: Vec<(K, Option<ActorCell>)>,
}

impl<K> Default for Ordered<K> {
    fn default() -> Self {
        Self {
            children: Vec::new(),
        }
    }
}

impl<K: Copy + PartialEq> Ordered<K> {
    /// Notes a (re)started child.
    pub fn started(&mut self, key: K, cell: ActorCell) {
        match self.children.iter_mut().find(|(other, _)| *other == key) {
            Some((_, slot)) => *slot = Some(cell),
            None => self.children.push((key, Some(cell))),
        }
    }

    /// Notes an ended actor; gives its key when it is the current one of a child.
    pub fn ended(&mut self, id: ActorId) -> Option<K> {
        let (key, slot) = self
            .children
            .iter_mut()
            .find(|(_, cell)| cell.as_ref().is_some_and(|cell| cell.get_id() == id))?;
        *slot = None;
        Some(*key)
    }

    /// The running actor of a child.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&ActorCell> {
        self.children
            .iter()
            .find(|(other, _)| *other == key)
            .and_then(|(_, cell)| cell.as_ref())
    }

    /// Takes the last child in start order that is still running: ends are ordered by calling this until `None`.
    pub fn pop_last(&mut self) -> Option<(K, ActorCell)> {
        while let Some((key, cell)) = self.children.pop() {
            if let Some(cell) = cell {
                return Some((key, cell));
            }
        }
        None
    }
}

/// Ends a tokio task when its owner is dropped: on a stop, a kill, a panic, or the end of the runtime.
#[derive(Debug)]
pub struct AbortOnDrop(tokio::task::AbortHandle);

impl AbortOnDrop {
    /// Guards a task.
    #[must_use]
    pub fn new<T>(task: &tokio::task::JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
