//! Checks a call's arguments against the face's schema, and mends what can be read in one way only. Pure.

use serde_json::{Map, Value};

/// Checks and mends in place; gives notes on what was mended, for the model.
///
/// # Errors
/// What does not fit, and where, in words for the model.
pub fn fit(schema: &Value, arguments: &mut Value) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    check(schema, arguments, "", &mut notes)?;
    Ok(notes)
}

fn check(
    schema: &Value,
    value: &mut Value,
    path: &str,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    if let Some(wanted) = schema["type"].as_str() {
        coerce(wanted, value, path, notes);
        if !is(wanted, value) {
            return Err(format!(
                "{}: expected {}, found {}",
                place(path),
                article(wanted),
                found(value)
            ));
        }
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!(
            "{}: expected one of {}, found {value}",
            place(path),
            allowed.join(", ")
        ));
    }
    match value {
        Value::Object(map) => object(schema, map, path, notes),
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(at, item)| {
            check(&schema["items"], item, &format!("{path}[{at}]"), notes)
        }),
        _ => Ok(()),
    }
}

fn object(
    schema: &Value,
    map: &mut Map<String, Value>,
    path: &str,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    // An explicit null of an optional argument means that it was left out.
    map.retain(|name, value| !value.is_null() || required(name) || !properties.contains_key(name));
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !map.contains_key(name) {
            let given: Vec<&str> = map.keys().map(String::as_str).collect();
            let given = if given.is_empty() {
                "nothing".to_owned()
            } else {
                given.join(", ")
            };
            return Err(format!(
                "missing field `{}{name}` (given: {given})",
                prefix(path)
            ));
        }
    }
    if schema["additionalProperties"] == Value::Bool(false) {
        let unknown: Vec<String> = map
            .keys()
            .filter(|name| !properties.contains_key(*name))
            .cloned()
            .collect();
        for name in unknown {
            map.remove(&name);
            notes.push(format!(
                "unknown argument `{}{name}` was ignored",
                prefix(path)
            ));
        }
    }
    for (name, value) in map.iter_mut() {
        if let Some(inner) = properties.get(name) {
            check(inner, value, &format!("{}{name}", prefix(path)), notes)?;
        }
    }
    Ok(())
}

fn coerce(wanted: &str, value: &mut Value, path: &str, notes: &mut Vec<String>) {
    if is(wanted, value) {
        return;
    }
    let mended = match (wanted, &*value) {
        ("number" | "integer", Value::String(text)) => {
            let parsed = serde_json::from_str::<serde_json::Number>(text.trim())
                .ok()
                .map(Value::Number);
            parsed.filter(|number| is(wanted, number))
        }
        ("integer", Value::Number(number)) => number
            .as_f64()
            .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)
            .map(|f| {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "checked to be whole and small"
                )]
                Value::from(f as i64)
            }),
        ("boolean", Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        // A command as a list of lines or words is joined by no rule that is always right; one element is.
        ("string", Value::Array(items)) if items.len() == 1 && items[0].is_string() => {
            Some(items[0].clone())
        }
        ("array", Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(items)) => Some(Value::Array(items)),
            _ => Some(Value::Array(vec![value.clone()])),
        },
        ("array", Value::Object(_)) => Some(Value::Array(vec![value.clone()])),
        ("object", Value::String(text)) => serde_json::from_str::<Value>(text)
            .ok()
            .filter(Value::is_object),
        _ => None,
    };
    if let Some(mended) = mended {
        notes.push(format!(
            "{} was given as {} and read as {}",
            place(path),
            found(value),
            article(wanted)
        ));
        *value = mended;
    }
}

fn is(wanted: &str, value: &Value) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn article(kind: &str) -> String {
    match kind {
        "object" | "array" | "integer" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn found(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    kind.to_owned()
}

fn prefix(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}.")
    }
}

fn place(path: &str) -> String {
    if path.is_empty() {
        "the arguments".to_owned()
    } else {
        format!("`{path}`")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "cmd": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "tty": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "list": {"type": "array", "items": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}}},
            "required": ["cmd"], "additionalProperties": false})
    }

    #[test]
    fn slips_are_mended_and_noted() {
        let mut value = json!({"cmd": ["ls"], "n": "5", "x": 1, "tty": "True", "list": {"s": "a"}, "extra": 1, "mode": null});
        let notes = fit(&schema(), &mut value).expect("it can be mended");
        assert_eq!(
            value,
            json!({"cmd": "ls", "n": 5, "x": 1, "tty": true, "list": [{"s": "a"}]})
        );
        assert_eq!(notes.len(), 5, "{notes:?}");
    }

    #[test]
    fn what_does_not_fit_says_where() {
        let cases = [
            (json!({}), "missing field `cmd` (given: nothing)"),
            (
                json!({"cmd": {"a": 1}}),
                "`cmd`: expected a string, found an object",
            ),
            (
                json!({"cmd": "x", "n": 1.5}),
                "`n`: expected an integer, found a number",
            ),
            (
                json!({"cmd": "x", "mode": "c"}),
                "`mode`: expected one of \"a\", \"b\", found \"c\"",
            ),
            (
                json!({"cmd": "x", "list": [{"t": 1}]}),
                "missing field `list[0].s` (given: t)",
            ),
            (
                json!([1]),
                "the arguments: expected an object, found an array",
            ),
        ];
        for (mut value, expected) in cases {
            assert_eq!(fit(&schema(), &mut value), Err(expected.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn what_fits_is_not_touched(cmd in ".{0,20}", n in any::<i32>(), tty in any::<bool>()) {
            let mut value = json!({"cmd": cmd, "n": n, "tty": tty});
            let before = value.clone();
            prop_assert_eq!(fit(&schema(), &mut value), Ok(Vec::new()));
            prop_assert_eq!(value, before);
        }
    }
}
