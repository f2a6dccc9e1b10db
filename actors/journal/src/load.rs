//! A file's bytes to records, with all that is wrong with the file. Pure.
//!
//! What is whole is loaded. Damage is named by line and reason, and stated as byte ranges that the store moves to a
//! side file; what stays is valid, line by line, without being written anew.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use interpreter_messages::Seq;
use interpreter_messages::journal::{BatchId, Entry, Record, SessionMeta, Writer};
use jiff::Timestamp;
use serde_json::Value;

use crate::foreign::Foreign;
use crate::format::{self, Encoder, Line, Place};

/// A longer line is damage: nothing that is written comes near it (an image of the largest accepted size is 28 MB).
pub(crate) const MAX_LINE: usize = 64 * 1024 * 1024;

/// Records and what is needed to append more.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub records: Vec<Arc<Record>>,
    /// Which records a batch has.
    pub batches: HashMap<BatchId, Range<usize>>,
    pub last: Last,
    pub encoder: Encoder,
}

/// Last batch numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Last {
    pub session: u64,
    pub approval: u64,
}

impl Last {
    pub(crate) fn of(&mut self, writer: Writer) -> &mut u64 {
        match writer {
            Writer::Session => &mut self.session,
            Writer::Approval => &mut self.approval,
        }
    }
}

/// Bytes that are taken out of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    pub range: Range<usize>,
    /// From 1.
    pub line: usize,
    pub why: Why,
}

/// Why bytes are taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// The last line has no end.
    Torn,
    /// The last batch was not written to its end; nobody was told that it was.
    Unfinished,
    /// The line cannot be read.
    Damaged(String),
    /// The record stands in the file already.
    Duplicate,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Torn => f.write_str("was not written to its end"),
            Self::Unfinished => {
                f.write_str("begins a group of records that was not written to its end")
            }
            Self::Damaged(error) => write!(f, "is damaged ({error})"),
            Self::Duplicate => f.write_str("repeats a record"),
        }
    }
}

/// A file, read.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub content: Content,
    /// In order, without overlaps.
    pub lost: Vec<Lost>,
    /// The last line is whole but for its line end.
    pub needs_newline: bool,
    /// Lines of a later version, or edited by hand.
    pub unknown: usize,
    /// Damage took the end of the last batch. What is left of it stays; a record must follow that says so, or the next
    /// reader would take it for a batch that was never finished.
    pub damaged_end: bool,
}

impl Parsed {
    /// The first record's facts, when it is there.
    pub(crate) fn meta(&self) -> Option<&SessionMeta> {
        self.content
            .records
            .iter()
            .find_map(|record| match &record.entry {
                Entry::Meta(meta) => Some(meta),
                _ => None,
            })
    }
}

/// Reads a file.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let mut reader = Reader::default();
    let mut start = 0;
    let mut number = 0;
    while start < bytes.len() {
        number += 1;
        let end = memchr::memchr(b'\n', &bytes[start..]).map(|at| start + at);
        let range = start..end.map_or(bytes.len(), |end| end + 1);
        let text = &bytes[start..end.unwrap_or(bytes.len())];
        reader.line(text, range.clone(), number, end.is_some());
        start = range.end;
    }
    reader.finish(bytes.len())
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    foreign: Foreign,
    at: Timestamp,
    batch: Option<OpenBatch>,
    /// A damaged line that ends properly came after the batch's last record.
    damage_after: bool,
    /// The record before was taken out; its mirror goes with it.
    dropped: bool,
}

/// The batch that is being read.
struct OpenBatch {
    /// Of its last record.
    place: Place,
    /// Offset of its first line.
    start: usize,
    /// Number of its first line.
    line: usize,
    /// Index of its first record.
    first: usize,
    /// `ordinal` of its first line.
    ordinal: u64,
}

impl Reader {
    fn line(&mut self, text: &[u8], range: Range<usize>, number: usize, ended: bool) {
        if text.iter().all(u8::is_ascii_whitespace) {
            if !ended && !text.is_empty() {
                self.lose(range, number, Why::Torn);
            }
            return;
        }
        if text.len() > MAX_LINE {
            self.damage_after = true;
            self.lose(range, number, Why::Damaged("too long".to_owned()));
            return;
        }
        match format::decode(text) {
            Err(_) if !ended => self.lose(range, number, Why::Torn),
            Err(error) => {
                self.damage_after = true;
                self.lose(range, number, Why::Damaged(error.to_string()));
            }
            Ok(line) => {
                self.parsed.needs_newline = !ended;
                self.decoded(line, range, number);
            }
        }
    }

