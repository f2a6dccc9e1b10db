//! What user interfaces see: events in one order, and the messages of a UI actor.

use std::path::PathBuf;

use ractor::RpcReplyPort;
use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalRequest, DecidedBy, Decision};
use crate::journal::{Part, TurnEnd, TurnError};
use crate::model::Usage;
use crate::tool::{ExecOutput, FileChange, PlanStep};
use crate::{ApprovalId, ClientId, ItemId, ProcessId, Seq, SessionId, TurnId, UiId};

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The session is ready; first event of every attachment.
    SessionReady {
        /// Which.
        session: SessionId,
        /// Working directory.
        cwd: PathBuf,
        /// Model id.
        model: String,
        /// Provider id.
        provider: String,
        /// Harness id.
        harness: String,
        /// The sandbox mode's name.
        sandbox: String,
        /// The approval policy's name.
        approval: String,
        /// Turns before this attachment.
        turns: u64,
    },
    /// An input is in the journal.
    Accepted {
        /// Which.
        client: ClientId,
        /// The turn that takes it up.
        turn: TurnId,
        /// What was said.
        parts: Vec<Part>,
    },
    /// A turn began.
    TurnStarted {
        /// Which.
        turn: TurnId,
    },
    /// An item began.
    ItemStarted {
        /// The item as it is now.
        item: Item,
    },
    /// An item changed as a whole (not by a delta).
    ItemUpdated {
        /// The item as it is now.
        item: Item,
    },
    /// An item is final.
    ItemCompleted {
        /// The item.
        item: Item,
    },
    /// A piece of a running item; not in the journal, merged when a UI is slow.
    Delta {
        /// Which item.
        item: ItemId,
        /// Of what.
        kind: DeltaKind,
        /// The piece.
        text: String,
    },
    /// Deltas of this UI were left out because it is slow: the item's text up to now is this.
    Resync {
        /// Which item.
        item: ItemId,
        /// Of what.
        kind: DeltaKind,
        /// The whole text so far.
        text: String,
    },
    /// Output of a stream that broke: what was shown of these items is void, the request is sent again.
    StreamRestarted {
        /// Items to strike out.
        discarded: Vec<ItemId>,
        /// This re-ask, from 1.
        attempt: u32,
        /// Re-asks at the most.
        max: u32,
        /// Why.
        reason: String,
    },
    /// A request waits before it is tried again.
    Retrying {
        /// This retry, from 1.
        attempt: u32,
        /// Retries at the most.
        max: u32,
        /// Milliseconds to wait.
        delay_ms: u64,
        /// Why.
        reason: String,
    },
    /// A question is open. UIs that can answer also get `UiMsg::Ask`.
    ApprovalAsked {
        /// The question.
        request: ApprovalRequest,
    },
    /// A question is settled.
    ApprovalResolved {
        /// Which.
        id: ApprovalId,
        /// How.
        decision: Decision,
        /// By whom.
        by: DecidedBy,
    },
    /// Tokens of a response, and of the session up to it.
    Usage {
        /// The response's.
        response: Usage,
        /// The session's.
        total: Usage,
    },
    /// The turn is over; nothing of it follows.
    TurnEnded {
        /// Which.
        turn: TurnId,
        /// How.
        end: TurnEnd,
        /// Tokens of the session up to here.
        total: Usage,
    },
    /// A part was restarted after a crash; the session goes on.
    Restarted {
        /// Which part.
        who: String,
        /// What it died of.
        cause: String,
    },
    /// A warning for the user.
    Notice {
        /// The text.
        text: String,
    },
    /// The session cannot be used any more.
    Broken {
        /// Why.
        error: TurnError,
    },
}

/// What a delta is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The answer.
    Text,
    /// Thoughts.
    Reasoning,
    /// A command's output.
    Output,
}

/// One thing on the screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The same from start to completion.
    pub id: ItemId,
    /// Its turn.
    pub turn: TurnId,
    /// What it is.
    pub body: ItemBody,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum ItemBody {
    /// Words of the model.
    Message {
        /// The text.
        text: String,
    },
    /// Thoughts.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A command.
    Command {
        /// As executed.
        argv: Vec<String>,
        /// The script as the model wrote it.
        script: String,
        /// Where.
        cwd: PathBuf,
        /// How far it is.
        status: ItemStatus,
        /// What it gave, once known.
        output: Option<ExecOutput>,
        /// The number of a command that runs on.
        process: Option<ProcessId>,
    },
    /// Files changed.
    FileChange {
        /// Sorted by path.
        changes: Vec<FileChange>,
        /// How far it is.
        status: ItemStatus,
    },
    /// A look at files: read, list, glob, grep, view_image.
    Explored {
        /// Such as `read src/main.rs`.
        what: String,
        /// How far it is.
        status: ItemStatus,
    },
    /// The plan.
    Plan {
        /// All steps.
        steps: Vec<PlanStep>,
    },
    /// A call that could not be understood, or a tool that failed before it acted.
    ToolError {
        /// Wire name.
        tool: String,
        /// What the model was told.
        error: String,
    },
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Running.
    InProgress,
    /// Done.
    Completed,
    /// Done, and it did not work.
    Failed,
    /// Refused.
    Declined,
}

/// An event at its place in the order that all UIs of a session share.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    /// Position among the durable events of this process; deltas carry that of the event before.
    pub number: u64,
    /// The journal record it follows from, where it does.
    pub seq: Option<Seq>,
    /// What.
    pub event: Event,
}

/// To a UI actor.
#[derive(Debug)]
pub enum UiMsg {
    /// It is attached: this is its id, for draining and answering.
    Attached {
        /// Its id.
        ui: UiId,
    },
    /// The sink has something: drain it.
    Wake,
    /// A question that this UI may answer.
    Ask(ApprovalRequest),
    /// A question is settled: close its dialogue.
    Resolved {
        /// Which.
        id: ApprovalId,
        /// How.
        decision: Decision,
        /// By whom.
        by: DecidedBy,
    },
    /// The UI is no longer attached.
    Detach {
        /// Why.
        why: String,
    },
    /// The user pressed Ctrl-C, or a signal came.
    Signal {
        /// A second one kills at once.
        again: bool,
    },
    /// The program ends: say goodbye and answer.
    Close(RpcReplyPort<()>),
    /// From its own tasks and threads.
    Internal(UiInternal),
}

/// What a UI's own tasks and threads tell it. Opaque to everyone else.
pub type UiInternal = Box<dyn std::any::Any + Send>;
