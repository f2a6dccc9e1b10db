//! Configuration: what the user, the project and the flags say, as values. Reads files; starts nothing, writes nothing.
//!
//! [`Config::load`] merges the layers and knows where each value came from, so that every complaint names file, line
//! and the nearest thing that would have been right. From a [`Config`] come a model ([`Config::choose_model`]), a
//! sandbox policy ([`Config::sandbox_policy`]) and the plain settings. [`mod@env`] and [`instructions`] are independent of
//! it. Start with `load.rs`; the keys are in `keys.rs`, the providers in `catalogue.toml`.

pub mod catalogue;
pub mod env;
mod error;
mod home;
pub mod instructions;
mod keys;
mod load;
mod model;
mod sandbox;
mod transport;
pub mod trust;
mod values;

pub use error::ConfigError;
pub use home::home;
pub use load::{Config, LoadOptions, Loaded};
pub use sandbox::PolicyOptions;
pub use values::JournalSync;
