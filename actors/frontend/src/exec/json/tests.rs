use std::path::PathBuf;

use interpreter_messages::journal::{ErrorClass, TurnError};
use interpreter_messages::tool::{ExecOutput, ExitStatus};
use interpreter_messages::{SessionId, TurnId};
use serde_json::Value;

use super::*;

fn item(id: &str, body: ItemBody) -> Item {
    Item {
        id: ItemId::new(id),
        turn: TurnId(1),
        body,
    }
}

fn command(id: &str, script: &str, status: ItemStatus, output: Option<(&str, i32)>) -> Item {
    let output = output.map(|(text, code)| ExecOutput {
        text: text.into(),
        exit: Some(ExitStatus::Code(code)),
        ..ExecOutput::default()
    });
    item(
        id,
        ItemBody::Command {
            argv: vec!["/bin/bash".into(), "-lc".into(), script.into()],
            script: script.into(),
            cwd: PathBuf::from("/ws"),
            status,
            output,
            process: None,
        },
    )
}

fn change(path: &str, kind: ChangeKind, moved_to: Option<&str>) -> FileChange {
    FileChange {
        path: path.into(),
        kind,
        moved_to: moved_to.map(Into::into),
        before: None,
        after: None,
        diff: String::new(),
    }
}

fn files(status: ItemStatus) -> Item {
    let changes = vec![
        change("/ws/a.txt", ChangeKind::Update, None),
        change("/ws/b.txt", ChangeKind::Update, Some("/ws/c.txt")),
        change("/ws/new.txt", ChangeKind::Add, None),
    ];
    item("call-f", ItemBody::FileChange { changes, status })
}

fn plan(done: bool) -> Item {
    let step = |step: &str, done| PlanStep {
        step: step.into(),
        status: if done {
            StepStatus::Completed
        } else {
            StepStatus::Pending
        },
    };
    item(
        "plan-1",
        ItemBody::Plan {
            steps: vec![step("a", done), step("b", false)],
        },
    )
}

fn ready() -> Event {
    Event::SessionReady {
        session: SessionId(uuid::Uuid::from_u128(7)),
        cwd: "/ws".into(),
        model: "m".into(),
        provider: "p".into(),
        harness: "native".into(),
        sandbox: "read-only".into(),
        approval: "never".into(),
        turns: 0,
    }
}

fn ended(end: TurnEnd) -> Event {
    Event::TurnEnded {
        turn: TurnId(1),
        end,
        total: Usage {
            input_total: 102_565,
            input_cached: 2_000,
            cache_write: 3,
            output_total: 147,
            output_reasoning: 40,
        },
    }
}

/// Everything the protocol can show, in the order of a recorded run.
fn a_run() -> Vec<Event> {
    use ItemStatus::{Completed, Declined, Failed, InProgress};
    let explored = |status| {
        item(
            "call-e",
            ItemBody::Explored {
                what: "read src/main.rs".into(),
                status,
            },
        )
    };
    vec![
        ready(),
        Event::Notice {
            text: "AGENTS.md was cut".into(),
        },
        Event::TurnStarted { turn: TurnId(1) },
        Event::ItemCompleted {
            item: item("r", ItemBody::Reasoning { text: "hm".into() }),
        },
        Event::ItemCompleted {
            item: item(
                "r2",
                ItemBody::Reasoning {
                    text: String::new(),
                },
            ),
        },
        Event::ItemCompleted {
            item: item(
                "t",
                ItemBody::Message {
                    text: "first I list".into(),
                },
            ),
        },
        Event::ItemStarted {
            item: command("call-1", "ls; echo err >&2", InProgress, None),
        },
        Event::ItemCompleted {
            item: command(
                "call-1",
                "ls; echo err >&2",
                Completed,
                Some(("a.txt\nerr\n", 0)),
            ),
        },
        Event::ItemStarted {
            item: command("call-2", "echo par", InProgress, None),
        },
        Event::ItemStarted {
            item: command("call-3", "exit 3", InProgress, None),
        },
        Event::ItemCompleted {
            item: command("call-2", "echo par", Completed, Some(("par\n", 0))),
        },
        Event::ItemCompleted {
            item: command("call-3", "exit 3", Failed, Some(("", 3))),
        },
        Event::ItemCompleted {
            item: command("call-4", "rm -rf /", Declined, None),
        },
        Event::ItemStarted {
            item: files(InProgress),
        },
        Event::ItemCompleted {
            item: files(Completed),
        },
        Event::ItemStarted { item: plan(false) },
        Event::ItemUpdated { item: plan(true) },
        Event::ItemCompleted { item: plan(true) },
        Event::ItemStarted {
            item: explored(InProgress),
        },
        Event::ItemCompleted {
            item: explored(Failed),
        },
        Event::ItemCompleted {
            item: item(
                "x",
                ItemBody::ToolError {
                    tool: "shel".into(),
                    error: "no such tool".into(),
                },
            ),
        },
        Event::Retrying {
            attempt: 1,
            max: 4,
            delay_ms: 200,
            reason: "HTTP 500".into(),
        },
        Event::StreamRestarted {
            discarded: Vec::new(),
            attempt: 2,
            max: 5,
            reason: "the stream was cut".into(),
        },
        Event::Restarted {
            who: "harness".into(),
            cause: "boom".into(),
        },
        Event::ItemStarted {
            item: command("call-5", "sleep 9", InProgress, None),
        },
        Event::ItemCompleted {
            item: item(
                "t2",
                ItemBody::Message {
                    text: "all done".into(),
                },
            ),
        },
        ended(TurnEnd::Completed),
    ]
}

