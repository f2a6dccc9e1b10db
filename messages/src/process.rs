//! One OS process each: the SandboxProcess actor, and SandboxInit, the per-policy spawner and file worker behind it.

use std::path::PathBuf;
use std::sync::Arc;

use ractor::{ActorRef, RpcReplyPort};
use serde::{Deserialize, Serialize};

use crate::policy::SandboxPolicy;
use crate::tool::ExitStatus;
use crate::worker::{FileReply, FileRequest};
use crate::{CallId, ItemId, ProcessId};

/// A command to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// Its number in the session.
    pub id: ProcessId,
    /// The call that starts it.
    pub call: CallId,
    /// The UI item that its output is shown under.
    pub item: ItemId,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Whether it gets a pseudo-terminal; else stdin is empty and stdout and stderr are pipes.
    pub tty: bool,
    /// Runs under this policy.
    pub policy: Arc<SandboxPolicy>,
}

/// To a SandboxProcess.
#[derive(Debug)]
pub enum ProcessMsg {
    /// Waits until the command ended (and its pipes are drained, 2 s at the most), or `within_ms` passed; then gives
    /// what was written since `from`.
    Wait {
        /// Byte offset in the output.
        from: u64,
        /// The longest wait; `None`: until the end.
        within_ms: Option<u64>,
        /// The answer.
        reply: RpcReplyPort<ProcessSnapshot>,
    },
    /// Writes to the command's terminal or stdin.
    Stdin {
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether they were taken.
        reply: RpcReplyPort<Result<(), String>>,
    },
    /// Changes the terminal's size.
    Resize {
        /// Rows.
        rows: u16,
        /// Columns.
        columns: u16,
    },
    /// Begins the cancel ladder: SIGINT, 2 s, SIGTERM, 3 s, SIGKILL. Nobody waits for it.
    Cancel {
        /// Kills at once.
        now: bool,
    },
    /// Nobody will ask again: ends when the command ends.
    Release,
    /// From its own tasks.
    Internal(ProcessInternal),
}

/// What a SandboxProcess's tasks tell it. Opaque to everyone else.
pub type ProcessInternal = Box<dyn std::any::Any + Send>;

/// What a command did up to now.
#[derive(Debug, Clone)]
pub struct ProcessSnapshot {
    /// Output since the offset asked for, head and tail kept.
    pub output: Vec<u8>,
    /// Offset in `output` at which bytes are missing, and how many.
    pub gap: Option<(usize, u64)>,
    /// All bytes written so far: ask from here the next time.
    pub offset: u64,
    /// All lines written since the offset asked for.
    pub lines: u64,
    /// How it ended.
    pub exit: Option<ExitStatus>,
    /// Whether the boundary refused something, as told by the boundary.
    pub denial: Option<String>,
    /// Why it was never started.
    pub failure: Option<SpawnFailure>,
}

/// Why a command did not start. The command did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SpawnFailure {
    /// The boundary cannot be built: fail closed.
    #[error("the sandbox cannot be set up: {layer}: {reason}; {hint}")]
    Boundary {
        /// Which layer: user namespaces, mounts, landlock, seccomp, …
        layer: String,
        /// What the system said.
        reason: String,
        /// What the user can do.
        hint: String,
    },
    /// The program cannot be executed.
    #[error("cannot run {program}: {reason}")]
    Program {
        /// Which.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter {path}: {reason}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The spawner died; the next call gets a new one.
    #[error("the sandbox process died: {reason}")]
    InitDied {
        /// How.
        reason: String,
    },
}

/// What ToolPool gets from SandboxProcess actors.
#[derive(Debug, Clone)]
pub struct ProcessGone {
    /// Which.
    pub process: ProcessId,
}

/// To a SandboxInit: the owner of one policy's spawner process and file worker.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one message per file operation: a box would cost more than it saves"
)]
pub enum SandboxInitMsg {
    /// Carries out a file operation under the policy.
    File {
        /// What.
        request: FileRequest,
        /// The result, or why the worker could not do it.
        reply: RpcReplyPort<Result<FileReply, SpawnFailure>>,
    },
    /// From its own tasks.
    Internal(SandboxInitInternal),
}

/// What a SandboxInit's tasks tell it. Opaque to everyone else.
pub type SandboxInitInternal = Box<dyn std::any::Any + Send>;

/// How ToolPool starts a command's actor under itself; made by the tree.
pub type SpawnProcess = Arc<
    dyn Fn(ProcessSpec, ractor::ActorCell) -> BoxFuture<Result<ActorRef<ProcessMsg>, String>>
        + Send
        + Sync,
>;

/// How ToolPool starts a policy's spawner and file worker under itself; made by the tree.
pub type SpawnInit = Arc<
    dyn Fn(
            Arc<SandboxPolicy>,
            ractor::ActorCell,
        ) -> BoxFuture<Result<ActorRef<SandboxInitMsg>, String>>
        + Send
        + Sync,
>;

/// A boxed future, as the standard library has no alias for it.
pub type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;
