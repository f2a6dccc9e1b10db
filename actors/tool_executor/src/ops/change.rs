//! Planned changes: computed from an operation, shown as a diff, and carried out all or not at all.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interpreter_messages::tool::{ChangeKind, FileChange};
use similar::TextDiff;

use super::error::OpError;
use super::load::{Loaded, hash};
use super::store;
use super::text::TextFile;

/// Bytes of a diff at the most.
const MAX_DIFF: usize = 64 * 1024;
/// How long a diff may be refined; after that it is coarser, never wrong.
const DIFF_TIME: Duration = Duration::from_millis(300);
/// Lines of context in a diff.
const DIFF_CONTEXT: usize = 3;

/// One file's planned change.
#[derive(Debug)]
pub(crate) struct Step {
    /// Absolute.
    pub path: PathBuf,
    /// Where a moved file goes; nothing is there before.
    pub moved_to: Option<PathBuf>,
    /// Content before; `None` for no file.
    pub before: Option<Vec<u8>>,
    /// Content after; `None` for no file.
    pub after: Option<Vec<u8>>,
    /// Mode and owner before.
    pub meta: Option<Metadata>,
}

/// All changes of one operation, sorted by path.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// One per file.
    pub steps: Vec<Step>,
}

/// Hashes of files as the model last saw them.
pub(crate) type Seen = [(PathBuf, Option<String>)];

/// Refuses a file that differs from what the model last saw of it under any of its names.
///
/// A file that the model never saw, or that is gone, is not stale: nothing can be lost.
pub(crate) fn require_fresh(
    path: &Path,
    loaded: Option<&Loaded>,
    seen: Option<&Seen>,
) -> Result<(), OpError> {
    let (Some(loaded), Some(seen)) = (loaded, seen) else {
        return Ok(());
    };
    let mut known = seen
        .iter()
        .filter(|(other, _)| other == path || *other == loaded.real)
        .map(|(_, hash)| hash.as_deref())
        .peekable();
    if known.peek().is_none() {
        return Ok(());
    }
    let now = hash(&loaded.bytes);
    if known.any(|hash| hash == Some(now.as_str())) {
        return Ok(());
    }
    Err(OpError::Stale {
        path: path.to_owned(),
    })
}

impl Step {
    /// A change of one file to `after`.
    pub(crate) fn to(path: PathBuf, loaded: Option<Loaded>, after: Vec<u8>) -> Self {
        let (before, meta) = loaded.map_or((None, None), |loaded| {
            (Some(loaded.bytes), Some(loaded.meta))
        });
        Self {
            path,
            moved_to: None,
            before,
            after: Some(after),
            meta,
        }
    }

    /// As told to others.
    fn change(&self) -> FileChange {
        FileChange {
            diff: self.diff(),
            ..self.summary()
        }
    }

    /// As told to others, without the diff.
    fn summary(&self) -> FileChange {
        let kind = match (&self.before, &self.after) {
            (None, _) => ChangeKind::Add,
            (Some(_), None) => ChangeKind::Delete,
            (Some(_), Some(_)) => ChangeKind::Update,
        };
        FileChange {
            path: self.path.clone(),
            kind,
            moved_to: self.moved_to.clone(),
            before: self.before.as_deref().map(hash),
            after: self.after.as_deref().map(hash),
            diff: String::new(),
        }
    }

    fn diff(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let after = self.after.as_deref().unwrap_or_default();
        if before == after {
            return String::new();
        }
        let (Some(old), Some(new)) = (TextFile::parse(before), TextFile::parse(after)) else {
            return format!(
                "binary: {} bytes become {} bytes\n",
                before.len(),
                after.len()
            );
        };
        let (old, new) = (
            old.text().replace("\r\n", "\n"),
            new.text().replace("\r\n", "\n"),
        );
        if old == new {
            return "only line ends or the encoding change\n".to_owned();
        }
        let name = |path: &Path, there: bool| {
            if there {
                path.display().to_string()
            } else {
                "/dev/null".to_owned()
            }
        };
        let to = self.moved_to.as_ref().unwrap_or(&self.path);
        let diff = TextDiff::configure()
            .timeout(DIFF_TIME)
            .diff_lines(&old, &new)
            .unified_diff()
            .context_radius(DIFF_CONTEXT)
            .header(
                &name(&self.path, self.before.is_some()),
                &name(to, self.after.is_some()),
            )
            .to_string();
        cut_diff(diff)
    }

