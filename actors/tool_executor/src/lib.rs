//! Tools: [`ToolPool`], the supervisor of a session's running calls, and what carries them out.
//!
//! [`ToolPool`] starts a ToolExecutor per call and keeps its outcome until it is in the journal. What a call decides
//! is in `flow.rs`, a pure state machine; `executor.rs` is the actor around it. The native file operations are the
//! plain functions below [`file_worker::serve`], which run inside a sandboxed worker process and not in these actors.

pub mod file_worker;

mod calls;
mod executor;
mod flow;
mod inits;
mod ops;
mod output;
mod pool;
mod scope;

pub use pool::{ToolPool, ToolPoolArgs};

#[cfg(test)]
mod tests;
