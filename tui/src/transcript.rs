//! A journal as lines for people: the conversation so far, shown when a session is resumed. Pure.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interpreter_messages::journal::{Entry, Record, TurnEnd};
use interpreter_messages::model::Usage;
use interpreter_messages::show::{Line, RenderOptions, Renderer};
use interpreter_messages::tool::{
    ExitStatus, Intent, InvalidCall, Meaning, Operation, ToolCall, ToolOutcome, ToolOutput,
};
use interpreter_messages::ui::{Event, Item, ItemBody, ItemStatus};
use interpreter_messages::{CallId, ItemId, TurnId};

/// Last lines of each command's output in a conversation of the past.
const OUTPUT_LINES: usize = 3;

/// The conversation; lines of output are cut to `width` characters.
#[must_use]
pub fn render(records: &[Arc<Record>], width: usize) -> Vec<Line> {
    let options = RenderOptions {
        output_lines: OUTPUT_LINES,
        columns: width,
        prices: None,
        questions: false,
    };
    let mut fold = Fold {
        renderer: Renderer::new(options),
        cwd: PathBuf::new(),
        calls: HashMap::new(),
        intents: HashMap::new(),
    };
    let mut lines = Vec::new();
    for record in records {
        if let Some(event) = fold.event(&record.entry) {
            lines.extend(fold.renderer.lines(&event));
        }
    }
    lines
}

/// What must be kept of earlier records to understand the next one.
struct Fold<'a> {
    renderer: Renderer,
    cwd: PathBuf,
    calls: HashMap<&'a CallId, &'a ToolCall>,
    intents: HashMap<&'a CallId, &'a Intent>,
}

impl<'a> Fold<'a> {
    fn event(&mut self, entry: &'a Entry) -> Option<Event> {
        match entry {
            Entry::Meta(meta) => {
                self.move_to(&meta.cwd);
                None
            }
            Entry::TurnStarted(context) => {
                self.move_to(&context.cwd);
                None
            }
            Entry::UserInput(input) => Some(Event::Accepted {
                client: input.client.clone(),
                turn: input.turn,
                parts: input.parts.clone(),
            }),
            Entry::AssistantText { turn, text } => Some(completed(
                *turn,
                "text",
                ItemBody::Message { text: text.clone() },
            )),
            Entry::Reasoning { turn, text, .. } if !text.trim().is_empty() => Some(completed(
                *turn,
                "reasoning",
                ItemBody::Reasoning { text: text.clone() },
            )),
            Entry::ToolCall { call, .. } => {
                self.calls.insert(&call.id, call);
                None
            }
            Entry::ToolIntent { call, intent, .. } => {
                self.intents.insert(call, intent);
                None
            }
            Entry::ToolOutcome {
                turn,
                call,
                outcome,
            } => {
                let intent = self.intents.remove(call);
                let made = self.calls.remove(call)?;
                let body = body(made, intent, outcome, &self.cwd);
                Some(completed(*turn, call.as_str(), body))
            }
            Entry::TurnEnded { turn, end } if *end != TurnEnd::Completed => {
                Some(Event::TurnEnded {
                    turn: *turn,
                    end: end.clone(),
                    total: Usage::default(),
                })
            }
            Entry::Notice { text } => Some(Event::Notice { text: text.clone() }),
            _ => None,
        }
    }

    fn move_to(&mut self, cwd: &Path) {
        if self.cwd != cwd {
            self.cwd = cwd.to_owned();
            self.renderer.move_to(cwd);
        }
    }
}

fn completed(turn: TurnId, id: &str, body: ItemBody) -> Event {
    Event::ItemCompleted {
        item: Item {
            id: ItemId::new(id),
            turn,
            body,
        },
    }
}

