//! List, glob and grep.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use interpreter_messages::tool::{Glob, Grep, GrepOutput, List, Operation, ToolOutput};

use super::Space;

fn lines(space: &mut Space, operation: Operation) -> (Vec<String>, u64) {
    match space.look(operation) {
        Ok(ToolOutput::Lines { lines, left_out }) => (lines, left_out),
        other => panic!("no lines: {other:?}"),
    }
}

fn glob(pattern: &str) -> Glob {
    Glob {
        pattern: pattern.to_owned(),
        path: None,
        limit: None,
    }
}

fn grep(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.to_owned(),
        path: None,
        glob: None,
        output: GrepOutput::Lines,
        ignore_case: false,
        multiline: false,
        before: 0,
        after: 0,
        limit: None,
    }
}

/// A small project.
fn project() -> Space {
    let space = Space::new();
    space.put(".gitignore", "target/\n*.log\n");
    space.put(".git/config", "fn secret\n");
    space.put(".github/ci.yml", "fn ci\n");
    space.put("target/out.rs", "fn out\n");
    space.put("debug.log", "fn log\n");
    space.put("src/a.rs", "fn one() {}\nfn two() {}\n");
    space.put("src/deep/b.rs", "fn three() {\r\n}\r\n");
    space.put("README.md", "No functions\n");
    space.put("image.bin", b"fn bin\0\n");
    space
}

fn set_age(space: &Space, name: &str, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = File::options()
        .write(true)
        .open(space.path(name))
        .expect("a file");
    file.set_modified(time).expect("a time");
}

#[test]
fn glob_gives_the_newest_first_and_honours_ignore_files() {
    let mut space = project();
    set_age(&space, "src/a.rs", 10);
    set_age(&space, "src/deep/b.rs", 20);
    let (found, left_out) = lines(&mut space, Operation::Glob(glob("**/*.rs")));
    assert_eq!(
        (found, left_out),
        (vec!["src/a.rs".into(), "src/deep/b.rs".into()], 0)
    );
    set_age(&space, "src/a.rs", 30);
    let limited = Glob {
        limit: Some(1),
        ..glob("**/*.{rs,md}")
    };
    set_age(&space, "README.md", 40);
    let (found, left_out) = lines(&mut space, Operation::Glob(limited));
    assert_eq!((found, left_out), (vec!["src/deep/b.rs".into()], 2));
}

#[test]
fn glob_stays_in_its_directory_and_sees_hidden_files_only_when_named() {
    let mut space = project();
    for (pattern, expected) in [
        ("*.rs", vec![]),
        ("src/*.rs", vec!["src/a.rs"]),
        ("./src/*.rs", vec!["src/a.rs"]),
        ("**/*.yml", vec![]),
        (".github/*.yml", vec![".github/ci.yml"]),
        (".git/*", vec![]),
        ("**/.git/**", vec![]),
    ] {
        let (found, _) = lines(&mut space, Operation::Glob(glob(pattern)));
        assert_eq!(found, expected, "{pattern}");
    }
    let absolute = space.path("src/*.rs").display().to_string();
    let (found, _) = lines(&mut space, Operation::Glob(glob(&absolute)));
    assert_eq!(found, [space.path("src/a.rs").display().to_string()]);
    let up = Glob {
        path: Some("src/deep".into()),
        ..glob("../*.rs")
    };
    assert_eq!(lines(&mut space, Operation::Glob(up)).0, ["../a.rs"]);
}

#[test]
fn grep_reports_lines_files_or_counts_in_order_of_path() {
    let mut space = project();
    let (found, left_out) = lines(&mut space, Operation::Grep(grep(r"fn \w+")));
    assert_eq!(
        found,
        [
            "src/a.rs:1:fn one() {}",
            "src/a.rs:2:fn two() {}",
            "src/deep/b.rs:1:fn three() {"
        ]
    );
    assert_eq!(left_out, 0);
    let files = Grep {
        output: GrepOutput::Files,
        ..grep("fn")
    };
    assert_eq!(
        lines(&mut space, Operation::Grep(files)).0,
        ["src/a.rs", "src/deep/b.rs"]
    );
    let counts = Grep {
        output: GrepOutput::Counts,
        limit: Some(1),
        ..grep("fn")
    };
    assert_eq!(
        lines(&mut space, Operation::Grep(counts)),
        (vec!["src/a.rs:2".into()], 1)
    );
    let limited = Grep {
        limit: Some(1),
        ..grep("fn")
    };
    assert_eq!(
        lines(&mut space, Operation::Grep(limited)),
        (vec!["src/a.rs:1:fn one() {}".into()], 2)
    );
}

