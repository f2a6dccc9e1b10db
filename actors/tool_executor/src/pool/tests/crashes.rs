//! Crashes at every message of an executor, and of what it works with.

use std::sync::atomic::Ordering;

use interpreter_messages::approval::Decision;
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::tool::{
    ChildReport, Effects, Intent, ToolOutcome, ToolOutput, ToolPoolMsg,
};
use interpreter_messages::ui::Event;
use interpreter_messages::{CallId, ProcessId};

use super::world::{World, exec, fault_at, read, stdin, write};

async fn faulty(point: &'static str, pass: usize) -> World {
    World::with(
        ApprovalPolicy::OnRequest,
        SandboxMode::WorkspaceWrite,
        fault_at(point, pass),
    )
    .await
}

fn effects(outcome: &ToolOutcome) -> Effects {
    match outcome {
        ToolOutcome::Crashed { effects, .. } => *effects,
        other => panic!("no crash: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_run_again_once_silently_and_counted() {
    for point in ["tool_executor.begin", "tool_executor.file"] {
        let mut world = faulty(point, 1).await;
        std::fs::write(world.path("a"), "x").expect("a file");
        world.run("r", read("a"));
        let outcome = world.finished("r").await;
        assert!(matches!(
            outcome,
            ToolOutcome::Ok {
                output: ToolOutput::Text(_)
            }
        ));
        assert_eq!(world.view().await.reruns, 1, "{point}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_crashes_twice_before_it_acts_had_no_effect() {
    let hook = interpreter_messages::FaultSwitch::new(|at| {
        assert_ne!(at, "tool_executor.begin", "fault");
    });
    let mut world = World::with(ApprovalPolicy::OnRequest, SandboxMode::WorkspaceWrite, hook).await;
    for (call, operation) in [("r", read("a")), ("w", write("a", "x")), ("c", exec("run"))] {
        world.run(call, operation);
        let outcome = world.finished(call).await;
        assert_eq!(effects(&outcome), Effects::None, "{call}");
    }
    assert_eq!(world.view().await.reruns, 1, "only the read is counted");
    assert!(world.log.orders().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_crashes_before_it_acts_is_prepared_again_and_done_once() {
    for point in ["tool_executor.begin", "tool_executor.file"] {
        let mut world = faulty(point, 1).await;
        world.run("w", write("a", "x"));
        world.intends("w").await;
        world.proceed("w");
        assert!(
            matches!(world.finished("w").await, ToolOutcome::Ok { .. }),
            "{point}"
        );
        let applied = world
            .log
            .orders()
            .iter()
            .filter(|name| **name == "apply")
            .count();
        assert_eq!((applied, world.text("a").as_str()), (1, "x"), "{point}");
        world.assert_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_crashes_while_it_acts_is_judged_by_its_files() {
    for (point, pass, found) in [
        ("tool_executor.proceed", 1, Effects::NotApplied),
        ("tool_executor.file", 2, Effects::Applied),
    ] {
        let mut world = faulty(point, pass).await;
        world.run("w", write("a", "x"));
        world.intends("w").await;
        world.proceed("w");
        let outcome = world.finished("w").await;
        assert_eq!(effects(&outcome), found, "{point}");
        assert_eq!(world.path("a").exists(), found == Effects::Applied);
        world.assert_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_intent_told_before_a_crash_is_not_told_twice_and_its_go_is_not_lost() {
    // The executor crashes at a question asked again, after its intent was told.
    let mut world = faulty("tool_executor.ask_again", 1).await;
    world.run("w", write("a", "x"));
    world.intends("w").await;
    world.send(ToolPoolMsg::PeerRestarted(
        interpreter_messages::session::Who::Approval,
    ));
    world.proceed("w");
    assert!(matches!(
        world.finished("w").await,
        ToolOutcome::Ok { .. }
            | ToolOutcome::Crashed {
                effects: Effects::NotApplied,
                ..
            }
    ));
    world.assert_quiet().await;

    let mut world = faulty("tool_executor.ask_again", 1).await;
    world.run("w", write("a", "x"));
    world.intends("w").await;
    world.send(ToolPoolMsg::PeerRestarted(
        interpreter_messages::session::Who::Approval,
    ));
    // The second preparation is over.
    world.assert_quiet().await;
    assert_eq!(world.log.orders(), ["prepare", "prepare"]);
    world.proceed("w");
    assert!(matches!(world.finished("w").await, ToolOutcome::Ok { .. }));
    assert_eq!(world.text("a"), "x");
}

#[tokio::test(start_paused = true)]
async fn a_go_that_came_before_its_executor_was_ready_is_given_again() {
    let mut world = World::new().await;
    world.run("c", exec("echo x"));
    let question = world.question().await;
    // As if told by an executor that crashed right after: the present one still asks.
    let argv = ["/bin/bash", "-c", "echo x"].map(str::to_owned).to_vec();
    let intent = Intent::Process {
        argv,
        cwd: world.dir.path().to_owned(),
        escalated: false,
    };
    world.send(ToolPoolMsg::Child(ChildReport::Intends {
        call: CallId::new("c"),
        intent: intent.clone(),
    }));
    assert_eq!(world.intends("c").await, intent);
    world.proceed("c");
    world.decide(&question.id, Decision::Approve);
    assert!(matches!(world.finished("c").await, ToolOutcome::Ok { .. }));
    assert_eq!(world.log.started(), 1);
    world.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_preparation_that_differs_from_the_journalled_intent_does_nothing() {
    let mut world = faulty("tool_executor.ask_again", 1).await;
    world.run("w", write("a", "x"));
    world.intends("w").await;
    std::fs::write(world.path("a"), "user").expect("a file");
    world.send(ToolPoolMsg::PeerRestarted(
        interpreter_messages::session::Who::Approval,
    ));
    let ToolOutcome::Failed { error } = world.finished("w").await else {
        panic!("not refused");
    };
    assert!(error.contains("nothing was done"), "{error}");
    assert_eq!(world.text("a"), "user");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_crashes_before_it_starts_asks_again_with_the_same_question() {
    for point in ["tool_executor.begin", "tool_executor.decided"] {
        let mut world = faulty(point, 1).await;
        world.run("c", exec("echo x"));
        let mut questions = vec![world.approve().await];
        if point == "tool_executor.decided" {
            questions.push(world.approve().await);
            assert_eq!(questions[0], questions[1]);
        }
        world.intends("c").await;
        world.proceed("c");
        assert!(
            matches!(world.finished("c").await, ToolOutcome::Ok { .. }),
            "{point}"
        );
        assert_eq!(world.log.started(), 1);
        world.assert_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_crashes_after_its_go_is_killed_and_its_effects_are_unknown() {
    for (point, started) in [
        ("tool_executor.proceed", 0),
        ("tool_executor.started", 1),
        ("tool_executor.snapshot", 1),
    ] {
        let mut world = faulty(point, 1).await;
        world.run(
            "c",
            super::world::exec_with("run", |exec| exec.yield_ms = Some(1_000)),
        );
        world.approve().await;
        world.intends("c").await;
        world.proceed("c");
        let outcome = world.finished("c").await;
        assert_eq!(effects(&outcome), Effects::Unknown, "{point}");
        let ToolOutcome::Crashed { tail, cause, .. } = outcome else {
            panic!("no crash");
        };
        assert!(cause.contains("fault at"), "{cause}");
        assert_eq!(tail, if started == 1 { "up\n" } else { "" });
        world.until(|view| view.processes.is_empty()).await;
        assert_eq!(world.log.started(), started, "{point}");
        assert_eq!(world.log.cancels().len(), started, "{point}");
        world.assert_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn text_whose_call_crashed_leaves_the_command_alone() {
    for point in ["tool_executor.proceed", "tool_executor.stdin_taken"] {
        // The first pass of `proceed` is the command's own.
        let pass = if point == "tool_executor.proceed" {
            2
        } else {
            1
        };
        let mut world = faulty(point, pass).await;
        world.yielded("c", "run").await;
        world.run("s", stdin(1, "hey"));
        world.intends("s").await;
        world.proceed("s");
        assert_eq!(
            effects(&world.finished("s").await),
            Effects::Unknown,
            "{point}"
        );
        assert_eq!(world.view().await.processes, [ProcessId(1)]);
        assert!(world.log.cancels().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_actor_dies_is_a_crash_with_unknown_effects() {
    let mut world = World::new().await;
    world.run("c", exec("die"));
    world.approve().await;
    world.intends("c").await;
    world.proceed("c");
    assert_eq!(effects(&world.finished("c").await), Effects::Unknown);
    world.until(|view| view.processes.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_is_replaced_and_its_call_settled_by_class() {
    for (at, after, expected) in [
        ("prepare", false, None),
        ("prepare", true, None),
        ("apply", false, Some(Effects::NotApplied)),
        ("apply", true, Some(Effects::Applied)),
    ] {
        let mut world = World::new().await;
        *world.log.die_at.lock().expect("whole") = Some((at, after));
        world.run("w", write("a", "x"));
        world.intends("w").await;
        world.proceed("w");
        let outcome = world.finished("w").await;
        match expected {
            None => assert!(matches!(outcome, ToolOutcome::Ok { .. }), "{outcome:?}"),
            Some(expected) => assert_eq!(effects(&outcome), expected, "{at} {after}"),
        }
        assert_eq!(world.log.inits.load(Ordering::SeqCst), 2);
        world.assert_quiet().await;
    }
    let mut world = World::new().await;
    std::fs::write(world.path("a"), "x").expect("a file");
    *world.log.die_at.lock().expect("whole") = Some(("look", true));
    world.run("r", read("a"));
    assert!(matches!(world.finished("r").await, ToolOutcome::Ok { .. }));
    assert_eq!(world.view().await.reruns, 1);
    let events = world.events();
    assert!(
        matches!(&events[..], [Event::Restarted { who, .. }] if who == "sandbox"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_is_killed_from_outside_counts_as_crashed() {
    let mut world = World::new().await;
    world.run("c", exec("echo x"));
    world.approve().await;
    world.intends("c").await;
    for child in world.pool.get_children() {
        child.kill();
    }
    world.approve().await;
    // Known already: it is not told twice, and the go reaches the new executor.
    world.proceed("c");
    assert!(matches!(
        world.finished("c").await,
        ToolOutcome::Ok { .. } | ToolOutcome::Crashed { .. }
    ));
    assert!(world.log.started() <= 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_outlives_everything_but_its_acknowledgement() {
    let mut world = World::new().await;
    world.run("w", write("a", "x"));
    world.intends("w").await;
    world.proceed("w");
    let outcome = world.finished("w").await;
    for _ in 0..2 {
        let report = world.report().await;
        let [status] = report.as_slice() else {
            panic!("one call: {report:?}");
        };
        assert_eq!(status.call, CallId::new("w"));
        assert!(matches!(
            &status.phase,
            interpreter_messages::tool::CallPhase::Finished(kept) if *kept == outcome
        ));
    }
}
