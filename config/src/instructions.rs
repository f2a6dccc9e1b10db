//! AGENTS.md and its kin: which files speak for a directory, and how much of them fits.
//!
//! One file from our home (`AGENTS.override.md` before `AGENTS.md`, the first that is not empty), then the first existing
//! one per directory from the project's root down to the working directory. The budget is for the project's files; when
//! they exceed it, the nearest file survives: it is the most specific. (The original fills it from the root.) Reads files
//! only.

use std::io::Read;
use std::path::{Path, PathBuf};

use interpreter_messages::journal::Instruction;

use crate::trust;

/// Where to look, and how much to take.
#[derive(Debug, Clone)]
pub struct DiscoverOptions {
    /// The working directory.
    pub cwd: PathBuf,
    /// `INTERPRETER_HOME`
    pub home: PathBuf,
    /// Bytes of all the project's files together (`project_doc_max_bytes`); 0 reads none of them.
    pub max_bytes: usize,
    /// Other names, tried in order where there is no AGENTS.md.
    pub fallback_names: Vec<String>,
    /// What marks the project's root.
    pub root_markers: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Outermost first; never empty texts.
    pub files: Vec<Instruction>,
    /// Files that could not be read, were cut, or left out.
    pub warnings: Vec<String>,
}

/// The names, in order of preference.
const NAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];
/// Longest file of the home directory, in bytes: more is a mistake, not an instruction (guessed; the original has no limit).
const GLOBAL_MAX_BYTES: usize = 1024 * 1024;
/// A UTF-8 character has at most four bytes: one that begins before a limit may end three bytes behind it.
const CHARACTER_REST: usize = 3;

/// Finds and reads the instruction files.
#[must_use]
pub fn discover(options: &DiscoverOptions) -> Discovered {
    let mut found = Discovered::default();
    project(options, &mut found);
    found
        .files
        .extend(global(&options.home, &mut found.warnings));
    found.files.reverse();
    found
}

/// The project's files, nearest first, so that the budget is spent where it matters most.
fn project(options: &DiscoverOptions, found: &mut Discovered) {
    if options.max_bytes == 0 {
        return;
    }
    let root = trust::project_root(&options.cwd, &options.root_markers)
        .unwrap_or_else(|| options.cwd.clone());
    let folders = options
        .cwd
        .ancestors()
        .take_while(|folder| folder.starts_with(&root))
        // Its file is the global one.
        .filter(|folder| *folder != options.home);
    let fallback = options.fallback_names.iter().map(String::as_str);
    let names: Vec<&str> = NAMES.into_iter().chain(fallback).collect();
    let mut left = options.max_bytes;
    for folder in folders {
        let paths = names.iter().map(|name| folder.join(name));
        let Some(path) = paths.into_iter().find(|path| is_file(path)) else {
            continue;
        };
        let Some(file) = read(&path, left, &mut found.warnings) else {
            continue;
        };
        if file.cut {
            let budget = options.max_bytes;
            let path = path.display();
            found.warnings.push(match file.text.len() {
                0 => format!("{path} is left out: the budget of {budget} bytes is used up"),
                kept => {
                    format!("{path}: only the first {kept} bytes fit the budget of {budget} bytes")
                }
            });
        }
        left -= file.text.len();
        if !file.text.trim().is_empty() {
            found.files.push(file);
        }
    }
}

/// The first file of the home directory that says something.
fn global(home: &Path, warnings: &mut Vec<String>) -> Option<Instruction> {
    for path in NAMES.map(|name| home.join(name)) {
        if !is_file(&path) {
            continue;
        }
        let Some(file) = read(&path, GLOBAL_MAX_BYTES, warnings) else {
            continue;
        };
        if file.cut {
            warnings.push(format!(
                "{}: only the first {} bytes are used",
                path.display(),
                file.text.len()
            ));
        }
        if !file.text.trim().is_empty() {
            return Some(file);
        }
    }
    None
}

/// Only regular files, or links to them: a fifo would block, a directory is something else.
fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file())
}

/// The beginning of a file, never more than `limit` bytes of text; a file that cannot be read is a warning.
fn read(path: &Path, limit: usize, warnings: &mut Vec<String>) -> Option<Instruction> {
    let (bytes, more) = match read_some(path, limit) {
        Ok(read) => read,
        Err(error) => {
            warnings.push(format!("{} cannot be read: {error}", path.display()));
            return None;
        }
    };
    let invalid = std::str::from_utf8(&bytes)
        // At the end of what was read, a character may just not be complete.
        .is_err_and(|error| error.error_len().is_some() || !more);
    if invalid && limit > 0 {
        warnings.push(format!(
            "{} is not valid UTF-8; other bytes are shown as \u{fffd}",
            path.display()
        ));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let kept = cut(text, limit);
    Some(Instruction {
        path: path.to_path_buf(),
        text: kept.to_owned(),
        cut: more || kept.len() < text.len(),
    })
}

/// The first bytes of a file, enough to cut them behind a character, and whether there are more.
fn read_some(path: &Path, limit: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let enough = limit.saturating_add(CHARACTER_REST + '\u{feff}'.len_utf8());
    let mut bytes = Vec::new();
    let probe = u64::try_from(enough).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path)?
        .take(probe)
        .read_to_end(&mut bytes)?;
    let more = bytes.len() > enough;
    bytes.truncate(enough);
    Ok((bytes, more))
}

/// The longest beginning that fits and ends on a character.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