/// What a call was, as an item.
fn body(call: &ToolCall, intent: Option<&Intent>, outcome: &ToolOutcome, cwd: &Path) -> ItemBody {
    let failed = |error: String| ItemBody::ToolError {
        tool: call.name.clone(),
        error,
    };
    let operation = match &call.meaning {
        Meaning::Run(operation) => operation,
        Meaning::Invalid(invalid) => return failed(invalid_text(invalid)),
    };
    match (operation, outcome) {
        (_, ToolOutcome::Failed { error }) => failed(error.clone()),
        (_, ToolOutcome::Crashed { cause, .. }) => failed(format!("crashed: {cause}")),
        (Operation::Exec(exec), _) => command(exec.command.clone(), intent, outcome, cwd),
        (Operation::WriteStdin(write), _) => {
            let script = format!("(to command {}) {}", write.process, write.chars);
            command(script, intent, outcome, cwd)
        }
        (Operation::Plan(plan), _) => ItemBody::Plan {
            steps: plan.steps.clone(),
        },
        (Operation::Write(_) | Operation::Edit(_) | Operation::Patch(_), _) => {
            let changes = match (outcome, intent) {
                (
                    ToolOutcome::Ok {
                        output: ToolOutput::Changed { changes },
                    },
                    _,
                )
                | (_, Some(Intent::Files { changes })) => changes.clone(),
                _ => return failed(plain(outcome).to_owned()),
            };
            ItemBody::FileChange {
                changes,
                status: status(outcome),
            }
        }
        _ => ItemBody::Explored {
            what: looked_at(operation),
            status: status(outcome),
        },
    }
}

fn command(script: String, intent: Option<&Intent>, outcome: &ToolOutcome, cwd: &Path) -> ItemBody {
    let (argv, cwd) = match intent {
        Some(Intent::Process { argv, cwd, .. }) => (argv.clone(), cwd.clone()),
        _ => (Vec::new(), cwd.to_owned()),
    };
    let output = match outcome {
        ToolOutcome::Ok {
            output: ToolOutput::Exec(output),
        }
        | ToolOutcome::TimedOut { output, .. }
        | ToolOutcome::Aborted {
            output: Some(output),
            ..
        } => Some(output.clone()),
        _ => None,
    };
    let failed = output
        .as_ref()
        .and_then(|output| output.exit)
        .is_some_and(|exit| exit != ExitStatus::Code(0));
    ItemBody::Command {
        argv,
        script,
        cwd,
        status: if failed {
            ItemStatus::Failed
        } else {
            status(outcome)
        },
        process: output.as_ref().and_then(|output| output.process),
        output,
    }
}

const fn status(outcome: &ToolOutcome) -> ItemStatus {
    match outcome {
        ToolOutcome::Ok { .. } => ItemStatus::Completed,
        ToolOutcome::Denied { .. } => ItemStatus::Declined,
        ToolOutcome::Failed { .. }
        | ToolOutcome::TimedOut { .. }
        | ToolOutcome::Aborted { .. }
        | ToolOutcome::Crashed { .. } => ItemStatus::Failed,
    }
}

fn plain(outcome: &ToolOutcome) -> &str {
    match outcome {
        ToolOutcome::Denied { .. } => "declined",
        ToolOutcome::Aborted { .. } => "interrupted",
        ToolOutcome::TimedOut { .. } => "out of time",
        ToolOutcome::Ok { .. } => "done",
        ToolOutcome::Failed { error } => error,
        ToolOutcome::Crashed { cause, .. } => cause,
    }
}

fn looked_at(operation: &Operation) -> String {
    let name = operation.name();
    let path = |path: &Option<PathBuf>| {
        path.as_ref()
            .map_or_else(String::new, |path| format!(" in {}", path.display()))
    };
    match operation {
        Operation::Read(read) => format!("{name} {}", read.path.display()),
        Operation::ViewImage(view) => format!("{name} {}", view.path.display()),
        Operation::List(list) => match &list.path {
            Some(path) => format!("{name} {}", path.display()),
            None => format!("{name} ."),
        },
        Operation::Glob(glob) => format!("{name} {}{}", glob.pattern, path(&glob.path)),
        Operation::Grep(grep) => format!("{name} {}{}", grep.pattern, path(&grep.path)),
        _ => name.to_owned(),
    }
}

fn invalid_text(invalid: &InvalidCall) -> String {
    match invalid {
        InvalidCall::UnknownTool { .. } => "there is no such tool".to_owned(),
        InvalidCall::BadArguments { error, .. } => error.clone(),
    }
}

#[cfg(test)]
mod tests;
