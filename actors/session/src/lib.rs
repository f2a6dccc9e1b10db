//! Session: drives the turns of one conversation.
//!
//! `core` decides: a fold of the journal ([`core::Conversation`]) and a machine that turns each event into entries to
//! append and effects to carry out. It does no IO, never awaits, and takes no clock. [`Session`] is the thin actor
//! around it: it appends, waits for commits, and sends the effects as messages. It never runs a tool, never speaks to a
//! provider, never writes a file. Start with `core/machine.rs`.

pub mod core;
mod session;

pub use session::{Session, SessionArgs};
