//! What a pool's children tell it, and what follows from their ends.

use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::policy::SandboxPolicy;
use interpreter_messages::process::ProcessMsg;
use interpreter_messages::tool::{
    ChildReport, Effects, FileChange, Intent, ToolEvent, ToolOutcome, ToolPoolMsg,
};
use interpreter_messages::ui::Event;
use interpreter_messages::worker::{FileOrder, FileReply, FileRequest};
use interpreter_messages::{CallId, ProcessId};
use interpreter_restart::AbortOnDrop;
use ractor::rpc::CallResult;
use ractor::{ActorCell, ActorRef, ActorStatus, SupervisionEvent};
use tracing::{debug, warn};

use super::PoolState;
use crate::calls::{AfterCrash, Phase, Process, judge, touched};
use crate::executor::{DONE, ExecutorMsg};
use crate::flow::Input;
use crate::inits::Inits;
use crate::output::tail;

/// How long a dying command's actor may take to give its last output.
const TAIL_TIME: Duration = Duration::from_secs(2);

impl PoolState {
    pub(super) async fn child(&mut self, report: ChildReport) {
        match report {
            ChildReport::Intends { call, intent } => self.intends(&call, intent),
            ChildReport::Finished { call, outcome } => self.finish(&call, outcome),
            ChildReport::ProcessGone { process } => {
                if let Some(process) = self.processes.get_mut(&process) {
                    process.ending = true;
                    process.expiry = None;
                }
            }
            ChildReport::Started {
                call,
                process,
                result,
            } => self.started(&call, process, result),
            ChildReport::Yielded {
                process,
                offset,
                expires_ms,
            } => self.yielded(process, offset, expires_ms),
            ChildReport::Lost { call, cause } => self.crashed(&call, cause).await,
            ChildReport::Seen(files) => self.seen.extend(files),
        }
    }

