//! Who starts whom. Every actor is started in this file, and handed its peers here.
//!
//! ```text
//! Root
//! ├─ UiHub                    who looks at which session
//! │   └─ Ui …                 exec, text
//! └─ SessionHub               ids → handles
//!     └─ SessionSupervisor …  one per conversation
//!         1 Journal           the writer of the session's file
//!         2 Approval          questions and grants
//!         3 ToolPool          ─┬─ ToolExecutor …    one per call
//!         │                    ├─ SandboxInit …     one per policy: spawner and file worker
//!         │                    └─ SandboxProcess …  one per command
//!         4 Harness           what the model sees
//!         5 Session           drives the turn
//!         └─ ModelStream …    one per request
//! ```
//! Parts start from 1 to 5 and stop from 5 to 1. When one crashes, only it is started again; the others keep the same
//! [`Peer`] to it, which is refilled.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use interpreter_approval::{Approval, ApprovalArgs};
use interpreter_frontend::{UiHub, UiHubArgs};
use interpreter_harness::{Harness, HarnessArgs, Profile};
use interpreter_journal::{Journal, JournalArgs, JournalStore, SyncPolicy};
use interpreter_messages::harness::HarnessMsg;
use interpreter_messages::hub::{SessionHandle, SessionHubMsg, UiHubMsg};
use interpreter_messages::journal::JournalMsg;
use interpreter_messages::session::{SessionMsg, SessionSettings, Who};
use interpreter_messages::stream::StartStream;
use interpreter_messages::wire::SharedEncoder;
use interpreter_messages::{FaultSwitch, Peer};
use interpreter_model_stream::{HttpClient, ModelStream, ModelStreamArgs};
use interpreter_sandbox_process::Sandboxes;
use interpreter_session::{Session, SessionArgs};
use interpreter_tool_executor::{ToolPool, ToolPoolArgs};
use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use tokio::task::JoinHandle;

use crate::root::{Root, RootMsg};
use crate::session_hub::{SessionHub, Sessions};

/// How long an ordered end of everything may take; a second signal does not wait for it (DESIGN §7).
pub const SHUTDOWN_BUDGET: Duration = Duration::from_secs(12);

/// What all sessions of the process share.
#[derive(Clone)]
pub struct World {
    /// `INTERPRETER_HOME`.
    pub home: PathBuf,
    /// This executable, for the sandbox's other role.
    pub program: PathBuf,
    /// When journals go to the disk.
    pub sync: SyncPolicy,
    /// Kept connections to providers.
    pub http: HttpClient,
    /// Fault injection; off outside tests.
    pub fault: FaultSwitch,
    /// Who looks at what.
    pub ui_hub: Peer<UiHubMsg>,
    /// The open sessions.
    pub session_hub: Peer<SessionHubMsg>,
    /// Their handles; survives a crash of SessionHub.
    pub sessions: Sessions,
}

impl World {
    /// A world without sessions.
    #[must_use]
    pub fn new(home: PathBuf, sync: SyncPolicy, fault: FaultSwitch) -> Self {
        Self {
            home,
            program: PathBuf::from("/proc/self/exe"),
            sync,
            http: HttpClient::new(),
            fault,
            ui_hub: Peer::empty(),
            session_hub: Peer::empty(),
            sessions: Sessions::default(),
        }
    }
}

/// The running tree.
pub struct Tree {
    /// The root supervisor.
    pub root: ActorRef<RootMsg>,
    /// Ends when the root ended.
    pub ended: JoinHandle<()>,
    /// What the sessions share.
    pub world: World,
}

impl Tree {
    /// Starts the root and what is always there.
    ///
    /// # Errors
    /// When an actor cannot start.
    pub async fn start(world: World) -> Result<Self, SpawnErr> {
        let (root, ended) = Actor::spawn(None, Root, world.clone()).await?;
        Ok(Self { root, ended, world })
    }

    /// Ends everything in order; returns whether that was done within [`SHUTDOWN_BUDGET`].
    pub async fn shutdown(self) -> bool {
        self.root
            .stop_and_wait(Some("shutdown".to_owned()), Some(SHUTDOWN_BUDGET))
            .await
            .is_ok()
    }
}

/// Children of [`Root`], in start order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopLevel {
    /// Who looks at what.
    UiHub,
    /// The open sessions.
    SessionHub,
}

impl TopLevel {
    /// Start order.
    pub const ALL: [Self; 2] = [Self::UiHub, Self::SessionHub];

    /// Starts this child under the root.
    ///
    /// # Errors
    /// When the actor cannot start.
    pub async fn start(self, world: &World, root: ActorCell) -> Result<ActorCell, SpawnErr> {
        match self {
            Self::UiHub => {
                let args = UiHubArgs {
                    fault: world.fault.clone(),
                };
                let (hub, _) = Actor::spawn_linked(None, UiHub, args, root).await?;
                world.ui_hub.fill(hub.clone());
                Ok(hub.get_cell())
            }
            Self::SessionHub => {
                let (hub, _) = Actor::spawn_linked(None, SessionHub, world.clone(), root).await?;
                world.session_hub.fill(hub.clone());
                Ok(hub.get_cell())
            }
        }
    }
}

/// Parts of a session, in start order.
pub const PARTS: [Who; 5] = [
    Who::Journal,
    Who::Approval,
    Who::ToolPool,
    Who::Harness,
    Who::Session,
];

