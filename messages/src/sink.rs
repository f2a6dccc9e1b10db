//! [`EventSink`]: how a session's events reach its user interfaces without travelling through mailboxes.
//!
//! A plain struct behind one short lock, not an actor. Durable events (everything but deltas) are kept in one order
//! for all UIs, numbered, and never dropped. Deltas of one item merge while a UI is busy; when a UI's unread deltas
//! exceed [`DELTA_LIMIT`], they are replaced by one `Resync` with the item's whole text, made when the UI drains.
//! The UI gets one wake when its buffer was empty, so 20,000 deltas a second are a few wakes a frame.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ui::{DeltaKind, Event, Numbered};
use crate::{ItemId, Seq, UiId};

/// Unread delta bytes of one UI above which they collapse into a `Resync` (4 MB, DESIGN §6).
pub const DELTA_LIMIT: usize = 4 * 1024 * 1024;
/// Durable events kept for UIs that attach late or again.
pub const BACKLOG: usize = 10_000;
/// Unread durable events at which a UI that is not lossless is detached as too slow (DESIGN §6).
pub const SLOW_LIMIT: usize = 10_000;
/// Bytes kept of a running item's text for `Resync`; beyond it the head is dropped.
pub const ACCUMULATOR_LIMIT: usize = 8 * 1024 * 1024;

/// The events of one session. Cheap to clone; survives every actor of the session.
#[derive(Clone, Default)]
pub struct EventSink {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(
            f,
            "EventSink({} events, {} uis)",
            state.next,
            state.uis.len()
        )
    }
}

#[derive(Default)]
struct State {
    /// Number of the next durable event, from 1 when the first was published.
    next: u64,
    /// Records whose events are out; what a restarted Session publishes again is dropped.
    published: Option<Seq>,
    turns_ended: u64,
    backlog: VecDeque<Numbered>,
    running: HashMap<(ItemId, DeltaKind), String>,
    uis: Vec<UiBuffer>,
}

struct UiBuffer {
    ui: UiId,
    deltas: bool,
    lossless: bool,
    queue: VecDeque<Numbered>,
    durable: usize,
    delta_bytes: usize,
    /// Items whose unread text is one `Resync`, filled in when it is drained.
    resyncs: Vec<(ItemId, DeltaKind)>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// How a UI attaches to a sink.
pub struct Attachment {
    /// Its id.
    pub ui: UiId,
    /// Whether it wants deltas.
    pub deltas: bool,
    /// Whether it must never be detached for being slow (`exec --json`).
    pub lossless: bool,
    /// Number of the last event it has seen; `None`: only what comes from now on, and what is running.
    pub since: Option<u64>,
    /// Called when its buffer was empty and is not any more. Must not block nor call the sink.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

/// What a drain gave.
#[derive(Debug, Default)]
pub struct Drained {
    /// In order.
    pub events: Vec<Numbered>,
    /// The UI was too slow and is no longer attached; attach again with `since`.
    pub detached: bool,
}

impl EventSink {
    /// An empty sink.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held can only come from a wake; the data stays whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the events that follow from one journal record, once: a second call for the same or an older record
    /// does nothing.
    pub fn publish_record(&self, seq: Seq, events: Vec<Event>) {
        let mut state = self.lock();
        if state.published.is_some_and(|done| seq <= done) {
            return;
        }
        state.published = Some(seq);
        for event in events {
            state.push(Some(seq), event);
        }
    }

    /// The last record whose events are out.
    #[must_use]
    pub fn published(&self) -> Option<Seq> {
        self.lock().published
    }

    /// Turns whose end was published here.
    #[must_use]
    pub fn turns_ended(&self) -> u64 {
        self.lock().turns_ended
    }

    /// Marks records up to `seq` as published without events: the past of a resumed session.
    pub fn skip_to(&self, seq: Seq) {
        let mut state = self.lock();
        if state.published.is_none_or(|done| done < seq) {
            state.published = Some(seq);
        }
    }

    /// Publishes an event that is not in the journal (a question, a retry, a restart).
    pub fn publish(&self, event: Event) {
        self.lock().push(None, event);
    }

    /// Publishes a piece of a running item.
    pub fn delta(&self, item: &ItemId, kind: DeltaKind, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.uis.iter().any(|ui| ui.deltas) || kind != DeltaKind::Output {
            let whole = state.running.entry((item.clone(), kind)).or_default();
            whole.push_str(text);
            if whole.len() > ACCUMULATOR_LIMIT {
                let mut cut = whole.len() - ACCUMULATOR_LIMIT / 2;
                while !whole.is_char_boundary(cut) {
                    cut += 1;
                }
                whole.drain(..cut);
            }
        }
        let number = state.next;
        for ui in &mut state.uis {
            ui.push_delta(number, item, kind, text);
        }
    }

    /// Forgets the running text of items (they are final, or void).
    pub fn forget(&self, items: &[ItemId]) {
        self.lock()
            .running
            .retain(|(item, _), _| !items.contains(item));
    }

    /// Lets a UI see the session from now on.
    pub fn attach(&self, attachment: Attachment) {
        self.attach_with(attachment, None);
    }

