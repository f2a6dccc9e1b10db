use interpreter_messages::journal::Part;
use interpreter_messages::model::{
    Endpoint, HttpTransport, ModelChoice, ModelProfile, Transport, WireApi,
};
use interpreter_messages::policy::{
    ApprovalPolicy, EnvInherit, EnvPolicy, OnNoUi, SandboxMode, SandboxPolicy,
};
use interpreter_messages::tool::{Exec, ExecOutput, ExitStatus, Intent, Read, ToolOutput};
use interpreter_messages::{ClientId, RequestNo, Seq, SessionId};
use proptest::prelude::*;

use super::*;

fn settings() -> Arc<SessionSettings> {
    let profile = ModelProfile {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        provider_name: "P".to_owned(),
        wire: WireApi::Chat,
        context_window: None,
        vision: false,
        reasoning: false,
        thinking_toggle: false,
        effort: None,
        echo_reasoning: false,
        prices: None,
    };
    let http = HttpTransport {
        base_url: String::new(),
        key: None,
        key_hint: None,
        headers: Vec::new(),
        query: Vec::new(),
    };
    let endpoint = Endpoint {
        provider: "p".to_owned(),
        transport: Transport::Http(http),
        request_max_retries: 0,
        stream_max_retries: 2,
        idle_timeout: Duration::from_secs(1),
    };
    let env = EnvPolicy {
        inherit: EnvInherit::None,
        exclude: Vec::new(),
        include_only: Vec::new(),
        set: Vec::new(),
        secrets: Vec::new(),
    };
    let sandbox = SandboxPolicy {
        mode: SandboxMode::ReadOnly,
        roots: Vec::new(),
        protected: Vec::new(),
        deny_read: Vec::new(),
        network: false,
        share_tmp: false,
        env,
    };
    Arc::new(SessionSettings {
        meta: SessionMeta {
            id: SessionId(uuid::Uuid::nil()),
            started: jiff::Timestamp::UNIX_EPOCH,
            cwd: "/w".into(),
            source: "test".to_owned(),
            version: "0".to_owned(),
            provider: "p".to_owned(),
            harness: "native".to_owned(),
            forked_from: None,
            parent: None,
        },
        cwd: "/w".into(),
        model: ModelChoice {
            profile: Arc::new(profile),
            endpoint: Arc::new(endpoint),
        },
        harness: "native".to_owned(),
        sandbox: Arc::new(sandbox),
        approval: ApprovalPolicy::OnRequest,
        on_no_ui: OnNoUi::Deny,
        approval_timeout: None,
        max_requests_per_turn: 20,
        project_doc_max_bytes: 0,
        project_doc_fallback: Vec::new(),
        root_markers: Vec::new(),
    })
}

