//! Session: drives the turns of one conversation. And SessionSupervisor, which starts and restarts its parts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;
use serde::{Deserialize, Serialize};

use crate::harness::HarnessEvent;
use crate::journal::{Committed, ErrorClass, Part, SessionMeta, TurnEnd};
use crate::model::{ModelChoice, Usage};
use crate::policy::{ApprovalPolicy, OnNoUi, SandboxPolicy};
use crate::stream::{StartStream, StreamOutcome};
use crate::tool::{CallStatus, ToolEvent};
use crate::{ClientId, Seq, SessionId, StreamId, TurnId};

/// The settings of a session, resolved from configuration and flags. Shared by its actors.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// First record of a new session.
    pub meta: SessionMeta,
    /// Working directory.
    pub cwd: PathBuf,
    /// Whom to ask.
    pub model: ModelChoice,
    /// Harness id.
    pub harness: String,
    /// Sandbox policy.
    pub sandbox: Arc<SandboxPolicy>,
    /// Approval policy.
    pub approval: ApprovalPolicy,
    /// What happens to questions when nobody can answer.
    pub on_no_ui: OnNoUi,
    /// How long a question waits, where it waits (10 min); `None`: for ever.
    pub approval_timeout: Option<Duration>,
    /// Model requests of one turn at the most, as a brake.
    pub max_requests_per_turn: u32,
    /// Bytes of instruction files at the most (`project_doc_max_bytes`, 32 KiB).
    pub project_doc_max_bytes: usize,
    /// Other names of instruction files (`project_doc_fallback_filenames`).
    pub project_doc_fallback: Vec<String>,
    /// What marks a project's root (`project_root_markers`, `[".git"]`).
    pub root_markers: Vec<String>,
}

/// The parts of a session that are restarted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The writer of the journal.
    Journal,
    /// The keeper of questions.
    Approval,
    /// The runner of tools.
    ToolPool,
    /// The shaper.
    Harness,
    /// The driver.
    Session,
}

/// To a Session.
#[derive(Debug)]
pub enum SessionMsg {
    /// The user says something; starts a turn when idle, else it is taken up at the next boundary.
    Submit(Submit),
    /// Ends the current turn; nothing happens when idle.
    Interrupt {
        /// Kills processes at once instead of asking them first.
        now: bool,
        /// `user`, `shutdown`, …
        by: &'static str,
    },
    /// From the Harness.
    Harness(HarnessEvent),
    /// From a ModelStream, or its supervisor on its behalf.
    Stream {
        /// Which.
        stream: StreamId,
        /// How it ended.
        outcome: StreamOutcome,
    },
    /// From ToolPool.
    Tool(ToolEvent),
    /// From ToolPool, on request.
    ToolReport(Vec<CallStatus>),
    /// From the Journal.
    Committed(Committed),
    /// From the Journal: nothing of the batch is in the file.
    AppendFailed {
        /// What the system said.
        error: String,
    },
    /// From Approval: the user ended the turn with an answer.
    AbortTurn {
        /// Which.
        turn: TurnId,
    },
    /// A sibling came back.
    PeerRestarted(Who),
    /// Asks for a picture of the state.
    View(RpcReplyPort<SessionView>),
}

/// What the user says.
#[derive(Debug, Clone)]
pub struct Submit {
    /// Chosen by the UI; sent again until `Event::Accepted` shows it.
    pub client: ClientId,
    /// Text and images; never empty.
    pub parts: Vec<Part>,
}

/// A picture of a Session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// `idle`, `gathering`, `shaping`, `streaming`, `absorbing`, `tools`, `broken`.
    pub phase: String,
    /// The current or last turn.
    pub turn: TurnId,
    /// Records seen.
    pub seq: Seq,
    /// History records.
    pub history: usize,
    /// Tokens of the whole session.
    pub usage: Usage,
    /// How the last turn ended.
    pub last_end: Option<TurnEnd>,
    /// Inputs that wait.
    pub queued: usize,
}

/// To a SessionSupervisor.
#[derive(Debug)]
pub enum SessionSupervisorMsg {
    /// Starts a ModelStream. Its end comes back as `SessionMsg::Stream`, also when it crashes.
    StartStream(StartStream),
    /// Drops a stream, if it still runs.
    StopStream {
        /// Which.
        stream: StreamId,
    },
    /// A delayed restart is due.
    Restart {
        /// Who.
        who: Who,
        /// Fences an older order.
        generation: u64,
    },
    /// Ends the turn, then everything from the last part to the first, and answers when all is done.
    Shutdown {
        /// The answer.
        done: RpcReplyPort<()>,
    },
}

/// Why a session cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The class.
    pub class: ErrorClass,
    /// What happened.
    pub reason: String,
}
