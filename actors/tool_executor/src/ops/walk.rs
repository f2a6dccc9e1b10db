//! Walking a directory tree for list, glob and grep: ignore files are honoured, `.git` is never entered, links are
//! not followed, and there is an end to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::error::OpError;
use super::load::absolute;

/// How long one walk may take; the file worker has other calls to serve.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The directory to walk, which must be one.
pub(crate) fn directory(cwd: &Path, path: Option<&Path>) -> Result<PathBuf, OpError> {
    let path = absolute(cwd, path.unwrap_or(Path::new(".")))?;
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Ok(path),
        Ok(_) => Err(OpError::NotADirectory { path }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(OpError::MissingDirectory { path })
        }
        Err(error) => Err(OpError::io("read", &path, error)),
    }
}

/// A walk below `base`. `hidden`: whether names with a leading dot are seen.
pub(crate) fn walk(base: &Path, hidden: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(base);
    builder
        .hidden(!hidden)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    builder
}

/// A clock that ends a walk.
pub(crate) struct Deadline {
    end: Instant,
    files: u64,
}

impl Deadline {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self {
            end: Instant::now() + MAX_TIME,
            files: 0,
        }
    }

    /// Counts a file; whether there is time for it.
    pub(crate) fn has_time(&mut self) -> bool {
        self.files += 1;
        Instant::now() < self.end
    }

    /// The error for a walk that found nothing in its time.
    pub(crate) fn error(&self) -> OpError {
        OpError::SearchTooLong {
            seconds: MAX_TIME.as_secs(),
            files: self.files,
        }
    }
}

/// Whether an entry of a walk is a regular file.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A path below `base`, as shown.
pub(crate) fn shown(base: &Path, path: &Path) -> String {
    path.strip_prefix(base)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

/// A glob in which `*` does not cross directories.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, OpError> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| OpError::Glob {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}

/// Whether a pattern itself names something hidden.
pub(crate) fn names_hidden(pattern: &str) -> bool {
    pattern
        .split(['/', '{', ','])
        .any(|part| part.starts_with('.') && !matches!(part, "." | ".."))
}
