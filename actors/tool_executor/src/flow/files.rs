//! A write, edit or patch: prepare, ask where needed, have the intent journalled, apply.

use interpreter_messages::approval::{ApprovalRequest, Subject};
use interpreter_messages::policy::ApprovalPolicy;
use interpreter_messages::tool::{FileChange, Intent};
use interpreter_messages::worker::{FileOrder, FileReply};

use super::{Effect, Input, Setup, done, no_success, refused};

/// The state of a change of files.
#[derive(Debug)]
pub(crate) struct FilesFlow {
    setup: Setup,
    changes: Vec<FileChange>,
    /// Whether it is carried out outside the sandbox.
    escalated: bool,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Preparing,
    Asking(ApprovalRequest),
    Intending,
    Applying,
    /// The boundary refused it although its path looked writable.
    AskingToLeave {
        question: ApprovalRequest,
        error: String,
    },
    Over,
}

impl FilesFlow {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            changes: Vec::new(),
            escalated: false,
            step: Step::Preparing,
        }
    }

    pub(super) fn step(&mut self, input: Input) -> Vec<Effect> {
        match (std::mem::replace(&mut self.step, Step::Over), input) {
            (Step::Preparing, Input::Begin) => {
                self.step = Step::Preparing;
                vec![self.prepare()]
            }
            (Step::Preparing, Input::File(Ok(FileReply::Prepared { changes }))) => {
                self.prepared(changes)
            }
            (Step::Asking(question), Input::Decided { approval, decision })
                if question.id == approval =>
            {
                if decision.is_approval() {
                    self.intend()
                } else {
                    vec![refused(decision, None)]
                }
            }
            (Step::Intending, Input::Proceed) => self.apply(),
            (Step::Applying, Input::File(Ok(FileReply::Done { output, seen }))) => {
                done(output, seen)
            }
            (
                Step::Applying,
                Input::File(Ok(FileReply::Failed {
                    error,
                    denied: true,
                })),
            ) if !self.escalated && self.setup.scope.is_bounded() => self.ask_to_leave(error),
            (Step::AskingToLeave { question, error }, Input::Decided { approval, decision })
                if question.id == approval =>
            {
                if decision.is_approval() {
                    self.escalated = true;
                    // The journalled intent still holds: the same changes to the same files.
                    self.apply()
                } else {
                    vec![refused(decision, Some(&error))]
                }
            }
            (Step::Preparing | Step::Applying, Input::File(answer)) => vec![no_success(answer)],
            (Step::Asking(question), Input::AskAgain) => {
                let again = Effect::Ask(question.clone());
                self.step = Step::Asking(question);
                vec![again]
            }
            (Step::AskingToLeave { question, error }, Input::AskAgain) => {
                let again = Effect::Ask(question.clone());
                self.step = Step::AskingToLeave { question, error };
                vec![again]
            }
            (step, _) => {
                self.step = step;
                Vec::new()
            }
        }
    }

    fn prepare(&self) -> Effect {
        let order = FileOrder::Prepare {
            operation: self.setup.run.operation.clone(),
            seen: self.setup.seen.clone(),
        };
        self.setup.file(order, false)
    }

    fn prepared(&mut self, changes: Vec<FileChange>) -> Vec<Effect> {
        self.changes = changes;
        let outside = self
            .changes
            .iter()
            .flat_map(|change| std::iter::once(&change.path).chain(&change.moved_to))
            .find(|path| !self.setup.scope.allows(path))
            .cloned();
        self.escalated = outside.is_some();
        if !self.escalated && self.setup.approval != ApprovalPolicy::Untrusted {
            return self.intend();
        }
        let reason =
            outside.map(|path| format!("the sandbox does not let {} be written", path.display()));
        let question = self.question(1, reason);
        let ask = Effect::Ask(question.clone());
        self.step = Step::Asking(question);
        vec![ask]
    }

    fn question(&self, n: u32, reason: Option<String>) -> ApprovalRequest {
        let subject = Subject::Files {
            changes: self.changes.clone(),
            escalated: self.escalated || n > 1,
        };
        self.setup.question(n, subject, reason)
    }

    fn ask_to_leave(&mut self, error: String) -> Vec<Effect> {
        let question = self.question(2, Some(error.clone()));
        let ask = Effect::Ask(question.clone());
        self.step = Step::AskingToLeave { question, error };
        vec![ask]
    }

    fn intend(&mut self) -> Vec<Effect> {
        self.step = Step::Intending;
        vec![Effect::Intend(Intent::Files {
            changes: self.changes.clone(),
        })]
    }

    fn apply(&mut self) -> Vec<Effect> {
        self.step = Step::Applying;
        let order = FileOrder::Apply {
            operation: self.setup.run.operation.clone(),
            changes: self.changes.clone(),
        };
        vec![self.setup.file(order, self.escalated)]
    }
}
