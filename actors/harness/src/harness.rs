//! The Harness actor: thin, around [`Engine`] and [`absorb`].

use std::path::PathBuf;
use std::sync::Arc;

use interpreter_messages::harness::{HarnessEvent, HarnessMsg, HarnessView};
use interpreter_messages::journal::{ErrorClass, Record, TurnError};
use interpreter_messages::model::ModelProfile;
use interpreter_messages::session::{SessionMsg, SessionSettings};
use interpreter_messages::wire::SharedEncoder;
use interpreter_messages::{FaultSwitch, Peer, StreamId, TurnId};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::absorb::absorb;
use crate::engine::Engine;
use crate::facts;
use crate::profile::Profile;

/// What a Harness is started with.
pub struct HarnessArgs {
    /// The session's settings.
    pub settings: Arc<SessionSettings>,
    /// The harness.
    pub profile: Arc<Profile>,
    /// Makes bytes for the model's API.
    pub encoder: SharedEncoder,
    /// Gets the answers.
    pub session: Peer<SessionMsg>,
    /// `INTERPRETER_HOME`, for the user's own instructions.
    pub home: PathBuf,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// Shapes what the model sees, and understands what it answers.
///
/// Owns the encoded transcript, which is a function of the history: supervised by SessionSupervisor, permanent; a crash
/// costs one turn at most, and the next request asks Session for the history from its beginning. It sends nothing on
/// restart, and ends with its supervisor's order.
pub struct Harness;

/// The engine and its surroundings.
pub struct HarnessState {
    args: HarnessArgs,
    engine: Engine,
}

impl Actor for Harness {
    type Msg = HarnessMsg;
    type State = HarnessState;
    type Arguments = HarnessArgs;

    async fn pre_start(
        &self,
        _: ActorRef<HarnessMsg>,
        args: HarnessArgs,
    ) -> Result<HarnessState, ActorProcessingErr> {
        let engine = Engine::new(Arc::clone(&args.profile), Arc::clone(&args.encoder));
        Ok(HarnessState { args, engine })
    }

    async fn handle(
        &self,
        myself: ActorRef<HarnessMsg>,
        message: HarnessMsg,
        state: &mut HarnessState,
    ) -> Result<(), ActorProcessingErr> {
        state.args.fault.hit(point(&message));
        match message {
            HarnessMsg::Gather { turn } => state.gather(turn, &myself),
            HarnessMsg::Gathered {
                turn,
                facts,
                warnings,
            } => {
                state.tell(HarnessEvent::Gathered {
                    turn,
                    facts,
                    warnings,
                });
            }
            HarnessMsg::Shape {
                stream,
                from,
                history,
                model,
            } => state.shape(stream, from, &history, &model),
            HarnessMsg::Absorb {
                stream,
                response,
                used,
            } => {
                let actions = absorb(&state.args.profile, response, &used);
                state.tell(HarnessEvent::Absorbed { stream, actions });
            }
            HarnessMsg::View(reply) => drop(reply.send(state.view())),
        }
        Ok(())
    }
}

const fn point(message: &HarnessMsg) -> &'static str {
    match message {
        HarnessMsg::Gather { .. } => "harness.gather",
        HarnessMsg::Gathered { .. } => "harness.gathered",
        HarnessMsg::Shape { .. } => "harness.shape",
        HarnessMsg::Absorb { .. } => "harness.absorb",
        HarnessMsg::View(_) => "harness.view",
    }
}

impl HarnessState {
    fn tell(&self, event: HarnessEvent) {
        // A Session that is down asks again when it is back.
        let _ = self.args.session.cast(SessionMsg::Harness(event));
    }

    /// Reads files in a blocking task; the answer comes as a message.
    fn gather(&self, turn: TurnId, myself: &ActorRef<HarnessMsg>) {
        let (settings, home, myself) = (
            Arc::clone(&self.args.settings),
            self.args.home.clone(),
            myself.clone(),
        );
        tokio::task::spawn_blocking(move || {
            let (facts, warnings) = facts::gather(&settings, &home);
            // A harness that crashed meanwhile is asked again.
            let _ = myself.cast(HarnessMsg::Gathered {
                turn,
                facts: Box::new(facts),
                warnings,
            });
        });
    }

    fn shape(
        &mut self,
        stream: StreamId,
        from: usize,
        history: &[Arc<Record>],
        model: &Arc<ModelProfile>,
    ) {
        let known = self.engine.shaped();
        if from > known {
            return self.tell(HarnessEvent::Needs {
                stream,
                from: known,
            });
        }
        let new = history.get(known - from..).unwrap_or_default();
        let result = self
            .engine
            .shape(new, model)
            .map(Arc::new)
            .map_err(|error| TurnError {
                class: ErrorClass::Harness,
                message: error.to_string(),
                hint: Some("choose another harness with -c harness=NAME".to_owned()),
            });
        self.tell(HarnessEvent::Shaped { stream, result });
    }

    fn view(&self) -> HarnessView {
        HarnessView {
            id: self.args.profile.id.clone(),
            shaped: self.engine.shaped(),
            bytes: self.engine.bytes(),
            rebases: self.engine.rebases().to_vec(),
        }
    }
}
