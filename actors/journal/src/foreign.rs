//! Rollouts that other programs wrote: their lines as entries, as far as they are a conversation. Pure.
//!
//! Their lines say less than ours: turns and the ends of responses are inferred, calls cannot be run again (their
//! meaning is unknown), and what is no conversation stays as it is ([`Entry::Foreign`]).

use std::collections::BTreeSet;
use std::path::PathBuf;

use interpreter_messages::journal::{
    Entry, Finish, Part, ResponseEnd, SessionMeta, TurnContext, TurnEnd, UserInput,
};
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::tool::{InvalidCall, Meaning, ToolCall, ToolOutcome, ToolOutput};
use interpreter_messages::{CallId, ClientId, RequestNo, SessionId, StreamId, TurnId};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What user messages begin with that the other program wrote itself: not the user's words.
const INJECTED: [&str; 6] = [
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "<turn_aborted",
    "<skill",
    "# AGENTS.md instructions",
];

/// The fold over foreign lines.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    has_meta: bool,
    provider: String,
    context: Option<TurnContext>,
    turn: TurnId,
    turn_open: bool,
    /// The turn holds something of the model.
    answered: bool,
    response_open: bool,
    response_calls: bool,
    responses: u64,
    inputs: u64,
    open_calls: BTreeSet<String>,
}

impl Foreign {
    /// What our own record says, so that inferred numbers go on from there.
    pub(crate) fn saw(&mut self, entry: &Entry) {
        match entry {
            Entry::Meta(meta) => {
                self.has_meta = true;
                self.provider.clone_from(&meta.provider);
            }
            Entry::TurnStarted(context) => {
                self.turn = context.turn;
                self.context = Some(context.clone());
            }
            Entry::ResponseEnded(_) => self.responses += 1,
            _ => {}
        }
    }

    /// The entries of one foreign line.
    pub(crate) fn line(&mut self, line: Value, at: Option<Timestamp>) -> Vec<Entry> {
        let entries = match line["type"].as_str() {
            Some("session_meta") => self.meta(&line["payload"], at),
            Some("turn_context") => {
                self.context = Some(self.turn_context(&line["payload"]));
                None
            }
            Some("response_item") => self.item(&line["payload"]),
            Some("event_msg") => self.event(&line["payload"]),
            _ => None,
        };
        entries.unwrap_or_else(|| vec![Entry::Foreign { line }])
    }

