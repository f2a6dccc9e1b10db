//! The filter between text of others and a terminal.

use std::fmt::Write as _;

/// Longest parameters of a control sequence that are believed; more is shown as text.
const LONGEST_PARAMETERS: usize = 64;

/// The whole text, safe for a terminal; see [`Sanitizer`].
#[must_use]
pub fn safe(text: &str) -> String {
    let mut sanitizer = Sanitizer::default();
    let mut out = sanitizer.push(text);
    out.push_str(&sanitizer.finish());
    out
}

/// Makes text that comes in pieces safe for a terminal.
///
/// Sequences that carry no text (colours, cursor movements, character sets) are left out. Whatever else a terminal
/// would obey is shown instead: string commands (title, clipboard, links) with their introducer as `␛`, other C0
/// controls as their Unicode pictures, C1 controls, bidirectional marks, line separators and tag characters as
/// `\u{…}`. Line feeds and tabs stay; a carriage return is a line end, so no line can overwrite another.
#[derive(Debug, Default)]
pub struct Sanitizer {
    state: State,
    after_return: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and one of the intermediates 0x20–0x2f.
    Intermediate,
    /// After ESC `[`, with the parameters so far.
    Control(String),
}

impl Sanitizer {
    /// Filters a piece. A sequence that is not whole is kept until the next piece.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            self.take(character, &mut out);
        }
        out
    }

    /// Ends the text: shows what was begun and never ended.
    pub fn finish(&mut self) -> String {
        self.after_return = false;
        match std::mem::take(&mut self.state) {
            State::Ground => String::new(),
            State::Escape | State::Intermediate => "␛".to_owned(),
            State::Control(parameters) => format!("␛[{parameters}"),
        }
    }

    fn take(&mut self, character: char, out: &mut String) {
        match std::mem::take(&mut self.state) {
            State::Ground => self.ground(character, out),
            State::Escape => self.escape(character, out),
            State::Intermediate => match character {
                '\u{20}'..='\u{2f}' => self.state = State::Intermediate,
                '\u{30}'..='\u{7e}' => {}
                _ => {
                    out.push('␛');
                    self.ground(character, out);
                }
            },
            State::Control(mut parameters) => match character {
                '\u{20}'..='\u{3f}' if parameters.len() < LONGEST_PARAMETERS => {
                    parameters.push(character);
                    self.state = State::Control(parameters);
                }
                '\u{40}'..='\u{7e}' => {}
                _ => {
                    out.push_str("␛[");
                    out.push_str(&parameters);
                    self.ground(character, out);
                }
            },
        }
    }

    fn escape(&mut self, character: char, out: &mut String) {
        match character {
            '[' => self.state = State::Control(String::new()),
            '\u{20}'..='\u{2f}' => self.state = State::Intermediate,
            // DCS, SOS, OSC, PM, APC: what follows is text that must not vanish.
            'P' | 'X' | ']' | '^' | '_' => {
                out.push('␛');
                out.push(character);
            }
            '\u{30}'..='\u{7e}' => {}
            _ => {
                out.push('␛');
                self.ground(character, out);
            }
        }
    }

    fn ground(&mut self, character: char, out: &mut String) {
        let after_return = std::mem::take(&mut self.after_return);
        match character {
            '\n' if after_return => {}
            '\n' | '\t' => out.push(character),
            '\r' => {
                self.after_return = true;
                out.push('\n');
            }
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Control(String::new()),
            '\0'..='\u{1f}' => {
                out.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => out.push('␡'),
            _ if obeyed(character) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
}

/// Whether a terminal, or the reader's eye, would be steered by a printable-looking character.
const fn obeyed(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}'
    )
}
