use interpreter_messages::journal::Record;

use super::*;
use crate::load::parse;

/// Lines in the shapes of a rollout of another program; the texts are ours.
const ROLLOUT: &str = include_str!("../../testdata/foreign-rollout.jsonl");

fn entries(text: &str) -> Vec<Entry> {
    let parsed = parse(text.as_bytes());
    let records = parsed.content.records;
    records
        .iter()
        .map(|record: &std::sync::Arc<Record>| record.entry.clone())
        .collect()
}

/// One word for each entry.
fn kinds(entries: &[Entry]) -> Vec<&'static str> {
    entries
        .iter()
        .map(|entry| match entry {
            Entry::Meta(_) => "meta",
            Entry::TurnStarted(_) => "turn",
            Entry::UserInput(_) => "input",
            Entry::Reasoning { .. } => "reasoning",
            Entry::AssistantText { .. } => "text",
            Entry::ToolCall { .. } => "call",
            Entry::ResponseEnded(_) => "response ended",
            Entry::ToolOutcome { .. } => "outcome",
            Entry::TurnEnded { .. } => "turn ended",
            Entry::Foreign { .. } => "foreign",
            _ => "other",
        })
        .filter(|kind| *kind != "foreign")
        .collect()
}

#[test]
fn a_rollout_of_another_program_is_a_conversation() {
    let entries = entries(ROLLOUT);
    assert_eq!(
        kinds(&entries),
        [
            "meta",
            "turn",
            "input",
            "reasoning",
            "text",
            "call",
            "response ended",
            "outcome",
            "text",
            "response ended",
            "turn ended",
            "turn",
            "input",
            "call",
            "response ended",
            "outcome",
            "turn ended",
        ]
    );
}

#[test]
fn what_another_program_told_the_model_is_not_the_users_words() {
    for entry in entries(ROLLOUT) {
        if let Entry::UserInput(input) = entry {
            let Part::Text { text } = &input.parts[0] else {
                panic!("only text in this file");
            };
            assert!(!text.contains("environment_context"), "{text}");
        }
    }
}

#[test]
fn a_call_without_result_is_closed_at_the_end() {
    let entries = entries(ROLLOUT);
    assert!(
        entries.iter().any(|entry| matches!(
            entry,
            Entry::ToolOutcome {
                outcome: ToolOutcome::Aborted { .. },
                ..
            }
        )),
        "{entries:#?}"
    );
}

#[test]
fn foreign_lines_are_never_damage() {
    let parsed = parse(ROLLOUT.as_bytes());
    assert_eq!(parsed.lost, []);
    assert_eq!(parsed.unknown, 0);
}

#[test]
fn a_session_of_another_program_goes_on_with_our_records() {
    let context = crate::testing::turn(3, 1, 5);
    let ours = crate::load::tests::file_of(&context).0;
    let both = [ROLLOUT.as_bytes(), &ours].concat();
    let parsed = parse(&both);
    let turns: Vec<u64> = parsed
        .content
        .records
        .iter()
        .filter_map(|record| match &record.entry {
            Entry::TurnStarted(context) => Some(context.turn.0),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [1, 2, 3]);
    assert_eq!(parsed.lost, []);
    assert_eq!(parsed.content.last.session, 6);
}

#[test]
fn a_session_without_a_usable_id_has_no_meta() {
    let line = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/"}}"#;
    assert!(parse(line.as_bytes()).meta().is_none());
}
