//! What went wrong with a request, in words that help: class, message, hint, and whether asking again may help. Pure.

use std::time::Duration;

use interpreter_messages::journal::{ErrorClass, TurnError};
use serde_json::Value;

/// Bytes of an error body that are shown.
const SHOWN: usize = 2048;

/// Texts by which providers say that the context window is exceeded, where they give no code.
const OVERFLOW: [&str; 9] = [
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "context window",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "exceeds the available context",
    "reduce the length of the messages",
];

/// What a failed request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For the user and Session.
    pub error: TurnError,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
}

/// Whom was asked; for messages.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Provider id.
    pub provider: &'a str,
    /// Model id.
    pub model: &'a str,
    /// The address.
    pub url: &'a str,
    /// Where the key comes from, or how a local server is started.
    pub hint: Option<&'a str>,
    /// Whether a key was sent.
    pub with_key: bool,
}

/// An error object inside a stream that began with 200: its message, and whether asking again may help.
#[must_use]
pub fn in_band(error: &str) -> (TurnError, bool) {
    let value: Value = serde_json::from_str(error).unwrap_or(Value::Null);
    let message = words(&value).unwrap_or_else(|| cut(error));
    let code = value["code"]
        .as_u64()
        .or_else(|| value["code"].as_str().and_then(|code| code.parse().ok()));
    let kind = [&value["type"], &value["code"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let class = if overflows(&message, &kind) {
        ErrorClass::ContextLength
    } else {
        match code {
            Some(429) => ErrorClass::RateLimit,
            Some(401 | 403) => ErrorClass::Auth,
            Some(503 | 529) => ErrorClass::Overloaded,
            Some(400..=499) => ErrorClass::InvalidRequest,
            _ if kind.contains("rate_limit") => ErrorClass::RateLimit,
            _ if kind.contains("overloaded") => ErrorClass::Overloaded,
            _ if kind.contains("authentication") || kind.contains("invalid_api_key") => {
                ErrorClass::Auth
            }
            _ if kind.contains("invalid_request") => ErrorClass::InvalidRequest,
            _ => ErrorClass::Server,
        }
    };
    let retryable = matches!(
        class,
        ErrorClass::Server | ErrorClass::Overloaded | ErrorClass::RateLimit
    );
    let message = format!("the provider reported an error: {message}");
    (
        TurnError {
            class,
            message,
            hint: hint_of(class),
        },
        retryable,
    )
}

fn hint_of(class: ErrorClass) -> Option<String> {
    match class {
        ErrorClass::ContextLength => {
            Some("start a new session, or use a model with a larger context window".to_owned())
        }
        _ => None,
    }
}

/// A refused request.
#[must_use]
pub fn status(status: u16, retry_after: Option<Duration>, body: &str, asked: Asked<'_>) -> Failure {
    let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let inner = if value["error"].is_null() {
        &value
    } else {
        &value["error"]
    };
    let said = words(inner)
        .or_else(|| value["error"].as_str().map(cut))
        .unwrap_or_else(|| cut(body.trim()));
    let kind = [&inner["code"], &inner["type"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let said = if said.is_empty() {
        format!("HTTP {status}")
    } else {
        said
    };
    let Asked {
        provider,
        model,
        url,
        ..
    } = asked;
    let (class, message, hint) = match status {
        400 | 413 | 422 if overflows(&said, &kind) => (
            ErrorClass::ContextLength,
            format!("the conversation does not fit the model {model}: {said}"),
            hint_of(ErrorClass::ContextLength),
        ),
        401 | 403 => (
            ErrorClass::Auth,
            format!("{provider} refused the key (HTTP {status}): {said}"),
            Some(key_hint(asked)),
        ),
        404 => {
            let hint = match asked.hint {
                Some(hint) if !asked.with_key => hint.to_owned(),
                _ => format!("check the model name (-m MODEL) and the address {url}"),
            };
            (
                ErrorClass::InvalidRequest,
                format!(
                    "{provider} does not know the model {model} or the address (HTTP 404): {said}"
                ),
                Some(hint),
            )
        }
        402 => (
            ErrorClass::Auth,
            format!("{provider} wants payment (HTTP 402): {said}"),
            None,
        ),
        408 | 425 => (
            ErrorClass::Transport,
            format!("{provider} timed out (HTTP {status}): {said}"),
            None,
        ),
        429 => (
            ErrorClass::RateLimit,
            format!("{provider} limits the rate (HTTP 429): {said}"),
            Some("wait, or use another model".to_owned()),
        ),
        503 | 529 => (
            ErrorClass::Overloaded,
            format!("{provider} is overloaded (HTTP {status}): {said}"),
            None,
        ),
        500..=599 => (
            ErrorClass::Server,
            format!("{provider} failed (HTTP {status}): {said}"),
            None,
        ),
        _ => (
            ErrorClass::InvalidRequest,
            format!("{provider} refused the request (HTTP {status}): {said}"),
            None,
        ),
    };
    let out_of_quota = status == 429
        && (kind.contains("insufficient_quota") || kind.contains("exceeded_current_quota"));
    let retryable = matches!(status, 408 | 425 | 429 | 500..=599) && !out_of_quota;
    Failure {
        error: TurnError {
            class,
            message,
            hint,
        },
        retryable,
        retry_after,
    }
}

fn key_hint(asked: Asked<'_>) -> String {
    match (asked.with_key, asked.hint) {
        (true, Some(place)) => format!("check the key in {place}"),
        (true, None) => "check the key".to_owned(),
        (false, _) => format!("set env_key in [model_providers.{}]", asked.provider),
    }
}

/// A request that never had an answer.
#[must_use]
pub fn connection(cause: &str, refused: bool, asked: Asked<'_>) -> Failure {
    let Asked { provider, url, .. } = asked;
    let what = if refused {
        "nothing listens at"
    } else {
        "cannot reach"
    };
    let message = format!("{what} {url} ({provider}): {cause}");
    let hint = match asked.hint {
        Some(hint) if !asked.with_key => Some(hint.to_owned()),
        _ => Some("check the address and the network".to_owned()),
    };
    Failure {
        error: TurnError {
            class: ErrorClass::Transport,
            message,
            hint,
        },
        retryable: true,
        retry_after: None,
    }
}

fn overflows(said: &str, kind: &str) -> bool {
    let said = said.to_lowercase();
    kind.contains("context_length_exceeded") || OVERFLOW.iter().any(|text| said.contains(text))
}

fn words(value: &Value) -> Option<String> {
    [&value["message"], &value["detail"], &value["msg"]]
        .into_iter()
        .find_map(Value::as_str)
        .map(cut)
}

fn cut(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let mut end = SHOWN;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked {
        provider: "moonshotai",
        model: "kimi-k3",
        url: "https://api.moonshot.ai/v1",
        hint: Some("the environment variable MOONSHOT_API_KEY"),
        with_key: true,
    };

    #[test]
    fn failures_say_what_to_do() {
        let overflow = r#"{"error":{"message":"You asked for more than fits.","code":"context_length_exceeded"}}"#;
        let cases = [
            status(
                401,
                None,
                r#"{"error":{"message":"Invalid Authentication"}}"#,
                ASKED,
            ),
            status(404, None, r#"{"error":"model not found"}"#, ASKED),
            status(400, None, overflow, ASKED),
            status(400, None, "plain text", ASKED),
            status(
                429,
                Some(Duration::from_secs(2)),
                r#"{"error":{"message":"slow down"}}"#,
                ASKED,
            ),
            status(
                429,
                None,
                r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#,
                ASKED,
            ),
            status(529, None, "", ASKED),
            status(500, None, "", ASKED),
            connection(
                "connection refused",
                true,
                Asked {
                    provider: "ollama",
                    with_key: false,
                    hint: Some("start it with `ollama serve`"),
                    ..ASKED
                },
            ),
        ];
        let told: Vec<String> = cases
            .iter()
            .map(|failure| {
                format!(
                    "{:?} retry={} {}",
                    failure.error.class, failure.retryable, failure.error
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
