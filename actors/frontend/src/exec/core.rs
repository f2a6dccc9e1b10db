//! What a run does with what it hears. Pure: no IO, no clock, no actor.

use interpreter_messages::approval::{ApprovalRequest, Decision};
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::model::Prices;
use interpreter_messages::show::{
    Asked, Line, Questions, RenderOptions, Style, paint, question_lines,
};
use interpreter_messages::ui::{Event, ItemBody, Numbered};
use interpreter_messages::{ApprovalId, ClientId, TurnId, UiId};

use super::human::{Human, OUTPUT_COLUMNS, OUTPUT_LINES, Printed};
use super::json::JsonLines;
use super::{ExecMode, ExecOutcome};

/// What the actor does.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Text for stdout.
    Out(String),
    /// Text for stderr.
    Err(String),
    /// Sends the prompt.
    Submit,
    /// Ends the turn.
    Interrupt { now: bool },
    /// Answers a question.
    Answer { id: ApprovalId, decision: Decision },
    /// Waits for a person's answer to this question, which was just shown.
    Ask(ApprovalId),
    /// Stops waiting for it.
    StopAsking,
    /// Attaches again.
    Attach,
    /// The run is over.
    Finish,
}

/// The state of a run; outlives the actor.
#[derive(Debug)]
pub(super) struct Core {
    view: View,
    /// Number of the last event shown.
    last: u64,
    /// This attachment's id.
    ui: Option<UiId>,
    accepted: bool,
    /// The turn whose events are shown.
    current: Option<TurnId>,
    /// The turn that took the prompt.
    own: Option<TurnId>,
    interrupting: Option<bool>,
    questions: Questions,
    last_message: Option<String>,
    outcome: Option<ExecOutcome>,
}

#[derive(Debug)]
enum View {
    Human(Box<Human>),
    Json(Box<JsonLines>),
}

impl View {
    fn event(&mut self, event: &Event) -> Printed {
        match self {
            Self::Human(human) => human.event(event),
            Self::Json(json) => Printed {
                out: json.lines(event),
                err: error_text(event),
            },
        }
    }

    fn paint(&self, lines: &[Line]) -> String {
        match self {
            Self::Human(human) => human.paint(lines),
            Self::Json(_) => paint(lines, false),
        }
    }
}

/// With `--json`, a failure is on stderr too: callers show that when the exit code is not 0.
fn error_text(event: &Event) -> String {
    match event {
        Event::TurnEnded {
            end: TurnEnd::Failed(error),
            ..
        }
        | Event::Broken { error } => {
            paint(&[Line::new(&format!("error: {error}"), Style::Bad)], false)
        }
        _ => String::new(),
    }
}

impl Core {
    pub(super) fn new(mode: ExecMode, prices: Option<Prices>) -> Self {
        let view = match mode {
            ExecMode::Human { color, stdout_tty } => {
                let options = RenderOptions {
                    output_lines: OUTPUT_LINES,
                    columns: OUTPUT_COLUMNS,
                    prices,
                    questions: false,
                };
                View::Human(Box::new(Human::new(options, color, stdout_tty)))
            }
            ExecMode::Json => View::Json(Box::default()),
        };
        Self {
            view,
            last: 0,
            ui: None,
            accepted: false,
            current: None,
            own: None,
            interrupting: None,
            questions: Questions::default(),
            last_message: None,
            outcome: None,
        }
    }

