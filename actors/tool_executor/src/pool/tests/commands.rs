//! Commands: yield, poll, time out, cancel, shut down.

use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::tool::{
    ExecOutput, ExitStatus, Intent, ToolOutcome, ToolOutput, ToolPoolMsg,
};
use interpreter_messages::{CallId, ProcessId, TurnId};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::world::{World, exec, exec_with, stdin};

fn output(outcome: ToolOutcome) -> ExecOutput {
    match outcome {
        ToolOutcome::Ok {
            output: ToolOutput::Exec(output),
        }
        | ToolOutcome::TimedOut { output, .. } => output,
        other => panic!("no output: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_is_asked_for_journalled_run_and_forgotten() {
    let mut world = World::new().await;
    world.run("c", exec("echo hello"));
    world.approve().await;
    let Intent::Process {
        argv, escalated, ..
    } = world.intends("c").await
    else {
        panic!("not a process");
    };
    assert_eq!(
        (argv[1..].join(" ").as_str(), escalated),
        ("-c echo hello", false)
    );
    assert_eq!(world.log.started(), 0, "not before the commit");
    world.proceed("c");
    let output = output(world.finished("c").await);
    assert_eq!(
        (output.text.as_str(), output.exit),
        ("hello\n", Some(ExitStatus::Code(0)))
    );
    world.until(|view| view.processes.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_yields_can_be_written_to_and_polled_until_it_ends() {
    let mut world = World::new().await;
    let first = output(world.yielded("c", "run").await);
    assert_eq!(
        (first.text.as_str(), first.process),
        ("up\n", Some(ProcessId(1)))
    );
    assert_eq!(first.wall_ms, 1_000);

    world.run("s", stdin(1, "hey\n"));
    let process = ProcessId(1);
    assert_eq!(world.intends("s").await, Intent::Stdin { process });
    assert!(world.log.stdin.lock().expect("whole").is_empty());
    world.proceed("s");
    let second = output(world.finished("s").await);
    assert_eq!(
        (second.text.as_str(), second.process),
        ("hey\n", Some(process))
    );

    world.run("p", stdin(1, ""));
    let third = output(world.finished("p").await);
    assert_eq!((third.text.as_str(), third.wall_ms), ("", 5_000));

    world.run("x", stdin(7, ""));
    let error = "write_stdin failed: Unknown process id 7".to_owned();
    assert_eq!(world.finished("x").await, ToolOutcome::Failed { error });
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_command_that_yielded_is_given_once() {
    let mut world = World::new().await;
    world.run(
        "c",
        exec_with("run", |exec| {
            exec.yield_ms = Some(1_000);
            exec.timeout_ms = Some(3_000);
        }),
    );
    world.approve().await;
    world.intends("c").await;
    world.proceed("c");
    world.finished("c").await;
    // Its time is up while it is polled.
    world.run("p", stdin(1, ""));
    let last = output(world.finished("p").await);
    assert_eq!(
        (last.text.as_str(), last.exit),
        ("bye\n", Some(ExitStatus::Signal(2)))
    );
    assert_eq!((last.process, last.wall_ms), (None, 2_000));
    world.run("q", stdin(1, ""));
    assert!(matches!(
        world.finished("q").await,
        ToolOutcome::Failed { .. }
    ));
    world.until(|view| view.processes.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_times_out_is_ended_by_the_ladder() {
    for (script, took) in [("run", 2_000), ("deaf", 8_000)] {
        let mut world = World::new().await;
        world.run("c", exec_with(script, |exec| exec.timeout_ms = Some(2_000)));
        world.approve().await;
        world.intends("c").await;
        let start = Instant::now();
        world.proceed("c");
        let outcome = world.finished("c").await;
        assert!(matches!(
            outcome,
            ToolOutcome::TimedOut {
                after_ms: 2_000,
                ..
            }
        ));
        assert_eq!(start.elapsed(), Duration::from_millis(took), "{script}");
        let output = output(outcome);
        assert!(output.text.starts_with("up\n") && output.process.is_none());
        world.until(|view| view.processes.is_empty()).await;
        assert_eq!(world.log.cancels()[0], (ProcessId(1), false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_command_gets_the_ladder_and_reports_nothing() {
    let mut world = World::new().await;
    world.run("c", exec("run"));
    world.approve().await;
    world.intends("c").await;
    world.proceed("c");
    world.until(|view| view.processes.len() == 1).await;
    world.send(ToolPoolMsg::Cancel {
        call: CallId::new("c"),
    });
    world.until(|view| view.processes.is_empty()).await;
    assert_eq!(world.log.cancels(), [(ProcessId(1), false)]);
    world.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_call_is_cancelled_while_it_starts_is_killed() {
    let mut world = World::new().await;
    let gate = Arc::new(Notify::new());
    *world.log.start_gate.lock().expect("whole") = Some(Arc::clone(&gate));
    world.run("c", exec("run"));
    world.approve().await;
    world.intends("c").await;
    world.proceed("c");
    world.assert_quiet().await;
    assert_eq!(world.log.started(), 1, "it is being started");
    world.send(ToolPoolMsg::Cancel {
        call: CallId::new("c"),
    });
    world.assert_quiet().await;
    gate.notify_one();
    world.assert_quiet().await;
    assert_eq!(world.log.cancels(), [(ProcessId(1), true)]);
    world.until(|view| view.processes.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_commands_of_its_turn_and_a_second_one_kills() {
    let mut world = World::new().await;
    world.yielded("c", "deaf").await;
    let cancel = |now| ToolPoolMsg::CancelTurn {
        turn: TurnId(1),
        now,
    };
    world.send(ToolPoolMsg::CancelTurn {
        turn: TurnId(9),
        now: true,
    });
    world.send(cancel(false));
    world.send(cancel(false));
    world.run("p", stdin(1, ""));
    assert!(
        matches!(world.finished("p").await, ToolOutcome::Failed { .. }),
        "out of reach"
    );
    assert_eq!(world.view().await.processes, [ProcessId(1)]);
    world.send(cancel(true));
    world.until(|view| view.processes.is_empty()).await;
    assert_eq!(
        world.log.cancels(),
        [(ProcessId(1), false), (ProcessId(1), true)]
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_commands_are_refused() {
    let mut world = World::new().await;
    for n in 0..64 {
        world.yielded(&format!("c{n}"), "run").await;
    }
    world.run("more", exec("run"));
    let ToolOutcome::Failed { error } = world.finished("more").await else {
        panic!("not refused");
    };
    assert!(
        error.starts_with("64 commands are running already"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_commands_within_its_budget() {
    for script in ["run", "deaf"] {
        let mut world = World::new().await;
        world.yielded("c", script).await;
        world.run("q", exec("echo x"));
        world.question().await;
        let start = Instant::now();
        let log = world.stop().await;
        assert!(
            start.elapsed() <= Duration::from_secs(5),
            "{script}: {:?}",
            start.elapsed()
        );
        assert_eq!(log.cancels(), [(ProcessId(1), false)]);
    }
}
