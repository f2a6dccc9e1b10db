use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Vec<Vec<String>> {
    let script = Script::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    script
        .commands
        .iter()
        .map(|command| command.words.iter().map(|word| word.text.clone()).collect())
        .collect()
}

#[test]
fn plain_scripts_are_split_as_a_shell_splits_them() {
    let cases: [(&str, &[&[&str]]); 12] = [
        ("ls", &[&["ls"]]),
        ("  ls\t-la  ", &[&["ls", "-la"]]),
        (
            "a && b || c; d | e",
            &[&["a"], &["b"], &["c"], &["d"], &["e"]],
        ),
        ("a&&b||c;d|e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
        ("a\n\n b \n", &[&["a"], &["b"]]),
        ("a &&\n b", &[&["a"], &["b"]]),
        ("a;", &[&["a"]]),
        (r"echo 'a b'\ 'c'", &[&["echo", "a b c"]]),
        (
            r#"echo "a 'b' \" \\ \$ \n" x"#,
            &[&["echo", r#"a 'b' " \ $ \n"#, "x"]],
        ),
        ("echo '' \"\"", &[&["echo", "", ""]]),
        ("a b#c", &[&["a", "b#c"]]),
        (
            "ls 2>/dev/null >&2 2>&1 < /dev/null | wc",
            &[&["ls"], &["wc"]],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn joins_and_redirects_are_kept() {
    let script = Script::parse("a 2> /dev/null | b && c || d\ne").expect("understood");
    let joins: Vec<Join> = script.commands.iter().map(|c| c.join).collect();
    assert_eq!(
        joins,
        [Join::Pipe, Join::And, Join::Or, Join::Then, Join::End]
    );
    assert_eq!(script.commands[0].redirects, ["2>/dev/null"]);
    assert_eq!(script.canonical(), "a 2>/dev/null | b && c || d; e");
}

#[test]
fn the_canonical_text_is_the_same_for_the_same_words_only() {
    let canonical = |text: &str| Script::parse(text).expect("understood").canonical();
    assert_eq!(canonical("ls   'a'  \"b c\""), canonical("ls a 'b c'\n"));
    assert_ne!(canonical("ls '*'"), canonical("ls *"));
    assert_ne!(canonical("ls '~'"), canonical("ls ~"));
    assert_ne!(canonical("a && b"), canonical("a ; b"));
    assert_ne!(canonical("a b"), canonical("'a b'"));
    assert_ne!(canonical("a ''"), canonical("a"));
    assert_ne!(canonical("ls >&2"), canonical("ls '>&2'"));
}

#[test]
fn patterns_and_home_directories_are_marked() {
    let script = Script::parse(r#"ls a* '*' "?" \* [x] ~/b 'c'? ""*"#).expect("understood");
    let marks: Vec<(bool, bool, bool)> = script.commands[0].words[1..]
        .iter()
        .map(|word| (word.glob, word.glob_first, word.tilde))
        .collect();
    assert_eq!(
        marks,
        [
            (true, false, false),
            (false, false, false),
            (false, false, false),
            (false, false, false),
            (true, true, false),
            (false, false, true),
            (true, false, false),
            (true, true, false),
        ]
    );
}

/// Every construct by which a command was hidden from a checker, in a form of our own.
#[test]
fn what_hides_a_command_is_not_understood() {
    let scripts = [
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "echo \"`id`\"",
        "echo $\\\n(id)",
        "echo ${x@P}",
        "echo ${x}",
        "echo $x",
        "echo \"$x\"",
        "echo$IFS-n",
        "echo $'\\x24(id)'",
        "echo {a,b}",
        "X=1 ls",
        "X=`id` ls",
        "X+=1",
        "PATH=. ls",
        "ls > out",
        "ls >out",
        "ls >> out",
        "ls 2>err",
        "ls >| out",
        "ls <> out",
        "ls &> out",
        "ls >&out",
        "ls >& 1x",
        "ls > /dev/null2",
        "ls > /dev/null/../x",
        "ls 3>/dev/null",
        "ls 12>/dev/null",
        "wc < in",
        "cat << EOF\nx\nEOF",
        "cat <<< x",
        "diff <(ls) x",
        "tee >(id)",
        "ls & id",
        "ls &",
        "ls |& id",
        "(id)",
        "{ id; }",
        "f() { id; }",
        "function f { id; }",
        "if true; then id; fi",
        "while true; do id; done",
        "case x in x) id;; esac",
        "time id",
        "! id",
        "echo !!",
        "echo \"!!\"",
        "[[ -f x ]]",
        "ls # id",
        "ls \\\n id",
        "echo 'a\nb'",
        "echo \"a\nb\"",
        "echo a\rid",
        "ls\u{b}id",
        "ls\u{0}",
        "ls \u{202e}x",
        "ls\u{a0}x",
        "ls\u{3000}x",
        "ls \u{200b}",
        "ls \u{e0041}",
        "\u{1b}[2Kls",
        "@(id)",
    ];
    for script in scripts {
        assert!(Script::parse(script).is_err(), "{script:?}");
    }
}

#[test]
fn what_is_not_whole_is_refused() {
    for script in [
        "",
        "  \n",
        "&& a",
        "a &&",
        "a |",
        "| a",
        "a ||\n",
        "; a",
        "'a",
        "\"a",
        "a \\",
        "a ; ; b",
        ">/dev/null",
    ] {
        assert!(Script::parse(script).is_err(), "{script:?}");
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let long = format!("echo {}", "a".repeat(MAX_SCRIPT));
    assert_eq!(Script::parse(&long), Err(Unparsable::TooLong));
    let many = vec!["true"; MAX_COMMANDS + 1].join(";");
    assert_eq!(Script::parse(&many), Err(Unparsable::TooLong));
    assert!(Script::parse(&vec!["true"; MAX_COMMANDS].join(";")).is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Script::parse(&text);
    }

    #[test]
    fn no_text_of_shell_characters_makes_the_reader_panic(text in "[a-z \\\\'\"$`(){}<>|&;*?!#~=\\n0-9/-]{0,60}") {
        if let Ok(script) = Script::parse(&text) {
            prop_assert!(script.commands.iter().all(|command| !command.words.is_empty()));
            // What was understood is understood again, in the same way.
            let canonical = script.canonical();
            let again = Script::parse(&canonical);
            prop_assert_eq!(again.map(|script| script.canonical()), Ok(canonical));
        }
    }
}

/// The words that real shells make of scripts that are understood.
fn assert_agrees_with(shell: &str, text: &str) {
    let Ok(script) = Script::parse(text) else {
        return;
    };
    let simple = script.commands.len() == 1
        && script.commands[0].redirects.is_empty()
        && script.commands[0].words.iter().all(Word::is_plain);
    if !simple {
        return;
    }
    // The words become the arguments of a command that prints them; nothing of the text is run.
    let printing = format!("printf '%s\\0' {text}");
    let output = std::process::Command::new(shell)
        .args(["-c", &printing])
        .output()
        .expect("a shell");
    let expected: String = script.commands[0]
        .words
        .iter()
        .map(|word| format!("{}\0", word.text))
        .collect();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "{shell}: {text:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn shells_make_the_same_words(text in "[a-c][a-c \\\\'\",.@%^+:0-9/-]{0,20}") {
        assert_agrees_with("/bin/bash", &text);
        assert_agrees_with("/bin/sh", &text);
    }
}
