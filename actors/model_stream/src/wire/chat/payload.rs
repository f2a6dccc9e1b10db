//! What a chat event may hold, as lenient as servers are careless. Texts are borrowed from the buffer where they can be.

use std::borrow::Cow;

use interpreter_messages::model::Usage;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A null where a value belongs is the value's default.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Event<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub choices: Vec<Choice<'a>>,
    pub usage: Option<UsagePayload>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Choice<'a> {
    #[serde(deserialize_with = "nullable")]
    pub index: u64,
    #[serde(borrow)]
    pub delta: Option<Message<'a>>,
    #[serde(borrow)]
    pub message: Option<Message<'a>>,
    #[serde(borrow)]
    pub finish_reason: Option<Cow<'a, str>>,
    pub usage: Option<UsagePayload>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Message<'a> {
    #[serde(borrow)]
    pub content: Option<Content<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub reasoning: Option<Reasoning<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub tool_calls: Vec<CallPiece<'a>>,
    #[serde(borrow)]
    pub function_call: Option<FunctionPiece<'a>>,
}

/// `content` is a text, or a list of parts.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(Vec<TextPart>),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct TextPart {
    pub text: Option<String>,
}

impl Content<'_> {
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Parts(parts) => parts
                .iter()
                .filter_map(|part| part.text.as_deref())
                .collect::<String>()
                .into(),
        }
    }
}

/// Some servers send a text, others an object.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Reasoning<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(Value),
}

impl Reasoning<'_> {
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Other(value) => {
                let inner = value["content"].as_str().or_else(|| value["text"].as_str());
                inner.unwrap_or_default().to_owned().into()
            }
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct CallPiece<'a> {
    pub index: Option<u64>,
    #[serde(borrow)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FunctionPiece<'a> {
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

/// Usage in all the dialects seen.
#[derive(Deserialize, Default, Debug, Clone, Copy)]
#[serde(default)]
pub struct UsagePayload {
    #[serde(deserialize_with = "nullable")]
    prompt_tokens: u64,
    #[serde(deserialize_with = "nullable")]
    completion_tokens: u64,
    #[serde(deserialize_with = "nullable")]
    cached_tokens: u64,
    #[serde(deserialize_with = "nullable")]
    prompt_cache_hit_tokens: u64,
    #[serde(deserialize_with = "nullable")]
    prompt_tokens_details: PromptDetails,
    #[serde(deserialize_with = "nullable")]
    completion_tokens_details: CompletionDetails,
}

#[derive(Deserialize, Default, Debug, Clone, Copy)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "nullable")]
    cached_tokens: u64,
    #[serde(deserialize_with = "nullable")]
    cache_write_tokens: u64,
}

#[derive(Deserialize, Default, Debug, Clone, Copy)]
#[serde(default)]
struct CompletionDetails {
    #[serde(deserialize_with = "nullable")]
    reasoning_tokens: u64,
}

impl UsagePayload {
    /// On this wire the prompt includes what was cached, and the completion includes reasoning.
    pub fn normalise(self) -> Usage {
        let details = self.prompt_tokens_details;
        let cached = details
            .cached_tokens
            .max(self.cached_tokens)
            .max(self.prompt_cache_hit_tokens);
        let reasoning = self.completion_tokens_details.reasoning_tokens;
        Usage {
            input_total: self.prompt_tokens.max(cached),
            input_cached: cached,
            cache_write: details.cache_write_tokens,
            output_total: self.completion_tokens.max(reasoning),
            output_reasoning: reasoning,
        }
    }
}
