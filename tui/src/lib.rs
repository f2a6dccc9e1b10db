//! The terminal UI, which for now is the text mode: a conversation line by line, on any terminal or pipe.
//!
//! It compiles against the messages alone, so it can show a recorded journal as well as a running session. It opens no
//! device: whoever starts it hands it the lines that are typed and the [`Paper`](interpreter_messages::show::Paper) that
//! it writes to. Start with `text.rs`; `transcript.rs` shows a conversation that already was.

pub mod text;
pub mod transcript;

pub use text::{Text, TextArgs, TextUi};
