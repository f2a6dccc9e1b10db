use std::path::Path;

use interpreter_messages::tool::{Exec, Meaning};
use serde_json::json;

use super::*;

fn profile(id: &str) -> Profile {
    Profile::load(id, Path::new("/nowhere")).expect("a profile of the program loads")
}

fn item(id: Option<&str>, name: &str, json: &str) -> ModelItem {
    ModelItem::ToolCall {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        arguments: CallArguments::Object {
            json: json.to_owned(),
            repaired: None,
        },
    }
}

fn absorbed(harness: &str, items: Vec<ModelItem>, used: &[&str]) -> Vec<ToolCall> {
    let response = ModelResponse {
        items,
        ..ModelResponse::default()
    };
    let used = used.iter().map(|id| (*id).to_owned()).collect();
    absorb(&profile(harness), response, &used)
        .into_iter()
        .filter_map(|action| match action {
            Action::Call(call) => Some(call),
            _ => None,
        })
        .collect()
}

fn one(harness: &str, name: &str, json: &str) -> ToolCall {
    absorbed(harness, vec![item(Some("c"), name, json)], &[]).remove(0)
}

fn exec(json: &str) -> Exec {
    match one("native", "exec_command", json).meaning {
        Meaning::Run(Operation::Exec(exec)) => exec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_become_fields_within_their_bounds() {
    let plain = exec("{\"cmd\":\"ls\"}");
    assert_eq!(
        (plain.yield_ms, plain.max_output_tokens, plain.escalate),
        (Some(10_000), Some(10_000), false)
    );
    let bounded = exec("{\"cmd\":\"ls\",\"yield_time_ms\":1.0,\"max_output_tokens\":99999999}");
    assert_eq!(
        (bounded.yield_ms, bounded.max_output_tokens),
        (Some(250), Some(10_000))
    );
    assert!(exec("{\"cmd\":\"ls\",\"sandbox_permissions\":\"require_escalated\"}").escalate);
    let edit = one(
        "minimal",
        "edit",
        "{\"path\":\"a\",\"old\":\"x\",\"new\":\"y\",\"all\":true}",
    );
    let Meaning::Run(Operation::Edit(edit)) = edit.meaning else {
        panic!("{edit:?}")
    };
    assert_eq!(
        (edit.replacements.len(), edit.replacements[0].all),
        (1, true)
    );
}

#[test]
fn what_cannot_be_run_says_why_and_what_is_near() {
    let unknown = one("native", "exec_comand", "{}");
    assert_eq!(
        unknown.meaning,
        Meaning::Invalid(InvalidCall::UnknownTool {
            nearest: Some("exec_command".to_owned())
        })
    );
    let missing = one("native", "exec_command", "{\"command\":\"ls\"}");
    assert!(
        matches!(&missing.meaning, Meaning::Invalid(InvalidCall::BadArguments { error, .. }) if error.contains("`cmd`"))
    );
    let broken = ModelItem::ToolCall {
        id: None,
        name: "exec_command".to_owned(),
        arguments: CallArguments::Broken {
            raw: "{".to_owned(),
            error: "not JSON".to_owned(),
        },
    };
    let broken = absorbed("native", vec![broken], &[]).remove(0);
    assert_eq!(broken.arguments, "{}");
    assert!(matches!(
        broken.meaning,
        Meaning::Invalid(InvalidCall::BadArguments { .. })
    ));
}

#[test]
fn slips_are_run_and_noted() {
    let call = one(
        "native",
        "exec_command",
        "{\"cmd\":[\"ls\"],\"tty\":\"false\",\"why\":1}",
    );
    assert!(matches!(&call.meaning, Meaning::Run(_)));
    let note = call.repaired.expect("it is noted");
    assert!(
        note.contains("`cmd`") && note.contains("`tty`") && note.contains("`why`"),
        "{note}"
    );
}

#[test]
fn ids_are_unique_and_can_be_sent_back() {
    let ls = "{\"cmd\":\"ls\"}";
    let long = "x".repeat(100);
    let items = [
        Some("a"),
        Some("a"),
        None,
        Some(""),
        Some("bad id"),
        Some(long.as_str()),
    ];
    let items = items
        .into_iter()
        .map(|id| item(id, "exec_command", ls))
        .collect();
    let ids: Vec<String> = absorbed("native", items, &["a", "b"])
        .into_iter()
        .map(|call| call.id.0)
        .collect();
    assert_eq!(ids[..2], ["a-2", "a-3"]);
    let distinct: HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    assert!(
        ids.iter().all(|id| id.len() <= 64 && !id.contains(' ')),
        "{ids:?}"
    );
}

#[test]
fn a_patch_in_a_here_document_is_a_patch() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n";
    let script = |script: &str| {
        one(
            "native",
            "exec_command",
            &json!({"cmd": script}).to_string(),
        )
        .meaning
    };
    let is_patch = |meaning: &Meaning| matches!(meaning, Meaning::Run(Operation::Patch(found)) if found.patch == patch);
    assert!(is_patch(&script(&format!(
        "apply_patch <<'EOF'\n{patch}EOF"
    ))));
    assert!(is_patch(&script(&format!(
        "apply_patch <<EOF\n{patch}EOF\n"
    ))));
    let inside = script(&format!(
        "cd 'my dir' && apply_patch << \"PATCH\"\n{patch}PATCH"
    ));
    assert!(
        matches!(&inside, Meaning::Run(Operation::Patch(found)) if found.workdir.as_deref() == Some(Path::new("my dir")))
    );
    for other in [
        format!("apply_patch <<'EOF'\n{patch}EOF\nrm -rf x"),
        format!("apply_patch <<EOF\n{}EOF", patch.replace("+x", "+$(rm x)")),
        format!("cd $HOME && apply_patch <<'EOF'\n{patch}EOF"),
        format!("apply_patch <<'EOF'\nEOF\n{patch}EOF"),
        "apply_patch".to_owned(),
    ] {
        assert!(
            matches!(script(&other), Meaning::Run(Operation::Exec(_))),
            "{other}"
        );
    }
}
