//! What the text mode does with what it hears and what is typed. Pure: no IO, no clock, no actor.

use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::approval::{ApprovalRequest, Decision};
use interpreter_messages::journal::{Part, Record};
use interpreter_messages::model::Prices;
use interpreter_messages::show::{
    Asked, Line, Questions, RenderOptions, Renderer, Style, parse_answer, question_lines,
};
use interpreter_messages::ui::{Event, Numbered};
use interpreter_messages::{ApprovalId, ClientId, TurnId, UiId};
use tokio::time::Instant;

use super::lines::Typed;
use super::screen::Screen;
use crate::transcript;

/// Last lines of each command's output.
const OUTPUT_LINES: usize = 8;
/// An answer counts only when the question has been on the screen this long: what came sooner was meant for
/// something else.
const SETTLE: Duration = Duration::from_millis(300);
/// A second Ctrl-C at the prompt leaves when it comes within this time.
const LEAVE: Duration = Duration::from_secs(2);

/// The fixed part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) color: bool,
    pub(super) width: usize,
    pub(super) interactive: bool,
    pub(super) prices: Option<Prices>,
}

/// What the actor does.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Writes text.
    Print(String),
    /// Sends an input.
    Submit { client: ClientId, parts: Vec<Part> },
    /// Ends the turn.
    Interrupt { now: bool },
    /// Answers a question.
    Answer { id: ApprovalId, decision: Decision },
    /// Wants a line.
    Want,
    /// Leaves.
    Finish,
}

/// An input that was not accepted yet.
#[derive(Debug)]
struct Waiting {
    client: ClientId,
    parts: Vec<Part>,
    /// The user sees it already, because the terminal echoed it.
    echoed: bool,
}

/// The state of a text mode; outlives the actor.
#[derive(Debug)]
pub(super) struct Core {
    interactive: bool,
    screen: Screen,
    /// The conversation so far, until it is shown.
    past: Vec<Line>,
    session: Option<String>,
    last: u64,
    ui: Option<UiId>,
    running: Option<TurnId>,
    interrupting: Option<bool>,
    waiting: Vec<Waiting>,
    /// Lines that ended in a backslash, joined.
    begun: Option<String>,
    wanted: bool,
    input_ended: bool,
    questions: Questions,
    posed_at: Option<Instant>,
    leave_asked: Option<Instant>,
    finished: bool,
}

impl Core {
    pub(super) fn new(options: Options, records: &[Arc<Record>]) -> Self {
        let renderer = Renderer::new(RenderOptions {
            output_lines: OUTPUT_LINES,
            columns: options.width,
            prices: options.prices,
            questions: !options.interactive,
        });
        Self {
            interactive: options.interactive,
            screen: Screen::new(renderer, options.color),
            past: transcript::render(records, options.width),
            session: None,
            last: 0,
            ui: None,
            running: None,
            interrupting: None,
            waiting: Vec::new(),
            begun: None,
            wanted: false,
            input_ended: false,
            questions: Questions::default(),
            posed_at: None,
            leave_asked: None,
            finished: false,
        }
    }

