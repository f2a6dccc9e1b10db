use interpreter_messages::TurnId;
use interpreter_messages::show::RenderOptions;
use interpreter_messages::ui::Item;

use super::*;

fn screen(color: bool) -> Screen {
    let options = RenderOptions {
        output_lines: 8,
        columns: 80,
        prices: None,
        questions: false,
    };
    Screen::new(Renderer::new(options), color)
}

fn delta(item: &str, text: &str) -> Event {
    Event::Delta {
        item: ItemId::new(item),
        kind: DeltaKind::Text,
        text: text.into(),
    }
}

fn resync(item: &str, text: &str) -> Event {
    Event::Resync {
        item: ItemId::new(item),
        kind: DeltaKind::Text,
        text: text.into(),
    }
}

fn message(item: &str, text: &str) -> Event {
    Event::ItemCompleted {
        item: Item {
            id: ItemId::new(item),
            turn: TurnId(1),
            body: ItemBody::Message { text: text.into() },
        },
    }
}

fn notice(text: &str) -> Event {
    Event::Notice { text: text.into() }
}

fn shown(screen: &mut Screen, events: &[Event]) -> String {
    events.iter().map(|event| screen.event(event)).collect()
}

#[test]
fn a_streamed_answer_is_not_said_twice() {
    let events = [
        delta("a", "Hel"),
        delta("a", "lo\nwor"),
        message("a", "Hello\nworld"),
    ];
    assert_eq!(shown(&mut screen(false), &events), "Hello\nworld\n");
}

#[test]
fn an_answer_that_ends_in_a_line_end_gets_no_second_one() {
    let events = [
        delta("a", "Hello\n"),
        message("a", "Hello\n"),
        message("b", "x"),
    ];
    assert_eq!(shown(&mut screen(false), &events), "Hello\nx\n");
}

#[test]
fn a_resync_shows_only_what_is_new() {
    let events = [
        delta("a", "one "),
        resync("a", "one two"),
        message("a", "one two three"),
    ];
    assert_eq!(shown(&mut screen(false), &events), "one two three\n");
}

#[test]
fn a_resync_without_its_begin_starts_a_new_line() {
    let events = [delta("a", "one "), resync("a", "far later")];
    assert_eq!(shown(&mut screen(false), &events), "one \nfar later");
}

#[test]
fn other_lines_do_not_stick_to_an_answer() {
    let events = [delta("a", "half"), notice("look"), delta("b", "new")];
    assert_eq!(shown(&mut screen(false), &events), "half\n! look\nnew");
}

#[test]
fn an_escape_sequence_cut_between_deltas_reaches_no_terminal() {
    let events = [
        delta("a", "x\u{1b}]52;"),
        delta("a", "c;AA\u{7}y\u{1b}"),
        delta("a", "[2Jz"),
    ];
    assert_eq!(shown(&mut screen(true), &events), "x␛]52;c;AA␇yz");
}

#[test]
fn text_takes_the_place_of_a_prompt() {
    for (color, expected) in [(true, "\r\u{1b}[K"), (false, "\n")] {
        let mut screen = screen(color);
        screen.prompt(false);
        let out = screen.event(&notice("look"));
        assert!(out.starts_with(expected), "{out:?}");
        assert!(!screen.has_prompt());
    }
}
