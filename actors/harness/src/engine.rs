//! The engine: history in, requests out. Everything is encoded once and kept as bytes (DESIGN §8b), so a request is the
//! one before plus what is new.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use interpreter_messages::CallId;
use interpreter_messages::journal::{Entry, EnvFacts, Part, Record, TurnEnd};
use interpreter_messages::model::ModelProfile;
use interpreter_messages::tool::{ToolCall, ToolOutcome};
use interpreter_messages::wire::{
    SharedEncoder, WireCall, WireCaps, WireHead, WireItem, WireRequest, WireResult, WireTool,
};
use minijinja::context;
use serde::Serialize;
use serde_json::json;

use crate::profile::Profile;
use crate::render;

/// Why a history cannot be shaped.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// The harness cannot be spoken over this API.
    #[error("the harness {harness} does not speak the API \"{wire}\"; it speaks {known}")]
    Wire {
        /// The harness.
        harness: String,
        /// The API.
        wire: &'static str,
        /// What it speaks.
        known: String,
    },
    /// A template failed on these values.
    #[error("a template of the harness failed: {0}")]
    Template(#[from] minijinja::Error),
    /// A call has no outcome: sending it would be refused by every provider.
    #[error("the call {call} has no result yet")]
    OpenCall {
        /// The call.
        call: CallId,
    },
    /// There is nothing to send.
    #[error("the conversation is empty")]
    Empty,
}

/// Shapes one session.
pub struct Engine {
    profile: Arc<Profile>,
    encoder: SharedEncoder,
    #[allow(clippy::type_complexity)]
    head: Option<(Arc<ModelProfile>, WireHead, Bytes, Arc<[WireTool]>)>,
    items: Vec<Bytes>,
    bytes: usize,
    shaped: Vec<Arc<Record>>,
    rebases: Vec<String>,
    state: State,
}

/// What shaping has to remember between two records.
#[derive(Default)]
struct State {
    facts: Option<EnvFacts>,
    cwd: PathBuf,
    text: String,
    reasoning: String,
    opaque: Vec<serde_json::Value>,
    calls: Vec<ToolCall>,
    /// Calls that were sent, and their outcomes as far as they are there.
    open: Vec<ToolCall>,
    outcomes: HashMap<CallId, ToolOutcome>,
    /// User items that wait until all results are in.
    held: Vec<Vec<Part>>,
}

#[derive(Serialize)]
struct File {
    path: String,
    folder: String,
    text: String,
    cut: bool,
}

impl Engine {
    /// An engine that has shaped nothing.
    #[must_use]
    pub fn new(profile: Arc<Profile>, encoder: SharedEncoder) -> Self {
        Self {
            profile,
            encoder,
            head: None,
            items: Vec::new(),
            bytes: 0,
            shaped: Vec::new(),
            rebases: Vec::new(),
            state: State::default(),
        }
    }

    /// History records taken in.
    #[must_use]
    pub fn shaped(&self) -> usize {
        self.shaped.len()
    }

    /// Bytes of the encoded transcript.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Why earlier bytes changed, each time.
    #[must_use]
    pub fn rebases(&self) -> &[String] {
        &self.rebases
    }

    /// Takes in what is new, and gives the request.
    ///
    /// # Errors
    /// [`ShapeError`]; nothing of the history is lost, the same records can be shaped again by a new engine.
    pub fn shape(
        &mut self,
        new: &[Arc<Record>],
        model: &Arc<ModelProfile>,
    ) -> Result<WireRequest, ShapeError> {
        self.begin(model)?;
        for record in in_order(new) {
            self.shaped.push(Arc::clone(record));
            if let Entry::Rebase { reason, .. } = &record.entry {
                self.rebase(reason.clone())?;
            } else {
                self.take(&record.entry)?;
            }
        }
        if let Some(call) = self
            .state
            .open
            .iter()
            .find(|call| !self.state.outcomes.contains_key(&call.id))
        {
            return Err(ShapeError::OpenCall {
                call: call.id.clone(),
            });
        }
        self.request()
    }

