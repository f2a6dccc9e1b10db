//! Reads the layers and merges them: defaults < system < user < profile < trusted project < `-c`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, Key, Table, TableLike, Value};

use crate::error::{Origin, did_you_mean};
use crate::keys::{self, Kind, Known};
use crate::{ConfigError, trust};

/// The system's layer.
const SYSTEM_FILE: &str = "/etc/openinterpreter/config.toml";
/// Folder of a project's own configuration.
const PROJECT_FOLDER: &str = ".openinterpreter";

/// Where to look.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// `INTERPRETER_HOME`.
    pub home: PathBuf,
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// Reads `NAME.config.toml` in the home too.
    pub profile: Option<String>,
    /// `KEY=VALUE`, in order.
    pub overrides: Vec<String>,
    /// Unknown keys in files are errors.
    pub strict: bool,
}

/// Configuration, and what the user should hear of it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The merged layers.
    pub config: Config,
    /// Unknown keys, ignored keys of projects.
    pub warnings: Vec<String>,
}

/// The merged layers. Values are checked against their kinds; each knows where it came from.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) values: Values,
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
}

/// Leaves by path.
pub(crate) type Values = BTreeMap<Vec<String>, Leaf>;

/// A value with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub value: Value,
    pub origin: Origin,
}

impl Config {
    /// Reads and merges all layers.
    ///
    /// # Errors
    /// For a file that cannot be read or parsed, a value of the wrong kind, and an override of an unknown key.
    pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
        let mut loader = Loader {
            values: Values::new(),
            warnings: Vec::new(),
            strict: options.strict,
        };
        loader.file(Path::new(SYSTEM_FILE), false, &[])?;
        loader.file(&options.home.join("config.toml"), false, &[])?;
        if let Some(profile) = &options.profile {
            let name_is_plain = profile
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c));
            if !name_is_plain || profile.is_empty() {
                return Err(ConfigError::missing(format!(
                    "\"{profile}\" is not the name of a profile"
                ))
                .hint("a profile is a file NAME.config.toml in the home directory"));
            }
            loader.file(
                &options.home.join(format!("{profile}.config.toml")),
                true,
                &[],
            )?;
        }
        let config = Self {
            values: loader.values.clone(),
            home: options.home.clone(),
            cwd: options.cwd.clone(),
        };
        if config.trust() == Some(trust::Trust::Trusted) {
            for folder in config.project_folders() {
                loader.file(
                    &folder.join(PROJECT_FOLDER).join("config.toml"),
                    false,
                    keys::NOT_FOR_PROJECTS,
                )?;
            }
        }
        for text in &options.overrides {
            loader.override_with(text)?;
        }
        let Loader {
            values, warnings, ..
        } = loader;
        Ok(Loaded {
            config: Self { values, ..config },
            warnings,
        })
    }

    /// What the user decided about the working directory, its project, or the repository of its worktree.
    #[must_use]
    pub fn trust(&self) -> Option<trust::Trust> {
        trust::look_up(&self.cwd, &self.root_markers(), |path| {
            let key = vec![
                "projects".to_owned(),
                path.to_string_lossy().into_owned(),
                "trust_level".to_owned(),
            ];
            let word = self.values.get(&key)?.value.as_str()?.to_owned();
            Some(if word == "trusted" {
                trust::Trust::Trusted
            } else {
                trust::Trust::Untrusted
            })
        })
    }

    /// Folders from the project's root down to the working directory.
    fn project_folders(&self) -> Vec<PathBuf> {
        let root = trust::project_root(&self.cwd, &self.root_markers())
            .unwrap_or_else(|| self.cwd.clone());
        let mut folders: Vec<PathBuf> = self
            .cwd
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .map(Path::to_path_buf)
            .collect();
        folders.reverse();
        folders
    }
}

struct Loader {
    values: Values,
    warnings: Vec<String>,
    strict: bool,
}

impl Loader {
    /// Reads a file into the values. `must` be there; keys below `forbidden` are left out with a warning.
    fn file(&mut self, path: &Path, must: bool, forbidden: &[&str]) -> Result<(), ConfigError> {
        let whole = Origin::File {
            path: path.to_path_buf(),
            at: None,
        };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must => return Ok(()),
            Err(error) => return Err(ConfigError::at(&whole, format!("cannot be read: {error}"))),
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(ConfigError::at(&whole, "is not valid UTF-8").hint("save it as UTF-8"));
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map(|span| position(text, span.start));
            let origin = Origin::File {
                path: path.to_path_buf(),
                at,
            };
            ConfigError::at(
                &origin,
                format!("not valid TOML: {}", error.message().trim()),
            )
        })?;
        let mut leaves = Vec::new();
        flatten(document.as_table(), &mut Vec::new(), &mut leaves);
        for (keys, value, offset) in leaves {
            let at = offset.map(|offset| position(text, offset));
            let origin = Origin::File {
                path: path.to_path_buf(),
                at,
            };
            if keys
                .first()
                .is_some_and(|first| forbidden.contains(&first.as_str()))
            {
                self.warnings.push(format!(
                    "{origin}: a project may not set \"{}\"; ignored",
                    keys.join(".")
                ));
                continue;
            }
            self.take(keys, value, origin, self.strict)?;
        }
        Ok(())
    }

    fn override_with(&mut self, text: &str) -> Result<(), ConfigError> {
        let origin = Origin::Flag(text.to_owned());
        let (keys, value) = parse_override(text)?;
        let mut leaves = Vec::new();
        match value {
            Value::InlineTable(table) if !matches!(keys::look_up(&keys), Known::Later) => {
                flatten(&table, &mut keys.clone(), &mut leaves);
            }
            value => leaves.push((keys, value, None)),
        }
        for (keys, value, _) in leaves {
            self.take(keys, value, origin.clone(), true)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        keys: Vec<String>,
        value: Value,
        origin: Origin,
        strict: bool,
    ) -> Result<(), ConfigError> {
        let kind = match keys::look_up(&keys) {
            Known::Key(kind) => kind,
            Known::Later => return Ok(()),
            Known::Unknown => {
                let error = unknown(&keys, &origin);
                if strict {
                    return Err(error);
                }
                self.warnings.push(error.to_string());
                return Ok(());
            }
        };
        check(&keys, kind, &value, &origin)?;
        self.values.insert(keys, Leaf { value, origin });
        Ok(())
    }
}

