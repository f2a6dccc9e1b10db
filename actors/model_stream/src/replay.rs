//! The replay provider: plays a transcript as if it were a model. See `REPLAY.md` beside this crate for the format.
//!
//! It gives the bytes of a real answer of the chat API, so everything behind it runs as with a server: the decoder,
//! the repair, the retries. Which response is played depends only on how many the conversation already holds, and a
//! fault only on how often that response was tried, so a retry, a crash or a resume plays the same again.

mod script;

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use interpreter_messages::RequestNo;
use interpreter_messages::journal::{ErrorClass, TurnError};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::failure::{self, Asked, Failure};

pub use script::{Fault, Response, Script, ScriptError};

/// Characters of a delta, where the script does not say.
const CHUNK: usize = 12;

/// The rest of an answer that is being played.
pub struct Tape {
    pieces: VecDeque<Piece>,
}

enum Piece {
    Bytes(Duration, Bytes),
    /// Nothing more comes, and the connection stays open.
    Stall,
    /// The connection breaks.
    Cut,
}

impl Tape {
    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        match self.pieces.pop_front() {
            Some(Piece::Bytes(pause, bytes)) => {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                Ok(Some(bytes))
            }
            Some(Piece::Stall) => std::future::pending().await,
            Some(Piece::Cut) => Err("the recording cuts the connection here".to_owned()),
            None => Ok(None),
        }
    }
}

/// Opens the response number `request`, for the `attempt`-th time.
pub(crate) async fn open(path: &Path, request: RequestNo, attempt: u32) -> Result<Tape, Failure> {
    let owned = path.to_path_buf();
    let read = tokio::task::spawn_blocking(move || Script::read(&owned)).await;
    let script = match read {
        Ok(Ok(script)) => script,
        Ok(Err(error)) => return Err(unusable(error.to_string())),
        Err(error) => return Err(unusable(error.to_string())),
    };
    let at = usize::try_from(request.0).unwrap_or(usize::MAX);
    let Some(response) = script.responses.get(at) else {
        let held = script.responses.len();
        return Err(unusable(format!(
            "the recording {} has no more answers (it holds {held})",
            path.display()
        )));
    };
    play(response, attempt, path)
}

fn unusable(message: String) -> Failure {
    let error = TurnError {
        class: ErrorClass::InvalidRequest,
        message,
        hint: None,
    };
    Failure {
        error,
        retryable: false,
        retry_after: None,
    }
}

fn play(response: &Response, attempt: u32, path: &Path) -> Result<Tape, Failure> {
    let fault = response
        .faults
        .get(usize::try_from(attempt).unwrap_or(usize::MAX));
    let url = path.display().to_string();
    if let Some(Fault::Status {
        status,
        body,
        retry_after,
    }) = fault
    {
        let asked = Asked {
            provider: "replay",
            model: "recording",
            url: &url,
            hint: None,
            with_key: false,
        };
        let wait = retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        return Err(failure::status(
            *status,
            wait,
            body.as_deref().unwrap_or_default(),
            asked,
        ));
    }
    let pause = Duration::from_millis(response.pace_ms);
    let mut pieces: VecDeque<Piece> = events(response)
        .into_iter()
        .map(|event| Piece::Bytes(pause, Bytes::from(format!("data: {event}\n\n"))))
        .collect();
    pieces.push_back(Piece::Bytes(
        Duration::ZERO,
        Bytes::from_static(b"data: [DONE]\n\n"),
    ));
    match fault {
        Some(Fault::Cut { after_chunks }) => {
            pieces.truncate(*after_chunks);
            pieces.push_back(Piece::Cut);
        }
        Some(Fault::Stall { after_chunks }) => {
            pieces.truncate(*after_chunks);
            pieces.push_back(Piece::Stall);
        }
        Some(Fault::BrokenJson { after_chunks }) => {
            let at = (*after_chunks).min(pieces.len());
            pieces.insert(
                at,
                Piece::Bytes(
                    pause,
                    Bytes::from_static(b"data: {\"choices\":[{\"delta\":{\"cont\n\n"),
                ),
            );
        }
        Some(Fault::Raw { body }) => {
            pieces = VecDeque::from([Piece::Bytes(pause, Bytes::from(body.clone()))]);
        }
        Some(Fault::Status { .. }) | None => {}
    }
    Ok(Tape { pieces })
}

/// The events of an answer, as a server of the chat API sends them.
fn events(response: &Response) -> Vec<Value> {
    let size = response.chunk_chars.unwrap_or(CHUNK).max(1);
    let mut events = Vec::new();
    for piece in pieces(&response.reasoning, size) {
        events.push(delta(&json!({"reasoning_content": piece})));
    }
    for piece in pieces(&response.text, size) {
        events.push(delta(&json!({"content": piece})));
    }
    for (index, call) in response.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("replay_{index}"));
        let function = json!({"name": call.name, "arguments": ""});
        events.push(delta(&json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})));
        for piece in pieces(&call.arguments_text(), size * 4) {
            events.push(delta(
                &json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            ));
        }
    }
    let reason = match &response.finish {
        Some(finish) => finish.as_str(),
        None if response.calls.is_empty() => "stop",
        None => "tool_calls",
    };
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    if let Some(usage) = &response.usage {
        events.push(json!({"choices": [], "usage": {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }}));
    }
    events
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}