    /// An input that is there from the start.
    pub(super) fn first(&mut self, client: ClientId, parts: Vec<Part>) {
        self.waiting.push(Waiting {
            client,
            parts,
            echoed: false,
        });
    }

    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    pub(super) const fn ui(&self) -> Option<UiId> {
        self.ui
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Attached, for the first time or again. Approval shows what is pending to a newcomer.
    pub(super) fn attached(&mut self, ui: UiId) -> Vec<Effect> {
        self.ui = Some(ui);
        self.questions.forget_open();
        self.posed_at = None;
        self.submit_waiting()
    }

    /// What a drain gave.
    pub(super) fn drained(&mut self, numbered: &Numbered) -> Vec<Effect> {
        let event = &numbered.event;
        if self.finished {
            return Vec::new();
        }
        match event {
            Event::SessionReady { session, .. } => {
                if self.session.is_some() {
                    return Vec::new();
                }
                self.session = Some(session.to_string());
                let mut effects = print(self.screen.event(event));
                let past = std::mem::take(&mut self.past);
                effects.extend(print(self.screen.lines(&past)));
                effects.extend(self.idle());
                return effects;
            }
            Event::Delta { .. } | Event::Resync { .. } => return print(self.screen.event(event)),
            _ => {}
        }
        if numbered.number <= self.last {
            return Vec::new();
        }
        let had_prompt = self.screen.has_prompt();
        let mut effects = self.event(numbered);
        if had_prompt && !self.screen.has_prompt() {
            effects.extend(self.idle());
        }
        self.last = numbered.number;
        effects
    }

    fn event(&mut self, numbered: &Numbered) -> Vec<Effect> {
        let event = &numbered.event;
        match event {
            Event::TurnStarted { turn } => self.running = Some(*turn),
            Event::Accepted { client, .. } => {
                let at = self.waiting.iter().position(|own| own.client == *client);
                if at.is_some_and(|at| self.waiting.remove(at).echoed) {
                    return Vec::new();
                }
            }
            Event::TurnEnded { .. } => {
                if self.running.take().is_none() && numbered.seq.is_none() {
                    // It could not begin (nothing can be written): sending the input again would not help.
                    self.waiting.clear();
                }
                self.interrupting = None;
            }
            _ => {}
        }
        let mut effects = print(self.screen.event(event));
        match event {
            Event::TurnEnded { .. } => effects.extend(self.idle()),
            Event::Broken { .. } => effects.extend(self.finish()),
            _ => {}
        }
        effects
    }

    /// Nothing may be running any more: prompts, wants a line, or leaves.
    fn idle(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let busy = self.running.is_some() || !self.waiting.is_empty();
        if self.input_ended && !busy {
            return self.finish();
        }
        let prompts = self.interactive && !busy && self.questions.current().is_none();
        if prompts && !self.screen.has_prompt() {
            effects.extend(print(self.screen.prompt(false)));
        }
        if !self.wanted && !self.input_ended && (self.interactive || !busy) {
            self.wanted = true;
            effects.push(Effect::Want);
        }
        effects
    }

    /// A line, or the end of all lines. `client` is a fresh id for what becomes an input.
    pub(super) fn typed(&mut self, typed: Typed, client: ClientId, now: Instant) -> Vec<Effect> {
        self.wanted = false;
        self.leave_asked = None;
        let Typed::Line(line) = typed else {
            self.input_ended = true;
            return self.idle();
        };
        if self.interactive {
            self.screen.typed();
        }
        let mut effects = match self.questions.current() {
            Some(question) => {
                let id = question.id.clone();
                self.answer(id, &line, now)
            }
            None => self.input(line, client),
        };
        effects.extend(self.idle());
        effects
    }

    fn input(&mut self, line: String, client: ClientId) -> Vec<Effect> {
        let mut text = match self.begun.take() {
            Some(begun) => format!("{begun}\n{line}"),
            None => line,
        };
        if text.ends_with('\\') {
            text.pop();
            self.begun = Some(text);
            return Vec::new();
        }
        if text.trim().is_empty() {
            return Vec::new();
        }
        let parts = vec![Part::Text { text }];
        self.waiting.push(Waiting {
            client: client.clone(),
            parts: parts.clone(),
            echoed: self.interactive,
        });
        vec![Effect::Submit { client, parts }]
    }

    fn answer(&mut self, id: ApprovalId, line: &str, now: Instant) -> Vec<Effect> {
        let settled = self
            .posed_at
            .is_some_and(|posed| now.duration_since(posed) >= SETTLE);
        let Some(decision) = parse_answer(line).filter(|_| settled) else {
            let hint = Line::new(
                "  answer y, a, n or q; after n you may say what to do instead",
                Style::Dim,
            );
            let mut effects = print(self.screen.lines(&[hint]));
            effects.extend(print(self.screen.prompt(true)));
            return effects;
        };
        if !self.questions.answer(&id, decision.clone()) {
            return Vec::new();
        }
        let mut effects = vec![Effect::Answer { id, decision }];
        effects.extend(self.pose(now));
        effects
    }

    /// The timer: repeats what may have been lost in a crash.
    pub(super) fn tick(&self) -> Vec<Effect> {
        if self.ui.is_none() || self.finished {
            return Vec::new();
        }
        let mut effects = self.submit_waiting();
        if let Some(now) = self.interrupting {
            effects.push(Effect::Interrupt { now });
        }
        effects
    }

    fn submit_waiting(&self) -> Vec<Effect> {
        self.waiting
            .iter()
            .map(|own| Effect::Submit {
                client: own.client.clone(),
                parts: own.parts.clone(),
            })
            .collect()
    }

    /// Ctrl-C: ends the turn; at the prompt, the second one leaves.
    pub(super) fn signal(&mut self, now: Instant) -> Vec<Effect> {
        self.begun = None;
        if self.running.is_some() {
            let now = self.interrupting.is_some();
            self.interrupting = Some(now);
            return vec![Effect::Interrupt { now }];
        }
        if !self.waiting.is_empty() {
            // If the session has it already, the turn that it starts is ended.
            self.waiting.clear();
            let mut effects = vec![Effect::Interrupt { now: false }];
            effects.extend(self.idle());
            return effects;
        }
        if !self.interactive
            || self
                .leave_asked
                .is_some_and(|asked| now.duration_since(asked) <= LEAVE)
        {
            return self.finish();
        }
        self.leave_asked = Some(now);
        let hint = Line::new("  Ctrl-C again leaves", Style::Dim);
        let mut effects = print(self.screen.lines(&[hint]));
        effects.extend(self.idle());
        effects
    }

    /// The user leaves, the program ends, or the UI was taken away.
    pub(super) fn finish(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.finished, true) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        if let Some(session) = &self.session {
            let hint = Line::new(
                &format!("to go on: interpreter resume {session}"),
                Style::Dim,
            );
            effects.extend(print(self.screen.lines(&[hint])));
        }
        effects.push(Effect::Finish);
        effects
    }

    /// A question that a person may answer here.
    pub(super) fn ask(&mut self, request: ApprovalRequest, now: Instant) -> Vec<Effect> {
        let id = request.id.clone();
        match self.questions.asked(request) {
            Asked::Pose => self.pose(now),
            Asked::Later => Vec::new(),
            Asked::Repeat(decision) => vec![Effect::Answer { id, decision }],
        }
    }

    /// A question is settled, here or elsewhere.
    pub(super) fn resolved(&mut self, id: &ApprovalId, now: Instant) -> Vec<Effect> {
        if self.questions.resolved(id) {
            self.pose(now)
        } else {
            Vec::new()
        }
    }

    /// Shows the current question, or goes on without one.
    fn pose(&mut self, now: Instant) -> Vec<Effect> {
        let Some(request) = self.questions.current() else {
            self.posed_at = None;
            return print(self.screen.fresh_line());
        };
        let lines = question_lines(request);
        self.posed_at = Some(now);
        let mut effects = print(self.screen.lines(&lines));
        effects.extend(print(self.screen.prompt(true)));
        effects
    }
}

fn print(text: String) -> Vec<Effect> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![Effect::Print(text)]
    }
}

#[cfg(test)]
mod tests;
