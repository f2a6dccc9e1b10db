//! What other tools read of an entry: the shapes of a Codex rollout. Pure.
//!
//! Shapes as found in rollouts of codex 0.171 and in openinterpreter 5b07159.

use interpreter_messages::journal::{
    Entry, Part, Record, ResponseEnd, SessionMeta, TurnContext, TurnEnd, UserInput,
};
use interpreter_messages::model::Usage;
use interpreter_messages::policy::SandboxMode;
use interpreter_messages::tool::{ChangeKind, ToolOutcome, ToolOutput};
use serde_json::{Value, json};

use super::lift::Lift;

/// A line's `type` and `payload`, and which texts of the entry stand in it.
pub(super) struct Shape {
    pub r#type: &'static str,
    pub payload: Value,
    pub lifts: Vec<Lift>,
}

impl Shape {
    fn new(kind: &'static str, payload: Value) -> Self {
        Self {
            r#type: kind,
            payload,
            lifts: Vec::new(),
        }
    }

    fn lift(mut self, to: impl Into<String>, from: impl Into<String>) -> Self {
        self.lifts.push(Lift::new(to, from));
        self
    }
}

/// The shape of an entry; `None` for those that other tools have no word for. `total`: the session's tokens so far.
pub(super) fn of(record: &Record, total: &Usage) -> Option<Shape> {
    Some(match &record.entry {
        Entry::Meta(meta) => session_meta(meta),
        Entry::TurnStarted(context) => turn_context(context),
        Entry::UserInput(input) => user_message(input),
        Entry::Reasoning { text, .. } => Shape::new(
            "response_item",
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": null}),
        )
        .lift("/text", "/summary/0/text"),
        Entry::AssistantText { text, .. } => Shape::new(
            "response_item",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        )
        .lift("/text", "/content/0/text"),
        Entry::ToolCall { call, .. } => Shape::new(
            "response_item",
            json!({"type": "function_call", "name": call.name, "arguments": call.arguments, "call_id": call.id}),
        )
        .lift("/call/arguments", "/arguments"),
        Entry::ToolOutcome { call, outcome, .. } => tool_output(call.as_str(), outcome),
        Entry::ResponseEnded(ResponseEnd {
            usage: Some(usage), ..
        }) => Shape::new(
            "event_msg",
            json!({
                "type": "token_count",
                "info": {"total_token_usage": tokens(total), "last_token_usage": tokens(usage), "model_context_window": null},
                "rate_limits": null,
            }),
        ),
        Entry::TurnEnded { turn, end } => {
            let turn = turn.to_string();
            let payload = match end {
                TurnEnd::Completed => {
                    json!({"type": "task_complete", "turn_id": turn, "last_agent_message": null})
                }
                // The original knows no failed turn; the metadata has the reason.
                TurnEnd::Interrupted { .. } | TurnEnd::Failed(_) => {
                    json!({"type": "turn_aborted", "turn_id": turn, "reason": "interrupted"})
                }
            };
            Shape::new("event_msg", payload)
        }
        _ => return None,
    })
}

/// The event that pickers of other tools look for beside a message.
pub(super) fn mirror(entry: &Entry) -> Option<Value> {
    match entry {
        Entry::UserInput(input) => Some(json!({
            "type": "user_message",
            "message": words(&input.parts),
            "images": [],
        })),
        Entry::AssistantText { text, .. } => {
            Some(json!({"type": "agent_message", "message": text}))
        }
        _ => None,
    }
}

