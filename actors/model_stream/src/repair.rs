//! What weak models write instead of a tool call, made into one. Pure, and strict about what may run.
//!
//! Only names of offered tools count, never what stands inside a fenced block, and thoughts are not looked at. What was
//! repaired is told to the model with the result.

pub mod arguments;
mod text_calls;

use interpreter_messages::stream::CallArguments;

pub use text_calls::TextCalls;

/// A call found in text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCall {
    /// Name of an offered tool.
    pub name: String,
    /// Its arguments.
    pub arguments: CallArguments,
    /// How it was written: `tool_call`, `function_tags`, `deepseek`, `bare_json`.
    pub dialect: &'static str,
}

/// What is left at the end of the text.
#[derive(Debug, Default)]
pub struct Rest {
    /// Text that was held back and is no call after all.
    pub text: String,
    /// The calls that were found, in order.
    pub calls: Vec<TextCall>,
}
