//! Patch: several files in one change, all checked before any is touched.
//!
//! There is no stale-file guard for updates: their context is checked against the file as it is, and harnesses that
//! offer patches often have no tool for reading, so a guard could never be satisfied. A file that is written whole
//! over a known one (`Add File`) is guarded.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use interpreter_messages::tool::Patch;

use super::change::{Plan, Seen, Step, require_fresh};
use super::error::{OpError, PatchError};
use super::load::{absolute, load_if_there};
use super::patch_grammar::{Chunk, Hunk, parse};
use super::patch_match::{Misfit, apply};
use super::text::{TextFile, kind_of};

/// Plans a patch.
pub(crate) fn plan(cwd: &Path, order: &Patch, seen: Option<&Seen>) -> Result<Plan, OpError> {
    let base = match &order.workdir {
        Some(workdir) => absolute(cwd, workdir)?,
        None => cwd.to_owned(),
    };
    let hunks = parse(&order.patch).map_err(PatchError::from)?;
    let mut files = Overlay::default();
    for hunk in hunks {
        match hunk {
            Hunk::Add { path, content } => {
                files.add(absolute(&base, &path)?, content.into_bytes(), seen)?;
            }
            Hunk::Delete { path } => files.delete(absolute(&base, &path)?)?,
            Hunk::Update {
                path,
                moved_to,
                chunks,
            } => {
                let path = absolute(&base, &path)?;
                let moved_to = moved_to.map(|to| absolute(&base, &to)).transpose()?;
                files.update(path, moved_to, &chunks)?;
            }
        }
    }
    let plan = files.into_plan();
    if plan.steps.is_empty() {
        return Err(PatchError::Nothing.into());
    }
    Ok(plan)
}

/// The files a patch talks about, as they are on the disk and as they will be.
#[derive(Default)]
struct Overlay {
    files: BTreeMap<PathBuf, File>,
    /// Source and destination, in the order of the patch.
    moves: Vec<(PathBuf, PathBuf)>,
}

struct File {
    before: Option<Vec<u8>>,
    now: Option<Vec<u8>>,
    meta: Option<Metadata>,
}

impl Overlay {
    fn file(&mut self, path: &Path, seen: Option<&Seen>) -> Result<&mut File, OpError> {
        if !self.files.contains_key(path) {
            let loaded = load_if_there(path)?;
            require_fresh(path, loaded.as_ref(), seen)?;
            let (before, meta) = loaded.map_or((None, None), |loaded| {
                (Some(loaded.bytes), Some(loaded.meta))
            });
            let file = File {
                now: before.clone(),
                before,
                meta,
            };
            self.files.insert(path.to_owned(), file);
        }
        Ok(self
            .files
            .get_mut(path)
            .expect("it was put there when it was missing"))
    }

    fn add(&mut self, path: PathBuf, content: Vec<u8>, seen: Option<&Seen>) -> Result<(), OpError> {
        self.file(&path, seen)?.now = Some(content);
        Ok(())
    }

    fn delete(&mut self, path: PathBuf) -> Result<(), OpError> {
        let file = self.file(&path, None)?;
        if file.now.take().is_none() {
            return Err(unreadable(&path, "no such file"));
        }
        Ok(())
    }

    fn update(
        &mut self,
        path: PathBuf,
        moved_to: Option<PathBuf>,
        chunks: &[Chunk],
    ) -> Result<(), OpError> {
        let file = self.file(&path, None)?;
        let Some(now) = &file.now else {
            return Err(unreadable(&path, "no such file"));
        };
        let after = updated(&path, now, chunks)?;
        let moved_to = moved_to.filter(|to| *to != path);
        let Some(to) = moved_to else {
            file.now = Some(after);
            return Ok(());
        };
        file.now = None;
        let meta = file.meta.clone();
        let target = self.file(&to, None)?;
        if target.now.is_some() {
            return Err(PatchError::Occupied { path: to }.into());
        }
        target.now = Some(after);
        if target.meta.is_none() {
            target.meta = meta;
        }
        self.moves.push((path, to));
        Ok(())
    }

    fn into_plan(mut self) -> Plan {
        let mut steps = Vec::new();
        for (path, to) in std::mem::take(&mut self.moves) {
            let is_move = self.files.get(&path).is_some_and(|file| file.now.is_none())
                && self
                    .files
                    .get(&to)
                    .is_some_and(|file| file.before.is_none() && file.now.is_some());
            // Anything less plain than one file under a new name is told as what it is: a removal and a new file.
            if !is_move {
                continue;
            }
            let (Some(source), Some(target)) = (self.files.remove(&path), self.files.remove(&to))
            else {
                continue;
            };
            steps.push(Step {
                path,
                moved_to: Some(to),
                before: source.before,
                after: target.now,
                meta: source.meta,
            });
        }
        let rest = self
            .files
            .into_iter()
            .filter(|(_, file)| file.before.is_some() || file.now.is_some())
            .map(|(path, file)| Step {
                path,
                moved_to: None,
                before: file.before,
                after: file.now,
                meta: file.meta,
            });
        steps.extend(rest);
        // A file that was only looked at, or put back as it was, is no change.
        steps.retain(|step| step.moved_to.is_some() || step.before != step.after);
        steps.sort_by(|a, b| a.path.cmp(&b.path));
        Plan { steps }
    }
}

fn updated(path: &Path, now: &[u8], chunks: &[Chunk]) -> Result<Vec<u8>, OpError> {
    if chunks.is_empty() {
        return Ok(now.to_vec());
    }
    let file = TextFile::parse(now)
        .ok_or_else(|| unreadable(path, &format!("it is binary ({})", kind_of(now))))?;
    let path = path.to_owned();
    let body = apply(&file, chunks).map_err(|misfit| match misfit {
        Misfit::Context { context, hint } => PatchError::Context {
            path: path.clone(),
            context,
            hint,
        },
        Misfit::Lines { lines, hint } => PatchError::Lines {
            path: path.clone(),
            lines,
            hint,
        },
        Misfit::Encoding => PatchError::Encoding { path: path.clone() },
    })?;
    file.bytes_with(&body)
        .ok_or_else(|| unreadable(&path, "it is UTF-16 with broken characters"))
}

fn unreadable(path: &Path, reason: &str) -> OpError {
    PatchError::Unreadable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
    .into()
}
