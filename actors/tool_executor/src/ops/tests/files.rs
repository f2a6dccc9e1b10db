//! Reading and writing whole files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use interpreter_messages::tool::{ChangeKind, Operation, ToolOutput, ViewImage};
use interpreter_messages::worker::{FileOrder, FileReply};

use super::{Space, write};
use crate::ops::{MAX_FILE, load};

fn mode(space: &Space, name: &str) -> u32 {
    let meta = fs::metadata(space.path(name)).expect("a file");
    meta.permissions().mode() & 0o7777
}

#[test]
fn read_gives_lines_with_their_numbers_and_the_hash_of_the_whole() {
    let mut space = Space::new();
    space.put("a.txt", "\u{FEFF}one\r\ntwo\r\nthree");
    let all = space.read("a.txt").expect("text");
    assert_eq!(all.text, "one\ntwo\nthree");
    assert_eq!((all.first_line, all.total_lines, all.lossy), (1, 3, false));
    assert_eq!(all.hash, load::hash(&space.get("a.txt")));
    let part = space.read_part("a.txt", Some(2), Some(1)).expect("text");
    assert_eq!((part.text.as_str(), part.first_line), ("two\n", 2));
    let beyond = space.read_part("a.txt", Some(9), None).expect("no text");
    assert_eq!(
        (beyond.text.as_str(), beyond.first_line, beyond.total_lines),
        ("", 9, 3)
    );
}

#[test]
fn read_of_an_empty_file_has_no_lines() {
    let mut space = Space::new();
    space.put("e", "");
    let text = space.read("e").expect("text");
    assert_eq!((text.text.as_str(), text.total_lines), ("", 0));
}

#[test]
fn read_cuts_long_lines_and_long_files_and_says_so() {
    let mut space = Space::new();
    space.put("long", format!("{}\nshort\n", "é".repeat(2_100)));
    let text = space.read("long").expect("text");
    assert_eq!((text.long_lines, text.total_lines), (1, 2));
    assert!(
        text.text.contains("… [100 more characters]\nshort\n"),
        "{}",
        text.text
    );
    space.put("many", "x\n".repeat(2_500));
    let text = space.read("many").expect("text");
    assert_eq!(
        (text.text.lines().count(), text.total_lines),
        (2_000, 2_500)
    );
    space.put("wide", format!("{}\n", "y".repeat(1_000)).repeat(500));
    let text = space.read("wide").expect("text");
    assert!(text.text.len() <= 100_000, "{}", text.text.len());
    assert!(text.text.ends_with("y\n"), "whole lines only");
}

#[test]
fn read_shows_foreign_encodings_and_flags_them() {
    let mut space = Space::new();
    space.put("latin", b"caf\xe9\n");
    let text = space.read("latin").expect("text");
    assert_eq!((text.text.as_str(), text.lossy), ("caf\u{FFFD}\n", true));
    space.put("utf16", b"\xff\xfeh\0i\0\r\0\n\0");
    let text = space.read("utf16").expect("text");
    assert_eq!((text.text.as_str(), text.lossy), ("hi\n", true));
}

