//! Commands that are known to be harmless: they only look, whatever their arguments name. Pure.
//!
//! An allow list throughout. A program is on it by its bare name, each of its flags by name too; abbreviated, unknown
//! and attached-to-unknown flags are not harmless. What only some versions of a program know is left out when another
//! version could do something with it. Wrappers (`env`, `xargs`, `sudo`, `timeout`, shells) are never on it.
//!
//! The list is for comfort: it saves questions. The boundary is the sandbox.

use crate::shell::{Script, Simple, Word};

mod find;
mod flags;
mod git;
mod list;

/// What holds while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel's boundary is up. Without it, programs that take orders from files of the project (git runs what a
    /// repository's configuration names) are not harmless.
    pub bounded: bool,
}

/// Whether every command of a script is known to be harmless.
#[must_use]
pub fn is_harmless(script: &Script, surroundings: Surroundings) -> bool {
    script
        .commands
        .iter()
        .all(|command| is_harmless_command(command, surroundings))
}

/// The first command of a script that is not known to be harmless, for the question.
#[must_use]
pub fn first_unknown(script: &Script, surroundings: Surroundings) -> Option<&str> {
    script
        .commands
        .iter()
        .find(|command| !is_harmless_command(command, surroundings))
        .map(|command| command.words[0].text.as_str())
}

fn is_harmless_command(command: &Simple, surroundings: Surroundings) -> bool {
    let (program, arguments) = command
        .words
        .split_first()
        .expect("a simple command has a word");
    if !program.is_plain() {
        return false;
    }
    match program.text.as_str() {
        // They do nothing but print or calculate, whatever the words.
        "echo" | "expr" | "true" | "false" => true,
        "git" => surroundings.bounded && git::is_harmless(arguments),
        "find" => find::is_harmless(arguments),
        "sed" => prints_lines(arguments),
        "uniq" => no_globs(arguments) && list::UNIQ.allow(arguments),
        "base64" => no_globs(arguments) && list::BASE64.allow(arguments),
        other => list::flags_of(other).is_some_and(|flags| flags.allow(arguments)),
    }
}

/// Where a second file name means something else than the first, names must not come out of a pattern.
fn no_globs(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| !word.glob)
}

/// `sed -n 5p FILE…` or `sed -n 5,9p FILE…`, and nothing else of sed.
fn prints_lines(arguments: &[Word]) -> bool {
    let [quiet, script, files @ ..] = arguments else {
        return false;
    };
    let is_file = |word: &Word| !word.text.starts_with('-') && !word.glob_first;
    quiet.is_plain()
        && quiet.text == "-n"
        && script.is_plain()
        && is_line_range(&script.text)
        && files.iter().all(is_file)
}

/// `5p`, `5,9p`, `5,$p`.
fn is_line_range(script: &str) -> bool {
    let Some(range) = script.strip_suffix('p') else {
        return false;
    };
    let (first, last) = range.split_once(',').unwrap_or((range, "1"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number(first) && (is_number(last) || last == "$")
}

#[cfg(test)]
mod tests;
