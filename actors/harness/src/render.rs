//! From an outcome to what the model reads: the face's template over documented variables. Pure.

use std::path::Path;

use interpreter_messages::CallId;
use interpreter_messages::journal::Part;
use interpreter_messages::tool::{
    ChangeKind, Effects, ExecOutput, FileChange, InvalidCall, Meaning, TextOutput, ToolCall,
    ToolOutcome, ToolOutput,
};
use minijinja::{Value, context};
use serde::Serialize;

use crate::profile::Profile;

/// Bytes of a token, for counts and budgets (fact of the native harness).
const TOKEN: u64 = 4;

/// What the model reads of a call's outcome; never empty. The flag says whether it is an error.
pub fn render(
    profile: &Profile,
    call: &ToolCall,
    outcome: &ToolOutcome,
    cwd: &Path,
) -> Result<(Vec<Part>, bool), minijinja::Error> {
    if let (Meaning::Invalid(why), ToolOutcome::Failed { .. }) = (&call.meaning, outcome) {
        return Ok((vec![text(invalid(profile, call, why)?)], true));
    }
    if let ToolOutcome::Ok {
        output: ToolOutput::Image { path, mime, data },
    } = outcome
    {
        let image = Part::Image {
            name: path.display().to_string(),
            mime: mime.clone(),
            data: data.clone(),
        };
        let note = template(profile, call, "ok", context! {})?;
        let note = (!note.is_empty()).then(|| text(note));
        return Ok((note.into_iter().chain([image]).collect(), false));
    }
    let (kind, variables) = variables(call, outcome, cwd);
    let mut rendered = template(profile, call, kind, variables)?;
    if let Some(repaired) = &call.repaired {
        rendered = format!("[note: {repaired}]\n{rendered}");
    }
    if rendered.trim().is_empty() {
        "[no output]".clone_into(&mut rendered);
    }
    Ok((vec![text(rendered)], kind != "ok"))
}

fn text(text: String) -> Part {
    Part::Text { text }
}

fn invalid(
    profile: &Profile,
    call: &ToolCall,
    why: &InvalidCall,
) -> Result<String, minijinja::Error> {
    let (name, variables) = match why {
        InvalidCall::UnknownTool { nearest } => (
            "unknown_tool",
            context! { name => call.name, nearest => nearest },
        ),
        InvalidCall::BadArguments { error, .. } => (
            "bad_arguments",
            context! { name => call.name, error => error },
        ),
    };
    profile.templates.get_template(name)?.render(variables)
}

/// A call whose tool the profile does not have (the harness was switched since) is rendered in plain words.
fn template(
    profile: &Profile,
    call: &ToolCall,
    kind: &str,
    variables: Value,
) -> Result<String, minijinja::Error> {
    match profile
        .templates
        .get_template(&format!("{}/{kind}", call.name))
    {
        Ok(template) => template.render(variables),
        Err(_) => profile.templates.render_str(PLAIN, variables),
    }
}

const PLAIN: &str = "{{ error or reason or cause or text or (lines | join('\n')) or 'done' }}";

fn variables(call: &ToolCall, outcome: &ToolOutcome, cwd: &Path) -> (&'static str, Value) {
    match outcome {
        ToolOutcome::Ok { output } => ("ok", ok(&call.id, output, cwd)),
        ToolOutcome::Failed { error } => ("failed", context! { error => error }),
        ToolOutcome::Denied { reason } => ("denied", context! { reason => reason }),
        ToolOutcome::TimedOut { after_ms, output } => (
            "timed_out",
            context! { after_ms => after_ms, ..exec(&call.id, output) },
        ),
        ToolOutcome::Aborted { reason, output } => {
            let output = output
                .as_ref()
                .map(|output| exec(&call.id, output))
                .unwrap_or_default();
            ("aborted", context! { reason => reason, ..output })
        }
        ToolOutcome::Crashed {
            effects,
            cause,
            tail,
        } => {
            let effects = match effects {
                Effects::None => "Nothing was done",
                Effects::Applied => "The change was made all the same",
                Effects::NotApplied => "The change was not made",
                Effects::Unknown => "It may have done part of its work: look before you go on",
            };
            (
                "crashed",
                context! { effects => effects, cause => cause, text => tail },
            )
        }
    }
}

fn ok(call: &CallId, output: &ToolOutput, cwd: &Path) -> Value {
    match output {
        ToolOutput::Exec(output) => exec(call, output),
        ToolOutput::Text(output) => read(output, cwd),
        ToolOutput::Changed { changes } => {
            let changes: Vec<Change> = changes
                .iter()
                .map(|change| Change::of(change, cwd))
                .collect();
            context! { changes => changes }
        }
        ToolOutput::Lines { lines, left_out } => context! { lines => lines, left_out => left_out },
        ToolOutput::Plan { plan } => context! { explanation => plan.explanation },
        ToolOutput::Image { path, .. } => context! { path => path.display().to_string() },
    }
}

fn exec(call: &CallId, output: &ExecOutput) -> Value {
    let (head, tail) = output.text.split_at(
        output
            .cut
            .map_or(output.text.len(), |cut| cut.at.min(output.text.len())),
    );
    let cut = output.cut.map(|cut| cut.bytes);
    context! {
        chunk_id => chunk_id(call),
        wall => format!("{}.{:04}", output.wall_ms / 1000, output.wall_ms % 1000 * 10),
        code => output.exit.map(interpreter_messages::tool::ExitStatus::shell_code),
        process => output.process.map(|process| process.0),
        tokens => output.total_bytes.div_ceil(TOKEN),
        total_lines => output.total_lines,
        text => output.text,
        head => head,
        tail => tail,
        cut => cut.is_some(),
        cut_bytes => cut,
        cut_tokens => cut.map(|bytes| bytes.div_ceil(TOKEN)),
        denial => output.denial,
    }
}

/// Six hexadecimal digits that a replay gives again: from the call's id, by FNV-1a.
fn chunk_id(call: &CallId) -> String {
    let hash = call
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{:06x}", hash & 0x00ff_ffff)
}

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    text: &'a str,
}

fn read(output: &TextOutput, cwd: &Path) -> Value {
    let numbered: Vec<Line<'_>> = output
        .text
        .lines()
        .zip(output.first_line..)
        .map(|(text, number)| Line { number, text })
        .collect();
    let next = output.first_line + numbered.len() as u64;
    context! {
        path => relative(&output.path, cwd),
        text => output.text,
        numbered => numbered,
        first_line => output.first_line,
        total_lines => output.total_lines,
        next_line => next,
        left_out => (output.total_lines + 1).saturating_sub(next),
        long_lines => output.long_lines,
        lossy => output.lossy,
    }
}

#[derive(Serialize)]
struct Change {
    letter: &'static str,
    path: String,
    relative: String,
    moved_to: Option<String>,
}

impl Change {
    fn of(change: &FileChange, cwd: &Path) -> Self {
        Self {
            letter: match change.kind {
                ChangeKind::Add => "A",
                ChangeKind::Delete => "D",
                ChangeKind::Update => "M",
            },
            path: change.path.display().to_string(),
            relative: relative(change.moved_to.as_deref().unwrap_or(&change.path), cwd),
            moved_to: change.moved_to.as_ref().map(|path| relative(path, cwd)),
        }
    }
}

fn relative(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}
