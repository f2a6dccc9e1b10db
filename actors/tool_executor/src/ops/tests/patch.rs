//! Patches.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use interpreter_messages::tool::ChangeKind;
use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::{Space, patch, write};
use crate::ops::patch_grammar::parse;
use crate::ops::patch_match::apply;
use crate::ops::text::TextFile;

fn wrap(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch\n")
}

/// The file `f` after an update with these chunks.
fn updated(before: &str, chunks: &str) -> Result<String, String> {
    let mut space = Space::new();
    space.put("f", before);
    space.change(patch(&wrap(&format!("*** Update File: f\n{chunks}"))))?;
    Ok(space.text("f"))
}

#[test]
fn a_patch_adds_deletes_changes_and_moves_files() {
    let mut space = Space::new();
    space.put("gone.txt", "x\n");
    let old = space.put("old.sh", "a\nb\nc\n");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).expect("a mode");
    let changes = space
        .change(patch(&wrap(
            "*** Add File: n/new.txt\n+one\n+\n+two\n*** Delete File: gone.txt\n*** Update File: old.sh\n*** Move to: moved/to.sh\n@@\n a\n-b\n+B\n c",
        )))
        .expect("it fits");
    assert_eq!(space.text("n/new.txt"), "one\n\ntwo\n");
    assert_eq!(space.text("moved/to.sh"), "a\nB\nc\n");
    assert_eq!(space.names(), ["moved", "moved/to.sh", "n", "n/new.txt"]);
    let mode = fs::metadata(space.path("moved/to.sh"))
        .expect("it")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    let kinds: Vec<_> = changes
        .iter()
        .map(|c| (c.kind, c.moved_to.is_some()))
        .collect();
    assert_eq!(
        kinds,
        [
            (ChangeKind::Delete, false),
            (ChangeKind::Add, false),
            (ChangeKind::Update, true)
        ]
    );
}

#[test]
fn chunks_are_found_as_the_original_finds_them_and_context_keeps_its_bytes() {
    for (before, chunks, then) in [
        ("a\nb\nc\n", "@@\n-b\n+B", "a\nB\nc\n"),
        // Context: the second `x` is meant.
        (
            "fn a\n x\nfn b\n x\n",
            "@@ fn b\n- x\n+ y",
            "fn a\n x\nfn b\n y\n",
        ),
        // Trailing white space and indentation are matched loosely, and stay as they were.
        (
            "if a:  \n\tb\nc\n",
            "@@\n if a:\n     b\n-c\n+d",
            "if a:  \n\tb\nd\n",
        ),
        // Typographic characters too.
        (
            "say “hi” — now\nx\n",
            "@@\n say \"hi\" - now\n-x\n+y",
            "say “hi” — now\ny\n",
        ),
        // A blank context line without its space, and blank lines that are only layout.
        ("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B\n\n", "A\nB\n"),
        // Only new lines: at the end, or after the context.
        ("a\nb\n", "@@\n+c", "a\nb\nc\n"),
        ("a\nb\n", "@@ a\n+c", "a\nc\nb\n"),
        ("a\nb\n", "@@\n+c\n@@\n-a\n+A", "A\nb\nc\n"),
        ("", "@@\n+c", "c\n"),
        // Without `@@`.
        ("a\nb\n", " a\n-b\n+c", "a\nc\n"),
        // The end of the file is meant, not the first of the same lines.
        ("x\ny\nx\n", "@@\n-x\n+z\n*** End of File", "x\ny\nz\n"),
        // Line ranges of a unified diff are no context.
        ("a\nb\n", "@@ -1,2 +1,2 @@ fn name\n a\n-b\n+c", "a\nc\n"),
        // A missing line end of the last line stays missing.
        ("a\nb", "@@\n-b\n+c", "a\nc"),
        ("a\nb", "@@\n-a\n+c", "c\nb"),
        ("a", "@@\n a\n+b", "a\nb"),
        ("a\r\nb\r\n", "@@\n a\n+x\n b", "a\r\nx\r\nb\r\n"),
        ("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D", "A\nb\nc\nD\n"),
    ] {
        assert_eq!(
            updated(before, chunks).as_deref(),
            Ok(then),
            "{before:?} {chunks:?}"
        );
    }
}

