//! The SandboxInit actor: one policy's spawner and file worker, as ToolPool sees it.

use std::sync::Arc;

use interpreter_messages::FaultSwitch;
use interpreter_messages::process::{SandboxInitMsg, SpawnFailure};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;

use crate::host::InitHandle;

/// What a SandboxInit is started with.
pub struct SandboxInitArgs {
    /// The running init.
    pub init: Arc<InitHandle>,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The owner of one init.
///
/// Owns the control socket, with the commands that use it too: when all are gone the init ends, and with it everything
/// that runs inside. Supervised by ToolPool, temporary: when the init dies, what waits is told `InitDied` and this actor
/// fails; the next call starts a new one.
pub struct SandboxInit;

/// The init and the task that watches it.
pub struct SandboxInitState {
    init: Arc<InitHandle>,
    fault: FaultSwitch,
    _watch: Guard,
}

struct Guard(AbortHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for SandboxInit {
    type Msg = SandboxInitMsg;
    type State = SandboxInitState;
    type Arguments = SandboxInitArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<SandboxInitMsg>,
        args: SandboxInitArgs,
    ) -> Result<SandboxInitState, ActorProcessingErr> {
        let init = Arc::clone(&args.init);
        let watch = tokio::spawn(async move {
            let failure = init.gone().await;
            // The actor may have ended with its init.
            let _ = myself.cast(SandboxInitMsg::Internal(Box::new(failure)));
        });
        Ok(SandboxInitState {
            init: args.init,
            fault: args.fault,
            _watch: Guard(watch.abort_handle()),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<SandboxInitMsg>,
        message: SandboxInitMsg,
        state: &mut SandboxInitState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SandboxInitMsg::File { request, reply } => {
                state.fault.hit("sandbox_init.file");
                let init = Arc::clone(&state.init);
                tokio::spawn(async move {
                    let result = init.file(&request).await;
                    // Whoever asked may have been cancelled.
                    let _ = reply.send(result);
                });
                Ok(())
            }
            SandboxInitMsg::Internal(end) => {
                state.fault.hit("sandbox_init.gone");
                let failure = end
                    .downcast::<SpawnFailure>()
                    .map(|failure| failure.to_string());
                Err(failure
                    .unwrap_or_else(|_| "the sandbox process died".to_owned())
                    .into())
            }
        }
    }
}
