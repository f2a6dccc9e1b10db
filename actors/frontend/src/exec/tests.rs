use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use interpreter_messages::approval::{ApprovalMsg, DecidedBy, Decision};
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::session::SessionMsg;
use interpreter_messages::ui::DeltaKind;
use interpreter_messages::{ApprovalId, ItemId};
use tokio::task::JoinHandle;

use super::*;
use crate::testing::{Device, World, message, question, ready};

struct Run {
    out: Device,
    err: Device,
    ended: JoinHandle<Result<ExecOutcome, ExecError>>,
}

struct With {
    mode: ExecMode,
    ask: AskMode,
    out: Device,
    fault: FaultSwitch,
    slot: Peer<UiMsg>,
}

impl With {
    fn json(world: &World) -> Self {
        Self {
            mode: ExecMode::Json,
            ask: AskMode::None,
            out: Device::default(),
            fault: FaultSwitch::default(),
            slot: world.slot.clone(),
        }
    }
}

fn start(world: &World, with: With) -> Run {
    let (out, err) = (with.out, Device::default());
    let args = ExecArgs {
        hub: world.hub.clone(),
        slot: with.slot,
        session: world.handle.clone(),
        ready: ready(),
        mode: with.mode,
        prompt: vec![Part::Text { text: "hi".into() }],
        client: ClientId::new("c"),
        ask: with.ask,
        out: out.boxed(),
        err: err.boxed(),
        prices: None,
        resubmit: RESUBMIT,
        fault: with.fault,
    };
    Run {
        out,
        err,
        ended: tokio::spawn(run(args)),
    }
}

async fn outcome(run: Run) -> (ExecOutcome, String) {
    let outcome = run.ended.await.expect("no panic").expect("an outcome");
    (outcome, run.out.text())
}

#[tokio::test]
async fn a_turn_in_human_mode_gives_the_answer_on_stdout() {
    let mut world = World::new().await;
    let mut with = With::json(&world);
    with.mode = ExecMode::Human {
        color: false,
        stdout_tty: true,
    };
    let run = start(&world, with);
    let client = world.submitted().await;
    world.begin(client);
    world.record(vec![message("m", "hello")]);
    world.end(TurnEnd::Completed);
    let err = run.err.clone();
    let (outcome, out) = outcome(run).await;
    assert_eq!(outcome.exit_code, 0);
    assert_eq!(outcome.last_message.as_deref(), Some("hello"));
    assert_eq!(out, "hello\n");
    assert!(err.text().starts_with("interpreter "));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_not_taken_is_sent_again_with_the_same_id() {
    let mut world = World::new().await;
    let run = start(&world, With::json(&world));
    let first = world.submitted().await;
    let second = world.submitted().await;
    assert_eq!(first, second);
    world.begin(first);
    world.end(TurnEnd::Completed);
    assert_eq!(outcome(run).await.0.exit_code, 0);
}

#[tokio::test]
async fn a_signal_interrupts_the_turn_and_the_run_ends_with_it() {
    let mut world = World::new().await;
    let run = start(&world, With::json(&world));
    let client = world.submitted().await;
    world.begin(client);
    while !run.out.text().contains("turn.started") {
        tokio::task::yield_now().await;
    }
    world
        .slot
        .cast(UiMsg::Signal { again: false })
        .expect("the UI runs");
    loop {
        if let SessionMsg::Interrupt { now, by } = world.session.recv().await.expect("alive") {
            assert_eq!((now, by), (false, "user"));
            break;
        }
    }
    world.end(TurnEnd::Interrupted { by: "user".into() });
    let (outcome, out) = outcome(run).await;
    assert_eq!(outcome.exit_code, 1);
    assert!(out.ends_with("{\"type\":\"turn.failed\",\"error\":{\"message\":\"interrupted\"}}\n"));
}

#[tokio::test]
async fn a_stuck_stdout_costs_little_memory_and_loses_no_event() {
    let mut world = World::new().await;
    let mut with = With::json(&world);
    with.out = Device::stuck();
    let run = start(&world, with);
    let client = world.submitted().await;
    world.begin(client);
    for n in 0..1_000 {
        for _ in 0..20 {
            world.handle.sink.delta(
                &ItemId::new(format!("m{n}")),
                DeltaKind::Text,
                "a piece of text",
            );
        }
        world.record(vec![message(&format!("m{n}"), &format!("message {n}"))]);
    }
    world.end(TurnEnd::Completed);
    while world.handle.sink.attached() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.out.text(), "", "nothing could be written yet");
    run.out.release();
    let (_, out) = outcome(run).await;
    let texts: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("whole lines"))
        .filter_map(|event| event["item"]["text"].as_str().map(str::to_owned))
        .collect();
    let expected: Vec<String> = (0..1_000).map(|n| format!("message {n}")).collect();
    assert_eq!(texts, expected);
    assert!(
        out.len() < 200_000,
        "only durable events are kept: {} bytes",
        out.len()
    );
}

