//! Replacements.

use interpreter_messages::tool::{Edit, Operation, Replacement};
use proptest::prelude::*;

use super::{Space, edit, replacement};
use crate::ops::edit::replace;

/// The file after one replacement, or the error.
fn after(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, String> {
    let mut space = Space::new();
    space.put("f", bytes);
    space.change(edit("f", old, new))?;
    assert_eq!(space.names(), ["f"], "no temporary file is left");
    Ok(space.get("f"))
}

#[test]
fn only_the_replaced_bytes_change() {
    for (before, old, new, then) in [
        ("a b c", "b", "B", "a B c"),
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\nb\n", "a\r\nb", "a\r\nB", "a\nB\n"),
        ("a\nb", "b", "c\nd", "a\nc\nd"),
        // Mixed ends: what is common to old and new text keeps its own.
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"),
        ("\u{FEFF}x = 1\n", "x = 1", "x = 2", "\u{FEFF}x = 2\n"),
    ] {
        let got = after(before.as_bytes(), old, new).expect("it fits");
        assert_eq!(
            String::from_utf8(got).expect("text"),
            then,
            "{before:?} {old:?}"
        );
    }
}

#[test]
fn foreign_bytes_around_an_edit_are_never_lost() {
    let latin = b"caf\xe9 = 1\nx = 2\n";
    assert_eq!(
        after(latin, "x = 2", "x = 3").expect("ascii"),
        b"caf\xe9 = 1\nx = 3\n"
    );
    let error = after(latin, "x = 2", "x = é").expect_err("cannot be encoded");
    assert!(error.contains("not UTF-8"), "{error}");
    let error = after(latin, "café", "cafe").expect_err("does not match");
    assert!(error.contains("not UTF-8"), "{error}");
    let wide = b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0";
    assert_eq!(
        after(wide, "a\nb", "a\né").expect("utf-16"),
        b"\xff\xfea\0\r\0\n\0\xe9\0\r\0\n\0"
    );
    let broken = b"\xff\xfea\0\x00\xd8b\0";
    let error = after(broken, "a", "c").expect_err("lone surrogate");
    assert!(error.contains("broken characters"), "{error}");
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let file = "fn main() {\n\tlet a = “x”;\n    call(a);\n    call(b);\n    call(a);\n}\n";
    for (old, new, says) in [
        ("", "x", "the old text is empty"),
        ("a", "a", "old and new text are the same"),
        ("call(a)", "x", "occurs 2 times (lines 3, 5)"),
        (
            "  call(b);\n  call(a);",
            "x",
            "lines 4–5 would fit but for white space",
        ),
        ("    let a = “x”;", "y", "(the file has tabs)"),
        (
            "let a = \"x\";",
            "y",
            "line 2 would fit but for the kind of quotes",
        ),
        (
            "Call(b)",
            "y",
            "line 4 would fit but for upper and lower case",
        ),
        (
            "3\t    call(a);\n4\t    call(b);",
            "y",
            "leave out the line numbers",
        ),
        ("call(b);\\n    call(a);", "y", "without the backslashes"),
        ("    call(bb);", "y", "the nearest is line 4: `call(b);`"),
        (
            "    call(b);\n    other();",
            "y",
            "its first line is line 4",
        ),
        ("quite something else", "y", "read the file again"),
        (" \n", "y", "only white space"),
    ] {
        let error = after(file.as_bytes(), old, new).expect_err(old);
        assert!(error.contains(says), "{old:?}: {error}");
    }
}

#[test]
fn replacements_are_applied_in_order_and_all_or_none() {
    let mut space = Space::new();
    space.put("f", "one two one\n");
    let order = |replacements: Vec<Replacement>| {
        Operation::Edit(Edit {
            path: "f".into(),
            replacements,
        })
    };
    let all = Replacement {
        all: true,
        ..replacement("one", "1")
    };
    space
        .change(order(vec![all, replacement("1 two", "2")]))
        .expect("both fit");
    assert_eq!(space.text("f"), "2 1\n");
    let error = space
        .change(order(vec![replacement("2", "3"), replacement("zzz", "y")]))
        .expect_err("the second does not fit");
    assert!(
        error.contains("replacement 2 of 2: the old text does not occur"),
        "{error}"
    );
    assert_eq!(space.text("f"), "2 1\n");
    let error = space.change(order(vec![])).expect_err("nothing");
    assert!(error.contains("no replacements"), "{error}");
}

#[test]
fn empty_old_text_creates_a_file_or_fills_an_empty_one() {
    let mut space = Space::new();
    space.change(edit("d/new", "", "text\n")).expect("created");
    assert_eq!(space.text("d/new"), "text\n");
    space.put("empty", "");
    space.change(edit("empty", "", "text\n")).expect("filled");
    let error = space
        .change(edit("empty", "", "more"))
        .expect_err("has text");
    assert!(error.contains("this file has text"), "{error}");
    let error = space.change(edit("none", "a", "b")).expect_err("missing");
    assert!(error.starts_with("no such file: "), "{error}");
}

#[test]
fn a_stale_file_is_not_edited() {
    let mut space = Space::new();
    space.put("f", "a\nb\n");
    space.read("f").expect("text");
    space.put("f", "a\nb\nc\n");
    let error = space.change(edit("f", "a", "x")).expect_err("stale");
    assert!(error.contains("read it again"), "{error}");
}

proptest! {
    #[test]
    fn an_edit_never_panics_and_keeps_everything_around(
        head in "[ab\r\n é]{0,40}",
        tail in "[ab\r\n é]{0,40}",
        new in "[xy é]{1,10}",
    ) {
        let body = format!("{head}@@@{tail}");
        let order = replacement("@@@", &new);
        let got = replace(body.as_bytes(), &order, false, false).expect("it is there once");
        prop_assert_eq!(String::from_utf8(got).expect("text"), format!("{head}{new}{tail}"));
    }

    #[test]
    fn any_edit_of_any_bytes_gives_a_value(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        old in "[ab\r\n\t “]{0,6}",
        new in "[ab\r\n\t “]{0,6}",
        all in any::<bool>(),
        crlf in any::<bool>(),
        ascii in any::<bool>(),
    ) {
        let order = Replacement { old, new, all };
        let _ = replace(&body, &order, crlf, ascii);
    }

    #[test]
    fn text_with_equal_line_ends_is_replaced_as_in_a_string(
        body in "[ab\n]{0,60}",
        old in "[ab\n]{1,4}",
        new in "[ab\n]{0,4}",
    ) {
        prop_assume!(old != new);
        let order = Replacement { old: old.clone(), new: new.clone(), all: true };
        let crlf = body.replace('\n', "\r\n");
        let expected = body.contains(&old).then(|| body.replace(&old, &new));
        let lf_got = replace(body.as_bytes(), &order, false, false).ok();
        prop_assert_eq!(lf_got, expected.clone().map(String::into_bytes));
        let crlf_got = replace(crlf.as_bytes(), &order, true, false).ok();
        prop_assert_eq!(crlf_got, expected.map(|text| text.replace('\n', "\r\n").into_bytes()));
    }
}
