//! Events as lines for people.

use std::path::{Path, PathBuf};

use super::{Line, Style, text_lines};
use crate::ItemId;
use crate::approval::{ApprovalRequest, DecidedBy, Decision, Subject};
use crate::journal::{Part, TurnEnd};
use crate::model::{Prices, Usage};
use crate::tool::{ChangeKind, ExecOutput, ExitStatus, FileChange, PlanStep, StepStatus};
use crate::ui::{Event, Item, ItemBody, ItemStatus};

/// Lines of a script shown when it starts; a question shows all of them.
const SCRIPT_LINES: usize = 12;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions {
    /// Last lines of a command's output.
    pub output_lines: usize,
    /// Characters of one line of a command's output; longer ones are cut with a mark.
    pub columns: usize,
    /// Prices of the model, to show what a turn cost.
    pub prices: Option<Prices>,
    /// Whether questions are mentioned; off where the front end asks them itself.
    pub questions: bool,
}

/// Turns events into lines. Keeps only what is needed to say whose output follows.
#[derive(Debug)]
pub struct Renderer {
    options: RenderOptions,
    cwd: Option<PathBuf>,
    /// The item whose header was printed last: its end needs no header again.
    last: Option<ItemId>,
    plan: Option<Vec<PlanStep>>,
}

impl Renderer {
    /// A renderer that has shown nothing.
    #[must_use]
    pub const fn new(options: RenderOptions) -> Self {
        Self {
            options,
            cwd: None,
            last: None,
            plan: None,
        }
    }

    /// Paths below this directory are shown relative to it from now on.
    pub fn move_to(&mut self, cwd: &Path) {
        self.cwd = Some(cwd.to_owned());
    }

    /// What is shown for an event; nothing for deltas and for what another event shows better.
    pub fn lines(&mut self, event: &Event) -> Vec<Line> {
        match event {
            Event::SessionReady { cwd, .. } => {
                self.cwd = Some(cwd.clone());
                banner(event)
            }
            Event::Accepted { parts, .. } => prefixed("› ", &parts_text(parts), Style::Accent),
            Event::ItemStarted { item } => self.started(item),
            Event::ItemUpdated { item } | Event::ItemCompleted { item } => self.completed(item),
            Event::StreamRestarted {
                attempt,
                max,
                reason,
                ..
            } => dim(&format!(
                "↻ the answer broke off, asked again ({attempt}/{max}): {reason}"
            )),
            Event::Retrying {
                attempt,
                max,
                delay_ms,
                reason,
            } => dim(&format!(
                "↻ retry {attempt}/{max} in {}: {reason}",
                duration(*delay_ms)
            )),
            Event::ApprovalAsked { request } if self.options.questions => asked(request),
            Event::ApprovalResolved { decision, by, .. } => resolved(decision, *by),
            Event::TurnEnded { end, total, .. } => self.ended(end, total),
            Event::Restarted { who, cause } => {
                dim(&format!("↻ {who} was restarted after a crash: {cause}"))
            }
            Event::Notice { text } => text_lines("! ", text, Style::Warn),
            Event::Broken { error } => failure("the session cannot go on: ", error),
            Event::ApprovalAsked { .. }
            | Event::TurnStarted { .. }
            | Event::Delta { .. }
            | Event::Resync { .. }
            | Event::Usage { .. } => Vec::new(),
        }
    }

    fn started(&mut self, item: &Item) -> Vec<Line> {
        match &item.body {
            ItemBody::Command { script, cwd, .. } => {
                self.last = Some(item.id.clone());
                self.command_head(script, cwd)
            }
            ItemBody::Plan { steps } => self.plan(steps),
            _ => Vec::new(),
        }
    }

