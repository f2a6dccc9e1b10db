//! The stand-ins around a pool: a session and an Approval that forward what they hear, an init that works on files in
//! this process, and commands that follow the words of their script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interpreter_messages::ProcessId;
use interpreter_messages::approval::{ApprovalMsg, ApprovalRequest};
use interpreter_messages::policy::{SandboxMode, SandboxPolicy};
use interpreter_messages::process::{
    ProcessMsg, ProcessSnapshot, ProcessSpec, SandboxInitMsg, SpawnFailure, SpawnInit, SpawnProcess,
};
use interpreter_messages::session::SessionMsg;
use interpreter_messages::tool::ExitStatus;
use interpreter_messages::worker::FileOrder;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::file_worker::serve;

/// What the stand-ins saw, and how they are to behave.
#[derive(Default)]
pub(super) struct Log {
    /// File orders carried out: name and sandbox mode.
    pub orders: Mutex<Vec<(&'static str, SandboxMode)>>,
    /// Commands started.
    pub started: Mutex<Vec<ProcessSpec>>,
    /// Orders to end a command.
    pub cancels: Mutex<Vec<(ProcessId, bool)>>,
    /// Bytes written to commands.
    pub stdin: Mutex<Vec<u8>>,
    pub inits: AtomicUsize,
    /// The init dies before (`false`) or after (`true`) it carries out the next order of this name.
    pub die_at: Mutex<Option<(&'static str, bool)>>,
    /// Commands do not start before this is notified.
    pub start_gate: Mutex<Option<Arc<Notify>>>,
    /// Inits cannot be built.
    pub no_boundary: Mutex<bool>,
}

impl Log {
    pub fn orders(&self) -> Vec<&'static str> {
        let orders = self.orders.lock().expect("whole");
        orders.iter().map(|(name, _)| *name).collect()
    }

    pub fn started(&self) -> usize {
        self.started.lock().expect("whole").len()
    }

    pub fn cancels(&self) -> Vec<(ProcessId, bool)> {
        self.cancels.lock().expect("whole").clone()
    }
}

pub(super) struct Forward;

impl Actor for Forward {
    type Msg = SessionMsg;
    type State = UnboundedSender<SessionMsg>;
    type Arguments = UnboundedSender<SessionMsg>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        to: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(to)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = to.send(message);
        Ok(())
    }
}

pub(super) struct FakeApproval;

impl Actor for FakeApproval {
    type Msg = ApprovalMsg;
    type State = UnboundedSender<ApprovalRequest>;
    type Arguments = UnboundedSender<ApprovalRequest>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        to: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(to)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let ApprovalMsg::Request(question) = message {
            let _ = to.send(question);
        }
        Ok(())
    }
}

pub(super) fn spawn_init(log: &Arc<Log>) -> SpawnInit {
    let log = Arc::clone(log);
    Arc::new(move |policy, supervisor| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            if *log.no_boundary.lock().expect("whole") {
                return Err("the sandbox cannot be set up: no user namespaces".to_owned());
            }
            log.inits.fetch_add(1, Ordering::SeqCst);
            let args = (log, policy);
            let spawned = Actor::spawn_linked(None, FakeInit, args, supervisor).await;
            spawned
                .map(|(init, _)| init)
                .map_err(|error| error.to_string())
        })
    })
}

struct FakeInit;

impl Actor for FakeInit {
    type Msg = SandboxInitMsg;
    type State = (Arc<Log>, Arc<SandboxPolicy>);
    type Arguments = Self::State;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        (log, policy): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let SandboxInitMsg::File { request, reply } = message else {
            return Ok(());
        };
        let name = match &request.order {
            FileOrder::Look { .. } => "look",
            FileOrder::Prepare { .. } => "prepare",
            FileOrder::Apply { .. } => "apply",
            FileOrder::Hash { .. } => "hash",
        };
        let dies = {
            let mut die_at = log.die_at.lock().expect("whole");
            match *die_at {
                Some((at, after)) if at == name => {
                    *die_at = None;
                    Some(after)
                }
                _ => None,
            }
        };
        if dies == Some(false) {
            let _ = reply.send(Err(SpawnFailure::InitDied {
                reason: "killed".to_owned(),
            }));
            return Err("the init process died".into());
        }
        log.orders.lock().expect("whole").push((name, policy.mode));
        let answer = serve(request);
        if dies == Some(true) {
            return Err("the init process died".into());
        }
        let _ = reply.send(Ok(answer));
        Ok(())
    }
}

