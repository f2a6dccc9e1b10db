//! Finds a patch's lines in a file and computes the file after it. Pure.
//!
//! Old lines are searched from the place of the chunk before on: exactly, then without trailing white space, then
//! without surrounding white space, then with typographic characters as plain ones. Lines that stay keep the file's
//! own bytes, however loosely they were matched; lines that come are written exactly, with the file's line ends.

use super::fuzzy::plain;
use super::patch_grammar::{Chunk, ChunkLine};
use super::text::{Encoding, TextFile};

/// Why a chunk does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// An `@@` line was not found.
    Context {
        /// Which.
        context: String,
        /// What may help.
        hint: String,
    },
    /// The lines were not found.
    Lines {
        /// Which.
        lines: String,
        /// What may help.
        hint: String,
    },
    /// Text beyond ASCII cannot be added to a file that is not UTF-8.
    Encoding,
}

/// The text of `file` with the chunks applied.
pub(crate) fn apply(file: &TextFile, chunks: &[Chunk]) -> Result<Vec<u8>, Misfit> {
    let lines = Lines::of(&file.body);
    let end = if file.crlf() { "\r\n" } else { "\n" };
    let mut edits = Vec::new();
    let mut from = 0;
    for chunk in chunks {
        let (at, lead) = place(&lines, chunk, from)?;
        let mut line = at;
        for part in &chunk.lines[lead.skipped_first..chunk.lines.len() - lead.skipped_last] {
            match part {
                ChunkLine::Keep(_) => line += 1,
                ChunkLine::Remove(_) => {
                    edits.push((line, Edit::Remove));
                    line += 1;
                }
                ChunkLine::Insert(text) => {
                    if file.encoding == Encoding::Unknown && !text.is_ascii() {
                        return Err(Misfit::Encoding);
                    }
                    edits.push((line, Edit::Insert(text)));
                }
            }
        }
        // Lines that are added at the end of the file say nothing of where the next chunk is.
        let only_new = chunk
            .lines
            .iter()
            .all(|line| matches!(line, ChunkLine::Insert(_)));
        if !only_new || !chunk.contexts.is_empty() {
            from = line;
        }
    }
    edits.sort_by_key(|(place, _)| *place);
    Ok(lines.edited(&edits, end))
}

/// Parts of a chunk that the file does not have and that are left out of it.
#[derive(Default)]
struct Lead {
    skipped_first: usize,
    skipped_last: usize,
}

enum Edit<'a> {
    /// The line at this place goes.
    Remove,
    /// A line comes before the line at this place.
    Insert(&'a str),
}

/// Where a chunk's lines begin.
fn place(lines: &Lines<'_>, chunk: &Chunk, from: usize) -> Result<(usize, Lead), Misfit> {
    let mut from = from;
    for context in &chunk.contexts {
        let found = lines.find(&[context.as_str()], from, false);
        from = found.ok_or_else(|| Misfit::Context {
            context: context.clone(),
            hint: earlier(lines, &[context.as_str()]),
        })? + 1;
    }
    let old: Vec<&str> = chunk
        .lines
        .iter()
        .filter_map(|line| match line {
            ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text.as_str()),
            ChunkLine::Insert(_) => None,
        })
        .collect();
    if old.is_empty() {
        // Only new lines: after the context where there is one, else at the end of the file.
        let at = if chunk.contexts.is_empty() || chunk.end_of_file {
            lines.len()
        } else {
            from
        };
        return Ok((at, Lead::default()));
    }
    if let Some(at) = lines.find(&old, from, chunk.end_of_file) {
        return Ok((at, Lead::default()));
    }
    without_blank_ends(lines, chunk, &old, from).ok_or_else(|| Misfit::Lines {
        lines: old.join("\n"),
        hint: earlier(lines, &old),
    })
}

