//! [`Machine`]: what happens next.
//!
//! One event in, an [`Output`] out: entries for the journal, and effects that are carried out when the entries are
//! committed (write-ahead). The conversation is folded only from committed records, so what the machine knows and what
//! a replay would find never differ. What to do after a commit follows from the conversation alone (`Machine::go_on`),
//! which is why a crash at any commit loses nothing.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::harness::{Action, HarnessEvent};
use interpreter_messages::journal::{
    Entry, EnvFacts, ErrorClass, Finish, Record, ResponseEnd, SessionMeta, TurnContext, TurnEnd,
    TurnError, UserInput,
};
use interpreter_messages::session::{SessionSettings, Submit};
use interpreter_messages::stream::{ModelResponse, StreamFailure, StreamOutcome};
use interpreter_messages::tool::{
    CallPhase, CallStatus, InvalidCall, Meaning, Operation, ToolCall, ToolClass, ToolEvent,
    ToolOutcome,
};
use interpreter_messages::ui::Event as UiEvent;
use interpreter_messages::wire::WireRequest;
use interpreter_messages::{CallId, ItemId, StreamId, TurnId};

use super::conversation::Conversation;
use super::recover;

/// The same failing call so often in a row ends the turn.
pub const LOOP_LIMIT: u32 = 5;
/// Answers without words and calls in a row that end the turn.
const EMPTY_LIMIT: u32 = 2;
/// Wait before the first re-ask of a broken stream; it doubles each time.
const RESTART_BASE: Duration = Duration::from_millis(200);
/// The longest wait before a re-ask.
const RESTART_CAP: Duration = Duration::from_secs(10);

/// What the machine is told.
#[derive(Debug)]
pub enum Event {
    /// The session begins, or begins again after a crash of its driver.
    Started {
        /// Whether the program itself was started again: nothing of the past runs any more.
        resumed: bool,
        /// Crashes of the driver in the open turn.
        crashes: u32,
    },
    /// The user says something.
    Submit(Submit),
    /// The user, or the program's end, stops the turn.
    Interrupt {
        /// Processes are killed at once.
        now: bool,
        /// Who.
        by: &'static str,
    },
    /// From the Harness.
    Harness(HarnessEvent),
    /// A stream ended.
    Stream {
        /// Which.
        stream: StreamId,
        /// How.
        outcome: StreamOutcome,
    },
    /// From ToolPool.
    Tool(ToolEvent),
    /// What ToolPool still knows, after a crash of it or of the driver.
    ToolReport(Vec<CallStatus>),
    /// The Harness was started again.
    HarnessRestarted,
    /// A batch is in the journal, and its records are folded in.
    Committed,
    /// The oldest batch is not in the journal.
    AppendFailed {
        /// Why.
        error: String,
    },
}

/// What the driver does. Order matters.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Asks the Harness for the surroundings.
    Gather(TurnId),
    /// Asks the Harness for a request; the driver adds the history from `from` on.
    Shape {
        /// For which attempt.
        stream: StreamId,
        /// Position in the history.
        from: usize,
    },
    /// Starts a ModelStream.
    Stream {
        /// Which.
        stream: StreamId,
        /// The request.
        request: Arc<WireRequest>,
        /// First waits.
        delay: Duration,
    },
    /// Drops a ModelStream.
    StopStream(StreamId),
    /// Has the Harness understand a response.
    Absorb {
        /// Which.
        stream: StreamId,
        /// The response.
        response: ModelResponse,
    },
    /// Runs a call.
    Run {
        /// Its turn.
        turn: TurnId,
        /// Its id.
        call: CallId,
        /// What to do.
        operation: Operation,
    },
    /// The call's intent is committed.
    Proceed(CallId),
    /// The call's outcome is committed.
    Acknowledge(CallId),
    /// Ends the calls of a turn and takes its questions back.
    CancelTurn {
        /// Which.
        turn: TurnId,
        /// At once.
        now: bool,
    },
    /// Asks ToolPool what it knows.
    AskReport,
    /// Publishes an event that is not in the journal.
    Publish(UiEvent),
}

