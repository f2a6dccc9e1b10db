//! From a response to actions: wire calls become native operations. Pure.

use std::collections::HashSet;

use interpreter_messages::CallId;
use interpreter_messages::harness::Action;
use interpreter_messages::stream::{CallArguments, ModelItem, ModelResponse};
use interpreter_messages::tool::{InvalidCall, Meaning, Operation, Patch, ToolCall};
use serde_json::{Map, Value};

use crate::arguments;
use crate::profile::{Face, Profile, Rule};

/// Ids longer than this are refused by some providers when they are sent back.
const ID_LIMIT: usize = 64;

/// What a response means under this profile. Ids differ from each other and from those in `used`.
#[must_use]
pub fn absorb(profile: &Profile, response: ModelResponse, used: &HashSet<String>) -> Vec<Action> {
    let mut new_ids = HashSet::new();
    response
        .items
        .into_iter()
        .filter_map(|item| match item {
            ModelItem::Text(text) if text.is_empty() => None,
            ModelItem::Text(text) => Some(Action::Say(text)),
            ModelItem::Reasoning { text, opaque } => Some(Action::Reasoning { text, opaque }),
            ModelItem::ToolCall {
                id,
                name,
                arguments,
            } => {
                let id = unique(id, used, &mut new_ids);
                Some(Action::Call(call(profile, id, name, arguments)))
            }
        })
        .collect()
}

/// The model's id where it can be used; with a suffix where it was used before; else one of ours.
fn unique(id: Option<String>, used: &HashSet<String>, new: &mut HashSet<String>) -> CallId {
    let plain = |id: &String| {
        !id.is_empty()
            && id.len() <= ID_LIMIT
            && id
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c))
    };
    let wanted = id.filter(plain);
    let free = |id: &str, new: &HashSet<String>| !used.contains(id) && !new.contains(id);
    let mut candidate = wanted
        .clone()
        .unwrap_or_else(|| format!("call_{}", used.len() + new.len() + 1));
    let mut n = 2;
    while !free(&candidate, new) {
        let base: String = wanted
            .as_deref()
            .unwrap_or("call")
            .chars()
            .take(ID_LIMIT - 8)
            .collect();
        candidate = format!("{base}-{n}");
        n += 1;
    }
    new.insert(candidate.clone());
    CallId(candidate)
}

fn call(profile: &Profile, id: CallId, name: String, arguments: CallArguments) -> ToolCall {
    let (json, mut repaired) = match arguments {
        CallArguments::Object { json, repaired } => (json, repaired),
        CallArguments::Broken { raw, error } => {
            let meaning = Meaning::Invalid(InvalidCall::BadArguments { error, raw });
            return ToolCall {
                id,
                name,
                arguments: "{}".to_owned(),
                meaning,
                repaired: None,
            };
        }
    };
    let Some(face) = profile.tools.iter().find(|face| face.name == name) else {
        let nearest = profile
            .tools
            .iter()
            .map(|face| {
                (
                    strsim::jaro_winkler(&name.to_lowercase(), &face.name),
                    &face.name,
                )
            })
            .filter(|(likeness, _)| *likeness > 0.7)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name.clone());
        let meaning = Meaning::Invalid(InvalidCall::UnknownTool { nearest });
        return ToolCall {
            id,
            name: wire_name(&name),
            arguments: json,
            meaning,
            repaired,
        };
    };
    let meaning = match operation(profile, face, &json) {
        Ok((operation, notes)) => {
            if !notes.is_empty() {
                let notes = notes.join("; ");
                repaired =
                    Some(repaired.map_or(notes.clone(), |before| format!("{before}; {notes}")));
            }
            Meaning::Run(operation)
        }
        Err(error) => Meaning::Invalid(InvalidCall::BadArguments {
            error,
            raw: json.clone(),
        }),
    };
    ToolCall {
        id,
        name,
        arguments: json,
        meaning,
        repaired,
    }
}

/// A name that can be sent back: providers refuse others, and with them the whole conversation.
fn wire_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(64)
        .collect();
    if plain.is_empty() {
        "unknown".to_owned()
    } else {
        plain
    }
}