    fn completed(&mut self, item: &Item) -> Vec<Line> {
        let lines = match &item.body {
            ItemBody::Message { text } => text_lines("", text, Style::Plain),
            ItemBody::Reasoning { text } => prefixed("· ", text.trim(), Style::Dim),
            ItemBody::Command {
                script,
                cwd,
                status,
                output,
                ..
            } => {
                if *status == ItemStatus::InProgress {
                    return Vec::new();
                }
                let mut lines = if self.last.as_ref() == Some(&item.id) {
                    Vec::new()
                } else {
                    self.command_head(script, cwd)
                };
                lines.extend(self.command_end(*status, output.as_ref()));
                lines
            }
            ItemBody::FileChange { changes, status } => changes
                .iter()
                .filter(|_| *status != ItemStatus::InProgress)
                .map(|change| self.change(change, *status))
                .collect(),
            ItemBody::Explored { what, status } => match status {
                ItemStatus::InProgress => return Vec::new(),
                ItemStatus::Completed => dim(&format!("  {what}")),
                ItemStatus::Failed => {
                    vec![Line::new(&format!("  {what}"), Style::Dim).and(" failed", Style::Bad)]
                }
                ItemStatus::Declined => {
                    vec![Line::new(&format!("  {what}"), Style::Dim).and(" declined", Style::Warn)]
                }
            },
            ItemBody::Plan { steps } => self.plan(steps),
            ItemBody::ToolError { tool, error } => {
                prefixed(&format!("✗ {tool}: "), error, Style::Bad)
            }
        };
        if !lines.is_empty() {
            self.last = None;
        }
        lines
    }

    fn command_head(&self, script: &str, cwd: &Path) -> Vec<Line> {
        // A sequence that would be left out of a text is a part of a command, so it is shown.
        let script = script.replace('\u{1b}', "␛").replace('\u{9b}', "\\u{9b}");
        let mut lines = prefixed("$ ", &script, Style::Accent);
        if lines.len() > SCRIPT_LINES {
            let more = lines.len() - SCRIPT_LINES + 1;
            lines.truncate(SCRIPT_LINES - 1);
            lines.push(Line::new(&format!("  … {more} more lines"), Style::Dim));
        }
        if self.cwd.as_deref().is_some_and(|own| own != cwd) {
            lines.push(Line::new(&format!("  in {}", cwd.display()), Style::Dim));
        }
        lines
    }

    fn command_end(&self, status: ItemStatus, output: Option<&ExecOutput>) -> Vec<Line> {
        let Some(output) = output else {
            return match status {
                ItemStatus::Declined => vec![Line::new("  declined", Style::Warn)],
                ItemStatus::Failed => vec![Line::new("  did not run to its end", Style::Bad)],
                ItemStatus::Completed | ItemStatus::InProgress => Vec::new(),
            };
        };
        let mut lines = output_tail(output, &self.options);
        if let Some(denial) = &output.denial {
            lines.push(
                Line::new("  refused by the sandbox: ", Style::Warn).and(denial, Style::Warn),
            );
        }
        let took = duration(output.wall_ms);
        lines.push(match (output.exit, output.process) {
            (Some(ExitStatus::Code(0)), _) => {
                Line::new("  exit 0", Style::Good).and(&format!(" · {took}"), Style::Dim)
            }
            (Some(ExitStatus::Code(code)), _) => Line::new(&format!("  exit {code}"), Style::Bad)
                .and(&format!(" · {took}"), Style::Dim),
            (Some(ExitStatus::Signal(signal)), _) => {
                Line::new(&format!("  ended by signal {signal}"), Style::Bad)
                    .and(&format!(" · {took}"), Style::Dim)
            }
            (None, Some(process)) => {
                Line::new(&format!("  runs on as {process} · {took}"), Style::Dim)
            }
            (None, None) => Line::new("  did not end by itself", Style::Bad)
                .and(&format!(" · {took}"), Style::Dim),
        });
        lines
    }

