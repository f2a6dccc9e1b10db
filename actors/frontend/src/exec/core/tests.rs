use interpreter_messages::Seq;
use interpreter_messages::journal::{ErrorClass, TurnError};
use interpreter_messages::model::Usage;

use super::*;
use crate::testing::{message, question, ready};

fn client() -> ClientId {
    ClientId::new("c")
}

fn json() -> Core {
    Core::new(ExecMode::Json, None)
}

fn numbered(number: u64, event: Event) -> Numbered {
    Numbered {
        number,
        seq: Some(Seq(number)),
        event,
    }
}

fn ended(turn: u64, end: TurnEnd) -> Event {
    Event::TurnEnded {
        turn: TurnId(turn),
        end,
        total: Usage::default(),
    }
}

fn interrupted() -> TurnEnd {
    TurnEnd::Interrupted { by: "crash".into() }
}

fn accepted(turn: u64) -> Event {
    Event::Accepted {
        client: client(),
        turn: TurnId(turn),
        parts: Vec::new(),
    }
}

fn play(core: &mut Core, events: Vec<Numbered>) -> Vec<Effect> {
    events
        .iter()
        .flat_map(|event| core.drained(event, &client()))
        .collect()
}

#[test]
fn the_end_of_an_older_turn_is_not_ours() {
    let mut core = json();
    let effects = play(&mut core, vec![numbered(1, ended(4, interrupted()))]);
    assert_eq!(effects, []);
    let effects = play(
        &mut core,
        vec![
            numbered(2, Event::TurnStarted { turn: TurnId(5) }),
            numbered(3, accepted(5)),
            numbered(4, ended(5, TurnEnd::Completed)),
        ],
    );
    assert_eq!(effects.last(), Some(&Effect::Finish));
    assert_eq!(core.outcome().map(|outcome| outcome.exit_code), Some(0));
}

#[test]
fn a_turn_that_cannot_begin_ends_the_run() {
    let mut core = json();
    let error = TurnError {
        class: ErrorClass::Runtime,
        message: "the journal cannot be written".into(),
        hint: None,
    };
    let live = Numbered {
        number: 1,
        seq: None,
        event: ended(1, TurnEnd::Failed(error)),
    };
    let effects = play(&mut core, vec![live]);
    assert_eq!(
        effects[0],
        Effect::Err("error: the journal cannot be written\n".into())
    );
    assert_eq!(core.outcome().map(|outcome| outcome.exit_code), Some(1));
}

#[test]
fn what_was_shown_is_not_shown_again_after_a_new_attachment() {
    let mut core = json();
    let events = || {
        vec![
            numbered(0, ready()),
            numbered(1, Event::TurnStarted { turn: TurnId(1) }),
            numbered(2, accepted(1)),
            numbered(3, message("m", "hello")),
        ]
    };
    let first = play(&mut core, events());
    assert_eq!(first.len(), 3);
    assert_eq!(play(&mut core, events()), []);
    assert_eq!(core.attached(UiId(9)), [Effect::StopAsking]);
    assert_eq!(core.last(), 3);
}

#[test]
fn the_prompt_is_sent_until_it_is_accepted() {
    let mut core = json();
    assert_eq!(core.tick(), [], "not attached yet");
    assert_eq!(core.attached(UiId(1)), [Effect::StopAsking, Effect::Submit]);
    assert_eq!(core.tick(), [Effect::Submit]);
    play(&mut core, vec![numbered(1, accepted(1))]);
    assert_eq!(core.tick(), []);
}

#[test]
fn an_interrupt_waits_for_the_turns_end_and_is_repeated() {
    let mut core = json();
    core.attached(UiId(1));
    play(
        &mut core,
        vec![
            numbered(1, Event::TurnStarted { turn: TurnId(1) }),
            numbered(2, accepted(1)),
        ],
    );
    assert_eq!(core.signal(false), [Effect::Interrupt { now: false }]);
    assert_eq!(core.tick(), [Effect::Interrupt { now: false }]);
    play(&mut core, vec![numbered(3, ended(1, interrupted()))]);
    assert_eq!(core.outcome().map(|outcome| outcome.exit_code), Some(1));
    assert_eq!(core.tick(), []);
}

#[test]
fn an_interrupt_before_anything_began_ends_the_run() {
    let mut core = json();
    core.attached(UiId(1));
    let effects = core.signal(false);
    assert_eq!(effects[0], Effect::Interrupt { now: false });
    assert_eq!(
        effects[1],
        Effect::Out("{\"type\":\"turn.failed\",\"error\":{\"message\":\"interrupted\"}}\n".into())
    );
    assert_eq!(effects.last(), Some(&Effect::Finish));
}

#[test]
fn an_answer_lost_in_a_crash_is_given_again() {
    let mut core = json();
    let id = ApprovalId::new("q");
    let asked = core.ask(question("q"));
    assert_eq!(asked.last(), Some(&Effect::Ask(id.clone())));
    let answer = Effect::Answer {
        id: id.clone(),
        decision: Decision::Approve,
    };
    assert_eq!(core.answered(&id, Decision::Approve), [answer]);
    let again = Effect::Answer {
        id: id.clone(),
        decision: Decision::Approve,
    };
    assert_eq!(core.ask(question("q")), [again]);
    core.resolved(&id);
    assert_eq!(core.ask(question("q")).last(), Some(&Effect::Ask(id)));
}

#[test]
fn a_question_settled_elsewhere_makes_room_for_the_next() {
    let mut core = json();
    core.ask(question("1"));
    assert_eq!(core.ask(question("2")), []);
    let effects = core.resolved(&ApprovalId::new("1"));
    assert_eq!(effects[0], Effect::StopAsking);
    assert_eq!(effects.last(), Some(&Effect::Ask(ApprovalId::new("2"))));
    assert_eq!(core.answered(&ApprovalId::new("1"), Decision::Approve), []);
}
