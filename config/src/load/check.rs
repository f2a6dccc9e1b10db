//! Whether a value fits its key, and what to say when it does not, or when there is no such key.

use toml_edit::Value;

use crate::error::{Origin, did_you_mean};
use crate::keys::{self, Kind, Known};
use crate::{ConfigError, env};

/// Longest piece of a wrong value that is shown, in characters.
const SHOWN: usize = 60;

/// The complaint about a key that does not exist.
pub(super) fn unknown(keys: &[String], origin: &Origin) -> ConfigError {
    let name = keys.join(".");
    if keys::is_table(keys) {
        return not_a_value(keys, origin);
    }
    if keys[0] == "profiles" || keys[0] == "profile" {
        return ConfigError::at(origin, "profiles are files now").hint(
            "move the table to NAME.config.toml in the home directory and use --profile NAME",
        );
    }
    if let Some((above, kind)) = value_above(keys) {
        let error = ConfigError::at(
            origin,
            format!(
                "\"{above}\" has no keys below it: expected {}",
                kind.describe()
            ),
        );
        return match table_like(above) {
            Some(hint) => error.hint(hint),
            None => error,
        };
    }
    let (wrong, known) = keys::siblings(keys);
    let error = ConfigError::at(origin, format!("unknown key \"{name}\""));
    match did_you_mean(&keys[wrong], known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn not_a_value(keys: &[String], origin: &Origin) -> ConfigError {
    let name = keys.join(".");
    let mut below = keys.to_vec();
    below.push(String::new());
    let (_, known) = keys::siblings(&below);
    ConfigError::at(origin, format!("\"{name}\" is a table, not a value")).hint(format!(
        "set a key below it, such as {name}.{}",
        known.first().unwrap_or(&"NAME")
    ))
}

/// A key that takes a value, although the path goes on below it.
fn value_above(keys: &[String]) -> Option<(&str, Kind)> {
    (1..keys.len()).find_map(|end| match keys::look_up(&keys[..end]) {
        Known::Key(kind) => Some((keys[end - 1].as_str(), kind)),
        Known::Later | Known::Unknown => None,
    })
}

/// The table that somebody may have meant who wrote a table where a value belongs.
fn table_like(name: &str) -> Option<String> {
    keys::tables()
        .find(|table| table.starts_with(name))
        .map(|table| format!("did you mean [{table}]?"))
}

/// Checks a value against what its key takes.
pub(super) fn value(
    keys: &[String],
    kind: Kind,
    value: &Value,
    origin: &Origin,
) -> Result<(), ConfigError> {
    if fits(kind, value) {
        return Ok(());
    }
    let name = keys.join(".");
    let expected = kind.describe();
    if let (Kind::Word(words), Some(word)) = (kind, value.as_str()) {
        let error = ConfigError::at(origin, format!("{name} = {word:?}: expected {expected}"));
        return Err(match did_you_mean(word, words.iter().copied()) {
            Some(hint) => error.hint(hint),
            None => error,
        });
    }
    let found = if value.as_str().is_some_and(has_nul) {
        "a NUL character in it".to_owned()
    } else if is_private(keys) {
        format!("another type: {}", value.type_name())
    } else {
        shown(value)
    };
    let error = ConfigError::at(
        origin,
        format!("{name}: expected {expected}, found {found}"),
    );
    let meant = value
        .is_inline_table()
        .then(|| table_like(&keys[keys.len() - 1]))
        .flatten();
    Err(match meant {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// Checks the name of a variable that is to be set.
pub(super) fn variable(keys: &[String], origin: &Origin) -> Result<(), ConfigError> {
    let [table, set, name] = keys else {
        return Ok(());
    };
    let is_set = table == "shell_environment_policy" && set == "set";
    if !is_set || env::is_plain(name) {
        return Ok(());
    }
    Err(
        ConfigError::at(origin, format!("{name:?} is not the name of a variable"))
            .hint("names have letters, digits and \"_\""),
    )
}

fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Text => value.as_str().is_some_and(|text| !has_nul(text)),
        Kind::Bool => value.is_bool(),
        Kind::Count => value.as_integer().is_some_and(|number| number >= 0),
        Kind::Number => {
            value.as_integer().is_some_and(|number| number >= 0)
                || value
                    .as_float()
                    .is_some_and(|number| number.is_finite() && number >= 0.0)
        }
        Kind::List => value
            .as_array()
            .is_some_and(|list| list.iter().all(|item| fits(Kind::Text, item))),
        Kind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
    }
}

/// A NUL ends the text for everything outside: programs, paths, variables.
fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// Whether the value at this path may be a secret, which a message must not show.
pub(super) fn is_private(keys: &[String]) -> bool {
    // `env_key` and its kin name variables.
    let names_variable = |key: &String| key.starts_with("env_");
    let carries_secrets = |key: &String| key == "http_headers" || key == "query_params";
    // A misspelt field of a provider may be that of its key.
    let misspelt = keys.len() > 2 && keys::look_up(keys) == Known::Unknown;
    misspelt
        || keys.iter().any(carries_secrets)
        || (env::is_secret_name(&keys[keys.len() - 1]) && !keys.iter().any(names_variable))
}

/// A wrong value for people: its type and how it begins, on one line. Not what is inside a table, which may be a secret.
fn shown(value: &Value) -> String {
    if value.is_inline_table() {
        return "a table".to_owned();
    }
    let text = value.to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = text.chars().take(SHOWN).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    let article = if "aeiou".contains(&value.type_name()[..1]) {
        "an"
    } else {
        "a"
    };
    format!("{article} {}: {cut}{dots}", value.type_name())
}
