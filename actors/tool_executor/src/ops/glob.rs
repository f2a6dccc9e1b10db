//! Glob: files by name, newest first.

use std::cmp::Reverse;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use interpreter_messages::tool::{Glob, ToolOutput};

use super::error::OpError;
use super::walk::{self, Deadline, directory, is_file, names_hidden, shown};

/// Paths by default, and at the most.
const LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 2_000;

/// Finds files. Paths are relative to the searched directory, or absolute when the pattern is.
pub(crate) fn glob(cwd: &Path, order: &Glob) -> Result<ToolOutput, OpError> {
    let (lead, pattern) = split(&order.pattern);
    let searched = directory(cwd, order.path.as_deref())?;
    let matcher = walk::glob(&pattern)?;
    let base = match &lead {
        Some(lead) => directory(&searched, Some(lead))?,
        None => searched,
    };
    let limit = usize::try_from(order.limit.unwrap_or(LIMIT).min(MAX_LIMIT)).unwrap_or(usize::MAX);
    let mut deadline = Deadline::start();
    let mut in_time = true;
    let mut found: Vec<(Reverse<SystemTime>, String)> = Vec::new();
    for entry in walk::walk(&base, names_hidden(&pattern)).build().flatten() {
        if !deadline.has_time() {
            in_time = false;
            break;
        }
        let name = shown(&base, entry.path());
        let is_link = entry.path_is_symlink() && entry.depth() > 0;
        if (is_file(&entry) || is_link) && matcher.is_match(&name) {
            let time = entry.metadata().ok().and_then(|meta| meta.modified().ok());
            let name = lead
                .as_ref()
                .map_or(name.clone(), |lead| lead.join(&name).display().to_string());
            found.push((Reverse(time.unwrap_or(SystemTime::UNIX_EPOCH)), name));
        }
    }
    if found.is_empty() && !in_time {
        return Err(deadline.error());
    }
    found.sort();
    let total = found.len();
    let lines: Vec<String> = found
        .into_iter()
        .take(limit)
        .map(|(_, name)| name)
        .collect();
    Ok(ToolOutput::Lines {
        left_out: (total - lines.len()) as u64 + u64::from(!in_time),
        lines,
    })
}

/// Splits the literal directories off a pattern that is absolute or goes up: a walk must begin there.
fn split(pattern: &str) -> (Option<PathBuf>, String) {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if !pattern.starts_with('/') && !pattern.starts_with("../") {
        return (None, pattern.to_owned());
    }
    let is_literal = |part: &str| !part.contains(['*', '?', '[', '{', '\\']);
    let parts: Vec<&str> = pattern.split('/').collect();
    let literal = parts[..parts.len() - 1]
        .iter()
        .take_while(|part| is_literal(part))
        .count();
    let lead: PathBuf = Path::new(&format!("{}/", parts[..literal].join("/")))
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect();
    (Some(lead), parts[literal..].join("/"))
}
