//! One record, one line: the rollout format on disk. Pure.
//!
//! A line is `{timestamp, ordinal, type, payload, metadata}`. `type` and `payload` are what tools for Codex rollouts
//! know (`session_meta`, `turn_context`, `response_item`, `event_msg`); entries without a counterpart there have a type
//! of our own, `interpreter.<entry>`, which such tools skip. `metadata.interpreter` holds what the payload cannot: the
//! entry, from which long texts that stand in the payload are taken out (`lift` says where they are), and the place of
//! the record in its batch, so that a batch is loaded whole or not at all.
//!
//! After words of the user and of the model comes a second line, a *mirror* (`event_msg` `user_message` or
//! `agent_message`): session pickers of other tools look for it. It is not a record.
//!
//! A record's number ([`Seq`](interpreter_messages::Seq)) is not stored: it is the record's position in the file.

use interpreter_messages::journal::{BatchId, Entry, Record, Writer};
use interpreter_messages::model::Usage;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod lift;
mod payload;

use lift::Lift;

/// Nanoseconds of a millisecond: the timestamp of a line has milliseconds, as in the original; the rest is metadata.
const NANOS_PER_MILLI: i32 = 1_000_000;

/// What begins the `type` of lines that only we know.
const OWN: &str = "interpreter.";

/// Where a record stands in its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The batch.
    pub batch: BatchId,
    /// Its position in it, from 0.
    pub index: u32,
    /// How many records the batch has.
    pub of: u32,
}

/// Writes records as lines. Holds what a line says about the lines before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encoder {
    /// The `ordinal` of the next line.
    pub(crate) ordinal: u64,
    /// Tokens of the session up to here.
    pub(crate) total: Usage,
}

/// A record that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("a record cannot be written as JSON: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

/// A line that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
}

/// What a line holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A record of ours, without its number.
    Record {
        /// When it was appended.
        at: Timestamp,
        /// What happened.
        entry: Box<Entry>,
        /// Its place in its batch.
        place: Option<Place>,
    },
    /// Repeats the record before it for other tools.
    Mirror,
    /// Another program's line, or one of a version of ours that we do not understand.
    Foreign {
        /// Its time, where it has one.
        at: Option<Timestamp>,
        /// All of it.
        line: Value,
    },
}

#[derive(Serialize)]
struct LineOut<'a> {
    timestamp: String,
    ordinal: u64,
    r#type: &'a str,
    payload: &'a Value,
    metadata: Metadata,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    interpreter: Own,
}

/// `metadata.interpreter`.
#[derive(Default, Serialize, Deserialize)]
struct Own {
    /// Writer, number, index, of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<(Writer, u64, u32, u32)>,
    /// Nanoseconds beyond the timestamp's milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    nanos: i32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    mirror: bool,
    /// The entry without what was lifted. Absent when the payload is the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lift: Vec<Lift>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(n: &i32) -> bool {
    *n == 0
}

impl Encoder {
    /// Appends a record's line, and its mirror where it has one, to `out`.
    ///
    /// # Errors
    /// When a path in it is not UTF-8; `out` and the encoder are then as before.
    pub fn encode(
        &mut self,
        record: &Record,
        place: Option<Place>,
        out: &mut String,
    ) -> Result<(), EncodeError> {
        let mut next = *self;
        let mut entry = serde_json::to_value(&record.entry)?;
        if let Entry::ResponseEnded(end) = &record.entry
            && let Some(usage) = &end.usage
        {
            next.total.add(usage);
        }
        let (timestamp, nanos) = stamp(record.at);
        let mut own = Own {
            batch: place.map(|p| (p.batch.writer, p.batch.number, p.index, p.of)),
            nanos,
            ..Own::default()
        };
        let mut lines = String::new();
        match payload::of(record, &next.total) {
            Some(shape) => {
                own.lift = lift::take_out(&mut entry, &shape.payload, shape.lifts);
                own.entry = Some(entry);
                next.line(&timestamp, shape.r#type, &shape.payload, own, &mut lines)?;
            }
            None => {
                let kind = format!("{OWN}{}", entry["entry"].as_str().unwrap_or("entry"));
                next.line(&timestamp, &kind, &entry, own, &mut lines)?;
            }
        }
        if let Some(mirror) = payload::mirror(&record.entry) {
            let own = Own {
                mirror: true,
                ..Own::default()
            };
            next.line(&timestamp, "event_msg", &mirror, own, &mut lines)?;
        }
        out.push_str(&lines);
        *self = next;
        Ok(())
    }

    fn line(
        &mut self,
        timestamp: &str,
        kind: &str,
        payload: &Value,
        own: Own,
        out: &mut String,
    ) -> Result<(), EncodeError> {
        let line = LineOut {
            timestamp: timestamp.to_owned(),
            ordinal: self.ordinal,
            r#type: kind,
            payload,
            metadata: Metadata { interpreter: own },
        };
        out.push_str(&serde_json::to_string(&line)?);
        out.push('\n');
        self.ordinal += 1;
        Ok(())
    }
}

/// A time as text in milliseconds, and the nanoseconds that the text leaves out.
fn stamp(at: Timestamp) -> (String, i32) {
    let nanos = at.subsec_nanosecond().rem_euclid(NANOS_PER_MILLI);
    let whole = at
        .checked_sub(jiff::SignedDuration::from_nanos(i64::from(nanos)))
        .unwrap_or(at);
    (format!("{whole:.3}"), nanos)
}

/// Reads a line. A line of ours that does not fit its entry (of a later version, or edited by hand) is foreign.
///
/// # Errors
/// When the line is not a JSON object.
pub fn decode(line: &[u8]) -> Result<Line, DecodeError> {
    let value: Value = serde_json::from_slice(line)?;
    if !value.is_object() {
        return Err(DecodeError::NotAnObject);
    }
    let at = value["timestamp"]
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    Ok(own_line(&value, at).unwrap_or(Line::Foreign { at, line: value }))
}

/// The `ordinal` of a line, where it has one.
pub(crate) fn ordinal(line: &Value) -> Option<u64> {
    line["ordinal"].as_u64()
}

fn own_line(line: &Value, at: Option<Timestamp>) -> Option<Line> {
    let metadata = line.get("metadata")?.get("interpreter")?;
    let own = Own::deserialize(metadata).ok()?;
    if own.mirror {
        return Some(Line::Mirror);
    }
    let payload = line.get("payload")?;
    let entry = match own.entry {
        Some(mut entry) => {
            lift::put_back(&mut entry, payload, &own.lift)?;
            entry
        }
        None if line["type"].as_str()?.starts_with(OWN) => payload.clone(),
        None => return None,
    };
    let entry = serde_json::from_value(entry).ok()?;
    let place = own.batch.map(|(writer, number, index, of)| Place {
        batch: BatchId { writer, number },
        index,
        of,
    });
    let at = at?
        .checked_add(jiff::SignedDuration::from_nanos(i64::from(own.nanos)))
        .ok()?;
    Some(Line::Record {
        at,
        entry: Box::new(entry),
        place,
    })
}

#[cfg(test)]
mod tests;
