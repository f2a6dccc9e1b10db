//! The ToolPool actor: supervises a session's running calls and keeps their outcomes until they are journalled.

mod children;
mod shutdown;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::policy::SandboxPolicy;
use interpreter_messages::process::{ProcessMsg, SpawnInit, SpawnProcess};
use interpreter_messages::session::{SessionMsg, SessionSettings, Who};
use interpreter_messages::tool::{
    CallStatus, ChildReport, Effects, Operation, RunCall, ToolEvent, ToolOutcome, ToolPoolMsg,
    ToolPoolView,
};
use interpreter_messages::{CallId, EventSink, FaultSwitch, Peer, ProcessId, TurnId};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};

use crate::calls::{Call, Phase, Process};
use crate::executor::{ExecutorArgs, ExecutorMsg, ToolExecutor};
use crate::flow::{Input, Setup};
use crate::inits::Inits;
use crate::scope::Scope;

/// Commands that may run at the same time; as in the original.
const MAX_PROCESSES: usize = 64;
/// Shells, in order of preference.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// Owns the table of calls (how far each is, its outcome until `Acknowledge`), the running commands by number, the
/// hashes of the files that the model has seen, and the SandboxInit of each policy.
///
/// Supervised by SessionSupervisor, permanent; it supervises ToolExecutor, SandboxProcess and SandboxInit actors, all
/// temporary: their ends are told to whoever waits, and never counted. A crash of it takes all of them along: Session
/// then finds its calls unknown and settles each by its class. It sends nothing on a restart: Session asks with
/// `Report`. It ends by `stop`: calls are cancelled, commands get the cancel ladder and 5 s.
pub struct ToolPool;

/// What a ToolPool is started with.
pub struct ToolPoolArgs {
    /// The session's settings.
    pub settings: Arc<SessionSettings>,
    /// Who orders calls and gets their events.
    pub session: Peer<SessionMsg>,
    /// Who is asked before a call acts.
    pub approval: Peer<ApprovalMsg>,
    /// The session's events.
    pub sink: EventSink,
    /// Starts a command's actor.
    pub spawn_process: SpawnProcess,
    /// Starts a policy's spawner and file worker.
    pub spawn_init: SpawnInit,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The state of a ToolPool.
pub struct PoolState {
    args: ToolPoolArgs,
    me: ActorRef<ToolPoolMsg>,
    policy: Arc<SandboxPolicy>,
    scope: Arc<Scope>,
    inits: Arc<Inits>,
    calls: HashMap<CallId, Call>,
    /// Calls that are acknowledged or cancelled: never run again.
    done: HashSet<CallId>,
    executors: HashMap<ActorId, CallId>,
    processes: HashMap<ProcessId, Process>,
    last_process: ProcessId,
    seen: HashMap<PathBuf, Option<String>>,
    reruns: u64,
}

impl Actor for ToolPool {
    type Msg = ToolPoolMsg;
    type State = PoolState;
    type Arguments = ToolPoolArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let policy = Arc::clone(&args.settings.sandbox);
        Ok(PoolState {
            scope: Arc::new(Scope::of(&policy)),
            inits: Arc::new(Inits::new(Arc::clone(&args.spawn_init), myself.get_cell())),
            policy,
            me: myself,
            args,
            calls: HashMap::new(),
            done: HashSet::new(),
            executors: HashMap::new(),
            processes: HashMap::new(),
            last_process: ProcessId(0),
            seen: HashMap::new(),
            reruns: 0,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.args.fault.hit(point(&message));
        match message {
            ToolPoolMsg::Run(run) => state.run(run).await,
            ToolPoolMsg::Proceed { call } => state.proceed(&call),
            ToolPoolMsg::Decided {
                call,
                approval,
                decision,
            } => state.to_executor(&call, Input::Decided { approval, decision }),
            ToolPoolMsg::Cancel { call } => state.cancel(&call, false),
            ToolPoolMsg::CancelTurn { turn, now } => state.cancel_turn(turn, now),
            ToolPoolMsg::Acknowledge { call } => state.acknowledge(call),
            ToolPoolMsg::Report => state.report(),
            ToolPoolMsg::PeerRestarted(who) => state.peer_restarted(who),
            ToolPoolMsg::Seen(files) => state.remember(files),
            ToolPoolMsg::Policy(policy) => state.set_policy(policy),
            // A caller that gave up needs no picture.
            ToolPoolMsg::View(reply) => drop(reply.send(state.view())),
            ToolPoolMsg::Child(report) => state.child(report).await,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.child_event(event).await;
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.end_all().await;
        Ok(())
    }
}

fn point(message: &ToolPoolMsg) -> &'static str {
    match message {
        ToolPoolMsg::Run(_) => "tool_pool.run",
        ToolPoolMsg::Proceed { .. } => "tool_pool.proceed",
        ToolPoolMsg::Decided { .. } => "tool_pool.decided",
        ToolPoolMsg::Cancel { .. } => "tool_pool.cancel",
        ToolPoolMsg::CancelTurn { .. } => "tool_pool.cancel_turn",
        ToolPoolMsg::Acknowledge { .. } => "tool_pool.acknowledge",
        ToolPoolMsg::Report => "tool_pool.report",
        ToolPoolMsg::PeerRestarted(_) => "tool_pool.peer_restarted",
        ToolPoolMsg::Seen(_) => "tool_pool.seen",
        ToolPoolMsg::Policy(_) => "tool_pool.policy",
        ToolPoolMsg::View(_) => "tool_pool.view",
        ToolPoolMsg::Child(report) => match report {
            ChildReport::Intends { .. } => "tool_pool.intends",
            ChildReport::Finished { .. } => "tool_pool.finished",
            ChildReport::ProcessGone { .. } => "tool_pool.process_gone",
            ChildReport::Started { .. } => "tool_pool.started",
            ChildReport::Yielded { .. } => "tool_pool.yielded",
            ChildReport::Lost { .. } => "tool_pool.lost",
            ChildReport::Seen(_) => "tool_pool.child_seen",
        },
    }
}

impl PoolState {
    async fn run(&mut self, run: RunCall) {
        let id = run.call.clone();
        if self.done.contains(&id) {
            return;
        }
        if let Some(call) = self.calls.get(&id) {
            if let Phase::Finished(outcome) = &call.phase {
                let outcome = outcome.clone();
                self.tell(ToolEvent::Finished { call: id, outcome });
            }
            return;
        }
        let starts_process = matches!(run.operation, Operation::Exec(_));
        if starts_process {
            self.last_process = self.last_process.next();
        }
        let call = Call {
            run,
            phase: Phase::Preparing,
            executor: None,
            process: self.last_process,
            rerun: false,
        };
        self.calls.insert(id.clone(), call);
        let running = self.processes.values().filter(|p| !p.ending).count();
        if starts_process && running >= MAX_PROCESSES {
            let error = format!(
                "{running} commands are running already: read the output of those that have ended, or end one"
            );
            return self.finish(&id, ToolOutcome::Failed { error });
        }
        self.start_executor(&id).await;
    }