#[tokio::test]
async fn a_closed_stdout_ends_the_turn_quietly() {
    let mut world = World::new().await;
    let mut with = With::json(&world);
    with.out = Device::gone();
    let run = start(&world, with);
    let client = world.submitted().await;
    world.begin(client);
    loop {
        match world.session.recv().await.expect("alive") {
            SessionMsg::Interrupt { .. } => break,
            _ => continue,
        }
    }
    world.end(TurnEnd::Interrupted { by: "user".into() });
    let err = run.err.clone();
    assert_eq!(outcome(run).await.0.exit_code, EXIT_BROKEN_PIPE);
    assert_eq!(err.text(), "");
}

/// Panics once at the n-th message of a UI or the hub.
fn crash_at(n: usize, hit: Arc<AtomicBool>) -> FaultSwitch {
    let seen = AtomicUsize::new(0);
    FaultSwitch::new(move |point| {
        if seen.fetch_add(1, Ordering::SeqCst) == n && !hit.swap(true, Ordering::SeqCst) {
            panic!("as the test wants, at {point}");
        }
    })
}

async fn lines_with(fault: FaultSwitch) -> String {
    let mut world = World::new().await;
    let mut with = With::json(&world);
    with.fault = fault;
    let run = start(&world, with);
    let client = world.submitted().await;
    world.begin(client);
    for n in 0..20 {
        world.record(vec![message(&format!("m{n}"), &format!("message {n}"))]);
        tokio::task::yield_now().await;
    }
    world.end(TurnEnd::Completed);
    let (outcome, out) = outcome(run).await;
    assert_eq!(outcome.exit_code, 0);
    out
}

#[tokio::test]
async fn a_crash_of_the_ui_at_any_message_changes_no_line() {
    let expected = lines_with(FaultSwitch::default()).await;
    assert_eq!(expected.lines().count(), 23);
    let mut crashes = 0;
    for n in 0..100 {
        let hit = Arc::new(AtomicBool::new(false));
        assert_eq!(
            lines_with(crash_at(n, Arc::clone(&hit))).await,
            expected,
            "crash at {n}"
        );
        if !hit.load(Ordering::SeqCst) {
            break;
        }
        crashes += 1;
    }
    assert!(crashes >= 3, "attached, a wake and more: {crashes}");
}

#[tokio::test]
async fn a_crash_of_the_hub_changes_no_line() {
    let fault = FaultSwitch::new(|point| assert_ne!(point, "ui_hub.detach", "as the test wants"));
    let mut world = World::with(fault).await;
    let run = start(&world, With::json(&world));
    let client = world.submitted().await;
    world.begin(client);
    world.record(vec![message("a", "one")]);
    while !run.out.text().contains("one") {
        tokio::task::yield_now().await;
    }
    let crash = UiHubMsg::Detach {
        ui: interpreter_messages::UiId(0),
    };
    world.hub.cast(crash).expect("the hub lives");
    while world.handle.sink.attached() > 0 {
        tokio::task::yield_now().await;
    }
    world.record(vec![message("b", "two")]);
    world.start_hub(FaultSwitch::default()).await;
    world.end(TurnEnd::Completed);
    let (_, out) = outcome(run).await;
    assert_eq!(out.lines().count(), 5);
    assert!(out.contains("\"id\":\"item_1\",\"type\":\"agent_message\",\"text\":\"two\""));
}

#[tokio::test(start_paused = true)]
async fn a_ui_that_always_crashes_is_given_up() {
    let world = World::new().await;
    let mut with = With::json(&world);
    with.fault = FaultSwitch::new(|point| panic!("as the test wants, at {point}"));
    let run = start(&world, with);
    let error = run.ended.await.expect("no panic").expect_err("no outcome");
    assert!(matches!(error, ExecError::Host(HostError::Crashed)));
}

/// Answers with what the test sends, and tells when it was cancelled.
struct Scripted {
    answers: mpsc::Receiver<Decision>,
    waits: Arc<AtomicUsize>,
    cancelled: Arc<AtomicBool>,
}

