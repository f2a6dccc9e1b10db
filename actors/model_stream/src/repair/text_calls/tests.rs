use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tools() -> Arc<[WireTool]> {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}, "limit": {"type": "integer"}}});
    vec![WireTool {
        name: "shell".to_owned(),
        description: String::new(),
        parameters,
        strict: None,
    }]
    .into()
}

/// What is shown and what is called, when the text comes in these pieces.
fn run(pieces: &[&str]) -> (String, Vec<(String, Value)>) {
    let mut scan = TextCalls::new(tools());
    let mut text: String = pieces.iter().map(|piece| scan.push(piece)).collect();
    let rest = scan.finish();
    text.push_str(&rest.text);
    let calls = rest.calls.into_iter().map(|call| match call.arguments {
        CallArguments::Object { json, .. } => {
            (call.name, serde_json::from_str(&json).expect("an object"))
        }
        CallArguments::Broken { raw, .. } => (call.name, Value::from(raw)),
    });
    (text, calls.collect())
}

#[test]
fn calls_in_every_dialect_are_found() {
    let ls = vec![("shell".to_owned(), json!({"command": "ls"}))];
    for text in [
        "<tool_call>{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}</tool_call>",
        "<tool_call>\n{\"name\": \"shell\", \"arguments\": \"{\\\"command\\\": \\\"ls\\\"}\"}\n</tool_call>",
        "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
        "<function=shell><parameter=command>ls</parameter></function>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n```json\n{\"command\": \"ls\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{\"command\": \"ls\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{\"command\": \"ls\"}<|tool_call_end|><|tool_calls_section_end|>",
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}",
        "<tool_call>{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}",
    ] {
        assert_eq!(run(&[text]), (String::new(), ls.clone()), "{text}");
    }
}

#[test]
fn examples_thoughts_and_unknown_tools_are_text() {
    for text in [
        "Like this:\n```\n<tool_call>{\"name\": \"shell\", \"arguments\": {\"command\": \"rm -rf /\"}}</tool_call>\n```\n",
        "Write `<tool_call>{\"name\": \"shell\", \"arguments\": {}}</tool_call>` to call it.",
        "<tool_call>{\"name\": \"launch\", \"arguments\": {}}</tool_call>",
        "{\"name\": \"Ada\", \"arguments\": {}}",
        "{\"command\": \"ls\"}",
        "a < b and <tool> is a tag",
        "<tool_",
    ] {
        assert_eq!(run(&[text]), (text.to_owned(), Vec::new()), "{text}");
    }
}

#[test]
fn values_between_tags_keep_angle_brackets_and_get_their_types() {
    let text = "<function=shell>\n<parameter=command>\ngrep \"a < b\" x && echo '<done>'\n</parameter>\n<parameter=limit>\n4\n</parameter>\n</function>";
    let expected = json!({"command": "grep \"a < b\" x && echo '<done>'", "limit": 4});
    assert_eq!(run(&[text]).1, [("shell".to_owned(), expected)]);
}

proptest! {
    #[test]
    fn any_split_gives_the_same(cuts in prop::collection::vec(0usize..200, 0..6), prefix in "(Let me look\\.\n|```\nx\n```\n|)", suffix in "(\nDone\\.|)") {
        let text = format!("{prefix}<tool_call>{{\"name\": \"shell\", \"arguments\": {{\"command\": \"é\"}}}}</tool_call>{suffix}");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| {
            let mut cut = cut.min(text.len());
            while !text.is_char_boundary(cut) { cut -= 1; }
            cut
        }).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&text[from..cut]);
            from = cut;
        }
        pieces.push(&text[from..]);
        let (shown, calls) = run(&pieces);
        prop_assert_eq!(calls.len(), 1);
        prop_assert_eq!(shown, format!("{prefix}{suffix}"));
    }

    #[test]
    fn text_without_marks_is_shown_as_it_is(text in "[a-z<>{}\"` \n=_/]{0,80}") {
        let (shown, calls) = run(&[&text]);
        prop_assert!(calls.is_empty());
        prop_assert_eq!(shown, text);
    }
}