/// A machine with a journal that commits at once, and everything that was asked of the outside.
struct Bench {
    machine: Machine,
    records: Vec<Arc<Record>>,
    done: Vec<Effect>,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            machine: Machine::new(settings(), Conversation::default()),
            records: Vec::new(),
            done: Vec::new(),
        };
        bench.tell(Event::Started {
            resumed: false,
            crashes: 0,
        });
        bench
    }

    /// The driver dies; the next one starts from the journal.
    fn crash(&mut self, resumed: bool, crashes: u32) {
        self.machine = Machine::new(settings(), Conversation::replay(&self.records));
        self.tell(Event::Started { resumed, crashes });
    }

    fn tell(&mut self, event: Event) {
        let mut output = self.machine.step(event);
        loop {
            if output.entries.is_empty() {
                self.done.extend(output.effects);
                return;
            }
            for entry in output.entries {
                let seq = Seq(self.records.len() as u64);
                let record = Arc::new(Record {
                    seq,
                    at: jiff::Timestamp::UNIX_EPOCH,
                    entry,
                });
                self.machine.fold(&record);
                self.records.push(record);
            }
            self.done.extend(output.effects);
            output = self.machine.step(Event::Committed);
        }
    }

    fn say(&mut self, text: &str) {
        let parts = vec![Part::Text {
            text: text.to_owned(),
        }];
        self.tell(Event::Submit(Submit {
            client: ClientId::new(text),
            parts,
        }));
    }

    /// What was asked since the last look.
    fn asked(&mut self) -> Vec<&'static str> {
        let names = self.done.iter().map(|effect| match effect {
            Effect::Gather(_) => "gather",
            Effect::Shape { .. } => "shape",
            Effect::Stream { .. } => "stream",
            Effect::StopStream(_) => "stop stream",
            Effect::Absorb { .. } => "absorb",
            Effect::Run { .. } => "run",
            Effect::Proceed(_) => "proceed",
            Effect::Acknowledge(_) => "acknowledge",
            Effect::CancelTurn { .. } => "cancel turn",
            Effect::AskReport => "ask report",
            Effect::Publish(_) => "publish",
        });
        let names = names.collect();
        self.done.clear();
        names
    }

    /// Brings a turn to its stream.
    fn reach_stream(&mut self) -> StreamId {
        if let Phase::Gathering = self.machine.phase {
            let (turn, facts) = (self.machine.conversation.turn, Box::new(facts()));
            self.tell(Event::Harness(HarnessEvent::Gathered {
                turn,
                facts,
                warnings: Vec::new(),
            }));
        }
        let Phase::Shaping(stream) = self.machine.phase else {
            panic!("{:?}", self.machine.phase)
        };
        self.tell(Event::Harness(HarnessEvent::Shaped {
            stream,
            result: Ok(request()),
        }));
        let Phase::Streaming { stream, .. } = self.machine.phase else {
            panic!("{:?}", self.machine.phase)
        };
        stream
    }

    /// The model answers with this.
    fn answer(&mut self, finish: Finish, actions: Vec<Action>) {
        let stream = self.reach_stream();
        let response = ModelResponse {
            finish: Some(finish),
            ..ModelResponse::default()
        };
        self.tell(Event::Stream {
            stream,
            outcome: StreamOutcome::Done(response),
        });
        self.tell(Event::Harness(HarnessEvent::Absorbed { stream, actions }));
    }

    fn finished(&mut self, call: &str, outcome: ToolOutcome) {
        self.tell(Event::Tool(ToolEvent::Finished {
            call: CallId::new(call),
            outcome,
        }));
    }

    fn intends(&mut self, call: &str) {
        let intent = Intent::Process {
            argv: Vec::new(),
            cwd: "/w".into(),
            escalated: false,
        };
        self.tell(Event::Tool(ToolEvent::Intends {
            call: CallId::new(call),
            intent,
        }));
    }

    fn last_end(&self) -> Option<&TurnEnd> {
        self.machine.conversation.last_end.as_ref()
    }

    fn failure(&self) -> Option<ErrorClass> {
        match self.last_end()? {
            TurnEnd::Failed(error) => Some(error.class),
            _ => None,
        }
    }

    fn running(&self) -> Vec<&str> {
        let mut running: Vec<&str> = self.machine.running.iter().map(CallId::as_str).collect();
        running.sort_unstable();
        running
    }
}

fn facts() -> EnvFacts {
    EnvFacts {
        cwd: "/w".into(),
        shell: "sh".to_owned(),
        date: "2026-12-01".to_owned(),
        timezone: "UTC".to_owned(),
        os: "linux".to_owned(),
        os_version: String::new(),
        git: false,
        sandbox: SandboxMode::ReadOnly,
        roots: Vec::new(),
        network: false,
        approval: ApprovalPolicy::OnRequest,
        instructions: Vec::new(),
    }
}

fn request() -> Arc<WireRequest> {
    Arc::new(WireRequest {
        wire: WireApi::Chat,
        path: "/",
        headers: Vec::new(),
        body: Vec::new(),
        tools: Vec::new().into(),
    })
}

fn call(id: &str, meaning: Meaning) -> Action {
    let call = ToolCall {
        id: CallId::new(id),
        name: "t".to_owned(),
        arguments: "{}".to_owned(),
        meaning,
        repaired: None,
    };
    Action::Call(call)
}

fn reads(id: &str) -> Action {
    call(
        id,
        Meaning::Run(Operation::Read(Read {
            path: id.into(),
            offset: None,
            limit: None,
        })),
    )
}

fn runs(id: &str) -> Action {
    let exec = Exec {
        command: id.to_owned(),
        workdir: None,
        shell: None,
        login: false,
        tty: false,
        yield_ms: None,
        timeout_ms: None,
        max_output_tokens: None,
        escalate: false,
        justification: None,
    };
    call(id, Meaning::Run(Operation::Exec(exec)))
}

fn says(text: &str) -> Action {
    Action::Say(text.to_owned())
}

fn ok() -> ToolOutcome {
    let output = ExecOutput {
        exit: Some(ExitStatus::Code(0)),
        ..ExecOutput::default()
    };
    ToolOutcome::Ok {
        output: ToolOutput::Exec(output),
    }
}

