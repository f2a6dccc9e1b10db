//! What people see of a session: events, questions and text as styled lines. Pure, no terminal.
//!
//! Both terminal front ends (`exec` and the text mode) show a session through this module, so a command looks the same
//! everywhere, and so that no text of a model or a tool reaches a terminal unfiltered: a [`Span`] can only be made of
//! text that went through [`safe`].

use std::fmt::Write as _;

mod question;
mod questions;
mod render;
mod sanitize;

pub use question::{CHOICES, parse_answer, question_lines};
pub use questions::{Asked, Questions};
pub use render::{RenderOptions, Renderer, parts_text, usage_text};
pub use sanitize::{Sanitizer, safe};

/// What a piece of text means; a front end chooses how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Words.
    Plain,
    /// Beside the point: output, thoughts, retries.
    Dim,
    /// A heading.
    Bold,
    /// The user's words, commands.
    Accent,
    /// It worked; an added line.
    Good,
    /// Look at this.
    Warn,
    /// It did not work; a removed line.
    Bad,
}

impl Style {
    /// Parameters of the terminal's SGR sequence; empty for plain text. Only the eight basic colours, which every
    /// theme defines.
    const fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Accent => "36",
            Self::Good => "32",
            Self::Warn => "33",
            Self::Bad => "31",
        }
    }
}

/// A run of text in one style, safe for a terminal and without a line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Filters `text` with [`safe`]; line ends become `␊`.
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        let mut text = safe(text);
        if text.contains('\n') {
            text = text.replace('\n', "␊");
        }
        Self { text, style }
    }

    /// The filtered text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it means.
    #[must_use]
    pub const fn style(&self) -> Style {
        self.style
    }
}

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<Span>);

impl Line {
    /// A line of one style.
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        Self(vec![Span::new(text, style)])
    }

    /// Adds a piece.
    #[must_use]
    pub fn and(mut self, text: &str, style: Style) -> Self {
        self.0.push(Span::new(text, style));
        self
    }

    /// Its pieces.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// Its text, without styles.
    #[must_use]
    pub fn plain(&self) -> String {
        self.0.iter().map(Span::text).collect()
    }
}

/// One [`Line`] for each line of `text`, each after `prefix`. A line end at the end of the text adds no empty line.
#[must_use]
pub fn text_lines(prefix: &str, text: &str, style: Style) -> Vec<Line> {
    let text = safe(text);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    text.split('\n')
        .map(|line| {
            if prefix.is_empty() {
                Line::new(line, style)
            } else {
                Line::new(prefix, style).and(line, style)
            }
        })
        .collect()
}

/// The lines as text for a terminal (`color`) or for a file.
#[must_use]
pub fn paint(lines: &[Line], color: bool) -> String {
    let mut out = String::new();
    for line in lines {
        for span in line.spans() {
            let sgr = span.style.sgr();
            // Writing to a String cannot fail.
            let _ = if color && !sgr.is_empty() && !span.text.is_empty() {
                write!(out, "\u{1b}[{sgr}m{}\u{1b}[0m", span.text)
            } else {
                out.write_str(&span.text)
            };
        }
        out.push('\n');
    }
    out
}

/// Where a front end's text goes. The one who makes it owns the device; `put` never blocks, however stuck the device is.
pub trait Paper: Send + Sync {
    /// Takes text to be written after all that was put before.
    fn put(&self, text: String);

    /// Bytes taken and not yet written.
    fn unwritten(&self) -> usize;

    /// Calls `then` once when nothing is unwritten any more; at once when that is so now. `then` must not block.
    fn when_idle(&self, then: Box<dyn FnOnce() + Send>);
}

#[cfg(test)]
mod tests;
