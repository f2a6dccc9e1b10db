//! The programs, each with its harmless flags. The names are those of Codex' list (openinterpreter 5b07159), and `sort`.

use super::flags::{Flags, NONE};

/// `uniq IN OUT` writes OUT.
pub(super) const UNIQ: Flags = Flags {
    short: "cdDiuz",
    short_value: "fsw",
    long: &[
        "count",
        "repeated",
        "all-repeated",
        "group",
        "ignore-case",
        "unique",
        "zero-terminated",
    ],
    long_value: &["skip-fields", "skip-chars", "check-chars"],
    operands: 1,
    ..NONE
};

/// Without `-o` (output file on macOS) and `-i` (a file there, a switch elsewhere).
pub(super) const BASE64: Flags = Flags {
    short: "d",
    short_value: "w",
    long: &["decode", "ignore-garbage"],
    long_value: &["wrap"],
    operands: 1,
    ..NONE
};

/// The harmless flags of a program; `None` for one that is not known.
pub(super) fn flags_of(program: &str) -> Option<Flags> {
    Some(match program {
        "cat" => Flags {
            only_looks: true,
            short: "AbeEnstTuv",
            long: &[
                "show-all",
                "number-nonblank",
                "show-ends",
                "number",
                "squeeze-blank",
                "show-tabs",
                "show-nonprinting",
            ],
            ..NONE
        },
        "cd" => Flags {
            short: "LP",
            operands: 1,
            ..NONE
        },
        "pwd" => Flags {
            short: "LP",
            ..NONE
        },
        "cut" => Flags {
            only_looks: true,
            short: "nsz",
            short_value: "bcdf",
            long: &["complement", "only-delimited", "zero-terminated"],
            long_value: &[
                "bytes",
                "characters",
                "delimiter",
                "fields",
                "output-delimiter",
            ],
            ..NONE
        },
        "whoami" | "rev" => NONE,
        "grep" => GREP,
        "rg" => RIPGREP,
        "head" => Flags {
            only_looks: true,
            short: "qvz",
            short_value: "cn",
            long: &["quiet", "silent", "verbose", "zero-terminated"],
            long_value: &["bytes", "lines"],
            numeric: true,
            ..NONE
        },
        "tail" => Flags {
            short: "qvz",
            short_value: "cn",
            long: &["quiet", "silent", "verbose", "zero-terminated"],
            long_value: &["bytes", "lines"],
            numeric: true,
            ..NONE
        },
        "id" => Flags {
            short: "aGgnruz",
            long: &["group", "groups", "name", "real", "user", "zero"],
            ..NONE
        },
        "ls" => LS,
        "nl" => Flags {
            short: "p",
            short_value: "bdfhilnsvw",
            ..NONE
        },
        "numfmt" => Flags {
            short: "z",
            short_value: "d",
            long: &["grouping", "header", "zero-terminated"],
            long_value: &[
                "delimiter",
                "field",
                "format",
                "from",
                "from-unit",
                "invalid",
                "padding",
                "round",
                "suffix",
                "to",
                "to-unit",
            ],
            ..NONE
        },
        "paste" => Flags {
            short: "sz",
            short_value: "d",
            long: &["serial", "zero-terminated"],
            long_value: &["delimiters"],
            ..NONE
        },
        "seq" => Flags {
            short: "w",
            short_value: "fs",
            long: &["equal-width"],
            long_value: &["format", "separator"],
            numeric: true,
            ..NONE
        },
        "sort" => SORT,
        "stat" => Flags {
            only_looks: true,
            short: "Lft",
            short_value: "c",
            long: &["dereference", "file-system", "terse"],
            long_value: &["format", "printf"],
            ..NONE
        },
        "tac" => Flags {
            short: "br",
            short_value: "s",
            long: &["before", "regex"],
            long_value: &["separator"],
            ..NONE
        },
        "tr" => Flags {
            short: "cCdst",
            long: &["complement", "delete", "squeeze-repeats", "truncate-set1"],
            ..NONE
        },
        "uname" => Flags {
            short: "amnoprsvi",
            long: &[
                "all",
                "kernel-name",
                "kernel-release",
                "kernel-version",
                "machine",
                "nodename",
                "operating-system",
                "processor",
            ],
            ..NONE
        },
        "wc" => Flags {
            only_looks: true,
            short: "clLmw",
            long: &["bytes", "chars", "lines", "max-line-length", "words"],
            ..NONE
        },
        "which" => Flags { short: "a", ..NONE },
        _ => return None,
    })
}

