//! The journal: what a session remembers, as a file that tools for Codex rollouts can read.
//!
//! Owns the session's file, its lock, and the number of each record. It never interprets a conversation: what the
//! records mean is the business of Session, Approval and Harness. Pure parts: [`mod@format`] (one record, one line),
//! `foreign` (rollouts that other programs wrote), `load` (a file's bytes to records, with its damage). Around them:
//! [`JournalStore`] (the file), [`index`] (which sessions there are), and [`Journal`], the actor that writes without
//! making anyone wait.

mod foreign;
pub mod format;
pub mod index;
mod journal;
mod load;
mod store;

pub use journal::{Journal, JournalArgs, JournalState};
pub use store::{JournalStore, StoreError, SyncPolicy, UnknownSyncPolicy};

#[cfg(test)]
mod testing;