/// What the parts of one session are started with. It outlives each of them, and their supervisor.
#[derive(Clone)]
pub struct Parts {
    /// How others reach the session.
    pub handle: SessionHandle,
    /// The journal's writer.
    pub journal: Peer<JournalMsg>,
    /// The shaper.
    pub harness: Peer<HarnessMsg>,
    /// The settings.
    pub settings: Arc<SessionSettings>,
    /// The journal's file, with its lock.
    pub store: Arc<JournalStore>,
    /// The harness.
    pub profile: Arc<Profile>,
    /// Makes bytes for the model's API.
    pub encoder: SharedEncoder,
    /// Starts sandboxed processes.
    pub sandboxes: Sandboxes,
    /// Whether the journal held something when the session was opened.
    pub resumed: bool,
    /// What all sessions share.
    pub world: World,
}

impl Parts {
    /// Starts one part under the session's supervisor and fills its peer.
    ///
    /// `crashes`: how often the driver crashed in the current turn; `first`: whether this is the session's first start.
    ///
    /// # Errors
    /// When the actor cannot start.
    pub async fn start(
        &self,
        who: Who,
        crashes: u32,
        first: bool,
        supervisor: ActorCell,
    ) -> Result<ActorCell, SpawnErr> {
        let handle = &self.handle;
        let fault = self.world.fault.clone();
        match who {
            Who::Journal => {
                let args = JournalArgs {
                    store: Arc::clone(&self.store),
                    session: handle.session.clone(),
                    approval: handle.approval.clone(),
                    sync: self.world.sync,
                    fault,
                };
                let (actor, _) = Actor::spawn_linked(None, Journal, args, supervisor).await?;
                self.journal.fill(actor.clone());
                Ok(actor.get_cell())
            }
            Who::Approval => {
                let args = ApprovalArgs {
                    session: handle.id,
                    settings: Arc::clone(&self.settings),
                    journal: self.journal.clone(),
                    tools: handle.tools.clone(),
                    driver: handle.session.clone(),
                    ui_hub: self.world.ui_hub.clone(),
                    sink: handle.sink.clone(),
                    now: jiff::Timestamp::now,
                    fault,
                };
                let (actor, _) = Actor::spawn_linked(None, Approval, args, supervisor).await?;
                handle.approval.fill(actor.clone());
                // Answered to the peer, which was empty until now. A hub that is down asks everybody when it is back.
                let _ = self
                    .world
                    .ui_hub
                    .cast(UiHubMsg::WhoCanAnswer { session: handle.id });
                Ok(actor.get_cell())
            }
            Who::ToolPool => {
                let args = ToolPoolArgs {
                    settings: Arc::clone(&self.settings),
                    session: handle.session.clone(),
                    approval: handle.approval.clone(),
                    sink: handle.sink.clone(),
                    spawn_process: self.sandboxes.spawn_process(),
                    spawn_init: self.sandboxes.spawn_init(),
                    fault,
                };
                let (actor, _) = Actor::spawn_linked(None, ToolPool, args, supervisor).await?;
                handle.tools.fill(actor.clone());
                Ok(actor.get_cell())
            }
            Who::Harness => {
                let args = HarnessArgs {
                    settings: Arc::clone(&self.settings),
                    profile: Arc::clone(&self.profile),
                    encoder: Arc::clone(&self.encoder),
                    session: handle.session.clone(),
                    home: self.world.home.clone(),
                    fault,
                };
                let (actor, _) = Actor::spawn_linked(None, Harness, args, supervisor).await?;
                self.harness.fill(actor.clone());
                Ok(actor.get_cell())
            }
            Who::Session => {
                let args = SessionArgs {
                    settings: Arc::clone(&self.settings),
                    journal: self.journal.clone(),
                    approval: handle.approval.clone(),
                    tools: handle.tools.clone(),
                    harness: self.harness.clone(),
                    supervisor: handle.supervisor.clone(),
                    sink: handle.sink.clone(),
                    crashes,
                    resumed: first && self.resumed,
                    now: jiff::Timestamp::now,
                    fault,
                };
                let (actor, _) = Actor::spawn_linked(None, Session, args, supervisor).await?;
                handle.session.fill(actor.clone());
                // Answers to what it sent while it started had nowhere to go: it asks again.
                let _ = actor.cast(SessionMsg::PeerRestarted(Who::Session));
                Ok(actor.get_cell())
            }
        }
    }

    /// Empties the peer of a part that ended.
    pub fn clear(&self, who: Who) {
        match who {
            Who::Journal => self.journal.clear(),
            Who::Approval => self.handle.approval.clear(),
            Who::ToolPool => self.handle.tools.clear(),
            Who::Harness => self.harness.clear(),
            Who::Session => self.handle.session.clear(),
        }
    }

    /// Starts a ModelStream under the session's supervisor.
    ///
    /// # Errors
    /// When the actor cannot start.
    pub async fn start_stream(
        &self,
        start: StartStream,
        supervisor: ActorCell,
    ) -> Result<ActorCell, SpawnErr> {
        let args = ModelStreamArgs {
            start,
            session: self.handle.session.clone(),
            sink: self.handle.sink.clone(),
            http: self.world.http.clone(),
            fault: self.world.fault.clone(),
        };
        let (actor, _) = Actor::spawn_linked(None, ModelStream, args, supervisor).await?;
        Ok(actor.get_cell())
    }
}
