//! Arguments of a call: always one JSON object, or broken.

use interpreter_messages::stream::CallArguments;
use serde_json::{Map, Value};

/// Reads the arguments of a call. `object`: the server sent a JSON value where text belongs.
///
/// The second value is the kind of repair for the count.
#[must_use]
pub fn parse(raw: &str, object: bool) -> (CallArguments, Option<&'static str>) {
    let text = raw.trim();
    if text.is_empty() || text == "null" {
        return (plain("{}".to_owned()), None);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) if object => (plain(text.to_owned()), Some("object_arguments")),
        Ok(Value::Object(_)) => (plain(text.to_owned()), None),
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(Value::Object(map)) => (
                plain(Value::Object(map).to_string()),
                Some("double_encoded"),
            ),
            _ => (
                broken(raw, "the arguments are a text, not a JSON object"),
                None,
            ),
        },
        Ok(other) => (
            broken(
                raw,
                &format!("the arguments are {}, not a JSON object", kind(&other)),
            ),
            None,
        ),
        Err(error) => match mend(text) {
            Some(map) => {
                let json = Value::Object(map).to_string();
                let repaired = Some(format!(
                    "the arguments were not valid JSON ({error}); this was run instead: {json}"
                ));
                (CallArguments::Object { json, repaired }, Some("near_json"))
            }
            None => (
                broken(raw, &format!("the arguments are not valid JSON: {error}")),
                None,
            ),
        },
    }
}

fn plain(json: String) -> CallArguments {
    CallArguments::Object {
        json,
        repaired: None,
    }
}

fn broken(raw: &str, error: &str) -> CallArguments {
    CallArguments::Broken {
        raw: raw.to_owned(),
        error: error.to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Null | Value::Object(_) => "something else",
    }
}

/// Slips that can be read in one way only: single quotes around keys and texts, keys without quotes, Python's True,
/// False and None, trailing commas, raw line feeds in texts, brackets missing at the very end.
///
/// A quote that is missing on one side, or text that ends in the middle of a string, can be read in more than one way:
/// those are not mended, because what would run may not be what was meant.
#[must_use]
pub fn mend(text: &str) -> Option<Map<String, Value>> {
    let mut reader = Reader {
        text: text.chars().collect(),
        at: 0,
    };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < reader.text.len() {
        return None;
    }
    match value {
        Value::Object(map) if !map.is_empty() => Some(map),
        _ => None,
    }
}

/// Deeper nesting than this is nobody's slip.
const DEPTH: usize = 64;

struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.list(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.space();
            match self.peek() {
                // Brackets missing at the end; a comma or a key before them is complete.
                None => return (!map.is_empty()).then_some(Value::Object(map)),
                Some('}') => {
                    self.at += 1;
                    return Some(Value::Object(map));
                }
                Some(',') if !map.is_empty() => {
                    self.at += 1;
                    continue;
                }
                Some(quote @ ('"' | '\'')) => {
                    let key = self.string(quote)?;
                    self.pair(key, &mut map, depth)?;
                }
                Some(_) => {
                    let key = self.bare_key()?;
                    self.pair(key, &mut map, depth)?;
                }
            }
        }
    }

    fn pair(&mut self, key: String, map: &mut Map<String, Value>, depth: usize) -> Option<()> {
        self.space();
        if self.peek()? != ':' || map.contains_key(&key) {
            return None;
        }
        self.at += 1;
        let value = self.value(depth + 1)?;
        map.insert(key, value);
        self.space();
        // Between two pairs stands a comma.
        matches!(self.peek(), None | Some(',' | '}')).then_some(())
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => return Some(Value::Array(items)),
                Some(']') => {
                    self.at += 1;
                    return Some(Value::Array(items));
                }
                Some(',') if !items.is_empty() => self.at += 1,
                Some(_) => {
                    items.push(self.value(depth + 1)?);
                    self.space();
                    if !matches!(self.peek(), None | Some(',' | ']')) {
                        return None;
                    }
                }
            }
        }
    }

    fn bare_key(&mut self) -> Option<String> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            self.at += 1;
        }
        (self.at > start).then(|| self.text[start..self.at].iter().collect())
    }

    /// A text in either quotes. It must be closed.
    fn string(&mut self, quote: char) -> Option<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let c = self.peek()?;
            self.at += 1;
            match c {
                '\\' => self.escape(&mut out)?,
                c if c == quote => return Some(out),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        let c = self.peek()?;
        self.at += 1;
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let hex: String = self.text.get(self.at..self.at + 4)?.iter().collect();
                self.at += 4;
                out.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
            }
            '"' | '\'' | '\\' | '/' => out.push(c),
            // `\d` in a pattern, written by a model that forgot to escape the backslash.
            other => out.extend(['\\', other]),
        }
        Some(())
    }

    fn word(&mut self) -> Option<Value> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
        {
            self.at += 1;
        }
        let word: String = self.text[start..self.at].iter().collect();
        match word.as_str() {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            number => serde_json::from_str::<serde_json::Number>(number)
                .ok()
                .map(Value::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(raw: &str) -> Option<Value> {
        match parse(raw, false).0 {
            CallArguments::Object { json, .. } => serde_json::from_str(&json).ok(),
            CallArguments::Broken { .. } => None,
        }
    }

    #[test]
    fn slips_with_one_reading_are_mended_and_told() {
        let cases = [
            ("{'command': 'ls'}", json!({"command": "ls"})),
            (
                "{command: \"ls\", all: True, n: None,}",
                json!({"command": "ls", "all": true, "n": null}),
            ),
            ("{\"a\": [1, 2", json!({"a": [1, 2]})),
            ("{\"a\": {\"b\": 1}", json!({"a": {"b": 1}})),
            ("{\"a\": \"two\nlines\"}", json!({"a": "two\nlines"})),
            ("{\"p\": \"\\d+\"}", json!({"p": "\\d+"})),
        ];
        for (raw, expected) in cases {
            let (CallArguments::Object { json, repaired }, repair) = parse(raw, false) else {
                panic!("broken: {raw}")
            };
            assert_eq!(
                serde_json::from_str::<Value>(&json).ok(),
                Some(expected),
                "{raw}"
            );
            assert!(repaired.is_some() && repair == Some("near_json"), "{raw}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_not_run() {
        for raw in [
            "{\"command\": \"ls\", timeout\": 5",
            "{\"command\": \"rm -rf /tmp/x",
            "{\"a\": 1 \"b\": 2}",
            "ls -l",
            "[1]",
            "3",
            "\"x\"",
            "{\"a\":1} extra",
            "{a 1}",
            "{\"a\":1,\"a\":2",
        ] {
            assert_eq!(object(raw), None, "{raw}");
        }
    }

    #[test]
    fn nothing_and_double_encoding_are_objects() {
        assert_eq!(object(""), Some(json!({})));
        assert_eq!(object("null"), Some(json!({})));
        assert_eq!(object("\"{\\\"a\\\":1}\""), Some(json!({"a": 1})));
    }

    proptest! {
        #[test]
        fn valid_objects_stay_as_they_are(key in "[a-z]{1,8}", text in ".{0,40}") {
            let value = json!({key: text}).to_string();
            prop_assert_eq!(parse(&value, false).0, CallArguments::Object { json: value, repaired: None });
        }

        #[test]
        fn nothing_panics_and_what_is_mended_is_an_object(raw in ".{0,60}") {
            if let CallArguments::Object { json, .. } = parse(&raw, false).0 {
                prop_assert!(serde_json::from_str::<Map<String, Value>>(&json).is_ok());
            }
        }
    }
}