/// What an event leads to.
#[derive(Debug, Default)]
pub struct Output {
    /// To be appended as one batch; none when empty.
    pub entries: Vec<Entry>,
    /// Whether the batch must be on the disk before its effects.
    pub sync: bool,
    /// Carried out after the commit, or at once when there are no entries.
    pub effects: Vec<Effect>,
}

impl Output {
    fn effect(effect: Effect) -> Self {
        Self {
            effects: vec![effect],
            ..Self::default()
        }
    }

    fn entries(entries: Vec<Entry>, sync: bool) -> Self {
        Self {
            entries,
            sync,
            effects: Vec::new(),
        }
    }

    fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }
}

/// What the machine waits for.
#[derive(Debug, Clone)]
pub enum Phase {
    /// Nothing to do.
    Idle,
    /// For a commit, after which `Machine::go_on` decides.
    Committing,
    /// For what ToolPool still knows.
    Recovering,
    /// For the surroundings.
    Gathering,
    /// For a request.
    Shaping(StreamId),
    /// For a response.
    Streaming {
        /// Which.
        stream: StreamId,
        /// What was asked.
        request: Arc<WireRequest>,
    },
    /// For the meaning of a response.
    Absorbing {
        /// Which.
        stream: StreamId,
        /// How it ended.
        end: ResponseEnd,
    },
    /// For outcomes of calls.
    Tools,
}

impl Phase {
    /// The name in `SessionView`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Committing => "committing",
            Self::Recovering => "recovering",
            Self::Gathering => "gathering",
            Self::Shaping(_) => "shaping",
            Self::Streaming { .. } => "streaming",
            Self::Absorbing { .. } => "absorbing",
            Self::Tools => "tools",
        }
    }
}

/// Decides; see the module.
#[derive(Debug)]
pub struct Machine {
    /// The fold of what is committed.
    pub conversation: Conversation,
    /// What is waited for.
    pub phase: Phase,
    settings: Arc<SessionSettings>,
    queue: VecDeque<Submit>,
    /// Batches that were handed out and are not committed.
    pending: usize,
    /// An interrupt that came while something was being committed.
    interrupt: Option<(bool, &'static str)>,
    /// Calls that ToolPool has.
    running: HashSet<CallId>,
    /// Calls whose intent or outcome is on its way into the journal: told again, it must not go there twice.
    intending: HashSet<CallId>,
    settling: HashSet<CallId>,
    gathered: Option<TurnId>,
    gather_tries: u32,
    /// A re-ask waits for its `RequestStarted`.
    again: Option<(StreamId, Arc<WireRequest>, Duration)>,
    /// The journal could not be written.
    stuck: bool,
}

impl Machine {
    /// A machine over what a journal holds.
    #[must_use]
    pub fn new(settings: Arc<SessionSettings>, conversation: Conversation) -> Self {
        Self {
            conversation,
            phase: Phase::Idle,
            settings,
            queue: VecDeque::new(),
            pending: 0,
            interrupt: None,
            running: HashSet::new(),
            intending: HashSet::new(),
            settling: HashSet::new(),
            gathered: None,
            gather_tries: 0,
            again: None,
            stuck: false,
        }
    }

    /// Inputs that wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// What follows from an event.
    pub fn step(&mut self, event: Event) -> Output {
        let output = self.decide(event);
        if !output.entries.is_empty() {
            self.pending += 1;
        }
        for entry in &output.entries {
            match entry {
                Entry::ToolOutcome { call, .. } => drop(self.settling.insert(call.clone())),
                Entry::ToolIntent { call, .. } => drop(self.intending.insert(call.clone())),
                _ => {}
            }
        }
        output
    }