    fn decoded(&mut self, line: Line, range: Range<usize>, number: usize) {
        match line {
            Line::Mirror if self.dropped => self.lose(range, number, Why::Duplicate),
            Line::Mirror => self.parsed.content.encoder.ordinal += 1,
            Line::Foreign { at, line } => {
                self.dropped = false;
                let encoder = &mut self.parsed.content.encoder;
                encoder.ordinal = format::ordinal(&line).unwrap_or(encoder.ordinal) + 1;
                if is_ours(&line) {
                    self.parsed.unknown += 1;
                    self.push(Entry::Foreign { line }, at);
                    return;
                }
                for entry in self.foreign.line(line, at) {
                    self.push(entry, at);
                }
            }
            Line::Record { at, entry, place } => self.record(*entry, at, place, range, number),
        }
    }

    fn record(
        &mut self,
        entry: Entry,
        at: Timestamp,
        place: Option<Place>,
        range: Range<usize>,
        number: usize,
    ) {
        for entry in self.foreign.finish() {
            self.push(entry, None);
        }
        if let Some(place) = place {
            if self.is_known(place) {
                self.dropped = true;
                self.lose(range, number, Why::Duplicate);
                return;
            }
            self.place(place, range.start, number);
        }
        self.dropped = false;
        self.parsed.content.encoder.ordinal += 1;
        self.foreign.saw(&entry);
        self.push(entry, Some(at));
    }

    /// Whether a record at this place was read before.
    fn is_known(&mut self, place: Place) -> bool {
        if let Some(open) = &self.batch
            && open.place.batch == place.batch
        {
            return place.index <= open.place.index;
        }
        place.batch.number <= *self.parsed.content.last.of(place.batch.writer)
    }

    fn place(&mut self, place: Place, start: usize, line: usize) {
        let content = &mut self.parsed.content;
        let next = content.records.len();
        *content.last.of(place.batch.writer) = place.batch.number;
        content.batches.entry(place.batch).or_insert(next..next).end = next + 1;
        self.damage_after = false;
        match &mut self.batch {
            Some(open) if open.place.batch == place.batch => open.place = place,
            batch => {
                *batch = Some(OpenBatch {
                    place,
                    start,
                    line,
                    first: next,
                    ordinal: content.encoder.ordinal,
                });
            }
        }
    }

    fn push(&mut self, entry: Entry, at: Option<Timestamp>) {
        self.at = at.unwrap_or(self.at);
        let records = &mut self.parsed.content.records;
        records.push(Arc::new(Record {
            seq: Seq(records.len() as u64),
            at: self.at,
            entry,
        }));
    }

    fn lose(&mut self, range: Range<usize>, line: usize, why: Why) {
        self.parsed.lost.push(Lost { range, line, why });
    }

    fn finish(mut self, length: usize) -> Parsed {
        self.drop_unfinished(length);
        for entry in self.foreign.finish() {
            self.push(entry, None);
        }
        let content = &mut self.parsed.content;
        for record in &content.records {
            if let Entry::ResponseEnded(end) = &record.entry
                && let Some(usage) = &end.usage
            {
                content.encoder.total.add(usage);
            }
        }
        self.parsed
    }

    /// A process that dies while it writes a batch leaves the beginning of it. Its writer was not told that the batch
    /// is in the file, so it is not: half a response would be worse than none.
    fn drop_unfinished(&mut self, length: usize) {
        let Some(OpenBatch {
            place,
            start,
            line,
            first,
            ordinal,
        }) = self.batch
        else {
            return;
        };
        let content = &mut self.parsed.content;
        let is_last = content
            .batches
            .get(&place.batch)
            .is_some_and(|range| range.end == content.records.len());
        if place.index + 1 == place.of || !is_last {
            return;
        }
        if self.damage_after {
            self.parsed.damaged_end = true;
            return;
        }
        content.records.truncate(first);
        content.encoder.ordinal = ordinal;
        content.batches.remove(&place.batch);
        *content.last.of(place.batch.writer) = content
            .batches
            .keys()
            .filter(|id| id.writer == place.batch.writer)
            .map(|id| id.number)
            .max()
            .unwrap_or(0);
        self.parsed.lost.retain(|lost| lost.range.end <= start);
        self.parsed.needs_newline = false;
        self.lose(start..length, line, Why::Unfinished);
    }
}

fn is_ours(line: &Value) -> bool {
    line["metadata"]["interpreter"].is_object()
}

#[cfg(test)]
pub(crate) mod tests;
