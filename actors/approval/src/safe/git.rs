//! git that only looks. Pure.
//!
//! Even so git runs what the repository's configuration names (fsmonitor, text conversion, a pager on a terminal):
//! whoever asks here sees to it that a boundary is around it.

use super::flags::{Flags, NONE};
use crate::shell::Word;

pub(super) fn is_harmless(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    while let [word, more @ ..] = rest
        && word.is_plain()
        && matches!(word.text.as_str(), "--no-pager" | "--no-optional-locks")
    {
        rest = more;
    }
    let [command, arguments @ ..] = rest else {
        return false;
    };
    if !command.is_plain() || arguments.iter().any(checks_signatures) {
        return false;
    }
    match command.text.as_str() {
        "status" => STATUS.allow(arguments),
        "log" | "diff" | "show" => HISTORY.allow(arguments),
        "branch" => lists_branches(arguments),
        "ls-files" => LS_FILES.allow(arguments),
        "rev-parse" => REV_PARSE.allow(arguments),
        _ => false,
    }
}

/// `%G…` in a format runs the program that checks signatures.
fn checks_signatures(word: &Word) -> bool {
    word.text.contains("%G")
}

/// A name makes a branch, unless it is the pattern of a list.
fn lists_branches(arguments: &[Word]) -> bool {
    let is_list = arguments
        .iter()
        .any(|word| word.is_plain() && word.text == "--list");
    let flags = Flags {
        operands: if is_list { usize::MAX } else { 0 },
        ..BRANCH
    };
    flags.allow(arguments)
}

const STATUS: Flags = Flags {
    short: "sbvz",
    short_attached: "u",
    long: &[
        "short",
        "branch",
        "long",
        "verbose",
        "porcelain",
        "untracked-files",
        "ignored",
        "ignore-submodules",
        "show-stash",
        "ahead-behind",
        "no-ahead-behind",
        "renames",
        "no-renames",
        "column",
        "no-column",
        "null",
    ],
    ..NONE
};

const BRANCH: Flags = Flags {
    short: "arvi",
    long: &[
        "list",
        "all",
        "remotes",
        "verbose",
        "show-current",
        "color",
        "no-color",
        "column",
        "no-column",
        "ignore-case",
        "abbrev",
        "no-abbrev",
    ],
    long_value: &[
        "contains",
        "no-contains",
        "merged",
        "no-merged",
        "sort",
        "points-at",
        "format",
    ],
    ..NONE
};

const LS_FILES: Flags = Flags {
    short: "cdomksutvz",
    short_value: "x",
    long: &[
        "cached",
        "deleted",
        "modified",
        "others",
        "ignored",
        "stage",
        "unmerged",
        "killed",
        "directory",
        "exclude-standard",
        "full-name",
        "error-unmatch",
        "abbrev",
        "eol",
    ],
    long_value: &["exclude"],
    ..NONE
};

const REV_PARSE: Flags = Flags {
    short: "q",
    long: &[
        "abbrev-ref",
        "absolute-git-dir",
        "git-common-dir",
        "git-dir",
        "is-bare-repository",
        "is-inside-git-dir",
        "is-inside-work-tree",
        "quiet",
        "short",
        "show-cdup",
        "show-prefix",
        "show-toplevel",
        "symbolic-full-name",
        "verify",
    ],
    ..NONE
};

/// Of log, diff and show. Without `-o`/`-O`, `--output`, `--ext-diff`, `--textconv`, `--no-index`, `--show-signature`.
const HISTORY: Flags = Flags {
    short: "abcEFgiprstuwz",
    short_value: "GLnS",
    short_attached: "BCDMUX",
    long: &[
        "abbrev",
        "abbrev-commit",
        "all",
        "ancestry-path",
        "author-date-order",
        "binary",
        "boundary",
        "branches",
        "cached",
        "cherry",
        "cherry-mark",
        "cherry-pick",
        "color",
        "color-moved",
        "color-words",
        "cumulative",
        "date-order",
        "decorate",
        "dense",
        "dirstat",
        "exit-code",
        "find-copies",
        "find-renames",
        "first-parent",
        "follow",
        "full-history",
        "full-index",
        "function-context",
        "graph",
        "histogram",
        "ignore-all-space",
        "ignore-blank-lines",
        "ignore-cr-at-eol",
        "ignore-space-at-eol",
        "ignore-space-change",
        "ignore-submodules",
        "left-right",
        "merge-base",
        "merges",
        "minimal",
        "name-only",
        "name-status",
        "no-abbrev-commit",
        "no-color",
        "no-color-moved",
        "no-decorate",
        "no-ext-diff",
        "no-merges",
        "no-notes",
        "no-patch",
        "no-prefix",
        "no-renames",
        "no-textconv",
        "numstat",
        "oneline",
        "parents",
        "patch",
        "patch-with-raw",
        "patch-with-stat",
        "patience",
        "quiet",
        "raw",
        "relative",
        "relative-date",
        "remotes",
        "reverse",
        "shortstat",
        "simplify-by-decoration",
        "sparse",
        "staged",
        "stat",
        "submodule",
        "summary",
        "tags",
        "text",
        "topo-order",
        "walk-reflogs",
        "word-diff",
        "pretty",
        "format",
        "diff-filter",
        "diff-algorithm",
        "unified",
    ],
    long_value: &[
        "after",
        "author",
        "before",
        "committer",
        "date",
        "decorate-refs",
        "exclude",
        "glob",
        "grep",
        "inter-hunk-context",
        "max-count",
        "since",
        "skip",
        "until",
        "word-diff-regex",
    ],
    numeric: true,
    ..NONE
};
