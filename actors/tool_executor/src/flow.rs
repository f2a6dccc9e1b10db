//! What a call does, step by step, as a pure state machine: inputs in, effects out. The executor is the driver.

mod command;
mod files;
mod stdin;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use interpreter_messages::approval::{ApprovalRequest, Decision, Subject};
use interpreter_messages::policy::ApprovalPolicy;
use interpreter_messages::process::ProcessSnapshot;
use interpreter_messages::tool::{Intent, Operation, RunCall, ToolOutcome, ToolOutput};
use interpreter_messages::worker::{FileOrder, FileReply, FileRequest};
use interpreter_messages::{ApprovalId, ProcessId};

use crate::inits::NoReply;
use crate::scope::Scope;
use command::CommandFlow;
use files::FilesFlow;
use stdin::StdinFlow;

/// What a call knows when it begins.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The call.
    pub run: RunCall,
    /// Who is asked for what.
    pub approval: ApprovalPolicy,
    /// What may be written without leaving the sandbox.
    pub scope: Arc<Scope>,
    /// Files as the model last saw them.
    pub seen: Vec<(PathBuf, Option<String>)>,
    /// The number of the command that the call would start.
    pub process: ProcessId,
    /// For a call to a running command: up to where its output was given; `None` when there is no such command.
    pub resume_at: Option<u64>,
    /// The shell when the call names none.
    pub shell: PathBuf,
}

/// What happens to a call.
#[derive(Debug)]
pub(crate) enum Input {
    /// It begins.
    Begin,
    /// A question was answered.
    Decided {
        /// Which.
        approval: ApprovalId,
        /// How.
        decision: Decision,
    },
    /// Approval came back: what is open is asked again.
    AskAgain,
    /// The intent is in the journal.
    Proceed,
    /// The file worker answered, or did not.
    File(Result<FileReply, NoReply>),
    /// The command's actor runs, or could not be started.
    Started(Result<(), String>),
    /// The command took the text, or did not.
    StdinTaken(Result<(), String>),
    /// A wait is over; `None` when the command's actor died.
    Snapshot(Option<ProcessSnapshot>),
}

/// What the driver is to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Ask the file worker.
    File {
        /// What.
        request: FileRequest,
        /// Outside the sandbox.
        escalated: bool,
    },
    /// Ask Approval.
    Ask(ApprovalRequest),
    /// Have the intent journalled.
    Intend(Intent),
    /// Start a command.
    Start {
        /// As executed.
        argv: Vec<String>,
        /// Where.
        cwd: PathBuf,
        /// With a terminal.
        tty: bool,
        /// Outside the sandbox.
        escalated: bool,
    },
    /// Wait for the command.
    Wait {
        /// Offset of the output asked for.
        from: u64,
        /// Milliseconds; `None`: until it ends.
        within_ms: Option<u64>,
    },
    /// Give the command text.
    Stdin(Vec<u8>),
    /// End the command.
    Kill {
        /// Without the ladder.
        now: bool,
    },
    /// Nobody will ask for the command again.
    Release,
    /// The command runs on; the model has its output up to here.
    Yield {
        /// Up to here.
        offset: u64,
        /// When it is ended.
        expires_ms: Option<u64>,
    },
    /// Files the model has now seen.
    Seen(Vec<(PathBuf, Option<String>)>),
    /// The call is over.
    Finish(ToolOutcome),
    /// Whoever did the work died; what that means is decided as for a crash of the executor.
    Lost(String),
}

/// The state of a call.
#[derive(Debug)]
pub(crate) enum Flow {
    /// A read-only operation.
    Look(Setup),
    /// A write, edit or patch.
    Files(FilesFlow),
    /// A command.
    Command(CommandFlow),
    /// Text for a running command, or a poll.
    Stdin(StdinFlow),
}

impl Flow {
    /// A call that has not begun.
    pub(crate) fn new(setup: Setup) -> Self {
        match &setup.run.operation {
            Operation::Exec(exec) => Self::Command(CommandFlow::new(exec.clone(), setup)),
            Operation::WriteStdin(order) => Self::Stdin(StdinFlow::new(order.clone(), setup)),
            Operation::Write(_) | Operation::Edit(_) | Operation::Patch(_) => {
                Self::Files(FilesFlow::new(setup))
            }
            _ => Self::Look(setup),
        }
    }

    /// The next step. `now_ms`: milliseconds since the executor started.
    ///
    /// An input that does not fit the state (an answer to an older question, a repeated order) has no effect.
    pub(crate) fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        match self {
            Self::Look(setup) => look(setup, input),
            Self::Files(flow) => flow.step(input),
            Self::Command(flow) => flow.step(input, now_ms),
            Self::Stdin(flow) => flow.step(input, now_ms),
        }
    }
}

fn look(setup: &Setup, input: Input) -> Vec<Effect> {
    match input {
        Input::Begin => {
            if let Operation::Plan(plan) = &setup.run.operation {
                let output = ToolOutput::Plan { plan: plan.clone() };
                return vec![Effect::Finish(ToolOutcome::Ok { output })];
            }
            let order = FileOrder::Look {
                operation: setup.run.operation.clone(),
            };
            vec![setup.file(order, false)]
        }
        Input::File(Ok(FileReply::Done { output, seen })) => done(output, seen),
        Input::File(answer) => vec![no_success(answer)],
        _ => Vec::new(),
    }
}

fn done(output: ToolOutput, seen: Vec<(PathBuf, Option<String>)>) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !seen.is_empty() {
        effects.push(Effect::Seen(seen));
    }
    effects.push(Effect::Finish(ToolOutcome::Ok { output }));
    effects
}

/// The end of a call whose file request did not give what was asked for.
fn no_success(answer: Result<FileReply, NoReply>) -> Effect {
    match answer {
        Ok(FileReply::Failed { error, denied }) => {
            let hint = if denied {
                " (the sandbox or the permissions of the file do not allow it)"
            } else {
                ""
            };
            failed(format!("{error}{hint}"))
        }
        Ok(_) => Effect::Lost("the file worker gave an answer that does not fit".to_owned()),
        Err(NoReply::Refused(error)) => failed(error),
        Err(NoReply::Lost(cause)) => Effect::Lost(cause),
    }
}

fn failed(error: String) -> Effect {
    Effect::Finish(ToolOutcome::Failed { error })
}

/// The end of a call that was refused.
fn refused(decision: Decision, context: Option<&str>) -> Effect {
    let said = match decision {
        Decision::Deny { text: Some(text) } => text,
        Decision::AbortTurn => "the user refused this and ended the turn".to_owned(),
        Decision::TimedOut => "nobody answered the question in time".to_owned(),
        _ => "the user refused this".to_owned(),
    };
    let reason = match context {
        Some(context) => format!("{context}; {said}"),
        None => said,
    };
    Effect::Finish(ToolOutcome::Denied { reason })
}

impl Setup {
    fn file(&self, order: FileOrder, escalated: bool) -> Effect {
        let cwd = self.run.cwd.clone();
        Effect::File {
            request: FileRequest { cwd, order },
            escalated,
        }
    }

    /// The call's n-th question, from 1. Its id is the same when the call is run again after a crash.
    fn question(&self, n: u32, subject: Subject, reason: Option<String>) -> ApprovalRequest {
        ApprovalRequest {
            id: ApprovalId::new(format!("{}/{n}", self.run.call)),
            call: self.run.call.clone(),
            turn: self.run.turn,
            subject,
            reason,
            origin: Vec::new(),
        }
    }
}
