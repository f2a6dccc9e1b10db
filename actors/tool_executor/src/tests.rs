//! Tests of the pure parts beside the file operations: what is kept of output, what may be written, what a crash did.

use std::path::{Path, PathBuf};

use interpreter_messages::ProcessId;
use interpreter_messages::policy::{EnvInherit, EnvPolicy, SandboxMode, SandboxPolicy};
use interpreter_messages::process::ProcessSnapshot;
use interpreter_messages::tool::{ChangeKind, Cut, Effects, ExecOutput, ExitStatus, FileChange};
use proptest::prelude::*;

use crate::calls::{judge, touched};
use crate::output::{budget, exec_output, tail};
use crate::scope::Scope;

pub(crate) fn policy(mode: SandboxMode, root: &Path) -> SandboxPolicy {
    SandboxPolicy {
        mode,
        roots: vec![root.to_owned()],
        protected: vec![".git".to_owned(), ".codex".to_owned()],
        deny_read: Vec::new(),
        network: false,
        share_tmp: false,
        env: EnvPolicy {
            inherit: EnvInherit::Core,
            exclude: Vec::new(),
            include_only: Vec::new(),
            set: Vec::new(),
            secrets: Vec::new(),
        },
    }
}

pub(crate) fn snapshot(output: &[u8]) -> ProcessSnapshot {
    ProcessSnapshot {
        output: output.to_vec(),
        gap: None,
        offset: output.len() as u64,
        lines: memchr::memchr_iter(b'\n', output).count() as u64,
        exit: Some(ExitStatus::Code(0)),
        denial: None,
        failure: None,
    }
}

fn kept(snapshot: &ProcessSnapshot, budget: usize) -> ExecOutput {
    exec_output(snapshot, 0, budget, 5, ProcessId(3))
}

#[test]
fn short_output_is_kept_whole() {
    let output = kept(&snapshot("hé\n".as_bytes()), 100);
    assert_eq!((output.text.as_str(), output.cut), ("hé\n", None));
    assert_eq!(
        (output.total_bytes, output.total_lines, output.wall_ms),
        (4, 1, 5)
    );
    assert_eq!(
        (output.exit, output.process),
        (Some(ExitStatus::Code(0)), None)
    );
}

#[test]
fn long_output_keeps_head_and_tail_and_counts_what_is_left_out() {
    let output = kept(&snapshot(b"0123456789abcdefghij"), 8);
    assert_eq!(output.text, "0123ghij");
    assert_eq!(output.cut, Some(Cut { at: 4, bytes: 12 }));
    let output = kept(&snapshot("ééééééé".as_bytes()), 5);
    assert_eq!(
        (output.text.as_str(), output.cut),
        ("éé", Some(Cut { at: 2, bytes: 10 }))
    );
}

#[test]
fn a_gap_of_the_ring_buffer_is_a_cut_too() {
    let mut with_gap = snapshot("abé".as_bytes());
    // The gap lies within the last character.
    with_gap.gap = Some((3, 1_000));
    let output = kept(&with_gap, 100);
    assert_eq!(
        (output.text.as_str(), output.cut),
        (
            "ab",
            Some(Cut {
                at: 2,
                bytes: 1_000
            })
        )
    );
    let mut with_gap = snapshot(b"0123456789abcdefghij");
    with_gap.gap = Some((2, 50));
    let output = kept(&with_gap, 8);
    assert_eq!(
        (output.text.as_str(), output.cut),
        ("01ghij", Some(Cut { at: 2, bytes: 64 }))
    );
}

#[test]
fn a_running_command_has_its_number_and_a_denial_belongs_to_a_failure() {
    let mut running = snapshot(b"x");
    running.exit = None;
    running.denial = Some("no".to_owned());
    let output = kept(&running, 100);
    assert_eq!((output.process, output.denial), (Some(ProcessId(3)), None));
    running.exit = Some(ExitStatus::Code(1));
    assert_eq!(kept(&running, 100).denial.as_deref(), Some("no"));
    running.exit = Some(ExitStatus::Code(0));
    assert_eq!(kept(&running, 100).denial, None);
}

