//! The pure part of a session. Nothing in here does IO, awaits, or reads a clock.

pub mod conversation;
pub mod events;
pub mod machine;
pub mod recover;

pub use conversation::{Conversation, OpenCall, OpenTurn};
pub use machine::{Effect, Event, Machine, Output, Phase};
