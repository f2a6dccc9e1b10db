//! Chat completions: `POST /chat/completions`.

mod decode;
mod encode;
mod payload;

pub use decode::{ChatDecoder, Delta, Finished};
pub use encode::ChatEncoder;

#[cfg(test)]
mod tests;