    fn decide(&mut self, event: Event) -> Output {
        match event {
            Event::Started { resumed, crashes } => self.started(resumed, crashes),
            Event::Submit(submit) => self.submit(submit),
            Event::Interrupt { now, by } => self.interrupt(now, by),
            Event::Harness(event) => self.harness(event),
            Event::Stream { stream, outcome } => self.stream(stream, outcome),
            Event::Tool(event) => self.tool(event),
            Event::ToolReport(report) => self.report(&report),
            Event::HarnessRestarted => self.harness_restarted(),
            Event::Committed => self.committed(),
            Event::AppendFailed { error } => self.append_failed(&error),
        }
    }

    // === begin and end

    fn started(&mut self, resumed: bool, crashes: u32) -> Output {
        if self.conversation.seq.is_none() {
            self.phase = Phase::Committing;
            return Output::entries(vec![Entry::Meta(self.meta())], false);
        }
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        if resumed {
            let by = "the end of the program".to_owned();
            let mut entries = recover::outcomes_after_restart(open);
            entries.push(Entry::TurnEnded {
                turn: open.id,
                end: TurnEnd::Interrupted { by },
            });
            self.phase = Phase::Committing;
            return Output::entries(entries, true);
        }
        if crashes >= 2 {
            let error = TurnError {
                class: ErrorClass::Runtime,
                message: "the session crashed twice in this turn".to_owned(),
                hint: Some("say it in other words, or switch the harness".to_owned()),
            };
            return self.end(TurnEnd::Failed(error));
        }
        self.phase = Phase::Recovering;
        Output::effect(Effect::AskReport)
    }

    fn meta(&self) -> SessionMeta {
        self.settings.meta.clone()
    }

    fn submit(&mut self, submit: Submit) -> Output {
        let known = self.conversation.clients.contains(&submit.client)
            || self
                .queue
                .iter()
                .any(|queued| queued.client == submit.client);
        if !known && !submit.parts.is_empty() {
            self.queue.push_back(submit);
        }
        if matches!(self.phase, Phase::Idle) && self.pending == 0 {
            self.begin()
        } else {
            Output::default()
        }
    }

    /// Starts a turn with the inputs that wait.
    fn begin(&mut self) -> Output {
        if self.queue.is_empty() {
            return Output::default();
        }
        let turn = self.conversation.turn.next();
        let settings = &self.settings;
        let context = TurnContext {
            turn,
            cwd: settings.cwd.clone(),
            model: settings.model.profile.id.clone(),
            provider: settings.model.profile.provider.clone(),
            harness: settings.harness.clone(),
            sandbox: settings.sandbox.mode,
            network: settings.sandbox.network,
            approval: settings.approval,
            effort: settings.model.profile.effort.clone(),
        };
        let mut entries = vec![Entry::TurnStarted(context)];
        entries.extend(self.take_inputs(turn));
        self.gather_tries = 0;
        self.phase = Phase::Committing;
        Output::entries(entries, false)
    }

    fn take_inputs(&mut self, turn: TurnId) -> Vec<Entry> {
        let input = |submit: Submit| UserInput {
            turn,
            client: submit.client,
            parts: submit.parts,
        };
        self.queue
            .drain(..)
            .map(|submit| Entry::UserInput(input(submit)))
            .collect()
    }

    fn interrupt(&mut self, now: bool, by: &'static str) -> Output {
        if self.pending > 0 {
            // What is being committed may hold calls; they need their outcome too.
            self.interrupt = Some((now, by));
            return Output::default();
        }
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        let turn = open.id;
        let mut entries: Vec<Entry> = open
            .unanswered()
            .map(|call| {
                let reason = if call.intent.is_some() {
                    format!("interrupted by the {by} while it ran")
                } else {
                    format!("interrupted by the {by} before it started")
                };
                let outcome = ToolOutcome::Aborted {
                    reason,
                    output: None,
                };
                Entry::ToolOutcome {
                    turn,
                    call: call.call.id.clone(),
                    outcome,
                }
            })
            .collect();
        entries.push(Entry::TurnEnded {
            turn,
            end: TurnEnd::Interrupted { by: by.to_owned() },
        });
        let mut output = Output::entries(entries, true);
        if let Phase::Streaming { stream, .. } = &self.phase {
            output = output.with(Effect::StopStream(*stream));
        }
        self.phase = Phase::Committing;
        self.again = None;
        output.with(Effect::CancelTurn { turn, now })
    }

