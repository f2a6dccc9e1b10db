//! What a session remembers. The state of a session is the fold of its records; nothing else is kept.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use ractor::RpcReplyPort;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalRequest, DecidedBy, Decision};
use crate::model::Usage;
use crate::policy::{ApprovalPolicy, SandboxMode};
use crate::tool::{Intent, ToolCall, ToolOutcome};
use crate::{ApprovalId, CallId, ClientId, Seq, SessionId, StreamId, TurnId};

/// One entry at its place in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its position, without gaps.
    pub seq: Seq,
    /// When it was appended; taken once, by the writer of the entry.
    pub at: Timestamp,
    /// What happened.
    pub entry: Entry,
}

/// What happened. The journal crate maps each to a line that tools for Codex rollouts can read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first record.
    Meta(SessionMeta),
    /// The settings of the turn that begins here.
    TurnStarted(TurnContext),
    /// Facts of the surroundings that the harness tells the model; again when they change. (history)
    Environment(EnvFacts),
    /// The user's words. (history)
    UserInput(UserInput),
    /// A request is about to be sent.
    RequestStarted {
        /// Which.
        stream: StreamId,
    },
    /// Thoughts of the model. (history)
    Reasoning {
        /// The turn.
        turn: TurnId,
        /// As shown.
        text: String,
        /// What the API wants back unchanged (a signature, encrypted content), with the provider it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// Words of the model. (history)
    AssistantText {
        /// The turn.
        turn: TurnId,
        /// Never empty.
        text: String,
    },
    /// A call of the model. (history)
    ToolCall {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: ToolCall,
    },
    /// The end of a response whose items stand before it. (history)
    ResponseEnded(ResponseEnd),
    /// A call is about to act.
    ToolIntent {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// What it will do.
        intent: Intent,
    },
    /// A call is over. (history)
    ToolOutcome {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// How.
        outcome: ToolOutcome,
    },
    /// A question was shown. (Written by Approval.)
    ApprovalRequested(ApprovalRequest),
    /// A question is settled. (Written by Approval.)
    ApprovalResolved {
        /// Which.
        id: ApprovalId,
        /// How.
        decision: Decision,
        /// By whom.
        by: DecidedBy,
        /// What "for this session" covers from now on: keys of `actors/approval`'s policy.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<String>,
    },
    /// The turn is over. (history)
    TurnEnded {
        /// Which.
        turn: TurnId,
        /// How.
        end: TurnEnd,
    },
    /// An earlier byte of the encoded transcript changes from here on (DESIGN §8b). (history)
    Rebase {
        /// Why: another harness, another model, a compaction.
        reason: String,
        /// Harness id from here on.
        harness: String,
        /// Model id from here on.
        model: String,
    },
    /// Something the user was told and may want to read again.
    Notice {
        /// The text.
        text: String,
    },
    /// A line of a rollout that other programs wrote and we do not know; kept as it is.
    Foreign {
        /// The whole line.
        line: Value,
    },
}

impl Entry {
    /// Whether the harness shapes this entry (or what follows from it) for the model.
    #[must_use]
    pub const fn is_history(&self) -> bool {
        matches!(
            self,
            Self::Environment(_)
                | Self::UserInput(_)
                | Self::Reasoning { .. }
                | Self::AssistantText { .. }
                | Self::ToolCall { .. }
                | Self::ResponseEnded(_)
                | Self::ToolOutcome { .. }
                | Self::TurnEnded { .. }
                | Self::Rebase { .. }
        )
    }
}

/// The first record of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The session.
    pub id: SessionId,
    /// When it began.
    pub started: Timestamp,
    /// Where.
    pub cwd: PathBuf,
    /// Which surface started it: `exec`, `cli`, …
    pub source: String,
    /// Version of this program.
    pub version: String,
    /// Provider id.
    pub provider: String,
    /// Harness id; a resumed session keeps it unless told otherwise.
    pub harness: String,
    /// Set when it is a copy of the beginning of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// Set when it is a sub-agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

