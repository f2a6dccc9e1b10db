//! Tool calls, the native operations behind them, and their outcomes.

use std::path::PathBuf;
use std::sync::Arc;

use ractor::{ActorRef, RpcReplyPort};
use serde::{Deserialize, Serialize};

use crate::approval::Decision;
use crate::policy::SandboxPolicy;
use crate::process::ProcessMsg;
use crate::{ApprovalId, CallId, ProcessId, TurnId};

/// A call as the model made it and as we understood it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the session.
    pub id: CallId,
    /// The name on the wire.
    pub name: String,
    /// The arguments as sent back to the model: always the text of a JSON object.
    pub arguments: String,
    /// What it means, or why it means nothing.
    pub meaning: Meaning,
    /// What was repaired in a weak model's call, to be told to the model with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<String>,
}

/// The outcome of mapping a wire call to a native operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// To be carried out.
    Run(Operation),
    /// Never carried out; the model is told why.
    Invalid(InvalidCall),
}

/// Why a call cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InvalidCall {
    /// No such tool is offered.
    UnknownTool {
        /// The offered name that looks most like it.
        nearest: Option<String>,
    },
    /// The arguments are not a JSON object that fits the schema.
    BadArguments {
        /// What is wrong, and where.
        error: String,
        /// The text the model wrote (its arguments are replaced by `{}` on the wire when they are not JSON).
        raw: String,
    },
}

/// What a tool does, whatever it is called on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    /// Runs a command.
    Exec(Exec),
    /// Writes to, or polls, a running command.
    WriteStdin(WriteStdin),
    /// Reads a file.
    Read(Read),
    /// Writes a whole file.
    Write(Write),
    /// Replaces text in a file.
    Edit(Edit),
    /// Applies a patch in the Codex grammar.
    Patch(Patch),
    /// Lists a directory.
    List(List),
    /// Finds files by name.
    Glob(Glob),
    /// Searches in files.
    Grep(Grep),
    /// Replaces the plan.
    Plan(Plan),
    /// Attaches an image file.
    ViewImage(ViewImage),
}

impl Operation {
    /// What a crash or a repeat of this operation would mean.
    #[must_use]
    pub const fn class(&self) -> ToolClass {
        match self {
            Self::Exec(_) | Self::WriteStdin(_) => ToolClass::Process,
            Self::Write(_) | Self::Edit(_) | Self::Patch(_) => ToolClass::Write,
            Self::Read(_)
            | Self::List(_)
            | Self::Glob(_)
            | Self::Grep(_)
            | Self::ViewImage(_)
            | Self::Plan(_) => ToolClass::ReadOnly,
        }
    }

    /// The native name, as in profiles and traces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::WriteStdin(_) => "write_stdin",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::Patch(_) => "patch",
            Self::List(_) => "list",
            Self::Glob(_) => "glob",
            Self::Grep(_) => "grep",
            Self::Plan(_) => "plan",
            Self::ViewImage(_) => "view_image",
        }
    }
}

/// What may be done again after a crash (DESIGN §2, ToolExecutor).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Re-run once, silently; calls of one response may run together.
    ReadOnly,
    /// Never re-run; the files' hashes tell whether it was applied.
    Write,
    /// Never re-run; effects unknown.
    Process,
}

/// Runs a command under a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The script.
    pub command: String,
    /// Relative to the session's directory; it never widens the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
    /// The shell; default `/bin/bash`, else `/bin/sh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<PathBuf>,
    /// Whether the shell is a login shell.
    #[serde(default)]
    pub login: bool,
    /// Whether it gets a pseudo-terminal.
    #[serde(default)]
    pub tty: bool,
    /// How long the call waits before it returns with the command still running. `None`: until it ends or times out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_ms: Option<u64>,
    /// When the command is ended. `None`: the tool's default ([`crate::tool::DEFAULT_TIMEOUT_MS`]), or never when it yields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Output kept for the model, in tokens of 4 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Whether it asks to run outside the sandbox.
    #[serde(default)]
    pub escalate: bool,
    /// The model's reason for that; shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
}

