//! What user interfaces see of a record: a pure function of the record and of the conversation before it.

use interpreter_messages::journal::{Entry, Record};
use interpreter_messages::model::Usage;
use interpreter_messages::tool::{Intent, Meaning, Operation, ToolCall, ToolOutcome, ToolOutput};
use interpreter_messages::ui::{Event, Item, ItemBody, ItemStatus};
use interpreter_messages::{CallId, ItemId, StreamId, TurnId};

use super::conversation::{Conversation, OpenCall};

/// Builds events over a batch of records: items of a response get the ids that its deltas had.
#[derive(Debug, Default)]
pub struct Narrator {
    texts: usize,
    reasonings: usize,
    stream: Option<StreamId>,
}

impl Narrator {
    /// The events of a record that is about to be folded into `before`.
    pub fn events(&mut self, record: &Record, before: &Conversation) -> Vec<Event> {
        match &record.entry {
            Entry::TurnStarted(context) => vec![Event::TurnStarted { turn: context.turn }],
            Entry::UserInput(input) => vec![Event::Accepted {
                client: input.client.clone(),
                turn: input.turn,
                parts: input.parts.clone(),
            }],
            Entry::RequestStarted { stream } => {
                *self = Self {
                    stream: Some(*stream),
                    ..Self::default()
                };
                Vec::new()
            }
            Entry::Reasoning { turn, text, .. } => {
                let id = self.stream.map_or_else(
                    || ItemId::new("reasoning"),
                    |s| ItemId::reasoning(s, self.reasonings),
                );
                self.reasonings += 1;
                vec![completed(
                    id,
                    *turn,
                    ItemBody::Reasoning { text: text.clone() },
                )]
            }
            Entry::AssistantText { turn, text } => {
                let id = self
                    .stream
                    .map_or_else(|| ItemId::new("text"), |s| ItemId::text(s, self.texts));
                self.texts += 1;
                vec![completed(
                    id,
                    *turn,
                    ItemBody::Message { text: text.clone() },
                )]
            }
            Entry::ToolCall { turn, call } => started_look(*turn, call).into_iter().collect(),
            Entry::ResponseEnded(end) => {
                let Some(response) = end.usage else {
                    return Vec::new();
                };
                let mut total: Usage = before.usage;
                total.add(&response);
                vec![Event::Usage { response, total }]
            }
            Entry::ToolIntent { turn, call, intent } => intended(*turn, call, intent, before),
            Entry::ToolOutcome {
                turn,
                call,
                outcome,
            } => match before.call(call) {
                Some(known) => outcome_events(*turn, known, outcome, before),
                None => Vec::new(),
            },
            Entry::TurnEnded { turn, end } => {
                vec![Event::TurnEnded {
                    turn: *turn,
                    end: end.clone(),
                    total: before.usage,
                }]
            }
            Entry::Notice { text } => vec![Event::Notice { text: text.clone() }],
            Entry::Meta(_)
            | Entry::Environment(_)
            | Entry::ApprovalRequested(_)
            | Entry::ApprovalResolved { .. }
            | Entry::Rebase { .. }
            | Entry::Foreign { .. } => Vec::new(),
        }
    }
}

fn completed(id: ItemId, turn: TurnId, body: ItemBody) -> Event {
    Event::ItemCompleted {
        item: Item { id, turn, body },
    }
}

/// A read-only call shows at once what it looks at.
fn started_look(turn: TurnId, call: &ToolCall) -> Option<Event> {
    let Meaning::Run(operation) = &call.meaning else {
        return None;
    };
    let what = look(operation)?;
    let body = ItemBody::Explored {
        what,
        status: ItemStatus::InProgress,
    };
    Some(Event::ItemStarted {
        item: Item {
            id: ItemId::call(&call.id),
            turn,
            body,
        },
    })
}

fn look(operation: &Operation) -> Option<String> {
    let dot = || ".".to_owned();
    match operation {
        Operation::Read(read) => Some(format!("read {}", read.path.display())),
        Operation::List(list) => Some(format!(
            "list {}",
            list.path
                .as_ref()
                .map_or_else(dot, |path| path.display().to_string())
        )),
        Operation::Glob(glob) => Some(format!("find {}", glob.pattern)),
        Operation::Grep(grep) => Some(format!("search {}", grep.pattern)),
        Operation::ViewImage(view) => Some(format!("look at {}", view.path.display())),
        _ => None,
    }
}

fn script(operation: &Operation) -> String {
    match operation {
        Operation::Exec(exec) => exec.command.clone(),
        Operation::WriteStdin(write) => write.chars.clone(),
        _ => String::new(),
    }
}

