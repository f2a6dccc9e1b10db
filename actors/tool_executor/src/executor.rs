//! The ToolExecutor actor: drives the [`Flow`] of one call.

use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::policy::{SandboxMode, SandboxPolicy};
use interpreter_messages::process::{ProcessMsg, ProcessSpec, SpawnProcess};
use interpreter_messages::tool::{ChildReport, ToolPoolMsg};
use interpreter_messages::{FaultSwitch, ItemId, Peer};
use interpreter_restart::AbortOnDrop;
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::flow::{Effect, Flow, Input, Setup};
use crate::inits::Inits;

/// Why an executor that is done stops; any other end is a crash.
pub(crate) const DONE: &str = "done";
/// How much longer than asked a command's actor may take to answer a wait; then it counts as dead.
const WAIT_SLACK: Duration = Duration::from_secs(30);

/// Owns one call: its flow, and the tasks that wait for others on its behalf.
///
/// Started and supervised by ToolPool, temporary. A crash costs the call: ToolPool runs it again when nothing can
/// have happened, and else tells the model what may have happened, by the class of the operation. It ends itself when
/// the call is over, after having told ToolPool the outcome; ToolPool kills it to cancel the call. On a restart of
/// Approval it asks its open question again, with the same id.
pub(crate) struct ToolExecutor;

/// To a ToolExecutor.
#[derive(Debug)]
pub(crate) enum ExecutorMsg {
    /// Something happened to the call.
    Input(Input),
    /// The command's actor was started for it, or could not be.
    Started(Result<ActorRef<ProcessMsg>, String>),
    /// One of its tasks died.
    TaskDied(String),
}

/// What a ToolExecutor is started with.
#[derive(Clone)]
pub(crate) struct ExecutorArgs {
    /// The call.
    pub setup: Setup,
    /// For a call to a running command.
    pub process: Option<ActorRef<ProcessMsg>>,
    /// The policy of the session.
    pub policy: Arc<SandboxPolicy>,
    /// Its supervisor.
    pub pool: ActorRef<ToolPoolMsg>,
    /// Who is asked.
    pub approval: Peer<ApprovalMsg>,
    /// Who works on files.
    pub inits: Arc<Inits>,
    /// Starts commands.
    pub spawn_process: SpawnProcess,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The state of a ToolExecutor.
pub(crate) struct ExecutorState {
    args: ExecutorArgs,
    flow: Flow,
    process: Option<ActorRef<ProcessMsg>>,
    since: Instant,
    /// The task that waits for a reply; a flow has one at a time.
    task: Option<AbortOnDrop>,
}

/// The same policy without a boundary: for what a person let out of it.
fn outside(policy: &SandboxPolicy) -> Arc<SandboxPolicy> {
    Arc::new(SandboxPolicy {
        mode: SandboxMode::DangerFullAccess,
        network: true,
        ..policy.clone()
    })
}

impl Actor for ToolExecutor {
    type Msg = ExecutorMsg;
    type State = ExecutorState;
    type Arguments = ExecutorArgs;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(ExecutorState {
            flow: Flow::new(args.setup.clone()),
            process: args.process.clone(),
            since: Instant::now(),
            task: None,
            args,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.args.fault.hit(point(&message));
        let input = match message {
            ExecutorMsg::Input(input) => input,
            ExecutorMsg::Started(result) => Input::Started(result.map(|process| {
                state.process = Some(process);
            })),
            ExecutorMsg::TaskDied(cause) => {
                state.carry_out(&myself, Effect::Lost(cause));
                return Ok(());
            }
        };
        let now = u64::try_from(state.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        for effect in state.flow.step(input, now) {
            state.carry_out(&myself, effect);
        }
        Ok(())
    }
}

fn point(message: &ExecutorMsg) -> &'static str {
    match message {
        ExecutorMsg::Input(input) => match input {
            Input::Begin => "tool_executor.begin",
            Input::Decided { .. } => "tool_executor.decided",
            Input::AskAgain => "tool_executor.ask_again",
            Input::Proceed => "tool_executor.proceed",
            Input::File(_) => "tool_executor.file",
            Input::Started(_) => "tool_executor.started",
            Input::StdinTaken(_) => "tool_executor.stdin_taken",
            Input::Snapshot(_) => "tool_executor.snapshot",
        },
        ExecutorMsg::Started(_) => "tool_executor.started",
        ExecutorMsg::TaskDied(_) => "tool_executor.task_died",
    }
}

impl ExecutorState {
    fn carry_out(&mut self, myself: &ActorRef<ExecutorMsg>, effect: Effect) {
        let call = self.args.setup.run.call.clone();
        match effect {
            Effect::File { request, escalated } => {
                let inits = Arc::clone(&self.args.inits);
                let policy = if escalated {
                    outside(&self.args.policy)
                } else {
                    Arc::clone(&self.args.policy)
                };
                self.wait_for(myself, async move {
                    Input::File(inits.file(&policy, request).await)
                });
            }
            Effect::Ask(question) => {
                if self
                    .args
                    .approval
                    .cast(ApprovalMsg::Request(question))
                    .is_err()
                {
                    debug!(%call, "approval is down; asked again when it is back");
                }
            }
            Effect::Intend(intent) => self.tell(ChildReport::Intends { call, intent }),
            Effect::Start {
                argv,
                cwd,
                tty,
                escalated,
            } => {
                let policy = if escalated {
                    outside(&self.args.policy)
                } else {
                    Arc::clone(&self.args.policy)
                };
                self.start(ProcessSpec {
                    id: self.args.setup.process,
                    item: ItemId::call(&call),
                    call,
                    argv,
                    cwd,
                    tty,
                    policy,
                });
            }
            Effect::Wait { from, within_ms } => self.wait(myself, from, within_ms),
            Effect::Stdin(bytes) => self.stdin(myself, bytes),
            Effect::Kill { now } => self.to_process(ProcessMsg::Cancel { now }),
            Effect::Release => {
                self.to_process(ProcessMsg::Release);
                let process = self.process_id();
                self.tell(ChildReport::ProcessGone { process });
            }
            Effect::Yield { offset, expires_ms } => {
                let process = self.process_id();
                self.tell(ChildReport::Yielded {
                    process,
                    offset,
                    expires_ms,
                });
            }
            Effect::Seen(files) => self.tell(ChildReport::Seen(files)),
            Effect::Finish(outcome) => {
                self.tell(ChildReport::Finished { call, outcome });
                myself.stop(Some(DONE.to_owned()));
            }
            Effect::Lost(cause) => {
                warn!(%call, cause, "lost what worked for a call");
                self.tell(ChildReport::Lost { call, cause });
                myself.stop(Some(DONE.to_owned()));
            }
        }
    }

