//! AGENTS.md and its kin: which files speak for a directory, and how much of them fits.
//!
//! Facts of the original: one file from our home (`AGENTS.override.md` before `AGENTS.md`), then one per directory from
//! the project's root down to the working directory. When they exceed the budget, the nearest file survives: it is the
//! most specific.

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
    /// Bytes of all files together (`project_doc_max_bytes`); 0 reads none.
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

/// Finds and reads the instruction files.
#[must_use]
pub fn discover(options: &DiscoverOptions) -> Discovered {
    let mut found = Discovered::default();
    if options.max_bytes == 0 {
        return found;
    }
    let root = trust::project_root(&options.cwd, &options.root_markers)
        .unwrap_or_else(|| options.cwd.clone());
    let mut folders: Vec<&Path> = options
        .cwd
        .ancestors()
        .take_while(|folder| folder.starts_with(&root))
        .collect();
    folders.push(&options.home);
    let mut left = options.max_bytes;
    // Nearest first, so that the budget is spent where it matters most; put in reading order below.
    for folder in folders {
        let fallback: &[String] = if folder == options.home {
            &[]
        } else {
            &options.fallback_names
        };
        let Some((path, text)) = read_first(folder, fallback, &mut found.warnings) else {
            continue;
        };
        if left == 0 {
            found.warnings.push(format!(
                "{} is left out: the budget of {} bytes is used up",
                path.display(),
                options.max_bytes
            ));
            continue;
        }
        let kept = cut(&text, left);
        let was_cut = kept.len() < text.len();
        if was_cut {
            let (kept, all) = (kept.len(), text.len());
            found.warnings.push(format!(
                "{}: only the first {kept} of {all} bytes fit the budget of {} bytes",
                path.display(),
                options.max_bytes
            ));
        }
        left -= kept.len();
        found.files.push(Instruction {
            path,
            text: kept.to_owned(),
            cut: was_cut,
        });
    }
    found.files.reverse();
    found
}

/// The first of the names that is a readable, non-empty file.
fn read_first(
    folder: &Path,
    fallback: &[String],
    warnings: &mut Vec<String>,
) -> Option<(PathBuf, String)> {
    let names = ["AGENTS.override.md", "AGENTS.md"]
        .into_iter()
        .chain(fallback.iter().map(String::as_str));
    for name in names {
        let path = folder.join(name);
        // Only regular files: a fifo would block, a directory is something else.
        if !path.metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        match std::fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                if std::str::from_utf8(&bytes).is_err() {
                    warnings.push(format!(
                        "{} is not valid UTF-8; other bytes are shown as \u{fffd}",
                        path.display()
                    ));
                }
                if !text.trim().is_empty() {
                    return Some((path, text.to_owned()));
                }
            }
            Err(error) => warnings.push(format!("{} cannot be read: {error}", path.display())),
        }
    }
    None
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
