//! Events as text for people: what happens on stderr, the answer on stdout. Pure.

use interpreter_messages::journal::TurnEnd;
use interpreter_messages::show::{Line, RenderOptions, Renderer, Style, paint, safe, text_lines};
use interpreter_messages::ui::{Event, ItemBody};

/// Last lines of each command's output.
pub(super) const OUTPUT_LINES: usize = 8;
/// Characters of each of them.
pub(super) const OUTPUT_COLUMNS: usize = 200;

/// Text for the two outputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// For stdout.
    pub(super) out: String,
    /// For stderr.
    pub(super) err: String,
}

/// Shows a turn. A message of the model is held back until it is known whether it is the last one: that goes to stdout,
/// the others to stderr, so nothing is shown twice.
#[derive(Debug)]
pub(super) struct Human {
    renderer: Renderer,
    color: bool,
    stdout_tty: bool,
    greeted: bool,
    held: Option<String>,
}

impl Human {
    pub(super) const fn new(options: RenderOptions, color: bool, stdout_tty: bool) -> Self {
        Self {
            renderer: Renderer::new(options),
            color,
            stdout_tty,
            greeted: false,
            held: None,
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Printed {
        let mut printed = Printed::default();
        match event {
            Event::SessionReady { .. } if std::mem::replace(&mut self.greeted, true) => {}
            Event::ItemCompleted { item } => {
                self.release(&mut printed);
                if let ItemBody::Message { text } = &item.body {
                    self.held = Some(text.clone());
                } else {
                    self.show(&mut printed, event);
                }
            }
            Event::TurnEnded {
                end: TurnEnd::Completed,
                ..
            } => {
                self.show(&mut printed, event);
                if let Some(answer) = self.held.take() {
                    printed.out = self.answer(answer);
                }
            }
            Event::ItemStarted { .. } | Event::TurnEnded { .. } | Event::Broken { .. } => {
                self.release(&mut printed);
                self.show(&mut printed, event);
            }
            _ => self.show(&mut printed, event),
        }
        printed
    }

    /// Lines that are no event: a question.
    pub(super) fn paint(&self, lines: &[Line]) -> String {
        paint(lines, self.color)
    }

    fn show(&mut self, printed: &mut Printed, event: &Event) {
        let lines = self.renderer.lines(event);
        printed.err.push_str(&paint(&lines, self.color));
    }

    fn release(&mut self, printed: &mut Printed) {
        if let Some(text) = self.held.take() {
            let lines = text_lines("", &text, Style::Plain);
            printed.err.push_str(&paint(&lines, self.color));
        }
    }

    fn answer(&self, mut answer: String) -> String {
        if self.stdout_tty {
            answer = safe(&answer);
        }
        if !answer.ends_with('\n') {
            answer.push('\n');
        }
        answer
    }
}

#[cfg(test)]
mod tests;
