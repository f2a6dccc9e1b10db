//! Makes every character of a text visible, for prompts on which a person decides. Pure.
//!
//! Nothing is removed and nothing is cut: what could hide, reorder or overwrite other text is written as an escape.
//! For text that is only shown (answers, command output) see [`crate::show::safe`].

use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Runs of spaces longer than this are counted instead of shown: they can push a part of a command off the screen.
const LONGEST_SPACES: usize = 16;

/// The text with line ends kept and every other character that is not plainly visible written as `\u{…}`: controls,
/// bidirectional marks, zero-width and tag characters, variation selectors, private use, unusual spaces. Runs of
/// more than 16 spaces become `\u{20}×n`.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == ' ' {
            let tail = rest.trim_start_matches(' ');
            let run = rest.len() - tail.len();
            if run > LONGEST_SPACES {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{20}}×{run}");
            } else {
                out.push_str(&rest[..run]);
            }
            rest = tail;
            continue;
        }
        if is_hidden(first) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(first));
        } else {
            out.push(first);
        }
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Whether a character can hide, move or change what stands around it, or looks like nothing. Line feeds are not
/// hidden, tabs are.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    match character {
        '\n' => return false,
        // Variation selectors, and letters of no shape: Hangul fillers, Braille blank, combining grapheme joiner.
        '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{2800}'
        | '\u{34f}'
        | '\u{180b}'..='\u{180d}' => return true,
        ' '..='~' => return false,
        _ => {}
    }
    matches!(
        character.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::Surrogate
    )
}

#[cfg(test)]
mod tests;