    /// Starts an executor for a call, from the beginning.
    async fn start_executor(&mut self, id: &CallId) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let target = match &call.run.operation {
            Operation::WriteStdin(order) => self
                .processes
                .get_mut(&order.process)
                .filter(|process| process.yielded && !process.ending),
            _ => None,
        };
        let (actor, resume_at) = match target {
            Some(process) => {
                process.turn = call.run.turn;
                (Some(process.actor.clone()), Some(process.offset))
            }
            None => (None, None),
        };
        let is_write = matches!(
            call.run.operation,
            Operation::Write(_) | Operation::Edit(_) | Operation::Patch(_)
        );
        let setup = Setup {
            run: call.run.clone(),
            approval: self.args.settings.approval,
            scope: Arc::clone(&self.scope),
            seen: if is_write { self.seen() } else { Vec::new() },
            process: call.process,
            resume_at,
            shell: shell(),
        };
        let args = ExecutorArgs {
            setup,
            process: actor,
            policy: Arc::clone(&self.policy),
            pool: self.me.clone(),
            approval: self.args.approval.clone(),
            inits: Arc::clone(&self.inits),
            spawn_process: Arc::clone(&self.args.spawn_process),
            fault: self.args.fault.clone(),
        };
        match Actor::spawn_linked(None, ToolExecutor, args, self.me.get_cell()).await {
            Ok((executor, _)) => {
                self.executors.insert(executor.get_id(), id.clone());
                // One that ended already is seen as its end.
                let _ = executor.cast(ExecutorMsg::Input(Input::Begin));
                if let Some(call) = self.calls.get_mut(id) {
                    call.executor = Some(executor);
                }
            }
            Err(error) => {
                let outcome = ToolOutcome::Crashed {
                    effects: Effects::None,
                    cause: format!("the tool could not be started: {error}"),
                    tail: String::new(),
                };
                self.finish(id, outcome);
            }
        }
    }

