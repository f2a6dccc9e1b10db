use interpreter_messages::Seq;
use interpreter_messages::journal::Part;
use interpreter_messages::tool::{Meaning, Operation, Write};
use proptest::prelude::*;

use super::*;
use crate::testing::{at, entries, meta, session};

fn place() -> Place {
    Place {
        batch: BatchId {
            writer: Writer::Approval,
            number: 9,
        },
        index: 1,
        of: 3,
    }
}

fn lines_of(entry: &Entry) -> String {
    let record = Record {
        seq: Seq(5),
        at: at(),
        entry: entry.clone(),
    };
    let mut text = String::new();
    Encoder::default()
        .encode(&record, Some(place()), &mut text)
        .expect("it can be written");
    text
}

proptest! {
    #[test]
    fn every_entry_comes_back_as_it_was(entry in entries(), nanos in 0..1_000_000_000_i32) {
        let time = Timestamp::new(1_700_000_000, nanos).expect("a time");
        let record = Record { seq: Seq(5), at: time, entry: entry.clone() };
        let mut text = String::new();
        let mut encoder = Encoder::default();
        encoder.encode(&record, Some(place()), &mut text).expect("it can be written");
        let lines: Vec<&str> = text.split_terminator('\n').collect();
        prop_assert_eq!(lines.len() as u64, encoder.ordinal);
        let read = decode(lines[0].as_bytes()).expect("a line");
        prop_assert_eq!(read, Line::Record { at: time, entry: Box::new(entry), place: Some(place()) });
        for mirror in &lines[1..] {
            prop_assert_eq!(decode(mirror.as_bytes()).expect("a line"), Line::Mirror);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn a_line_with_one_changed_byte_is_read_or_refused(entry in entries(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = lines_of(&entry).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode(&bytes);
    }
}

#[test]
fn a_session_looks_like_a_rollout_to_other_tools() {
    let mut encoder = Encoder::default();
    let mut text = String::new();
    for batch in session(1) {
        for entry in batch.entries {
            let record = Record {
                seq: Seq(0),
                at: at(),
                entry,
            };
            encoder
                .encode(&record, None, &mut text)
                .expect("it can be written");
        }
    }
    let seen: Vec<Value> = text
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).expect("JSON");
            let object = line.as_object_mut().expect("an object");
            object.remove("metadata");
            line
        })
        .collect();
    insta::assert_json_snapshot!(seen);
}

#[test]
fn a_long_text_stands_in_a_line_once() {
    let content = "0123456789".repeat(100);
    let call = interpreter_messages::tool::ToolCall {
        id: interpreter_messages::CallId::new("c"),
        name: "write_file".to_owned(),
        arguments: serde_json::json!({"file_path": "a", "text": content}).to_string(),
        meaning: Meaning::Run(Operation::Write(Write {
            path: "a".into(),
            content: content.clone(),
        })),
        repaired: None,
    };
    let line = lines_of(&Entry::ToolCall {
        turn: interpreter_messages::TurnId(1),
        call,
    });
    assert_eq!(line.matches(&content).count(), 1, "{line}");
}

#[test]
fn an_image_stands_in_a_line_once() {
    let data = "QUJD".repeat(100);
    let line = lines_of(&Entry::UserInput(
        interpreter_messages::journal::UserInput {
            turn: interpreter_messages::TurnId(1),
            client: interpreter_messages::ClientId::new("c"),
            parts: vec![Part::Image {
                name: "a.png".to_owned(),
                mime: "image/png".to_owned(),
                data: data.clone().into(),
            }],
        },
    ));
    assert_eq!(line.matches(&data).count(), 1, "{line}");
}

#[test]
fn a_line_of_a_later_version_is_foreign_and_keeps_its_time() {
    let line = lines_of(&Entry::Notice {
        text: "n".to_owned(),
    })
    .replace("\"notice\"", "\"prophecy\"");
    assert!(
        matches!(
            decode(line.trim().as_bytes()),
            Ok(Line::Foreign { at: Some(_), .. })
        ),
        "{line}"
    );
}

#[test]
fn json_that_is_no_object_is_refused() {
    for text in ["3", "null", "\"x\"", "[]", "{", "", "{}}"] {
        assert!(decode(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_an_error_and_writes_nothing() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut meta = meta();
    meta.cwd = std::ffi::OsStr::from_bytes(b"/tmp/\xff").into();
    let record = Record {
        seq: Seq(0),
        at: at(),
        entry: Entry::Meta(meta),
    };
    let (mut encoder, mut text) = (Encoder::default(), String::new());
    assert!(encoder.encode(&record, None, &mut text).is_err());
    assert_eq!((encoder, text.as_str()), (Encoder::default(), ""));
}
