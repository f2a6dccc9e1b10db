//! Events as the JSON lines of the Codex exec protocol. Pure.
//!
//! Shapes, names and order as recorded from the original; kept better here: no event is ever lost, one id per item, an
//! interrupt has a terminal event (`turn.failed` with `interrupted`), and items that were begun are completed. The
//! protocol has no item for looks at files; they are shown as `mcp_tool_call` of the server `native`, the protocol's
//! general tool call. Calls that could not be understood have no item, as in the original: only the model sees them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use interpreter_messages::ItemId;
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::model::Usage;
use interpreter_messages::tool::{ChangeKind, FileChange, PlanStep, StepStatus};
use interpreter_messages::ui::{Event, Item, ItemBody, ItemStatus};
use serde::Serialize;

/// The server name of our own tools in `mcp_tool_call` items.
const NATIVE: &str = "native";

/// Turns events into lines; keeps the ids given and the items that are open.
#[derive(Debug, Default)]
pub struct JsonLines {
    greeted: bool,
    given: u64,
    ids: HashMap<ItemId, String>,
    /// Items with a line and no `item.completed` yet, in the order they began.
    open: Vec<Item>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum WireEvent {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "item.started")]
    ItemStarted { item: WireItem },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: WireItem },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: WireItem },
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: WireUsage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: WireError },
    #[serde(rename = "error")]
    Error { message: String },
}

#[derive(Serialize)]
struct WireError {
    message: String,
}

#[derive(Serialize)]
struct WireUsage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

#[derive(Serialize)]
struct WireItem {
    id: String,
    #[serde(flatten)]
    body: WireBody,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireBody {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    CommandExecution {
        command: String,
        aggregated_output: String,
        exit_code: Option<i32>,
        status: WireStatus,
    },
    FileChange {
        changes: Vec<WireChange>,
        status: WireStatus,
    },
    McpToolCall {
        server: &'static str,
        tool: String,
        arguments: Target,
        result: Option<()>,
        error: Option<WireError>,
        status: WireStatus,
    },
    TodoList {
        items: Vec<WireTodo>,
    },
    Error {
        message: String,
    },
}

#[derive(Serialize)]
struct Target {
    target: String,
}

#[derive(Serialize)]
struct WireChange {
    path: String,
    kind: ChangeKind,
}

#[derive(Serialize)]
struct WireTodo {
    text: String,
    completed: bool,
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum WireStatus {
    InProgress,
    Completed,
    Failed,
    Declined,
}

/// Where in its life an item is shown.
#[derive(Clone, Copy)]
enum Stage {
    Started,
    Updated,
    Completed,
}

impl JsonLines {
    /// The lines for an event, each with its line end; empty for what the protocol does not show.
    pub fn lines(&mut self, event: &Event) -> String {
        let mut out = String::new();
        match event {
            Event::SessionReady { session, .. } => {
                if !self.greeted {
                    self.greeted = true;
                    let thread_id = session.to_string();
                    put(&mut out, &WireEvent::ThreadStarted { thread_id });
                }
            }
            Event::TurnStarted { .. } => put(&mut out, &WireEvent::TurnStarted),
            Event::ItemStarted { item } | Event::ItemUpdated { item } => {
                self.item(&mut out, item, false);
            }
            Event::ItemCompleted { item } => self.item(&mut out, item, true),
            Event::StreamRestarted {
                attempt,
                max,
                reason,
                ..
            }
            | Event::Retrying {
                attempt,
                max,
                reason,
                ..
            } => {
                let message = format!("Reconnecting... {attempt}/{max} ({reason})");
                put(&mut out, &WireEvent::Error { message });
            }
            Event::TurnEnded { end, total, .. } => self.ended(&mut out, end, total),
            Event::Restarted { who, cause } => {
                self.warning(
                    &mut out,
                    format!("{who} was restarted after a crash: {cause}"),
                );
            }
            Event::Notice { text } => self.warning(&mut out, text.clone()),
            Event::Broken { error } => failed(&mut out, &error.to_string()),
            Event::Accepted { .. }
            | Event::Delta { .. }
            | Event::Resync { .. }
            | Event::ApprovalAsked { .. }
            | Event::ApprovalResolved { .. }
            | Event::Usage { .. } => {}
        }
        out
    }

