//! [`Conversation`]: what the records of a journal add up to.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use interpreter_messages::journal::{Entry, EnvFacts, Finish, Record, TurnEnd};
use interpreter_messages::model::Usage;
use interpreter_messages::tool::{Intent, ToolCall, ToolOutcome, ToolOutput};
use interpreter_messages::{CallId, ClientId, RequestNo, Seq, TurnId};

/// The fold of a journal. The same function builds it while running and on replay.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Records that the harness shapes, in order.
    pub history: Vec<Arc<Record>>,
    /// The last record seen.
    pub seq: Option<Seq>,
    /// Call ids in use.
    pub calls: Arc<HashSet<String>>,
    /// Inputs taken.
    pub clients: HashSet<ClientId>,
    /// Whole responses: the number of the next request.
    pub responses: RequestNo,
    /// Tokens of the session.
    pub usage: Usage,
    /// The last turn that began.
    pub turn: TurnId,
    /// How the last turn ended.
    pub last_end: Option<TurnEnd>,
    /// The facts that the model was last told.
    pub facts: Option<EnvFacts>,
    /// Files as the model last saw them.
    pub seen: BTreeMap<PathBuf, Option<String>>,
    /// The turn that has no end yet.
    pub open: Option<OpenTurn>,
}

/// A turn without an end.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    /// Which.
    pub id: TurnId,
    /// Requests begun, re-asks included.
    pub requests: u32,
    /// Attempts at the response that is not there yet.
    pub attempts: u32,
    /// Calls of the last response, in order.
    pub calls: Vec<OpenCall>,
    /// How the last response ended; `None` before the first, and again when an input came after it.
    pub finish: Option<Finish>,
    /// Whether the last response said or called anything.
    pub spoke: bool,
    /// Responses in a row that were empty.
    pub empty: u32,
    /// The same failing call in a row: its name and arguments, and how often.
    pub failing: Option<(String, u32)>,
    /// Whether a plan was shown in this turn.
    pub planned: bool,
}

impl OpenTurn {
    fn new(id: TurnId) -> Self {
        Self {
            id,
            requests: 0,
            attempts: 0,
            calls: Vec::new(),
            finish: None,
            spoke: false,
            empty: 0,
            failing: None,
            planned: false,
        }
    }

    /// Calls that have no outcome.
    pub fn unanswered(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter().filter(|call| !call.answered)
    }
}

/// A call of the last response.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// Set once it may have acted.
    pub intent: Option<Intent>,
    /// Whether its outcome is in the journal.
    pub answered: bool,
}

impl Conversation {
    /// Folds a whole journal.
    #[must_use]
    pub fn replay(records: &[Arc<Record>]) -> Self {
        let mut conversation = Self::default();
        for record in records {
            conversation.apply(record);
        }
        conversation
    }

    /// A call of the open turn.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&OpenCall> {
        self.open
            .as_ref()?
            .calls
            .iter()
            .find(|call| call.call.id == *id)
    }

    /// Takes one record in. Records that make no sense where they stand (of a damaged file) change nothing.
    pub fn apply(&mut self, record: &Arc<Record>) {
        self.seq = Some(record.seq);
        if record.entry.is_history() {
            self.history.push(Arc::clone(record));
        }
        match &record.entry {
            Entry::TurnStarted(context) => {
                self.turn = context.turn;
                self.open = Some(OpenTurn::new(context.turn));
            }
            Entry::Environment(facts) => self.facts = Some(facts.clone()),
            Entry::UserInput(input) => {
                self.clients.insert(input.client.clone());
                if let Some(open) = &mut self.open {
                    open.finish = None;
                }
            }
            Entry::RequestStarted { stream } => {
                if let Some(open) = &mut self.open {
                    open.requests += 1;
                    open.attempts = stream.attempt + 1;
                    open.calls.clear();
                    open.spoke = false;
                }
            }
            Entry::AssistantText { .. } => {
                if let Some(open) = &mut self.open {
                    open.spoke = true;
                }
            }
            Entry::ToolCall { call, .. } => {
                Arc::make_mut(&mut self.calls).insert(call.id.0.clone());
                if let Some(open) = &mut self.open {
                    open.spoke = true;
                    let call = call.clone();
                    open.calls.push(OpenCall {
                        call,
                        intent: None,
                        answered: false,
                    });
                }
            }
            Entry::ResponseEnded(end) => {
                self.responses = self.responses.next();
                if let Some(usage) = &end.usage {
                    self.usage.add(usage);
                }
                if let Some(open) = &mut self.open {
                    open.attempts = 0;
                    open.finish = Some(end.finish.clone());
                    open.empty = if open.spoke { 0 } else { open.empty + 1 };
                }
            }
            Entry::ToolIntent { call, intent, .. } => {
                if let Some(open) = self.open_call(call) {
                    open.intent = Some(intent.clone());
                }
            }
            Entry::ToolOutcome { call, outcome, .. } => self.answered(call, outcome),
            Entry::TurnEnded { end, .. } => {
                self.open = None;
                self.last_end = Some(end.clone());
            }
            Entry::Meta(_)
            | Entry::Reasoning { .. }
            | Entry::ApprovalRequested(_)
            | Entry::ApprovalResolved { .. }
            | Entry::Rebase { .. }
            | Entry::Notice { .. }
            | Entry::Foreign { .. } => {}
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut OpenCall> {
        self.open
            .as_mut()?
            .calls
            .iter_mut()
            .find(|call| call.call.id == *id)
    }

    fn answered(&mut self, id: &CallId, outcome: &ToolOutcome) {
        match outcome {
            ToolOutcome::Ok {
                output: ToolOutput::Text(text),
            } => {
                self.seen.insert(text.path.clone(), Some(text.hash.clone()));
            }
            ToolOutcome::Ok {
                output: ToolOutput::Changed { changes },
            } => {
                for change in changes {
                    self.seen.insert(change.path.clone(), change.after.clone());
                    if let Some(moved) = &change.moved_to {
                        self.seen.insert(change.path.clone(), None);
                        self.seen.insert(moved.clone(), change.after.clone());
                    }
                }
            }
            _ => {}
        }
        let Some(open) = &mut self.open else { return };
        let Some(call) = open.calls.iter_mut().find(|call| call.call.id == *id) else {
            return;
        };
        call.answered = true;
        if let ToolOutcome::Ok { output } = outcome {
            open.planned |= matches!(output, ToolOutput::Plan { .. });
            open.failing = None;
            return;
        }
        let key = format!("{} {}", call.call.name, call.call.arguments);
        open.failing = match open.failing.take() {
            Some((last, times)) if last == key => Some((last, times + 1)),
            _ => Some((key, 1)),
        };
    }
}
