//! Root: the supervisor of everything. It restarts its children one for one, and ends the process when that is not
//! enough.

use std::time::Duration;

use interpreter_restart::{Backoff, Intensity, Ledger, Ordered, Verdict};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::tree::{TopLevel, World};

/// 5 restarts in 60 s (DESIGN §1), then the process ends with code 70.
const INTENSITY: Intensity = Intensity {
    restarts: 5,
    within: Duration::from_secs(60),
};

/// How long one child may take to end.
const STOP_BUDGET: Duration = Duration::from_secs(11);

/// Owns UiHub and SessionHub. Nobody supervises it: when it gives up, or is stopped, the process ends. A crash of it
/// kills everything below, which the journals make safe. It ends its children from the last to the first.
pub struct Root;

/// To the root.
#[derive(Debug)]
pub enum RootMsg {}

/// Children and their recent failures.
pub struct RootState {
    world: World,
    children: Ordered<TopLevel>,
    ledger: Ledger,
}

impl Actor for Root {
    type Msg = RootMsg;
    type State = RootState;
    type Arguments = World;

    async fn pre_start(
        &self,
        myself: ActorRef<RootMsg>,
        world: World,
    ) -> Result<RootState, ActorProcessingErr> {
        let mut children = Ordered::default();
        for child in TopLevel::ALL {
            children.started(child, child.start(&world, myself.get_cell()).await?);
        }
        Ok(RootState {
            world,
            children,
            ledger: Ledger::new(INTENSITY, Backoff::NONE),
        })
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<RootMsg>,
        event: SupervisionEvent,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let (id, cause) = match event {
            SupervisionEvent::ActorFailed(cell, cause) => (cell.get_id(), cause.to_string()),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                (cell.get_id(), reason.unwrap_or_default())
            }
            _ => return Ok(()),
        };
        let Some(child) = state.children.ended(id) else {
            return Ok(());
        };
        warn!(?child, %cause, "a top-level actor ended and is started again");
        match state.ledger.failed(Instant::now()) {
            Verdict::Restart { .. } => {
                let cell = child.start(&state.world, myself.get_cell()).await?;
                state.children.started(child, cell);
            }
            Verdict::GiveUp => {
                error!("top-level actors fail too often");
                myself.stop(Some("top-level actors fail too often".to_owned()));
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<RootMsg>,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        while let Some((_, cell)) = state.children.pop_last() {
            // A child that misses its time is killed with the root.
            let _ = cell
                .stop_and_wait(Some("shutdown".to_owned()), Some(STOP_BUDGET))
                .await;
        }
        Ok(())
    }
}
