//! SandboxProcess: commands and file operations inside a boundary that the kernel enforces.
//!
//! The program starts itself again in another role ([`role`]): one *init* per policy. It is single-threaded, builds the
//! namespaces and mounts once, forks the *file worker*, and then forks a *monitor* for each command. [`SandboxInit`]
//! owns an init; [`SandboxProcess`] owns a command. Whatever ends them (a stop, a crash, a kill of the whole program)
//! closes a socket, and the kernel ends what runs inside. A layer that is missing means that nothing runs: there is no
//! weaker fallback.
//!
//! This is the only crate with `unsafe`. Start with `plan.rs` (what is enforced), then `linux/init.rs`.

mod host;
mod init_actor;
mod linux;
mod passthrough;
mod plan;
mod process;
mod proto;
mod ring;
pub mod role;

pub use host::{Sandboxes, SandboxesArgs};
pub use init_actor::SandboxInit;
pub use passthrough::run_command;
pub use process::SandboxProcess;