#[test]
fn wrappers_around_a_patch_are_taken_off() {
    let body = wrap("*** Add File: f\n+x");
    for text in [
        format!("```\n{body}```"),
        format!("```diff\n{body}```\n"),
        format!("<<'EOF'\n{body}EOF"),
        format!("apply_patch <<\"PATCH\"\n{body}PATCH\n"),
        body.replace('\n', "\r\n"),
        format!("\n\n  {body}"),
    ] {
        let mut space = Space::new();
        space
            .change(patch(&text))
            .unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(space.text("f"), "x\n", "{text:?}");
    }
}

#[test]
fn errors_name_the_line_of_the_patch_or_the_lines_that_are_missing() {
    for (text, says) in [
        ("*** Update File: f\n", "invalid patch: it must begin with"),
        (
            "*** Begin Patch\n*** Add File: f\n+x\n",
            "invalid patch: it must end with",
        ),
        (&wrap(""), "it has no file headers"),
        (
            &wrap("*** Change File: f"),
            "line 2: `*** Change File: f` is no file header",
        ),
        (&wrap("*** Add File: \n+x"), "line 2: the path is missing"),
        (
            &wrap("*** Add File: n\n+x\ny"),
            "line 4: lines of a new file must begin with `+`",
        ),
        (
            &wrap("*** Update File: f"),
            "line 2: the update of f has no changes",
        ),
        (
            &wrap("*** Update File: f\n@@\n-a\n?b"),
            "line 5: `?b` must begin with",
        ),
        (
            &format!("Here it is: done\n{}", wrap("*** Add File: n\n+x")),
            "line 1: unexpected text",
        ),
        (
            &wrap("*** Update File: f\n@@ fn x\n-a\n+b"),
            "failed to find context 'fn x' in ",
        ),
        (
            &wrap("*** Update File: f\n@@\n a\n-q\n+b"),
            "/f:\na\nq\n(the first of them is at line 1",
        ),
        (
            &wrap("*** Update File: f\n@@\n-b\n+B\n@@\n-a\n+A"),
            "put the chunks in file order",
        ),
        (
            &wrap("*** Update File: none\n@@\n-b\n+B"),
            "failed to read file to update",
        ),
        (
            &wrap("*** Delete File: none"),
            "failed to read file to update",
        ),
        (
            &wrap("*** Update File: f\n*** Move to: g\n@@\n-a\n+A"),
            "there is a file already",
        ),
        (
            &wrap("*** Update File: f\n@@\n-a\n+a"),
            "the patch changes nothing",
        ),
        (&wrap("*** Update File: bin\n@@\n-a\n+b"), "it is binary"),
    ] {
        let mut space = Space::new();
        space.put("f", "a\nb\n");
        space.put("g", "x\n");
        space.put("bin", b"a\0\n");
        let error = space.change(patch(text)).expect_err(text);
        assert!(
            error.starts_with("apply_patch verification failed: "),
            "{error}"
        );
        assert!(error.contains(says), "{text:?}: {error}");
        assert_eq!(space.names(), ["bin", "f", "g"]);
        assert_eq!(space.text("f"), "a\nb\n");
    }
}

#[test]
fn nothing_is_touched_when_one_of_several_files_does_not_fit() {
    let mut space = Space::new();
    space.put("a", "1\n");
    space.put("b", "2\n");
    space
        .change(patch(&wrap(
            "*** Update File: a\n@@\n-1\n+one\n*** Add File: c\n+x\n*** Update File: b\n@@\n-3\n+three",
        )))
        .expect_err("b does not fit");
    assert_eq!(
        (space.text("a"), space.names()),
        ("1\n".into(), vec!["a".into(), "b".into()])
    );
}

#[test]
fn what_was_done_is_taken_back_when_a_later_file_cannot_be_written() {
    let mut space = Space::new();
    space.put("a", "1\n");
    space.put("b", "2\n");
    space.put("e", "4\n");
    // Nobody can write there, which only shows when it is tried; paths are carried out in order.
    std::os::unix::fs::symlink("/sys/kernel", space.path("z")).expect("a link");
    let order = patch(&wrap(
        "*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n*** Add File: c/d\n+x\n*** Update File: e\n*** Move to: f\n@@\n-4\n+four\n*** Add File: z/x\n+x",
    ));
    let changes = space.prepare(&order).expect("it fits");
    let error = space
        .apply(order, changes)
        .expect_err("it cannot be written");
    assert!(error.starts_with("cannot write /sys/kernel/x: "), "{error}");
    assert_eq!(space.text("a"), "1\n");
    assert_eq!(space.text("b"), "2\n");
    assert_eq!(space.text("e"), "4\n");
    assert!(!space.path("c").exists() && !space.path("f").exists());
}

