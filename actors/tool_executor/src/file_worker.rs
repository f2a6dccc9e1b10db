//! The file worker's work: one request in, one reply out. The binary runs this inside a sandboxed process.

use std::path::PathBuf;

use interpreter_messages::tool::{FileChange, Operation, ToolOutput};
use interpreter_messages::worker::{FileOrder, FileReply, FileRequest};

use crate::ops::change::{Plan, Seen};
use crate::ops::error::OpError;
use crate::ops::load::{absolute, hash, load_if_there};
use crate::ops::{edit, glob, grep, list, patch, read, view_image, write};

/// Carries out a file request with the rights of this process.
///
/// Blocking. It touches the files that the request names and, while it writes, a temporary file beside each. It never
/// panics on any content of a file or a request.
#[must_use]
pub fn serve(request: FileRequest) -> FileReply {
    let cwd = &request.cwd;
    let result = match &request.order {
        FileOrder::Look { operation } => look(cwd, operation),
        FileOrder::Prepare { operation, seen } => {
            plan(cwd, operation, Some(seen)).map(|plan| FileReply::Prepared {
                changes: plan.changes(),
            })
        }
        FileOrder::Apply { operation, changes } => apply(cwd, operation, changes),
        FileOrder::Hash { paths } => hashes(cwd, paths),
    };
    result.unwrap_or_else(|error| FileReply::Failed {
        denied: error.denied(),
        error: error.to_string(),
    })
}

fn look(cwd: &std::path::Path, operation: &Operation) -> Result<FileReply, OpError> {
    let mut seen = Vec::new();
    let output = match operation {
        Operation::Read(order) => {
            let (output, loaded) = read::read(cwd, order)?;
            seen.push((output.path.clone(), Some(output.hash.clone())));
            if loaded.real != output.path {
                seen.push((loaded.real, Some(output.hash.clone())));
            }
            ToolOutput::Text(output)
        }
        Operation::List(order) => list::list(cwd, order)?,
        Operation::Glob(order) => glob::glob(cwd, order)?,
        Operation::Grep(order) => grep::grep(cwd, order)?,
        Operation::ViewImage(order) => view_image::view_image(cwd, order)?,
        other => return Err(not_here(other)),
    };
    Ok(FileReply::Done { output, seen })
}

fn plan(
    cwd: &std::path::Path,
    operation: &Operation,
    seen: Option<&Seen>,
) -> Result<Plan, OpError> {
    match operation {
        Operation::Write(order) => write::plan(cwd, order, seen),
        Operation::Edit(order) => edit::plan(cwd, order, seen),
        Operation::Patch(order) => patch::plan(cwd, order, seen),
        other => Err(not_here(other)),
    }
}

fn apply(
    cwd: &std::path::Path,
    operation: &Operation,
    prepared: &[FileChange],
) -> Result<FileReply, OpError> {
    let changed = |path: PathBuf| OpError::ChangedMeanwhile { path };
    // That an edit or a patch does not fit any more means the same: what it was prepared for is gone.
    let plan = plan(cwd, operation, None).map_err(|error| match (&error, prepared) {
        (OpError::Edit { .. } | OpError::Patch(_) | OpError::Missing { .. }, [first, ..]) => {
            changed(first.path.clone())
        }
        _ => error,
    })?;
    if let Some(path) = plan.differs_from(prepared) {
        return Err(changed(path));
    }
    plan.carry_out()?;
    let seen = seen_after(prepared);
    Ok(FileReply::Done {
        output: ToolOutput::Changed {
            changes: prepared.to_vec(),
        },
        seen,
    })
}

/// The files of a change as they are after it, under each of their names.
fn seen_after(changes: &[FileChange]) -> Vec<(PathBuf, Option<String>)> {
    let mut seen = Vec::new();
    for change in changes {
        let at = change.moved_to.as_ref().unwrap_or(&change.path);
        if at != &change.path {
            seen.push((change.path.clone(), None));
        }
        if let Ok(real) = std::fs::canonicalize(at)
            && real != *at
        {
            seen.push((real, change.after.clone()));
        }
        seen.push((at.clone(), change.after.clone()));
    }
    seen
}

fn hashes(cwd: &std::path::Path, paths: &[PathBuf]) -> Result<FileReply, OpError> {
    let hashes = paths
        .iter()
        .map(|path| {
            let path = absolute(cwd, path)?;
            Ok(load_if_there(&path)?.map(|loaded| hash(&loaded.bytes)))
        })
        .collect::<Result<_, OpError>>()?;
    Ok(FileReply::Hashes { hashes })
}

fn not_here(operation: &Operation) -> OpError {
    OpError::NotHere {
        operation: operation.name(),
    }
}
