//! SessionHub: opens, finds and closes sessions.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use interpreter_harness::Profile;
use interpreter_journal::JournalStore;
use interpreter_messages::hub::{Origin, SessionHandle, SessionHubMsg};
use interpreter_messages::journal::{ErrorClass, JournalMsg, TurnError};
use interpreter_messages::session::{SessionSettings, SessionSupervisorMsg};
use interpreter_messages::{EventSink, Peer, SessionId};
use interpreter_restart::{Backoff, Intensity, Ledger, Verdict};
use interpreter_sandbox_process::{Sandboxes, SandboxesArgs};
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::session_supervisor::SessionSupervisor;
use crate::tree::{Parts, World};

/// How long a session's supervisor may take to end.
const STOP_BUDGET: Duration = Duration::from_secs(10);

/// Restarts of SessionSupervisors, all sessions together: a bug there is not a session's fault.
const INTENSITY: Intensity = Intensity {
    restarts: 3,
    within: Duration::from_secs(120),
};

/// The open sessions: readable without a message, and by the next SessionHub should this one crash.
#[derive(Clone, Default)]
pub struct Sessions(Arc<DashMap<SessionId, Parts>>);

impl Sessions {
    /// The handle of an open session.
    #[must_use]
    pub fn get(&self, id: SessionId) -> Option<SessionHandle> {
        self.0.get(&id).map(|parts| parts.handle.clone())
    }

