//! Commands, and text for them.

use interpreter_messages::approval::Subject;
use interpreter_messages::process::SpawnFailure;
use interpreter_messages::tool::{Effects, ExitStatus, Intent};

use super::*;

#[test]
fn a_command_is_asked_for_journalled_started_and_waited_for() {
    let mut flow = exec(|exec| {
        exec.workdir = Some("sub/..".into());
        exec.login = true;
        exec.tty = true;
    });
    let effects = flow.step(Input::Begin, 0);
    let question = asked(&effects);
    let subject = Subject::Command {
        command: "ls".to_owned(),
        cwd: ROOT.into(),
        escalated: false,
    };
    assert_eq!(question.subject, subject);
    let effects = flow.step(decided(1, Decision::Approve), 10);
    let argv: Vec<String> = ["/bin/sh", "-lc", "ls"].map(str::to_owned).to_vec();
    let intent = Intent::Process {
        argv: argv.clone(),
        cwd: ROOT.into(),
        escalated: false,
    };
    assert_eq!(effects, [Effect::Intend(intent)]);
    let start = Effect::Start {
        argv,
        cwd: ROOT.into(),
        tty: true,
        escalated: false,
    };
    assert_eq!(flow.step(Input::Proceed, 1_000), [start]);
    let wait = Effect::Wait {
        from: 0,
        within_ms: Some(120_000),
    };
    assert_eq!(flow.step(Input::Started(Ok(())), 1_001), [wait]);
    let effects = flow.step(Input::Snapshot(Some(snapshot(b"out\n"))), 1_500);
    assert_eq!(effects[0], Effect::Release);
    let ToolOutcome::Ok {
        output: ToolOutput::Exec(output),
    } = outcome(&effects)
    else {
        panic!("{effects:?}");
    };
    assert_eq!((output.text.as_str(), output.wall_ms), ("out\n", 500));
    assert_eq!(output.exit, Some(ExitStatus::Code(0)));
}

#[test]
fn a_command_outside_the_sandbox_is_asked_for_as_such_where_there_is_one() {
    let escalate = |exec: &mut Exec| {
        exec.escalate = true;
        exec.justification = Some("needs the network".to_owned());
    };
    let mut flow = exec(escalate);
    let effects = flow.step(Input::Begin, 0);
    assert_eq!(asked(&effects).reason.as_deref(), Some("needs the network"));
    flow.step(decided(1, Decision::Approve), 1);
    let effects = flow.step(Input::Proceed, 2);
    assert!(matches!(
        effects[..],
        [Effect::Start {
            escalated: true,
            ..
        }]
    ));

    let mut setup = setup(exec_operation(escalate));
    let full = policy(SandboxMode::DangerFullAccess, Path::new(ROOT));
    setup.scope = Arc::new(Scope::of(&full));
    let effects = Flow::new(setup).step(Input::Begin, 0);
    assert!(matches!(
        asked(&effects).subject,
        Subject::Command {
            escalated: false,
            ..
        }
    ));
}

/// A command that runs.
fn running(change: impl FnOnce(&mut Exec)) -> (Flow, Vec<Effect>) {
    let mut flow = exec(change);
    flow.step(Input::Begin, 0);
    flow.step(decided(1, Decision::Approve), 0);
    flow.step(Input::Proceed, 0);
    let effects = flow.step(Input::Started(Ok(())), 0);
    (flow, effects)
}

fn still_running(output: &[u8]) -> Input {
    let mut snapshot = snapshot(output);
    snapshot.exit = None;
    Input::Snapshot(Some(snapshot))
}

#[test]
fn yield_times_are_kept_within_their_range() {
    for (yield_ms, timeout_ms, within) in [
        (Some(10), None, 250),
        (Some(1_000), None, 1_000),
        (Some(90_000), None, 30_000),
        (Some(5_000), Some(2_000), 2_000),
        (None, Some(7_000), 7_000),
        (None, None, 120_000),
    ] {
        let (_, effects) = running(|exec| {
            exec.yield_ms = yield_ms;
            exec.timeout_ms = timeout_ms;
        });
        let wait = Effect::Wait {
            from: 0,
            within_ms: Some(within),
        };
        assert_eq!(effects, [wait], "{yield_ms:?} {timeout_ms:?}");
    }
}

#[test]
fn a_command_that_yields_runs_on_until_its_time_is_up() {
    let (mut flow, _) = running(|exec| {
        exec.yield_ms = Some(1_000);
        exec.timeout_ms = Some(60_000);
    });
    let effects = flow.step(still_running(b"abc"), 1_000);
    let yielded = Effect::Yield {
        offset: 3,
        expires_ms: Some(59_000),
    };
    assert_eq!(effects[0], yielded);
    let ToolOutcome::Ok {
        output: ToolOutput::Exec(output),
    } = outcome(&effects)
    else {
        panic!("{effects:?}");
    };
    assert_eq!((output.exit, output.process), (None, Some(ProcessId(4))));
}

