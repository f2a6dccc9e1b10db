use proptest::prelude::*;

use super::*;

const INSIDE: Surroundings = Surroundings { bounded: true };
const OUTSIDE: Surroundings = Surroundings { bounded: false };

fn harmless(text: &str) -> bool {
    Script::parse(text).is_ok_and(|script| is_harmless(&script, INSIDE))
}

#[test]
fn looking_around_is_harmless() {
    let scripts = [
        "ls -la src | head -20",
        "ls *.rs; wc -l *; grep -n x *",
        "cat -n a.txt 'b c.txt' -- -x",
        "cd src && pwd && ls",
        "cut -d: -f1 /etc/passwd",
        "cut -d : --fields=1 x",
        "echo '- a' --b *",
        "expr 1 + 2",
        "grep -rn --include='*.rs' -e 'fn main' -A 3 src/*.rs",
        "grep -C2 x y || true",
        "head -5 a; tail -n +5 b; tail -n -5 c",
        "id -u; whoami; uname -a; which -a cargo",
        "nl -b a x; paste -d, a b; rev x; tac x",
        "seq 1 -1 -5",
        "sort -k2,2 -t , -rn x | uniq -c | wc -l",
        "stat -c %s x",
        "tr '[:upper:]' '[:lower:]'",
        "numfmt --to=iec 1000",
        "base64 -d x; base64 --wrap=0 x",
        "sed -n 5p a b; sed -n '1,9p' a; sed -n '1,$p' src/*.rs",
        "find . -name '*.rs' -type f -not -path './target/*' -print0",
        r"find src tests \( -name a -o -name b \) -maxdepth 2 -printf '%p\n'",
        "rg -n --glob '!target' -tr 'a|b' src 2>/dev/null",
        "rg --files | wc -l",
        "git status --short -uno; git --no-pager log --oneline -5 --stat",
        "git log -n 3 --format='%h %s' --since='2 days ago' -- src",
        "git diff --cached -U3 -M90% HEAD~1 -- a b; git show HEAD:src/a.rs",
        "git branch; git branch -avv; git branch --list 'x*'; git branch --sort=-committerdate",
        "git rev-parse --abbrev-ref HEAD; git ls-files -m",
    ];
    for script in scripts {
        if let Ok(parsed) = Script::parse(script) {
            assert_eq!(first_unknown(&parsed, INSIDE), None, "{script}");
        }
        assert!(script.contains('!') || harmless(script), "{script}");
    }
}