    fn item(&mut self, out: &mut String, item: &Item, complete: bool) {
        match &item.body {
            ItemBody::Message { text } | ItemBody::Reasoning { text } => {
                if complete && !text.is_empty() {
                    self.show(out, item, Stage::Completed);
                }
            }
            // A plan stays open until its turn ends, however often it is replaced.
            ItemBody::Plan { .. } => match self.open.iter().find(|open| open.id == item.id) {
                None => self.show(out, item, Stage::Started),
                Some(open) if open.body != item.body => self.show(out, item, Stage::Updated),
                Some(_) => {}
            },
            ItemBody::ToolError { .. } => {}
            ItemBody::Command { .. } | ItemBody::FileChange { .. } | ItemBody::Explored { .. } => {
                let began = self.open.iter().any(|open| open.id == item.id);
                self.show(
                    out,
                    item,
                    match (complete, began) {
                        (true, _) => Stage::Completed,
                        (false, false) => Stage::Started,
                        (false, true) => Stage::Updated,
                    },
                );
            }
        }
    }

    fn show(&mut self, out: &mut String, item: &Item, stage: Stage) {
        let Some(body) = body(&item.body, stage) else {
            return;
        };
        let known = self.open.iter().position(|open| open.id == item.id);
        match (stage, known) {
            (Stage::Completed, Some(at)) => {
                self.open.remove(at);
            }
            (Stage::Completed, None) => {}
            (_, Some(at)) => self.open[at] = item.clone(),
            (_, None) => self.open.push(item.clone()),
        }
        let item = WireItem {
            id: self.id(&item.id),
            body,
        };
        let event = match stage {
            Stage::Started => WireEvent::ItemStarted { item },
            Stage::Updated => WireEvent::ItemUpdated { item },
            Stage::Completed => WireEvent::ItemCompleted { item },
        };
        put(out, &event);
    }

    fn warning(&mut self, out: &mut String, message: String) {
        let item = WireItem {
            id: self.fresh_id(),
            body: WireBody::Error { message },
        };
        put(out, &WireEvent::ItemCompleted { item });
    }

    fn ended(&mut self, out: &mut String, end: &TurnEnd, total: &Usage) {
        let status = if *end == TurnEnd::Completed {
            ItemStatus::Completed
        } else {
            ItemStatus::Failed
        };
        for mut item in std::mem::take(&mut self.open) {
            close(&mut item.body, status);
            self.show(out, &item, Stage::Completed);
        }
        match end {
            TurnEnd::Completed => put(
                out,
                &WireEvent::TurnCompleted {
                    usage: usage(total),
                },
            ),
            TurnEnd::Interrupted { .. } => {
                let error = WireError {
                    message: "interrupted".to_owned(),
                };
                put(out, &WireEvent::TurnFailed { error });
            }
            TurnEnd::Failed(error) => failed(out, &error.to_string()),
        }
    }

    /// The id of an item, given at its first line.
    fn id(&mut self, item: &ItemId) -> String {
        if let Some(id) = self.ids.get(item) {
            return id.clone();
        }
        let id = self.fresh_id();
        self.ids.insert(item.clone(), id.clone());
        id
    }

