//! Tests over several crates: the workspace itself, the tree, and the real program.
//!
//! One binary, so that one link serves all of them. What one crate can show alone is tested in that crate.

mod cases;
mod crash;
mod exec;
mod kill;
mod sandbox;
mod support;
mod workspace;