fn intended(turn: TurnId, call: &CallId, intent: &Intent, before: &Conversation) -> Vec<Event> {
    let id = ItemId::call(call);
    let body = match intent {
        Intent::Files { changes } => ItemBody::FileChange {
            changes: changes.clone(),
            status: ItemStatus::InProgress,
        },
        Intent::Process { argv, cwd, .. } => ItemBody::Command {
            argv: argv.clone(),
            script: before
                .call(call)
                .and_then(|known| operation(known))
                .map(script)
                .unwrap_or_default(),
            cwd: cwd.clone(),
            status: ItemStatus::InProgress,
            output: None,
            process: None,
        },
        Intent::Stdin { .. } => return Vec::new(),
    };
    vec![Event::ItemStarted {
        item: Item { id, turn, body },
    }]
}

fn operation(call: &OpenCall) -> Option<&Operation> {
    match &call.call.meaning {
        Meaning::Run(operation) => Some(operation),
        Meaning::Invalid(_) => None,
    }
}

fn outcome_events(
    turn: TurnId,
    call: &OpenCall,
    outcome: &ToolOutcome,
    before: &Conversation,
) -> Vec<Event> {
    let id = ItemId::call(&call.call.id);
    let Some(operation) = operation(call) else {
        return vec![completed(id, turn, tool_error(call, outcome))];
    };
    if let (
        Operation::Plan(_),
        ToolOutcome::Ok {
            output: ToolOutput::Plan { plan },
        },
    ) = (operation, outcome)
    {
        let body = ItemBody::Plan {
            steps: plan.steps.clone(),
        };
        let item = Item {
            id: ItemId::plan(turn),
            turn,
            body,
        };
        let planned = before.open.as_ref().is_some_and(|open| open.planned);
        return vec![if planned {
            Event::ItemUpdated { item }
        } else {
            Event::ItemStarted { item }
        }];
    }
    let status = status(outcome);
    let body = match (operation, &call.intent) {
        (Operation::Exec(exec), intent) => {
            let (argv, cwd) = match intent {
                Some(Intent::Process { argv, cwd, .. }) => (argv.clone(), cwd.clone()),
                _ if matches!(outcome, ToolOutcome::Denied { .. }) => (
                    vec![exec.command.clone()],
                    exec.workdir.clone().unwrap_or_default(),
                ),
                _ => return vec![completed(id, turn, tool_error(call, outcome))],
            };
            let output = exec_output(outcome).cloned();
            let process = output.as_ref().and_then(|output| output.process);
            ItemBody::Command {
                argv,
                script: exec.command.clone(),
                cwd,
                status,
                output,
                process,
            }
        }
        (Operation::WriteStdin(_), _) if matches!(outcome, ToolOutcome::Ok { .. }) => {
            return Vec::new();
        }
        (_, Some(Intent::Files { changes })) => {
            let changes = match outcome {
                ToolOutcome::Ok {
                    output: ToolOutput::Changed { changes },
                } => changes.clone(),
                _ => changes.clone(),
            };
            ItemBody::FileChange { changes, status }
        }
        _ => match look(operation) {
            Some(what) => ItemBody::Explored { what, status },
            None => tool_error(call, outcome),
        },
    };
    vec![completed(id, turn, body)]
}

fn exec_output(outcome: &ToolOutcome) -> Option<&interpreter_messages::tool::ExecOutput> {
    match outcome {
        ToolOutcome::Ok {
            output: ToolOutput::Exec(output),
        }
        | ToolOutcome::TimedOut { output, .. } => Some(output),
        ToolOutcome::Aborted { output, .. } => output.as_ref(),
        _ => None,
    }
}

fn status(outcome: &ToolOutcome) -> ItemStatus {
    match outcome {
        ToolOutcome::Ok {
            output: ToolOutput::Exec(output),
        } => match output.exit {
            Some(exit) if exit.shell_code() != 0 => ItemStatus::Failed,
            _ => ItemStatus::Completed,
        },
        ToolOutcome::Ok { .. } => ItemStatus::Completed,
        ToolOutcome::Denied { .. } => ItemStatus::Declined,
        ToolOutcome::Failed { .. }
        | ToolOutcome::TimedOut { .. }
        | ToolOutcome::Aborted { .. }
        | ToolOutcome::Crashed { .. } => ItemStatus::Failed,
    }
}

fn tool_error(call: &OpenCall, outcome: &ToolOutcome) -> ItemBody {
    let error = match outcome {
        ToolOutcome::Failed { error } => error.clone(),
        ToolOutcome::Denied { reason } | ToolOutcome::Aborted { reason, .. } => reason.clone(),
        ToolOutcome::TimedOut { after_ms, .. } => format!("timed out after {after_ms} ms"),
        ToolOutcome::Crashed { cause, .. } => cause.clone(),
        ToolOutcome::Ok { .. } => String::new(),
    };
    ItemBody::ToolError {
        tool: call.call.name.clone(),
        error,
    }
}