/// Ways in which a command on a list of harmless ones was made to write, to run something, or to leave; from the public
/// record of other agents, in forms of our own.
#[test]
fn what_was_used_against_other_agents_is_not_harmless() {
    let scripts = [
        // programs that run or write by a flag
        "rg --pre ./x y",
        "rg --pre=./x y",
        "rg --hostname-bin ./x y",
        "rg -z y",
        "rg -nz y",
        "rg --search-zip y",
        "sort -o out in",
        "sort -oout in",
        "sort -ro out in",
        "sort in -o out",
        "sort --output=out in",
        "sort --outp=out in",
        "sort --compress-program=./x in",
        "sort -T /tmp in",
        "uniq in out",
        "uniq -c in out",
        "uniq -- in out",
        "uniq *",
        "uniq a*",
        "base64 -o out in",
        "base64 -i in -o out",
        "base64 --output out in",
        "find . -exec id ;",
        "find . -execdir id ;",
        "find . -ok id ;",
        "find . -delete",
        "find . -fprint out",
        "find . -fprintf out x",
        "find . -fls out",
        "find -files0-from x",
        "find . -name * -print",
        "find *",
        "find . -name a*",
        "sed -i s/a/b/ x",
        "sed -n -i 5p x",
        "sed -n '5p;w out' x",
        "sed -n 5w x",
        "sed -n '1e id' x",
        "sed -n 's/a/id/e' x",
        "sed -n 5p -i x",
        "sed -n 5p *",
        "sed -n 5p --in-place x",
        "sed -n p x",
        "sed 5p x",
        "awk '{print}' x",
        "awk 'BEGIN{system(\"id\")}'",
        "man -P ./x ls",
        "less x",
        "tar --checkpoint-action=exec=id -cf x y",
        "tail -f x",
        "rg x *",
        "sort *",
        "tee out",
        "xargs rm",
        // wrappers
        "env ls",
        "nice ls",
        "timeout 5 ls",
        "sudo ls",
        "busybox ls",
        "sh -c ls",
        "bash -lc ls",
        "nohup ls",
        "stdbuf -o0 ls",
        "command ls",
        "builtin echo x",
        "exec ls",
        "eval ls",
        "watch ls",
        // builtins that change what follows
        "export PATH=.",
        "alias ls=id",
        "source x",
        ". x",
        "unset x",
        "set -x",
        "trap id EXIT",
        "pushd x",
        "printf -v x y",
        // names that are not bare
        "./echo x",
        "/bin/ls",
        "~/ls",
        "ec?o x",
        "ls/../x",
        // every command of a script counts
        "ls && id && rm -rf x",
        "ls | sh",
        "ls || rm x",
        "ls; rm x",
        "ls\nrm x",
        // git
        "git",
        "git -c core.pager=./x log",
        "git -C /tmp/other status",
        "git --git-dir=x status",
        "git --exec-path=. status",
        "git -p log",
        "git log --output=out",
        "git log --outp=out",
        "git log --output out",
        "git diff --ext-diff",
        "git diff --ext-d",
        "git log -p --textconv",
        "git log --show-signature",
        "git log --format=%G?",
        "git log --format='%h %GK'",
        "git diff -Oorder",
        "git diff --no-index a b",
        "git grep -O./x y",
        "git grep y",
        "git branch new",
        "git branch -D old",
        "git branch -m a b",
        "git branch -l new",
        "git branch -v new",
        "git branch --edit-description",
        "git fetch",
        "git push",
        "git stash",
        "git status --help",
        "git log *",
        "git config x",
        "git log --since --output=out",
        // values that would be flags
        "grep -A --file=x y",
        "head -n --x y",
        // network tools are never on the list
        "ping x",
        "nslookup x",
        "curl x",
        "wget x",
    ];
    for script in scripts {
        assert!(!harmless(script), "{script}");
    }
}

#[test]
fn git_is_not_harmless_without_a_boundary() {
    let script = Script::parse("git status").expect("understood");
    assert!(is_harmless(&script, INSIDE));
    assert!(!is_harmless(&script, OUTSIDE));
    let script = Script::parse("ls && cat x").expect("understood");
    assert!(is_harmless(&script, OUTSIDE));
}

#[test]
fn the_question_names_the_command_that_is_not_known() {
    let script = Script::parse("ls && make test | tail").expect("understood");
    assert_eq!(first_unknown(&script, INSIDE), Some("make"));
}

proptest! {
    #[test]
    fn nothing_with_a_trick_in_it_is_harmless(
        before in "(ls|cat a|echo x|git status|rg y)( [a-z.]{0,4})?",
        trick in prop::sample::select(vec![
            "$(id)", "`id`", "$\\\n(id)", "${x@P}", "$IFS", "> out", ">>out", "2>out", "<<< x", "<(id)",
            "& id", "\\\nid", "\rid", "\u{2028}id", "{a,b}", "\n./x", ";./x", "| ./x", "&& ./x", "|| ./x", "\nrm x",
        ]),
        after in "( [a-z]{0,4})?",
    ) {
        let script = format!("{before} {trick}{after}");
        prop_assert!(!harmless(&script), "{:?}", script);
        let glued = format!("{before}{trick}{after}");
        prop_assert!(!harmless(&glued), "{:?}", glued);
    }

    #[test]
    fn no_flag_that_is_not_listed_is_harmless(
        program in prop::sample::select(vec!["cat", "rg", "sort", "uniq", "git log", "git diff", "find .", "ls", "base64"]),
        flag in "--[a-z]{3,12}-zz(=[a-z]{1,3})?",
    ) {
        let script = format!("{program} {flag}");
        prop_assert!(!harmless(&script), "{}", script);
    }

    #[test]
    fn no_words_make_the_lists_panic(text in "(ls|git|git log|find|sed|sort|rg|uniq)( [-a-z0-9*?'=%,~\u{e9}]{0,6}){0,5}") {
        let _ = harmless(&text);
    }
}
