//! SessionSupervisor: starts the parts of one conversation, starts them again one by one, and ends them in order.

use std::collections::HashMap;
use std::time::Duration;

use interpreter_messages::StreamId;
use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::journal::{ErrorClass, TurnError};
use interpreter_messages::session::{SessionMsg, SessionSupervisorMsg, Who};
use interpreter_messages::stream::{StartStream, StreamFailure, StreamOutcome};
use interpreter_messages::tool::ToolPoolMsg;
use interpreter_messages::ui::Event;
use interpreter_restart::{Backoff, Intensity, Ledger, Ordered, Verdict};
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::tree::{PARTS, Parts};

/// 3 restarts in 120 s, at once, after 0.1 s, after 1 s (DESIGN §1); then the session is broken, others are untouched.
const INTENSITY: Intensity = Intensity {
    restarts: 3,
    within: Duration::from_secs(120),
};
const BACKOFF: Backoff = Backoff(&[
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_secs(1),
]);

/// How long each part may take to end. ToolPool runs the cancel ladder of what still runs, 5 s in all.
const fn stop_budget(who: Who) -> Duration {
    match who {
        Who::ToolPool => Duration::from_secs(6),
        Who::Journal => Duration::from_secs(2),
        Who::Approval | Who::Harness | Who::Session => Duration::from_secs(1),
    }
}

/// Owns the parts of a session and its ModelStreams; supervised by SessionHub, which opens the session again from its
/// journal should this actor itself crash. It never does IO; it awaits only the start of its children, which is short.
pub struct SessionSupervisor;

/// The children of a session.
pub struct SessionSupervisorState {
    parts: Parts,
    children: Ordered<Who>,
    ledger: Ledger,
    generation: u64,
    streams: HashMap<ActorId, (StreamId, ActorCell)>,
    /// Crashes of the driver since a turn ended: (turns ended by then, crashes).
    crashes: (u64, u32),
    broken: bool,
    done: Vec<RpcReplyPort<()>>,
}

impl Actor for SessionSupervisor {
    type Msg = SessionSupervisorMsg;
    type State = SessionSupervisorState;
    type Arguments = Parts;

