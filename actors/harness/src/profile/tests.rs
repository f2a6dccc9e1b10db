use std::fs;

use serde_json::Value;

use super::*;

fn without_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // A property may be called "description"; its schema is an object.
            map.retain(|name, inner| name != "description" || inner.is_object());
            map.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

#[test]
fn native_tools_have_the_measured_schemas() {
    let expected: Value =
        serde_json::from_str(include_str!("../../testdata/native-tools.json")).expect("JSON");
    let profile = Profile::load("native", Path::new("/nowhere")).expect("it loads");
    for (name, schema) in expected.as_object().expect("an object") {
        let face = profile
            .tools
            .iter()
            .find(|face| face.name == *name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        let mut own = face.schema.clone();
        without_descriptions(&mut own);
        assert_eq!(&own, schema, "{name}");
    }
}

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temp directory can be made");
        for (path, text) in files {
            let path = folder.path().join("harnesses").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("parents can be made");
            fs::write(path, text).expect("a file can be written");
        }
        Self { folder }
    }

    fn load(&self, id: &str) -> Result<Profile, ProfileError> {
        Profile::load(id, self.folder.path())
    }
}

#[test]
fn a_users_profile_extends_one_of_the_program() {
    let home = Home::with(&[
        (
            "mine/harness.toml",
            "extends = \"native\"\ntools = [\"exec_command\", \"look\"]\nsystem = [\"short.md\"]\n[params]\ntemperature = 0.2\n",
        ),
        ("mine/short.md", "Be brief.\n"),
        (
            "mine/tools/look.toml",
            "description = \"Looks.\"\noperation = \"read\"\nschema = '''{\"type\":\"object\",\"properties\":{\"file\":{\"type\":\"string\"}},\"required\":[\"file\"]}'''\nok = \"{{ text }}\"\n[map]\npath = \"file\"\n",
        ),
    ]);
    let profile = home.load("mine").expect("it loads");
    let names: Vec<&str> = profile
        .tools
        .iter()
        .map(|face| face.name.as_str())
        .collect();
    assert_eq!(names, ["exec_command", "look"]);
    assert_eq!(profile.params["temperature"], 0.2);
    assert_eq!(profile.params["stream"], true);
    assert!(profile.engine.patch_heredoc);
}

#[test]
fn a_bad_profile_says_where_and_why() {
    let face = |operation: &str, schema: &str, ok: &str, map: &str| {
        format!(
            "description = \"x\"\noperation = \"{operation}\"\nschema = '{schema}'\nok = '{ok}'\n[map]\n{map}\n"
        )
    };
    let schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}";
    let harness = "wires = [\"chat\"]\ntools = [\"t\"]\n";
    let told = |harness: &str, tool: &str| {
        let home = Home::with(&[("bad/harness.toml", harness), ("bad/tools/t.toml", tool)]);
        home.load("bad")
            .err()
            .map_or("it loads".to_owned(), |error| error.to_string())
    };
    let fine = face("read", schema, "x", "path = \"a\"");
    let all = [
        told("wires = [\"chat\"]\nsytem = []\n", ""),
        told("wires = [\"chart\"]\n", ""),
        told("tools = []\n", ""),
        told("wires = [\"chat\"]\nsystem = [\"no.md\"]\n", ""),
        told("wires = [\"chat\"]\ntools = [\"u\"]\n", ""),
        told("extends = \"bad\"\n", ""),
        told("extends = \"nativ\"\n", ""),
        told(harness, &face("reed", schema, "x", "path = \"a\"")),
        told(harness, &face("read", "{", "x", "path = \"a\"")),
        told(harness, &face("read", "{}", "x", "path = \"a\"")),
        told(harness, &face("read", schema, "{{ x", "path = \"a\"")),
        told(harness, &face("read", schema, "x", "path = \"b\"")),
        told(harness, &face("read", schema, "x", "path = 3")),
        told(harness, &fine),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn an_unknown_harness_is_told_with_the_known_ones() {
    let error = Home::with(&[("own/harness.toml", "")])
        .load("minmal")
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "unknown harness \"minmal\"; known: native, minimal, own; did you mean \"minimal\"?"
    );
}
