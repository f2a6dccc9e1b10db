//! Harness: shapes what the model sees, and understands what it answers.

use std::sync::Arc;

use ractor::RpcReplyPort;
use serde::{Deserialize, Serialize};

use crate::journal::{EnvFacts, Record, TurnError};
use crate::model::ModelProfile;
use crate::stream::ModelResponse;
use crate::tool::ToolCall;
use crate::wire::WireRequest;
use crate::{StreamId, TurnId};

/// To the Harness of a session. Answers go to Session as `SessionMsg::Harness`.
#[derive(Debug)]
pub enum HarnessMsg {
    /// Gathers facts of the surroundings, in a task.
    Gather {
        /// The turn that wants them.
        turn: TurnId,
    },
    /// Makes the next request.
    Shape {
        /// The attempt it is for.
        stream: StreamId,
        /// Position of the first of `history` in the session's history.
        from: usize,
        /// History records from there on, in order (`Entry::is_history`). Those already shaped are skipped.
        history: Vec<Arc<Record>>,
        /// The model that will be asked.
        model: Arc<ModelProfile>,
    },
    /// Understands a response.
    Absorb {
        /// Which.
        stream: StreamId,
        /// The response.
        response: ModelResponse,
        /// Call ids that the session has used: new ones must differ.
        used: Arc<std::collections::HashSet<String>>,
    },
    /// From its own task.
    Gathered {
        /// The turn.
        turn: TurnId,
        /// The facts.
        facts: Box<EnvFacts>,
        /// Said to the user: unreadable or cut instruction files.
        warnings: Vec<String>,
    },
    /// Asks for a picture of the state.
    View(RpcReplyPort<HarnessView>),
}

/// What the Harness tells Session.
#[derive(Debug, Clone)]
pub enum HarnessEvent {
    /// Answer to `Gather`.
    Gathered {
        /// The turn.
        turn: TurnId,
        /// The facts.
        facts: Box<EnvFacts>,
        /// Said to the user.
        warnings: Vec<String>,
    },
    /// Answer to `Shape`.
    Shaped {
        /// For which attempt.
        stream: StreamId,
        /// The request, or why there is none.
        result: Result<Arc<WireRequest>, TurnError>,
    },
    /// Answer to `Shape` after a restart: it needs the history from this position on.
    Needs {
        /// For which attempt.
        stream: StreamId,
        /// Position.
        from: usize,
    },
    /// Answer to `Absorb`.
    Absorbed {
        /// Which response.
        stream: StreamId,
        /// What it means, in order.
        actions: Vec<Action>,
    },
}

/// What a response means.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Thoughts, to be shown and kept.
    Reasoning {
        /// As shown.
        text: String,
        /// What the API wants back.
        opaque: Option<serde_json::Value>,
    },
    /// Words, to be shown and kept.
    Say(String),
    /// A call, to be run or answered with its error.
    Call(ToolCall),
}

/// A picture of a Harness.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HarnessView {
    /// Profile id.
    pub id: String,
    /// History records shaped.
    pub shaped: usize,
    /// Bytes of the encoded transcript.
    pub bytes: usize,
    /// Times that an earlier byte changed, with the reasons.
    pub rebases: Vec<String>,
}