fn failed() -> ToolOutcome {
    ToolOutcome::Failed {
        error: "no".to_owned(),
    }
}

fn broken(retryable: bool) -> StreamOutcome {
    let error = TurnError {
        class: ErrorClass::Transport,
        message: "cut".to_owned(),
        hint: None,
    };
    StreamOutcome::Failed(StreamFailure {
        error,
        retryable,
        shown: true,
        retry_after: None,
        usage: None,
        partial_text: String::new(),
    })
}

#[test]
fn a_plain_turn_goes_from_input_to_end() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::Stop, vec![says("hello")]);
    assert_eq!(bench.asked(), ["gather", "shape", "stream", "absorb"]);
    assert_eq!(bench.last_end(), Some(&TurnEnd::Completed));
    assert!(matches!(bench.machine.phase, Phase::Idle));
}

#[test]
fn a_call_acts_after_its_intent_is_committed_and_is_forgotten_after_its_outcome_is() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![runs("a")]);
    bench.asked();
    bench.intends("a");
    assert_eq!(bench.asked(), ["proceed"]);
    assert!(matches!(
        bench.records.last().map(|record| &record.entry),
        Some(Entry::ToolIntent { .. })
    ));
    bench.finished("a", ok());
    assert_eq!(bench.asked(), ["acknowledge", "shape"]);
    bench.finished("a", ok());
    assert_eq!(
        bench.asked(),
        ["acknowledge"],
        "told twice, journalled once"
    );
}

#[test]
fn reads_run_together_and_everything_else_in_order() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(
        Finish::ToolCalls,
        vec![reads("a"), reads("b"), runs("c"), reads("d"), runs("e")],
    );
    assert_eq!(bench.running(), ["a", "b"]);
    bench.finished("b", ok());
    assert_eq!(bench.running(), ["a"]);
    bench.finished("a", ok());
    assert_eq!(bench.running(), ["c"]);
    bench.finished("c", failed());
    assert_eq!(bench.running(), ["d"]);
    bench.finished("d", ok());
    bench.finished("e", ok());
    assert!(matches!(bench.machine.phase, Phase::Shaping(_)));
}

#[test]
fn a_call_without_meaning_is_answered_and_never_run() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(
        Finish::ToolCalls,
        vec![
            call(
                "a",
                Meaning::Invalid(InvalidCall::UnknownTool { nearest: None }),
            ),
            runs("b"),
        ],
    );
    assert_eq!(bench.running(), ["b"]);
    assert!(!bench.asked().contains(&"proceed"));
    bench.finished("b", ok());
    assert!(matches!(bench.machine.phase, Phase::Shaping(_)));
}

#[test]
fn what_is_said_meanwhile_is_taken_up_in_the_same_turn_once() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![runs("a")]);
    bench.say("and this");
    bench.say("and this");
    bench.say("hi");
    bench.finished("a", ok());
    let inputs = bench.records.iter().filter(
        |record| matches!(&record.entry, Entry::UserInput(input) if input.turn == TurnId(1)),
    );
    assert_eq!(inputs.count(), 2);
    bench.answer(Finish::Stop, vec![says("done")]);
    assert_eq!(bench.machine.conversation.turn, TurnId(1));
    assert!(matches!(bench.machine.phase, Phase::Idle));
}

#[test]
fn an_interrupt_closes_what_is_open_and_what_waits_begins_the_next_turn() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![runs("a"), reads("b")]);
    bench.intends("a");
    bench.say("next");
    bench.asked();
    bench.tell(Event::Interrupt {
        now: false,
        by: "user",
    });
    let outcomes = bench.records.iter().filter(|record| {
        matches!(
            &record.entry,
            Entry::ToolOutcome {
                outcome: ToolOutcome::Aborted { .. },
                ..
            }
        )
    });
    assert_eq!(outcomes.count(), 2);
    assert_eq!(bench.asked(), ["cancel turn", "gather"]);
    assert_eq!(bench.machine.conversation.turn, TurnId(2));
}

#[test]
fn an_interrupt_stops_the_stream_and_its_late_answer_is_ignored() {
    let mut bench = Bench::new();
    bench.say("hi");
    let stream = bench.reach_stream();
    bench.tell(Event::Interrupt {
        now: false,
        by: "user",
    });
    assert!(bench.asked().contains(&"stop stream"));
    bench.tell(Event::Stream {
        stream,
        outcome: StreamOutcome::Done(ModelResponse::default()),
    });
    bench.finished("ghost", ok());
    assert!(matches!(bench.machine.phase, Phase::Idle));
    assert!(matches!(
        bench.last_end(),
        Some(TurnEnd::Interrupted { .. })
    ));
}

