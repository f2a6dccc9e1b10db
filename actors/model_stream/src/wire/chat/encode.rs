//! Chat requests. The body is `head`, then messages joined by commas, then `]}`; nothing is encoded twice.

use bytes::Bytes;
use interpreter_messages::journal::Part;
use interpreter_messages::model::WireApi;
use interpreter_messages::wire::{
    WireCall, WireCaps, WireEncoder, WireHead, WireItem, WireResult, WireTool,
};
use serde_json::{Value, json};

/// Encodes for chat completions.
#[derive(Debug, Clone, Copy)]
pub struct ChatEncoder;

impl WireEncoder for ChatEncoder {
    fn wire(&self) -> WireApi {
        WireApi::Chat
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn head(&self, head: &WireHead) -> Bytes {
        let mut text = format!("{{\"model\":{}", Value::from(head.model.as_str()));
        for (name, value) in &head.params {
            text.push_str(&format!(",{}:{value}", Value::from(name.as_str())));
        }
        if !head.tools.is_empty() {
            let tools: Vec<Value> = head.tools.iter().map(tool).collect();
            text.push_str(&format!(",\"tools\":{}", Value::from(tools)));
        }
        text.push_str(",\"messages\":[");
        let system = |block: &&String| !block.is_empty();
        let blocks: Vec<String> = head
            .system
            .iter()
            .filter(system)
            .map(|block| json!({"role": "system", "content": block}).to_string())
            .collect();
        text.push_str(&blocks.join(","));
        Bytes::from(text)
    }

    fn head_has_items(&self, head: &WireHead) -> bool {
        head.system.iter().any(|block| !block.is_empty())
    }

    fn item(&self, item: &WireItem, caps: WireCaps) -> Bytes {
        let messages: Vec<String> = match item {
            WireItem::User(parts) => {
                vec![json!({"role": "user", "content": content(parts, caps)}).to_string()]
            }
            WireItem::Assistant {
                text,
                reasoning,
                calls,
                ..
            } => {
                vec![assistant(text, reasoning.as_deref(), calls).to_string()]
            }
            WireItem::Results(results) => self::results(results, caps),
        };
        Bytes::from(messages.join(","))
    }

    fn tail(&self, _: &WireHead) -> Bytes {
        Bytes::from_static(b"]}")
    }
}

fn tool(tool: &WireTool) -> Value {
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    });
    if let Some(strict) = tool.strict {
        function["strict"] = strict.into();
    }
    json!({"type": "function", "function": function})
}

fn assistant(text: &str, reasoning: Option<&str>, calls: &[WireCall]) -> Value {
    let mut message = json!({"role": "assistant", "content": text});
    if let Some(reasoning) = reasoning {
        message["reasoning_content"] = reasoning.into();
    }
    if !calls.is_empty() {
        let one = |call: &WireCall| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        };
        message["tool_calls"] = calls.iter().map(one).collect::<Vec<_>>().into();
    }
    message
}

/// One message per result. The wire takes only text there, so images follow in a user message.
fn results(results: &[WireResult], caps: WireCaps) -> Vec<String> {
    let mut images = Vec::new();
    let mut messages: Vec<String> = results
        .iter()
        .map(|result| {
            let mut texts = Vec::new();
            for part in &result.parts {
                match part {
                    Part::Text { text } => texts.push(text.clone()),
                    Part::Image { name, .. } if caps.vision => {
                        texts.push(format!("[image: {name}, in the next message]"));
                        images.push(part.clone());
                    }
                    Part::Image { name, .. } => texts.push(placeholder(name)),
                }
            }
            json!({"role": "tool", "tool_call_id": result.id, "content": texts.join("\n")})
                .to_string()
        })
        .collect();
    if !images.is_empty() {
        messages.push(json!({"role": "user", "content": content(&images, caps)}).to_string());
    }
    messages
}

/// One text is a string; several, or images, are a list of parts (fact of the originals' chat mapping).
fn content(parts: &[Part], caps: WireCaps) -> Value {
    let shown = caps.vision && parts.iter().any(|part| matches!(part, Part::Image { .. }));
    if !shown {
        let texts: Vec<String> = parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.clone(),
                Part::Image { name, .. } => placeholder(name),
            })
            .filter(|text| !text.is_empty())
            .collect();
        return match <[String; 1]>::try_from(texts) {
            Ok([one]) => one.into(),
            Err(several) => several
                .iter()
                .map(|text| json!({"type": "text", "text": text}))
                .collect::<Vec<_>>()
                .into(),
        };
    }
    let part = |part: &Part| match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        Part::Image { mime, data, .. } => {
            let url = format!("data:{mime};base64,{data}");
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
    };
    parts.iter().filter_map(part).collect::<Vec<_>>().into()
}

fn placeholder(name: &str) -> String {
    format!("[image: {name}, not shown: the model reads text only]")
}
