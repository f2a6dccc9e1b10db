//! Why a session's file cannot be used.

use std::io;
use std::path::PathBuf;

/// Why a journal cannot be made or opened. No file was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or a directory on the way cannot be made.
    #[error("cannot make {path}: {source} (use --ephemeral to go on without a session file)")]
    Create {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be opened or read.
    #[error("cannot read the session file {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is a symbolic link, a directory, a pipe or a device.
    #[error("{path} is {what}, not a session file (give the path of the file itself)")]
    NotAFile {
        /// Which.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Somebody else could have written it.
    #[error(
        "the session file {path} is not safe to resume: {why} (copy it, or correct it with chown or chmod)"
    )]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Owner or mode.
        why: String,
    },
    /// The file is too large.
    #[error(
        "the session file {path} has {bytes} bytes, more than the limit of {limit} (start a new session)"
    )]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is compressed.
    #[error("{path} is compressed (unpack it with `zstd -d` first)")]
    Compressed {
        /// Which.
        path: PathBuf,
    },
    /// Another process, or this one, has it open.
    #[error("the session file {path} is in use by {}", holder(.pid))]
    InUse {
        /// Which.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        pid: Option<u32>,
    },
    /// No line says which session it is.
    #[error("{path} holds no session: it has no session_meta line")]
    NoMeta {
        /// Which.
        path: PathBuf,
    },
    /// The damage cannot be taken out; a copy of it may have been made.
    #[error("the session file {path} is damaged and cannot be mended: {source}")]
    Mend {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn holder(pid: &Option<u32>) -> String {
    match pid {
        Some(pid) if *pid == std::process::id() => {
            format!("this process (pid {pid}); it can be open once only")
        }
        Some(pid) => format!("another process, pid {pid} (end it first)"),
        None => "another process (end it first)".to_owned(),
    }
}