    fn fresh_id(&mut self) -> String {
        let id = format!("item_{}", self.given);
        self.given += 1;
        id
    }
}

fn failed(out: &mut String, message: &str) {
    let message = message.to_owned();
    put(
        out,
        &WireEvent::Error {
            message: message.clone(),
        },
    );
    put(
        out,
        &WireEvent::TurnFailed {
            error: WireError { message },
        },
    );
}

/// Ends what its tool never ended.
fn close(body: &mut ItemBody, end: ItemStatus) {
    if let ItemBody::Command { status, .. }
    | ItemBody::FileChange { status, .. }
    | ItemBody::Explored { status, .. } = body
        && *status == ItemStatus::InProgress
    {
        *status = end;
    }
}

fn body(body: &ItemBody, stage: Stage) -> Option<WireBody> {
    Some(match body {
        ItemBody::Message { text } => WireBody::AgentMessage { text: text.clone() },
        ItemBody::Reasoning { text } => WireBody::Reasoning { text: text.clone() },
        ItemBody::Command {
            argv,
            script,
            status,
            output,
            ..
        } => WireBody::CommandExecution {
            command: command_text(argv, script),
            aggregated_output: output
                .as_ref()
                .map(|output| output.text.clone())
                .unwrap_or_default(),
            exit_code: output
                .as_ref()
                .and_then(|output| output.exit)
                .map(|exit| exit.shell_code()),
            status: wire_status(*status, stage),
        },
        ItemBody::FileChange { changes, status } => WireBody::FileChange {
            changes: wire_changes(changes),
            // The protocol knows no refused file change.
            status: match wire_status(*status, stage) {
                WireStatus::Declined => WireStatus::Failed,
                status => status,
            },
        },
        ItemBody::Explored { what, status } => {
            let (tool, target) = what.split_once(' ').unwrap_or((what, ""));
            let status = match wire_status(*status, stage) {
                WireStatus::Declined => WireStatus::Failed,
                status => status,
            };
            let error = matches!(status, WireStatus::Failed).then(|| WireError {
                message: format!("{what} failed"),
            });
            WireBody::McpToolCall {
                server: NATIVE,
                tool: tool.to_owned(),
                arguments: Target {
                    target: target.to_owned(),
                },
                result: None,
                error,
                status,
            }
        }
        ItemBody::Plan { steps } => WireBody::TodoList {
            items: steps.iter().map(wire_todo).collect(),
        },
        ItemBody::ToolError { .. } => return None,
    })
}

/// A completed item is not in progress, whatever its tool says: a command that runs on was completed as a call.
const fn wire_status(status: ItemStatus, stage: Stage) -> WireStatus {
    match (status, stage) {
        (ItemStatus::InProgress, Stage::Completed) | (ItemStatus::Completed, _) => {
            WireStatus::Completed
        }
        (ItemStatus::InProgress, _) => WireStatus::InProgress,
        (ItemStatus::Failed, _) => WireStatus::Failed,
        (ItemStatus::Declined, _) => WireStatus::Declined,
    }
}

/// The argument vector as one shell-quoted text; the script where there is no vector (it was never started).
fn command_text(argv: &[String], script: &str) -> String {
    if argv.is_empty() {
        return script.to_owned();
    }
    // Only a NUL cannot be quoted, and no argument of a process holds one.
    shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_else(|_| argv.join(" "))
}

/// Sorted by path. A moved file is a deletion and an addition: the protocol's changes have one path.
fn wire_changes(changes: &[FileChange]) -> Vec<WireChange> {
    let one = |path: &Path, kind| WireChange {
        path: path.to_string_lossy().into_owned(),
        kind,
    };
    let mut wire = Vec::new();
    for change in changes {
        match &change.moved_to {
            Some(to) => {
                wire.push(one(&change.path, ChangeKind::Delete));
                wire.push(one(to, ChangeKind::Add));
            }
            None => wire.push(one(&change.path, change.kind)),
        }
    }
    wire.sort_by(|a, b| a.path.cmp(&b.path));
    wire
}

fn wire_todo(step: &PlanStep) -> WireTodo {
    WireTodo {
        text: step.step.clone(),
        completed: step.status == StepStatus::Completed,
    }
}

const fn usage(total: &Usage) -> WireUsage {
    WireUsage {
        input_tokens: total.input_total,
        cached_input_tokens: total.input_cached,
        cache_write_input_tokens: total.cache_write,
        output_tokens: total.output_total,
        reasoning_output_tokens: total.output_reasoning,
    }
}

/// Appends one line. What a terminal would obey, or a reader take for a line end, is escaped as JSON allows: DEL, C1 and
/// the Unicode line separators.
fn put(out: &mut String, event: &WireEvent) {
    let line =
        serde_json::to_string(event).expect("plain data with text keys always has a JSON form");
    for character in line.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests;