    /// The entries that end what is open: before a record of ours, and at the end of the file.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        self.end_turn(TurnEnd::Completed)
    }

    fn meta(&mut self, meta: &Value, at: Option<Timestamp>) -> Option<Vec<Entry>> {
        if self.has_meta {
            return None;
        }
        let text = |key: &str| meta[key].as_str().map(str::to_owned);
        let id = |key: &str| -> Option<SessionId> { meta[key].as_str()?.parse().ok() };
        let started = text("timestamp")
            .and_then(|text| text.parse().ok())
            .or(at)?;
        let meta = SessionMeta {
            id: id("id").or_else(|| id("session_id"))?,
            started,
            cwd: PathBuf::from(text("cwd")?),
            source: text("source").unwrap_or_else(|| "unknown".to_owned()),
            version: text("cli_version").unwrap_or_default(),
            provider: text("model_provider").unwrap_or_else(|| "openai".to_owned()),
            harness: "native".to_owned(),
            forked_from: id("forked_from_id"),
            parent: id("parent_thread_id"),
        };
        self.has_meta = true;
        self.provider.clone_from(&meta.provider);
        Some(vec![Entry::Meta(meta)])
    }

    /// The settings of the next turn. They are shown, never restored, so what is not understood gets the strict value.
    fn turn_context(&self, context: &Value) -> TurnContext {
        let text = |key: &str| context[key].as_str().unwrap_or_default().to_owned();
        let sandbox = &context["sandbox_policy"];
        TurnContext {
            turn: self.turn,
            cwd: PathBuf::from(text("cwd")),
            model: text("model"),
            provider: self.provider.clone(),
            harness: "native".to_owned(),
            sandbox: serde_json::from_value(sandbox["type"].clone())
                .unwrap_or(SandboxMode::ReadOnly),
            network: sandbox["network_access"].as_bool().unwrap_or(false),
            approval: serde_json::from_value(context["approval_policy"].clone())
                .unwrap_or(ApprovalPolicy::Untrusted),
            effort: context["effort"].as_str().map(str::to_owned),
        }
    }

    fn item(&mut self, item: &Value) -> Option<Vec<Entry>> {
        match item["type"].as_str()? {
            "message" => match item["role"].as_str()? {
                "user" => self.user(&item["content"]),
                "assistant" => self.assistant(&item["content"]),
                _ => None,
            },
            "reasoning" => self.reasoning(item),
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap_or("{}");
                self.call(item, item["name"].as_str()?, arguments)
            }
            "custom_tool_call" => {
                let arguments = json!({"input": item["input"]}).to_string();
                self.call(item, item["name"].as_str()?, &arguments)
            }
            "local_shell_call" => {
                let arguments = json!({"command": item["action"]["command"]}).to_string();
                self.call(item, "local_shell", &arguments)
            }
            "function_call_output" | "custom_tool_call_output" => self.output(item),
            _ => None,
        }
    }

    fn event(&mut self, event: &Value) -> Option<Vec<Entry>> {
        let end = match event["type"].as_str()? {
            "task_complete" => TurnEnd::Completed,
            "turn_aborted" => TurnEnd::Interrupted {
                by: event["reason"].as_str().unwrap_or("user").to_owned(),
            },
            _ => return None,
        };
        self.turn_open.then(|| self.end_turn(end))
    }

    fn user(&mut self, content: &Value) -> Option<Vec<Entry>> {
        let parts: Vec<Part> = content.as_array()?.iter().filter_map(part).collect();
        let injected = parts.iter().any(|part| {
            matches!(part, Part::Text { text } if INJECTED.iter().any(|head| text.trim_start().starts_with(head)))
        });
        if parts.is_empty() || injected {
            return None;
        }
        let mut entries = Vec::new();
        if !self.turn_open || self.answered {
            entries = self.begin_turn();
        }
        self.inputs += 1;
        entries.push(Entry::UserInput(UserInput {
            turn: self.turn,
            client: ClientId(format!("foreign-{}", self.inputs)),
            parts,
        }));
        Some(entries)
    }

    fn assistant(&mut self, content: &Value) -> Option<Vec<Entry>> {
        let texts: Vec<&str> = content
            .as_array()?
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        let text = texts.join("\n");
        if text.is_empty() {
            return None;
        }
        let mut entries = self.begin_response();
        let turn = self.turn;
        entries.push(Entry::AssistantText { turn, text });
        Some(entries)
    }

    fn reasoning(&mut self, item: &Value) -> Option<Vec<Entry>> {
        let texts: Vec<&str> = item["summary"]
            .as_array()?
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        if texts.is_empty() {
            return None;
        }
        let mut entries = self.begin_response();
        entries.push(Entry::Reasoning {
            turn: self.turn,
            text: texts.join("\n"),
            opaque: None,
        });
        Some(entries)
    }

    fn call(&mut self, item: &Value, name: &str, arguments: &str) -> Option<Vec<Entry>> {
        let id = item["call_id"].as_str()?;
        if !self.open_calls.insert(id.to_owned()) {
            return None;
        }
        let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|v| v.is_object());
        let arguments = if is_object {
            arguments.to_owned()
        } else {
            json!({"input": arguments}).to_string()
        };
        let mut entries = self.begin_response();
        self.response_calls = true;
        entries.push(Entry::ToolCall {
            turn: self.turn,
            call: ToolCall {
                id: CallId::new(id),
                name: name.to_owned(),
                arguments,
                meaning: Meaning::Invalid(InvalidCall::UnknownTool { nearest: None }),
                repaired: None,
            },
        });
        Some(entries)
    }

    fn output(&mut self, item: &Value) -> Option<Vec<Entry>> {
        let id = item["call_id"].as_str()?;
        if !self.open_calls.remove(id) {
            return None;
        }
        let mut entries = self.end_response();
        let lines = output_text(&item["output"])
            .split('\n')
            .map(str::to_owned)
            .collect();
        entries.push(Entry::ToolOutcome {
            turn: self.turn,
            call: CallId::new(id),
            outcome: ToolOutcome::Ok {
                output: ToolOutput::Lines { lines, left_out: 0 },
            },
        });
        Some(entries)
    }

    fn begin_turn(&mut self) -> Vec<Entry> {
        let mut entries = self.end_turn(TurnEnd::Completed);
        self.turn = self.turn.next();
        self.turn_open = true;
        let mut context = self
            .context
            .clone()
            .unwrap_or_else(|| self.turn_context(&Value::Null));
        context.turn = self.turn;
        entries.push(Entry::TurnStarted(context));
        entries
    }

    fn begin_response(&mut self) -> Vec<Entry> {
        let entries = if self.turn_open {
            Vec::new()
        } else {
            self.begin_turn()
        };
        self.answered = true;
        self.response_open = true;
        entries
    }

    fn end_response(&mut self) -> Vec<Entry> {
        if !self.response_open {
            return Vec::new();
        }
        self.response_open = false;
        let finish = if std::mem::take(&mut self.response_calls) {
            Finish::ToolCalls
        } else {
            Finish::Stop
        };
        let stream = StreamId {
            turn: self.turn,
            request: RequestNo(self.responses),
            attempt: 0,
        };
        self.responses += 1;
        vec![Entry::ResponseEnded(ResponseEnd {
            stream,
            finish,
            usage: None,
        })]
    }

    fn end_turn(&mut self, end: TurnEnd) -> Vec<Entry> {
        if !self.turn_open {
            return Vec::new();
        }
        let turn = self.turn;
        let mut entries = self.end_response();
        entries.extend(std::mem::take(&mut self.open_calls).into_iter().map(|id| {
            Entry::ToolOutcome {
                turn,
                call: CallId(id),
                outcome: ToolOutcome::Aborted {
                    reason: "the session file holds no result of this call".to_owned(),
                    output: None,
                },
            }
        }));
        entries.push(Entry::TurnEnded { turn, end });
        self.turn_open = false;
        self.answered = false;
        entries
    }
}

/// A part of a message's content; `None` for what is neither text nor an embedded image.
fn part(part: &Value) -> Option<Part> {
    match part["type"].as_str()? {
        "input_text" | "text" => {
            let text = part["text"].as_str().filter(|text| !text.is_empty())?;
            Some(Part::Text {
                text: text.to_owned(),
            })
        }
        "input_image" => {
            let (mime, data) = part["image_url"]
                .as_str()?
                .strip_prefix("data:")?
                .split_once(";base64,")?;
            Some(Part::Image {
                name: "image".to_owned(),
                mime: mime.to_owned(),
                data: data.into(),
            })
        }
        _ => None,
    }
}

/// A call's result: a text, or a list of parts, or an object that holds one of both as `content`.
fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|p| p["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Object(object) => object.get("content").map(output_text).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
