//! The decision: allow, deny or ask. Pure.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use interpreter_messages::approval::{ApprovalRequest, Subject};
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode, SandboxPolicy};
use interpreter_messages::tool::FileChange;

use crate::safe::{self, Surroundings};
use crate::shell::Script;

/// What a decision depends on, beside the request.
#[derive(Debug, Clone, Copy)]
pub struct PolicyContext<'a> {
    /// Who is asked for what.
    pub policy: ApprovalPolicy,
    /// The boundary.
    pub sandbox: &'a SandboxPolicy,
    /// Where commands are looked for by name (`PATH`), in order.
    pub path: &'a [PathBuf],
}

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Allow,
    /// It may not, and nobody is asked.
    Deny {
        /// For the model: why, and what to do instead.
        reason: String,
    },
    /// The user decides.
    Ask {
        /// For the user: why this is asked.
        reason: String,
    },
}

/// What the user allowed for the rest of the session: exactly the same again, in the same directory and sandbox mode.
/// Never a prefix, never a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(BTreeSet<String>);

impl Grants {
    /// Adds keys, as [`Grants::keys`] made them.
    pub fn add(&mut self, keys: impl IntoIterator<Item = String>) {
        self.0.extend(keys);
    }

    /// Whether the user allowed this before.
    #[must_use]
    pub fn cover(&self, context: &PolicyContext<'_>, subject: &Subject) -> bool {
        let keys = Self::keys(context, subject);
        !keys.is_empty() && keys.iter().all(|key| self.0.contains(key))
    }

    /// What "for this session" covers: a whole script with its directory, or each changed file with the kind of its
    /// change. Empty for what cannot be granted (a path that is not text).
    #[must_use]
    pub fn keys(context: &PolicyContext<'_>, subject: &Subject) -> Vec<String> {
        let mode = context.sandbox.mode.as_str();
        match subject {
            Subject::Command {
                command,
                cwd,
                escalated,
            } => {
                // What is not understood is granted by the letter.
                let script =
                    Script::parse(command).map_or_else(|_| command.clone(), |s| s.canonical());
                cwd.to_str()
                    .map(|cwd| key(&("command", mode, escalated, cwd, script)))
                    .into_iter()
                    .collect()
            }
            Subject::Files { changes, escalated } => {
                let keys: Option<Vec<String>> = changes
                    .iter()
                    .map(|change| {
                        let to = match &change.moved_to {
                            Some(to) => Some(to.to_str()?),
                            None => None,
                        };
                        let path = change.path.to_str()?;
                        Some(key(&("file", mode, escalated, change.kind, path, to)))
                    })
                    .collect();
                keys.unwrap_or_default()
            }
        }
    }
}

fn key(parts: &impl serde::Serialize) -> String {
    serde_json::to_string(parts).expect("texts and switches can be written as JSON")
}

/// Decides about a request.
///
/// - `untrusted`: commands that are known to be harmless run, everything else asks, changes of files too.
/// - `on-request`: the sandbox is the boundary; only leaving it asks.
/// - `never`: nothing asks; leaving the sandbox is denied.
///
/// In `danger-full-access` there is no sandbox to leave.
#[must_use]
pub fn decide(context: &PolicyContext<'_>, grants: &Grants, request: &ApprovalRequest) -> Verdict {
    let verdict = match &request.subject {
        Subject::Command {
            command,
            cwd,
            escalated,
        } => match leaves(context, *escalated) {
            Some(verdict) => verdict,
            None => within(context, || unknown_command(context, command, cwd)),
        },
        Subject::Files { changes, escalated } => match leaves(context, *escalated) {
            Some(verdict) => verdict,
            None => within(context, || Some(changed_files(changes))),
        },
    };
    match verdict {
        Verdict::Ask { .. } if grants.cover(context, &request.subject) => Verdict::Allow,
        verdict => verdict,
    }
}

/// The verdict on leaving the sandbox; `None` when the request stays inside, or there is none.
fn leaves(context: &PolicyContext<'_>, escalated: bool) -> Option<Verdict> {
    if !escalated || context.sandbox.mode == SandboxMode::DangerFullAccess {
        return None;
    }
    Some(match context.policy {
        ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest => Verdict::Ask {
            reason: "it asks to run outside the sandbox".to_owned(),
        },
        ApprovalPolicy::Never => Verdict::Deny {
            reason:
                "approval policy is never: nothing may leave the sandbox, and nobody is asked. \
                     Do without it, within the sandbox"
                    .to_owned(),
        },
    })
}

/// The verdict on what stays inside. `unknown`: why it is not known to be harmless.
fn within(context: &PolicyContext<'_>, unknown: impl FnOnce() -> Option<String>) -> Verdict {
    match context.policy {
        ApprovalPolicy::OnRequest | ApprovalPolicy::Never => Verdict::Allow,
        ApprovalPolicy::Untrusted => {
            unknown().map_or(Verdict::Allow, |reason| Verdict::Ask { reason })
        }
    }
}

fn changed_files(changes: &[FileChange]) -> String {
    match changes {
        [_] => "it changes a file".to_owned(),
        many => format!("it changes {} files", many.len()),
    }
}

/// Why a script is not known to be harmless; `None` when it is.
fn unknown_command(context: &PolicyContext<'_>, command: &str, cwd: &Path) -> Option<String> {
    let script = match Script::parse(command) {
        Ok(script) => script,
        Err(why) => return Some(format!("it is not known to be harmless: {why}")),
    };
    let surroundings = Surroundings {
        bounded: context.sandbox.mode != SandboxMode::DangerFullAccess,
    };
    if let Some(program) = safe::first_unknown(&script, surroundings) {
        return Some(format!("`{program}` is not known to be harmless like this"));
    }
    if let Some(directory) = planted(context, cwd) {
        return Some(format!(
            "PATH has {}, where the project can put programs of any name",
            directory.display()
        ));
    }
    reads_denied(context, &script, cwd)
        .map(|path| format!("it names {}, which must not be read", path.display()))
}

/// A directory in `PATH` that the commands themselves can write to, or that depends on where they run.
fn planted<'a>(context: &PolicyContext<'a>, cwd: &Path) -> Option<&'a Path> {
    let roots = &context.sandbox.roots;
    let is_open = |directory: &&PathBuf| {
        !directory.is_absolute()
            || directory.starts_with(cwd)
            || roots.iter().any(|root| directory.starts_with(root))
    };
    context.path.iter().find(is_open).map(PathBuf::as_path)
}

/// A path in a script that the policy keeps from being read. The kernel refuses it inside the sandbox; without one, this
/// is what there is. It sees names only: not links, nor patterns.
fn reads_denied(context: &PolicyContext<'_>, script: &Script, cwd: &Path) -> Option<PathBuf> {
    let mut cwd = cwd.to_owned();
    for command in &script.commands {
        for word in &command.words[1..] {
            let value = word.text.split_once('=').map_or("", |(_, value)| value);
            for text in [word.text.as_str(), value] {
                let path = resolve(&cwd, Path::new(text));
                let denied = &context.sandbox.deny_read;
                if !text.is_empty() && denied.iter().any(|denied| path.starts_with(denied)) {
                    return Some(path);
                }
            }
        }
        if let [program, .., target] = command.words.as_slice()
            && program.text == "cd"
        {
            cwd = resolve(&cwd, Path::new(&target.text));
        }
    }
    None
}

/// A path as its letters say, without `.` and `..`.
fn resolve(cwd: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in cwd.join(path).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
pub(crate) mod tests;