#[test]
fn what_is_no_text_file_is_refused_with_what_it_is() {
    let mut space = Space::new();
    space.put("b.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    space.put("b.bin", b"text\0more");
    fs::create_dir(space.path("d")).expect("a directory");
    let fifo = space.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    symlink("nothing", space.path("dangling")).expect("a link");
    let huge = fs::File::create(space.path("huge")).expect("a file");
    huge.set_len(MAX_FILE + 1).expect("a sparse file");
    for (name, says) in [
        ("b.png", "a PNG image, 16 bytes): view it as an image"),
        ("b.bin", "is binary (data of an unknown kind, 9 bytes)"),
        ("d", "is a directory, not a regular file: list it instead"),
        ("fifo", "is a named pipe"),
        ("/dev/zero", "is a device"),
        ("/proc/self/environ", "is a view of the kernel"),
        ("dangling", "it is a symbolic link to nothing"),
        ("nowhere/x", "the directory"),
        ("huge", "52428801 bytes"),
        ("", "the path is empty"),
    ] {
        let error = space.read(name).expect_err("not text");
        assert!(error.contains(says), "{name}: {error}");
    }
}

#[test]
fn a_missing_file_names_the_one_that_was_meant() {
    let mut space = Space::new();
    space.put("src/Main.rs", "x");
    let error = space.read("src/main.rs").expect_err("missing");
    assert!(
        error.contains("; there is") && error.ends_with("src/Main.rs"),
        "{error}"
    );
}

#[test]
fn write_makes_parents_and_reports_an_addition() {
    let mut space = Space::new();
    let changes = space.change(write("a/b/c.txt", "hi\n")).expect("written");
    assert_eq!(space.text("a/b/c.txt"), "hi\n");
    assert_eq!(changes[0].kind, ChangeKind::Add);
    assert_eq!(changes[0].before, None);
    assert!(changes[0].diff.contains("--- /dev/null") && changes[0].diff.contains("+hi"));
    assert_eq!(space.names(), ["a", "a/b", "a/b/c.txt"]);
}

#[test]
fn a_new_file_gets_the_mode_that_the_umask_gives() {
    let mut space = Space::new();
    space.put("plain", "x");
    space.change(write("new", "x")).expect("written");
    assert_eq!(mode(&space, "new"), mode(&space, "plain"));
}

#[test]
fn an_overwritten_file_keeps_mode_mark_line_ends_and_encoding() {
    let mut space = Space::new();
    let path = space.put("s.sh", "\u{FEFF}a\r\nb\r\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("a mode");
    space.change(write("s.sh", "x\ny\n")).expect("written");
    assert_eq!(space.text("s.sh"), "\u{FEFF}x\r\ny\r\n");
    assert_eq!(mode(&space, "s.sh"), 0o4755);
    space.put("u16", b"\xfe\xff\0a\0\n");
    space.change(write("u16", "bé\n")).expect("written");
    assert_eq!(space.get("u16"), b"\xfe\xff\0b\0\xe9\0\n");
}

#[test]
fn a_write_through_a_link_changes_its_target() {
    let mut space = Space::new();
    space.put("real.txt", "old");
    symlink("real.txt", space.path("link.txt")).expect("a link");
    space.change(write("link.txt", "new")).expect("written");
    assert_eq!(space.text("real.txt"), "new");
    assert!(
        fs::symlink_metadata(space.path("link.txt"))
            .expect("it")
            .is_symlink()
    );
    symlink("sub/made.txt", space.path("ahead.txt")).expect("a link");
    space.change(write("ahead.txt", "made")).expect("written");
    assert_eq!(space.text("sub/made.txt"), "made");
    symlink("loop-b", space.path("loop-a")).expect("a link");
    symlink("loop-a", space.path("loop-b")).expect("a link");
    let error = space.change(write("loop-a", "x")).expect_err("a loop");
    assert!(error.contains("symbolic links"), "{error}");
}

#[test]
fn a_file_with_other_hard_links_stays_linked() {
    let mut space = Space::new();
    let path = space.put("one", "old text");
    fs::hard_link(&path, space.path("two")).expect("a hard link");
    space.change(write("one", "new")).expect("written");
    assert_eq!(
        (space.text("one"), space.text("two")),
        ("new".into(), "new".into())
    );
    assert_eq!(fs::metadata(&path).expect("it").nlink(), 2);
}

#[test]
fn a_failed_write_leaves_neither_file_nor_directory_behind() {
    let mut space = Space::new();
    space.put("file", "x");
    let error = space
        .change(write("file/below", "y"))
        .expect_err("no directory");
    assert!(error.contains("file/below"), "{error}");
    fs::create_dir(space.path("taken")).expect("a directory");
    space.change(write("taken", "y")).expect_err("a directory");
    let long = format!("new/{}", "n".repeat(300));
    space
        .change(write(&long, "y"))
        .expect_err("the name is too long");
    assert_eq!(space.names(), ["file", "taken"]);
}

#[test]
fn a_stale_file_is_refused_until_it_is_read_again() {
    let mut space = Space::new();
    space.put("s", "v1\n");
    space.read("s").expect("text");
    space.put("s", "v1\nuser line\n");
    let error = space.change(write("s", "v2\n")).expect_err("stale");
    assert!(
        error.contains("changed on disk since it was read; read it again"),
        "{error}"
    );
    assert_eq!(space.text("s"), "v1\nuser line\n");
    space.seen.clear();
    space.read("s").expect("text");
    space.change(write("s", "v2\n")).expect("fresh");
    space
        .change(write("s", "v3\n"))
        .expect("our own change is known");
}

#[test]
fn a_stale_file_is_known_under_its_other_names_too() {
    let mut space = Space::new();
    space.put("real", "v1");
    symlink("real", space.path("link")).expect("a link");
    space.read("link").expect("text");
    space.put("real", "v2");
    space
        .change(write("real", "v3"))
        .expect_err("stale by its real name");
    space
        .change(write("link", "v3"))
        .expect_err("stale by the link");
}

#[test]
fn a_file_that_is_gone_or_was_never_read_can_be_written() {
    let mut space = Space::new();
    space.put("gone", "v1");
    space.read("gone").expect("text");
    fs::remove_file(space.path("gone")).expect("removed");
    space
        .change(write("gone", "v2"))
        .expect("nothing can be lost");
    space.put("unread", "x");
    space.change(write("unread", "y")).expect("allowed");
}

#[test]
fn apply_is_refused_when_the_file_changed_after_the_preparation() {
    let mut space = Space::new();
    space.put("a", "old\n");
    let order = write("a", "new\n");
    let changes = space.prepare(&order).expect("prepared");
    assert_eq!(space.text("a"), "old\n", "nothing was touched");
    space.put("a", "user\n");
    let error = space.apply(order, changes).expect_err("changed");
    assert!(
        error.contains("changed while this was being prepared"),
        "{error}"
    );
    assert_eq!(space.text("a"), "user\n");
}

#[test]
fn hash_tells_files_from_nothing() {
    let space = Space::new();
    let there = space.put("there", "x");
    let paths = vec![there, space.path("missing")];
    let reply = space.ask(FileOrder::Hash { paths });
    let hashes = vec![Some(load::hash(b"x")), None];
    assert_eq!(reply, FileReply::Hashes { hashes });
}

#[test]
fn a_refusal_by_permissions_is_marked_as_denied() {
    let space = Space::new();
    // Read-only for everybody, root included.
    let operation = write("/sys/kernel/x", "y");
    let order = FileOrder::Apply {
        operation: operation.clone(),
        changes: space.prepare(&operation).expect("prepared"),
    };
    let FileReply::Failed { denied, error } = space.ask(order) else {
        panic!("a write into the kernel worked");
    };
    assert!(denied, "{error}");
}

#[test]
fn a_refusal_names_the_place_that_a_link_leads_to() {
    let mut space = Space::new();
    symlink("/sys/kernel", space.path("inside")).expect("a link");
    let error = space.change(write("inside/x", "y")).expect_err("refused");
    assert!(error.starts_with("cannot write /sys/kernel/x: "), "{error}");
}

#[test]
fn images_are_known_by_content() {
    let mut space = Space::new();
    let png = b"\x89PNG\r\n\x1a\n....";
    space.put("shot.txt", png);
    let look = |name: &str| Operation::ViewImage(ViewImage { path: name.into() });
    let output = space.look(look("shot.txt")).expect("an image");
    let ToolOutput::Image { mime, data, .. } = output else {
        panic!("no image");
    };
    assert_eq!((mime.as_str(), &*data), ("image/png", "iVBORw0KGgouLi4u"));
    space.put("fake.png", "hello");
    let error = space.look(look("fake.png")).expect_err("text");
    assert!(
        error.contains("(text); PNG, JPEG, GIF and WebP can"),
        "{error}"
    );
    let error = space.look(look("none.png")).expect_err("missing");
    assert!(error.starts_with("no such file: "), "{error}");
}
