//! The ordered end of a pool: calls first, then commands, then what they ran in.

use std::time::Duration;

use ractor::ActorCell;
use tokio::time::{Instant, timeout_at};

use super::PoolState;

/// How long commands have to end after they were told to (DESIGN §7: 5 s in all, less what the rest needs).
const LADDER: Duration = Duration::from_millis(4_500);
/// How long the inits have to end.
const REST: Duration = Duration::from_millis(500);

impl PoolState {
    /// Cancels every call and ends every command; whatever is left after 5 s is killed.
    pub(super) async fn end_all(&mut self) {
        for call in self.calls.values_mut() {
            if let Some(executor) = call.executor.take() {
                executor.kill();
            }
        }
        for process in self.processes.values_mut() {
            process.end(false);
        }
        let deadline = Instant::now() + LADDER;
        let commands: Vec<ActorCell> = self
            .processes
            .values()
            .map(|process| process.actor.get_cell())
            .collect();
        for command in &commands {
            if timeout_at(deadline, command.wait(None)).await.is_err() {
                command.kill();
            }
        }
        self.me
            .stop_children_and_wait(Some("shutdown".to_owned()), Some(REST))
            .await;
    }
}
