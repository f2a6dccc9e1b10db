//! Text for a running command, or a poll of it.

use interpreter_messages::process::ProcessSnapshot;
use interpreter_messages::tool::{Intent, ToolOutcome, ToolOutput, WriteStdin};

use super::{Effect, Input, Setup, failed};
use crate::output::{budget, exec_output};

/// Default, least and longest wait after text was written (from the original's tool description).
const WRITE_MS: (u64, u64, u64) = (250, 250, 30_000);
/// The same for a poll.
const POLL_MS: (u64, u64, u64) = (5_000, 5_000, 300_000);

/// The state of a call to a running command.
#[derive(Debug)]
pub(crate) struct StdinFlow {
    order: WriteStdin,
    setup: Setup,
    step: Step,
    started_ms: u64,
}

#[derive(Debug)]
enum Step {
    New,
    Intending,
    Writing,
    Waiting,
    Over,
}

impl StdinFlow {
    pub(super) fn new(order: WriteStdin, setup: Setup) -> Self {
        Self {
            order,
            setup,
            step: Step::New,
            started_ms: 0,
        }
    }

    pub(super) fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        match (std::mem::replace(&mut self.step, Step::Over), input) {
            (Step::New, Input::Begin) => {
                let process = self.order.process;
                let Some(from) = self.setup.resume_at else {
                    return vec![failed(format!(
                        "write_stdin failed: Unknown process id {process}"
                    ))];
                };
                self.started_ms = now_ms;
                if self.order.chars.is_empty() {
                    return self.wait(from);
                }
                self.step = Step::Intending;
                vec![Effect::Intend(Intent::Stdin { process })]
            }
            (Step::Intending, Input::Proceed) => {
                self.step = Step::Writing;
                self.started_ms = now_ms;
                vec![Effect::Stdin(self.order.chars.clone().into_bytes())]
            }
            (Step::Writing, Input::StdinTaken(Ok(()))) => self.wait(self.from()),
            (Step::Writing, Input::StdinTaken(Err(reason))) => {
                vec![failed(format!("write_stdin failed: {reason}"))]
            }
            (Step::Waiting, Input::Snapshot(Some(snapshot))) => self.waited(&snapshot, now_ms),
            (Step::Waiting, Input::Snapshot(None)) => {
                vec![Effect::Lost("the command's actor died".to_owned())]
            }
            (step, _) => {
                self.step = step;
                Vec::new()
            }
        }
    }

    fn from(&self) -> u64 {
        self.setup.resume_at.unwrap_or_default()
    }

    fn wait(&mut self, from: u64) -> Vec<Effect> {
        self.step = Step::Waiting;
        let (default, least, most) = if self.order.chars.is_empty() {
            POLL_MS
        } else {
            WRITE_MS
        };
        let within_ms = self.order.yield_ms.unwrap_or(default).clamp(least, most);
        vec![Effect::Wait {
            from,
            within_ms: Some(within_ms),
        }]
    }

    fn waited(&self, snapshot: &ProcessSnapshot, now_ms: u64) -> Vec<Effect> {
        if let Some(failure) = &snapshot.failure {
            return vec![
                Effect::Release,
                failed(format!("write_stdin failed: {failure}")),
            ];
        }
        let output = exec_output(
            snapshot,
            self.from(),
            budget(self.order.max_output_tokens),
            now_ms.saturating_sub(self.started_ms),
            self.order.process,
        );
        let after = if snapshot.exit.is_some() {
            Effect::Release
        } else {
            Effect::Yield {
                offset: snapshot.offset,
                expires_ms: None,
            }
        };
        let outcome = ToolOutcome::Ok {
            output: ToolOutput::Exec(output),
        };
        vec![after, Effect::Finish(outcome)]
    }
}