    /// Number of the last event shown: attach from here.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    pub(super) const fn ui(&self) -> Option<UiId> {
        self.ui
    }

    pub(super) const fn outcome(&self) -> Option<&ExecOutcome> {
        self.outcome.as_ref()
    }

    /// Attached, for the first time or again. Approval shows what is pending to a newcomer.
    pub(super) fn attached(&mut self, ui: UiId) -> Vec<Effect> {
        self.ui = Some(ui);
        self.questions.forget_open();
        let mut effects = vec![Effect::StopAsking];
        if !self.accepted && self.interrupting.is_none() {
            effects.push(Effect::Submit);
        }
        effects
    }

    /// What a drain gave.
    pub(super) fn drained(&mut self, numbered: &Numbered, client: &ClientId) -> Vec<Effect> {
        let event = &numbered.event;
        match event {
            // Told to this UI alone, with the number of the event before.
            Event::SessionReady { .. } => return self.show(event),
            // Not asked for, and without a number of their own.
            Event::Delta { .. } | Event::Resync { .. } => return Vec::new(),
            _ => {}
        }
        if numbered.number <= self.last {
            return Vec::new();
        }
        let effects = self.event(numbered, client);
        self.last = numbered.number;
        effects
    }

    /// The sink has let this UI go.
    pub(super) fn lost(&self) -> Vec<Effect> {
        vec![Effect::Attach]
    }

    fn event(&mut self, numbered: &Numbered, client: &ClientId) -> Vec<Effect> {
        let event = &numbered.event;
        if self.outcome.is_some() || !self.concerns(numbered) {
            return Vec::new();
        }
        match event {
            Event::TurnStarted { turn } => self.current = Some(*turn),
            Event::Accepted {
                client: whose,
                turn,
                ..
            } if whose == client => {
                self.accepted = true;
                self.own = Some(*turn);
            }
            Event::ItemCompleted { item } => {
                if let ItemBody::Message { text } = &item.body {
                    self.last_message = Some(text.clone());
                }
            }
            _ => {}
        }
        let mut effects = self.show(event);
        match event {
            Event::TurnEnded { turn, end, .. }
                if self.own == Some(*turn) || (!self.accepted && numbered.seq.is_none()) =>
            {
                effects.extend(self.finish(i32::from(*end != TurnEnd::Completed)));
            }
            Event::Broken { .. } => effects.extend(self.finish(1)),
            _ => {}
        }
        effects
    }

    /// Whether an event is of a turn that began in sight. A resumed session first closes what an earlier process left
    /// open; that is not ours. But a turn that never came to begin (nothing can be written) is: its end is no record's.
    fn concerns(&self, numbered: &Numbered) -> bool {
        match &numbered.event {
            Event::ItemStarted { item }
            | Event::ItemUpdated { item }
            | Event::ItemCompleted { item } => self.current == Some(item.turn),
            Event::TurnEnded { turn, .. } => {
                self.current == Some(*turn) || (!self.accepted && numbered.seq.is_none())
            }
            _ => true,
        }
    }

    fn show(&mut self, event: &Event) -> Vec<Effect> {
        let Printed { out, err } = self.view.event(event);
        let mut effects = Vec::new();
        if !err.is_empty() {
            effects.push(Effect::Err(err));
        }
        if !out.is_empty() {
            effects.push(Effect::Out(out));
        }
        effects
    }

    /// The timer: repeats what may have been lost in a crash.
    pub(super) fn tick(&self) -> Vec<Effect> {
        match self.interrupting {
            _ if self.outcome.is_some() || self.ui.is_none() => Vec::new(),
            Some(now) => vec![Effect::Interrupt { now }],
            None if !self.accepted => vec![Effect::Submit],
            None => Vec::new(),
        }
    }

    /// Ctrl-C or a signal. Before the prompt was taken there is no turn whose end could be awaited.
    pub(super) fn signal(&mut self, again: bool) -> Vec<Effect> {
        self.interrupting = Some(again);
        let mut effects = vec![Effect::Interrupt { now: again }];
        if !self.accepted || again {
            effects.extend(self.give_up());
        }
        effects
    }

    /// Nobody reads stdout any more.
    pub(super) fn unread(&mut self) -> Vec<Effect> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        self.signal(false)
    }

    /// The program ends, or the UI was taken away.
    pub(super) fn give_up(&mut self) -> Vec<Effect> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        let end = Event::TurnEnded {
            turn: self.own.unwrap_or_default(),
            end: TurnEnd::Interrupted {
                by: "user".to_owned(),
            },
            total: Default::default(),
        };
        let mut effects = self.show(&end);
        effects.extend(self.finish(1));
        effects
    }

    fn finish(&mut self, exit_code: i32) -> Vec<Effect> {
        self.outcome = Some(ExecOutcome {
            exit_code,
            last_message: self.last_message.take(),
        });
        vec![Effect::StopAsking, Effect::Finish]
    }

    /// A question that a person may answer here.
    pub(super) fn ask(&mut self, request: ApprovalRequest) -> Vec<Effect> {
        let id = request.id.clone();
        match self.questions.asked(request) {
            Asked::Pose => self.pose(),
            Asked::Later => Vec::new(),
            Asked::Repeat(decision) => vec![Effect::Answer { id, decision }],
        }
    }

    /// Shows the current question and waits for its answer.
    fn pose(&self) -> Vec<Effect> {
        let Some(request) = self.questions.current() else {
            return Vec::new();
        };
        vec![
            Effect::Err(self.view.paint(&question_lines(request))),
            Effect::Ask(request.id.clone()),
        ]
    }

    /// A person answered.
    pub(super) fn answered(&mut self, id: &ApprovalId, decision: Decision) -> Vec<Effect> {
        if !self.questions.answer(id, decision.clone()) {
            return Vec::new();
        }
        let id = id.clone();
        let mut effects = vec![Effect::Answer { id, decision }];
        effects.extend(self.pose());
        effects
    }

    /// A question is settled, here or elsewhere.
    pub(super) fn resolved(&mut self, id: &ApprovalId) -> Vec<Effect> {
        if !self.questions.resolved(id) {
            return Vec::new();
        }
        let mut effects = vec![Effect::StopAsking];
        effects.extend(self.pose());
        effects
    }
}

#[cfg(test)]
mod tests;