    fn seen(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut seen: Vec<_> = self
            .seen
            .iter()
            .map(|(path, hash)| (path.clone(), hash.clone()))
            .collect();
        seen.sort();
        seen
    }

    fn proceed(&mut self, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let Phase::Intending(intent) = &call.phase else {
            return;
        };
        call.phase = Phase::Acting(intent.clone());
        self.to_executor(id, Input::Proceed);
    }

    fn to_executor(&self, id: &CallId, input: Input) {
        if let Some(executor) = self.calls.get(id).and_then(|call| call.executor.as_ref()) {
            // One that ended is seen as its end.
            let _ = executor.cast(ExecutorMsg::Input(input));
        }
    }

    /// Ends a call whose outcome is already in the journal: nothing is told about it any more.
    fn cancel(&mut self, id: &CallId, now: bool) {
        self.done.insert(id.clone());
        if let Some(call) = self.calls.remove(id)
            && let Some(executor) = call.executor
        {
            executor.kill();
        }
        for process in self.processes.values_mut() {
            if process.owner == *id && !process.yielded {
                process.end(now);
            }
        }
    }

    fn cancel_turn(&mut self, turn: TurnId, now: bool) {
        let calls: Vec<CallId> = self
            .calls
            .values()
            .filter(|call| call.run.turn == turn)
            .map(|call| call.run.call.clone())
            .collect();
        for call in calls {
            self.cancel(&call, now);
        }
        for process in self.processes.values_mut() {
            if process.turn == turn && (now || !process.ending) {
                process.end(now);
            }
        }
    }

    fn acknowledge(&mut self, id: CallId) {
        let is_finished = self
            .calls
            .get(&id)
            .is_some_and(|call| matches!(call.phase, Phase::Finished(_)));
        if is_finished {
            self.calls.remove(&id);
            self.done.insert(id);
        }
    }

    fn report(&self) {
        let mut calls: Vec<CallStatus> = self
            .calls
            .values()
            .map(|call| CallStatus {
                call: call.run.call.clone(),
                turn: call.run.turn,
                phase: call.phase(),
            })
            .collect();
        calls.sort_by(|a, b| a.call.cmp(&b.call));
        // A Session that is down asks again when it is back.
        let _ = self.args.session.cast(SessionMsg::ToolReport(calls));
    }

    fn peer_restarted(&self, who: Who) {
        if who == Who::Approval {
            for id in self.calls.keys() {
                self.to_executor(id, Input::AskAgain);
            }
        }
    }

    /// Takes up what Session knows from the journal. What is known here is as new or newer, so it stays.
    fn remember(&mut self, files: Vec<(PathBuf, Option<String>)>) {
        for (path, hash) in files {
            self.seen.entry(path).or_insert(hash);
        }
    }

    fn set_policy(&mut self, policy: Arc<SandboxPolicy>) {
        self.scope = Arc::new(Scope::of(&policy));
        self.policy = policy;
    }

    fn view(&self) -> ToolPoolView {
        let mut view = ToolPoolView {
            calls: self.calls.keys().cloned().collect(),
            processes: self.processes.keys().copied().collect(),
            reruns: self.reruns,
        };
        view.calls.sort();
        view.processes.sort();
        view
    }

    fn tell(&self, event: ToolEvent) {
        // A Session that is down asks with `Report` when it is back.
        let _ = self.args.session.cast(SessionMsg::Tool(event));
    }

    /// Notes an outcome and tells it. The first one counts.
    fn finish(&mut self, id: &CallId, outcome: ToolOutcome) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        if matches!(call.phase, Phase::Finished(_)) {
            return;
        }
        call.executor = None;
        call.phase = Phase::Finished(outcome.clone());
        self.tell(ToolEvent::Finished {
            call: id.clone(),
            outcome,
        });
    }
}

impl Process {
    /// Tells a command to end; nobody will ask for it again.
    fn end(&mut self, now: bool) {
        self.ending = true;
        self.expiry = None;
        // One that is gone has ended.
        let _ = self.actor.cast(ProcessMsg::Cancel { now });
        let _ = self.actor.cast(ProcessMsg::Release);
    }
}

fn shell() -> PathBuf {
    let found = SHELLS.iter().find(|shell| Path::new(shell).exists());
    PathBuf::from(found.unwrap_or(&SHELLS[SHELLS.len() - 1]))
}
