//! Texts that stand once in a line: in the payload, for everybody, and not again in our metadata. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Texts of a call's arguments that are shorter than this are simply repeated in the call's meaning.
const WORTH_LIFTING: usize = 64;

/// A text of the entry that is kept in the payload. Both ends are JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lift {
    /// Where it belongs in the entry.
    pub to: String,
    /// Where it stands in the payload.
    pub from: String,
    /// Bytes of the payload's text before it (the head of a data URL).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// The payload's text is JSON, and the text is at this pointer inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The entry holds the lines of the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Lift {
    pub(super) fn new(to: impl Into<String>, from: impl Into<String>) -> Self {
        Self {
            to: to.into(),
            from: from.into(),
            skip: 0,
            inside: None,
            lines: false,
        }
    }

    /// What the payload says the entry holds.
    fn fetch(&self, payload: &Value) -> Option<Value> {
        let text = payload.pointer(&self.from)?.as_str()?.get(self.skip..)?;
        if let Some(pointer) = &self.inside {
            let inner: Value = serde_json::from_str(text).ok()?;
            return inner.pointer(pointer).filter(|v| v.is_string()).cloned();
        }
        if self.lines {
            return Some(text.split('\n').map(Value::from).collect());
        }
        Some(Value::from(text))
    }
}

/// Takes the lifted texts out of the entry. A lift that would not give back exactly what it takes is left out.
pub(super) fn take_out(entry: &mut Value, payload: &Value, mut lifts: Vec<Lift>) -> Vec<Lift> {
    lifts.extend(of_arguments(entry));
    lifts.retain(|lift| {
        let Some(slot) = entry.pointer_mut(&lift.to) else {
            return false;
        };
        let same = lift.fetch(payload).is_some_and(|text| text == *slot);
        if same {
            *slot = Value::Null;
        }
        same
    });
    lifts
}

/// The inverse of [`take_out`]; `None` when the line was changed so that it does not fit any more.
pub(super) fn put_back(entry: &mut Value, payload: &Value, lifts: &[Lift]) -> Option<()> {
    for lift in lifts {
        let text = lift.fetch(payload)?;
        *entry.pointer_mut(&lift.to)? = text;
    }
    Some(())
}

/// A call's meaning repeats long texts of its arguments (a file's content, a patch).
fn of_arguments(entry: &Value) -> Vec<Lift> {
    let mut lifts = Vec::new();
    let arguments = entry
        .pointer("/call/arguments")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let (Some(arguments), Some(meaning)) = (arguments, entry.pointer("/call/meaning")) else {
        return lifts;
    };
    let mut known = Vec::new();
    long_texts(&arguments, String::new(), &mut known);
    let mut wanted = Vec::new();
    long_texts(meaning, "/call/meaning".to_owned(), &mut wanted);
    for (to, text) in wanted {
        if let Some((inside, _)) = known.iter().find(|(_, other)| *other == text) {
            lifts.push(Lift {
                inside: Some(inside.clone()),
                ..Lift::new(to, "/arguments")
            });
        }
    }
    lifts
}

/// Long texts in a value, with their pointers.
fn long_texts<'a>(value: &'a Value, at: String, found: &mut Vec<(String, &'a str)>) {
    match value {
        Value::String(text) if text.len() >= WORTH_LIFTING => found.push((at, text)),
        Value::Array(values) => {
            for (n, value) in values.iter().enumerate() {
                long_texts(value, format!("{at}/{n}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                long_texts(value, format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}
