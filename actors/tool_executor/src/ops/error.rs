//! Why a file operation cannot be done, in words for the model.

use std::io;
use std::path::{Path, PathBuf};

use super::edit::EditError;
use super::patch_grammar::PatchSyntax;

/// Why a file operation was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpError {
    #[error("no such file: {}{hint}", path.display())]
    Missing { path: PathBuf, hint: String },
    #[error("no such directory: {}", path.display())]
    MissingDirectory { path: PathBuf },
    #[error("the path is empty: name a file")]
    EmptyPath,
    #[error("{} is {kind}, not a regular file{hint}", path.display())]
    NotAFile {
        path: PathBuf,
        kind: &'static str,
        hint: &'static str,
    },
    #[error("{} is not a directory; its parent is the nearest one", path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "{} has {size} bytes; files above {limit} bytes are not opened whole: use a command on the part that matters",
        path.display()
    )]
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    #[error("{} is binary ({kind}, {size} bytes){hint}", path.display())]
    Binary {
        path: PathBuf,
        kind: &'static str,
        size: u64,
        hint: &'static str,
    },
    #[error("{} changed on disk since it was read; read it again", path.display())]
    Stale { path: PathBuf },
    #[error("{} changed while this was being prepared; read it again and repeat the change", path.display())]
    ChangedMeanwhile { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Edit {
        path: PathBuf,
        #[source]
        source: EditError,
    },
    #[error("apply_patch verification failed: {0}")]
    Patch(#[from] PatchError),
    #[error("the regular expression is not valid: {reason}")]
    Regex { reason: String },
    #[error("the glob `{pattern}` is not valid: {reason}")]
    Glob { pattern: String, reason: String },
    #[error(
        "the search was stopped after {seconds} s and {files} files without a result; give a narrower path or pattern"
    )]
    SearchTooLong { seconds: u64, files: u64 },
    #[error("{} is not an image that can be shown ({kind}); PNG, JPEG, GIF and WebP can", path.display())]
    NotAnImage { path: PathBuf, kind: &'static str },
    #[error("{operation} is not a file operation")]
    NotHere { operation: &'static str },
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{cause}; restoring the files changed before it failed too: {}", lost.join(", "))]
    HalfDone {
        cause: Box<OpError>,
        lost: Vec<String>,
    },
}

/// Why a patch does not fit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("invalid patch: {0}")]
    Syntax(#[from] PatchSyntax),
    #[error("failed to read file to update {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("failed to find context '{context}' in {}{hint}", path.display())]
    Context {
        path: PathBuf,
        context: String,
        hint: String,
    },
    #[error("failed to find expected lines in {}:\n{lines}{hint}", path.display())]
    Lines {
        path: PathBuf,
        lines: String,
        hint: String,
    },
    #[error("cannot move to {}: there is a file already; delete it in the same patch first", path.display())]
    Occupied { path: PathBuf },
    #[error("the patch changes nothing")]
    Nothing,
    #[error("{} is not UTF-8 and the added text has characters beyond ASCII: use a command that knows its encoding", path.display())]
    Encoding { path: PathBuf },
}

impl OpError {
    /// An error of the system.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the boundary (or the file's own permissions: the system does not tell them apart) refused it.
    pub(crate) fn denied(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ),
            _ => false,
        }
    }
}