    fn end(&mut self, end: TurnEnd) -> Output {
        let turn = self.conversation.turn;
        self.phase = Phase::Committing;
        let cancel = !matches!(end, TurnEnd::Completed);
        let mut entries = Vec::new();
        if cancel && let Some(open) = &self.conversation.open {
            entries.extend(open.unanswered().map(|call| {
                let outcome = ToolOutcome::Aborted {
                    reason: "the turn failed before it ran".to_owned(),
                    output: None,
                };
                Entry::ToolOutcome {
                    turn,
                    call: call.call.id.clone(),
                    outcome,
                }
            }));
        }
        entries.push(Entry::TurnEnded { turn, end });
        let output = Output::entries(entries, true);
        if cancel {
            output.with(Effect::CancelTurn { turn, now: false })
        } else {
            output
        }
    }

    fn fail(
        &mut self,
        class: ErrorClass,
        message: impl Into<String>,
        hint: Option<&str>,
    ) -> Output {
        self.end(TurnEnd::Failed(TurnError {
            class,
            message: message.into(),
            hint: hint.map(str::to_owned),
        }))
    }

    // === the journal

    /// Takes a committed record in.
    pub fn fold(&mut self, record: &Arc<Record>) {
        self.conversation.apply(record);
        match &record.entry {
            Entry::ToolOutcome { call, .. } => {
                self.running.remove(call);
                self.settling.remove(call);
            }
            Entry::ToolIntent { call, .. } => {
                self.intending.remove(call);
            }
            _ => {}
        }
    }

    fn committed(&mut self) -> Output {
        self.pending = self.pending.saturating_sub(1);
        self.stuck = false;
        if self.pending > 0 {
            return Output::default();
        }
        if let Some((now, by)) = self.interrupt.take() {
            return self.interrupt(now, by);
        }
        if matches!(self.phase, Phase::Committing | Phase::Tools) {
            self.go_on()
        } else {
            Output::default()
        }
    }

    fn append_failed(&mut self, error: &str) -> Output {
        let first = !std::mem::replace(&mut self.stuck, true);
        let turn = self.conversation.turn;
        let message = format!("the journal cannot be written: {error}");
        let hint = Some(
            "make room on the disk, then say something: what waits is written first".to_owned(),
        );
        let end = TurnEnd::Failed(TurnError {
            class: ErrorClass::Runtime,
            message,
            hint,
        });
        let event = UiEvent::TurnEnded {
            turn,
            end,
            total: self.conversation.usage,
        };
        if first {
            Output::effect(Effect::Publish(event))
        } else {
            Output::default()
        }
    }

    /// What a conversation without pending commits needs next. Depends on nothing that a crash would lose.
    fn go_on(&mut self) -> Output {
        let Some(open) = &self.conversation.open else {
            self.phase = Phase::Idle;
            self.gathered = None;
            return self.begin();
        };
        if let Some((stream, request, delay)) = self.again.take() {
            self.phase = Phase::Streaming {
                stream,
                request: Arc::clone(&request),
            };
            return Output::effect(Effect::Stream {
                stream,
                request,
                delay,
            });
        }
        if open.unanswered().next().is_some() {
            return self.run_calls();
        }
        if let Some((call, times)) = &open.failing
            && *times >= LOOP_LIMIT
        {
            let name = call.split(' ').next().unwrap_or_default();
            let message =
                format!("the model made the same failing call to {name} {times} times in a row");
            return self.fail(
                ErrorClass::Loop,
                message,
                Some("say how to go on, or use another model"),
            );
        }
        if !self.queue.is_empty() {
            let turn = open.id;
            let entries = self.take_inputs(turn);
            self.phase = Phase::Committing;
            return Output::entries(entries, false);
        }
        match open.finish.clone() {
            Some(finish) if open.calls.is_empty() => self.answered(&finish),
            _ => self.ask(),
        }
    }