/// A blank line at an end of a chunk is often no context but layout of the patch: tried without.
fn without_blank_ends(
    lines: &Lines<'_>,
    chunk: &Chunk,
    old: &[&str],
    from: usize,
) -> Option<(usize, Lead)> {
    let blank =
        |line: Option<&ChunkLine>| matches!(line, Some(ChunkLine::Keep(text)) if text.is_empty());
    let first = usize::from(blank(chunk.lines.first()));
    let trailing = chunk
        .lines
        .iter()
        .rev()
        .take_while(|line| blank(Some(line)))
        .count();
    for skipped_last in 0..=trailing {
        for skipped_first in 0..=first {
            if skipped_first + skipped_last >= old.len() || skipped_first + skipped_last == 0 {
                continue;
            }
            let rest = &old[skipped_first..old.len() - skipped_last];
            if let Some(at) = lines.find(rest, from, chunk.end_of_file) {
                let lead = Lead {
                    skipped_first,
                    skipped_last,
                };
                return Some((at, lead));
            }
        }
    }
    None
}

fn earlier(lines: &Lines<'_>, old: &[&str]) -> String {
    if let Some(at) = lines.find(old, 0, false) {
        return format!(
            "\n(they are at line {}, before the chunk above: put the chunks in file order)",
            at + 1
        );
    }
    let Some(first) = old.iter().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    match lines.find(&[first], 0, false) {
        Some(at) if old.len() > 1 => format!(
            "\n(the first of them is at line {}, but what follows there differs: read the file again)",
            at + 1
        ),
        _ => String::new(),
    }
}

/// A text as lines that know their ends.
struct Lines<'a> {
    /// Text and end of each line.
    lines: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Lines<'a> {
    fn of(body: &'a [u8]) -> Self {
        let lines = body
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| {
                let text = line
                    .strip_suffix(b"\r\n")
                    .or_else(|| line.strip_suffix(b"\n"))
                    .unwrap_or(line);
                line.split_at(text.len())
            })
            .collect();
        Self { lines }
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    /// The first place at or after `from` where `wanted` stands, by the strictest comparison that finds one.
    fn find(&self, wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
        let last = self.len().checked_sub(wanted.len())?;
        let same: [fn(&str, &str) -> bool; 4] = [
            |a, b| a == b,
            |a, b| a.trim_end() == b.trim_end(),
            |a, b| a.trim() == b.trim(),
            |a, b| plain(a).trim() == plain(b).trim(),
        ];
        let fits = |at: usize, same: fn(&str, &str) -> bool| {
            self.lines[at..at + wanted.len()]
                .iter()
                .zip(wanted)
                .all(|((text, _), wanted)| same(&String::from_utf8_lossy(text), wanted))
        };
        if at_end && last >= from && same.into_iter().any(|same| fits(last, same)) {
            return Some(last);
        }
        same.into_iter()
            .find_map(|same| (from..=last).find(|at| fits(*at, same)))
    }

    /// The text with edits applied; they are in ascending order of place.
    fn edited(&self, edits: &[(usize, Edit<'_>)], end: &str) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        let mut last_is_new = false;
        let mut edits = edits.iter().peekable();
        for at in 0..=self.len() {
            let mut removed = false;
            while let Some((_, edit)) = edits.next_if(|(place, _)| *place == at) {
                match edit {
                    Edit::Remove => removed = true,
                    Edit::Insert(text) => {
                        close(&mut out, end);
                        out.extend_from_slice(text.as_bytes());
                        out.extend_from_slice(end.as_bytes());
                        last_is_new = true;
                    }
                }
            }
            if let (Some((text, own_end)), false) = (self.lines.get(at), removed) {
                close(&mut out, end);
                out.extend_from_slice(text);
                out.extend_from_slice(own_end);
                last_is_new = false;
            }
        }
        // A file without an end of its last line stays one when its last line is a new one.
        let was_open = self.lines.last().is_some_and(|(_, end)| end.is_empty());
        if was_open && last_is_new {
            out.truncate(out.len() - end.len());
        }
        out
    }
}

/// Ends a last line that has no end yet, as another line comes after it.
fn close(out: &mut Vec<u8>, end: &str) {
    if !out.is_empty() && out.last() != Some(&b'\n') {
        out.extend_from_slice(end.as_bytes());
    }
}
