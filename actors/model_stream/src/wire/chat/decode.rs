//! Chat responses, piece by piece.

use interpreter_messages::journal::{ErrorClass, Finish, TurnError};
use interpreter_messages::model::Usage;
use interpreter_messages::stream::{ModelItem, ModelResponse};
use interpreter_messages::wire::WireTool;
use serde_json::Value;

use super::payload::{CallPiece, Event, FunctionPiece, Message};
use crate::failure;
use crate::repair::{TextCalls, arguments};
use crate::wire::sse::SseParser;

/// A piece to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Of the answer.
    Text(&'a str),
    /// Of the thoughts.
    Reasoning(&'a str),
}

/// How a body ended.
#[derive(Debug)]
pub enum Finished {
    /// A finish was seen.
    Complete(ModelResponse),
    /// The bytes ended without one, or the provider reported an error in the stream.
    Failed {
        /// Class, message, hint.
        error: TurnError,
        /// Whether asking again may help.
        retryable: bool,
        /// What was shown.
        text: String,
        /// Tokens that were reported nevertheless.
        usage: Option<Usage>,
    },
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came as a JSON value instead of text.
    object: bool,
}

/// Decodes one response body. `push` and `finish` never fail for what the bytes are; `finish` says what came of them.
#[derive(Debug)]
pub struct ChatDecoder {
    sse: SseParser,
    fields: Fields,
    raw: Vec<u8>,
    too_long: bool,
}

#[derive(Debug)]
struct Fields {
    text: String,
    reasoning: String,
    scan: TextCalls,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    refusal: bool,
    done: bool,
    error: Option<String>,
    broken_events: usize,
    events: usize,
}

/// Bytes kept of a body that may be plain JSON instead of an event stream.
const RAW_LIMIT: usize = 16 * 1024 * 1024;

impl ChatDecoder {
    /// A decoder for an answer to a request that offered these tools.
    #[must_use]
    pub fn new(tools: std::sync::Arc<[WireTool]>) -> Self {
        Self {
            sse: SseParser::default(),
            fields: Fields {
                text: String::new(),
                reasoning: String::new(),
                scan: TextCalls::new(tools),
                calls: Vec::new(),
                usage: None,
                finish: None,
                refusal: false,
                done: false,
                error: None,
                broken_events: 0,
                events: 0,
            },
            raw: Vec::new(),
            too_long: false,
        }
    }

    /// Takes a piece of the body; `show` gets what may be shown.
    pub fn push(&mut self, piece: &[u8], mut show: impl FnMut(Delta<'_>)) {
        if self.fields.events == 0 && self.raw.len() < RAW_LIMIT {
            self.raw.extend_from_slice(piece);
        }
        let fields = &mut self.fields;
        self.too_long |= self
            .sse
            .push(piece, |data| fields.event(data, &mut show))
            .is_err();
        if self.fields.events > 0 {
            self.raw = Vec::new();
        }
    }

    /// Whether the response is over, though the connection may stay open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.fields.done || self.fields.error.is_some() || self.too_long
    }

    /// Whether something was shown or will be: text, thoughts, or a call.
    #[must_use]
    pub fn has_output(&self) -> bool {
        let fields = &self.fields;
        !fields.text.is_empty() || !fields.reasoning.is_empty() || !fields.calls.is_empty()
    }

    /// The body ended.
    pub fn finish(mut self, mut show: impl FnMut(Delta<'_>)) -> Finished {
        let fields = &mut self.fields;
        self.sse.finish(|data| fields.event(data, &mut show));
        if self.fields.events == 0 && self.sse.saw_other_text() {
            // A server that does not stream answers with one JSON document.
            let raw = std::mem::take(&mut self.raw);
            self.fields.event(&raw, &mut show);
            self.fields.done |= self.fields.finish.is_some();
        }
        self.fields.close(self.too_long, &mut show)
    }
}

impl Fields {
    fn event(&mut self, data: &[u8], show: &mut impl FnMut(Delta<'_>)) {
        let data = data.trim_ascii();
        if data.is_empty() {
            return;
        }
        self.events += 1;
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else {
            return self.broken(data);
        };
        if let Some(error) = event.error.filter(|error| error.get() != "null") {
            self.error = Some(error.get().to_owned());
            return;
        }
        if let Some(usage) = event.usage {
            self.usage = Some(usage.normalise());
        }
        for choice in event.choices.iter().filter(|choice| choice.index == 0) {
            if let Some(usage) = choice.usage {
                self.usage = Some(usage.normalise());
            }
            if let Some(message) = choice.delta.as_ref().or(choice.message.as_ref()) {
                self.message(message, show);
            }
            if let Some(reason) = choice
                .finish_reason
                .as_deref()
                .filter(|reason| !reason.is_empty())
            {
                self.finish = Some(finish(reason));
            }
        }
    }

    /// An event that is no JSON of this API. An error object in a shape of its own still counts.
    fn broken(&mut self, data: &[u8]) {
        match serde_json::from_slice::<Value>(data) {
            Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => {
                self.error = Some(value["error"].to_string());
            }
            _ => self.broken_events += 1,
        }
    }

    fn message(&mut self, message: &Message<'_>, show: &mut impl FnMut(Delta<'_>)) {
        let thoughts = message
            .reasoning_content
            .as_deref()
            .map(std::borrow::Cow::Borrowed)
            .or_else(|| {
                message
                    .reasoning
                    .as_ref()
                    .map(super::payload::Reasoning::text)
            });
        if let Some(thoughts) = thoughts.filter(|thoughts| !thoughts.is_empty()) {
            self.reasoning.push_str(&thoughts);
            show(Delta::Reasoning(&thoughts));
        }
        if let Some(refusal) = message
            .refusal
            .as_deref()
            .filter(|refusal| !refusal.is_empty())
        {
            self.refusal = true;
            self.say(refusal, show);
        }
        if let Some(content) = &message.content {
            self.say(&content.text(), show);
        }
        for piece in &message.tool_calls {
            self.call(piece);
        }
        if let Some(function) = &message.function_call {
            self.call(&CallPiece {
                index: Some(0),
                id: None,
                function: Some(FunctionPiece { ..take(function) }),
            });
        }
    }

    fn say(&mut self, text: &str, show: &mut impl FnMut(Delta<'_>)) {
        if text.is_empty() {
            return;
        }
        let shown = self.scan.push(text);
        if !shown.is_empty() {
            self.text.push_str(&shown);
            show(Delta::Text(&shown));
        }
    }

    /// A piece belongs to the call with its index; without one, to the call with its id; without that, to the last
    /// call, unless it names a function while the last one is already named.
    fn call(&mut self, piece: &CallPiece<'_>) {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let name = piece
            .function
            .as_ref()
            .and_then(|function| function.name.as_deref())
            .filter(|name| !name.is_empty());
        let at = match (piece.index, id) {
            (Some(index), _) => self.position(index, id, name),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == id),
            (None, None) if name.is_some() => {
                self.calls.iter().rposition(|call| call.name.is_empty())
            }
            (None, None) => self.calls.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| {
            self.calls.push(Call {
                index: piece.index,
                ..Call::default()
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            call.id.push_str(id);
        }
        // Servers that repeat the name with every piece mean the same name.
        if let Some(name) = name.filter(|name| *name != call.name) {
            call.name.push_str(name);
        }
        if let Some(raw) = piece
            .function
            .as_ref()
            .and_then(|function| function.arguments)
        {
            call.take_arguments(raw.get());
        }
    }

    /// The call of an index. Some servers give every parallel call index 0: another id with a name is another call.
    fn position(&self, index: u64, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let at = self
            .calls
            .iter()
            .rposition(|call| call.index == Some(index))?;
        let other = id.is_some_and(|id| !self.calls[at].id.is_empty() && self.calls[at].id != id);
        if other && name.is_some() {
            return self
                .calls
                .iter()
                .position(|call| id.is_some_and(|id| call.id == id));
        }
        Some(at)
    }

    fn close(mut self, too_long: bool, show: &mut impl FnMut(Delta<'_>)) -> Finished {
        let rest = self.scan.finish();
        if !rest.text.is_empty() {
            self.text.push_str(&rest.text);
            show(Delta::Text(&rest.text));
        }
        let failed = |error: TurnError, retryable: bool, fields: &Self| Finished::Failed {
            error,
            retryable,
            text: fields.text.clone(),
            usage: fields.usage,
        };
        if let Some(error) = &self.error {
            let (error, retryable) = failure::in_band(error);
            return failed(error, retryable, &self);
        }
        if too_long {
            return failed(
                transport("an event of the stream is longer than 64 MiB"),
                false,
                &self,
            );
        }
        let called = !self.calls.is_empty();
        if self.finish.is_none() && !(self.done && (called || !self.text.is_empty())) {
            let broken = match self.broken_events {
                0 => String::new(),
                1 => "; one event was not valid JSON".to_owned(),
                many => format!("; {many} events were not valid JSON"),
            };
            return failed(
                transport(&format!(
                    "the stream ended before the answer was complete{broken}"
                )),
                true,
                &self,
            );
        }
        Finished::Complete(self.response(rest.calls))
    }

    fn response(self, from_text: Vec<crate::repair::TextCall>) -> ModelResponse {
        let mut items = Vec::new();
        let mut repairs = Vec::new();
        if !self.reasoning.trim().is_empty() {
            items.push(ModelItem::Reasoning {
                text: self.reasoning,
                opaque: None,
            });
        }
        let has_native = !self.calls.is_empty();
        let text = if from_text.is_empty() {
            self.text.as_str()
        } else {
            self.text.trim_end()
        };
        if !text.trim().is_empty() {
            items.push(ModelItem::Text(text.to_owned()));
        }
        let mut seen: Vec<(String, String, String)> = Vec::new();
        for call in self.calls {
            let key = (call.id.clone(), call.name.clone(), call.arguments.clone());
            // The same call with the same id, sent twice by the server.
            if !call.id.is_empty() && seen.contains(&key) {
                repairs.push("duplicate");
                continue;
            }
            seen.push(key);
            let (parsed, repair) = arguments::parse(&call.arguments, call.object);
            repairs.extend(repair);
            let id = Some(call.id).filter(|id| !id.is_empty());
            items.push(ModelItem::ToolCall {
                id,
                name: call.name,
                arguments: parsed,
            });
        }
        if !has_native {
            for call in from_text {
                repairs.push(call.dialect);
                items.push(ModelItem::ToolCall {
                    id: None,
                    name: call.name,
                    arguments: call.arguments,
                });
            }
        }
        let calls = items
            .iter()
            .any(|item| matches!(item, ModelItem::ToolCall { .. }));
        let finish = match self.finish {
            _ if calls => Finish::ToolCalls,
            Some(Finish::ToolCalls) | None => Finish::Stop,
            Some(_) if self.refusal => Finish::Refused,
            Some(finish) => finish,
        };
        ModelResponse {
            items,
            usage: self.usage,
            finish: Some(finish),
            repairs,
        }
    }
}

impl Call {
    /// Arguments come as text in pieces, as one JSON value, or not at all.
    fn take_arguments(&mut self, raw: &str) {
        match serde_json::from_str::<Value>(raw) {
            Ok(Value::String(piece)) => self.arguments.push_str(&piece),
            Ok(Value::Null) | Err(_) => {}
            Ok(value) => {
                self.object = true;
                self.arguments = value.to_string();
            }
        }
    }
}

fn take<'a>(function: &FunctionPiece<'a>) -> FunctionPiece<'a> {
    FunctionPiece {
        name: function.name.clone(),
        arguments: function.arguments,
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "end_turn" | "eos" => Finish::Stop,
        "tool_calls" | "function_call" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "refusal" => Finish::Refused,
        other => Finish::Other(other.to_owned()),
    }
}

fn transport(message: &str) -> TurnError {
    TurnError {
        class: ErrorClass::Transport,
        message: message.to_owned(),
        hint: None,
    }
}
