//! List: what is in a directory.

use std::path::Path;

use interpreter_messages::tool::{List, ToolOutput};

use super::error::OpError;
use super::walk::{Deadline, directory, shown, walk};

/// Entries by default, and at the most.
const LIMIT: u64 = 500;
const MAX_LIMIT: u64 = 5_000;
/// Levels at the most.
const MAX_DEPTH: u32 = 32;

/// Lists a directory. The first level is shown whole; below it, what ignore files name is left out and hidden
/// directories are not entered.
pub(crate) fn list(cwd: &Path, order: &List) -> Result<ToolOutput, OpError> {
    let base = directory(cwd, order.path.as_deref())?;
    let limit = order.limit.unwrap_or(LIMIT).min(MAX_LIMIT);
    let depth = order.depth.unwrap_or(1).clamp(1, MAX_DEPTH);
    let mut lines = first_level(&base)?;
    let mut in_time = true;
    if depth > 1 {
        let mut deadline = Deadline::start();
        let below = walk(&base, false).max_depth(Some(depth as usize)).build();
        for entry in below.flatten() {
            if !deadline.has_time() {
                in_time = false;
                break;
            }
            if entry.depth() < 2 {
                continue;
            }
            let kind = entry.file_type();
            let is_dir = kind.is_some_and(|kind| kind.is_dir());
            lines.push(line(&shown(&base, entry.path()), is_dir));
        }
    }
    lines.sort();
    let total = lines.len() as u64;
    lines.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(ToolOutput::Lines {
        left_out: total - lines.len() as u64 + u64::from(!in_time),
        lines,
    })
}

fn first_level(base: &Path) -> Result<Vec<String>, OpError> {
    let entries = std::fs::read_dir(base).map_err(|error| OpError::io("list", base, error))?;
    Ok(entries
        .flatten()
        .map(|entry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            line(&entry.file_name().to_string_lossy(), is_dir)
        })
        .collect())
}

fn line(name: &str, is_dir: bool) -> String {
    format!("{name}{}", if is_dir { "/" } else { "" })
}
