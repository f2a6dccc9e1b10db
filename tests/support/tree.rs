//! The tree in this process, with a scripted model over HTTP and a scripted user interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interpreter_messages::approval::{ApprovalMsg, ApprovalRequest, Decision};
use interpreter_messages::hub::{Origin, SessionHandle, SessionHubMsg, UiHubMsg};
use interpreter_messages::journal::{Part, SessionMeta};
use interpreter_messages::model::{
    Endpoint, HttpTransport, ModelChoice, ModelProfile, Transport, WireApi,
};
use interpreter_messages::policy::{
    ApprovalPolicy, EnvInherit, EnvPolicy, OnNoUi, SandboxMode, SandboxPolicy,
};
use interpreter_messages::session::{SessionMsg, SessionSettings, Submit};
use interpreter_messages::ui::{Event, Numbered, UiMsg};
use interpreter_messages::{ClientId, FaultSwitch, Peer, SessionId, UiId};
use interpreter_restart::AbortOnDrop;
use open_interpreter::tree::{Tree, World as Shared};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;

use super::program::World;
use super::server::Server;

/// Longer than anything here takes; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running tree with one session.
pub struct Running {
    /// The tree.
    pub tree: Tree,
    /// The session.
    pub handle: SessionHandle,
    /// What the user interface sees.
    pub events: mpsc::UnboundedReceiver<Numbered>,
    _ui: AbortOnDrop,
}

