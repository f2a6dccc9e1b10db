//! Keeps one UI running under UiHub: starts it, and starts it again after a crash.

use std::time::Duration;

use interpreter_messages::Peer;
use interpreter_messages::hub::UiHubMsg;
use interpreter_messages::ui::UiMsg;
use interpreter_restart::{Backoff, Intensity, Ledger, Verdict};
use ractor::{ACTIVE_STATES, Actor, SpawnErr};
use tokio::time::Instant;
use tracing::warn;

/// As for the parts of a session: one more crash within two minutes and the session goes on without this UI.
const INTENSITY: Intensity = Intensity {
    restarts: 3,
    within: Duration::from_secs(120),
};
/// The first restart is at once; the later ones give UiHub time to be restarted itself.
const BACKOFF: Backoff = Backoff(&[
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_secs(1),
]);
/// How long a UiHub may be away, and how often that is looked at.
const HUB_WAIT: Duration = Duration::from_secs(5);
const HUB_LOOK: Duration = Duration::from_millis(10);

/// Why a UI is no longer shown. The session is not touched by this.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It crashed again and again.
    #[error("the user interface crashed too often; the session is saved and can be resumed")]
    Crashed,
    /// There is no UiHub.
    #[error("the hub of the user interfaces is not running")]
    NoHub,
    /// It could not start.
    #[error("the user interface cannot start")]
    NotStarted(#[source] SpawnErr),
}

/// Runs a UI under UiHub until it has `finished`. After a crash, of the UI or of UiHub, the UI is made again by
/// `start`; what must outlive a crash lives in what `start` shares. `slot` holds the current actor, for signals.
///
/// # Errors
/// When the UI crashes more than three times within two minutes, cannot start, or has no hub.
pub async fn host<A>(
    hub: &Peer<UiHubMsg>,
    slot: &Peer<UiMsg>,
    start: impl Fn() -> (A, A::Arguments),
    finished: impl Fn() -> bool,
) -> Result<(), HostError>
where
    A: Actor<Msg = UiMsg>,
{
    let mut ledger = Ledger::new(INTENSITY, BACKOFF);
    loop {
        let supervisor = running(hub).await?;
        let (actor, arguments) = start();
        match A::spawn_linked(None, actor, arguments, supervisor).await {
            Ok((ui, ended)) => {
                slot.fill(ui);
                // How it ended is told by `finished`; its handle says only that it did.
                let _ = ended.await;
                slot.clear();
            }
            // The hub ended in between; another one comes.
            Err(SpawnErr::StartupFailed(cause)) => warn!(%cause, "a UI could not start"),
            Err(error) => return Err(HostError::NotStarted(error)),
        }
        if finished() {
            return Ok(());
        }
        match ledger.failed(Instant::now()) {
            Verdict::Restart { after } => tokio::time::sleep(after).await,
            Verdict::GiveUp => return Err(HostError::Crashed),
        }
    }
}

/// The hub, as soon as there is one that runs.
async fn running(hub: &Peer<UiHubMsg>) -> Result<ractor::ActorCell, HostError> {
    let deadline = Instant::now() + HUB_WAIT;
    loop {
        if let Some(actor) = hub.get()
            && ACTIVE_STATES.contains(&actor.get_status())
        {
            return Ok(actor.get_cell());
        }
        if Instant::now() >= deadline {
            return Err(HostError::NoHub);
        }
        tokio::time::sleep(HUB_LOOK).await;
    }
}