/// The texts of a message.
fn words(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

fn session_meta(meta: &SessionMeta) -> Shape {
    let mut payload = json!({
        "id": meta.id,
        "session_id": meta.id,
        "timestamp": format!("{:.3}", meta.started),
        "cwd": meta.cwd.to_string_lossy(),
        "originator": "interpreter",
        "cli_version": meta.version,
        "source": source(&meta.source),
        "model_provider": meta.provider,
    });
    if let Some(parent) = meta.forked_from {
        payload["forked_from_id"] = json!(parent);
    }
    if let Some(parent) = meta.parent {
        payload["parent_thread_id"] = json!(parent);
    }
    Shape::new("session_meta", payload)
}

/// Sources that the original has a name for stay plain words.
fn source(source: &str) -> Value {
    match source {
        "cli" | "vscode" | "exec" | "mcp" | "unknown" => json!(source),
        other => json!({"custom": other}),
    }
}

fn turn_context(context: &TurnContext) -> Shape {
    let sandbox = match context.sandbox {
        SandboxMode::DangerFullAccess => json!({"type": "danger-full-access"}),
        mode => json!({"type": mode.as_str(), "network_access": context.network}),
    };
    let payload = json!({
        "turn_id": context.turn.to_string(),
        "cwd": context.cwd.to_string_lossy(),
        "approval_policy": context.approval.as_str(),
        "sandbox_policy": sandbox,
        "model": context.model,
        "effort": context.effort,
        "summary": "auto",
    });
    Shape::new("turn_context", payload)
}

fn user_message(input: &UserInput) -> Shape {
    let mut content = Vec::new();
    let mut lifts = Vec::new();
    for (n, part) in input.parts.iter().enumerate() {
        match part {
            Part::Text { text } => {
                content.push(json!({"type": "input_text", "text": text}));
                lifts.push(Lift::new(
                    format!("/parts/{n}/text"),
                    format!("/content/{n}/text"),
                ));
            }
            Part::Image { mime, data, .. } => {
                let head = format!("data:{mime};base64,");
                lifts.push(Lift {
                    skip: head.len(),
                    ..Lift::new(
                        format!("/parts/{n}/data"),
                        format!("/content/{n}/image_url"),
                    )
                });
                content.push(json!({"type": "input_image", "image_url": head + data}));
            }
        }
    }
    let payload = json!({"type": "message", "role": "user", "content": content});
    Shape {
        r#type: "response_item",
        payload,
        lifts,
    }
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_total,
        "cached_input_tokens": usage.input_cached,
        "output_tokens": usage.output_total,
        "reasoning_output_tokens": usage.output_reasoning,
        "total_tokens": usage.input_total + usage.output_total,
    })
}

/// A call's result as plain text: the text of the outcome where it has one, else a word on what was done.
fn tool_output(call: &str, outcome: &ToolOutcome) -> Shape {
    let (output, lift) = match outcome {
        ToolOutcome::Ok { output } => ok_text(output),
        ToolOutcome::Failed { error } => (error.clone(), Some(("/outcome/error", false))),
        ToolOutcome::Denied { reason } | ToolOutcome::Aborted { reason, .. } => {
            (reason.clone(), Some(("/outcome/reason", false)))
        }
        ToolOutcome::TimedOut { output, .. } => {
            (output.text.clone(), Some(("/outcome/output/text", false)))
        }
        ToolOutcome::Crashed { cause, .. } => (cause.clone(), Some(("/outcome/cause", false))),
    };
    let payload = json!({"type": "function_call_output", "call_id": call, "output": output});
    let mut shape = Shape::new("response_item", payload);
    if let Some((to, lines)) = lift {
        shape.lifts.push(Lift {
            lines,
            ..Lift::new(to, "/output")
        });
    }
    shape
}

type Text = (String, Option<(&'static str, bool)>);

fn ok_text(output: &ToolOutput) -> Text {
    match output {
        ToolOutput::Exec(exec) => (exec.text.clone(), Some(("/outcome/output/text", false))),
        ToolOutput::Text(text) => (text.text.clone(), Some(("/outcome/output/text", false))),
        ToolOutput::Lines { lines, .. } => {
            (lines.join("\n"), Some(("/outcome/output/lines", true)))
        }
        ToolOutput::Changed { changes } => {
            let lines: Vec<String> = changes
                .iter()
                .map(|change| {
                    let word = match change.kind {
                        ChangeKind::Add => "added",
                        ChangeKind::Delete => "deleted",
                        ChangeKind::Update => "updated",
                    };
                    format!("{word} {}", change.path.display())
                })
                .collect();
            (lines.join("\n"), None)
        }
        ToolOutput::Plan { .. } => ("plan updated".to_owned(), None),
        ToolOutput::Image { path, .. } => (format!("image {}", path.display()), None),
    }
}