    /// The last response called nothing.
    fn answered(&mut self, finish: &Finish) -> Output {
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        let (spoke, empty) = (open.spoke, open.empty);
        match finish {
            Finish::Length => self.fail(
                ErrorClass::Server,
                "the answer was cut off at the model's output limit",
                Some("ask for less at once, or go on"),
            ),
            Finish::Refused if !spoke => self.fail(
                ErrorClass::Server,
                "the provider refused to answer",
                Some("say it in other words"),
            ),
            _ if spoke => self.end(TurnEnd::Completed),
            _ if empty < EMPTY_LIMIT => self.ask(),
            _ => self.fail(
                ErrorClass::Server,
                "the model answered nothing, twice",
                Some("say it in other words, or use another model"),
            ),
        }
    }

    // === a request

    fn ask(&mut self) -> Output {
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        let (turn, requests) = (open.id, open.requests);
        if self.gathered != Some(turn) {
            self.phase = Phase::Gathering;
            return Output::effect(Effect::Gather(turn));
        }
        let limit = self.settings.max_requests_per_turn;
        if requests >= limit {
            let message = format!("the turn used its {limit} requests");
            return self.fail(
                ErrorClass::Budget,
                message,
                Some("go on with another message, or raise max_requests_per_turn"),
            );
        }
        let stream = StreamId {
            turn,
            request: self.conversation.responses,
            attempt: open.attempts,
        };
        self.phase = Phase::Shaping(stream);
        Output::effect(Effect::Shape {
            stream,
            from: usize::MAX,
        })
    }

    fn harness(&mut self, event: HarnessEvent) -> Output {
        match event {
            HarnessEvent::Gathered {
                turn,
                facts,
                warnings,
            } => self.gathered(turn, *facts, warnings),
            HarnessEvent::Needs { stream, from } => match self.phase {
                Phase::Shaping(current) if current == stream => {
                    Output::effect(Effect::Shape { stream, from })
                }
                _ => Output::default(),
            },
            HarnessEvent::Shaped { stream, result } => self.shaped(stream, result),
            HarnessEvent::Absorbed { stream, actions } => self.absorbed(stream, actions),
        }
    }

    fn gathered(&mut self, turn: TurnId, facts: EnvFacts, warnings: Vec<String>) -> Output {
        if !matches!(self.phase, Phase::Gathering) || turn != self.conversation.turn {
            return Output::default();
        }
        self.gathered = Some(turn);
        let mut entries: Vec<Entry> = warnings
            .into_iter()
            .map(|text| Entry::Notice { text })
            .collect();
        if self.conversation.facts.as_ref() != Some(&facts) {
            entries.push(Entry::Environment(facts));
        }
        if entries.is_empty() {
            return self.ask();
        }
        self.phase = Phase::Committing;
        Output::entries(entries, false)
    }

    fn shaped(&mut self, stream: StreamId, result: Result<Arc<WireRequest>, TurnError>) -> Output {
        match self.phase {
            Phase::Shaping(current) if current == stream => {}
            _ => return Output::default(),
        }
        match result {
            Ok(request) => self.send(stream, request, Duration::ZERO),
            Err(error) => self.end(TurnEnd::Failed(error)),
        }
    }

    fn send(&mut self, stream: StreamId, request: Arc<WireRequest>, delay: Duration) -> Output {
        self.again = Some((stream, request, delay));
        self.phase = Phase::Committing;
        Output::entries(vec![Entry::RequestStarted { stream }], false)
    }

    fn harness_restarted(&mut self) -> Output {
        match &self.phase {
            Phase::Gathering if self.gather_tries == 0 => {
                self.gather_tries += 1;
                Output::effect(Effect::Gather(self.conversation.turn))
            }
            // The same input would crash it again (DESIGN §2, Harness).
            Phase::Gathering | Phase::Shaping(_) | Phase::Absorbing { .. } => {
                let message = format!("the harness {} crashed", self.settings.harness);
                self.fail(
                    ErrorClass::Harness,
                    message,
                    Some("switch the harness, or say it in other words"),
                )
            }
            _ => Output::default(),
        }
    }

