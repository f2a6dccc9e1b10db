//! What stands on the screen, and what is written to change it. Pure.

use interpreter_messages::ItemId;
use interpreter_messages::show::{Line, Renderer, Sanitizer, Style, paint};
use interpreter_messages::ui::{DeltaKind, Event, ItemBody};

/// The prompt of a user's line.
const PROMPT: &str = "› ";
/// The prompt of an answer.
const ANSWER: &str = "? ";

/// Writes events, streams answers, and keeps prompt and text apart.
#[derive(Debug)]
pub(super) struct Screen {
    renderer: Renderer,
    color: bool,
    answer: Option<Streaming>,
    /// Text stands after the last line end.
    mid_line: bool,
    /// That text is a prompt.
    prompt: bool,
}

/// An answer that is being written.
#[derive(Debug)]
struct Streaming {
    item: ItemId,
    /// What was shown of it, unfiltered.
    shown: String,
    filter: Sanitizer,
}

impl Screen {
    pub(super) const fn new(renderer: Renderer, color: bool) -> Self {
        Self {
            renderer,
            color,
            answer: None,
            mid_line: false,
            prompt: false,
        }
    }

    /// What an event writes.
    pub(super) fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Delta {
                item,
                kind: DeltaKind::Text,
                text,
            } => self.piece(item, text),
            Event::Resync {
                item,
                kind: DeltaKind::Text,
                text,
            } => self.whole(item, text),
            Event::ItemCompleted { item } => match &item.body {
                ItemBody::Message { text } if self.streams(&item.id) => {
                    let mut out = self.whole(&item.id, text);
                    out.push_str(&self.end_answer());
                    out
                }
                _ => self.rendered(event),
            },
            _ => self.rendered(event),
        }
    }

    /// Whole lines, on lines of their own.
    pub(super) fn lines(&mut self, lines: &[Line]) -> String {
        if lines.is_empty() {
            return String::new();
        }
        let mut out = self.end_answer();
        out.push_str(&self.fresh_line());
        out.push_str(&paint(lines, self.color));
        out
    }

    /// A prompt at the end of what stands there; for an answer to a question when `question`.
    pub(super) fn prompt(&mut self, question: bool) -> String {
        let mut out = self.end_answer();
        out.push_str(&self.fresh_line());
        let line = Line::new(if question { ANSWER } else { PROMPT }, Style::Accent);
        out.push_str(paint(&[line], self.color).trim_end_matches('\n'));
        self.mid_line = true;
        self.prompt = true;
        out
    }

    /// The user typed a line: the terminal has moved to the next one.
    pub(super) const fn typed(&mut self) {
        self.mid_line = false;
        self.prompt = false;
    }

    pub(super) const fn has_prompt(&self) -> bool {
        self.prompt
    }

    /// Goes to the begin of a line.
    pub(super) fn fresh_line(&mut self) -> String {
        let erase = self.prompt && self.color;
        let mid_line = std::mem::take(&mut self.mid_line);
        self.prompt = false;
        match (mid_line, erase) {
            (true, true) => "\r\u{1b}[K".to_owned(),
            (true, false) => "\n".to_owned(),
            (false, _) => String::new(),
        }
    }

    fn rendered(&mut self, event: &Event) -> String {
        let lines = self.renderer.lines(event);
        self.lines(&lines)
    }

    fn streams(&self, item: &ItemId) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| answer.item == *item)
    }

    fn piece(&mut self, item: &ItemId, text: &str) -> String {
        let mut out = String::new();
        if !self.streams(item) {
            out.push_str(&self.end_answer());
            out.push_str(&self.fresh_line());
            self.answer = Some(Streaming {
                item: item.clone(),
                shown: String::new(),
                filter: Sanitizer::default(),
            });
        }
        if let Some(answer) = &mut self.answer {
            answer.shown.push_str(text);
            let filtered = answer.filter.push(text);
            if let Some(last) = filtered.chars().last() {
                self.mid_line = last != '\n';
            }
            out.push_str(&filtered);
        }
        out
    }

    /// The item's text up to now; only what was not shown yet is written.
    fn whole(&mut self, item: &ItemId, text: &str) -> String {
        let shown = match &self.answer {
            Some(answer) if answer.item == *item => answer.shown.as_str(),
            _ => "",
        };
        match text.strip_prefix(shown) {
            Some(rest) => {
                let rest = rest.to_owned();
                self.piece(item, &rest)
            }
            None => {
                // Its begin was cut away while this UI was too slow, or it was mended at its end: say it again.
                let mut out = self.end_answer();
                out.push_str(&self.piece(item, text));
                out
            }
        }
    }

    fn end_answer(&mut self) -> String {
        let Some(mut answer) = self.answer.take() else {
            return String::new();
        };
        let mut out = answer.filter.finish();
        if self.mid_line || !out.is_empty() {
            out.push('\n');
            self.mid_line = false;
        }
        out
    }
}

#[cfg(test)]
mod tests;
