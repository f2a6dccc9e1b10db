use interpreter_messages::journal::{ErrorClass, Part, SessionMeta, TurnError, UserInput};
use interpreter_messages::show::paint;
use interpreter_messages::tool::{
    ChangeKind, Effects, Exec, ExecOutput, FileChange, Plan, PlanStep, Read, StepStatus, Write,
};
use interpreter_messages::{ClientId, Seq, SessionId};
use jiff::Timestamp;

use super::*;

fn records(entries: Vec<Entry>) -> Vec<Arc<Record>> {
    entries
        .into_iter()
        .enumerate()
        .map(|(n, entry)| {
            Arc::new(Record {
                seq: Seq(n as u64),
                at: Timestamp::UNIX_EPOCH,
                entry,
            })
        })
        .collect()
}

fn meta() -> Entry {
    Entry::Meta(SessionMeta {
        id: SessionId(uuid::Uuid::from_u128(7)),
        started: Timestamp::UNIX_EPOCH,
        cwd: "/ws".into(),
        source: "exec".into(),
        version: "0".into(),
        provider: "p".into(),
        harness: "native".into(),
        forked_from: None,
        parent: None,
    })
}

fn user(turn: u64, text: &str) -> Entry {
    Entry::UserInput(UserInput {
        turn: TurnId(turn),
        client: ClientId::new(format!("c{turn}")),
        parts: vec![Part::Text { text: text.into() }],
    })
}

fn call(id: &str, meaning: Meaning) -> Entry {
    Entry::ToolCall {
        turn: TurnId(1),
        call: ToolCall {
            id: CallId::new(id),
            name: "tool".into(),
            arguments: "{}".into(),
            meaning,
            repaired: None,
        },
    }
}

fn outcome(id: &str, outcome: ToolOutcome) -> Entry {
    Entry::ToolOutcome {
        turn: TurnId(1),
        call: CallId::new(id),
        outcome,
    }
}

fn exec(command: &str) -> Meaning {
    Meaning::Run(Operation::Exec(Exec {
        command: command.into(),
        workdir: None,
        shell: None,
        login: false,
        tty: false,
        yield_ms: None,
        timeout_ms: None,
        max_output_tokens: None,
        escalate: false,
        justification: None,
    }))
}

fn ran(text: &str, code: i32) -> ToolOutcome {
    let lines = text.lines().count() as u64;
    ToolOutcome::Ok {
        output: ToolOutput::Exec(ExecOutput {
            text: text.into(),
            total_bytes: text.len() as u64,
            total_lines: lines,
            wall_ms: 12,
            exit: Some(ExitStatus::Code(code)),
            ..ExecOutput::default()
        }),
    }
}

fn changed() -> Vec<FileChange> {
    vec![FileChange {
        path: "/ws/a.rs".into(),
        kind: ChangeKind::Update,
        moved_to: None,
        before: None,
        after: None,
        diff: "@@ -1 +1 @@\n-a\n+b\n".into(),
    }]
}

#[test]
fn a_conversation_of_the_past() {
    let write = || {
        Meaning::Run(Operation::Write(Write {
            path: "a.rs".into(),
            content: "b".into(),
        }))
    };
    let read = Meaning::Run(Operation::Read(Read {
        path: "src/main.rs".into(),
        offset: None,
        limit: None,
    }));
    let plan = Meaning::Run(Operation::Plan(Plan {
        explanation: None,
        steps: vec![PlanStep {
            step: "look".into(),
            status: StepStatus::InProgress,
        }],
    }));
    let done = ToolOutcome::Ok {
        output: ToolOutput::Lines {
            lines: Vec::new(),
            left_out: 0,
        },
    };
    let lines = render(
        &records(vec![
            meta(),
            user(1, "fix the test\nplease"),
            Entry::Reasoning {
                turn: TurnId(1),
                text: "I should look".into(),
                opaque: None,
            },
            Entry::AssistantText {
                turn: TurnId(1),
                text: "I look.".into(),
            },
            call("1", exec("make\necho \u{1b}[2Jx")),
            outcome("1", ran("1\n2\n3\n4\n5\n", 2)),
            call("2", read),
            outcome("2", done.clone()),
            call("3", plan),
            outcome("3", done),
            call("4", write()),
            outcome(
                "4",
                ToolOutcome::Ok {
                    output: ToolOutput::Changed { changes: changed() },
                },
            ),
            call("5", write()),
            outcome(
                "5",
                ToolOutcome::Denied {
                    reason: "no".into(),
                },
            ),
            call("6", exec("sleep 9")),
            outcome(
                "6",
                ToolOutcome::Aborted {
                    reason: "interrupted".into(),
                    output: None,
                },
            ),
            call("7", exec("boom")),
            outcome(
                "7",
                ToolOutcome::Crashed {
                    effects: Effects::Unknown,
                    cause: "the sandbox died".into(),
                    tail: String::new(),
                },
            ),
            call(
                "8",
                Meaning::Invalid(InvalidCall::UnknownTool { nearest: None }),
            ),
            outcome(
                "8",
                ToolOutcome::Failed {
                    error: "no such tool".into(),
                },
            ),
            Entry::TurnEnded {
                turn: TurnId(1),
                end: TurnEnd::Interrupted { by: "user".into() },
            },
            user(2, "go on"),
            Entry::AssistantText {
                turn: TurnId(2),
                text: "Done.".into(),
            },
            Entry::TurnEnded {
                turn: TurnId(2),
                end: TurnEnd::Completed,
            },
            user(3, "more"),
            Entry::TurnEnded {
                turn: TurnId(3),
                end: TurnEnd::Failed(TurnError {
                    class: ErrorClass::Auth,
                    message: "the key was refused".into(),
                    hint: Some("set KEY".into()),
                }),
            },
        ]),
        80,
    );
    insta::assert_snapshot!(paint(&lines, false));
}

#[test]
fn a_call_without_an_outcome_or_an_outcome_without_a_call_shows_nothing() {
    let lines = render(
        &records(vec![
            meta(),
            call("1", exec("make")),
            outcome("2", ran("", 0)),
        ]),
        80,
    );
    assert_eq!(lines, []);
}

#[test]
fn long_output_lines_are_cut_to_the_width() {
    let text = "x".repeat(500);
    let lines = render(
        &records(vec![
            meta(),
            call("1", exec("cat")),
            outcome("1", ran(&text, 0)),
        ]),
        40,
    );
    assert!(lines.iter().all(|line| line.plain().chars().count() <= 41));
}
