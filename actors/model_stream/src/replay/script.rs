//! Reads a transcript: a script of our own (JSON or JSON lines), or the rollout of a session.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Bytes of a transcript at the most.
const LIMIT: u64 = 256 * 1024 * 1024;

/// A transcript that can be played.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    /// In order.
    pub responses: Vec<Response>,
}

/// One answer of the recorded model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Response {
    /// Words.
    pub text: String,
    /// Thoughts, before the words.
    pub reasoning: String,
    /// Calls, after the words.
    pub calls: Vec<Call>,
    /// Tokens; none are reported when absent.
    pub usage: Option<Usage>,
    /// `finish_reason`; by default what fits.
    pub finish: Option<String>,
    /// Milliseconds before each delta.
    pub pace_ms: u64,
    /// Characters of a delta.
    pub chunk_chars: Option<usize>,
    /// What goes wrong at the first try, the second, and so on.
    pub faults: Vec<Fault>,
}

/// A call of the recorded model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The model's id for it.
    #[serde(default)]
    pub id: Option<String>,
    /// Wire name.
    pub name: String,
    /// An object, or a text that is sent as it is.
    #[serde(default)]
    pub arguments: Value,
}

impl Call {
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

/// Tokens of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// All input.
    pub input: u64,
    /// Of it, from the cache.
    pub cached: u64,
    /// All output.
    pub output: u64,
    /// Of it, reasoning.
    pub reasoning: u64,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An HTTP status instead of an answer.
    Status {
        /// The status.
        status: u16,
        /// The body.
        #[serde(default)]
        body: Option<String>,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after: Option<f64>,
    },
    /// The connection breaks after so many events.
    Cut {
        /// Events before it.
        after_chunks: usize,
    },
    /// Nothing more comes after so many events.
    Stall {
        /// Events before it.
        after_chunks: usize,
    },
    /// An event that is not valid JSON, after so many others.
    BrokenJson {
        /// Events before it.
        after_chunks: usize,
    },
    /// This body instead of the answer.
    Raw {
        /// The body.
        body: String,
    },
}

/// Why a transcript cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the transcript {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a transcript.
    #[error("the transcript {path}:{line}: {reason}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file is larger than 256 MiB.
    #[error("the transcript {path} is larger than 256 MiB")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, rename = "about")]
    _about: Option<String>,
    responses: Vec<Response>,
}

impl Script {
    /// Reads a transcript from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no transcript, or is too large.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let failed = |source| ScriptError::Read {
            path: path.to_path_buf(),
            source,
        };
        if std::fs::metadata(path).map_err(failed)?.len() > LIMIT {
            return Err(ScriptError::TooLarge {
                path: path.to_path_buf(),
            });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text).map_err(|(line, reason)| ScriptError::Invalid {
            path: path.to_path_buf(),
            line,
            reason,
        })
    }

    /// Reads a transcript; an error has the line, from 1, and the reason.
    ///
    /// # Errors
    /// When the text is neither a script nor a rollout.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let first: Option<Value> = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .and_then(|line| serde_json::from_str(line).ok());
        match first {
            Some(first) if first.get("payload").is_some() => Ok(rollout(text)),
            Some(first) if first.get("responses").is_none() => lines(text),
            _ => serde_json::from_str::<Document>(text)
                .map(|document| Self {
                    responses: document.responses,
                })
                .map_err(|error| (error.line().max(1), error.to_string())),
        }
    }
}

fn lines(text: &str) -> Result<Script, (usize, String)> {
    let mut responses = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        responses.push(serde_json::from_str(line).map_err(|error| (at + 1, error.to_string()))?);
    }
    Ok(Script { responses })
}

/// The assistant's part of a session file: what stands between two user messages or results is one response. Lines
/// that are no JSON (a torn end) are left out, as the journal does.
fn rollout(text: &str) -> Script {
    let mut responses = Vec::new();
    let mut current: Option<Response> = None;
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if line["type"] != "response_item" {
            continue;
        }
        let payload = &line["payload"];
        match payload["type"].as_str().unwrap_or_default() {
            "message" if payload["role"] == "assistant" => {
                let texts: Vec<&str> = payload["content"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                current
                    .get_or_insert_default()
                    .text
                    .push_str(&texts.join(""));
            }
            "reasoning" => {
                let parts: Vec<&str> = payload["summary"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                current
                    .get_or_insert_default()
                    .reasoning
                    .push_str(&parts.join("\n"));
            }
            "function_call" => {
                let name = payload["name"].as_str().unwrap_or_default().to_owned();
                let id = payload["call_id"].as_str().map(str::to_owned);
                let arguments = payload["arguments"].clone();
                current.get_or_insert_default().calls.push(Call {
                    id,
                    name,
                    arguments,
                });
            }
            _ => responses.extend(current.take()),
        }
    }
    responses.extend(current);
    Script { responses }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_lines_and_rollouts_are_read() {
        let document = "{\"responses\": [{\"text\": \"a\"}, {\"calls\": [{\"name\": \"x\", \"arguments\": {\"b\": 1}}]}]}";
        let script = Script::parse(document).expect("a document");
        assert_eq!(script.responses.len(), 2);
        assert_eq!(script.responses[1].calls[0].arguments_text(), "{\"b\":1}");
        assert_eq!(
            Script::parse("{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n")
                .expect("lines")
                .responses
                .len(),
            2
        );
        let rollout = [
            "{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}",
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[]}}",
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}}",
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"x\",\"arguments\":\"{}\",\"call_id\":\"c\"}}",
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"\"}}",
            "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"bye\"}]}}",
            "{\"torn",
        ];
        let script = Script::parse(&rollout.join("\n")).expect("a rollout");
        assert_eq!(
            script
                .responses
                .iter()
                .map(|response| response.text.as_str())
                .collect::<Vec<_>>(),
            ["hi", "bye"]
        );
    }

    #[test]
    fn a_bad_transcript_says_where_and_why() {
        for (text, line, word) in [
            ("{\"text\": \"a\"}\n{\"txet\": \"b\"}\n", 2, "txet"),
            ("{\"responses\": [\n{\"text\": 1}]}", 2, "string"),
            ("hello", 1, "expected"),
            ("", 1, "EOF"),
        ] {
            let (at, reason) = Script::parse(text).expect_err("no transcript");
            assert!(at == line && reason.contains(word), "{text}: {at} {reason}");
        }
    }
}