    fn process_id(&self) -> interpreter_messages::ProcessId {
        match &self.args.setup.run.operation {
            interpreter_messages::tool::Operation::WriteStdin(order) => order.process,
            _ => self.args.setup.process,
        }
    }

    fn tell(&self, report: ChildReport) {
        // A pool that is gone has taken this actor with it.
        let _ = self.args.pool.cast(ToolPoolMsg::Child(report));
    }

    fn to_process(&self, message: ProcessMsg) {
        if let Some(process) = &self.process {
            // One that is gone needs nothing any more.
            let _ = process.cast(message);
        }
    }

    /// Runs a future in a task of this actor's own and turns its end into a message, also when it panics.
    fn wait_for(
        &mut self,
        myself: &ActorRef<ExecutorMsg>,
        future: impl Future<Output = Input> + Send + 'static,
    ) {
        let task = tokio::spawn(future);
        self.task = Some(AbortOnDrop::new(&task));
        let myself = myself.clone();
        tokio::spawn(async move {
            let message = match task.await {
                Ok(input) => ExecutorMsg::Input(input),
                Err(error) if error.is_cancelled() => return,
                Err(error) => ExecutorMsg::TaskDied(error.to_string()),
            };
            // An executor that is gone was cancelled.
            let _ = myself.cast(message);
        });
    }

    /// Starts a command's actor. Not in a task of this actor: when the call is cancelled meanwhile, ToolPool must still
    /// learn of the command, to end it.
    fn start(&self, spec: ProcessSpec) {
        let (call, process) = (spec.call.clone(), spec.id);
        let pool = self.args.pool.clone();
        let start = (self.args.spawn_process)(spec, pool.get_cell());
        let task = tokio::spawn(start);
        tokio::spawn(async move {
            let result = task
                .await
                .unwrap_or_else(|error| Err(format!("starting the command failed: {error}")));
            let report = ChildReport::Started {
                call,
                process,
                result,
            };
            let _ = pool.cast(ToolPoolMsg::Child(report));
        });
    }

    fn wait(&mut self, myself: &ActorRef<ExecutorMsg>, from: u64, within_ms: Option<u64>) {
        let process = self.process.clone();
        let longest = within_ms.map(|ms| Duration::from_millis(ms) + WAIT_SLACK);
        self.wait_for(myself, async move {
            let Some(process) = process else {
                return Input::Snapshot(None);
            };
            let ask = |reply| ProcessMsg::Wait {
                from,
                within_ms,
                reply,
            };
            match process.call(ask, longest).await {
                Ok(CallResult::Success(snapshot)) => Input::Snapshot(Some(snapshot)),
                _ => Input::Snapshot(None),
            }
        });
    }

    fn stdin(&mut self, myself: &ActorRef<ExecutorMsg>, bytes: Vec<u8>) {
        let process = self.process.clone();
        self.wait_for(myself, async move {
            let gone = || Input::StdinTaken(Err("the command has ended".to_owned()));
            let Some(process) = process else {
                return gone();
            };
            let ask = |reply| ProcessMsg::Stdin { bytes, reply };
            match process.call(ask, Some(WAIT_SLACK)).await {
                Ok(CallResult::Success(taken)) => Input::StdinTaken(taken),
                Ok(CallResult::Timeout) => {
                    Input::StdinTaken(Err("the command does not read its input".to_owned()))
                }
                _ => gone(),
            }
        });
    }
}
