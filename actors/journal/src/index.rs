//! Which sessions there are. Reads names and the heads of files; opens none for writing and takes no lock.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use interpreter_messages::SessionId;
use interpreter_messages::journal::{Entry, Part};
use jiff::Timestamp;

use crate::load;

/// Bytes read of each file: enough for the instructions that other programs put before the first words of the user.
/// Where it is not (the first input holds images), more is read.
const HEADS: [u64; 3] = [256 * 1024, 4 * 1024 * 1024, u64::MAX];

/// Characters of the first input that are kept.
const FIRST_INPUT: usize = 200;

/// One session, by the head of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Which.
    pub id: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// Where it works.
    pub cwd: PathBuf,
    /// When it began.
    pub started: Timestamp,
    /// When its file was written last.
    pub used: SystemTime,
    /// Inputs that began a turn, within the head of the file.
    pub turns: u64,
    /// Whether the whole file was read; else `turns` is a lower bound.
    pub whole: bool,
    /// The beginning of the user's first words, on one line.
    pub first_input: String,
    /// Set when it is a sub-agent's.
    pub parent: Option<SessionId>,
}

/// Why there is no such session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Nothing begins like that.
    #[error(
        "no session {wanted} below {} (see `interpreter resume` for the list)",
        .home.join("sessions").display()
    )]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// `INTERPRETER_HOME`.
        home: PathBuf,
    },
    /// More than one begins like that.
    #[error("session {wanted} is ambiguous: {} (give more of the id)", ids(.found))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// What begins like that.
        found: Vec<SessionId>,
    },
    /// A directory cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn ids(found: &[SessionId]) -> String {
    let ids: Vec<String> = found.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

/// The file of a session, by its id or the beginning of it.
///
/// # Errors
/// [`IndexError::NotFound`], [`IndexError::Ambiguous`], or a directory that cannot be read.
pub fn find(home: &Path, id_or_prefix: &str) -> Result<PathBuf, IndexError> {
    let wanted = id_or_prefix.trim().to_ascii_lowercase();
    let mut found: Vec<(SessionId, PathBuf)> = Vec::new();
    if !wanted.is_empty() {
        found = files(home)?
            .into_iter()
            .filter_map(|path| Some((id_of(&path)?, path)))
            .filter(|(id, _)| id.to_string().starts_with(&wanted))
            .collect();
    }
    match found.as_slice() {
        [] => Err(IndexError::NotFound {
            wanted,
            home: home.to_owned(),
        }),
        [(_, path)] => Ok(path.clone()),
        many => Err(IndexError::Ambiguous {
            wanted,
            found: many.iter().map(|(id, _)| *id).collect(),
        }),
    }
}

/// The session that was used last, in `cwd` or anywhere. Sessions without words of the user, and those of sub-agents,
/// do not count.
///
/// # Errors
/// When a directory cannot be read.
pub fn latest(home: &Path, cwd: Option<&Path>) -> Result<Option<SessionSummary>, IndexError> {
    Ok(newest_first(home)?
        .into_iter()
        .filter_map(|(used, path)| summary(&path, used))
        .find(|session| session.parent.is_none() && cwd.is_none_or(|cwd| session.cwd == cwd)))
}

/// All sessions with words of the user, the one that was used last first. A file that cannot be read is left out.
///
/// # Errors
/// When a directory cannot be read.
pub fn list(home: &Path) -> Result<Vec<SessionSummary>, IndexError> {
    Ok(newest_first(home)?
        .into_iter()
        .filter_map(|(used, path)| summary(&path, used))
        .collect())
}

/// The id in a session file's name: `rollout-YYYY-MM-DDThh-mm-ss-<id>.jsonl`.
pub(crate) fn id_of(path: &Path) -> Option<SessionId> {
    const TIME: usize = "YYYY-MM-DDThh-mm-ss-".len();
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    stem.get(TIME..)?.parse().ok()
}

fn newest_first(home: &Path) -> Result<Vec<(SystemTime, PathBuf)>, IndexError> {
    let mut found: Vec<(SystemTime, PathBuf)> = files(home)?
        .into_iter()
        .filter_map(|path| {
            // A file that went away meanwhile is none.
            let facts = std::fs::symlink_metadata(&path).ok()?;
            facts
                .is_file()
                .then(|| Some((facts.modified().ok()?, path)))?
        })
        .collect();
    // The name has the time of the start: it decides where file times are coarse.
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

/// All session files: `sessions/YYYY/MM/DD/rollout-….jsonl`.
fn files(home: &Path) -> Result<Vec<PathBuf>, IndexError> {
    let mut directories = vec![home.join("sessions")];
    for _ in ["year", "month", "day"] {
        let mut below = Vec::new();
        for directory in directories {
            below.extend(entries(&directory)?.into_iter().filter(|p| p.is_dir()));
        }
        directories = below;
    }
    let mut files = Vec::new();
    for directory in directories {
        files.extend(
            entries(&directory)?
                .into_iter()
                .filter(|path| id_of(path).is_some()),
        );
    }
    Ok(files)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, IndexError> {
    let failed = |source| IndexError::Read {
        path: directory.to_owned(),
        source,
    };
    match std::fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// A session by the head of its file; `None` for a file without a session or without words of the user.
fn summary(path: &Path, used: SystemTime) -> Option<SessionSummary> {
    for limit in HEADS {
        let mut head = Vec::new();
        File::open(path)
            .ok()?
            .take(limit)
            .read_to_end(&mut head)
            .ok()?;
        let whole = (head.len() as u64) < limit;
        let found = of_head(path, used, &head, whole);
        if found.is_some() || whole {
            return found;
        }
    }
    None
}

fn of_head(path: &Path, used: SystemTime, head: &[u8], whole: bool) -> Option<SessionSummary> {
    let parsed = load::parse(head);
    let meta = parsed.meta()?.clone();
    let mut turns = 0;
    let mut first_input = None;
    for record in &parsed.content.records {
        match &record.entry {
            Entry::TurnStarted(_) => turns += 1,
            Entry::UserInput(input) if first_input.is_none() => {
                first_input = Some(one_line(&input.parts));
            }
            _ => {}
        }
    }
    Some(SessionSummary {
        id: meta.id,
        path: path.to_owned(),
        cwd: meta.cwd,
        started: meta.started,
        used,
        turns,
        whole,
        first_input: first_input?,
        parent: meta.parent,
    })
}

fn one_line(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image]",
        })
        .collect();
    let words: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    words.join(" ").chars().take(FIRST_INPUT).collect()
}

#[cfg(test)]
mod tests;
