//! `-c KEY=VALUE`: a dotted path, the first `=`, then TOML or plain text. Pure.

use toml_edit::{Key, Value};

use super::check;
use crate::ConfigError;
use crate::error::Origin;

/// An override, taken apart.
pub(super) struct Override {
    pub keys: Vec<String>,
    pub value: Value,
    /// Shows the override as given, but for a value that may be a secret.
    pub origin: Origin,
}

/// Splits `a.b."c.d"=VALUE`.
pub(super) fn parse(text: &str) -> Result<Override, ConfigError> {
    let Some((path, raw)) = split_at_equals(text) else {
        return Err(
            ConfigError::at(&Origin::Flag(text.to_owned()), "expected KEY=VALUE")
                .hint("such as -c model_provider=ollama"),
        );
    };
    let keys = Key::parse(path.trim()).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().next_back().unwrap_or_default();
        // Without a key nobody knows whether the value is a secret.
        let origin = Origin::Flag(format!("{path}=…"));
        ConfigError::at(&origin, format!("\"{path}\" is not a key: {reason}"))
    })?;
    let keys: Vec<String> = keys.iter().map(|key| key.get().to_owned()).collect();
    let value = value(raw.trim());
    let private = check::is_private(&keys) || value.is_inline_table();
    let origin = Origin::Flag(if private {
        format!("{path}=…")
    } else {
        text.to_owned()
    });
    Ok(Override {
        keys,
        value,
        origin,
    })
}

/// TOML, or else the text as it is, without quotes around it.
fn value(raw: &str) -> Value {
    raw.parse().unwrap_or_else(|_| {
        let inside = |mark: char| raw.strip_prefix(mark)?.strip_suffix(mark);
        Value::from(inside('"').or_else(|| inside('\'')).unwrap_or(raw))
    })
}

/// The first `=` outside quotes of the path.
fn split_at_equals(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '=') => return Some((&text[..at], &text[at + 1..])),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    None
}
