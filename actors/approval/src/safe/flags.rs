//! Flags by allow list, in the way that GNU programs read them. Pure.

use crate::shell::Word;

/// The flags of a program that are harmless.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    /// Letters without a value.
    pub short: &'static str,
    /// Letters with a value: the rest of the word, or the next word.
    pub short_value: &'static str,
    /// Letters whose value, if there is one, is the rest of the word.
    pub short_attached: &'static str,
    /// Names without a value, or with one after `=`.
    pub long: &'static [&'static str],
    /// Names with a value after `=` or in the next word.
    pub long_value: &'static [&'static str],
    /// `-5` is a number.
    pub numeric: bool,
    /// Words that are no flags, at the most.
    pub operands: usize,
    /// No flag of any version of the program does more than look, so a file that is named like a flag does not matter.
    pub only_looks: bool,
}

/// Nothing is allowed but operands.
pub(super) const NONE: Flags = Flags {
    short: "",
    short_value: "",
    short_attached: "",
    long: &[],
    long_value: &[],
    numeric: false,
    operands: usize::MAX,
    only_looks: false,
};

impl Flags {
    /// Whether all arguments are allowed.
    pub(super) fn allow(&self, arguments: &[Word]) -> bool {
        let mut arguments = arguments.iter();
        let mut operands = 0;
        while let Some(word) = arguments.next() {
            if word.is_plain() && word.text == "--" {
                // What follows are names, whatever they begin with.
                operands += arguments.len();
                break;
            }
            if word.glob_first {
                // A file named like a flag would be one.
                if !self.only_looks {
                    return false;
                }
                operands += 1;
                continue;
            }
            if !word.text.starts_with('-') || word.text == "-" {
                operands += 1;
                continue;
            }
            if word.glob {
                return false;
            }
            match self.flag(&word.text) {
                Flag::Whole => {}
                // A value that looks like a flag could be one, if the program reads this flag otherwise than we do.
                Flag::NeedsValue => match arguments.next() {
                    Some(value) if self.is_value(value) => {}
                    _ => return false,
                },
                Flag::Unknown => return false,
            }
        }
        operands <= self.operands
    }

    fn is_value(&self, word: &Word) -> bool {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_number = self.numeric && word.text.strip_prefix('-').is_some_and(digits);
        !word.glob && (is_number || !word.text.starts_with('-'))
    }

    fn flag(&self, word: &str) -> Flag {
        if let Some(name) = word.strip_prefix("--") {
            return match name.split_once('=') {
                Some((name, _)) if self.long.contains(&name) || self.long_value.contains(&name) => {
                    Flag::Whole
                }
                None if self.long.contains(&name) => Flag::Whole,
                None if self.long_value.contains(&name) => Flag::NeedsValue,
                _ => Flag::Unknown,
            };
        }
        let letters = &word[1..];
        if self.numeric && letters.bytes().all(|b| b.is_ascii_digit()) {
            return Flag::Whole;
        }
        for (at, letter) in letters.char_indices() {
            if self.short_attached.contains(letter) {
                return Flag::Whole;
            }
            if self.short_value.contains(letter) {
                let rest = &letters[at + letter.len_utf8()..];
                return if rest.is_empty() {
                    Flag::NeedsValue
                } else {
                    Flag::Whole
                };
            }
            if !self.short.contains(letter) {
                return Flag::Unknown;
            }
        }
        Flag::Whole
    }
}

enum Flag {
    Whole,
    NeedsValue,
    Unknown,
}
