//! `find` that only finds: tests and printing, no actions. Pure.

use crate::shell::Word;

/// Tests, operators and actions without a value.
const ALONE: &[&str] = &[
    "-H",
    "-L",
    "-P",
    "(",
    ")",
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    ",",
    "-d",
    "-depth",
    "-daystart",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-noleaf",
    "-nouser",
    "-nowarn",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-writable",
    "-xdev",
];

/// Tests and actions with one value.
const WITH_VALUE: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-newerat",
    "-newerct",
    "-newermt",
    "-newermm",
    "-newerma",
    "-newermc",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
];

pub(super) fn is_harmless(arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        if word.glob_first {
            // A file may be named `-delete`.
            return false;
        }
        let text = word.text.as_str();
        if WITH_VALUE.contains(&text) {
            // Two names out of one pattern would be a value and an expression.
            if arguments.next().is_none_or(|value| value.glob) {
                return false;
            }
        } else if text.starts_with('-') && !ALONE.contains(&text) {
            return false;
        }
    }
    true
}