fn lines(events: &[Event]) -> String {
    let mut json = JsonLines::default();
    events.iter().map(|event| json.lines(event)).collect()
}

#[test]
fn a_whole_run_as_lines() {
    insta::assert_snapshot!(lines(&a_run()));
}

#[test]
fn every_line_has_the_fields_of_the_recorded_protocol() {
    let protocol: Value =
        serde_json::from_str(include_str!("../../../testdata/protocol.json")).expect("valid JSON");
    let failing = [ready(), ended(TurnEnd::Interrupted { by: "user".into() })];
    for line in (lines(&a_run()) + &lines(&failing)).lines() {
        let event: Value = serde_json::from_str(line).expect("each line is JSON");
        let kind = event["type"].as_str().expect("a type");
        assert_fields(&protocol["events"][kind], &event, &["type"], line);
        let item = &event["item"];
        if item.is_object() {
            let described = &protocol["items"][item["type"].as_str().expect("a type")];
            let fields: serde_json::Map<String, Value> = described["fields"]
                .as_array()
                .expect("fields")
                .iter()
                .map(|name| (name.as_str().expect("a name").to_owned(), Value::Null))
                .collect();
            assert_fields(&Value::Object(fields), item, &["id", "type"], line);
            if let (Some(known), Some(status)) =
                (described["status"].as_array(), item.get("status"))
            {
                assert!(known.contains(status), "{line}");
            }
        }
    }
}

fn assert_fields(described: &Value, value: &Value, besides: &[&str], line: &str) {
    let mut expected: Vec<&str> = described
        .as_object()
        .unwrap_or_else(|| panic!("not in the protocol: {line}"))
        .keys()
        .map(String::as_str)
        .chain(besides.iter().copied())
        .collect();
    let mut found: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{line}");
}

#[test]
fn a_failure_is_an_error_then_the_failed_turn() {
    let error = TurnError {
        class: ErrorClass::Auth,
        message: "the provider refused the key (401)".into(),
        hint: Some("set KEY".into()),
    };
    insta::assert_snapshot!(lines(&[
        ready(),
        Event::TurnStarted { turn: TurnId(1) },
        ended(TurnEnd::Failed(error))
    ]));
}

#[test]
fn an_interrupt_completes_what_is_open_and_has_a_terminal_event() {
    insta::assert_snapshot!(lines(&[
        ready(),
        Event::TurnStarted { turn: TurnId(1) },
        Event::ItemStarted {
            item: command("call-1", "sleep 9", ItemStatus::InProgress, None)
        },
        ended(TurnEnd::Interrupted { by: "user".into() }),
    ]));
}

#[test]
fn a_second_greeting_adds_no_thread() {
    assert_eq!(lines(&[ready(), ready()]).lines().count(), 1);
}

#[test]
fn no_line_holds_what_a_terminal_obeys_or_a_reader_splits_at() {
    let text = "\u{1b}[2J\u{9b}2J\u{85}\u{2028}\u{2029}\u{7f}\r\n";
    let out = lines(&[Event::ItemCompleted {
        item: item("t", ItemBody::Message { text: text.into() }),
    }]);
    let line = out.strip_suffix('\n').expect("a line end");
    assert!(
        line.chars()
            .all(|c| !c.is_control() && c != '\u{2028}' && c != '\u{2029}')
    );
    let value: Value = serde_json::from_str(line).expect("valid JSON");
    assert_eq!(value["item"]["text"], text);
}