fn unknown(keys: &[String], origin: &Origin) -> ConfigError {
    let (wrong, known) = keys::siblings(keys);
    let name = keys.join(".");
    if keys::is_table(keys) {
        let mut below = keys.to_vec();
        below.push(String::new());
        let (_, known) = keys::siblings(&below);
        return ConfigError::at(origin, format!("\"{name}\" is a table, not a value")).hint(
            format!(
                "set a key below it, such as {name}.{}",
                known.first().unwrap_or(&"NAME")
            ),
        );
    }
    if name == "profiles" || name.starts_with("profiles.") {
        return ConfigError::at(origin, "profiles are files now").hint(
            "move the table to NAME.config.toml in the home directory and use --profile NAME",
        );
    }
    let error = ConfigError::at(origin, format!("unknown key \"{name}\""));
    match did_you_mean(&keys[wrong.min(keys.len() - 1)], known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn check(keys: &[String], kind: Kind, value: &Value, origin: &Origin) -> Result<(), ConfigError> {
    let fits = match kind {
        Kind::Text => value.is_str(),
        Kind::Bool => value.is_bool(),
        Kind::Count => value.as_integer().is_some_and(|number| number >= 0),
        Kind::Number => value.is_integer() || value.is_float(),
        Kind::List => value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_str)),
        Kind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => true,
            Some(word) => {
                let error = ConfigError::at(
                    origin,
                    format!(
                        "{} = \"{word}\": expected {}",
                        keys.join("."),
                        kind.describe()
                    ),
                );
                return Err(match did_you_mean(word, words.iter().copied()) {
                    Some(hint) => error.hint(hint),
                    None => error,
                });
            }
            None => false,
        },
    };
    if fits {
        return Ok(());
    }
    let message = format!(
        "{}: expected {}, found {}",
        keys.join("."),
        kind.describe(),
        shown(value)
    );
    Err(ConfigError::at(origin, message))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let text = text.trim();
    let cut: String = text.chars().take(60).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("the {} {cut}{dots}", value.type_name())
}

/// Splits `a.b."c.d"=VALUE`: dotted path, then TOML or plain text.
fn parse_override(text: &str) -> Result<(Vec<String>, Value), ConfigError> {
    let origin = Origin::Flag(text.to_owned());
    let Some((path, raw)) = split_at_equals(text) else {
        return Err(ConfigError::at(&origin, "expected KEY=VALUE"));
    };
    let keys = Key::parse(path.trim()).map_err(|error| {
        ConfigError::at(
            &origin,
            format!(
                "\"{path}\" is not a key: {}",
                error.to_string().lines().next_back().unwrap_or_default()
            ),
        )
    })?;
    let keys = keys.iter().map(|key| key.get().to_owned()).collect();
    let raw = raw.trim();
    let value = raw.parse::<Value>().unwrap_or_else(|_| {
        let quoted = |mark: char| raw.len() >= 2 && raw.starts_with(mark) && raw.ends_with(mark);
        let plain = if quoted('"') || quoted('\'') {
            &raw[1..raw.len() - 1]
        } else {
            raw
        };
        Value::from(plain)
    });
    Ok((keys, value))
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

/// Line and column of a byte offset, from 1; columns count characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// All leaves below a table, with the offset of each key where known.
fn flatten(
    table: &dyn TableLike,
    path: &mut Vec<String>,
    out: &mut Vec<(Vec<String>, Value, Option<usize>)>,
) {
    for (name, item) in table.iter() {
        path.push(name.to_owned());
        let offset = table
            .get_key_value(name)
            .and_then(|(key, _)| key.span())
            .map(|span| span.start);
        match item {
            Item::Table(inner) => flatten_table(inner, path, out, offset),
            Item::Value(Value::InlineTable(inner))
                if !matches!(keys::look_up(path), Known::Later) =>
            {
                flatten(inner, path, out);
            }
            Item::Value(value) => out.push((path.clone(), value.clone(), offset)),
            Item::ArrayOfTables(_) => out.push((path.clone(), Value::from(true), offset)),
            Item::None => {}
        }
        path.pop();
    }
}

fn flatten_table(
    table: &Table,
    path: &mut Vec<String>,
    out: &mut Vec<(Vec<String>, Value, Option<usize>)>,
    offset: Option<usize>,
) {
    if table.is_empty() && !keys::is_table(path) {
        // An empty table of an unknown name is still a typo.
        out.push((path.clone(), Value::from(true), offset));
    }
    flatten(table, path, out);
}

#[cfg(test)]
mod tests;
