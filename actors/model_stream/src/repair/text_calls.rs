//! Finds calls in the text of an answer while it streams.
//!
//! Text that may be the beginning of a call is held back, so that it never shows; when it turns out to be none, it is
//! given after all. A mark counts only at the start of a line, outside a fenced block.

use std::sync::Arc;

use interpreter_messages::stream::CallArguments;
use interpreter_messages::wire::WireTool;
use serde_json::{Map, Value};

use super::{Rest, TextCall, arguments};

/// What a call can begin and end with. The second of a pair is what ends it.
const MARKS: [(&str, &str, &str); 4] = [
    ("<tool_call>", "</tool_call>", "tool_call"),
    ("<function=", "</function>", "function_tags"),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "deepseek"),
    (
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "kimi",
    ),
];

/// Bytes of a line that show whether it is a fence.
const LINE_KEPT: usize = 64;

/// More than this after an opening mark is no call.
const CALL_LIMIT: usize = 1024 * 1024;

/// The scanner's state between two pieces of text.
#[derive(Debug)]
pub struct TextCalls {
    tools: Arc<[WireTool]>,
    /// Not given yet: a possible beginning of a mark, or the inside of a call.
    held: String,
    /// The whole text so far, as far as it was given; for the bare JSON check and the line starts.
    at_line_start: bool,
    fenced: bool,
    /// The line so far, to recognise fences.
    line: String,
    /// Everything, while it may still be one bare JSON object.
    bare: Option<String>,
    calls: Vec<TextCall>,
}

impl TextCalls {
    /// A scanner for an answer to a request that offered these tools.
    #[must_use]
    pub fn new(tools: Arc<[WireTool]>) -> Self {
        let bare = (!tools.is_empty()).then(String::new);
        Self {
            tools,
            held: String::new(),
            at_line_start: true,
            fenced: false,
            line: String::new(),
            bare,
            calls: Vec::new(),
        }
    }

