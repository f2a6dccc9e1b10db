//! Reads a profile: from the program, or from `INTERPRETER_HOME/harnesses/NAME/`. Every key is checked here, with file,
//! line and reason; templates are compiled once and cannot read files or the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use interpreter_messages::model::WireApi;
use minijinja::Environment;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::builtin;

/// A loaded harness.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub id: String,
    /// One line for people.
    pub summary: String,
    /// APIs that it can be spoken over.
    pub wires: Vec<WireApi>,
    /// Request parameters, in order.
    pub params: Map<String, Value>,
    pub(crate) system: Vec<String>,
    /// Each inner list is one user message of several parts.
    pub(crate) context: Vec<Vec<String>>,
    pub(crate) update: Vec<String>,
    pub(crate) interrupted: Option<String>,
    pub(crate) failed: Option<String>,
    pub(crate) tools: Vec<Face>,
    pub(crate) engine: Features,
    pub(crate) templates: Environment<'static>,
}

/// Engine features that a profile may switch on.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Features {
    /// A command that is nothing but `apply_patch <<'EOF' … EOF` is a patch, not a process.
    pub patch_heredoc: bool,
    /// Sends `thinking` for models whose reasoning is switched by it.
    pub thinking_toggle: bool,
}

/// A tool as the model sees it.
#[derive(Debug)]
pub struct Face {
    pub name: String,
    pub description: String,
    pub schema: Value,
    pub strict: Option<bool>,
    pub operation: String,
    pub map: Vec<(String, Rule)>,
}

/// Where a field of the native operation comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Rule {
    /// An argument, as it is.
    Argument(String),
    /// Whether an argument has this value.
    Equals {
        /// The argument.
        argument: String,
        /// The value.
        equals: Value,
    },
    /// A whole number from an argument, within bounds.
    Number(NumberRule),
    /// A list of one object, whose fields are arguments.
    List {
        /// Field to argument.
        list: BTreeMap<String, String>,
    },
    /// The same whatever the model says.
    Fixed {
        /// The value.
        fixed: Value,
    },
}