#[test]
fn grep_options_narrow_and_widen_the_search() {
    let mut space = project();
    let mut run = |order: Grep| lines(&mut space, Operation::Grep(order)).0;
    let by_name = Grep {
        glob: Some("*.md".into()),
        ignore_case: true,
        ..grep("FUNCTIONS")
    };
    assert_eq!(run(by_name), ["README.md:1:No functions"]);
    let by_path = Grep {
        glob: Some("src/*.rs".into()),
        output: GrepOutput::Files,
        ..grep("fn")
    };
    assert_eq!(run(by_path), ["src/a.rs"]);
    let hidden = Grep {
        glob: Some(".github/**".into()),
        ..grep("fn")
    };
    assert_eq!(run(hidden), [".github/ci.yml:1:fn ci"]);
    let without = Grep {
        glob: Some("!a.rs".into()),
        output: GrepOutput::Files,
        ..grep("fn")
    };
    assert_eq!(run(without), ["src/deep/b.rs"]);
    let context = Grep {
        before: 1,
        path: Some("src/a.rs".into()),
        ..grep("two")
    };
    assert_eq!(run(context), ["a.rs-1-fn one() {}", "a.rs:2:fn two() {}"]);
    let over_lines = Grep {
        multiline: true,
        path: Some("src/a.rs".into()),
        ..grep(r"one.*\n.*two")
    };
    assert_eq!(
        run(over_lines),
        ["a.rs:1:fn one() {}", "a.rs:2:fn two() {}"]
    );
    let at_end = Grep {
        path: Some("src/deep".into()),
        ..grep(r"\{$")
    };
    assert_eq!(run(at_end), ["b.rs:1:fn three() {"]);
}

#[test]
fn grep_cuts_long_lines() {
    let mut space = Space::new();
    space.put("min.js", format!("x{}\n", "é".repeat(5_000)));
    let (found, _) = lines(&mut space, Operation::Grep(grep("x")));
    assert!(found[0].ends_with("… [line cut]"), "{}", found[0].len());
    assert_eq!(found[0].chars().filter(|c| *c == 'é').count(), 499);
}

#[test]
fn searches_that_cannot_be_made_say_why() {
    let mut space = project();
    let error = space.look(Operation::Grep(grep("fn(")));
    assert!(error.expect_err("a bad regex").contains("unclosed group"));
    let error = space.look(Operation::Grep(grep("a\\nb")));
    assert!(error.expect_err("over lines").ends_with("search multiline"));
    let error = space.look(Operation::Glob(glob("a{b")));
    assert!(
        error
            .expect_err("a bad glob")
            .contains("`a{b` is not valid")
    );
    let nowhere = Glob {
        path: Some("nowhere".into()),
        ..glob("*")
    };
    let error = space.look(Operation::Glob(nowhere)).expect_err("missing");
    assert!(error.starts_with("no such directory: "), "{error}");
    let file = Glob {
        path: Some("README.md".into()),
        ..glob("*")
    };
    let error = space.look(Operation::Glob(file)).expect_err("a file");
    assert!(error.contains("is not a directory"), "{error}");
}

#[test]
fn list_shows_the_first_level_whole_and_below_it_what_is_not_ignored() {
    let mut space = project();
    symlink("src", space.path("link")).expect("a link");
    let order = List {
        path: None,
        depth: None,
        limit: None,
    };
    let (found, _) = lines(&mut space, Operation::List(order.clone()));
    assert_eq!(
        found,
        [
            ".git/",
            ".github/",
            ".gitignore",
            "README.md",
            "debug.log",
            "image.bin",
            "link",
            "src/",
            "target/"
        ]
    );
    let deep = List {
        depth: Some(3),
        limit: Some(11),
        ..order
    };
    let (found, left_out) = lines(&mut space, Operation::List(deep));
    assert!(found.contains(&"src/deep/".to_owned()), "{found:?}");
    assert!(!found.contains(&"target/out.rs".to_owned()), "{found:?}");
    assert_eq!((found.len(), left_out), (11, 1));
}