    /// Carries it out; gives the directories that were made for it.
    fn carry_out(&self) -> Result<Vec<PathBuf>, OpError> {
        match (&self.after, &self.moved_to) {
            (Some(after), Some(to)) => {
                let made = store::put(to, after, self.meta.as_ref())?;
                store::remove(&self.path).inspect_err(|_| {
                    // The move did not happen, so its copy must not stay; the error to tell is the first one.
                    let _ = store::remove(to);
                    store::remove_made(&made);
                })?;
                Ok(made)
            }
            (Some(after), None) => store::put(&self.path, after, None),
            (None, _) => store::remove(&self.path).map(|()| Vec::new()),
        }
    }

    fn take_back(&self, made: &[PathBuf]) -> Result<(), OpError> {
        match &self.before {
            Some(before) => {
                store::put(&self.path, before, self.meta.as_ref())?;
            }
            None => store::remove(&self.path)?,
        }
        if let Some(to) = &self.moved_to {
            store::remove(to)?;
        }
        store::remove_made(made);
        Ok(())
    }
}

fn cut_diff(mut diff: String) -> String {
    if diff.len() <= MAX_DIFF {
        return diff;
    }
    let total = diff.len();
    let at = diff[..diff.floor_char_boundary(MAX_DIFF)]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    diff.truncate(at);
    diff.push_str(&format!("[diff cut: {} more bytes]\n", total - at));
    diff
}

impl Plan {
    /// A plan of one step.
    pub(crate) fn one(step: Step) -> Self {
        Self { steps: vec![step] }
    }

    /// As told to others, sorted by path.
    pub(crate) fn changes(&self) -> Vec<FileChange> {
        self.sorted(Step::change)
    }

    fn sorted(&self, tell: fn(&Step) -> FileChange) -> Vec<FileChange> {
        let mut changes: Vec<FileChange> = self.steps.iter().map(tell).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    /// Whether it would do what was prepared before, byte for byte; if not, the first file that differs.
    pub(crate) fn differs_from(&self, prepared: &[FileChange]) -> Option<PathBuf> {
        let now = self.sorted(Step::summary);
        let same = |a: &FileChange, b: &FileChange| {
            (&a.path, a.kind, &a.moved_to, &a.before, &a.after)
                == (&b.path, b.kind, &b.moved_to, &b.before, &b.after)
        };
        if let Some(change) = now
            .iter()
            .zip(prepared)
            .find_map(|(a, b)| (!same(a, b)).then_some(a))
        {
            return Some(change.path.clone());
        }
        let extra = now.get(prepared.len()).or(prepared.get(now.len()));
        extra.map(|change| change.path.clone())
    }

    /// Carries it out. When a step fails, the steps before it are taken back.
    pub(crate) fn carry_out(&self) -> Result<(), OpError> {
        let mut done: Vec<(&Step, Vec<PathBuf>)> = Vec::new();
        for step in &self.steps {
            let cause = match step.carry_out() {
                Ok(made) => {
                    done.push((step, made));
                    continue;
                }
                Err(cause) => cause,
            };
            let lost: Vec<String> = done
                .iter()
                .rev()
                .filter(|(step, made)| step.take_back(made).is_err())
                .map(|(step, _)| step.path.display().to_string())
                .collect();
            if lost.is_empty() {
                return Err(cause);
            }
            return Err(OpError::HalfDone {
                cause: Box::new(cause),
                lost,
            });
        }
        Ok(())
    }
}