    /// Encodes the head, again when the model is another one: then all items are encoded for it too.
    fn begin(&mut self, model: &Arc<ModelProfile>) -> Result<(), ShapeError> {
        if self.head.as_ref().is_some_and(|(known, ..)| known == model) {
            return Ok(());
        }
        let wires = &self.profile.wires;
        if !wires.contains(&model.wire) || self.encoder.wire() != model.wire {
            return Err(ShapeError::Wire {
                harness: self.profile.id.clone(),
                wire: model.wire.as_str(),
                known: wires
                    .iter()
                    .map(|wire| wire.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        let again = self.head.is_some();
        let head = self.wire_head(model)?;
        let bytes = self.encoder.head(&head);
        let tools = head.tools.clone().into();
        self.head = Some((Arc::clone(model), head, bytes, tools));
        if again {
            self.rebase(format!("the model is now {}", model.id))
        } else {
            Ok(())
        }
    }

    fn wire_head(&self, model: &ModelProfile) -> Result<WireHead, ShapeError> {
        let mut params = self.profile.params.clone();
        if self.profile.engine.thinking_toggle && model.thinking_toggle {
            let kind = if model.effort.as_deref() == Some("none") {
                "disabled"
            } else {
                "enabled"
            };
            params.insert("thinking".to_owned(), json!({"type": kind}));
        }
        let render = |name: &String| -> Result<String, minijinja::Error> {
            let rendered = self
                .profile
                .templates
                .get_template(name)?
                .render(context! { model => model.id })?;
            Ok(rendered.trim().to_owned())
        };
        let system = self
            .profile
            .system
            .iter()
            .map(render)
            .collect::<Result<_, _>>()?;
        let tool = |face: &crate::profile::Face| WireTool {
            name: face.name.clone(),
            description: face.description.clone(),
            parameters: face.schema.clone(),
            strict: face.strict,
        };
        Ok(WireHead {
            model: model.id.clone(),
            params,
            system,
            tools: self.profile.tools.iter().map(tool).collect(),
        })
    }

    /// Encodes everything again.
    fn rebase(&mut self, reason: String) -> Result<(), ShapeError> {
        self.rebases.push(reason);
        self.items.clear();
        self.bytes = 0;
        self.state = State::default();
        for record in std::mem::take(&mut self.shaped) {
            if !matches!(record.entry, Entry::Rebase { .. }) {
                self.take(&record.entry)?;
            }
            self.shaped.push(record);
        }
        Ok(())
    }

    fn request(&self) -> Result<WireRequest, ShapeError> {
        let Some((_, head, bytes, tools)) = self.head.as_ref().filter(|_| !self.items.is_empty())
        else {
            return Err(ShapeError::Empty);
        };
        let mut body = Vec::with_capacity(self.items.len() + 2);
        body.push(bytes.clone());
        body.extend(self.items.iter().cloned());
        body.push(self.encoder.tail(head));
        Ok(WireRequest {
            wire: self.encoder.wire(),
            path: self.encoder.path(),
            headers: Vec::new(),
            body,
            tools: Arc::clone(tools),
        })
    }

    /// Encodes an item; the comma before it belongs to it.
    fn push(&mut self, item: &WireItem) {
        let Some((model, head, ..)) = &self.head else {
            return;
        };
        let encoded = self.encoder.item(
            item,
            WireCaps {
                vision: model.vision,
            },
        );
        let first = self.items.is_empty() && !self.encoder.head_has_items(head);
        let bytes = if first {
            encoded
        } else {
            Bytes::from([b",", &encoded[..]].concat())
        };
        self.bytes += bytes.len();
        self.items.push(bytes);
    }

    fn take(&mut self, entry: &Entry) -> Result<(), ShapeError> {
        let state = &mut self.state;
        match entry {
            Entry::Environment(facts) => return self.environment(facts),
            Entry::UserInput(input) => self.user(input.parts.clone()),
            Entry::Reasoning { text, opaque, .. } => {
                state.reasoning.push_str(text);
                state.opaque.extend(opaque.clone());
            }
            Entry::AssistantText { text, .. } => {
                if !state.text.is_empty() {
                    state.text.push('\n');
                }
                state.text.push_str(text);
            }
            Entry::ToolCall { call, .. } => state.calls.push(call.clone()),
            Entry::ResponseEnded(_) => self.response(),
            Entry::ToolOutcome { call, outcome, .. } => {
                state.outcomes.insert(call.clone(), outcome.clone());
                return self.results();
            }
            Entry::TurnEnded { end, .. } => return self.turn_ended(end),
            _ => {}
        }
        Ok(())
    }

    /// A user message: at once, or after the results that the conversation waits for.
    fn user(&mut self, parts: Vec<Part>) {
        let parts: Vec<Part> = parts
            .into_iter()
            .filter(|part| !matches!(part, Part::Text { text } if text.is_empty()))
            .collect();
        if parts.is_empty() {
            return;
        }
        if self.state.open.is_empty() {
            self.push(&WireItem::User(parts));
        } else {
            self.state.held.push(parts);
        }
    }

    fn response(&mut self) {
        let state = &mut self.state;
        let text = std::mem::take(&mut state.text);
        let reasoning = std::mem::take(&mut state.reasoning);
        let opaque = std::mem::take(&mut state.opaque);
        let calls = std::mem::take(&mut state.calls);
        if text.is_empty() && calls.is_empty() {
            return;
        }
        state.open.clone_from(&calls);
        let echo = self
            .head
            .as_ref()
            .is_some_and(|(model, ..)| model.echo_reasoning);
        let wire_call = |call: ToolCall| WireCall {
            id: call.id.0,
            name: call.name,
            arguments: call.arguments,
        };
        self.push(&WireItem::Assistant {
            text,
            reasoning: (echo && !reasoning.is_empty()).then_some(reasoning),
            opaque,
            calls: calls.into_iter().map(wire_call).collect(),
        });
    }

    /// All results of a response go out together, in call order, when the last one is there.
    fn results(&mut self) -> Result<(), ShapeError> {
        let state = &mut self.state;
        if state.open.is_empty()
            || !state
                .open
                .iter()
                .all(|call| state.outcomes.contains_key(&call.id))
        {
            return Ok(());
        }
        let mut results = Vec::new();
        for call in std::mem::take(&mut state.open) {
            if let Some(outcome) = state.outcomes.remove(&call.id) {
                let (parts, is_error) = render::render(&self.profile, &call, &outcome, &state.cwd)?;
                results.push(WireResult {
                    id: call.id.0,
                    name: call.name,
                    parts,
                    is_error,
                });
            }
        }
        let held = std::mem::take(&mut state.held);
        self.push(&WireItem::Results(results));
        for parts in held {
            self.push(&WireItem::User(parts));
        }
        Ok(())
    }

    fn environment(&mut self, facts: &EnvFacts) -> Result<(), ShapeError> {
        self.state.cwd.clone_from(&facts.cwd);
        let first = self.state.facts.is_none();
        let lists = if first {
            self.profile.context.clone()
        } else {
            vec![self.profile.update.clone()]
        };
        self.state.facts = Some(facts.clone());
        let file = |file: &interpreter_messages::journal::Instruction| File {
            path: file.path.display().to_string(),
            folder: file
                .path
                .parent()
                .map(|folder| folder.display().to_string())
                .unwrap_or_default(),
            text: file.text.trim_end().to_owned(),
            cut: file.cut,
        };
        let variables = context! {
            cwd => facts.cwd.display().to_string(),
            shell => facts.shell,
            date => facts.date,
            timezone => facts.timezone,
            os => facts.os,
            os_version => facts.os_version,
            git => facts.git,
            sandbox => facts.sandbox.as_str(),
            roots => facts.roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
            network => facts.network,
            approval => facts.approval.as_str(),
            instructions => facts.instructions.iter().map(file).collect::<Vec<_>>(),
        };
        for list in lists {
            let mut parts = Vec::new();
            for name in list {
                let text = self
                    .profile
                    .templates
                    .get_template(&name)?
                    .render(&variables)?;
                parts.push(Part::Text {
                    text: text.trim().to_owned(),
                });
            }
            self.user(parts);
        }
        Ok(())
    }

    fn turn_ended(&mut self, end: &TurnEnd) -> Result<(), ShapeError> {
        let (name, variables) = match end {
            TurnEnd::Completed => return Ok(()),
            TurnEnd::Interrupted { by } => (&self.profile.interrupted, context! { by => by }),
            TurnEnd::Failed(error) => (
                &self.profile.failed,
                context! { error => error.to_string() },
            ),
        };
        if let Some(name) = name {
            let text = self
                .profile
                .templates
                .get_template(name)?
                .render(variables)?;
            self.user(vec![Part::Text {
                text: text.trim().to_owned(),
            }]);
        }
        Ok(())
    }
}

/// What the user said is journalled first, the surroundings after it; the model is told of the surroundings first. The
/// two are always new together, so this does not depend on how a history is cut.
fn in_order(new: &[Arc<Record>]) -> Vec<&Arc<Record>> {
    let mut ordered = Vec::with_capacity(new.len());
    let mut said = Vec::new();
    for record in new {
        match &record.entry {
            Entry::UserInput(_) => said.push(record),
            Entry::Environment(_) => ordered.push(record),
            _ => {
                ordered.append(&mut said);
                ordered.push(record);
            }
        }
    }
    ordered.append(&mut said);
    ordered
}

#[cfg(test)]
mod tests;
