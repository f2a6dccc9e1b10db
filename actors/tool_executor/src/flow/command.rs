//! A command: ask, have the intent journalled, start, wait until it ends, yields or times out.

use std::path::{Path, PathBuf};

use interpreter_messages::approval::{ApprovalRequest, Subject};
use interpreter_messages::process::{ProcessSnapshot, SpawnFailure};
use interpreter_messages::tool::{
    DEFAULT_TIMEOUT_MS, Effects, Exec, Intent, ToolOutcome, ToolOutput,
};

use super::{Effect, Input, Setup, refused};
use crate::ops::load::absolute;
use crate::output::{budget, exec_output};

/// Least and longest wait before a command yields (from the original's tool description).
const YIELD_MS: (u64, u64) = (250, 30_000);
/// How long the cancel ladder may take: SIGINT, 2 s, SIGTERM, 3 s, SIGKILL, and a second for the drain.
pub(super) const LADDER_MS: u64 = 6_000;

/// The state of a command's call.
#[derive(Debug)]
pub(crate) struct CommandFlow {
    exec: Exec,
    setup: Setup,
    argv: Vec<String>,
    cwd: PathBuf,
    step: Step,
    started_ms: u64,
}

#[derive(Debug)]
enum Step {
    New,
    Asking(ApprovalRequest),
    Intending,
    Starting,
    Waiting,
    /// Its time is up and the ladder runs.
    Ending,
    Over,
}

impl CommandFlow {
    pub(super) fn new(mut exec: Exec, setup: Setup) -> Self {
        // Without a boundary there is nothing to leave.
        exec.escalate &= setup.scope.is_bounded();
        let shell = exec.shell.as_ref().unwrap_or(&setup.shell);
        let flag = if exec.login { "-lc" } else { "-c" };
        let argv = vec![
            shell.display().to_string(),
            flag.to_owned(),
            exec.command.clone(),
        ];
        let cwd = exec
            .workdir
            .as_deref()
            .filter(|workdir| *workdir != Path::new(""))
            .and_then(|workdir| absolute(&setup.run.cwd, workdir).ok())
            .unwrap_or_else(|| setup.run.cwd.clone());
        Self {
            exec,
            setup,
            argv,
            cwd,
            step: Step::New,
            started_ms: 0,
        }
    }