    async fn pre_start(
        &self,
        myself: ActorRef<SessionSupervisorMsg>,
        parts: Parts,
    ) -> Result<SessionSupervisorState, ActorProcessingErr> {
        parts.handle.supervisor.fill(myself.clone());
        let mut children = Ordered::default();
        for who in PARTS {
            children.started(who, parts.start(who, 0, true, myself.get_cell()).await?);
        }
        Ok(SessionSupervisorState {
            parts,
            children,
            ledger: Ledger::new(INTENSITY, BACKOFF),
            generation: 0,
            streams: HashMap::new(),
            crashes: (0, 0),
            broken: false,
            done: Vec::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionSupervisorMsg>,
        message: SessionSupervisorMsg,
        state: &mut SessionSupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionSupervisorMsg::StartStream(start) => state.start_stream(start, &myself).await,
            SessionSupervisorMsg::StopStream { stream } => state.stop_stream(stream),
            SessionSupervisorMsg::Restart { who, generation } => {
                if generation == state.generation {
                    state.restart(who, &myself).await;
                }
            }
            SessionSupervisorMsg::Shutdown { done } => {
                state.done.push(done);
                myself.stop(Some("shutdown".to_owned()));
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SessionSupervisorMsg>,
        event: SupervisionEvent,
        state: &mut SessionSupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, cause) => {
                state
                    .ended(cell.get_id(), Some(cause.to_string()), &myself)
                    .await;
            }
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                state.ended(cell.get_id(), None, &myself).await;
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<SessionSupervisorMsg>,
        state: &mut SessionSupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        state.stop_all().await;
        for done in state.done.drain(..) {
            // Whoever asked may have gone.
            let _ = done.send(());
        }
        Ok(())
    }
}

impl SessionSupervisorState {
    async fn start_stream(&mut self, start: StartStream, myself: &ActorRef<SessionSupervisorMsg>) {
        let stream = start.stream;
        match self.parts.start_stream(start, myself.get_cell()).await {
            Ok(cell) => {
                self.streams.insert(cell.get_id(), (stream, cell));
            }
            Err(error) => self.stream_crashed(stream, &error.to_string()),
        }
    }

    fn stop_stream(&mut self, stream: StreamId) {
        self.streams.retain(|_, (id, cell)| {
            if *id == stream {
                cell.kill();
            }
            *id != stream
        });
    }

    /// Tells the driver that a stream died; it decides whether to ask again.
    fn stream_crashed(&self, stream: StreamId, cause: &str) {
        let failure = StreamFailure {
            error: TurnError {
                class: ErrorClass::Runtime,
                message: format!("the model stream crashed: {cause}"),
                hint: None,
            },
            retryable: true,
            shown: true,
            retry_after: None,
            usage: None,
            partial_text: String::new(),
        };
        let outcome = StreamOutcome::Failed(failure);
        // A driver that is down asks again when it is back.
        let _ = self
            .parts
            .handle
            .session
            .cast(SessionMsg::Stream { stream, outcome });
    }

    async fn ended(
        &mut self,
        id: ActorId,
        failure: Option<String>,
        myself: &ActorRef<SessionSupervisorMsg>,
    ) {
        if let Some((stream, _)) = self.streams.remove(&id) {
            if let Some(cause) = failure {
                self.stream_crashed(stream, &cause);
            }
            return;
        }
        let Some(who) = self.children.ended(id) else {
            return;
        };
        let cause = failure.unwrap_or_else(|| "it ended by itself".to_owned());
        self.parts.clear(who);
        if who == Who::Session {
            self.driver_crashed();
        }
        self.after_failure(who, &cause, myself).await;
    }

    /// Streams of a dead driver are of no use: its successor asks again.
    fn driver_crashed(&mut self) {
        for (_, (_, cell)) in self.streams.drain() {
            cell.kill();
        }
        let ended = self.parts.handle.sink.turns_ended();
        let before = if self.crashes.0 == ended {
            self.crashes.1
        } else {
            0
        };
        self.crashes = (ended, before + 1);
    }

    async fn after_failure(
        &mut self,
        who: Who,
        cause: &str,
        myself: &ActorRef<SessionSupervisorMsg>,
    ) {
        if self.broken {
            return;
        }
        match self.ledger.failed(Instant::now()) {
            Verdict::Restart { after } => {
                warn!(?who, %cause, "a part of the session crashed and is started again");
                let event = Event::Restarted {
                    who: format!("{who:?}"),
                    cause: cause.to_owned(),
                };
                self.parts.handle.sink.publish(event);
                self.generation += 1;
                if after.is_zero() {
                    self.restart(who, myself).await;
                } else {
                    let generation = self.generation;
                    myself.send_after(after, move || SessionSupervisorMsg::Restart {
                        who,
                        generation,
                    });
                }
            }
            Verdict::GiveUp => self.give_up(who, cause),
        }
    }

    async fn restart(&mut self, who: Who, myself: &ActorRef<SessionSupervisorMsg>) {
        match self
            .parts
            .start(who, self.crashes.1, false, myself.get_cell())
            .await
        {
            Ok(cell) => {
                self.children.started(who, cell);
                self.tell_siblings(who);
            }
            Err(error) => {
                Box::pin(self.after_failure(who, &error.to_string(), myself)).await;
            }
        }
    }

    /// Siblings that wait for something of `who` send it again.
    fn tell_siblings(&self, who: Who) {
        let handle = &self.parts.handle;
        // A sibling that is down hears of nobody; it starts from the journal anyway.
        if who != Who::Session {
            let _ = handle.session.cast(SessionMsg::PeerRestarted(who));
        }
        if who != Who::Approval {
            let _ = handle.approval.cast(ApprovalMsg::PeerRestarted(who));
        }
        if who != Who::ToolPool {
            let _ = handle.tools.cast(ToolPoolMsg::PeerRestarted(who));
        }
    }

    fn give_up(&mut self, who: Who, cause: &str) {
        error!(?who, %cause, "the session is broken");
        self.broken = true;
        for (_, (_, cell)) in self.streams.drain() {
            cell.kill();
        }
        self.parts.handle.sink.publish(Event::Broken {
            error: TurnError {
                class: ErrorClass::Runtime,
                message: format!("the session stopped: {who:?} crashed again and again: {cause}"),
                hint: Some("what was said is saved; continue with `interpreter resume`".to_owned()),
            },
        });
    }

    /// The end of DESIGN §7: the turn ends, then each part from the last to the first.
    async fn stop_all(&mut self) {
        let session = &self.parts.handle.session;
        let interrupt = SessionMsg::Interrupt {
            now: false,
            by: "shutdown",
        };
        // Nothing to end when the driver is down.
        let _ = session.cast(interrupt);
        for (_, (_, cell)) in self.streams.drain() {
            cell.kill();
        }
        while let Some((who, cell)) = self.children.pop_last() {
            let budget = Some(stop_budget(who));
            // What was sent before the end is still done, but for tools, whose own end cancels what runs.
            let ended = match who {
                Who::ToolPool => cell
                    .stop_and_wait(Some("shutdown".to_owned()), budget)
                    .await
                    .is_ok(),
                _ => cell.drain_and_wait(budget).await.is_ok(),
            };
            if !ended {
                warn!(?who, "did not end in time and is killed");
                cell.kill();
            }
            self.parts.clear(who);
        }
        self.parts.sandboxes.close().await;
    }
}
