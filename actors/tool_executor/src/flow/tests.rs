//! The steps of a call, without actors.

mod commands;
mod files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use interpreter_messages::approval::{ApprovalRequest, Decision};
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};
use interpreter_messages::tool::{
    ChangeKind, Exec, FileChange, Operation, Plan, Read, RunCall, ToolOutcome, ToolOutput, Write,
    WriteStdin,
};
use interpreter_messages::worker::{FileOrder, FileReply};
use interpreter_messages::{ApprovalId, CallId, ProcessId, TurnId};

use super::{Effect, Flow, Input, Setup};
use crate::inits::NoReply;
use crate::scope::Scope;
use crate::tests::{policy, snapshot};

const ROOT: &str = "/srv/work";

fn setup(operation: Operation) -> Setup {
    Setup {
        run: RunCall {
            turn: TurnId(1),
            call: CallId::new("c"),
            operation,
            cwd: PathBuf::from(ROOT),
        },
        approval: ApprovalPolicy::OnRequest,
        scope: Arc::new(Scope::of(&policy(
            SandboxMode::WorkspaceWrite,
            Path::new(ROOT),
        ))),
        seen: Vec::new(),
        process: ProcessId(4),
        resume_at: None,
        shell: PathBuf::from("/bin/sh"),
    }
}

fn exec(change: impl FnOnce(&mut Exec)) -> Flow {
    Flow::new(setup(exec_operation(change)))
}

fn exec_operation(change: impl FnOnce(&mut Exec)) -> Operation {
    let mut exec = Exec {
        command: "ls".to_owned(),
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
    change(&mut exec);
    Operation::Exec(exec)
}

fn write_operation() -> Operation {
    Operation::Write(Write {
        path: "a".into(),
        content: "x".to_owned(),
    })
}

fn change(path: &str) -> FileChange {
    FileChange {
        path: path.into(),
        kind: ChangeKind::Add,
        moved_to: None,
        before: None,
        after: Some("h".to_owned()),
        diff: "+x".to_owned(),
    }
}

fn decided(n: u32, decision: Decision) -> Input {
    Input::Decided {
        approval: ApprovalId::new(format!("c/{n}")),
        decision,
    }
}

fn asked(effects: &[Effect]) -> &ApprovalRequest {
    let [Effect::Ask(question)] = effects else {
        panic!("no question: {effects:?}");
    };
    question
}

fn outcome(effects: &[Effect]) -> &ToolOutcome {
    match effects.last() {
        Some(Effect::Finish(outcome)) => outcome,
        _ => panic!("not over: {effects:?}"),
    }
}

fn prepared(paths: &[&str]) -> Input {
    Input::File(Ok(FileReply::Prepared {
        changes: paths.iter().map(|path| change(path)).collect(),
    }))
}

fn done() -> Input {
    let changes = vec![change("/srv/work/a")];
    Input::File(Ok(FileReply::Done {
        output: ToolOutput::Changed { changes },
        seen: vec![("/srv/work/a".into(), Some("h".to_owned()))],
    }))
}

fn refusal(denied: bool) -> Input {
    Input::File(Ok(FileReply::Failed {
        error: "cannot write /srv/work/a".to_owned(),
        denied,
    }))
}

#[test]
fn a_plan_is_done_at_once() {
    let plan = Plan {
        explanation: None,
        steps: Vec::new(),
    };
    let mut flow = Flow::new(setup(Operation::Plan(plan.clone())));
    let output = ToolOutput::Plan { plan };
    assert_eq!(
        outcome(&flow.step(Input::Begin, 0)),
        &ToolOutcome::Ok { output }
    );
}

#[test]
fn a_look_asks_nobody_and_tells_what_was_seen() {
    let read = Operation::Read(Read {
        path: "a".into(),
        offset: None,
        limit: None,
    });
    let mut flow = Flow::new(setup(read.clone()));
    let effects = flow.step(Input::Begin, 0);
    let [
        Effect::File {
            request,
            escalated: false,
        },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!(request.order, FileOrder::Look { operation: read });
    let effects = flow.step(done(), 1);
    assert!(
        matches!(effects[..], [Effect::Seen(_), Effect::Finish(_)]),
        "{effects:?}"
    );
}

#[test]
fn a_worker_that_refuses_fails_the_call_and_one_that_dies_loses_it() {
    let flow = || Flow::new(setup(write_operation()));
    let refused = || Input::File(Err(NoReply::Refused("no namespaces".to_owned())));
    let error = "no namespaces".to_owned();
    assert_eq!(
        outcome(&flow().step(refused(), 0)),
        &ToolOutcome::Failed { error }
    );
    let lost = Input::File(Err(NoReply::Lost("gone".to_owned())));
    assert_eq!(flow().step(lost, 0), [Effect::Lost("gone".to_owned())]);
    let ToolOutcome::Failed { error } = outcome(&flow().step(refusal(true), 0)).clone() else {
        panic!("not failed");
    };
    assert!(error.contains("(the sandbox or the permissions"), "{error}");
}

fn stdin(chars: &str, yield_ms: Option<u64>, resume_at: Option<u64>) -> Flow {
    let mut setup = setup(Operation::WriteStdin(WriteStdin {
        process: ProcessId(9),
        chars: chars.to_owned(),
        yield_ms,
        max_output_tokens: None,
    }));
    setup.resume_at = resume_at;
    Flow::new(setup)
}

#[test]
fn inputs_that_do_not_fit_have_no_effect() {
    let inputs = || {
        [
            Input::AskAgain,
            Input::Proceed,
            Input::Started(Ok(())),
            Input::StdinTaken(Ok(())),
            Input::Snapshot(Some(snapshot(b""))),
            decided(1, Decision::Approve),
        ]
    };
    for input in inputs() {
        assert_eq!(exec(|_| {}).step(input, 0), []);
    }
    for input in inputs() {
        assert_eq!(Flow::new(setup(write_operation())).step(input, 0), []);
    }
    for input in inputs() {
        assert_eq!(stdin("x", None, Some(0)).step(input, 0), []);
    }
}

#[test]
fn a_shell_that_the_model_chose_is_part_of_what_is_judged() {
    for (shell, expected) in [(None, "ls"), (Some("./evil.sh"), "'./evil.sh' '-c' 'ls'")] {
        let mut flow = exec(|exec| exec.shell = shell.map(Into::into));
        let asked = flow.step(Input::Begin, 0);
        let Some(Effect::Ask(request)) = asked.first() else {
            panic!("{asked:?}")
        };
        let interpreter_messages::approval::Subject::Command { command, .. } = &request.subject
        else {
            panic!("{request:?}")
        };
        assert_eq!(command, expected);
    }
}
