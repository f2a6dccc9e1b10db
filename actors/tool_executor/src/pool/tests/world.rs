//! A world to run a pool in: everything but the pool and its executors is a stand-in.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use interpreter_messages::approval::{ApprovalMsg, ApprovalRequest, Decision};
use interpreter_messages::journal::SessionMeta;
use interpreter_messages::model::{Endpoint, ModelChoice, ModelProfile, Transport, WireApi};
use interpreter_messages::policy::{ApprovalPolicy, OnNoUi, SandboxMode, SandboxPolicy};
use interpreter_messages::session::{SessionMsg, SessionSettings};
use interpreter_messages::sink::Attachment;
use interpreter_messages::tool::{
    CallPhase, CallStatus, Exec, Intent, Operation, Read, RunCall, ToolEvent, ToolOutcome,
    ToolPoolMsg, ToolPoolView, Write, WriteStdin,
};
use interpreter_messages::ui::Event;
use interpreter_messages::{
    ApprovalId, CallId, EventSink, FaultSwitch, Peer, ProcessId, SessionId, TurnId, UiId,
};
use ractor::{Actor, ActorRef};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use super::super::{ToolPool, ToolPoolArgs};
use super::fakes::{FakeApproval, Forward, Log, spawn_init, spawn_process};
use crate::tests::policy;

/// Longer than anything waits; under paused time it costs nothing.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) struct World {
    pub dir: TempDir,
    pub pool: ActorRef<ToolPoolMsg>,
    pool_task: JoinHandle<()>,
    pub approval: Peer<ApprovalMsg>,
    pub approval_actor: ActorRef<ApprovalMsg>,
    session: UnboundedReceiver<SessionMsg>,
    questions: UnboundedReceiver<ApprovalRequest>,
    pub log: Arc<Log>,
    sink: EventSink,
}

/// Panics once at the n-th pass of a point.
pub(super) fn fault_at(point: &'static str, pass: usize) -> FaultSwitch {
    let passes = AtomicUsize::new(0);
    FaultSwitch::new(move |at| {
        if at == point && passes.fetch_add(1, Ordering::SeqCst) + 1 == pass {
            panic!("fault at {point}");
        }
    })
}

impl World {
    pub async fn new() -> Self {
        Self::with(
            ApprovalPolicy::OnRequest,
            SandboxMode::WorkspaceWrite,
            FaultSwitch::default(),
        )
        .await
    }

    pub async fn with(approval: ApprovalPolicy, mode: SandboxMode, fault: FaultSwitch) -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let log = Arc::new(Log::default());
        let (tell_session, session) = unbounded_channel();
        let (session_actor, _) = Actor::spawn(None, Forward, tell_session)
            .await
            .expect("a session");
        let (tell_questions, questions) = unbounded_channel();
        let (approval_actor, _) = Actor::spawn(None, FakeApproval, tell_questions)
            .await
            .expect("an approval");
        let approval_peer = Peer::to(approval_actor.clone());
        let sink = EventSink::new();
        sink.attach(Attachment {
            ui: UiId(1),
            deltas: true,
            lossless: true,
            since: None,
            wake: Box::new(|| ()),
        });
        let args = ToolPoolArgs {
            settings: Arc::new(settings(approval, policy(mode, dir.path()))),
            session: Peer::to(session_actor),
            approval: approval_peer.clone(),
            sink: sink.clone(),
            spawn_process: spawn_process(&log),
            spawn_init: spawn_init(&log),
            fault,
        };
        let (pool, pool_task) = Actor::spawn(None, ToolPool, args).await.expect("a pool");
        Self {
            dir,
            pool,
            pool_task,
            approval: approval_peer,
            approval_actor,
            session,
            questions,
            log,
            sink,
        }
    }

    pub fn send(&self, message: ToolPoolMsg) {
        self.pool.cast(message).expect("the pool runs");
    }

    pub fn run(&self, call: &str, operation: Operation) {
        self.send(ToolPoolMsg::Run(self.run_call(call, operation)));
    }

    pub fn run_call(&self, call: &str, operation: Operation) -> RunCall {
        RunCall {
            turn: TurnId(1),
            call: CallId::new(call),
            operation,
            cwd: self.dir.path().to_owned(),
        }
    }

    pub fn proceed(&self, call: &str) {
        self.send(ToolPoolMsg::Proceed {
            call: CallId::new(call),
        });
    }

    pub fn decide(&self, approval: &ApprovalId, decision: Decision) {
        let call = approval.as_str().split('/').next().expect("a call");
        self.send(ToolPoolMsg::Decided {
            call: CallId::new(call),
            approval: approval.clone(),
            decision,
        });
    }

    /// The next message to Session.
    pub async fn told(&mut self) -> SessionMsg {
        tokio::time::timeout(PATIENCE, self.session.recv())
            .await
            .expect("Session is told something")
            .expect("Session runs")
    }

    pub async fn intends(&mut self, call: &str) -> Intent {
        match self.told().await {
            SessionMsg::Tool(ToolEvent::Intends { call: of, intent }) if of.as_str() == call => {
                intent
            }
            other => panic!("no intent of {call}: {other:?}"),
        }
    }

    pub async fn finished(&mut self, call: &str) -> ToolOutcome {
        match self.told().await {
            SessionMsg::Tool(ToolEvent::Finished { call: of, outcome }) if of.as_str() == call => {
                outcome
            }
            other => panic!("no end of {call}: {other:?}"),
        }
    }

    pub async fn question(&mut self) -> ApprovalRequest {
        tokio::time::timeout(PATIENCE, self.questions.recv())
            .await
            .expect("a question is asked")
            .expect("Approval runs")
    }

    /// Approves the next question.
    pub async fn approve(&mut self) -> ApprovalRequest {
        let question = self.question().await;
        self.decide(&question.id, Decision::Approve);
        question
    }

    pub async fn report(&mut self) -> Vec<CallStatus> {
        self.send(ToolPoolMsg::Report);
        match self.told().await {
            SessionMsg::ToolReport(calls) => calls,
            other => panic!("no report: {other:?}"),
        }
    }

    pub async fn view(&self) -> ToolPoolView {
        ractor::call!(self.pool, ToolPoolMsg::View).expect("the pool answers")
    }

    /// Nothing is told to Session or asked of Approval that was not awaited. A round trip through the pool comes first.
    pub async fn assert_quiet(&mut self) {
        self.view().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        self.view().await;
        assert!(
            self.session.is_empty(),
            "Session was told {:?}",
            self.session.try_recv()
        );
        assert!(
            self.questions.is_empty(),
            "Approval was asked {:?}",
            self.questions.try_recv()
        );
    }

    /// Waits until the pool's picture is as wanted.
    pub async fn until(&self, wanted: impl Fn(&ToolPoolView) -> bool) {
        let settled = async {
            while !wanted(&self.view().await) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, settled)
            .await
            .expect("the pool settles");
    }

    /// Starts a command that runs on, as call `c` with its process.
    pub async fn yielded(&mut self, call: &str, script: &str) -> ToolOutcome {
        self.run(call, exec_with(script, |exec| exec.yield_ms = Some(1_000)));
        self.approve().await;
        self.intends(call).await;
        self.proceed(call);
        self.finished(call).await
    }

    pub async fn stop(self) -> Arc<Log> {
        self.pool
            .stop_and_wait(Some("test".to_owned()), Some(PATIENCE))
            .await
            .expect("the pool ends");
        self.pool_task.await.expect("the pool ends in order");
        self.log
    }

    /// What UIs were told since the last time.
    pub fn events(&self) -> Vec<Event> {
        let drained = self.sink.drain(UiId(1));
        drained
            .events
            .into_iter()
            .map(|numbered| numbered.event)
            .collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }
}

