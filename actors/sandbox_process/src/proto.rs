//! What crosses the control socket between the program and an init. Each packet is one JSON order; descriptors go along.

use std::path::PathBuf;

use interpreter_messages::process::SpawnFailure;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// An order to an init.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// First: build the boundary. Descriptors: the plan (a memory file), the file worker's socket.
    SetUp,
    /// Start a command. Descriptors: the [`Launch`] (a memory file), status pipe, stdin, stdout, stderr.
    Spawn {
        /// Its number.
        id: u64,
    },
    /// Signal a command; SIGKILL ends everything that it started.
    Kill {
        /// Its number.
        id: u64,
        /// The signal.
        signal: i32,
    },
}

/// Content of the plan's memory file.
#[derive(Debug, Serialize, Deserialize)]
pub struct SetUp {
    /// What is enforced.
    pub plan: Plan,
    /// Environment of the file worker: it needs HOME at the most.
    pub env: Vec<(String, String)>,
}

/// An init's answer to `SetUp`.
#[derive(Debug, Serialize, Deserialize)]
pub struct SetUpDone(pub Result<(), SpawnFailure>);

/// A command to start.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// How it is tied to a terminal.
    pub terminal: Terminal,
}

/// How a command is tied to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Terminal {
    /// A session of its own without one.
    None,
    /// Its stdin is a new terminal, which becomes its controlling one.
    Own,
    /// It stays in the caller's session and process group (`interpreter sandbox`).
    Callers,
}

/// A line of the status pipe.
#[derive(Debug, Serialize, Deserialize)]
pub enum Status {
    /// It did not start.
    Failed(SpawnFailure),
    /// It ended by itself with this code.
    Code(i32),
    /// It ended by this signal.
    Signal(i32),
}
