//! Which model is asked, how it is reached, and what it can do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Secret;

/// The HTTP API a provider speaks. Names as in `wire_api` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireApi {
    /// `POST /chat/completions`
    Chat,
    /// `POST /responses`
    Responses,
    /// `POST /messages` (Anthropic)
    Messages,
}

impl WireApi {
    /// The name used in configuration and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelProfile {
    /// Sent as `model`.
    pub id: String,
    /// Provider id, as in `[model_providers.ID]`.
    pub provider: String,
    /// Name of the provider for people.
    pub provider_name: String,
    /// The API that requests are encoded for.
    pub wire: WireApi,
    /// Context window in tokens, where known.
    pub context_window: Option<u64>,
    /// Whether images may be sent.
    pub vision: bool,
    /// Whether the model reasons.
    pub reasoning: bool,
    /// Whether reasoning is switched by a `thinking` parameter.
    pub thinking_toggle: bool,
    /// `model_reasoning_effort`, as the user set it.
    pub effort: Option<String>,
    /// Whether reasoning must be sent back with the call that it led to (`reasoning_content` on the chat wire).
    pub echo_reasoning: bool,
    /// Prices, where known.
    pub prices: Option<Prices>,
}

/// Prices per million tokens, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// New input.
    pub input: f64,
    /// Input that the provider had cached.
    pub cached: f64,
    /// Output, reasoning included.
    pub output: f64,
}

impl Eq for Prices {}

/// Tokens of one response or of many, normalised over wire APIs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All input, cached included.
    pub input_total: u64,
    /// Input read from the provider's cache.
    pub input_cached: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// All output, reasoning included.
    pub output_total: u64,
    /// Reasoning part of the output.
    pub output_reasoning: u64,
}

impl Usage {
    /// Adds another response's tokens.
    pub fn add(&mut self, other: &Self) {
        self.input_total += other.input_total;
        self.input_cached += other.input_cached;
        self.cache_write += other.cache_write;
        self.output_total += other.output_total;
        self.output_reasoning += other.output_reasoning;
    }

    /// The price in US dollars. Cached input is a part of the input total and is charged once.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> f64 {
        let fresh = self.input_total.saturating_sub(self.input_cached);
        #[expect(
            clippy::cast_precision_loss,
            reason = "token counts are far below 2^52"
        )]
        let sum = fresh as f64 * prices.input
            + self.input_cached as f64 * prices.cached
            + self.output_total as f64 * prices.output;
        sum / 1e6
    }
}

/// Where and how requests are sent.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Provider id.
    pub provider: String,
    /// How the model is reached.
    pub transport: Transport,
    /// Retries before any output of a request, by the original's names `request_max_retries` (4).
    pub request_max_retries: u32,
    /// Times that a broken stream is asked again (5).
    pub stream_max_retries: u32,
    /// Longest silence within a stream (300 s).
    pub idle_timeout: Duration,
}

/// The two ways to a model.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A server.
    Http(HttpTransport),
    /// A recording (see the replay provider in `actors/model_stream`).
    Replay {
        /// The transcript, JSON or JSON lines; also a session's journal.
        script: PathBuf,
    },
}

/// A server's address and credentials.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    /// Without a trailing slash; the wire's path is appended.
    pub base_url: String,
    /// `Authorization: Bearer`, where a key is needed.
    pub key: Option<Secret>,
    /// Where the user can set the key; part of the message for 401.
    pub key_hint: Option<String>,
    /// Headers of the configuration; values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// Appended to the URL.
    pub query: Vec<(String, String)>,
}

/// Everything a session needs of the model side; cheap to clone.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// What it is.
    pub profile: Arc<ModelProfile>,
    /// How it is reached.
    pub endpoint: Arc<Endpoint>,
}
