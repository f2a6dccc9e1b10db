//! The front ends that are no terminal UI, and the hub that all front ends hang on.
//!
//! [`UiHub`] knows who looks at which session and routes questions. [`host`] keeps one UI alive under it. [`exec`] is
//! the UI of `interpreter exec`: one prompt, one turn, human text or the JSON lines of the Codex exec protocol. [`Pen`]
//! is how text reaches a file or terminal without anyone waiting for it. Nothing here knows a session from inside, and
//! nothing here opens a device but the terminal that a question is asked on ([`keys`]). Start with `exec.rs`.

pub mod exec;
mod host;
pub mod keys;
mod pen;
pub mod ui_hub;

pub use exec::{AskMode, ExecArgs, ExecError, ExecMode, ExecOutcome};
pub use host::{HostError, host};
pub use keys::{Answers, Restorer, TerminalAnswers};
pub use pen::Pen;
pub use ui_hub::{UiHub, UiHubArgs};

#[cfg(test)]
mod testing;
