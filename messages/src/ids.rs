//! Identifiers. Each is a newtype, so a call id cannot be passed where a turn id is meant.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The id after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// Wraps a text as this id.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// A conversation; UUID version 7, so ids sort by time. It is the `thread_id` of the exec protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub Uuid);

impl SessionId {
    /// A new id from the clock and randomness.
    #[must_use]
    pub fn now() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

number_id! {
    /// A turn of one session: 1 for the first. A message of an older turn is ignored (DESIGN §0.9).
    TurnId
}
number_id! {
    /// The position of a record in a journal; 0 is the session's meta record.
    Seq
}
number_id! {
    /// How many model responses the conversation held before this request; the same after a retry or a replay.
    RequestNo
}
number_id! {
    /// An attached user interface, unique in the process.
    UiId
}
number_id! {
    /// A running command as the model knows it ("session ID" in the native harness); 1 for the first of a session.
    ProcessId
}

text_id! {
    /// A tool call, unique in its session. The model's own id where it is usable, else one of ours.
    CallId
}
text_id! {
    /// A question to the user; derived from the call, so that a re-submitted question keeps its id.
    ApprovalId
}
text_id! {
    /// Chosen by a UI for each input, so that one that was sent twice is taken once.
    ClientId
}
text_id! {
    /// One thing a UI shows (a message, a command, a file change); stable from start to completion.
    ItemId
}

/// One attempt at one model request. Attempts above 0 are made by Session after output was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamId {
    /// The turn that asked.
    pub turn: TurnId,
    /// Which response of the conversation this will be.
    pub request: RequestNo,
    /// 0 for the first attempt.
    pub attempt: u32,
}

impl ClientId {
    /// A new id from the clock and randomness.
    #[must_use]
    pub fn now() -> Self {
        Self(Uuid::now_v7().to_string())
    }
}

impl ItemId {
    /// The n-th text (from 0) of a response: ModelStream's deltas and Session's final item share it.
    #[must_use]
    pub fn text(stream: StreamId, n: usize) -> Self {
        Self(format!("text-{}-{}-{n}", stream.request, stream.attempt))
    }

    /// The n-th reasoning (from 0) of a response.
    #[must_use]
    pub fn reasoning(stream: StreamId, n: usize) -> Self {
        Self(format!(
            "reasoning-{}-{}-{n}",
            stream.request, stream.attempt
        ))
    }

    /// What a call does.
    #[must_use]
    pub fn call(call: &CallId) -> Self {
        Self(format!("call-{call}"))
    }

    /// The plan of a turn; it is updated by each plan call of the turn.
    #[must_use]
    pub fn plan(turn: TurnId) -> Self {
        Self(format!("plan-{turn}"))
    }
}
