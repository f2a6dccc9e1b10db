//! Wire APIs: bytes in, typed items out, and the other way round. Pure and incremental.

pub mod chat;
pub mod sse;

use std::sync::Arc;

use interpreter_messages::model::WireApi;
use interpreter_messages::wire::SharedEncoder;

/// The encoder of an API, where it is supported.
#[must_use]
pub fn encoder(wire: WireApi) -> Option<SharedEncoder> {
    match wire {
        WireApi::Chat => Some(Arc::new(chat::ChatEncoder)),
        WireApi::Responses | WireApi::Messages => None,
    }
}
