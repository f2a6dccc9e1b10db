//! What crosses the pipe to the file worker: file operations, carried out under the session's policy.
//!
//! Changes are made in two steps, so that the intent can be journalled between them: `Prepare` reads, checks and
//! computes; `Apply` writes what was prepared, if the files are still as they were.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::tool::{FileChange, Operation, ToolOutput};

/// A request to the file worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRequest {
    /// The session's directory; relative paths start here.
    pub cwd: PathBuf,
    /// What to do.
    pub order: FileOrder,
}

/// What the file worker is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum FileOrder {
    /// A read-only operation: read, list, glob, grep, view_image.
    Look {
        /// Which.
        operation: Operation,
    },
    /// Computes a write, edit or patch without touching anything.
    Prepare {
        /// Which.
        operation: Operation,
        /// Hashes of files as the model last saw them (path, BLAKE3): a file that differs is refused as stale.
        seen: Vec<(PathBuf, Option<String>)>,
    },
    /// Carries out a prepared change: computes it again and applies it only if it gives the same `changes`.
    Apply {
        /// The operation that was prepared.
        operation: Operation,
        /// What `Prepare` answered.
        changes: Vec<FileChange>,
    },
    /// The hashes of files now; `None` where there is no file.
    Hash {
        /// Absolute paths.
        paths: Vec<PathBuf>,
    },
}

/// The file worker's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum FileReply {
    /// Done.
    Done {
        /// What came of it.
        output: ToolOutput,
        /// Files that the model has now seen whole or in part, with their hashes.
        seen: Vec<(PathBuf, Option<String>)>,
    },
    /// Prepared: nothing was touched.
    Prepared {
        /// What would change, sorted by path.
        changes: Vec<FileChange>,
    },
    /// Answer to `Hash`, in order.
    Hashes {
        /// BLAKE3, hex.
        hashes: Vec<Option<String>>,
    },
    /// The operation cannot be done; nothing was touched.
    Failed {
        /// For the model: what, on what, and what to do next.
        error: String,
        /// Set when the boundary refused it (a read-only or denied path).
        denied: bool,
    },
}
