//! Read: a part of a text file, by lines.

use std::path::Path;

use interpreter_messages::tool::{Read, TextOutput};

use super::error::OpError;
use super::load::{Loaded, absolute, hash, load};
use super::text::{TextFile, kind_of};
use super::{MAX_OUTPUT, load};

/// Lines of one answer, by default and at the most.
pub(crate) const MAX_LINES: u64 = 2_000;
/// Characters of one line at the most; the rest is left out and counted.
pub(crate) const MAX_LINE_CHARS: usize = 2_000;

/// Reads lines of a file. Also gives the file as it was loaded, for the stale-file guard.
pub(crate) fn read(cwd: &Path, order: &Read) -> Result<(TextOutput, Loaded), OpError> {
    let path = absolute(cwd, &order.path)?;
    let loaded = load(&path)?;
    let file = text_of(&path, &loaded)?;
    let text = file.text();
    let first = order.offset.unwrap_or(1).max(1);
    let limit = order.limit.unwrap_or(MAX_LINES).min(MAX_LINES);
    let mut out = Lines::default();
    let mut total = 0;
    for line in text.split_inclusive('\n') {
        total += 1;
        if total >= first && total - first < limit {
            out.push(line);
        }
    }
    let output = TextOutput {
        path,
        hash: hash(&loaded.bytes),
        text: out.text,
        first_line: first,
        total_lines: total,
        long_lines: out.long,
        lossy: file.lossy(),
    };
    Ok((output, loaded))
}

/// The text of a loaded file, or the error that says what it is instead.
pub(crate) fn text_of(path: &Path, loaded: &load::Loaded) -> Result<TextFile, OpError> {
    TextFile::parse(&loaded.bytes).ok_or_else(|| {
        let kind = kind_of(&loaded.bytes);
        OpError::Binary {
            path: path.to_owned(),
            kind,
            size: loaded.bytes.len() as u64,
            hint: if kind.ends_with("image") {
                ": view it as an image"
            } else {
                ": use a command that knows the format"
            },
        }
    })
}

#[derive(Default)]
struct Lines {
    text: String,
    long: u64,
    full: bool,
}

impl Lines {
    /// Adds one line, its end included. Once a line does not fit any more nothing is added, so the text has no holes.
    fn push(&mut self, line: &str) {
        if self.full {
            return;
        }
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) => (body.strip_suffix('\r').unwrap_or(body), "\n"),
            None => (line, ""),
        };
        let cut = body.char_indices().nth(MAX_LINE_CHARS).map(|(at, _)| at);
        let kept = &body[..cut.unwrap_or(body.len())];
        if !self.text.is_empty() && self.text.len() + kept.len() > MAX_OUTPUT {
            self.full = true;
            return;
        }
        self.text.push_str(kept);
        if let Some(cut) = cut {
            self.long += 1;
            let more = body[cut..].chars().count();
            self.text.push_str(&format!("… [{more} more characters]"));
        }
        self.text.push_str(end);
    }
}
