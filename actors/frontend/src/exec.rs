//! The UI of `interpreter exec`: one prompt, one turn.
//!
//! `core.rs` decides (pure), `json.rs` and `human.rs` turn events into text (pure), `actor.rs` acts. What must outlive a
//! crash of the actor is kept by [`run`], so a restarted UI goes on with the event after the last one it showed.

mod actor;
mod core;
mod human;
mod json;

use std::io::{self, Write};
use std::time::Duration;

use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::journal::Part;
use interpreter_messages::model::Prices;
use interpreter_messages::ui::{Event, UiMsg};
use interpreter_messages::{ClientId, FaultSwitch, Peer};

use crate::keys::Answers;
use crate::{HostError, Pen, host};

pub use json::JsonLines;

/// When an input that was not taken is sent again (DESIGN §4).
pub const RESUBMIT: Duration = Duration::from_secs(2);

/// Exit code when stdout was closed before all was written: what a shell shows for a tool ended by SIGPIPE.
pub const EXIT_BROKEN_PIPE: i32 = 141;

/// How the run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecMode {
    /// What happens on stderr, the answer on stdout.
    Human {
        /// Whether stderr gets colours.
        color: bool,
        /// Whether stdout is a terminal: the answer is then filtered, and comes after all of stderr. Else it is written
        /// byte for byte.
        stdout_tty: bool,
    },
    /// JSON lines on stdout.
    Json,
}

/// Who answers questions.
pub enum AskMode {
    /// Nobody; the session's policy for that applies.
    None,
    /// A person.
    Person(Box<dyn Answers>),
}

/// What a run needs.
pub struct ExecArgs {
    /// The hub that UIs hang on.
    pub hub: Peer<UiHubMsg>,
    /// Filled with the UI while it runs: cast [`UiMsg::Signal`] here.
    pub slot: Peer<UiMsg>,
    /// The session.
    pub session: SessionHandle,
    /// `Event::SessionReady` with the session's facts.
    pub ready: Event,
    /// How it is shown.
    pub mode: ExecMode,
    /// What the user says.
    pub prompt: Vec<Part>,
    /// The input's id, kept when it is sent again.
    pub client: ClientId,
    /// Who answers questions.
    pub ask: AskMode,
    /// stdout.
    pub out: Box<dyn Write + Send>,
    /// stderr.
    pub err: Box<dyn Write + Send>,
    /// Prices of the model, where known.
    pub prices: Option<Prices>,
    /// When an input that was not taken is sent again; [`RESUBMIT`].
    pub resubmit: Duration,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutcome {
    /// 0: the turn was completed. 1: it failed or was interrupted. [`EXIT_BROKEN_PIPE`]: nobody reads stdout.
    pub exit_code: i32,
    /// The last words of the model, unfiltered.
    pub last_message: Option<String>,
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The UI cannot run.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The system gives no threads.
    #[error("cannot start a writer thread")]
    Writer(#[source] io::Error),
}

/// Runs one turn and shows it. Returns when the turn is over and all is written.
///
/// # Errors
/// When the UI cannot be kept running; the session is not touched by that.
pub async fn run(args: ExecArgs) -> Result<ExecOutcome, ExecError> {
    let out = Pen::new(args.out).map_err(ExecError::Writer)?;
    let err = Pen::new(args.err).map_err(ExecError::Writer)?;
    let core = core::Core::new(args.mode, args.prices);
    let setup = actor::Setup {
        session: args.session,
        hub: args.hub.clone(),
        ready: args.ready,
        client: args.client,
        prompt: args.prompt,
        ordered: matches!(
            args.mode,
            ExecMode::Human {
                stdout_tty: true,
                ..
            }
        ),
        out: out.clone(),
        err: err.clone(),
        resubmit: args.resubmit,
        fault: args.fault,
    };
    let shared = actor::Shared::new(core, args.ask, setup);
    host(
        &args.hub,
        &args.slot,
        || (actor::ExecUi, std::sync::Arc::clone(&shared)),
        || shared.outcome().is_some(),
    )
    .await?;
    err.finish().await;
    out.finish().await;
    let mut outcome = shared.outcome().unwrap_or(ExecOutcome {
        exit_code: 1,
        last_message: None,
    });
    if out.broken() == Some(io::ErrorKind::BrokenPipe) {
        outcome.exit_code = EXIT_BROKEN_PIPE;
    } else if out.broken().is_some() {
        outcome.exit_code = 1;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests;