    // === a response

    fn stream(&mut self, stream: StreamId, outcome: StreamOutcome) -> Output {
        let request = match &self.phase {
            Phase::Streaming {
                stream: current,
                request,
            } if *current == stream => Arc::clone(request),
            _ => return Output::default(),
        };
        match outcome {
            StreamOutcome::Done(response) => {
                let finish = response.finish.clone().unwrap_or(Finish::Stop);
                let end = ResponseEnd {
                    stream,
                    finish,
                    usage: response.usage,
                };
                self.phase = Phase::Absorbing { stream, end };
                Output::effect(Effect::Absorb { stream, response })
            }
            StreamOutcome::Failed(failure) => self.stream_failed(stream, request, failure),
        }
    }

    fn stream_failed(
        &mut self,
        stream: StreamId,
        request: Arc<WireRequest>,
        failure: StreamFailure,
    ) -> Output {
        let max = self.settings.model.endpoint.stream_max_retries;
        if !failure.retryable || stream.attempt >= max {
            return self.end(TurnEnd::Failed(failure.error));
        }
        let attempt = stream.attempt + 1;
        let doubled = RESTART_BASE
            .saturating_mul(1 << stream.attempt.min(16))
            .min(RESTART_CAP);
        let delay = failure.retry_after.unwrap_or(doubled);
        let event = UiEvent::StreamRestarted {
            discarded: vec![ItemId::text(stream, 0), ItemId::reasoning(stream, 0)],
            attempt,
            max,
            reason: failure.error.to_string(),
        };
        let next = StreamId { attempt, ..stream };
        self.send(next, request, delay).with(Effect::Publish(event))
    }

    fn absorbed(&mut self, stream: StreamId, actions: Vec<Action>) -> Output {
        let end = match &self.phase {
            Phase::Absorbing {
                stream: current,
                end,
            } if *current == stream => end.clone(),
            _ => return Output::default(),
        };
        let turn = stream.turn;
        let mut entries: Vec<Entry> = actions
            .into_iter()
            .map(|action| match action {
                Action::Reasoning { text, opaque } => Entry::Reasoning { turn, text, opaque },
                Action::Say(text) => Entry::AssistantText { turn, text },
                Action::Call(call) => Entry::ToolCall { turn, call },
            })
            .collect();
        entries.push(Entry::ResponseEnded(end));
        self.phase = Phase::Committing;
        Output::entries(entries, false)
    }

    // === calls

    /// Runs the calls that may run now: the leading run of read-only ones together, anything else alone.
    fn run_calls(&mut self) -> Output {
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        let turn = open.id;
        let waiting: Vec<&ToolCall> = open.unanswered().map(|call| &call.call).collect();
        let invalid: Vec<Entry> = waiting
            .iter()
            .filter_map(|call| match &call.meaning {
                Meaning::Invalid(why) => {
                    let outcome = ToolOutcome::Failed {
                        error: invalid_text(&call.name, why),
                    };
                    Some(Entry::ToolOutcome {
                        turn,
                        call: call.id.clone(),
                        outcome,
                    })
                }
                Meaning::Run(_) => None,
            })
            .collect();
        if !invalid.is_empty() && self.running.is_empty() {
            self.phase = Phase::Tools;
            return Output::entries(invalid, false);
        }
        let mut effects = Vec::new();
        for (at, call) in waiting.iter().enumerate() {
            let Meaning::Run(operation) = &call.meaning else {
                continue;
            };
            let reads = operation.class() == ToolClass::ReadOnly;
            if !reads && at > 0 {
                break;
            }
            if !self.running.contains(&call.id) {
                effects.push(Effect::Run {
                    turn,
                    call: call.id.clone(),
                    operation: operation.clone(),
                });
            }
            if !reads {
                break;
            }
        }
        for effect in &effects {
            if let Effect::Run { call, .. } = effect {
                self.running.insert(call.clone());
            }
        }
        self.phase = Phase::Tools;
        Output {
            effects,
            ..Output::default()
        }
    }