#[test]
fn a_broken_stream_is_asked_again_as_often_as_allowed() {
    let mut bench = Bench::new();
    bench.say("hi");
    let mut stream = bench.reach_stream();
    for attempt in 0..2 {
        assert_eq!(stream.attempt, attempt);
        bench.tell(Event::Stream {
            stream,
            outcome: broken(true),
        });
        let Phase::Streaming { stream: next, .. } = bench.machine.phase else {
            panic!("{:?}", bench.machine.phase)
        };
        stream = next;
    }
    bench.tell(Event::Stream {
        stream,
        outcome: broken(true),
    });
    assert_eq!(bench.failure(), Some(ErrorClass::Transport));
    bench.say("again");
    let stream = bench.reach_stream();
    bench.tell(Event::Stream {
        stream,
        outcome: broken(false),
    });
    assert_eq!(bench.failure(), Some(ErrorClass::Transport));
}

#[test]
fn answers_that_lead_nowhere_end_the_turn_with_a_reason() {
    let mut bench = Bench::new();
    bench.say("cut");
    bench.answer(Finish::Length, vec![says("half an ans")]);
    assert_eq!(bench.failure(), Some(ErrorClass::Server));
    bench.say("empty");
    bench.answer(Finish::Stop, Vec::new());
    bench.answer(Finish::Stop, Vec::new());
    assert_eq!(bench.failure(), Some(ErrorClass::Server));
    bench.say("loop");
    for n in 0..LOOP_LIMIT {
        let id = format!("l{n}");
        bench.answer(Finish::ToolCalls, vec![runs(&id)]);
        bench.finished(&id, failed());
    }
    assert_eq!(bench.failure(), Some(ErrorClass::Loop));
    bench.say("endless");
    for n in 0..20 {
        let id = format!("e{n}");
        bench.answer(Finish::ToolCalls, vec![runs(&id)]);
        bench.finished(&id, ok());
    }
    assert_eq!(bench.failure(), Some(ErrorClass::Budget));
}

#[test]
fn a_crash_of_the_harness_fails_the_turn_but_gathering_is_tried_again() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.asked();
    bench.tell(Event::HarnessRestarted);
    assert_eq!(bench.asked(), ["gather"]);
    bench.reach_stream();
    bench.tell(Event::HarnessRestarted);
    assert!(
        matches!(bench.machine.phase, Phase::Streaming { .. }),
        "it is not needed now"
    );
    bench.tell(Event::Interrupt {
        now: false,
        by: "user",
    });
    bench.say("more");
    let (turn, facts) = (bench.machine.conversation.turn, Box::new(facts()));
    bench.tell(Event::Harness(HarnessEvent::Gathered {
        turn,
        facts,
        warnings: Vec::new(),
    }));
    bench.tell(Event::HarnessRestarted);
    assert_eq!(bench.failure(), Some(ErrorClass::Harness));
}

#[test]
fn after_a_crash_of_the_driver_the_turn_goes_on_with_what_still_runs() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![reads("a"), reads("b"), reads("c")]);
    bench.asked();
    bench.crash(false, 1);
    assert_eq!(bench.asked(), ["ask report"]);
    let status = |call: &str, phase| CallStatus {
        call: CallId::new(call),
        turn: TurnId(1),
        phase,
    };
    bench.tell(Event::ToolReport(vec![
        status("a", CallPhase::Busy),
        status("b", CallPhase::Finished(ok())),
    ]));
    assert_eq!(
        bench.running(),
        ["a", "c"],
        "c was never started, or is gone without a trace"
    );
    bench.finished("a", ok());
    bench.finished("c", ok());
    bench.answer(Finish::Stop, vec![says("done")]);
    assert_eq!(bench.last_end(), Some(&TurnEnd::Completed));
}

#[test]
fn an_outcome_that_is_told_twice_before_its_commit_is_journalled_once() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![reads("a")]);
    let finished = || {
        Event::Tool(ToolEvent::Finished {
            call: CallId::new("a"),
            outcome: ok(),
        })
    };
    let first = bench.machine.step(finished());
    assert_eq!(first.entries.len(), 1);
    assert!(bench.machine.step(finished()).entries.is_empty());
    let phase = CallPhase::Finished(ok());
    let status = CallStatus {
        call: CallId::new("a"),
        turn: TurnId(1),
        phase,
    };
    assert!(
        bench
            .machine
            .step(Event::ToolReport(vec![status]))
            .entries
            .is_empty()
    );
}

