//! `interpreter`: the root of the supervision tree, and the command line in front of it.
//!
//! Read [`tree`] first: it is the picture of who starts whom. The supervisors ([`root`], [`session_hub`],
//! [`session_supervisor`]) only supervise. [`cli`] is the edge: it turns flags and configuration into a session's
//! settings, attaches a user interface, and waits.

pub mod cli;
pub mod root;
pub mod session_hub;
pub mod session_supervisor;
pub mod tree;

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
