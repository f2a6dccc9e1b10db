use interpreter_messages::approval::Subject;
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::model::Usage;
use interpreter_messages::{CallId, Seq, SessionId};

use super::*;

fn core(interactive: bool) -> Core {
    let options = Options {
        color: false,
        width: 80,
        interactive,
        prices: None,
    };
    let mut core = Core::new(options, &[]);
    core.attached(UiId(1));
    core
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

/// Plays an event, as number `n` of the session.
fn hear(core: &mut Core, n: u64, event: Event) -> Vec<Effect> {
    core.drained(&Numbered {
        number: n,
        seq: Some(Seq(n)),
        event,
    })
}

fn say(core: &mut Core, line: &str) -> Vec<Effect> {
    core.typed(
        Typed::Line(line.into()),
        ClientId::new(line),
        Instant::now(),
    )
}

fn accepted(client: &str) -> Event {
    Event::Accepted {
        client: ClientId::new(client),
        turn: TurnId(1),
        parts: vec![Part::Text {
            text: client.into(),
        }],
    }
}

fn ended() -> Event {
    Event::TurnEnded {
        turn: TurnId(1),
        end: TurnEnd::Completed,
        total: Usage::default(),
    }
}

fn started() -> Event {
    Event::TurnStarted { turn: TurnId(1) }
}

fn submit(text: &str) -> Effect {
    Effect::Submit {
        client: ClientId::new(text),
        parts: vec![Part::Text { text: text.into() }],
    }
}

fn print(text: &str) -> Effect {
    Effect::Print(text.into())
}

fn question(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(id),
        call: CallId::new("c"),
        turn: TurnId(1),
        subject: Subject::Command {
            command: "make".into(),
            cwd: "/ws".into(),
            escalated: true,
        },
        reason: None,
        origin: Vec::new(),
    }
}

#[test]
fn a_person_gets_a_prompt_when_ready_and_after_each_turn() {
    let mut core = core(true);
    let effects = hear(&mut core, 0, ready());
    assert_eq!(effects[1..], [print("› "), Effect::Want]);
    assert_eq!(say(&mut core, "hi"), [submit("hi"), Effect::Want]);
    hear(&mut core, 1, started());
    assert_eq!(
        hear(&mut core, 2, accepted("hi")),
        [],
        "the terminal echoed it"
    );
    assert_eq!(hear(&mut core, 3, ended()), [print("› ")]);
}

#[test]
fn lines_of_a_pipe_are_turns_one_after_the_other() {
    let mut core = core(false);
    assert_eq!(hear(&mut core, 0, ready()).last(), Some(&Effect::Want));
    assert_eq!(say(&mut core, "one"), [submit("one")]);
    hear(&mut core, 1, started());
    assert_eq!(hear(&mut core, 2, accepted("one")), [print("› one\n")]);
    assert_eq!(hear(&mut core, 3, ended()), [Effect::Want]);
    let end = core.typed(Typed::End, ClientId::new("x"), Instant::now());
    assert_eq!(end.last(), Some(&Effect::Finish));
}

#[test]
fn the_end_of_input_waits_for_the_turn() {
    let mut core = core(false);
    hear(&mut core, 0, ready());
    say(&mut core, "one");
    hear(&mut core, 1, started());
    hear(&mut core, 2, accepted("one"));
    assert_eq!(
        core.typed(Typed::End, ClientId::new("x"), Instant::now()),
        []
    );
    let effects = hear(&mut core, 3, ended());
    assert_eq!(
        effects,
        [
            print("to go on: interpreter resume 00000000-0000-0000-0000-000000000007\n"),
            Effect::Finish
        ]
    );
}

#[test]
fn a_backslash_continues_a_line_and_blank_lines_say_nothing() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    assert_eq!(say(&mut core, "  "), [print("› "), Effect::Want]);
    assert_eq!(say(&mut core, "one\\"), [print("› "), Effect::Want]);
    let effects = say(&mut core, "two");
    assert!(
        matches!(&effects[0], Effect::Submit { parts, .. } if *parts == [Part::Text { text: "one\ntwo".into() }])
    );
}

#[test]
fn an_input_is_sent_again_until_it_is_accepted() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    say(&mut core, "hi");
    assert_eq!(core.tick(), [submit("hi")]);
    assert_eq!(core.attached(UiId(2)), [submit("hi")], "after a crash too");
    hear(&mut core, 1, accepted("hi"));
    assert_eq!(core.tick(), []);
}

#[test]
fn ctrl_c_ends_the_turn_and_the_second_one_kills() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    say(&mut core, "hi");
    hear(&mut core, 1, started());
    hear(&mut core, 2, accepted("hi"));
    let now = Instant::now();
    assert_eq!(core.signal(now), [Effect::Interrupt { now: false }]);
    assert_eq!(core.signal(now), [Effect::Interrupt { now: true }]);
    hear(&mut core, 3, ended());
    assert_eq!(core.tick(), []);
}

#[test]
fn ctrl_c_twice_at_the_prompt_leaves_but_only_when_quick() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    let now = Instant::now();
    let hint = core.signal(now);
    assert!(matches!(&hint[0], Effect::Print(text) if text.contains("Ctrl-C again leaves")));
    let late = now + LEAVE + Duration::from_millis(1);
    assert!(!core.signal(late).contains(&Effect::Finish));
    assert!(core.signal(late).contains(&Effect::Finish));
    assert!(core.is_finished());
}

#[test]
fn an_answer_counts_only_after_the_question_was_readable() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    say(&mut core, "hi");
    hear(&mut core, 1, started());
    hear(&mut core, 2, accepted("hi"));
    let posed = Instant::now();
    let effects = core.ask(question("q"), posed);
    assert!(matches!(&effects[0], Effect::Print(text) if text.contains("$ make")));
    let yes = || Typed::Line("y".into());
    let early = core.typed(
        yes(),
        ClientId::new("x"),
        posed + Duration::from_millis(100),
    );
    assert!(
        !early
            .iter()
            .any(|effect| matches!(effect, Effect::Answer { .. }))
    );
    let answer = core.typed(yes(), ClientId::new("x"), posed + SETTLE);
    assert_eq!(
        answer,
        [
            Effect::Answer {
                id: ApprovalId::new("q"),
                decision: Decision::Approve
            },
            Effect::Want
        ]
    );
    let again = core.ask(question("q"), posed);
    assert!(
        matches!(&again[..], [Effect::Answer { .. }]),
        "lost in a crash"
    );
}

#[test]
fn what_is_no_answer_asks_again_and_reaches_no_model() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    let posed = Instant::now();
    core.ask(question("q"), posed);
    let effects = core.typed(
        Typed::Line("sure, why not".into()),
        ClientId::new("x"),
        posed + SETTLE,
    );
    assert!(matches!(&effects[0], Effect::Print(text) if text.contains("answer y, a, n or q")));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Submit { .. } | Effect::Answer { .. }))
    );
}

#[test]
fn a_turn_that_could_not_begin_is_not_tried_for_ever() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    say(&mut core, "hi");
    let effects = core.drained(&Numbered {
        number: 1,
        seq: None,
        event: ended(),
    });
    assert_eq!(effects, [print("› ")]);
    assert_eq!(core.tick(), []);
}

#[test]
fn a_new_attachment_shows_nothing_twice() {
    let mut core = core(true);
    hear(&mut core, 0, ready());
    let notice = || Event::Notice {
        text: "look".into(),
    };
    assert!(!hear(&mut core, 1, notice()).is_empty());
    assert_eq!(hear(&mut core, 0, ready()), []);
    assert_eq!(hear(&mut core, 1, notice()), []);
}
