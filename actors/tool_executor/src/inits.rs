//! The running SandboxInit of each policy: started when first needed, and again after it died.
//!
//! Shared by the pool and its executors. Like a `Peer` it is a slot and not a decision: executors work in their own
//! tasks, and a start that passed through the pool's mailbox would make every call wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interpreter_messages::policy::SandboxPolicy;
use interpreter_messages::process::{SandboxInitMsg, SpawnFailure, SpawnInit};
use interpreter_messages::worker::{FileReply, FileRequest};
use ractor::rpc::CallResult;
use ractor::{ActorCell, ActorRef, ActorStatus};
use tokio::sync::Mutex as AsyncMutex;

/// How long a file operation may take before its worker counts as stuck (a dead network mount).
const FILE_TIMEOUT: Duration = Duration::from_secs(120);

type Slot = Arc<AsyncMutex<Option<ActorRef<SandboxInitMsg>>>>;

/// Why a file worker gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// The boundary cannot be built, or its init not started: nothing was done.
    Refused(String),
    /// The worker died or got stuck; what it was doing may have been done.
    Lost(String),
}

/// All inits of a session.
pub(crate) struct Inits {
    spawn: SpawnInit,
    supervisor: ActorCell,
    slots: Mutex<HashMap<SandboxPolicy, Slot>>,
}

impl Inits {
    /// No init runs yet; each is started under `supervisor`.
    pub(crate) fn new(spawn: SpawnInit, supervisor: ActorCell) -> Self {
        Self {
            spawn,
            supervisor,
            slots: Mutex::default(),
        }
    }

    /// Carries out a file request under a policy.
    pub(crate) async fn file(
        &self,
        policy: &Arc<SandboxPolicy>,
        request: FileRequest,
    ) -> Result<FileReply, NoReply> {
        let init = self.get(policy).await.map_err(NoReply::Refused)?;
        let ask = |reply| SandboxInitMsg::File { request, reply };
        match init.call(ask, Some(FILE_TIMEOUT)).await {
            Ok(CallResult::Success(Ok(reply))) => Ok(reply),
            Ok(CallResult::Success(Err(failure @ SpawnFailure::InitDied { .. }))) => {
                Err(NoReply::Lost(failure.to_string()))
            }
            Ok(CallResult::Success(Err(failure))) => Err(NoReply::Refused(failure.to_string())),
            Ok(CallResult::Timeout) => {
                // The next call gets a new one.
                init.kill();
                Err(NoReply::Lost(format!(
                    "the file worker did not answer within {} s",
                    FILE_TIMEOUT.as_secs()
                )))
            }
            Ok(CallResult::SenderError) | Err(_) => {
                Err(NoReply::Lost("the file worker died".to_owned()))
            }
        }
    }

    async fn get(&self, policy: &Arc<SandboxPolicy>) -> Result<ActorRef<SandboxInitMsg>, String> {
        let slot = {
            // Only a map lookup happens under the lock, so a poisoned one still holds a whole map.
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((**policy).clone()).or_default())
        };
        let (spawn, policy, supervisor) = (
            Arc::clone(&self.spawn),
            Arc::clone(policy),
            self.supervisor.clone(),
        );
        // A task of its own: a call that is cancelled meanwhile must not leave an init that nobody knows of.
        let started = tokio::spawn(async move {
            let mut slot = slot.lock_owned().await;
            if let Some(init) = slot.as_ref()
                && matches!(
                    init.get_status(),
                    ActorStatus::Starting | ActorStatus::Running
                )
            {
                return Ok(init.clone());
            }
            let init = spawn(policy, supervisor).await?;
            *slot = Some(init.clone());
            Ok(init)
        });
        started
            .await
            .unwrap_or_else(|error| Err(format!("starting the sandbox failed: {error}")))
    }
}
