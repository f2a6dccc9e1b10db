//! The pool's book-keeping of calls and commands. Pure data and decisions.

use std::path::PathBuf;

use interpreter_messages::process::ProcessMsg;
use interpreter_messages::tool::{
    CallPhase, Effects, FileChange, Intent, RunCall, ToolClass, ToolOutcome,
};
use interpreter_messages::{CallId, ProcessId, TurnId};
use interpreter_restart::AbortOnDrop;
use ractor::ActorRef;

use crate::executor::ExecutorMsg;

/// A call that is not acknowledged yet.
pub(crate) struct Call {
    /// What was ordered.
    pub run: RunCall,
    /// How far it is.
    pub phase: Phase,
    /// Who works on it.
    pub executor: Option<ActorRef<ExecutorMsg>>,
    /// The command it starts.
    pub process: ProcessId,
    /// Whether it was already run again after a crash.
    pub rerun: bool,
}

/// How far a call is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Being prepared or asking; nothing has happened outside.
    Preparing,
    /// Session was told the intent; nothing has happened outside.
    Intending(Intent),
    /// The executor was told to go on: things may have happened.
    Acting(Intent),
    /// The executor crashed while acting; what happened is being found out.
    Judging,
    /// Over.
    Finished(ToolOutcome),
}

impl Call {
    /// As told to Session.
    pub(crate) fn phase(&self) -> CallPhase {
        match &self.phase {
            Phase::Preparing | Phase::Acting(_) | Phase::Judging => CallPhase::Busy,
            Phase::Intending(intent) => CallPhase::Intends(intent.clone()),
            Phase::Finished(outcome) => CallPhase::Finished(outcome.clone()),
        }
    }

    /// What follows from the end of its executor before its time.
    pub(crate) fn after_crash(&self) -> AfterCrash {
        match &self.phase {
            Phase::Finished(_) | Phase::Judging => AfterCrash::Nothing,
            Phase::Acting(intent) => AfterCrash::Judge(intent.clone()),
            Phase::Preparing | Phase::Intending(_) if self.rerun => AfterCrash::GiveUp,
            Phase::Preparing | Phase::Intending(_) => AfterCrash::RunAgain {
                counted: self.run.operation.class() == ToolClass::ReadOnly,
            },
        }
    }
}

/// What follows from a crash of a call's executor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterCrash {
    /// It is over anyway.
    Nothing,
    /// Nothing can have happened: once more.
    RunAgain {
        /// As a silent re-run of a read-only operation.
        counted: bool,
    },
    /// Nothing can have happened, and it crashed twice.
    GiveUp,
    /// Something may have happened: it is found out, never run again.
    Judge(Intent),
}

/// A command whose actor runs.
pub(crate) struct Process {
    /// Its actor.
    pub actor: ActorRef<ProcessMsg>,
    /// The call that started it.
    pub owner: CallId,
    /// The last turn that had to do with it.
    pub turn: TurnId,
    /// Output up to here was given to the model.
    pub offset: u64,
    /// It returned from its call still running, so later calls can reach it.
    pub yielded: bool,
    /// It was told to end; nobody asks for it any more.
    pub ending: bool,
    /// Ends it when its time is up.
    pub expiry: Option<AbortOnDrop>,
}

/// The files whose hashes tell what became of a change: every path it touches.
pub(crate) fn touched(changes: &[FileChange]) -> Vec<PathBuf> {
    changes
        .iter()
        .flat_map(|change| std::iter::once(&change.path).chain(&change.moved_to))
        .cloned()
        .collect()
}

/// What became of a change, from the hashes of [`touched`] after a crash.
pub(crate) fn judge(changes: &[FileChange], hashes: &[Option<String>]) -> Effects {
    let mut hashes = hashes.iter();
    let (mut applied, mut untouched) = (true, true);
    for change in changes {
        let Some(now) = hashes.next() else {
            return Effects::Unknown;
        };
        if change.moved_to.is_some() {
            let Some(there) = hashes.next() else {
                return Effects::Unknown;
            };
            applied &= now.is_none() && *there == change.after;
            untouched &= *now == change.before && there.is_none();
        } else {
            applied &= *now == change.after;
            untouched &= *now == change.before;
        }
    }
    match (applied, untouched) {
        // A change to what was there already is as good as applied.
        (true, _) => Effects::Applied,
        (false, true) => Effects::NotApplied,
        (false, false) => Effects::Unknown,
    }
}