#[test]
fn one_file_may_occur_several_times() {
    let mut space = Space::new();
    space.put("f", "a\nb\n");
    let changes = space
        .change(patch(&wrap(
            "*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n A\n-b\n+B\n*** Add File: t\n+x\n*** Delete File: t",
        )))
        .expect("it fits");
    assert_eq!((space.text("f").as_str(), changes.len()), ("A\nB\n", 1));
    space
        .change(patch(&wrap("*** Delete File: f\n*** Add File: f\n+new")))
        .expect("replaced");
    assert_eq!(space.text("f"), "new\n");
}

#[test]
fn context_guards_an_update_and_the_hash_guards_an_addition_over_a_known_file() {
    let mut space = Space::new();
    space.change(write("f", "a\nb\n")).expect("written");
    space.put("f", "a\nb\nuser\n");
    space
        .change(patch(&wrap("*** Update File: f\n@@\n-a\n+A")))
        .expect("the context fits");
    assert_eq!(space.text("f"), "A\nb\nuser\n");
    space.put("f", "other\n");
    let error = space
        .change(patch(&wrap("*** Add File: f\n+new")))
        .expect_err("would lose a change");
    assert!(error.contains("changed on disk"), "{error}");
}

#[test]
fn foreign_bytes_survive_a_patch() {
    let mut space = Space::new();
    space.put("l", b"caf\xe9\nb\n");
    space
        .change(patch(&wrap("*** Update File: l\n@@\n-b\n+c")))
        .expect("ascii");
    assert_eq!(space.get("l"), b"caf\xe9\nc\n");
    let error = space
        .change(patch(&wrap("*** Update File: l\n@@\n-c\n+é")))
        .expect_err("cannot be encoded");
    assert!(error.contains("not UTF-8"), "{error}");
}

/// A patch in the grammar with `context` lines around each change.
fn make_patch(before: &str, after: &str, context: usize) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut text = String::from("*** Begin Patch\n*** Update File: f\n");
    for group in diff.grouped_ops(context) {
        text.push_str("@@\n");
        for op in &group {
            for change in diff.iter_changes(op) {
                text.push(match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                });
                text.push_str(change.value().trim_end_matches('\n'));
                text.push('\n');
            }
        }
    }
    text + "*** End Patch\n"
}

/// Lines that differ from each other, so that each place is found without doubt.
fn lines(marks: &[u8]) -> String {
    marks
        .iter()
        .enumerate()
        .map(|(n, mark)| format!("line {n} {mark}\n"))
        .collect()
}

proptest! {
    #[test]
    fn the_patch_of_a_difference_gives_the_target(
        marks in proptest::collection::vec(0_u8..4, 1..40),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..3), 1..8),
        context in 1_usize..4,
        crlf in any::<bool>(),
    ) {
        let before = lines(&marks);
        let mut after: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for (n, (at, kind)) in changes.iter().enumerate() {
            let at = at.index(after.len());
            match kind {
                0 if after.len() > 1 => drop(after.remove(at)),
                1 => after.insert(at, format!("new {n}\n")),
                _ => after[at] = format!("changed {n}\n"),
            }
        }
        let after = after.concat();
        prop_assume!(before != after);
        let text = make_patch(&before, &after, context);
        let hunks = parse(&text).expect("the grammar");
        let crate::ops::patch_grammar::Hunk::Update { chunks, .. } = &hunks[0] else {
            panic!("an update");
        };
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let file = TextFile::parse(ends(&before).as_bytes()).expect("text");
        let got = apply(&file, chunks).expect("it fits");
        prop_assert_eq!(String::from_utf8(got).expect("text"), ends(&after));
    }

    #[test]
    fn no_text_makes_the_parser_or_the_matcher_panic(
        text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: f|Update File: f|Move to: g|End of File)\n|@@( a)?\n|[ +-]?[ab é\r]{0,3}\n){0,20}",
        body in "[ab é\r\n]{0,40}",
    ) {
        let text = format!("*** Begin Patch\n{text}*** End Patch");
        if let Ok(hunks) = parse(&text) {
            for hunk in hunks {
                if let crate::ops::patch_grammar::Hunk::Update { chunks, .. } = hunk {
                    let file = TextFile::parse(body.as_bytes()).expect("text");
                    let _ = apply(&file, &chunks);
                }
            }
        }
    }
}