    /// The journal of an open session.
    #[must_use]
    pub fn journal(&self, id: SessionId) -> Option<Peer<JournalMsg>> {
        self.0.get(&id).map(|parts| parts.journal.clone())
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Owns the SessionSupervisors; supervised by Root. A crash ends all of them (a parent's end kills its children), and
/// the next SessionHub opens every session again from its journal. It ends by closing all sessions at once.
pub struct SessionHub;

/// The supervisors of the open sessions.
pub struct SessionHubState {
    world: World,
    supervisors: Vec<(SessionId, ActorCell)>,
    ledger: Ledger,
}

impl Actor for SessionHub {
    type Msg = SessionHubMsg;
    type State = SessionHubState;
    type Arguments = World;

    async fn pre_start(
        &self,
        myself: ActorRef<SessionHubMsg>,
        world: World,
    ) -> Result<SessionHubState, ActorProcessingErr> {
        let mut state = SessionHubState {
            supervisors: Vec::new(),
            ledger: Ledger::new(INTENSITY, Backoff::NONE),
            world,
        };
        let before: Vec<Parts> = state
            .world
            .sessions
            .0
            .iter()
            .map(|entry| entry.clone())
            .collect();
        for parts in before {
            state.start_again(parts, &myself).await;
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionHubMsg>,
        message: SessionHubMsg,
        state: &mut SessionHubState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionHubMsg::Open {
                settings,
                origin,
                reply,
            } => {
                let (world, hub) = (state.world.clone(), myself.clone());
                tokio::spawn(async move {
                    let session = settings.meta.id;
                    let result = open(world, *settings, origin, hub.get_cell()).await;
                    // A hub that crashed meanwhile took the supervisor with it; the caller is told by the lost reply.
                    let _ = hub.cast(SessionHubMsg::Opened {
                        session,
                        result,
                        reply,
                    });
                });
            }
            SessionHubMsg::Opened {
                session,
                result,
                reply,
            } => state.opened(session, result, reply),
            SessionHubMsg::Close { session, reply } => state.close(session, reply),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SessionHubMsg>,
        event: SupervisionEvent,
        state: &mut SessionHubState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, cause) => {
                if let Some(parts) = state.forget(cell.get_id()) {
                    warn!(session = %parts.handle.id, %cause, "a session's supervisor crashed");
                    state.start_again(parts, &myself).await;
                }
            }
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                if let Some(parts) = state.forget(cell.get_id()) {
                    state.world.sessions.0.remove(&parts.handle.id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<SessionHubMsg>,
        state: &mut SessionHubState,
    ) -> Result<(), ActorProcessingErr> {
        let ends: Vec<_> = state
            .supervisors
            .drain(..)
            .map(|(_, cell)| {
                tokio::spawn(async move {
                    cell.stop_and_wait(Some("shutdown".to_owned()), Some(STOP_BUDGET))
                        .await
                        .is_ok()
                })
            })
            .collect();
        for end in ends {
            // One that misses its time is killed with this actor.
            let _ = end.await;
        }
        Ok(())
    }
}

impl SessionHubState {
    fn opened(
        &mut self,
        session: SessionId,
        result: Result<SessionHandle, TurnError>,
        reply: RpcReplyPort<Result<SessionHandle, TurnError>>,
    ) {
        if let Ok(handle) = &result
            && let Some(supervisor) = handle.supervisor.get()
        {
            self.supervisors.push((session, supervisor.get_cell()));
        }
        // The caller may have gone; the session then waits for the next one.
        let _ = reply.send(result);
    }

    fn close(&self, session: SessionId, reply: RpcReplyPort<()>) {
        let supervisor = self
            .world
            .sessions
            .get(session)
            .map(|handle| handle.supervisor);
        let order = SessionSupervisorMsg::Shutdown { done: reply };
        // No such session: the dropped reply port tells the caller.
        let _ = supervisor.map(|supervisor| supervisor.cast(order));
    }

    fn forget(&mut self, id: ActorId) -> Option<Parts> {
        let at = self
            .supervisors
            .iter()
            .position(|(_, cell)| cell.get_id() == id)?;
        let (session, _) = self.supervisors.remove(at);
        self.world
            .sessions
            .0
            .get(&session)
            .map(|parts| parts.clone())
    }

    /// Opens a session again as after a restart of the process, over the same journal, sink and peers.
    async fn start_again(&mut self, mut parts: Parts, myself: &ActorRef<SessionHubMsg>) {
        let session = parts.handle.id;
        let broken = match self.ledger.failed(Instant::now()) {
            Verdict::GiveUp => "its supervisor crashed again and again".to_owned(),
            Verdict::Restart { .. } => {
                parts.resumed = true;
                self.world.sessions.0.insert(session, parts.clone());
                match Actor::spawn_linked(None, SessionSupervisor, parts.clone(), myself.get_cell())
                    .await
                {
                    Ok((supervisor, _)) => {
                        self.supervisors.push((session, supervisor.get_cell()));
                        return;
                    }
                    Err(error) => error.to_string(),
                }
            }
        };
        error!(%session, %broken, "the session cannot be started again");
        parts
            .handle
            .sink
            .publish(interpreter_messages::ui::Event::Broken {
                error: TurnError {
                    class: ErrorClass::Runtime,
                    message: format!("the session stopped: {broken}"),
                    hint: Some(
                        "what was said is saved; continue with `interpreter resume`".to_owned(),
                    ),
                },
            });
    }
}

fn config_error(message: impl Into<String>) -> TurnError {
    TurnError {
        class: ErrorClass::Config,
        message: message.into(),
        hint: None,
    }
}

/// Opens a session: its file (in a blocking task), its harness, and its supervisor under the hub.
async fn open(
    world: World,
    mut settings: SessionSettings,
    origin: Origin,
    hub: ActorCell,
) -> Result<SessionHandle, TurnError> {
    let wire = settings.model.profile.wire;
    let encoder = interpreter_model_stream::encoder(wire).ok_or_else(|| {
        config_error(format!(
            "wire_api \"{}\" is not supported yet; use \"chat\"",
            wire.as_str()
        ))
    })?;
    let (home, harness, meta) = (
        world.home.clone(),
        settings.harness.clone(),
        settings.meta.clone(),
    );
    let opened = tokio::task::spawn_blocking(move || {
        let profile =
            Profile::load(&harness, &home).map_err(|error| config_error(error.to_string()))?;
        let (store, resumed) = match origin {
            Origin::New { ephemeral } => (JournalStore::create(&home, &meta, ephemeral), false),
            Origin::Resume { path } => (JournalStore::open(&path), true),
        };
        let store = store.map_err(|error| config_error(error.to_string()))?;
        Ok::<_, TurnError>((profile, store, resumed))
    });
    let (profile, store, resumed) = opened
        .await
        .map_err(|error| config_error(format!("the session could not be opened: {error}")))??;
    if resumed {
        settings.meta = store.meta();
    }
    let id = settings.meta.id;
    if world.sessions.0.contains_key(&id) {
        return Err(config_error(format!(
            "session {id} is already open in this process"
        )));
    }
    let sink = EventSink::new();
    let sandboxes = Sandboxes::new(SandboxesArgs {
        session: id,
        program: world.program.clone(),
        sink: sink.clone(),
        fault: world.fault.clone(),
    });
    let handle = SessionHandle {
        id,
        session: Peer::empty(),
        approval: Peer::empty(),
        tools: Peer::empty(),
        supervisor: Peer::empty(),
        sink,
    };
    let parts = Parts {
        handle: handle.clone(),
        journal: Peer::empty(),
        harness: Peer::empty(),
        settings: Arc::new(settings),
        store,
        profile: Arc::new(profile),
        encoder,
        sandboxes,
        resumed,
        world: world.clone(),
    };
    world.sessions.0.insert(id, parts.clone());
    let mut attempts = 0;
    loop {
        // A part that crashes while it starts takes its supervisor's start with it; the next one begins anew over the
        // same journal.
        match Actor::spawn_linked(None, SessionSupervisor, parts.clone(), hub.clone()).await {
            Ok(_) => return Ok(handle),
            Err(error) if attempts == INTENSITY.restarts => {
                world.sessions.0.remove(&id);
                return Err(TurnError {
                    class: ErrorClass::Runtime,
                    message: format!("the session could not be started: {error}"),
                    hint: None,
                });
            }
            Err(error) => {
                warn!(session = %id, %error, "the session's start failed and is tried again")
            }
        }
        attempts += 1;
    }
}