/// Default end of a command that does not yield: two minutes.
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// Writes to a running command, then waits as an [`Exec`] with `yield_ms` does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteStdin {
    /// The command.
    pub process: ProcessId,
    /// The text; empty only polls.
    #[serde(default)]
    pub chars: String,
    /// How long the call waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_ms: Option<u64>,
    /// Output kept for the model, in tokens of 4 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// Reads a file by lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Absolute, or relative to the session's directory.
    pub path: PathBuf,
    /// First line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Lines at the most; default 2,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Writes a whole file; parents are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The file.
    pub path: PathBuf,
    /// All of its text.
    pub content: String,
}

/// Replaces text in a file; all replacements or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// Applied in order, each to the result of the one before.
    pub replacements: Vec<Replacement>,
}

/// One replacement of an [`Edit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// Must occur; exactly once unless `all`. Empty: only for a file that does not exist or is empty.
    pub old: String,
    /// Replaces it.
    pub new: String,
    /// Every occurrence.
    #[serde(default)]
    pub all: bool,
}

/// A patch in the grammar of Codex' `apply_patch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// `*** Begin Patch` … `*** End Patch`.
    pub patch: String,
    /// Paths in it are relative to this; default the session's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
}

/// Lists a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The directory; default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Levels; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Entries at the most; default 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Finds files by a glob; ignore files are honoured, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// Such as `**/*.rs`.
    pub pattern: String,
    /// Below this directory; default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Paths at the most; default 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Searches in files by a regular expression; ignore files are honoured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grep {
    /// Rust regex syntax.
    pub pattern: String,
    /// A file or directory; default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Only files that match this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// What is reported.
    #[serde(default)]
    pub output: GrepOutput,
    /// Ignores case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Lets the pattern match over line ends.
    #[serde(default)]
    pub multiline: bool,
    /// Lines before each match.
    #[serde(default)]
    pub before: u32,
    /// Lines after each match.
    #[serde(default)]
    pub after: u32,
    /// Results at the most; default 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What a [`Grep`] reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    /// `path:line:text`
    #[default]
    Lines,
    /// Paths of files with a match.
    Files,
    /// `path:count`
    Counts,
}

/// Replaces the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Why it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// All steps.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub step: String,
    /// How far it is.
    pub status: StepStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

/// Attaches an image file to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewImage {
    /// PNG, JPEG, GIF or WebP.
    pub path: PathBuf,
}

/// What is about to happen outside; in the journal before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Intent {
    /// Files change as stated.
    Files {
        /// One per file, sorted by path.
        changes: Vec<FileChange>,
    },
    /// A command starts.
    Process {
        /// The argument vector, as executed.
        argv: Vec<String>,
        /// Where.
        cwd: PathBuf,
        /// Whether it runs outside the sandbox.
        escalated: bool,
    },
    /// Text goes to a running command.
    Stdin {
        /// Which.
        process: ProcessId,
    },
}

/// One file's change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute.
    pub path: PathBuf,
    /// What happens to it.
    pub kind: ChangeKind,
    /// Where a moved file goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<PathBuf>,
    /// BLAKE3 of the bytes before, hex; `None` when there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// BLAKE3 of the bytes after, hex; `None` when there will be no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Unified diff for people; cut at 64 KiB, with the cut stated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

