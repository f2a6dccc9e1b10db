//! Edit: replaces text in a file. Only what differs between old and new text is touched, byte for byte.
//!
//! Old text is matched with line ends made equal (`\r\n` as `\n`), since the model sees text with `\n` only. Nothing
//! else is matched loosely: when old text does not occur, the nearest thing that does is named in the error.

use std::path::Path;

use interpreter_messages::tool::{Edit, Replacement};
use memchr::memmem;

use super::change::{Plan, Seen, Step, require_fresh};
use super::error::OpError;
use super::fuzzy;
use super::load::{absolute, load, load_if_there};
use super::read::text_of;
use super::text::{Encoding, TextFile, to_crlf};
use super::write::in_the_style_of;

/// Line numbers named in an "occurs N times" error at the most.
const LINES_NAMED: usize = 10;

/// Why a replacement cannot be made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error("no replacements were given")]
    Nothing,
    #[error("{which}old and new text are the same")]
    Same { which: String },
    #[error(
        "{which}the old text is empty; that creates a file or fills an empty one, but this file has text: give the text to replace"
    )]
    EmptyOld { which: String },
    #[error("{which}the old text does not occur{hint}")]
    NotFound { which: String, hint: String },
    #[error(
        "{which}the old text occurs {count} times (lines {lines}): add lines around it until it is unique, or replace all"
    )]
    Ambiguous {
        which: String,
        count: usize,
        lines: String,
    },
    #[error(
        "{which}the file is not UTF-8 and the new text has characters beyond ASCII: use a command that knows its encoding"
    )]
    Foreign { which: String },
    #[error(
        "the file is UTF-16 with broken characters, which an edit would lose: convert it with a command first"
    )]
    BrokenUtf16,
}

/// Plans an edit.
pub(crate) fn plan(cwd: &Path, order: &Edit, seen: Option<&Seen>) -> Result<Plan, OpError> {
    let path = absolute(cwd, &order.path)?;
    let fail = |source| OpError::Edit {
        path: path.clone(),
        source,
    };
    let creates = order
        .replacements
        .first()
        .is_some_and(|first| first.old.is_empty());
    let loaded = if creates {
        load_if_there(&path)?
    } else {
        Some(load(&path)?)
    };
    require_fresh(&path, loaded.as_ref(), seen)?;
    let mut rest = order.replacements.as_slice();
    let mut file = match &loaded {
        Some(loaded) => text_of(&path, loaded)?,
        None => TextFile {
            encoding: Encoding::Utf8,
            bom: false,
            body: Vec::new(),
        },
    };
    if file.encoding == Encoding::BrokenUtf16 {
        return Err(fail(EditError::BrokenUtf16));
    }
    if creates && file.body.is_empty() {
        // Creates it, or fills an empty file; further replacements work on that text.
        let bytes = in_the_style_of(loaded.as_ref(), &rest[0].new);
        file = TextFile::parse(&bytes).unwrap_or(TextFile {
            body: bytes,
            ..file
        });
        rest = &rest[1..];
    }
    file.body = replace_all(&file, rest, order.replacements.len(), creates).map_err(fail)?;
    let bytes = file
        .bytes_with(&file.body)
        .ok_or_else(|| fail(EditError::BrokenUtf16))?;
    Ok(Plan::one(Step::to(path, loaded, bytes)))
}

fn replace_all(
    file: &TextFile,
    replacements: &[Replacement],
    given: usize,
    created: bool,
) -> Result<Vec<u8>, EditError> {
    if replacements.is_empty() && !created {
        return Err(EditError::Nothing);
    }
    let crlf = file.crlf();
    let ascii_only = file.encoding == Encoding::Unknown;
    let mut body = file.body.clone();
    for (n, replacement) in replacements.iter().enumerate() {
        let number = given - replacements.len() + n + 1;
        let which = if given > 1 {
            format!("replacement {number} of {given}: ")
        } else {
            String::new()
        };
        body = replace(&body, replacement, crlf, ascii_only).map_err(|error| error.named(which))?;
    }
    Ok(body)
}

