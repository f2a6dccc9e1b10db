//! Harness: the world that the model sees.
//!
//! A harness is data: a *profile* (a folder with `harness.toml`, prompt templates and tool faces; see `README.md`). One
//! engine, [`Engine`], turns a profile and the history of a session into requests, and responses into operations. It
//! knows no harness by name. [`Harness`] is the thin actor around it, so that a panic in shaping or understanding fails
//! one turn and not the session. Start with `profiles/native/harness.toml`, then `engine.rs`.

mod absorb;
mod arguments;
mod builtin;
mod engine;
mod facts;
mod harness;
mod profile;
mod render;

pub use builtin::ids as builtin_ids;
pub use engine::{Engine, ShapeError};
pub use harness::{Harness, HarnessArgs};
pub use profile::{Profile, ProfileError};