/// Kinds of change, named as in the exec protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new file.
    Add,
    /// Gone.
    Delete,
    /// Other content.
    Update,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It did what it says.
    Ok {
        /// What came of it.
        output: ToolOutput,
    },
    /// The tool says no: no such file, text not found, patch does not fit, process cannot start.
    Failed {
        /// What, on what, and what to do next; for the model.
        error: String,
    },
    /// A person, a rule or the policy refused.
    Denied {
        /// For the model.
        reason: String,
    },
    /// Ended because its time was up.
    TimedOut {
        /// The limit.
        after_ms: u64,
        /// What it had written.
        output: ExecOutput,
    },
    /// Ended by an interrupt or a shutdown, or never started because of one.
    Aborted {
        /// For the model.
        reason: String,
        /// What it had written, if it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<ExecOutput>,
    },
    /// The tool's actor or process died.
    Crashed {
        /// What may have happened outside.
        effects: Effects,
        /// What died and how.
        cause: String,
        /// The last it had written.
        #[serde(default)]
        tail: String,
    },
}

/// What a crashed call may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// It had not begun.
    None,
    /// The files are as intended.
    Applied,
    /// The files are as before.
    NotApplied,
    /// Look before you go on.
    Unknown,
}

/// What an operation gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolOutput {
    /// Of [`Exec`] and [`WriteStdin`]; a non-zero exit is not a failure of the tool.
    Exec(ExecOutput),
    /// Of [`Read`].
    Text(TextOutput),
    /// Of [`Write`], [`Edit`] and [`Patch`].
    Changed {
        /// What was done, sorted by path; paths absolute.
        changes: Vec<FileChange>,
    },
    /// Of [`List`], [`Glob`] and [`Grep`]: lines.
    Lines {
        /// Without line ends; paths are relative to the searched directory. A directory ends in `/`.
        lines: Vec<String>,
        /// How many more there were, at least.
        left_out: u64,
    },
    /// Of [`Plan`].
    Plan {
        /// The plan as it is now.
        plan: Plan,
    },
    /// Of [`ViewImage`].
    Image {
        /// Where it came from.
        path: PathBuf,
        /// Such as `image/png`.
        mime: String,
        /// Base64 of the file.
        data: Arc<str>,
    },
}

/// What a command gave up to now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecOutput {
    /// stdout and stderr in the order they came, decoded as UTF-8 with U+FFFD for other bytes; head and tail are kept.
    pub text: String,
    /// Bytes before any cut.
    pub total_bytes: u64,
    /// Lines before any cut.
    pub total_lines: u64,
    /// Where in `text` the cut lies (a byte offset on a character boundary) and how many bytes it took out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Milliseconds that this call took.
    pub wall_ms: u64,
    /// How the command ended; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitStatus>,
    /// Set while it runs: the number to write to or poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    /// Set when the boundary refused something, as a fact from the boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
}

/// A cut in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Byte offset in the kept text at which the left-out part belongs.
    pub at: usize,
    /// Bytes left out.
    pub bytes: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl ExitStatus {
    /// As a shell shows it: 128+n for a signal.
    #[must_use]
    pub const fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// A part of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextOutput {
    /// Absolute.
    pub path: PathBuf,
    /// BLAKE3 of the whole file, hex; the stale-file guard compares it.
    pub hash: String,
    /// The lines asked for, with `\n` ends and without the byte order mark; bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// Number of the first line in `text`, from 1.
    pub first_line: u64,
    /// Lines of the whole file.
    pub total_lines: u64,
    /// Lines longer than the limit that were cut.
    #[serde(default)]
    pub long_lines: u64,
    /// The file is not valid UTF-8, or is UTF-16; editing it keeps its bytes only where the edit does not touch.
    #[serde(default)]
    pub lossy: bool,
}