impl EditError {
    fn named(self, name: String) -> Self {
        match self {
            Self::Same { .. } => Self::Same { which: name },
            Self::EmptyOld { .. } => Self::EmptyOld { which: name },
            Self::NotFound { hint, .. } => Self::NotFound { which: name, hint },
            Self::Ambiguous { count, lines, .. } => Self::Ambiguous {
                which: name,
                count,
                lines,
            },
            Self::Foreign { .. } => Self::Foreign { which: name },
            other => other,
        }
    }
}

/// Makes one replacement in a text.
///
/// `crlf`: the line ends that new text gets; `ascii_only`: new text beyond ASCII cannot be encoded.
pub(crate) fn replace(
    body: &[u8],
    replacement: &Replacement,
    crlf: bool,
    ascii_only: bool,
) -> Result<Vec<u8>, EditError> {
    let which = String::new();
    let Replacement { old, new, all } = replacement;
    if old.is_empty() {
        return Err(EditError::EmptyOld { which });
    }
    if old == new {
        return Err(EditError::Same { which });
    }
    let view = View::of(body);
    let old_lf = old.replace("\r\n", "\n");
    let new_lf = if crlf || old_lf.len() != old.len() {
        new.replace("\r\n", "\n")
    } else {
        new.clone()
    };
    if old_lf == new_lf {
        return Err(EditError::Same { which });
    }
    let found: Vec<usize> = memmem::find_iter(&view.text, old_lf.as_bytes()).collect();
    if found.is_empty() {
        let hint = fuzzy::hint(&String::from_utf8_lossy(&view.text), &old_lf, ascii_only);
        return Err(EditError::NotFound { which, hint });
    }
    if found.len() > 1 && !all {
        return Err(EditError::Ambiguous {
            which,
            count: found.len(),
            lines: line_numbers(&view.text, &found),
        });
    }
    let head = common_prefix(&old_lf, &new_lf);
    let tail = common_suffix(&old_lf[head..], &new_lf[head..]);
    let inserted = &new_lf[head..new_lf.len() - tail];
    if ascii_only && !inserted.is_ascii() {
        return Err(EditError::Foreign { which });
    }
    let inserted = if crlf {
        to_crlf(inserted)
    } else {
        inserted.to_owned()
    };
    let mut out = Vec::with_capacity(body.len() + inserted.len());
    let mut kept = 0;
    for start in found {
        out.extend_from_slice(&body[kept..view.original(start + head)]);
        out.extend_from_slice(inserted.as_bytes());
        kept = view.original(start + old_lf.len() - tail);
    }
    out.extend_from_slice(&body[kept..]);
    Ok(out)
}

/// A text with `\n` line ends, and where its bytes are in the original.
struct View {
    text: Vec<u8>,
    /// Positions in `text` of each `\n` that had a `\r` before it; ascending.
    stripped: Vec<usize>,
}

impl View {
    fn of(body: &[u8]) -> Self {
        let mut text = Vec::with_capacity(body.len());
        let mut stripped = Vec::new();
        let mut kept = 0;
        for at in memmem::find_iter(body, b"\r\n") {
            text.extend_from_slice(&body[kept..at]);
            stripped.push(text.len());
            kept = at + 1;
        }
        text.extend_from_slice(&body[kept..]);
        Self { text, stripped }
    }

    /// The original position of a boundary; one before a line end lies before its `\r`.
    fn original(&self, at: usize) -> usize {
        at + self.stripped.partition_point(|newline| *newline < at)
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars()
        .zip(b.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum()
}

fn common_suffix(a: &str, b: &str) -> usize {
    a.chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum()
}

fn line_numbers(text: &[u8], at: &[usize]) -> String {
    let mut numbers: Vec<String> = at
        .iter()
        .take(LINES_NAMED)
        .map(|at| (memchr::memchr_iter(b'\n', &text[..*at]).count() + 1).to_string())
        .collect();
    if at.len() > LINES_NAMED {
        numbers.push("…".to_owned());
    }
    numbers.join(", ")
}
