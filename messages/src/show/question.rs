//! A question to the user as lines, and the answers that may be typed.

use std::path::Path;

use super::{Line, Style};
use crate::approval::{ApprovalRequest, Decision, Subject};
use crate::tool::{ChangeKind, FileChange};
use crate::visible::visible;

/// What may be answered, for the last line of a question.
pub const CHOICES: &str =
    "[y] yes   [a] yes, and the same again in this session   [n] no   [q] no, and end the turn";

/// A question, whole: nothing of a command is cut, and every character of it is visible.
#[must_use]
pub fn question_lines(request: &ApprovalRequest) -> Vec<Line> {
    let mut lines = Vec::new();
    let escalated = match &request.subject {
        Subject::Command {
            command,
            cwd,
            escalated,
        } => {
            lines.push(Line::new("? run this command?", Style::Warn));
            lines.extend(command_lines(command));
            lines.push(field("in", &visible_path(cwd)));
            *escalated
        }
        Subject::Files { changes, escalated } => {
            lines.push(Line::new("? change these files?", Style::Warn));
            for change in changes {
                lines.extend(change_lines(change));
            }
            *escalated
        }
    };
    if escalated {
        lines.push(
            Line::new("  outside the sandbox", Style::Bad)
                .and(": with all of your own permissions", Style::Plain),
        );
    } else {
        lines.push(Line::new("  inside the sandbox", Style::Dim));
    }
    if let Some(reason) = &request.reason {
        lines.push(field("why", &visible(reason).replace('\n', " ")));
    }
    if let Some(asker) = request.origin.last() {
        lines.push(field("asked by sub-agent", &asker.to_string()));
    }
    lines.push(Line::new(&format!("  {CHOICES}"), Style::Bold));
    lines
}

/// Reads a typed answer: the letter or the word; what follows `n` is told to the model.
#[must_use]
pub fn parse_answer(line: &str) -> Option<Decision> {
    let line = line.trim_matches(|c: char| c.is_whitespace());
    let (word, rest) = line
        .split_once(char::is_whitespace)
        .map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let decision = match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => Decision::Approve,
        "a" | "always" => Decision::ApproveForSession,
        "q" | "quit" | "\u{1b}" => Decision::AbortTurn,
        "n" | "no" => {
            return Some(Decision::Deny {
                text: (!rest.is_empty()).then(|| rest.to_owned()),
            });
        }
        _ => return None,
    };
    // "yes but only if …" is not a yes.
    rest.is_empty().then_some(decision)
}

fn command_lines(command: &str) -> Vec<Line> {
    visible(command)
        .split('\n')
        .enumerate()
        .map(|(n, line)| {
            Line::new(if n == 0 { "  $ " } else { "    " }, Style::Dim).and(line, Style::Accent)
        })
        .collect()
}

fn change_lines(change: &FileChange) -> Vec<Line> {
    let verb = match change.kind {
        ChangeKind::Add => "add",
        ChangeKind::Delete => "delete",
        ChangeKind::Update => "update",
    };
    let mut head = Line::new(&format!("  {verb} "), Style::Bold)
        .and(&visible_path(&change.path), Style::Accent);
    if let Some(to) = &change.moved_to {
        head = head
            .and(" → ", Style::Dim)
            .and(&visible_path(to), Style::Accent);
    }
    let mut lines = vec![head];
    let diff = change.diff.strip_suffix('\n').unwrap_or(&change.diff);
    if !diff.is_empty() {
        lines.extend(diff.split('\n').map(diff_line));
    }
    lines
}

fn diff_line(line: &str) -> Line {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::Good,
        Some(b'-') => Style::Bad,
        _ => Style::Dim,
    };
    // Tabs are what code is indented with; in a diff they are shown as such.
    let line = line.split('\t').map(visible).collect::<Vec<_>>().join("\t");
    Line::new("    ", Style::Dim).and(&line, style)
}

fn field(name: &str, value: &str) -> Line {
    Line::new(&format!("  {name} "), Style::Dim).and(value, Style::Plain)
}

fn visible_path(path: &Path) -> String {
    visible(&path.to_string_lossy()).replace('\n', "\\u{a}")
}
