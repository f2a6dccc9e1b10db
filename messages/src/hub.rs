//! SessionHub and UiHub: who is there, and who looks at whom.

use ractor::{ActorRef, RpcReplyPort};

use crate::approval::ApprovalMsg;
use crate::journal::TurnError;
use crate::session::{SessionMsg, SessionSettings, SessionSupervisorMsg};
use crate::tool::ToolPoolMsg;
use crate::ui::UiMsg;
use crate::{EventSink, Peer, SessionId, UiId};

/// How others reach a session. Cheap to clone; stays valid over restarts of the session's parts.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    /// Which.
    pub id: SessionId,
    /// The driver.
    pub session: Peer<SessionMsg>,
    /// The keeper of questions.
    pub approval: Peer<ApprovalMsg>,
    /// The runner of tools.
    pub tools: Peer<ToolPoolMsg>,
    /// Starts and stops its parts.
    pub supervisor: Peer<SessionSupervisorMsg>,
    /// Its events.
    pub sink: EventSink,
}

/// How a session's journal begins.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A new file (or none, when `ephemeral`).
    New {
        /// Nothing is written to disk.
        ephemeral: bool,
    },
    /// An existing file.
    Resume {
        /// The rollout.
        path: std::path::PathBuf,
    },
}

/// To SessionHub.
#[derive(Debug)]
pub enum SessionHubMsg {
    /// Starts a session.
    Open {
        /// Its settings.
        settings: Box<SessionSettings>,
        /// New or resumed.
        origin: Origin,
        /// The handle, or why there is none.
        reply: RpcReplyPort<Result<SessionHandle, TurnError>>,
    },
    /// Ends a session in order and answers when it is done.
    Close {
        /// Which.
        session: SessionId,
        /// The answer.
        reply: RpcReplyPort<()>,
    },
    /// From the task that opened a session.
    Opened {
        /// Which.
        session: SessionId,
        /// Its parts, or why there are none.
        result: Result<SessionHandle, TurnError>,
        /// Whoever asked.
        reply: RpcReplyPort<Result<SessionHandle, TurnError>>,
    },
}

/// To UiHub.
#[derive(Debug)]
pub enum UiHubMsg {
    /// A UI looks at a session from now on; it gets `UiMsg::Attached`, then finds `ready` and what the sink has after
    /// `since` in the sink. An actor that attaches to the same session again gets a new id and loses the old one.
    Attach {
        /// The session.
        session: SessionHandle,
        /// The UI.
        ui: ActorRef<UiMsg>,
        /// Whether it can answer questions.
        can_answer: bool,
        /// Whether it wants deltas.
        deltas: bool,
        /// Whether it is never detached for being slow.
        lossless: bool,
        /// Number of the last event it has seen; `Some(0)`: everything of this process.
        since: Option<u64>,
        /// The first event that it sees: `Event::SessionReady`.
        ready: crate::ui::Event,
        /// Its id in this session, for callers that are not the UI itself.
        reply: Option<RpcReplyPort<UiId>>,
    },
    /// A UI goes.
    Detach {
        /// Which.
        ui: UiId,
    },
    /// Shows a question of a session to all its UIs that can answer, and nobody else.
    Ask {
        /// The session.
        session: SessionId,
        /// The question.
        request: crate::approval::ApprovalRequest,
        /// Only to this one (a newcomer); `None`: to all.
        only: Option<UiId>,
    },
    /// Tells all UIs of a session that a question is settled.
    Resolved {
        /// The session.
        session: SessionId,
        /// Which question.
        id: crate::ApprovalId,
        /// How.
        decision: crate::approval::Decision,
        /// By whom.
        by: crate::approval::DecidedBy,
    },
    /// An Approval came back and asks who can answer; answered with `ApprovalMsg::Attached` for each.
    WhoCanAnswer {
        /// The session.
        session: SessionId,
    },
    /// Closes all UIs and answers when they are gone.
    CloseAll(RpcReplyPort<()>),
}
