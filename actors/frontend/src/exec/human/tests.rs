use interpreter_messages::journal::{ErrorClass, TurnError};
use interpreter_messages::model::Usage;
use interpreter_messages::ui::{Item, ItemStatus};
use interpreter_messages::{ItemId, TurnId};

use super::*;
use crate::testing::{message, ready};

fn human(color: bool, stdout_tty: bool) -> Human {
    let options = RenderOptions {
        output_lines: OUTPUT_LINES,
        columns: OUTPUT_COLUMNS,
        prices: None,
        questions: false,
    };
    Human::new(options, color, stdout_tty)
}

fn command(status: ItemStatus) -> Event {
    let item = Item {
        id: ItemId::new("call-1"),
        turn: TurnId(1),
        body: ItemBody::Command {
            argv: Vec::new(),
            script: "make".into(),
            cwd: "/ws".into(),
            status,
            output: None,
            process: None,
        },
    };
    if status == ItemStatus::InProgress {
        Event::ItemStarted { item }
    } else {
        Event::ItemCompleted { item }
    }
}

fn ended(end: TurnEnd) -> Event {
    Event::TurnEnded {
        turn: TurnId(1),
        end,
        total: Usage::default(),
    }
}

fn failed() -> TurnEnd {
    TurnEnd::Failed(TurnError {
        class: ErrorClass::Server,
        message: "the provider failed (500)".into(),
        hint: None,
    })
}

fn shown(human: &mut Human, events: &[Event]) -> Printed {
    let mut all = Printed::default();
    for event in events {
        let printed = human.event(event);
        all.out.push_str(&printed.out);
        all.err.push_str(&printed.err);
    }
    all
}

#[test]
fn only_the_last_message_is_the_answer_and_nothing_is_said_twice() {
    let printed = shown(
        &mut human(false, false),
        &[
            ready(),
            message("a", "I look first"),
            command(ItemStatus::InProgress),
            command(ItemStatus::Failed),
            message("b", "done \u{1b}[1mwell"),
            ended(TurnEnd::Completed),
        ],
    );
    assert_eq!(
        printed.out, "done \u{1b}[1mwell\n",
        "a pipe gets the bytes as they are"
    );
    assert!(printed.err.contains("I look first\n$ make\n"));
    assert!(!printed.err.contains("done"));
    assert!(!printed.err.contains('\u{1b}'));
}

#[test]
fn a_terminal_gets_the_answer_filtered() {
    let printed = shown(
        &mut human(true, true),
        &[
            message("b", "done \u{1b}[1mwell\n"),
            ended(TurnEnd::Completed),
        ],
    );
    assert_eq!(printed.out, "done well\n");
}

#[test]
fn words_of_a_turn_that_failed_are_no_answer() {
    let printed = shown(
        &mut human(false, false),
        &[message("b", "half"), ended(failed())],
    );
    assert_eq!(printed.out, "");
    assert_eq!(printed.err, "half\nerror: the provider failed (500)\n");
}