impl Answers for Scripted {
    fn wait(&mut self, cancelled: &AtomicBool) -> Option<Decision> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        loop {
            match self.answers.recv_timeout(Duration::from_millis(5)) {
                Ok(decision) => return Some(decision),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Some(Decision::Deny { text: None });
                }
                Err(mpsc::RecvTimeoutError::Timeout) if cancelled.load(Ordering::SeqCst) => {
                    self.cancelled.store(true, Ordering::SeqCst);
                    return None;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

struct Person {
    says: mpsc::Sender<Decision>,
    waits: Arc<AtomicUsize>,
    cancelled: Arc<AtomicBool>,
}

fn person() -> (Person, AskMode) {
    let (says, answers) = mpsc::channel();
    let (waits, cancelled) = (Arc::default(), Arc::default());
    let scripted = Scripted {
        answers,
        waits: Arc::clone(&waits),
        cancelled: Arc::clone(&cancelled),
    };
    let person = Person {
        says,
        waits,
        cancelled,
    };
    (person, AskMode::Person(Box::new(scripted)))
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn of_two_uis_the_first_answer_wins_and_the_other_stops_asking() {
    let mut world = World::new().await;
    let (first, first_ask) = person();
    let (second, second_ask) = person();
    let slots = [Peer::empty(), Peer::empty()];
    let runs: Vec<Run> = [first_ask, second_ask]
        .into_iter()
        .zip(&slots)
        .map(|(ask, slot)| {
            let mut with = With::json(&world);
            with.ask = ask;
            with.slot = slot.clone();
            start(&world, with)
        })
        .collect();
    let client = world.submitted().await;
    world.submitted().await;
    world.begin(client);
    let ask = UiHubMsg::Ask {
        session: world.handle.id,
        request: question("q"),
        only: None,
    };
    world.hub.cast(ask).expect("the hub lives");
    until(|| first.waits.load(Ordering::SeqCst) == 1 && second.waits.load(Ordering::SeqCst) == 1)
        .await;
    second.says.send(Decision::Approve).expect("it waits");
    let by = loop {
        match world.approval.recv().await.expect("alive") {
            ApprovalMsg::Answer {
                id, decision, by, ..
            } => {
                assert_eq!((id, decision), (ApprovalId::new("q"), Decision::Approve));
                break by;
            }
            _ => continue,
        }
    };
    let resolved = UiHubMsg::Resolved {
        session: world.handle.id,
        id: ApprovalId::new("q"),
        decision: Decision::Approve,
        by: DecidedBy::Ui(by),
    };
    world.hub.cast(resolved).expect("the hub lives");
    until(|| first.cancelled.load(Ordering::SeqCst)).await;
    world.end(TurnEnd::Completed);
    for run in runs {
        assert!(run.err.text().contains("$ make install"));
        assert_eq!(outcome(run).await.0.exit_code, 0);
    }
}

#[tokio::test]
async fn a_person_who_is_gone_refuses() {
    let mut world = World::new().await;
    let (person, ask) = person();
    let mut with = With::json(&world);
    with.ask = ask;
    let run = start(&world, with);
    let client = world.submitted().await;
    world.begin(client);
    drop(person.says);
    let ask = UiHubMsg::Ask {
        session: world.handle.id,
        request: question("q"),
        only: None,
    };
    world.hub.cast(ask).expect("the hub lives");
    loop {
        if let ApprovalMsg::Answer { decision, .. } = world.approval.recv().await.expect("alive") {
            assert_eq!(decision, Decision::Deny { text: None });
            break;
        }
    }
    world.end(TurnEnd::Completed);
    outcome(run).await;
}

#[tokio::test]
async fn a_question_is_shown_before_keys_are_read() {
    let mut world = World::new().await;
    let shown = Arc::new(Mutex::new(String::new()));
    struct Looks(Device, Arc<Mutex<String>>);
    impl Answers for Looks {
        fn wait(&mut self, _: &AtomicBool) -> Option<Decision> {
            *self.1.lock().expect("not poisoned") = self.0.text();
            Some(Decision::ApproveForSession)
        }
    }
    let err = Device::default();
    let args = ExecArgs {
        hub: world.hub.clone(),
        slot: world.slot.clone(),
        session: world.handle.clone(),
        ready: ready(),
        mode: ExecMode::Json,
        prompt: vec![Part::Text { text: "hi".into() }],
        client: ClientId::new("c"),
        ask: AskMode::Person(Box::new(Looks(err.clone(), Arc::clone(&shown)))),
        out: Device::default().boxed(),
        err: err.boxed(),
        prices: None,
        resubmit: RESUBMIT,
        fault: FaultSwitch::default(),
    };
    let ended = tokio::spawn(run(args));
    let client = world.submitted().await;
    world.begin(client);
    let ask = UiHubMsg::Ask {
        session: world.handle.id,
        request: question("q"),
        only: None,
    };
    world.hub.cast(ask).expect("the hub lives");
    loop {
        if let ApprovalMsg::Answer { decision, .. } = world.approval.recv().await.expect("alive") {
            assert_eq!(decision, Decision::ApproveForSession);
            break;
        }
    }
    assert!(shown.lock().expect("not poisoned").contains("[y] yes"));
    world.end(TurnEnd::Completed);
    ended.await.expect("no panic").expect("an outcome");
}