    /// Lets a UI see the session from now on; `first` is told to it before anything else (`SessionReady`).
    pub fn attach_with(&self, attachment: Attachment, first: Option<Event>) {
        let mut state = self.lock();
        let mut buffer = UiBuffer {
            ui: attachment.ui,
            deltas: attachment.deltas,
            lossless: attachment.lossless,
            queue: VecDeque::new(),
            durable: 0,
            delta_bytes: 0,
            resyncs: Vec::new(),
            wake: attachment.wake,
        };
        if let Some(event) = first {
            buffer.queue.push_back(Numbered {
                number: attachment.since.unwrap_or(state.next),
                seq: None,
                event,
            });
        }
        if let Some(since) = attachment.since {
            buffer.queue.extend(
                state
                    .backlog
                    .iter()
                    .filter(|event| event.number > since)
                    .cloned(),
            );
            buffer.durable = buffer.queue.len();
        }
        if buffer.deltas {
            let number = state.next;
            for ((item, kind), text) in &state.running {
                buffer.resyncs.push((item.clone(), *kind));
                buffer.queue.push_back(Numbered {
                    number,
                    seq: None,
                    event: Event::Resync {
                        item: item.clone(),
                        kind: *kind,
                        text: text.clone(),
                    },
                });
            }
        }
        let wake = !buffer.queue.is_empty();
        state.uis.retain(|ui| ui.ui != attachment.ui);
        if wake {
            (buffer.wake)();
        }
        state.uis.push(buffer);
    }

    /// Puts an event only into one UI's buffer (`SessionReady`).
    pub fn tell(&self, ui: UiId, event: Event) {
        let mut state = self.lock();
        let number = state.next;
        if let Some(buffer) = state.uis.iter_mut().find(|buffer| buffer.ui == ui) {
            buffer.push(Numbered {
                number,
                seq: None,
                event,
            });
        }
    }

    /// Takes a UI away.
    pub fn detach(&self, ui: UiId) {
        self.lock().uis.retain(|buffer| buffer.ui != ui);
    }

    /// Takes everything that a UI has not seen.
    #[must_use]
    pub fn drain(&self, ui: UiId) -> Drained {
        let mut state = self.lock();
        let State { running, uis, .. } = &mut *state;
        let Some(at) = uis.iter().position(|buffer| buffer.ui == ui) else {
            return Drained {
                events: Vec::new(),
                detached: true,
            };
        };
        let buffer = &mut uis[at];
        buffer.durable = 0;
        buffer.delta_bytes = 0;
        buffer.resyncs.clear();
        let mut events: Vec<Numbered> = std::mem::take(&mut buffer.queue).into();
        for numbered in &mut events {
            if let Event::Resync { item, kind, text } = &mut numbered.event
                && let Some(whole) = running.get(&(item.clone(), *kind))
            {
                text.clone_from(whole);
            }
        }
        Drained {
            events,
            detached: false,
        }
    }

    /// How many UIs look at the session.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.lock().uis.len()
    }
}

impl State {
    fn push(&mut self, seq: Option<Seq>, event: Event) {
        self.next += 1;
        match &event {
            Event::ItemCompleted { item } => self.running.retain(|(id, _), _| *id != item.id),
            Event::StreamRestarted { discarded, .. } => {
                self.running.retain(|(id, _), _| !discarded.contains(id))
            }
            Event::TurnEnded { .. } => {
                self.turns_ended += 1;
                self.running
                    .retain(|(_, kind), _| *kind == DeltaKind::Output);
            }
            _ => {}
        }
        let numbered = Numbered {
            number: self.next,
            seq,
            event,
        };
        for ui in &mut self.uis {
            ui.push(numbered.clone());
        }
        self.uis
            .retain(|ui| ui.lossless || ui.durable <= SLOW_LIMIT);
        self.backlog.push_back(numbered);
        if self.backlog.len() > BACKLOG {
            self.backlog.pop_front();
        }
    }
}

impl UiBuffer {
    fn push(&mut self, numbered: Numbered) {
        self.durable += 1;
        let was_empty = self.queue.is_empty();
        self.queue.push_back(numbered);
        if was_empty || self.durable > SLOW_LIMIT {
            (self.wake)();
        }
    }

    fn push_delta(&mut self, number: u64, item: &ItemId, kind: DeltaKind, text: &str) {
        if !self.deltas {
            return;
        }
        if self
            .resyncs
            .iter()
            .any(|(other, other_kind)| other == item && *other_kind == kind)
        {
            return;
        }
        match self.queue.back_mut().map(|last| &mut last.event) {
            Some(Event::Delta {
                item: last,
                kind: last_kind,
                text: merged,
            }) if last == item && *last_kind == kind => {
                merged.push_str(text);
                self.delta_bytes += text.len();
                if self.delta_bytes > DELTA_LIMIT {
                    self.collapse(item, kind);
                }
                return;
            }
            _ => {}
        }
        self.delta_bytes += text.len();
        let was_empty = self.queue.is_empty();
        let event = Event::Delta {
            item: item.clone(),
            kind,
            text: text.to_owned(),
        };
        self.queue.push_back(Numbered {
            number,
            seq: None,
            event,
        });
        if was_empty {
            (self.wake)();
        }
    }

    /// Replaces all unread deltas of an item by one `Resync` at the end.
    fn collapse(&mut self, item: &ItemId, kind: DeltaKind) {
        let number = self.queue.back().map_or(0, |last| last.number);
        self.queue.retain(|numbered| {
            !matches!(&numbered.event, Event::Delta { item: other, kind: other_kind, .. } if other == item && *other_kind == kind)
        });
        self.resyncs.push((item.clone(), kind));
        let event = Event::Resync {
            item: item.clone(),
            kind,
            text: String::new(),
        };
        self.queue.push_back(Numbered {
            number,
            seq: None,
            event,
        });
        self.delta_bytes = self
            .queue
            .iter()
            .map(|numbered| {
                if let Event::Delta { text, .. } = &numbered.event {
                    text.len()
                } else {
                    0
                }
            })
            .sum();
    }
}

#[cfg(test)]
mod tests;
