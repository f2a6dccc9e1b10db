//! Questions to the user, their answers, and the Approval actor's messages.

use std::path::PathBuf;

use ractor::RpcReplyPort;
use serde::{Deserialize, Serialize};

use crate::tool::FileChange;
use crate::{ApprovalId, CallId, SessionId, TurnId, UiId};

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The same when it is submitted again.
    pub id: ApprovalId,
    /// The call that asks.
    pub call: CallId,
    /// Its turn.
    pub turn: TurnId,
    /// What it wants.
    pub subject: Subject,
    /// Why it must ask, or the model's own reason.
    pub reason: Option<String>,
    /// Sessions between the root and the asker, outermost first; empty for the root itself.
    #[serde(default)]
    pub origin: Vec<SessionId>,
}

/// What a call wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// Run a command.
    Command {
        /// The script as the model wrote it.
        command: String,
        /// Where.
        cwd: PathBuf,
        /// Outside the sandbox.
        escalated: bool,
    },
    /// Change files.
    Files {
        /// With diffs.
        changes: Vec<FileChange>,
        /// Whether it needs to leave the sandbox.
        escalated: bool,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// This time.
    Approve,
    /// This time, and the same again in this session.
    ApproveForSession,
    /// No.
    Deny {
        /// For the model; why, or what to do instead.
        text: Option<String>,
    },
    /// No, and the turn ends.
    AbortTurn,
    /// Nobody answered in time.
    TimedOut,
}

impl Decision {
    /// Whether the call may go on.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        matches!(self, Self::Approve | Self::ApproveForSession)
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The policy or a grant; nobody was asked.
    Policy,
    /// A user interface.
    Ui(UiId),
    /// The clock.
    Timeout,
    /// The asker went away (interrupt, shutdown, restart).
    Withdrawn,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFate {
    /// It was the one that counted.
    Counted,
    /// The question was already answered or withdrawn.
    Stale,
}

/// To the Approval actor of a session.
#[derive(Debug)]
pub enum ApprovalMsg {
    /// Asks. Submitting the same id again is safe: a decision already made is repeated.
    Request(ApprovalRequest),
    /// A UI answers.
    Answer {
        /// Which question.
        id: ApprovalId,
        /// The answer.
        decision: Decision,
        /// Who.
        by: UiId,
        /// What became of it.
        reply: Option<RpcReplyPort<AnswerFate>>,
    },
    /// A UI came.
    Attached {
        /// Who.
        ui: UiId,
        /// Whether it can answer.
        can_answer: bool,
    },
    /// A UI went.
    Detached {
        /// Who.
        ui: UiId,
    },
    /// A deadline passed; ignored unless the question still has this generation.
    Expire {
        /// Which question.
        id: ApprovalId,
        /// Generation of the timer.
        generation: u64,
    },
    /// The askers are gone.
    Withdraw {
        /// All questions of this turn.
        turn: TurnId,
    },
    /// Asks for what is pending.
    Pending(RpcReplyPort<Vec<ApprovalRequest>>),
    /// A sibling came back.
    PeerRestarted(crate::session::Who),
    /// The journal took a batch of ours.
    Committed(crate::journal::Committed),
    /// From the Journal: nothing of the batch is in the file. It is sent again with the next one.
    AppendFailed {
        /// What the system said.
        error: String,
    },
}
