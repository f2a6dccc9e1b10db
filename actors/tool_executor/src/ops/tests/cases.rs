//! The cases taken from public reports.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use serde::Deserialize;

use super::{Space, edit, patch, write};

#[derive(Deserialize)]
struct Case {
    case: String,
    files: BTreeMap<String, Content>,
    op: OneOrMany,
    expect: Expect,
}

#[derive(Deserialize)]
struct Content {
    b64: Option<String>,
    mode: Option<String>,
    symlink: Option<String>,
}

impl Content {
    fn bytes(&self) -> Vec<u8> {
        let text = self.b64.as_deref().expect("base64");
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .expect("valid base64")
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Op),
    Many(Vec<Op>),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Op {
    ApplyPatch {
        patch: String,
    },
    StrReplace {
        path: String,
        old: String,
        new: String,
    },
    Write {
        path: String,
        text: String,
    },
    Read {
        path: String,
    },
    OutsideWrite {
        path: String,
        bytes: Content,
    },
    OutsideTouch {
        path: String,
    },
}

#[derive(Deserialize)]
struct Expect {
    ok: bool,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    /// Any of these words.
    #[serde(default)]
    error_mentions: Vec<String>,
}

#[test]
fn every_reported_edit_case_comes_out_right() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases/edits");
    let mut count = 0;
    for entry in fs::read_dir(cases).expect("cases").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a case");
        let case: Case = serde_json::from_str(&text).expect("a valid case");
        run(&case);
        count += 1;
    }
    assert!(count >= 3, "the cases are there");
}

fn run(case: &Case) {
    let mut space = Space::new();
    for (name, content) in &case.files {
        if let Some(to) = &content.symlink {
            std::os::unix::fs::symlink(to, space.path(name)).expect("a link");
            continue;
        }
        let path = space.put(name, content.bytes());
        if let Some(mode) = &content.mode {
            let mode = u32::from_str_radix(mode, 8).expect("an octal mode");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }
    let ops = match &case.op {
        OneOrMany::One(op) => std::slice::from_ref(op),
        OneOrMany::Many(ops) => ops,
    };
    let mut last = Ok(());
    for op in ops {
        last = perform(&mut space, op);
    }
    let name = &case.case;
    assert_eq!(last.is_ok(), case.expect.ok, "{name}: {last:?}");
    if let Err(error) = last {
        let mentions = &case.expect.error_mentions;
        let says = mentions.is_empty() || mentions.iter().any(|word| error.contains(word));
        assert!(says, "{name}: {error}");
    }
    for (file, content) in &case.expect.files {
        assert_eq!(space.get(file), content.bytes(), "{name}: {file}");
    }
}

fn perform(space: &mut Space, op: &Op) -> Result<(), String> {
    match op {
        Op::ApplyPatch { patch: text } => space.change(patch(text)).map(drop),
        Op::StrReplace { path, old, new } => space.change(edit(path, old, new)).map(drop),
        Op::Write { path, text } => space.change(write(path, text)).map(drop),
        Op::Read { path } => space.read(path).map(drop),
        Op::OutsideWrite { path, bytes } => {
            space.put(path, bytes.bytes());
            Ok(())
        }
        Op::OutsideTouch { path } => {
            let bytes = space.get(path);
            space.put(path, bytes);
            Ok(())
        }
    }
}