    fn tool(&mut self, event: ToolEvent) -> Output {
        match event {
            ToolEvent::Intends { call, intent } => {
                let Some(known) = self.conversation.call(&call) else {
                    return Output::default();
                };
                let on_its_way = self.intending.contains(&call) || self.settling.contains(&call);
                if known.answered || on_its_way {
                    return Output::default();
                }
                if known.intent.is_some() {
                    return Output::effect(Effect::Proceed(call));
                }
                let turn = self.conversation.turn;
                let entry = Entry::ToolIntent {
                    turn,
                    call: call.clone(),
                    intent,
                };
                Output::entries(vec![entry], true).with(Effect::Proceed(call))
            }
            ToolEvent::Finished { call, .. } if self.settling.contains(&call) => Output::default(),
            ToolEvent::Finished { call, outcome } => {
                let answered = self
                    .conversation
                    .call(&call)
                    .is_none_or(|known| known.answered);
                if answered {
                    return Output::effect(Effect::Acknowledge(call));
                }
                let turn = self.conversation.turn;
                let entry = Entry::ToolOutcome {
                    turn,
                    call: call.clone(),
                    outcome,
                };
                Output::entries(vec![entry], false).with(Effect::Acknowledge(call))
            }
        }
    }

    /// After a crash of ToolPool or of the driver: attach to what still runs, and settle what does not.
    fn report(&mut self, report: &[CallStatus]) -> Output {
        let Some(open) = &self.conversation.open else {
            return Output::default();
        };
        let turn = open.id;
        let mut entries = Vec::new();
        let mut effects = Vec::new();
        self.running.clear();
        for call in open.unanswered() {
            let id = &call.call.id;
            if self.settling.contains(id) || self.intending.contains(id) {
                // Its commit brings what follows.
                self.running.insert(id.clone());
                continue;
            }
            match report
                .iter()
                .find(|status| status.call == *id)
                .map(|status| &status.phase)
            {
                Some(CallPhase::Busy) => drop(self.running.insert(id.clone())),
                Some(CallPhase::Intends(intent)) => {
                    self.running.insert(id.clone());
                    if call.intent.is_none() {
                        let intent = intent.clone();
                        entries.push(Entry::ToolIntent {
                            turn,
                            call: id.clone(),
                            intent,
                        });
                    }
                    effects.push(Effect::Proceed(id.clone()));
                }
                Some(CallPhase::Finished(outcome)) => {
                    entries.push(Entry::ToolOutcome {
                        turn,
                        call: id.clone(),
                        outcome: outcome.clone(),
                    });
                    effects.push(Effect::Acknowledge(id.clone()));
                }
                None => {
                    if let Some(outcome) = recover::outcome_of_lost(call, "the tool runner crashed")
                    {
                        entries.push(Entry::ToolOutcome {
                            turn,
                            call: id.clone(),
                            outcome,
                        });
                    }
                }
            }
        }
        self.phase = Phase::Committing;
        if entries.is_empty() {
            let mut output = self.go_on();
            effects.append(&mut output.effects);
            return Output { effects, ..output };
        }
        Output {
            entries,
            sync: true,
            effects,
        }
    }
}

/// What the model is told of a call that means nothing; the harness may put it in its own words.
fn invalid_text(name: &str, why: &InvalidCall) -> String {
    match why {
        InvalidCall::UnknownTool {
            nearest: Some(nearest),
        } => format!("there is no tool {name}; did you mean {nearest}?"),
        InvalidCall::UnknownTool { nearest: None } => format!("there is no tool {name}"),
        InvalidCall::BadArguments { error, .. } => {
            format!("the arguments of {name} are not valid: {error}")
        }
    }
}

#[cfg(test)]
mod tests;