    fn intends(&mut self, id: &CallId, new: Intent) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        match &call.phase {
            Phase::Preparing => {
                call.phase = Phase::Intending(new.clone());
                self.tell(ToolEvent::Intends {
                    call: id.clone(),
                    intent: new,
                });
            }
            // Told again by an executor that was started after a crash: Session knows it.
            Phase::Intending(intent) if *intent == new => {}
            // Session's go was given to an executor that is no more: the one that tells this waits for it. One that
            // acts already ignores a second go.
            Phase::Acting(intent) if *intent == new => self.to_executor(id, Input::Proceed),
            // The journal holds another intent than what would be done now.
            Phase::Intending(_) | Phase::Acting(_) => {
                let executor = call.executor.clone();
                let error = "the files changed while the call was prepared a second time; nothing was done: read them again"
                    .to_owned();
                self.finish(id, ToolOutcome::Failed { error });
                if let Some(executor) = executor {
                    executor.kill();
                }
            }
            Phase::Judging | Phase::Finished(_) => {}
        }
    }

    fn started(
        &mut self,
        id: &CallId,
        process: ProcessId,
        result: Result<ActorRef<ProcessMsg>, String>,
    ) {
        let executor = self
            .calls
            .get(id)
            .filter(|call| matches!(call.phase, Phase::Acting(_)))
            .and_then(|call| call.executor.clone());
        if let Ok(actor) = &result
            && is_alive(&actor.get_cell())
        {
            let turn = self
                .calls
                .get(id)
                .map_or_else(Default::default, |call| call.run.turn);
            let mut entry = Process {
                actor: actor.clone(),
                owner: id.clone(),
                turn,
                offset: 0,
                yielded: false,
                ending: false,
                expiry: None,
            };
            if executor.is_none() {
                // Its call was cancelled, or its executor crashed, while it was being started.
                entry.end(true);
            }
            self.processes.insert(process, entry);
        }
        if let Some(executor) = executor {
            // One that ended is seen as its end.
            let _ = executor.cast(ExecutorMsg::Started(result));
        }
    }

    fn yielded(&mut self, id: ProcessId, offset: u64, expires_ms: Option<u64>) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        process.yielded = true;
        process.offset = offset;
        if let Some(ms) = expires_ms {
            let actor = process.actor.clone();
            let task = tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                let _ = actor.cast(ProcessMsg::Cancel { now: false });
            });
            process.expiry = Some(AbortOnDrop::new(&task));
        }
    }

    pub(super) async fn child_event(&mut self, event: SupervisionEvent) {
        let (cell, cause) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell, Some(error.to_string())),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                let reason = reason.filter(|reason| reason != DONE);
                (cell, reason)
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return,
        };
        if let Some(call) = self.executors.remove(&cell.get_id()) {
            let is_current = self
                .calls
                .get(&call)
                .and_then(|call| call.executor.as_ref())
                .is_some_and(|executor| executor.get_id() == cell.get_id());
            // Without a cause it ended in order: its outcome is on its way, or here.
            if let (Some(cause), true) = (cause, is_current) {
                warn!(%call, cause, "tool executor crashed");
                self.crashed(&call, cause).await;
            }
            return;
        }
        let process = self
            .processes
            .iter()
            .find(|(_, process)| process.actor.get_id() == cell.get_id())
            .map(|(id, _)| *id);
        if let Some(id) = process {
            self.processes.remove(&id);
            debug!(process = %id, ?cause, "command's actor ended");
        } else if let Some(cause) = cause {
            // A SandboxInit, or a command that ended before it was known; calls in flight see it as a lost reply.
            warn!(cause, "a sandbox actor ended");
            self.args.sink.publish(Event::Restarted {
                who: "sandbox".to_owned(),
                cause,
            });
        }
    }

    /// What follows when a call's executor, or what it worked with, died.
    async fn crashed(&mut self, id: &CallId, cause: String) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        call.executor = None;
        match call.after_crash() {
            AfterCrash::Nothing => {}
            AfterCrash::RunAgain { counted } => {
                call.rerun = true;
                self.reruns += u64::from(counted);
                self.start_executor(id).await;
            }
            AfterCrash::GiveUp => self.finish(id, crash(Effects::None, cause, String::new())),
            AfterCrash::Judge(intent) => {
                call.phase = Phase::Judging;
                let cwd = call.run.cwd.clone();
                self.judge(id.clone(), intent, cwd, cause);
            }
        }
    }

    /// Finds out what a crashed call has done, in a task, and finishes it.
    fn judge(&mut self, id: CallId, intent: Intent, cwd: std::path::PathBuf, cause: String) {
        let outcome: interpreter_messages::process::BoxFuture<ToolOutcome> = match intent {
            Intent::Files { changes } => {
                let (inits, policy) = (Arc::clone(&self.inits), Arc::clone(&self.policy));
                Box::pin(async move {
                    let effects = files_now(&inits, &policy, cwd, &changes).await;
                    crash(effects, cause, String::new())
                })
            }
            Intent::Process { .. } => {
                let process = self.processes.values_mut().find(|p| p.owner == id);
                let actor = process.map(|process| {
                    process.ending = true;
                    process.actor.clone()
                });
                Box::pin(async move {
                    let tail = match actor {
                        Some(actor) => last_words(&actor).await,
                        None => String::new(),
                    };
                    crash(Effects::Unknown, cause, tail)
                })
            }
            // The command itself is well; whether it got the text is not known.
            Intent::Stdin { .. } => {
                return self.finish(&id, crash(Effects::Unknown, cause, String::new()));
            }
        };
        let pool = self.me.clone();
        let task = tokio::spawn(outcome);
        tokio::spawn(async move {
            let outcome = task
                .await
                .unwrap_or_else(|error| crash(Effects::Unknown, error.to_string(), String::new()));
            let report = ChildReport::Finished { call: id, outcome };
            // A pool that is gone is asked by nobody.
            let _ = pool.cast(ToolPoolMsg::Child(report));
        });
    }
}

fn crash(effects: Effects, cause: String, tail: String) -> ToolOutcome {
    ToolOutcome::Crashed {
        effects,
        cause,
        tail,
    }
}

fn is_alive(cell: &ActorCell) -> bool {
    !matches!(
        cell.get_status(),
        ActorStatus::Stopping | ActorStatus::Stopped
    )
}

/// What became of a change whose executor crashed.
async fn files_now(
    inits: &Inits,
    policy: &Arc<SandboxPolicy>,
    cwd: std::path::PathBuf,
    changes: &[FileChange],
) -> Effects {
    let order = FileOrder::Hash {
        paths: touched(changes),
    };
    match inits.file(policy, FileRequest { cwd, order }).await {
        Ok(FileReply::Hashes { hashes }) => judge(changes, &hashes),
        _ => Effects::Unknown,
    }
}

/// The last output of a command that is then killed.
async fn last_words(actor: &ActorRef<ProcessMsg>) -> String {
    let ask = |reply| ProcessMsg::Wait {
        from: 0,
        within_ms: Some(0),
        reply,
    };
    let snapshot = actor.call(ask, Some(TAIL_TIME)).await;
    let _ = actor.cast(ProcessMsg::Cancel { now: true });
    let _ = actor.cast(ProcessMsg::Release);
    match snapshot {
        Ok(CallResult::Success(snapshot)) => tail(&snapshot.output),
        _ => String::new(),
    }
}
