//! Between harness and wire: typed items that a harness lays out, and the encoder that makes them bytes.
//!
//! The codecs live in `actors/model_stream/wire`; the tree hands the encoder to the Harness, which encodes each item
//! once and keeps the bytes (DESIGN §8b).

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::journal::Part;
use crate::model::WireApi;

/// A tool as offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireTool {
    /// Name on the wire.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
    /// `strict`, where the harness sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// The unchanging beginning of every request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WireHead {
    /// Model id.
    pub model: String,
    /// Parameters in the order in which they are sent (`stream`, `tool_choice`, …).
    pub params: Map<String, Value>,
    /// System blocks; empty for none.
    pub system: Vec<String>,
    /// Tools, in order.
    pub tools: Vec<WireTool>,
}

/// One message or group of messages.
#[derive(Debug, Clone, PartialEq)]
pub enum WireItem {
    /// A user message; never empty.
    User(Vec<Part>),
    /// An assistant message. Text, reasoning and calls of one response belong together.
    Assistant {
        /// Words; may be empty when there are calls.
        text: String,
        /// Thoughts, where they are sent back.
        reasoning: Option<String>,
        /// What the API wants back unchanged.
        opaque: Vec<Value>,
        /// Calls.
        calls: Vec<WireCall>,
    },
    /// Results of the calls of the assistant message before, all of them, in call order.
    Results(Vec<WireResult>),
}

/// A call in an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireCall {
    /// Unique in the conversation.
    pub id: String,
    /// Wire name.
    pub name: String,
    /// Text of a JSON object.
    pub arguments: String,
}

/// A call's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireResult {
    /// The call.
    pub id: String,
    /// The call's wire name.
    pub name: String,
    /// Text and images; never empty.
    pub parts: Vec<Part>,
    /// Whether the harness marks it as an error, where the wire has such a mark.
    pub is_error: bool,
}

/// What the encoder must know of the receiver.
#[derive(Debug, Clone, Copy, Default)]
pub struct WireCaps {
    /// Whether images may be sent; else each becomes a placeholder text.
    pub vision: bool,
}

/// Makes bytes of items. The body of a request is `head`, then the items joined by `,`, then `tail`.
pub trait WireEncoder: Send + Sync {
    /// Which API.
    fn wire(&self) -> WireApi;
    /// Path below the base URL, such as `/chat/completions`.
    fn path(&self) -> &'static str;
    /// Everything before the first item, system messages included.
    fn head(&self, head: &WireHead) -> Bytes;
    /// Whether `head` already holds messages, so that the first item needs a comma before it.
    fn head_has_items(&self, head: &WireHead) -> bool;
    /// One item as JSON values joined by `,`.
    fn item(&self, item: &WireItem, caps: WireCaps) -> Bytes;
    /// Everything after the last item.
    fn tail(&self, head: &WireHead) -> Bytes;
}

/// An encoder, shared.
pub type SharedEncoder = Arc<dyn WireEncoder>;

/// A finished request.
#[derive(Debug, Clone)]
pub struct WireRequest {
    /// Which API.
    pub wire: WireApi,
    /// Path below the base URL.
    pub path: &'static str,
    /// Headers that the harness adds.
    pub headers: Vec<(String, String)>,
    /// The body in pieces that are never copied.
    pub body: Vec<Bytes>,
    /// Names of the offered tools: what may be taken for a call in a weak model's text.
    pub tools: Arc<[WireTool]>,
}

impl WireRequest {
    /// Length of the body in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// Whether the body is empty; it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.iter().all(Bytes::is_empty)
    }

    /// The body in one piece; for tests and `harness show`.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.body.concat()
    }
}