/// A number of the model, made whole and kept within bounds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberRule {
    /// The argument.
    pub argument: String,
    /// When the model gives none.
    #[serde(default)]
    pub default: Option<u64>,
    /// Smaller ones become this.
    #[serde(default)]
    pub min: Option<u64>,
    /// Larger ones become this.
    #[serde(default)]
    pub max: Option<u64>,
    /// Set when only `whole` distinguishes this rule; has no effect of its own.
    #[serde(default, rename = "whole")]
    pub _whole: bool,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No such harness.
    #[error("unknown harness \"{id}\"; known: {known}{near}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// The known ones.
        known: String,
        /// `; did you mean …?`
        near: String,
    },
    /// A file of it is wrong.
    #[error("harness {id}: {file}{at}: {reason}")]
    Invalid {
        /// The harness.
        id: String,
        /// The file below its folder.
        file: String,
        /// `:line`, where known.
        at: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of it cannot be read.
    #[error("harness {id}: {path} cannot be read: {source}")]
    Read {
        /// The harness.
        id: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HarnessFile {
    extends: Option<String>,
    summary: Option<String>,
    wires: Option<Vec<WireApi>>,
    system: Option<Vec<String>>,
    context: Option<Vec<OneOrMany>>,
    update: Option<Vec<String>>,
    interrupted: Option<String>,
    failed: Option<String>,
    tools: Option<Vec<String>>,
    unknown_tool: Option<String>,
    bad_arguments: Option<String>,
    params: Option<Map<String, Value>>,
    engine: Option<Features>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaceFile {
    description: String,
    operation: String,
    schema: String,
    #[serde(default)]
    strict: Option<bool>,
    ok: String,
    #[serde(default)]
    failed: Option<String>,
    #[serde(default)]
    denied: Option<String>,
    #[serde(default)]
    timed_out: Option<String>,
    #[serde(default)]
    aborted: Option<String>,
    #[serde(default)]
    crashed: Option<String>,
    map: Map<String, Value>,
}

/// Templates of outcomes that every tool has in common, where its face does not say otherwise.
pub(crate) const FAILED: &str = "{{ error }}";
const DENIED: &str = "refused: {{ reason }}";
const TIMED_OUT: &str = "{{ text }}\n[timed out after {{ after_ms }} milliseconds]";
const ABORTED: &str = "[aborted: {{ reason }}]{% if text %}\n{{ text }}{% endif %}";
const CRASHED: &str =
    "[the tool crashed: {{ cause }}. {{ effects }}]{% if text %}\n{{ text }}{% endif %}";

/// Names of operations that a face may have.
const OPERATIONS: [&str; 11] = [
    "exec",
    "write_stdin",
    "read",
    "write",
    "edit",
    "patch",
    "list",
    "glob",
    "grep",
    "plan",
    "view_image",
];

/// Deeper chains of `extends` are a mistake.
const EXTENDS_LIMIT: usize = 8;

impl Profile {
    /// Loads a harness by name: the user's own before those of the program.
    ///
    /// # Errors
    /// For an unknown name, an unreadable file, an unknown key, a bad template or schema.
    pub fn load(id: &str, home: &Path) -> Result<Self, ProfileError> {
        let mut files = BTreeMap::new();
        let mut layers = Vec::new();
        let mut next = Some(id.to_owned());
        while let Some(name) = next.take() {
            if layers.len() == EXTENDS_LIMIT {
                return Err(invalid(
                    id,
                    "harness.toml",
                    None,
                    "extends goes round in a circle",
                ));
            }
            let own = read(&name, home, layers.is_empty())?;
            let text = own.get("harness.toml").cloned().unwrap_or_default();
            let file: HarnessFile = toml::from_str(&text)
                .map_err(|error| of_toml(&name, "harness.toml", &text, &error))?;
            next.clone_from(&file.extends);
            for (path, text) in own {
                files.entry(path).or_insert(text);
            }
            layers.push(file);
        }
        let merged = layers.into_iter().reduce(merge).unwrap_or_default();
        build(id, merged, &files)
    }
}

/// The nearer layer's values, then those that it extends.
fn merge(near: HarnessFile, far: HarnessFile) -> HarnessFile {
    let params = match (near.params, far.params) {
        (Some(near), Some(mut far)) => {
            far.extend(near);
            Some(far)
        }
        (near, far) => near.or(far),
    };
    HarnessFile {
        extends: None,
        summary: near.summary.or(far.summary),
        wires: near.wires.or(far.wires),
        system: near.system.or(far.system),
        context: near.context.or(far.context),
        update: near.update.or(far.update),
        interrupted: near.interrupted.or(far.interrupted),
        failed: near.failed.or(far.failed),
        tools: near.tools.or(far.tools),
        unknown_tool: near.unknown_tool.or(far.unknown_tool),
        bad_arguments: near.bad_arguments.or(far.bad_arguments),
        params,
        engine: near.engine.or(far.engine),
    }
}

/// The files of one profile. A profile of the user may extend one of the program with the same name.
fn read(id: &str, home: &Path, own_first: bool) -> Result<BTreeMap<String, String>, ProfileError> {
    let plain = !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let folder = home.join("harnesses").join(id);
    if plain && (own_first || builtin::files(id).is_none()) && folder.is_dir() {
        let mut files = BTreeMap::new();
        for below in ["", "tools"] {
            collect(id, &folder.join(below), below, &mut files)?;
        }
        return Ok(files);
    }
    let Some(files) = builtin::files(id) else {
        let mut known: Vec<String> = builtin::ids().map(str::to_owned).collect();
        known.extend(own_names(home));
        let likely = known
            .iter()
            .max_by(|a, b| strsim::jaro_winkler(id, a).total_cmp(&strsim::jaro_winkler(id, b)));
        let likely = likely.filter(|name| strsim::jaro_winkler(id, name) > 0.8);
        let near = likely
            .map(|name| format!("; did you mean \"{name}\"?"))
            .unwrap_or_default();
        return Err(ProfileError::Unknown {
            id: id.to_owned(),
            known: known.join(", "),
            near,
        });
    };
    Ok(files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect())
}

fn own_names(home: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(home.join("harnesses"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn collect(
    id: &str,
    folder: &Path,
    below: &str,
    files: &mut BTreeMap<String, String>,
) -> Result<(), ProfileError> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| ProfileError::Read {
            id: id.to_owned(),
            path: path.clone(),
            source,
        })?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(
            if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            },
            text,
        );
    }
    Ok(())
}

fn build(
    id: &str,
    file: HarnessFile,
    files: &BTreeMap<String, String>,
) -> Result<Profile, ProfileError> {
    let mut templates = Environment::new();
    templates.set_keep_trailing_newline(false);
    templates.set_trim_blocks(false);
    let mut add = |name: String, file: &str, text: &str| {
        templates
            .add_template_owned(name, text.to_owned())
            .map_err(|error| {
                invalid(
                    id,
                    file,
                    error.line(),
                    &format!(
                        "bad template: {}",
                        error.detail().unwrap_or("it cannot be parsed")
                    ),
                )
            })
    };
    let context: Vec<Vec<String>> = file
        .context
        .unwrap_or_default()
        .into_iter()
        .map(|item| match item {
            OneOrMany::One(name) => vec![name],
            OneOrMany::Many(names) => names,
        })
        .collect();
    let system = file.system.unwrap_or_default();
    let update = file.update.unwrap_or_default();
    let named = system
        .iter()
        .chain(context.iter().flatten())
        .chain(&update)
        .chain(&file.interrupted)
        .chain(&file.failed);
    for name in named {
        let Some(text) = files.get(name) else {
            return Err(invalid(
                id,
                "harness.toml",
                None,
                &format!("there is no file {name}"),
            ));
        };
        add(name.clone(), name, text)?;
    }
    add(
        "unknown_tool".to_owned(),
        "harness.toml",
        file.unknown_tool
            .as_deref()
            .unwrap_or("there is no tool {{ name }}"),
    )?;
    add(
        "bad_arguments".to_owned(),
        "harness.toml",
        file.bad_arguments.as_deref().unwrap_or(FAILED),
    )?;
    let mut tools = Vec::new();
    for name in file.tools.unwrap_or_default() {
        let path = format!("tools/{name}.toml");
        let Some(text) = files.get(&path) else {
            return Err(invalid(
                id,
                "harness.toml",
                None,
                &format!("tool \"{name}\" has no file {path}"),
            ));
        };
        let face: FaceFile =
            toml::from_str(text).map_err(|error| of_toml(id, &path, text, &error))?;
        let outcomes = [
            ("ok", Some(face.ok.as_str()), ""),
            ("failed", face.failed.as_deref(), FAILED),
            ("denied", face.denied.as_deref(), DENIED),
            ("timed_out", face.timed_out.as_deref(), TIMED_OUT),
            ("aborted", face.aborted.as_deref(), ABORTED),
            ("crashed", face.crashed.as_deref(), CRASHED),
        ];
        for (outcome, own, default) in outcomes {
            add(format!("{name}/{outcome}"), &path, own.unwrap_or(default))?;
        }
        tools.push(self::face(id, name, &path, text, face)?);
    }
    let wires = file.wires.unwrap_or_default();
    if wires.is_empty() {
        return Err(invalid(
            id,
            "harness.toml",
            None,
            "wires names no API (chat, responses, messages)",
        ));
    }
    Ok(Profile {
        id: id.to_owned(),
        summary: file.summary.unwrap_or_default(),
        wires,
        params: file.params.unwrap_or_default(),
        system,
        context,
        update,
        interrupted: file.interrupted,
        failed: file.failed,
        tools,
        engine: file.engine.unwrap_or_default(),
        templates,
    })
}

fn face(
    id: &str,
    name: String,
    path: &str,
    text: &str,
    file: FaceFile,
) -> Result<Face, ProfileError> {
    let line_of = |key: &str| {
        text.lines()
            .position(|line| line.trim_start().starts_with(key))
            .map(|at| at + 1)
    };
    let schema: Value = serde_json::from_str(&file.schema).map_err(|error| {
        let line = line_of("schema").map(|line| line + error.line().saturating_sub(1));
        invalid(
            id,
            path,
            line,
            &format!("schema is not valid JSON: {error}"),
        )
    })?;
    if schema["type"] != "object" || !schema["properties"].is_object() {
        return Err(invalid(
            id,
            path,
            line_of("schema"),
            "schema must be an object with properties",
        ));
    }
    if !OPERATIONS.contains(&file.operation.as_str()) {
        let reason = format!(
            "unknown operation \"{}\"; known: {}",
            file.operation,
            OPERATIONS.join(", ")
        );
        return Err(invalid(id, path, line_of("operation"), &reason));
    }
    let mut map = Vec::new();
    for (field, rule) in file.map {
        let rule: Rule = serde_json::from_value(rule).map_err(|_| {
            invalid(
                id,
                path,
                line_of(&field),
                &format!("map.{field} is no rule; see the harness README"),
            )
        })?;
        for argument in rule.arguments() {
            if schema["properties"].get(argument).is_none() {
                let reason =
                    format!("map.{field} names \"{argument}\", which is not in the schema");
                return Err(invalid(id, path, line_of(&field), &reason));
            }
        }
        map.push((field, rule));
    }
    Ok(Face {
        name,
        description: file.description,
        schema,
        strict: file.strict,
        operation: file.operation,
        map,
    })
}

impl Rule {
    fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Argument(argument) | Self::Equals { argument, .. } => vec![argument],
            Self::Number(rule) => vec![&rule.argument],
            Self::List { list } => list.values().map(String::as_str).collect(),
            Self::Fixed { .. } => Vec::new(),
        }
    }
}

fn of_toml(id: &str, file: &str, text: &str, error: &toml::de::Error) -> ProfileError {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    invalid(id, file, line, error.message())
}

fn invalid(id: &str, file: &str, line: Option<usize>, reason: &str) -> ProfileError {
    ProfileError::Invalid {
        id: id.to_owned(),
        file: file.to_owned(),
        at: line.map(|line| format!(":{line}")).unwrap_or_default(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