/// To the ToolPool of a session.
#[derive(Debug)]
pub enum ToolPoolMsg {
    /// Runs a call; a second time with the same id is ignored.
    Run(RunCall),
    /// The call's intent is in the journal: go on.
    Proceed {
        /// Which.
        call: CallId,
    },
    /// An answer to a question of a call.
    Decided {
        /// Which call.
        call: CallId,
        /// Which question.
        approval: ApprovalId,
        /// The answer.
        decision: Decision,
    },
    /// Ends a call: its outcome is already in the journal; processes get the cancel ladder.
    Cancel {
        /// Which.
        call: CallId,
    },
    /// Ends every call of a turn, in the same way.
    CancelTurn {
        /// Which.
        turn: TurnId,
        /// Skips the ladder and kills at once.
        now: bool,
    },
    /// The call's outcome is in the journal: it can be forgotten.
    Acknowledge {
        /// Which.
        call: CallId,
    },
    /// Asks for all calls that are known; answered with `SessionMsg::ToolReport`.
    Report,
    /// A sibling came back; questions are submitted again, with the same ids.
    PeerRestarted(crate::session::Who),
    /// Files as the model last saw them (path, BLAKE3), folded from the journal when a session starts.
    Seen(Vec<(PathBuf, Option<String>)>),
    /// The policy or working directory changed; running commands keep the old one.
    Policy(Arc<SandboxPolicy>),
    /// Asks for a picture of the state.
    View(RpcReplyPort<ToolPoolView>),
    /// From a child: not for others.
    Child(ChildReport),
}

/// What a child of ToolPool tells it.
#[derive(Debug)]
pub enum ChildReport {
    /// An executor needs the journal before it acts.
    Intends {
        /// Which call.
        call: CallId,
        /// What it will do.
        intent: Intent,
    },
    /// An executor finished.
    Finished {
        /// Which call.
        call: CallId,
        /// With what.
        outcome: ToolOutcome,
    },
    /// A command ended and nobody waits for it any more.
    ProcessGone {
        /// Which.
        process: ProcessId,
    },
    /// A command's actor was started for a call, or could not be.
    Started {
        /// Which call.
        call: CallId,
        /// The command's number.
        process: ProcessId,
        /// Its actor, or why there is none.
        result: Result<ActorRef<ProcessMsg>, String>,
    },
    /// The model was given a command's output up to here, and the command runs on.
    Yielded {
        /// Which.
        process: ProcessId,
        /// Offset in its output.
        offset: u64,
        /// When it is ended, counted from now; `None`: never.
        expires_ms: Option<u64>,
    },
    /// The actor that did the work for a call died under it; the executor gives up, as if it had crashed itself.
    Lost {
        /// Which call.
        call: CallId,
        /// What died and how.
        cause: String,
    },
    /// Files that the model has seen, or changed, by a call (path, BLAKE3).
    Seen(Vec<(PathBuf, Option<String>)>),
}

/// One call to run.
#[derive(Debug, Clone)]
pub struct RunCall {
    /// Its turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// What to do.
    pub operation: Operation,
    /// Relative paths of the operation start here.
    pub cwd: PathBuf,
}

/// What ToolPool tells Session.
#[derive(Debug, Clone)]
pub enum ToolEvent {
    /// An intent to be committed before the call acts.
    Intends {
        /// Which.
        call: CallId,
        /// What.
        intent: Intent,
    },
    /// A call is over; repeated until acknowledged.
    Finished {
        /// Which.
        call: CallId,
        /// With what.
        outcome: ToolOutcome,
    },
}

/// One known call, in a report.
#[derive(Debug, Clone)]
pub struct CallStatus {
    /// Which.
    pub call: CallId,
    /// Its turn.
    pub turn: TurnId,
    /// How far it is.
    pub phase: CallPhase,
}

/// How far a call is.
#[derive(Debug, Clone)]
pub enum CallPhase {
    /// Being prepared, asking, or running; it will report.
    Busy,
    /// Waits for its intent's commit.
    Intends(Intent),
    /// Over; the outcome waits for its acknowledgement.
    Finished(ToolOutcome),
}

/// A picture of a ToolPool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ToolPoolView {
    /// Calls that are not acknowledged.
    pub calls: Vec<CallId>,
    /// Commands that still run.
    pub processes: Vec<ProcessId>,
    /// Silent re-runs of read-only calls after a crash.
    pub reruns: u64,
}
