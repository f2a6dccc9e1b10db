use std::sync::Arc;

use bytes::Bytes;
use interpreter_messages::journal::Part;
use interpreter_messages::wire::{
    WireCall, WireCaps, WireEncoder, WireHead, WireItem, WireResult, WireTool,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const EYES: WireCaps = WireCaps { vision: true };

fn text(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

fn image() -> Part {
    Part::Image {
        name: "dot.png".to_owned(),
        mime: "image/png".to_owned(),
        data: "AA==".into(),
    }
}

fn head() -> WireHead {
    let params = json!({"stream": true, "tool_choice": "auto"});
    WireHead {
        model: "m".to_owned(),
        params: params.as_object().cloned().unwrap_or_default(),
        system: vec!["be brief".to_owned()],
        tools: vec![WireTool {
            name: "x".to_owned(),
            description: "d".to_owned(),
            parameters: json!({"type": "object"}),
            strict: Some(false),
        }],
    }
}

fn items() -> Vec<WireItem> {
    vec![
        WireItem::User(vec![text("hi \"you\"\n"), image()]),
        WireItem::Assistant {
            text: String::new(),
            reasoning: Some("hm".to_owned()),
            opaque: Vec::new(),
            calls: vec![WireCall {
                id: "c1".to_owned(),
                name: "x".to_owned(),
                arguments: "{\"a\":1}".to_owned(),
            }],
        },
        WireItem::Results(vec![WireResult {
            id: "c1".to_owned(),
            name: "x".to_owned(),
            parts: vec![text("out"), image()],
            is_error: false,
        }]),
        WireItem::User(vec![text("go on")]),
    ]
}

fn body(head: &WireHead, items: &[WireItem], caps: WireCaps) -> Vec<u8> {
    let mut body = ChatEncoder.head(head).to_vec();
    let mut first = !ChatEncoder.head_has_items(head);
    for item in items {
        if !std::mem::take(&mut first) {
            body.push(b',');
        }
        body.extend_from_slice(&ChatEncoder.item(item, caps));
    }
    body.extend_from_slice(&ChatEncoder.tail(head));
    body
}

#[test]
fn requests_look_as_the_api_wants_them() {
    let show = |caps| {
        let value: Value =
            serde_json::from_slice(&body(&head(), &items(), caps)).expect("a body is JSON");
        serde_json::to_string_pretty(&value).expect("JSON")
    };
    insta::assert_snapshot!("with_vision", show(EYES));
    insta::assert_snapshot!("without_vision", show(WireCaps::default()));
}

proptest! {
    #[test]
    fn every_body_is_json(texts in prop::collection::vec(".{0,20}", 0..6), system in ".{0,10}") {
        let head = WireHead { system: vec![system], ..head() };
        let items: Vec<WireItem> = texts.iter().map(|words| WireItem::User(vec![text(words)])).collect();
        let value: Value = serde_json::from_slice(&body(&head, &items, EYES)).expect("a body is JSON");
        let messages = value["messages"].as_array().map_or(0, Vec::len);
        prop_assert_eq!(messages, items.len() + usize::from(!head.system[0].is_empty()));
    }

    #[test]
    fn any_split_of_an_answer_decodes_to_the_same(cuts in prop::collection::vec(0usize..3000, 0..8), which in 0usize..20) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/cases");
        let mut bodies: Vec<_> = std::fs::read_dir(folder).expect("cases").flatten().map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "txt")).collect();
        bodies.sort();
        let bytes = std::fs::read(&bodies[which % bodies.len()]).expect("a body");
        let tools: Arc<[WireTool]> = ["shell", "read_file", "list_dir", "note"].iter()
            .map(|name| WireTool { name: (*name).to_owned(), description: String::new(), parameters: json!({"type": "object"}), strict: None })
            .collect::<Vec<_>>().into();
        let decode = |pieces: Vec<Bytes>| {
            let mut decoder = ChatDecoder::new(Arc::clone(&tools));
            let mut shown = String::new();
            for piece in pieces {
                decoder.push(&piece, |delta| if let Delta::Text(text) = delta { shown.push_str(text) });
            }
            let finished = decoder.finish(|delta| if let Delta::Text(text) = delta { shown.push_str(text) });
            (shown, format!("{finished:?}"))
        };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(Bytes::copy_from_slice(&bytes[from..cut]));
            from = cut;
        }
        prop_assert_eq!(decode(pieces), decode(vec![Bytes::from(bytes)]));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = ChatDecoder::new(Vec::new().into());
        decoder.push(b"data: ", |_| {});
        decoder.push(&bytes, |_| {});
        let _finished = decoder.finish(|_| {});
    }
}