pub(super) fn write(name: &str, content: &str) -> Operation {
    Operation::Write(Write {
        path: name.into(),
        content: content.to_owned(),
    })
}

pub(super) fn read(name: &str) -> Operation {
    Operation::Read(Read {
        path: name.into(),
        offset: None,
        limit: None,
    })
}

pub(super) fn exec(script: &str) -> Operation {
    exec_with(script, |_| {})
}

pub(super) fn exec_with(script: &str, change: impl FnOnce(&mut Exec)) -> Operation {
    let mut exec = Exec {
        command: script.to_owned(),
        workdir: None,
        shell: None,
        login: false,
        tty: false,
        yield_ms: None,
        timeout_ms: None,
        max_output_tokens: None,
        escalate: false,
        justification: None,
    };
    change(&mut exec);
    Operation::Exec(exec)
}

pub(super) fn stdin(process: u64, chars: &str) -> Operation {
    Operation::WriteStdin(WriteStdin {
        process: ProcessId(process),
        chars: chars.to_owned(),
        yield_ms: None,
        max_output_tokens: None,
    })
}

pub(super) fn is_busy(status: &CallStatus) -> bool {
    matches!(status.phase, CallPhase::Busy)
}

fn settings(approval: ApprovalPolicy, sandbox: SandboxPolicy) -> SessionSettings {
    let profile = ModelProfile {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        provider_name: "P".to_owned(),
        wire: WireApi::Chat,
        context_window: None,
        vision: false,
        reasoning: false,
        thinking_toggle: false,
        effort: None,
        echo_reasoning: false,
        prices: None,
    };
    let endpoint = Endpoint {
        provider: "p".to_owned(),
        transport: Transport::Replay {
            script: PathBuf::new(),
        },
        request_max_retries: 0,
        stream_max_retries: 0,
        idle_timeout: Duration::from_secs(1),
    };
    let cwd = sandbox.roots[0].clone();
    SessionSettings {
        meta: SessionMeta {
            id: SessionId::now(),
            started: jiff::Timestamp::UNIX_EPOCH,
            cwd: cwd.clone(),
            source: "test".to_owned(),
            version: String::new(),
            provider: "p".to_owned(),
            harness: "native".to_owned(),
            forked_from: None,
            parent: None,
        },
        cwd,
        model: ModelChoice {
            profile: Arc::new(profile),
            endpoint: Arc::new(endpoint),
        },
        harness: "native".to_owned(),
        sandbox: Arc::new(sandbox),
        approval,
        on_no_ui: OnNoUi::Deny,
        approval_timeout: None,
        max_requests_per_turn: 10,
        project_doc_max_bytes: 0,
        project_doc_fallback: Vec::new(),
        root_markers: Vec::new(),
    }
}
