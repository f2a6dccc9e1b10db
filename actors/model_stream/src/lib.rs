//! ModelStream: one per model request, from the finished bytes to the typed response.
//!
//! Pure parts: [`wire`] (SSE parser, encoders and decoders per API) and [`repair`] (calls that weak models write as text,
//! near-JSON arguments). Around them: `http` sends and retries, `replay` plays a recording instead, [`ModelStream`]
//! is the thin actor that owns the task of one request. It never decides what a response means, and never retries after
//! output was shown: that is Session's business. Start with `wire/chat/decode.rs`.

pub mod failure;
mod http;
pub mod repair;
pub mod replay;
mod retry;
mod stream;
pub mod wire;

pub use http::HttpClient;
pub use stream::{ModelStream, ModelStreamArgs};
pub use wire::encoder;