    fn change(&self, change: &FileChange, status: ItemStatus) -> Line {
        let (sign, verb) = match change.kind {
            ChangeKind::Add => ("+", "added"),
            ChangeKind::Delete => ("-", "deleted"),
            ChangeKind::Update if change.moved_to.is_some() => ("~", "moved"),
            ChangeKind::Update => ("~", "changed"),
        };
        let mut name = self.shorten(&change.path);
        if let Some(to) = &change.moved_to {
            name = format!("{name} → {}", self.shorten(to));
        }
        match status {
            ItemStatus::Failed => Line::new(&format!("{sign} {name}"), Style::Accent)
                .and(" was not ", Style::Bad)
                .and(verb, Style::Bad),
            ItemStatus::Declined => {
                Line::new(&format!("{sign} {name}"), Style::Accent).and(" declined", Style::Warn)
            }
            ItemStatus::Completed | ItemStatus::InProgress => {
                let (added, removed) = count(&change.diff);
                let line = Line::new(&format!("{sign} {verb} {name}"), Style::Accent);
                if change.diff.is_empty() {
                    return line;
                }
                line.and(&format!("  +{added}"), Style::Good)
                    .and(&format!(" -{removed}"), Style::Bad)
            }
        }
    }

    /// Relative to the session's directory where the path lies in it.
    fn shorten(&self, path: &Path) -> String {
        self.cwd
            .as_ref()
            .and_then(|cwd| path.strip_prefix(cwd).ok())
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// The plan, when it is another one than was shown last.
    fn plan(&mut self, steps: &[PlanStep]) -> Vec<Line> {
        if self.plan.as_deref() == Some(steps) {
            return Vec::new();
        }
        self.plan = Some(steps.to_vec());
        let mut lines = vec![Line::new("plan", Style::Bold)];
        for step in steps {
            let (mark, style) = match step.status {
                StepStatus::Pending => ("  ○ ", Style::Plain),
                StepStatus::InProgress => ("  ▸ ", Style::Accent),
                StepStatus::Completed => ("  ✓ ", Style::Dim),
            };
            lines.push(Line::new(mark, style).and(&step.step, style));
        }
        lines
    }

    fn ended(&mut self, end: &TurnEnd, total: &Usage) -> Vec<Line> {
        self.last = None;
        self.plan = None;
        let mut lines = match end {
            TurnEnd::Completed => Vec::new(),
            TurnEnd::Interrupted { by } if by == "user" => {
                vec![Line::new("■ interrupted", Style::Warn)]
            }
            TurnEnd::Interrupted { by } => {
                vec![Line::new("■ interrupted by: ", Style::Warn).and(by, Style::Warn)]
            }
            TurnEnd::Failed(error) => failure("error: ", error),
        };
        if total.input_total + total.output_total > 0 {
            lines.extend(dim(&usage_text(total, self.options.prices.as_ref())));
        }
        lines
    }
}

/// Tokens, and what they cost where prices are known.
#[must_use]
pub fn usage_text(usage: &Usage, prices: Option<&Prices>) -> String {
    let mut text = format!("tokens: {} in", grouped(usage.input_total));
    if usage.input_cached > 0 {
        text.push_str(&format!(" ({} cached)", grouped(usage.input_cached)));
    }
    text.push_str(&format!(", {} out", grouped(usage.output_total)));
    if usage.output_reasoning > 0 {
        text.push_str(&format!(" ({} reasoning)", grouped(usage.output_reasoning)));
    }
    if let Some(prices) = prices {
        text.push_str(&format!(" · ${:.4}", usage.cost(prices)));
    }
    text
}

/// The user's words as one text; an image is its name in brackets.
#[must_use]
pub fn parts_text(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.clone(),
            Part::Image { name, .. } => format!("[image {name}]"),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn banner(event: &Event) -> Vec<Line> {
    let Event::SessionReady {
        session,
        cwd,
        model,
        provider,
        harness,
        sandbox,
        approval,
        turns,
    } = event
    else {
        return Vec::new();
    };
    let field = |name: &str, value: &str| {
        Line::new(&format!("  {name:<10}"), Style::Dim).and(value, Style::Plain)
    };
    let mut head =
        Line::new("interpreter ", Style::Bold).and(env!("CARGO_PKG_VERSION"), Style::Bold);
    if *turns > 0 {
        head = head.and(&format!("  resumed after {turns} turns"), Style::Dim);
    }
    vec![
        head,
        field("directory", &cwd.display().to_string()),
        field("model", &format!("{model} ({provider})")),
        field("harness", harness),
        field("sandbox", &format!("{sandbox}, approval {approval}")),
        field("session", &session.to_string()),
    ]
}

fn asked(request: &ApprovalRequest) -> Vec<Line> {
    let what = match &request.subject {
        Subject::Command { command, .. } => command.clone(),
        Subject::Files { changes, .. } => format!("change {} files", changes.len()),
    };
    prefixed("? waits for approval: ", &what, Style::Warn)
}

fn resolved(decision: &Decision, by: DecidedBy) -> Vec<Line> {
    let (what, style) = match decision {
        Decision::Approve => ("approved", Style::Dim),
        Decision::ApproveForSession => ("approved for this session", Style::Dim),
        Decision::Deny { .. } => ("denied", Style::Warn),
        Decision::AbortTurn => ("denied, the turn ends", Style::Warn),
        Decision::TimedOut => ("denied: nobody answered in time", Style::Warn),
    };
    let by = match by {
        DecidedBy::Policy => " by the policy",
        DecidedBy::Withdrawn => " (no longer asked)",
        DecidedBy::Ui(_) | DecidedBy::Timeout => "",
    };
    vec![Line::new("  ", style).and(what, style).and(by, style)]
}

fn failure(prefix: &str, error: &crate::journal::TurnError) -> Vec<Line> {
    let mut lines = prefixed(prefix, &error.message, Style::Bad);
    if let Some(hint) = &error.hint {
        lines.extend(prefixed("hint: ", hint, Style::Warn));
    }
    lines
}

/// The last lines of an output, with what stands before them as a count.
fn output_tail(output: &ExecOutput, options: &RenderOptions) -> Vec<Line> {
    if output.text.is_empty() {
        return Vec::new();
    }
    let all = text_lines("  ", &output.text, Style::Dim);
    let skipped = all.len().saturating_sub(options.output_lines);
    let shown = (all.len() - skipped) as u64;
    let before = output.total_lines.saturating_sub(shown).max(skipped as u64);
    let mut lines = Vec::new();
    if before > 0 {
        lines.push(Line::new(&format!("  … {before} lines before"), Style::Dim));
    }
    lines.extend(
        all.into_iter()
            .skip(skipped)
            .map(|line| shorten_line(&line, options.columns)),
    );
    lines
}

fn shorten_line(line: &Line, columns: usize) -> Line {
    let text = line.plain();
    match text.char_indices().nth(columns) {
        Some((at, _)) => Line::new(&format!("{}…", &text[..at]), Style::Dim),
        None => line.clone(),
    }
}

/// `prefix` before the first line, as many spaces before the others.
fn prefixed(prefix: &str, text: &str, style: Style) -> Vec<Line> {
    let indent = " ".repeat(prefix.chars().count());
    text_lines("", text, style)
        .into_iter()
        .enumerate()
        .map(|(n, line)| {
            Line::new(if n == 0 { prefix } else { &indent }, style).and(&line.plain(), style)
        })
        .collect()
}

fn dim(text: &str) -> Vec<Line> {
    text_lines("", text, Style::Dim)
}

/// Added and removed lines of a unified diff.
fn count(diff: &str) -> (usize, usize) {
    let mut counts = (0, 0);
    let mut in_hunk = false;
    for line in diff.lines() {
        in_hunk |= line.starts_with("@@");
        match line.as_bytes().first() {
            Some(b'+') if in_hunk || !line.starts_with("+++") => counts.0 += 1,
            Some(b'-') if in_hunk || !line.starts_with("---") => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