#[test]
fn a_command_that_times_out_gets_the_ladder_and_its_last_words_are_told() {
    let (mut flow, _) = running(|exec| exec.timeout_ms = Some(2_000));
    let effects = flow.step(still_running(b"a"), 2_000);
    let wait = Effect::Wait {
        from: 0,
        within_ms: Some(6_000),
    };
    assert_eq!(effects, [Effect::Kill { now: false }, wait]);
    let mut last = snapshot(b"a\nbye\n");
    last.exit = Some(ExitStatus::Signal(2));
    let effects = flow.step(Input::Snapshot(Some(last)), 2_100);
    let ToolOutcome::TimedOut {
        after_ms: 2_000,
        output,
    } = outcome(&effects)
    else {
        panic!("{effects:?}");
    };
    assert_eq!((output.text.as_str(), output.process), ("a\nbye\n", None));

    let (mut flow, _) = running(|exec| exec.timeout_ms = Some(2_000));
    flow.step(still_running(b"a"), 2_000);
    let effects = flow.step(still_running(b"a"), 8_000);
    assert_eq!(effects[..2], [Effect::Kill { now: true }, Effect::Release]);
    let ToolOutcome::TimedOut { output, .. } = outcome(&effects) else {
        panic!("{effects:?}");
    };
    assert_eq!(output.process, None, "nobody can reach it any more");
}

#[test]
fn a_command_that_was_not_started_did_nothing() {
    let boundary = SpawnFailure::Boundary {
        layer: "landlock".to_owned(),
        reason: "not there".to_owned(),
        hint: "use another kernel".to_owned(),
    };
    let (mut flow, _) = running(|_| {});
    let mut failed = snapshot(b"");
    failed.exit = None;
    failed.failure = Some(boundary.clone());
    let effects = flow.step(Input::Snapshot(Some(failed)), 5);
    let error = boundary.to_string();
    assert_eq!(outcome(&effects), &ToolOutcome::Failed { error });

    let mut flow = exec(|_| {});
    flow.step(Input::Begin, 0);
    flow.step(decided(1, Decision::Approve), 0);
    flow.step(Input::Proceed, 0);
    let effects = flow.step(Input::Started(Err("no actor".to_owned())), 0);
    assert!(matches!(
        outcome(&effects),
        ToolOutcome::Crashed {
            effects: Effects::None,
            ..
        }
    ));

    let (mut flow, _) = running(|_| {});
    assert!(matches!(
        flow.step(Input::Snapshot(None), 5)[..],
        [Effect::Lost(_)]
    ));
}

#[test]
fn an_unknown_command_is_told_in_the_originals_words() {
    let effects = stdin("x", None, None).step(Input::Begin, 0);
    let error = "write_stdin failed: Unknown process id 9".to_owned();
    assert_eq!(outcome(&effects), &ToolOutcome::Failed { error });
}

#[test]
fn a_poll_needs_no_intent_and_waits_long() {
    for (yield_ms, within) in [(None, 5_000), (Some(1), 5_000), (Some(900_000), 300_000)] {
        let effects = stdin("", yield_ms, Some(7)).step(Input::Begin, 0);
        let wait = Effect::Wait {
            from: 7,
            within_ms: Some(within),
        };
        assert_eq!(effects, [wait]);
    }
}

#[test]
fn text_for_a_command_is_journalled_written_and_answered_from_where_it_was() {
    let mut flow = stdin("ls\n", None, Some(7));
    let process = ProcessId(9);
    assert_eq!(
        flow.step(Input::Begin, 0),
        [Effect::Intend(Intent::Stdin { process })]
    );
    assert_eq!(
        flow.step(Input::Proceed, 10),
        [Effect::Stdin(b"ls\n".to_vec())]
    );
    let wait = Effect::Wait {
        from: 7,
        within_ms: Some(250),
    };
    assert_eq!(flow.step(Input::StdinTaken(Ok(())), 11), [wait]);
    let mut snapshot = snapshot(b"file\n");
    snapshot.offset = 12;
    snapshot.exit = None;
    let effects = flow.step(Input::Snapshot(Some(snapshot)), 261);
    let yielded = Effect::Yield {
        offset: 12,
        expires_ms: None,
    };
    assert_eq!(effects[0], yielded);
    let ToolOutcome::Ok {
        output: ToolOutput::Exec(output),
    } = outcome(&effects)
    else {
        panic!("{effects:?}");
    };
    assert_eq!((output.total_bytes, output.process), (5, Some(process)));

    let mut flow = stdin("ls\n", None, Some(7));
    flow.step(Input::Begin, 0);
    flow.step(Input::Proceed, 10);
    let effects = flow.step(Input::StdinTaken(Err("its input is closed".to_owned())), 11);
    let error = "write_stdin failed: its input is closed".to_owned();
    assert_eq!(outcome(&effects), &ToolOutcome::Failed { error });
}