/// Settings of a session in a scratch world, with its model at this server.
pub fn settings(world: &World, server: &Server, approval: ApprovalPolicy) -> SessionSettings {
    let cwd = world
        .project()
        .canonicalize()
        .expect("the project is there");
    let sandbox = SandboxPolicy {
        mode: SandboxMode::WorkspaceWrite,
        roots: vec![cwd.clone()],
        protected: [".git", ".agents", ".codex", ".openinterpreter"]
            .map(str::to_owned)
            .to_vec(),
        deny_read: Vec::new(),
        network: false,
        share_tmp: false,
        env: EnvPolicy {
            inherit: EnvInherit::Core,
            exclude: Vec::new(),
            include_only: Vec::new(),
            set: Vec::new(),
            secrets: Vec::new(),
        },
    };
    let profile = ModelProfile {
        id: "mock-small".to_owned(),
        provider: "mock".to_owned(),
        provider_name: "Mock".to_owned(),
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
        provider: "mock".to_owned(),
        transport: Transport::Http(HttpTransport {
            base_url: server.base_url(),
            key: None,
            key_hint: None,
            headers: Vec::new(),
            query: Vec::new(),
        }),
        request_max_retries: 1,
        stream_max_retries: 3,
        idle_timeout: Duration::from_secs(20),
    };
    SessionSettings {
        meta: SessionMeta {
            id: SessionId::now(),
            started: jiff::Timestamp::now(),
            cwd: cwd.clone(),
            source: "test".to_owned(),
            version: "0".to_owned(),
            provider: "mock".to_owned(),
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
        max_requests_per_turn: 50,
        project_doc_max_bytes: 32 * 1024,
        project_doc_fallback: Vec::new(),
        root_markers: vec![".git".to_owned()],
    }
}

impl Running {
    /// Starts a tree, opens a session in it and attaches a user interface that answers every question alike.
    pub async fn start(
        world: &World,
        settings: SessionSettings,
        origin: Origin,
        fault: FaultSwitch,
        answer: Decision,
    ) -> Self {
        let mut shared = Shared::new(world.home(), interpreter_journal::SyncPolicy::Turn, fault);
        shared.program = env!("CARGO_BIN_EXE_interpreter").into();
        let tree = Tree::start(shared).await.expect("the tree starts");
        let settings = Box::new(settings);
        let handle = tree
            .world
            .session_hub
            .call(
                |reply| SessionHubMsg::Open {
                    settings,
                    origin,
                    reply,
                },
                PATIENCE,
            )
            .await
            .expect("the hub answers")
            .expect("the session opens");
        let (sender, events) = mpsc::unbounded_channel();
        let shared = Arc::new(ScriptedUiShared {
            handle: handle.clone(),
            hub: tree.world.ui_hub.clone(),
            events: sender,
            answer,
            seen: AtomicU64::new(0),
        });
        // Kept alive as a real user interface is: started again after a crash of it or of its hub.
        let (hub, slot) = (tree.world.ui_hub.clone(), Peer::empty());
        let ui = tokio::spawn(async move {
            let start = || (ScriptedUi, Arc::clone(&shared));
            drop(interpreter_frontend::host(&hub, &slot, start, || false).await);
        });
        Self {
            tree,
            handle,
            events,
            _ui: AbortOnDrop::new(&ui),
        }
    }

    /// Says something, again until it is accepted, as every UI does.
    pub async fn submit(&mut self, text: &str) {
        let client = ClientId::new(text);
        let parts = vec![Part::Text {
            text: text.to_owned(),
        }];
        for _ in 0..100 {
            // A driver that is down gets it in the next round.
            let _ = self.handle.session.cast(SessionMsg::Submit(Submit {
                client: client.clone(),
                parts: parts.clone(),
            }));
            let accepted = |event: &Event| matches!(event, Event::Accepted { client: other, .. } if *other == client);
            if self
                .wait_for(Duration::from_millis(500), accepted)
                .await
                .is_some()
            {
                return;
            }
        }
        panic!("the input was never accepted");
    }

    /// Waits until an event fits; gives everything up to it.
    pub async fn wait_for(
        &mut self,
        patience: Duration,
        fits: impl Fn(&Event) -> bool,
    ) -> Option<Vec<Event>> {
        let mut seen = Vec::new();
        let search = async {
            while let Some(Numbered { event, .. }) = self.events.recv().await {
                let found = fits(&event);
                seen.push(event);
                if found {
                    return true;
                }
            }
            false
        };
        tokio::time::timeout(patience, search)
            .await
            .unwrap_or(false)
            .then_some(seen)
    }

    /// Waits for the end of the turn, or of the session.
    pub async fn turn_end(&mut self) -> Event {
        let end = |event: &Event| matches!(event, Event::TurnEnded { .. } | Event::Broken { .. });
        let Some(seen) = self.wait_for(PATIENCE, end).await else {
            let view = self.handle.session.call(SessionMsg::View, PATIENCE).await;
            panic!("the turn does not end; the session is {view:?}");
        };
        seen.into_iter().next_back().expect("the end was seen")
    }
}

struct ScriptedUi;

/// What outlives a crash of the user interface.
struct ScriptedUiShared {
    handle: SessionHandle,
    hub: Peer<UiHubMsg>,
    events: mpsc::UnboundedSender<Numbered>,
    answer: Decision,
    seen: AtomicU64,
}

struct ScriptedUiState {
    shared: Arc<ScriptedUiShared>,
    id: Option<UiId>,
    waiting: Vec<ApprovalRequest>,
}

impl Actor for ScriptedUi {
    type Msg = UiMsg;
    type State = ScriptedUiState;
    type Arguments = Arc<ScriptedUiShared>;

    async fn pre_start(
        &self,
        myself: ActorRef<UiMsg>,
        shared: Self::Arguments,
    ) -> Result<ScriptedUiState, ActorProcessingErr> {
        let attach = UiHubMsg::Attach {
            session: shared.handle.clone(),
            ui: myself,
            can_answer: true,
            deltas: false,
            lossless: true,
            since: Some(shared.seen.load(Ordering::SeqCst)),
            ready: Event::Notice {
                text: "attached".to_owned(),
            },
            reply: None,
        };
        shared.hub.cast(attach).map_err(|_| "the hub is down")?;
        Ok(ScriptedUiState {
            shared,
            id: None,
            waiting: Vec::new(),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<UiMsg>,
        message: UiMsg,
        state: &mut ScriptedUiState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            UiMsg::Attached { ui } => state.id = Some(ui),
            UiMsg::Ask(request) => state.waiting.push(request),
            UiMsg::Close(reply) => drop(reply.send(())),
            _ => {}
        }
        let Some(id) = state.id else {
            return Ok(());
        };
        let shared = &state.shared;
        for request in state.waiting.drain(..) {
            let decision = shared.answer.clone();
            let answer = ApprovalMsg::Answer {
                id: request.id,
                decision,
                by: id,
                reply: None,
            };
            // An Approval that is down asks again when it is back.
            let _ = shared.handle.approval.cast(answer);
        }
        for numbered in shared.handle.sink.drain(id).events {
            shared.seen.fetch_max(numbered.number, Ordering::SeqCst);
            // The test may have seen enough.
            let _ = shared.events.send(numbered);
        }
        Ok(())
    }
}