const GREP: Flags = Flags {
    only_looks: true,
    short: "EFGPiwxvcLlqsobHhnTZazrRUyI",
    short_value: "efmABC",
    long: &[
        "basic-regexp",
        "extended-regexp",
        "fixed-strings",
        "perl-regexp",
        "ignore-case",
        "no-ignore-case",
        "invert-match",
        "word-regexp",
        "line-regexp",
        "count",
        "color",
        "colour",
        "files-with-matches",
        "files-without-match",
        "only-matching",
        "quiet",
        "silent",
        "no-messages",
        "byte-offset",
        "with-filename",
        "no-filename",
        "line-number",
        "initial-tab",
        "null",
        "text",
        "null-data",
        "recursive",
        "dereference-recursive",
        "binary",
    ],
    long_value: &[
        "regexp",
        "file",
        "max-count",
        "after-context",
        "before-context",
        "context",
        "binary-files",
        "label",
        "include",
        "exclude",
        "exclude-from",
        "exclude-dir",
    ],
    numeric: true,
    ..NONE
};

/// Without `--pre`, `--hostname-bin` and `-z`/`--search-zip`, which run programs.
const RIPGREP: Flags = Flags {
    short: "acFHhIiLlNnopPqsSUuVvwx0",
    short_value: "ABCEefgjMmrTtd",
    long: &[
        "case-sensitive",
        "column",
        "count",
        "count-matches",
        "crlf",
        "files",
        "files-with-matches",
        "files-without-match",
        "fixed-strings",
        "follow",
        "glob-case-insensitive",
        "heading",
        "help",
        "hidden",
        "ignore-case",
        "invert-match",
        "json",
        "line-number",
        "line-regexp",
        "max-columns-preview",
        "multiline",
        "multiline-dotall",
        "no-column",
        "no-config",
        "no-filename",
        "no-heading",
        "no-ignore",
        "no-ignore-dot",
        "no-ignore-global",
        "no-ignore-parent",
        "no-ignore-vcs",
        "no-line-number",
        "no-messages",
        "null",
        "one-file-system",
        "only-matching",
        "passthru",
        "pcre2",
        "pretty",
        "quiet",
        "smart-case",
        "stats",
        "text",
        "trim",
        "type-list",
        "unrestricted",
        "version",
        "vimgrep",
        "with-filename",
        "word-regexp",
    ],
    long_value: &[
        "after-context",
        "before-context",
        "color",
        "colors",
        "context",
        "context-separator",
        "encoding",
        "engine",
        "file",
        "glob",
        "iglob",
        "max-columns",
        "max-count",
        "max-depth",
        "max-filesize",
        "path-separator",
        "regexp",
        "replace",
        "sort",
        "sortr",
        "threads",
        "type",
        "type-not",
    ],
    ..NONE
};

const LS: Flags = Flags {
    only_looks: true,
    short: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
    short_value: "ITw",
    long: &[
        "all",
        "almost-all",
        "author",
        "classify",
        "color",
        "context",
        "dereference",
        "directory",
        "escape",
        "file-type",
        "full-time",
        "group-directories-first",
        "human-readable",
        "ignore-backups",
        "inode",
        "kibibytes",
        "literal",
        "no-group",
        "numeric-uid-gid",
        "quote-name",
        "recursive",
        "reverse",
        "si",
        "size",
    ],
    long_value: &[
        "block-size",
        "format",
        "hide",
        "ignore",
        "indicator-style",
        "quoting-style",
        "sort",
        "tabsize",
        "time",
        "time-style",
        "width",
    ],
    ..NONE
};

/// Without `-o`, `-T` and `--compress-program`.
const SORT: Flags = Flags {
    short: "bdfgiMhnRrVcCmsuz",
    short_value: "kt",
    long: &[
        "ignore-leading-blanks",
        "dictionary-order",
        "ignore-case",
        "general-numeric-sort",
        "ignore-nonprinting",
        "month-sort",
        "human-numeric-sort",
        "numeric-sort",
        "random-sort",
        "reverse",
        "version-sort",
        "check",
        "merge",
        "stable",
        "unique",
        "zero-terminated",
    ],
    long_value: &["key", "field-separator", "sort"],
    ..NONE
};