#[test]
fn a_lost_call_that_may_have_acted_is_told_and_not_run_again() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![runs("a")]);
    bench.intends("a");
    bench.tell(Event::ToolReport(Vec::new()));
    let told = bench.records.iter().any(|record| {
        matches!(
            &record.entry,
            Entry::ToolOutcome {
                outcome: ToolOutcome::Crashed { .. },
                ..
            }
        )
    });
    assert!(told && bench.running().is_empty());
}

#[test]
fn a_resume_ends_the_open_turn_and_two_crashes_in_one_turn_do_too() {
    let mut bench = Bench::new();
    bench.say("hi");
    bench.answer(Finish::ToolCalls, vec![runs("a"), runs("b")]);
    bench.intends("a");
    let records = bench.records.clone();
    bench.crash(true, 0);
    assert!(matches!(
        bench.last_end(),
        Some(TurnEnd::Interrupted { .. })
    ));
    assert!(bench.machine.conversation.open.is_none());
    bench.records = records;
    bench.crash(false, 2);
    assert_eq!(bench.failure(), Some(ErrorClass::Runtime));
}

/// What can come at any moment.
fn anything() -> impl Strategy<Value = (u8, u8)> {
    (0u8..16, 0u8..5)
}

proptest! {
    #[test]
    fn no_order_of_events_leaves_a_turn_with_an_open_call_and_a_replay_agrees(events in prop::collection::vec(anything(), 1..60)) {
        let mut bench = Bench::new();
        let mut calls: u32 = 0;
        for (what, n) in events {
            match what {
                0..=2 => bench.say(&format!("say {n}")),
                3 => bench.tell(Event::Interrupt { now: n > 2, by: "user" }),
                4 => {
                    let (turn, facts) = (bench.machine.conversation.turn, Box::new(facts()));
                    bench.tell(Event::Harness(HarnessEvent::Gathered { turn, facts, warnings: Vec::new() }));
                }
                5 | 6 => {
                    if let Phase::Shaping(stream) = bench.machine.phase {
                        bench.tell(Event::Harness(HarnessEvent::Shaped { stream, result: Ok(request()) }));
                    }
                }
                7 | 8 => {
                    let current = bench.machine.conversation.responses;
                    let stream = StreamId { turn: bench.machine.conversation.turn, request: current, attempt: u32::from(n / 3) };
                    let outcome = if n == 4 { broken(true) } else { StreamOutcome::Done(ModelResponse::default()) };
                    bench.tell(Event::Stream { stream, outcome });
                }
                9 | 10 => {
                    if let Phase::Absorbing { stream, .. } = bench.machine.phase {
                        let mut actions = vec![says("words")];
                        for _ in 0..n {
                            calls += 1;
                            actions.push(if calls.is_multiple_of(2) { reads(&format!("c{calls}")) } else { runs(&format!("c{calls}")) });
                        }
                        bench.tell(Event::Harness(HarnessEvent::Absorbed { stream, actions }));
                    }
                }
                11 => bench.intends(&format!("c{}", calls.saturating_sub(u32::from(n)))),
                12 | 13 => bench.finished(&format!("c{}", calls.saturating_sub(u32::from(n))), if n == 0 { failed() } else { ok() }),
                14 => bench.crash(n == 4, 0),
                _ => {
                    bench.tell(Event::ToolReport(Vec::new()));
                    bench.tell(Event::HarnessRestarted);
                }
            }
        }
        let mut open = HashSet::new();
        for record in &bench.records {
            match &record.entry {
                Entry::ToolCall { call, .. } => drop(open.insert(call.id.clone())),
                Entry::ToolOutcome { call, .. } => prop_assert!(open.remove(call), "a second outcome of {}", call),
                Entry::TurnEnded { .. } => prop_assert!(open.is_empty(), "open at the end: {:?}", open),
                _ => {}
            }
        }
        let replayed = Conversation::replay(&bench.records);
        prop_assert_eq!(replayed.open, bench.machine.conversation.open);
        prop_assert_eq!(replayed.responses, bench.machine.conversation.responses);
        prop_assert_eq!(RequestNo(replayed.history.len() as u64), RequestNo(bench.machine.conversation.history.len() as u64));
    }
}
