//! What the actors say to each other, and the data those messages carry.
//!
//! Actor crates never import one another: they meet here. This crate owns types and three small shared structs
//! ([`Peer`], [`EventSink`], [`FaultSwitch`]); it does no IO and starts nothing. Start with [`session`] (who drives a
//! turn), then [`journal`] (what is remembered), then the noun you are after.

pub mod approval;
pub mod fault;
pub mod harness;
pub mod hub;
pub mod ids;
pub mod journal;
pub mod model;
pub mod peer;
pub mod policy;
pub mod process;
pub mod secret;
pub mod session;
pub mod show;
pub mod sink;
pub mod stream;
pub mod tool;
pub mod ui;
pub mod visible;
pub mod wire;
pub mod worker;

pub use fault::FaultSwitch;
pub use ids::*;
pub use peer::{Down, Peer};
pub use secret::Secret;
pub use sink::EventSink;