#[test]
fn the_budget_is_four_bytes_a_token_and_has_a_cap() {
    assert_eq!(
        [
            budget(None),
            budget(Some(10)),
            budget(Some(1_000_000)),
            budget(Some(0))
        ],
        [40_000, 40, 40_000, 4]
    );
    assert_eq!(tail(&[b'x'; 5_000]).len(), 2_000);
}

proptest! {
    #[test]
    fn any_output_is_kept_within_the_budget_and_cut_on_characters(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        gap in proptest::option::of((any::<prop::sample::Index>(), 1_u64..1_000)),
        budget in 4_usize..200,
    ) {
        let mut snapshot = snapshot(&bytes);
        snapshot.gap = gap.map(|(at, n)| (at.index(bytes.len() + 1), n));
        let output = kept(&snapshot, budget);
        prop_assert!(output.text.len() <= budget);
        prop_assert_eq!(output.cut.is_some(), snapshot.gap.is_some() || output.text != String::from_utf8_lossy(&bytes));
        if let Some(cut) = output.cut {
            prop_assert!(output.text.is_char_boundary(cut.at));
        }
    }
}

#[test]
fn the_scope_goes_by_components_and_protects_names_at_the_top_of_a_root() {
    let root = Path::new("/srv/work");
    let scope = |mode| Scope::of(&policy(mode, root));
    let writable = scope(SandboxMode::WorkspaceWrite);
    for (path, allowed) in [
        ("/srv/work/a/b", true),
        ("/srv/work/sub/.git/config", true),
        ("/srv/work/.gitignore", true),
        ("/srv/work/.git", false),
        ("/srv/work/.git/config", false),
        ("/srv/work-other/a", false),
        ("/srv/a", false),
        ("/etc/passwd", false),
        ("/tmp/x", true),
        ("/tmpx", false),
    ] {
        assert_eq!(writable.allows(Path::new(path)), allowed, "{path}");
    }
    let read_only = scope(SandboxMode::ReadOnly);
    assert!(!read_only.allows(Path::new("/srv/work/a")));
    assert!(read_only.allows(Path::new("/tmp/a")));
    let full = scope(SandboxMode::DangerFullAccess);
    assert!(full.allows(Path::new("/etc/passwd")) && !full.is_bounded());
}

#[test]
fn protected_names_stay_protected_in_a_root_below_tmp() {
    let scope = Scope::of(&policy(SandboxMode::WorkspaceWrite, Path::new("/tmp/app")));
    assert!(!scope.allows(Path::new("/tmp/app/.git/config")));
    assert!(scope.allows(Path::new("/tmp/app/src")));
}

#[test]
fn hashes_after_a_crash_tell_what_became_of_a_change() {
    let change = |moved: bool, before: Option<&str>, after: Option<&str>| FileChange {
        path: PathBuf::from("/a"),
        kind: ChangeKind::Update,
        moved_to: moved.then(|| PathBuf::from("/b")),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        diff: String::new(),
    };
    let plain = change(false, Some("1"), Some("2"));
    let added = change(false, None, Some("2"));
    let moved = change(true, Some("1"), Some("2"));
    for (changes, now, effects) in [
        (vec![plain.clone()], vec![Some("2")], Effects::Applied),
        (vec![plain.clone()], vec![Some("1")], Effects::NotApplied),
        (vec![plain.clone()], vec![Some("3")], Effects::Unknown),
        (vec![plain.clone()], vec![None], Effects::Unknown),
        (vec![added.clone()], vec![None], Effects::NotApplied),
        (vec![moved.clone()], vec![None, Some("2")], Effects::Applied),
        (
            vec![moved.clone()],
            vec![Some("1"), None],
            Effects::NotApplied,
        ),
        (vec![moved], vec![Some("1"), Some("2")], Effects::Unknown),
        (vec![plain, added], vec![Some("2"), None], Effects::Unknown),
    ] {
        let now: Vec<Option<String>> = now
            .into_iter()
            .map(|hash| hash.map(str::to_owned))
            .collect();
        assert_eq!(touched(&changes).len(), now.len());
        assert_eq!(judge(&changes, &now), effects, "{changes:?} {now:?}");
    }
}