/// The settings of one turn. Stored for readers; a resumed session takes its permissions from the user's
/// configuration and flags, never from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnContext {
    /// The turn.
    pub turn: TurnId,
    /// Working directory.
    pub cwd: PathBuf,
    /// Model id.
    pub model: String,
    /// Provider id.
    pub provider: String,
    /// Harness id.
    pub harness: String,
    /// Sandbox mode.
    pub sandbox: SandboxMode,
    /// Whether the network is on.
    pub network: bool,
    /// Approval policy.
    pub approval: ApprovalPolicy,
    /// Reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// Facts of the surroundings. Gathered at the start of a turn; journalled when they differ from the last ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvFacts {
    /// Working directory.
    pub cwd: PathBuf,
    /// Name of the shell that commands run under: `bash`, `sh`.
    pub shell: String,
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// IANA name of the time zone, where known.
    pub timezone: String,
    /// `linux`, `macos`, …
    pub os: String,
    /// Kernel release, such as `6.18.0`.
    pub os_version: String,
    /// Whether the directory is inside a git repository.
    pub git: bool,
    /// Sandbox mode.
    pub sandbox: SandboxMode,
    /// Writable roots.
    pub roots: Vec<PathBuf>,
    /// Whether the network is on.
    pub network: bool,
    /// Approval policy.
    pub approval: ApprovalPolicy,
    /// Instruction files (AGENTS.md and the like), outermost first.
    pub instructions: Vec<Instruction>,
}

/// One instruction file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// The file.
    pub path: PathBuf,
    /// Its text, cut to the budget on a character boundary.
    pub text: String,
    /// Whether it was cut.
    #[serde(default)]
    pub cut: bool,
}

/// The user's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInput {
    /// The turn that takes them up.
    pub turn: TurnId,
    /// Chosen by the UI; a second input with the same id is ignored.
    pub client: ClientId,
    /// Text and images, in order; never empty.
    pub parts: Vec<Part>,
}

/// A part of a user message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Where it came from, for the placeholder.
        name: String,
        /// Such as `image/png`.
        mime: String,
        /// Base64.
        data: Arc<str>,
    },
}

/// The end of a model response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseEnd {
    /// Which request it answers.
    pub stream: StreamId,
    /// Why the model stopped.
    pub finish: Finish,
    /// Its tokens, where the provider told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// The provider filtered it, or the model refused.
    Refused,
    /// A reason we do not know.
    Other(String),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model stopped by itself.
    Completed,
    /// The user interrupted, or the program ended.
    Interrupted {
        /// `user`, `shutdown`, …
        by: String,
    },
    /// It could not go on.
    Failed(TurnError),
}

/// Why a turn could not go on, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// The kind.
    pub class: ErrorClass,
    /// What happened, on what. Lower case, no full stop.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl std::fmt::Display for TurnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Connect, TLS, a cut or stalled stream.
    Transport,
    /// The provider failed (5xx, or an error object in the stream).
    Server,
    /// The provider is overloaded (529, 503).
    Overloaded,
    /// 429.
    RateLimit,
    /// More than the context window.
    ContextLength,
    /// 401, 403, a missing key.
    Auth,
    /// Any other 4xx, an unknown model.
    InvalidRequest,
    /// The harness could not shape or understand.
    Harness,
    /// Our own fault: a crash, a full disk.
    Runtime,
    /// The configuration does not allow it.
    Config,
    /// A budget is used up.
    Budget,
    /// The same failing call again and again.
    Loop,
}

/// Who appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// Session.
    Session,
    /// Approval.
    Approval,
}

/// A batch's id: the same when it is sent again, so that it is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchId {
    /// Who.
    pub writer: Writer,
    /// Grows by one with each batch of this writer, over restarts too.
    pub number: u64,
}

/// Entries to append together.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// When they happened.
    pub at: Timestamp,
    /// What; never empty.
    pub entries: Vec<Entry>,
    /// Whether it must be on the disk before it is acknowledged.
    pub sync: bool,
}

/// A batch is in the file.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Which.
    pub id: BatchId,
    /// Its records.
    pub records: Vec<Arc<Record>>,
}

/// To the Journal of a session.
#[derive(Debug)]
pub enum JournalMsg {
    /// Appends a batch; acknowledged to its writer with `Committed`, or `AppendFailed`.
    Append(Batch),
    /// Gives all records, and the last batch number of each writer.
    Load(RpcReplyPort<Result<Loaded, String>>),
    /// Answers when everything before is on the disk.
    Sync(RpcReplyPort<Result<(), String>>),
}

/// A journal's content.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// All records, in order.
    pub records: Vec<Arc<Record>>,
    /// Last batch number of Session; 0 for none.
    pub session_batch: u64,
    /// Last batch number of Approval; 0 for none.
    pub approval_batch: u64,
    /// How many of the records stood in the file when this process opened it. A file grants nothing: what these
    /// records say of approvals is history, not permission.
    pub inherited: usize,
    /// What was lost or mended on loading, for the user; empty when nothing.
    pub warnings: Vec<String>,
}