    pub(super) fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        match (std::mem::replace(&mut self.step, Step::Over), input) {
            (Step::New, Input::Begin) => self.ask(),
            (Step::Asking(question), Input::AskAgain) => {
                let again = Effect::Ask(question.clone());
                self.step = Step::Asking(question);
                vec![again]
            }
            (Step::Asking(question), Input::Decided { approval, decision })
                if question.id == approval =>
            {
                if !decision.is_approval() {
                    return vec![refused(decision, None)];
                }
                self.step = Step::Intending;
                vec![Effect::Intend(Intent::Process {
                    argv: self.argv.clone(),
                    cwd: self.cwd.clone(),
                    escalated: self.exec.escalate,
                })]
            }
            (Step::Intending, Input::Proceed) => self.start(now_ms),
            (Step::Starting, Input::Started(Ok(()))) => {
                self.step = Step::Waiting;
                let within_ms = Some(self.yield_ms().unwrap_or(u64::MAX).min(self.limit_ms()));
                vec![Effect::Wait {
                    from: 0,
                    within_ms: within_ms.filter(|ms| *ms < u64::MAX),
                }]
            }
            (Step::Starting, Input::Started(Err(cause))) => {
                vec![Effect::Finish(ToolOutcome::Crashed {
                    effects: Effects::None,
                    cause,
                    tail: String::new(),
                })]
            }
            (Step::Waiting, Input::Snapshot(Some(snapshot))) => self.waited(&snapshot, now_ms),
            (Step::Ending, Input::Snapshot(Some(snapshot))) => self.ended(&snapshot, now_ms),
            (Step::Waiting | Step::Ending, Input::Snapshot(None)) => {
                vec![Effect::Lost("the command's actor died".to_owned())]
            }
            (step, _) => {
                self.step = step;
                Vec::new()
            }
        }
    }

    /// What is judged and shown: the script, and with it any shell that the model chose, because that is what runs.
    fn shown(&self) -> String {
        if self.exec.shell.is_none() {
            return self.exec.command.clone();
        }
        let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
        self.argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }

    fn ask(&mut self) -> Vec<Effect> {
        let subject = Subject::Command {
            command: self.shown(),
            cwd: self.cwd.clone(),
            escalated: self.exec.escalate,
        };
        let question = self
            .setup
            .question(1, subject, self.exec.justification.clone());
        let ask = Effect::Ask(question.clone());
        self.step = Step::Asking(question);
        vec![ask]
    }

    fn start(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step = Step::Starting;
        self.started_ms = now_ms;
        vec![Effect::Start {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            tty: self.exec.tty,
            escalated: self.exec.escalate,
        }]
    }

    fn yield_ms(&self) -> Option<u64> {
        self.exec
            .yield_ms
            .map(|ms| ms.clamp(YIELD_MS.0, YIELD_MS.1))
    }

    /// When the command is ended; `u64::MAX` for never.
    fn limit_ms(&self) -> u64 {
        match (self.exec.timeout_ms, self.exec.yield_ms) {
            (Some(ms), _) => ms.max(1),
            (None, None) => DEFAULT_TIMEOUT_MS,
            (None, Some(_)) => u64::MAX,
        }
    }

    fn waited(&mut self, snapshot: &ProcessSnapshot, now_ms: u64) -> Vec<Effect> {
        if snapshot.exit.is_some() || snapshot.failure.is_some() {
            return vec![
                Effect::Release,
                Effect::Finish(self.outcome(snapshot, now_ms)),
            ];
        }
        let limit = self.limit_ms();
        if self.yield_ms().is_some_and(|ms| ms < limit) {
            let left = limit.saturating_sub(now_ms - self.started_ms);
            return vec![
                Effect::Yield {
                    offset: snapshot.offset,
                    expires_ms: (limit < u64::MAX).then_some(left),
                },
                Effect::Finish(self.outcome(snapshot, now_ms)),
            ];
        }
        self.step = Step::Ending;
        vec![
            Effect::Kill { now: false },
            Effect::Wait {
                from: 0,
                within_ms: Some(LADDER_MS),
            },
        ]
    }

    fn ended(&self, snapshot: &ProcessSnapshot, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if snapshot.exit.is_none() {
            effects.push(Effect::Kill { now: true });
        }
        let mut output = self.output(snapshot, now_ms);
        output.process = None;
        effects.push(Effect::Release);
        effects.push(Effect::Finish(ToolOutcome::TimedOut {
            after_ms: self.limit_ms(),
            output,
        }));
        effects
    }

    fn outcome(&self, snapshot: &ProcessSnapshot, now_ms: u64) -> ToolOutcome {
        if let Some(failure) = &snapshot.failure {
            return not_started(failure);
        }
        ToolOutcome::Ok {
            output: ToolOutput::Exec(self.output(snapshot, now_ms)),
        }
    }

    fn output(
        &self,
        snapshot: &ProcessSnapshot,
        now_ms: u64,
    ) -> interpreter_messages::tool::ExecOutput {
        exec_output(
            snapshot,
            0,
            budget(self.exec.max_output_tokens),
            now_ms.saturating_sub(self.started_ms),
            self.setup.process,
        )
    }
}

/// The outcome for a command that never ran.
fn not_started(failure: &SpawnFailure) -> ToolOutcome {
    match failure {
        SpawnFailure::InitDied { .. } => ToolOutcome::Crashed {
            effects: Effects::None,
            cause: failure.to_string(),
            tail: String::new(),
        },
        SpawnFailure::Boundary { .. }
        | SpawnFailure::Program { .. }
        | SpawnFailure::Directory { .. } => ToolOutcome::Failed {
            error: failure.to_string(),
        },
    }
}