    /// Takes a piece; gives the text that can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.tools.is_empty() {
            return piece.to_owned();
        }
        if let Some(bare) = &mut self.bare {
            bare.push_str(piece);
            let begin = bare.trim_start();
            if (begin.is_empty() || begin.starts_with('{')) && bare.len() <= CALL_LIMIT {
                return String::new();
            }
            let all = self.bare.take().unwrap_or_default();
            return self.scan(&all);
        }
        self.scan(piece)
    }

    /// The text ended.
    pub fn finish(&mut self) -> Rest {
        let mut text = String::new();
        if let Some(bare) = self.bare.take() {
            match self.bare_call(&bare) {
                Some(call) => self.calls.push(call),
                None => text.push_str(&self.scan(&bare)),
            }
        }
        let held = std::mem::take(&mut self.held);
        // A call whose end mark never came, as models stop right before it.
        match self
            .opened(&held)
            .and_then(|(dialect, inside)| self.parse(dialect, inside))
        {
            Some(calls) => self.calls.extend(calls),
            None => text.push_str(&held),
        }
        Rest {
            text,
            calls: std::mem::take(&mut self.calls),
        }
    }

    fn scan(&mut self, piece: &str) -> String {
        let mut held = std::mem::take(&mut self.held);
        held.push_str(piece);
        let mut out = String::new();
        let mut rest = held.as_str();
        while let Some(first) = rest.chars().next() {
            if self.at_line_start && !self.fenced {
                match look(rest) {
                    Look::Call(end) => {
                        self.close(&rest[..end], &mut out);
                        rest = &rest[end..];
                        continue;
                    }
                    Look::Wait => break,
                    Look::Nothing => {}
                }
            }
            // Past the start of a line nothing counts before the next one.
            let end = if self.at_line_start && first.is_whitespace() {
                first.len_utf8()
            } else {
                rest.find('\n').map_or(rest.len(), |at| at + 1)
            };
            self.give(&rest[..end], &mut out);
            rest = &rest[end..];
        }
        self.held = rest.to_owned();
        out
    }

    /// Gives a part of one line, its end included.
    fn give(&mut self, part: &str, out: &mut String) {
        out.push_str(part);
        let line = part.strip_suffix('\n');
        if self.line.len() < LINE_KEPT {
            self.line.push_str(line.unwrap_or(part));
        }
        self.at_line_start &= part.trim().is_empty();
        if line.is_some() {
            let begin = self.line.trim_start();
            self.fenced ^= begin.starts_with("```") || begin.starts_with("~~~");
            self.line.clear();
            self.at_line_start = true;
        }
    }

    fn opened<'a>(&self, held: &'a str) -> Option<(&'static str, &'a str)> {
        MARKS
            .iter()
            .find(|(open, _, _)| held.starts_with(open))
            .map(|(_, _, dialect)| (*dialect, held))
    }

    /// Takes a whole marked part: its calls, or its text when it holds none.
    fn close(&mut self, whole: &str, out: &mut String) {
        let calls = self
            .opened(whole)
            .and_then(|(dialect, inside)| self.parse(dialect, inside));
        match calls {
            Some(calls) => self.calls.extend(calls),
            None => whole
                .split_inclusive('\n')
                .for_each(|part| self.give(part, out)),
        }
    }

    fn parse(&self, dialect: &'static str, whole: &str) -> Option<Vec<TextCall>> {
        let calls = match dialect {
            "tool_call" => {
                let inside = whole.strip_prefix("<tool_call>")?;
                let inside = inside.split("</tool_call>").next()?.trim();
                let call = if inside.starts_with("<function=") {
                    self.function_tags(inside)
                } else {
                    self.json_call(inside, dialect)
                };
                vec![call?]
            }
            "function_tags" => vec![self.function_tags(whole)?],
            "deepseek" => self.marked(
                whole,
                "<｜tool▁call▁begin｜>",
                "<｜tool▁call▁end｜>",
                "<｜tool▁sep｜>",
                dialect,
            )?,
            _ => self.marked(
                whole,
                "<|tool_call_begin|>",
                "<|tool_call_end|>",
                "<|tool_call_argument_begin|>",
                dialect,
            )?,
        };
        (!calls.is_empty()).then_some(calls)
    }

    fn offered(&self, name: &str) -> Option<&WireTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// `{"name": …, "arguments": {…}}`, or `parameters` in place of `arguments`.
    fn json_call(&self, text: &str, dialect: &'static str) -> Option<TextCall> {
        let map = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(map)) => map,
            _ => arguments::mend(text)?,
        };
        self.call_of_map(&map, dialect)
    }

    fn call_of_map(&self, map: &Map<String, Value>, dialect: &'static str) -> Option<TextCall> {
        let name = map.get("name").or_else(|| map.get("tool"))?.as_str()?;
        let given = map
            .get("arguments")
            .or_else(|| map.get("parameters"))
            .or_else(|| map.get("input"));
        let object = match given? {
            Value::String(text) => serde_json::from_str(text).ok()?,
            value => value.clone(),
        };
        self.offered(name)?;
        object
            .is_object()
            .then(|| call(name, object.to_string(), dialect))
    }

    /// The whole text is one JSON object that names an offered tool.
    fn bare_call(&self, text: &str) -> Option<TextCall> {
        let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text.trim()) else {
            return None;
        };
        self.call_of_map(&map, "bare_json")
    }

    /// `<function=NAME><parameter=KEY>value</parameter>…</function>`: values are texts, read by the schema's types.
    fn function_tags(&self, text: &str) -> Option<TextCall> {
        let text = text.strip_prefix("<function=")?;
        let (name, mut rest) = text.split_once('>')?;
        let name = name.trim().trim_matches('"');
        let tool = self.offered(name)?;
        let mut object = Map::new();
        while let Some((_, after)) = rest.split_once("<parameter=") {
            let (key, after) = after.split_once('>')?;
            let end = [
                after.find("</parameter>"),
                after.find("<parameter="),
                after.find("</function>"),
            ];
            let end = match end[0] {
                Some(end) => end,
                None => end.into_iter().flatten().min().unwrap_or(after.len()),
            };
            let value = after[..end].strip_prefix('\n').unwrap_or(&after[..end]);
            let value = value.strip_suffix('\n').unwrap_or(value);
            object.insert(key.trim().to_owned(), typed(tool, key.trim(), value));
            rest = &after[end..];
        }
        Some(call(
            name,
            Value::Object(object).to_string(),
            "function_tags",
        ))
    }

    /// Calls between begin and end marks: `…name SEPARATOR json…`, the way DeepSeek and Kimi models leak them.
    fn marked(
        &self,
        text: &str,
        begin: &str,
        end: &str,
        separator: &str,
        dialect: &'static str,
    ) -> Option<Vec<TextCall>> {
        let mut calls = Vec::new();
        for part in text.split(begin).skip(1) {
            let part = part.split(end).next()?;
            let (left, right) = part.split_once(separator)?;
            let (name, body) = match self.offered(function_name(left)) {
                Some(tool) => (tool.name.clone(), right),
                // `function<sep>NAME\n```json\n{…}\n```` in the older markup.
                None => {
                    let (name, body) = right.split_once('\n')?;
                    (self.offered(name.trim())?.name.clone(), body)
                }
            };
            let body = body
                .trim()
                .trim_start_matches("```json")
                .trim_end_matches("```")
                .trim();
            let (arguments, _) = arguments::parse(body, false);
            calls.push(TextCall {
                name,
                arguments: noted(arguments, dialect),
                dialect,
            });
        }
        Some(calls)
    }
}

/// Whether a text begins with a call.
fn look(text: &str) -> Look {
    for (open, close, _) in MARKS {
        if text.starts_with(open) {
            return match text.find(close) {
                Some(at) => Look::Call(at + close.len()),
                None if text.len() > CALL_LIMIT => Look::Nothing,
                None => Look::Wait,
            };
        }
        if open.starts_with(text) {
            return Look::Wait;
        }
    }
    Look::Nothing
}

enum Look {
    /// A whole call of this many bytes.
    Call(usize),
    /// More text decides.
    Wait,
    /// No call.
    Nothing,
}

/// `functions.NAME:0` is how Kimi models write a name.
fn function_name(text: &str) -> &str {
    let name = text.trim();
    let name = name.strip_prefix("functions.").unwrap_or(name);
    name.split(':').next().unwrap_or(name)
}

fn call(name: &str, json: String, dialect: &'static str) -> TextCall {
    let arguments = noted(
        CallArguments::Object {
            json,
            repaired: None,
        },
        dialect,
    );
    TextCall {
        name: name.to_owned(),
        arguments,
        dialect,
    }
}

fn noted(arguments: CallArguments, dialect: &str) -> CallArguments {
    match arguments {
        CallArguments::Object {
            json,
            repaired: None,
        } => {
            let repaired = Some(format!(
                "the call was written as text ({dialect}); use a tool call the next time"
            ));
            CallArguments::Object { json, repaired }
        }
        other => other,
    }
}

/// A value that stands as text between tags: what the schema wants it to be, else text.
fn typed(tool: &WireTool, key: &str, text: &str) -> Value {
    let wanted = tool.parameters["properties"][key]["type"]
        .as_str()
        .unwrap_or("string");
    if wanted == "string" {
        return Value::from(text);
    }
    serde_json::from_str(text.trim()).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests;