fn operation(
    profile: &Profile,
    face: &Face,
    json: &str,
) -> Result<(Operation, Vec<String>), String> {
    let mut given: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let notes = arguments::fit(&face.schema, &mut given)?;
    let mut native = Map::new();
    native.insert("op".to_owned(), Value::from(face.operation.as_str()));
    for (field, rule) in &face.map {
        if let Some(value) = apply(rule, &given)? {
            native.insert(field.clone(), value);
        }
    }
    let operation: Operation =
        serde_json::from_value(Value::Object(native)).map_err(|error| error.to_string())?;
    match &operation {
        Operation::Exec(exec) if profile.engine.patch_heredoc => match patch_heredoc(&exec.command)
        {
            Some((folder, patch)) => {
                let workdir = match (&exec.workdir, folder) {
                    (Some(base), Some(folder)) => Some(base.join(folder)),
                    (base, folder) => folder.map(Into::into).or_else(|| base.clone()),
                };
                Ok((Operation::Patch(Patch { patch, workdir }), notes))
            }
            None => Ok((operation, notes)),
        },
        _ => Ok((operation, notes)),
    }
}

fn apply(rule: &Rule, given: &Value) -> Result<Option<Value>, String> {
    match rule {
        Rule::Argument(argument) => Ok(given.get(argument).cloned()),
        Rule::Equals { argument, equals } => Ok(given
            .get(argument)
            .map(|value| Value::Bool(value == equals))),
        Rule::Fixed { fixed } => Ok(Some(fixed.clone())),
        Rule::List { list } => {
            let fields = list.iter().filter_map(|(field, argument)| {
                Some((field.clone(), given.get(argument)?.clone()))
            });
            Ok(Some(Value::Array(vec![Value::Object(fields.collect())])))
        }
        Rule::Number(rule) => {
            let number = match given.get(&rule.argument) {
                None => rule.default,
                Some(value) => Some(whole(value).ok_or_else(|| {
                    format!(
                        "`{}`: expected a whole number from 0, found {value}",
                        rule.argument
                    )
                })?),
            };
            let number = number.map(|number| {
                number
                    .max(rule.min.unwrap_or(0))
                    .min(rule.max.unwrap_or(u64::MAX))
            });
            Ok(number.map(Value::from))
        }
    }
}

/// Models write 1000.0 where 1000 is meant.
fn whole(value: &Value) -> Option<u64> {
    let float = value
        .as_f64()
        .filter(|float| *float >= 0.0 && *float < 9e15)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and not negative"
    )]
    value.as_u64().or(Some(float.round() as u64))
}

/// `apply_patch <<'EOF'` … `EOF`, alone or after `cd DIR &&`: the folder and the patch.
fn patch_heredoc(script: &str) -> Option<(Option<String>, String)> {
    let script = script.trim();
    let (folder, rest) = match script.strip_prefix("cd ") {
        Some(rest) => {
            let (folder, rest) = rest.split_once("&&")?;
            let folder = folder.trim();
            let bare = folder.trim_matches(['"', '\'']);
            let plain = !bare.is_empty()
                && bare
                    .chars()
                    .all(|c| c.is_alphanumeric() || "/._- ".contains(c));
            // A folder with spaces must be quoted, anything else is the shell's business.
            let quoted = bare.len() + 2 == folder.len();
            if !plain || (bare.contains(' ') && !quoted) {
                return None;
            }
            (Some(bare.to_owned()), rest.trim_start())
        }
        None => (None, script),
    };
    let rest = rest
        .strip_prefix("apply_patch")
        .or_else(|| rest.strip_prefix("applypatch"))?;
    let rest = rest.trim_start().strip_prefix("<<")?;
    let (mark, body) = rest.split_once('\n')?;
    let mark = mark.trim();
    let word = mark.trim_matches(['"', '\'']);
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let patch = body.strip_suffix(word)?;
    // The end mark stands alone on the last line, and only there.
    let alone = patch.ends_with('\n') && !patch.lines().any(|line| line == word);
    // Without quotes the shell would expand what stands in the body.
    let quoted = mark.len() == word.len() + 2;
    (alone && (quoted || !patch.contains(['$', '`', '\\']))).then(|| (folder, patch.to_owned()))
}

#[cfg(test)]
mod tests;