pub(super) fn spawn_process(log: &Arc<Log>) -> SpawnProcess {
    let log = Arc::clone(log);
    Arc::new(move |spec, supervisor| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            log.started.lock().expect("whole").push(spec.clone());
            let gate = log.start_gate.lock().expect("whole").clone();
            if let Some(gate) = gate {
                gate.notified().await;
            }
            let spawned = Actor::spawn_linked(None, FakeProcess, (log, spec), supervisor).await;
            spawned
                .map(|(process, _)| process)
                .map_err(|error| error.to_string())
        })
    })
}

/// A command by the words of its script: `echo TEXT` writes and ends; `run` writes `up` and runs until it is ended;
/// `deaf` too, but only `now` ends it; `die` crashes its actor when it is waited for.
struct FakeProcess;

pub(super) struct FakeCommand {
    log: Arc<Log>,
    spec: ProcessSpec,
    output: Vec<u8>,
    exit: Option<ExitStatus>,
    released: bool,
    waiting: Vec<(u64, u64, RpcReplyPort<ProcessSnapshot>)>,
    ticks: u64,
}

impl Actor for FakeProcess {
    type Msg = ProcessMsg;
    type State = FakeCommand;
    type Arguments = (Arc<Log>, ProcessSpec);

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        (log, spec): Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let script = spec.argv.last().cloned().unwrap_or_default();
        let (output, exit) = match script.strip_prefix("echo ") {
            Some(text) => (format!("{text}\n"), Some(ExitStatus::Code(0))),
            None => ("up\n".to_owned(), None),
        };
        Ok(FakeCommand {
            log,
            spec,
            output: output.into_bytes(),
            exit,
            released: false,
            waiting: Vec::new(),
            ticks: 0,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let is = |script: &str| state.spec.argv.last().is_some_and(|last| last == script);
        match message {
            ProcessMsg::Wait { .. } if is("die") => {
                return Err("the command's actor crashed".into());
            }
            ProcessMsg::Wait {
                from,
                within_ms,
                reply,
            } => {
                state.ticks += 1;
                let tick = state.ticks;
                state.waiting.push((tick, from, reply));
                if let Some(ms) = within_ms {
                    myself.send_after(Duration::from_millis(ms), move || {
                        ProcessMsg::Internal(Box::new(tick))
                    });
                }
            }
            ProcessMsg::Internal(tick) => {
                let tick = tick.downcast::<u64>().map_err(|_| "not a tick")?;
                state.answer(Some(*tick));
            }
            ProcessMsg::Stdin { bytes, reply } => {
                state.output.extend_from_slice(&bytes);
                state.log.stdin.lock().expect("whole").extend(bytes);
                let _ = reply.send(Ok(()));
            }
            ProcessMsg::Cancel { now } => {
                state
                    .log
                    .cancels
                    .lock()
                    .expect("whole")
                    .push((state.spec.id, now));
                if state.exit.is_none() && (now || !is("deaf")) {
                    state.output.extend_from_slice(b"bye\n");
                    state.exit = Some(ExitStatus::Signal(if now { 9 } else { 2 }));
                }
            }
            ProcessMsg::Release => state.released = true,
            ProcessMsg::Resize { .. } => {}
        }
        if state.exit.is_some() {
            state.answer(None);
            if state.released {
                myself.stop(None);
            }
        }
        Ok(())
    }
}

impl FakeCommand {
    /// Answers one waiter, or all.
    fn answer(&mut self, only: Option<u64>) {
        for (tick, from, reply) in std::mem::take(&mut self.waiting) {
            if only.is_some_and(|only| only != tick) {
                self.waiting.push((tick, from, reply));
                continue;
            }
            let output = self.output[usize::try_from(from).expect("small")..].to_vec();
            let _ = reply.send(ProcessSnapshot {
                lines: memchr::memchr_iter(b'\n', &output).count() as u64,
                output,
                gap: None,
                offset: self.output.len() as u64,
                exit: self.exit,
                denial: None,
                failure: None,
            });
        }
    }
}
