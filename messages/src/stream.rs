//! ModelStream: one per request.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::StreamId;
use crate::journal::{Finish, TurnError};
use crate::model::{ModelChoice, Usage};
use crate::wire::WireRequest;

/// What a ModelStream is started with.
#[derive(Debug, Clone)]
pub struct StartStream {
    /// Its id; deltas and events carry it.
    pub stream: StreamId,
    /// The finished request; the same bytes for every attempt.
    pub request: Arc<WireRequest>,
    /// Whom to ask.
    pub model: ModelChoice,
    /// Waits this long first (a re-ask after a broken stream).
    pub delay: Duration,
}

/// To a ModelStream.
#[derive(Debug)]
pub enum ModelStreamMsg {
    /// From its own task.
    Ended(StreamOutcome),
}

/// How a stream ended.
#[derive(Debug, Clone)]
pub enum StreamOutcome {
    /// A finish was seen.
    Done(ModelResponse),
    /// No whole response.
    Failed(StreamFailure),
}

/// A whole response.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// In order.
    pub items: Vec<ModelItem>,
    /// Where the provider told it.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish: Option<Finish>,
    /// What was repaired, for the count per model: kinds such as `tags`, `near_json`, `object_arguments`.
    pub repairs: Vec<&'static str>,
}

/// One item of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelItem {
    /// Words.
    Text(String),
    /// Thoughts.
    Reasoning {
        /// As shown.
        text: String,
        /// What the API wants back.
        opaque: Option<Value>,
    },
    /// A call.
    ToolCall {
        /// The model's id, if it gave one.
        id: Option<String>,
        /// The wire name.
        name: String,
        /// The arguments.
        arguments: CallArguments,
    },
}

/// A call's arguments after repair.
#[derive(Debug, Clone, PartialEq)]
pub enum CallArguments {
    /// A JSON object.
    Object {
        /// Its text, as sent back.
        json: String,
        /// What was repaired, for the model; `None` when nothing.
        repaired: Option<String>,
    },
    /// Not to be run.
    Broken {
        /// What the model wrote.
        raw: String,
        /// Why it cannot be read.
        error: String,
    },
}

/// Why there is no whole response.
#[derive(Debug, Clone)]
pub struct StreamFailure {
    /// Class, message and hint.
    pub error: TurnError,
    /// Whether the same request may be sent again.
    pub retryable: bool,
    /// Text that was already shown.
    pub shown: bool,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// Tokens that were paid nevertheless.
    pub usage: Option<Usage>,
    /// The text that was shown, kept visible and flagged when no retry is left.
    pub partial_text: String,
}
