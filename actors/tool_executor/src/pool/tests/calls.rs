//! Calls from order to acknowledgement.

use std::sync::atomic::Ordering;

use interpreter_messages::approval::{Decision, Subject};
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::session::Who;
use interpreter_messages::tool::{CallPhase, Intent, ToolOutcome, ToolOutput, ToolPoolMsg};
use interpreter_messages::{ApprovalId, CallId, FaultSwitch, Peer, TurnId};

use super::world::{World, exec, is_busy, read, write};
use crate::tests::policy;

fn acknowledge(call: &str) -> ToolPoolMsg {
    ToolPoolMsg::Acknowledge {
        call: CallId::new(call),
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_happens_after_its_intent_and_its_outcome_is_kept_until_acknowledged() {
    let mut world = World::new().await;
    world.run("w", write("a.txt", "hi\n"));
    let Intent::Files { changes } = world.intends("w").await else {
        panic!("not files");
    };
    assert_eq!(changes[0].path, world.path("a.txt"));
    assert!(!world.path("a.txt").exists(), "nothing before the commit");
    assert!(matches!(
        world.report().await[0].phase,
        CallPhase::Intends(_)
    ));
    world.proceed("w");
    assert!(matches!(world.finished("w").await, ToolOutcome::Ok { .. }));
    assert_eq!(world.text("a.txt"), "hi\n");
    assert!(matches!(
        world.report().await[0].phase,
        CallPhase::Finished(_)
    ));
    world.send(acknowledge("w"));
    assert!(world.report().await.is_empty());
    assert_eq!(world.log.orders(), ["prepare", "apply"]);
    world.assert_quiet().await;
    assert_eq!(world.pool.get_children().len(), 1, "the init alone is left");
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_once_however_often_it_is_ordered() {
    let mut world = World::new().await;
    world.run("w", write("a.txt", "hi\n"));
    world.run("w", write("a.txt", "hi\n"));
    world.intends("w").await;
    world.run("w", write("a.txt", "hi\n"));
    world.proceed("w");
    world.proceed("w");
    let outcome = world.finished("w").await;
    world.run("w", write("a.txt", "hi\n"));
    assert_eq!(
        world.finished("w").await,
        outcome,
        "told again, not run again"
    );
    world.send(acknowledge("w"));
    world.run("w", write("a.txt", "hi\n"));
    world.proceed("w");
    world.assert_quiet().await;
    assert_eq!(world.log.orders(), ["prepare", "apply"]);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_before_the_end_forgets_nothing() {
    let mut world = World::new().await;
    world.run("w", write("a.txt", "hi\n"));
    world.intends("w").await;
    world.send(acknowledge("w"));
    world.proceed("w");
    assert!(matches!(world.finished("w").await, ToolOutcome::Ok { .. }));
}

#[tokio::test(start_paused = true)]
async fn files_that_were_read_are_guarded_against_changes_from_outside() {
    let mut world = World::new().await;
    std::fs::write(world.path("s"), "v1\n").expect("a file");
    world.run("r", read("s"));
    let ToolOutcome::Ok {
        output: ToolOutput::Text(text),
    } = world.finished("r").await
    else {
        panic!("no text");
    };
    assert_eq!(text.text, "v1\n");
    std::fs::write(world.path("s"), "user\n").expect("a file");
    world.run("w", write("s", "v2\n"));
    let ToolOutcome::Failed { error } = world.finished("w").await else {
        panic!("not refused");
    };
    assert!(error.contains("read it again"), "{error}");
    world.run("r2", read("s"));
    world.finished("r2").await;
    world.run("w2", write("s", "v2\n"));
    world.intends("w2").await;
    world.proceed("w2");
    assert!(matches!(world.finished("w2").await, ToolOutcome::Ok { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_knows_of_files_is_taken_up_but_replaces_nothing_newer() {
    let mut world = World::new().await;
    std::fs::write(world.path("s"), "v1\n").expect("a file");
    world.send(ToolPoolMsg::Seen(vec![(
        world.path("s"),
        Some("old".to_owned()),
    )]));
    world.run("w", write("s", "v2\n"));
    assert!(matches!(
        world.finished("w").await,
        ToolOutcome::Failed { .. }
    ));
    world.run("r", read("s"));
    world.finished("r").await;
    world.send(ToolPoolMsg::Seen(vec![(
        world.path("s"),
        Some("old".to_owned()),
    )]));
    world.run("w2", write("s", "v2\n"));
    world.intends("w2").await;
}

#[tokio::test(start_paused = true)]
async fn a_write_outside_the_workspace_is_asked_for_and_done_outside_the_sandbox() {
    let mut world = World::with(
        ApprovalPolicy::OnRequest,
        SandboxMode::WorkspaceWrite,
        FaultSwitch::default(),
    )
    .await;
    world.run("w", write(".git/x", "hi\n"));
    let question = world.question().await;
    assert_eq!(question.id, ApprovalId::new("w/1"));
    assert!(matches!(
        question.subject,
        Subject::Files {
            escalated: true,
            ..
        }
    ));
    world.decide(&ApprovalId::new("w/2"), Decision::Approve);
    world.decide(&question.id, Decision::Approve);
    world.intends("w").await;
    world.proceed("w");
    assert!(matches!(world.finished("w").await, ToolOutcome::Ok { .. }));
    let orders = world.log.orders.lock().expect("whole").clone();
    assert_eq!(
        orders,
        [
            ("prepare", SandboxMode::WorkspaceWrite),
            ("apply", SandboxMode::DangerFullAccess)
        ]
    );
    assert_eq!(world.log.inits.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_denied_write_is_told_and_never_done() {
    let mut world = World::with(
        ApprovalPolicy::Untrusted,
        SandboxMode::WorkspaceWrite,
        FaultSwitch::default(),
    )
    .await;
    world.run("w", write("a", "hi\n"));
    let question = world.question().await;
    let text = Some("leave it".to_owned());
    world.decide(&question.id, Decision::Deny { text });
    let reason = "leave it".to_owned();
    assert_eq!(world.finished("w").await, ToolOutcome::Denied { reason });
    assert!(!world.path("a").exists());
}

#[tokio::test(start_paused = true)]
async fn open_questions_are_asked_again_when_approval_comes_back() {
    let mut world = World::new().await;
    world.run("c", exec("echo x"));
    let first = world.question().await;
    world.send(ToolPoolMsg::PeerRestarted(Who::Approval));
    let again = world.question().await;
    assert_eq!(first, again);
    world.decide(&again.id, Decision::Approve);
    world.decide(&again.id, Decision::Approve);
    world.intends("c").await;
    world.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_asked_while_approval_is_down_is_asked_when_it_is_back() {
    let mut world = World::new().await;
    world.approval.clear();
    world.run("c", exec("echo x"));
    world.until(|view| view.calls.len() == 1).await;
    world.assert_quiet().await;
    let approval: &Peer<_> = &world.approval;
    approval.fill(world.approval_actor.clone());
    world.send(ToolPoolMsg::PeerRestarted(Who::Approval));
    world.question().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_reports_nothing_and_is_never_run_again() {
    let mut world = World::new().await;
    world.run("w", write("a", "hi\n"));
    world.intends("w").await;
    world.send(ToolPoolMsg::Cancel {
        call: CallId::new("w"),
    });
    world.proceed("w");
    world.run("w", write("a", "hi\n"));
    world.assert_quiet().await;
    assert!(world.report().await.is_empty());
    assert!(!world.path("a").exists());
    assert_eq!(world.events(), [], "an ordered end is no news");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_ends_its_calls_and_no_others() {
    let mut world = World::new().await;
    world.run("a", exec("echo a"));
    world.question().await;
    let mut other = world.run_call("b", exec("echo b"));
    other.turn = TurnId(2);
    world.send(ToolPoolMsg::Run(other));
    world.question().await;
    world.send(ToolPoolMsg::CancelTurn {
        turn: TurnId(1),
        now: false,
    });
    let calls = world.report().await;
    assert_eq!(calls.len(), 1);
    assert!(calls[0].call == CallId::new("b") && is_busy(&calls[0]));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_cannot_be_built_fails_the_call_with_its_reason() {
    let mut world = World::new().await;
    *world.log.no_boundary.lock().expect("whole") = true;
    world.run("r", read("a"));
    let ToolOutcome::Failed { error } = world.finished("r").await else {
        panic!("not failed");
    };
    assert!(error.contains("no user namespaces"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_new_policy_holds_for_new_calls() {
    let mut world = World::new().await;
    let read_only = policy(SandboxMode::ReadOnly, world.dir.path());
    world.send(ToolPoolMsg::Policy(read_only.into()));
    // Below /tmp the sandbox has a place of its own to write to, so the question shows in a protected name alone
    // only where the workspace is elsewhere: the mode of the worker tells.
    world.run("r", read("missing"));
    world.finished("r").await;
    let orders = world.log.orders.lock().expect("whole").clone();
    assert_eq!(orders, [("look", SandboxMode::ReadOnly)]);
}
