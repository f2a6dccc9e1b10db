//! The text mode: shows a session as it goes, and takes lines as input.
//!
//! `core.rs` decides (pure), `screen.rs` makes text (pure), `actor.rs` acts, `lines.rs` reads. What must outlive a crash of
//! the actor is kept in [`Text`]: whoever starts the actor starts it again from there, and it goes on with the event
//! after the last one it showed.

mod actor;
mod core;
mod lines;
mod screen;

use std::io::{self, BufRead};
use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::journal::{Part, Record};
use interpreter_messages::model::Prices;
use interpreter_messages::show::Paper;
use interpreter_messages::ui::{Event, UiMsg};
use interpreter_messages::{ClientId, FaultSwitch, Peer};

pub use actor::{Shared, TextUi};

/// What the text mode needs.
pub struct TextArgs {
    /// The hub that UIs hang on.
    pub hub: Peer<UiHubMsg>,
    /// Filled by whoever starts the actor; signals are cast here.
    pub slot: Peer<UiMsg>,
    /// The session.
    pub session: SessionHandle,
    /// `Event::SessionReady` with the session's facts.
    pub ready: Event,
    /// The conversation so far; empty for a new session.
    pub records: Vec<Arc<Record>>,
    /// What the user said on the command line.
    pub first_prompt: Option<Vec<Part>>,
    /// Where lines come from.
    pub input: Box<dyn BufRead + Send>,
    /// Where text goes.
    pub paper: Arc<dyn Paper>,
    /// Whether it gets colours.
    pub color: bool,
    /// Width of the terminal in columns.
    pub width: usize,
    /// Whether a person types the lines: prompts are shown, questions are asked, and a line typed during a turn reaches
    /// the model in it. Else each line is a turn of its own, one after the other.
    pub interactive: bool,
    /// Prices of the model, where known.
    pub prices: Option<Prices>,
    /// When an input that was not taken is sent again (2 s, DESIGN §4).
    pub resubmit: Duration,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// A text mode over all starts of its actor.
pub struct Text {
    shared: Arc<Shared>,
}

impl Text {
    /// Starts the thread that reads lines. The conversation so far is shown when the actor starts.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(args: TextArgs) -> io::Result<Self> {
        let lines = lines::Lines::start(args.input, args.slot.clone())?;
        let options = core::Options {
            color: args.color,
            width: args.width,
            interactive: args.interactive,
            prices: args.prices,
        };
        let mut core = core::Core::new(options, &args.records);
        if let Some(parts) = args.first_prompt {
            core.first(ClientId::now(), parts);
        }
        let setup = actor::Setup {
            hub: args.hub,
            slot: args.slot,
            session: args.session,
            ready: args.ready,
            paper: args.paper,
            interactive: args.interactive,
            resubmit: args.resubmit,
            fault: args.fault,
        };
        Ok(Self {
            shared: Arc::new(Shared::new(core, lines, setup)),
        })
    }

    /// The actor and its arguments, for a first or another start.
    #[must_use]
    pub fn start(&self) -> (TextUi, Arc<Shared>) {
        (TextUi, Arc::clone(&self.shared))
    }

    /// Whether the user left, or the session cannot go on.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shared.is_finished()
    }
}

#[cfg(test)]
mod tests;
