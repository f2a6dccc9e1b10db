//! The Approval actor: the [`Desk`] with its timers, its journal batches and its ways to the others.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::approval::{AnswerFate, ApprovalMsg, Decision};
use interpreter_messages::hub::UiHubMsg;
use interpreter_messages::journal::{Batch, BatchId, Entry, JournalMsg, Writer};
use interpreter_messages::session::{SessionMsg, SessionSettings, Who};
use interpreter_messages::tool::ToolPoolMsg;
use interpreter_messages::ui::Event;
use interpreter_messages::{ApprovalId, EventSink, FaultSwitch, Peer, SessionId, UiId};
use jiff::Timestamp;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

use crate::desk::{Desk, Effect};

/// How long the journal may take to give its records when the actor starts.
const LOAD: Duration = Duration::from_secs(10);

/// Owns the open questions of a session, and the user's grants for it.
///
/// SessionSupervisor supervises it; it survives a crash of Session with its questions. A crash costs the open
/// questions: the calls that wait submit them again, with the same ids, and a UI sees the same dialogue twice at the
/// most. Grants and decisions of this process are folded from the journal. On restart it asks UiHub who can answer. On
/// a stop it withdraws what is open.
pub struct Approval;

/// What an Approval is started with.
#[derive(Debug, Clone)]
pub struct ApprovalArgs {
    /// Whose questions.
    pub session: SessionId,
    /// Policy, sandbox, and what happens without a UI.
    pub settings: Arc<SessionSettings>,
    /// Remembers questions and answers.
    pub journal: Peer<JournalMsg>,
    /// Gets the decisions.
    pub tools: Peer<ToolPoolMsg>,
    /// Told when the user ends the turn.
    pub driver: Peer<SessionMsg>,
    /// Shows the questions.
    pub ui_hub: Peer<UiHubMsg>,
    /// The session's events.
    pub sink: EventSink,
    /// The clock of journal entries.
    pub now: fn() -> Timestamp,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The desk and its surroundings.
pub struct ApprovalState {
    args: ApprovalArgs,
    desk: Desk,
    timers: HashMap<ApprovalId, Timer>,
    /// Number of the last batch.
    batch: u64,
    /// Batches that are not in the journal, as far as is known here.
    unacknowledged: VecDeque<Batch>,
    /// A batch could not be written: those before it go first the next time.
    failed: bool,
}

impl std::fmt::Debug for ApprovalState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApprovalState({:?})", self.desk)
    }
}

/// A running reminder; its drop ends it.
struct Timer(AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for Approval {
    type Msg = ApprovalMsg;
    type State = ApprovalState;
    type Arguments = ApprovalArgs;

    async fn pre_start(
        &self,
        _: ActorRef<ApprovalMsg>,
        args: ApprovalArgs,
    ) -> Result<ApprovalState, ActorProcessingErr> {
        let loaded = args
            .journal
            .call(JournalMsg::Load, LOAD)
            .await
            .map_err(|error| format!("the journal cannot be loaded: {error}"))??;
        let path = search_path(&args.settings, std::env::var_os("PATH"));
        let mut desk = Desk::new(Arc::clone(&args.settings), path);
        desk.restore(loaded.records.get(loaded.inherited..).unwrap_or_default());
        let session = args.session;
        // A UiHub that is down has no UIs; they attach, and are announced, when it is back.
        let _ = args.ui_hub.cast(UiHubMsg::WhoCanAnswer { session });
        Ok(ApprovalState {
            args,
            desk,
            timers: HashMap::new(),
            batch: loaded.approval_batch,
            unacknowledged: VecDeque::new(),
            failed: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ApprovalMsg>,
        message: ApprovalMsg,
        state: &mut ApprovalState,
    ) -> Result<(), ActorProcessingErr> {
        state.args.fault.hit(point(&message));
        let effects = match message {
            ApprovalMsg::Request(request) => state.desk.request(request),
            ApprovalMsg::Answer {
                id,
                decision,
                by,
                reply,
            } => state.answer(&id, decision, by, reply),
            ApprovalMsg::Attached { ui, can_answer } => state.desk.attached(ui, can_answer),
            ApprovalMsg::Detached { ui } => state.desk.detached(ui),
            ApprovalMsg::Expire { id, generation } => state.desk.expire(&id, generation),
            ApprovalMsg::Withdraw { turn } => state.desk.withdraw(turn),
            ApprovalMsg::Pending(reply) => {
                // Whoever asked may be gone.
                let _ = reply.send(state.desk.pending());
                Vec::new()
            }
            ApprovalMsg::PeerRestarted(who) => state.peer_restarted(who),
            ApprovalMsg::Committed(committed) => {
                let number = committed.id.number;
                state
                    .unacknowledged
                    .retain(|batch| batch.id.number > number);
                Vec::new()
            }
            ApprovalMsg::AppendFailed { error } => {
                warn!(%error, "a decision is not in the journal; it is sent again with the next one");
                state.failed = true;
                Vec::new()
            }
        };
        state.carry_out(effects, Some(&myself));
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<ApprovalMsg>,
        state: &mut ApprovalState,
    ) -> Result<(), ActorProcessingErr> {
        let effects = state.desk.withdraw_all();
        state.carry_out(effects, None);
        Ok(())
    }
}

/// The name of a message as a point of fault injection.
const fn point(message: &ApprovalMsg) -> &'static str {
    match message {
        ApprovalMsg::Request(_) => "approval.request",
        ApprovalMsg::Answer { .. } => "approval.answer",
        ApprovalMsg::Attached { .. } => "approval.attached",
        ApprovalMsg::Detached { .. } => "approval.detached",
        ApprovalMsg::Expire { .. } => "approval.expire",
        ApprovalMsg::Withdraw { .. } => "approval.withdraw",
        ApprovalMsg::Pending(_) => "approval.pending",
        ApprovalMsg::PeerRestarted(_) => "approval.peer_restarted",
        ApprovalMsg::Committed(_) => "approval.committed",
        ApprovalMsg::AppendFailed { .. } => "approval.append_failed",
    }
}

/// Where commands are looked for by name: the `PATH` that the environment policy sets, else ours.
fn search_path(settings: &SessionSettings, ours: Option<std::ffi::OsString>) -> Vec<PathBuf> {
    let set = &settings.sandbox.env.set;
    let path = set
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.into())
        .or(ours)
        .unwrap_or_default();
    std::env::split_paths(&path).collect()
}

impl ApprovalState {
    fn answer(
        &mut self,
        id: &ApprovalId,
        decision: Decision,
        by: UiId,
        reply: Option<RpcReplyPort<AnswerFate>>,
    ) -> Vec<Effect> {
        let (fate, effects) = self.desk.answer(id, decision, by);
        if let Some(reply) = reply {
            // Whoever answered may be gone.
            let _ = reply.send(fate);
        }
        effects
    }

    fn peer_restarted(&mut self, who: Who) -> Vec<Effect> {
        match who {
            Who::Journal => {
                self.send_unacknowledged();
                Vec::new()
            }
            Who::ToolPool => self.desk.withdraw_all(),
            Who::Session => self.desk.session_is_back(),
            Who::Approval | Who::Harness => Vec::new(),
        }
    }

    /// Does what the desk says. Without `myself` (the actor ends) no timer is started.
    fn carry_out(&mut self, effects: Vec<Effect>, myself: Option<&ActorRef<ApprovalMsg>>) {
        let mut entries = Vec::new();
        let session = self.args.session;
        for effect in effects {
            match effect {
                Effect::Tell { call, id, decision } => self.tell(call, id, decision),
                Effect::Append(entry) => entries.push(entry),
                Effect::Asked(request) => {
                    self.args.sink.publish(Event::ApprovalAsked { request });
                }
                Effect::Show { request, only } => self.to_uis(UiHubMsg::Ask {
                    session,
                    request,
                    only,
                }),
                Effect::Settled { id, decision, by } => {
                    self.timers.remove(&id);
                    self.args.sink.publish(Event::ApprovalResolved {
                        id: id.clone(),
                        decision: decision.clone(),
                        by,
                    });
                    self.to_uis(UiHubMsg::Resolved {
                        session,
                        id,
                        decision,
                        by,
                    });
                }
                Effect::Remind {
                    id,
                    generation,
                    after,
                } => {
                    if let Some(myself) = myself {
                        self.remind(myself, id, generation, after);
                    }
                }
                Effect::AbortTurn(turn) => {
                    let abort = SessionMsg::AbortTurn { turn };
                    if self.args.driver.cast(abort).is_err() {
                        debug!(%turn, "session is down; it is told when it is back");
                    }
                }
            }
        }
        self.append(entries);
    }

    /// A ToolPool that is down comes back without the call.
    fn tell(&self, call: interpreter_messages::CallId, approval: ApprovalId, decision: Decision) {
        let decided = ToolPoolMsg::Decided {
            call,
            approval,
            decision,
        };
        if self.args.tools.cast(decided).is_err() {
            debug!("tool pool is down; nobody waits for this decision any more");
        }
    }

    /// A UiHub that is down has no UIs; what is open is shown when they attach again.
    fn to_uis(&self, message: UiHubMsg) {
        if self.args.ui_hub.cast(message).is_err() {
            debug!("ui hub is down");
        }
    }

    fn remind(
        &mut self,
        myself: &ActorRef<ApprovalMsg>,
        id: ApprovalId,
        generation: u64,
        after: Duration,
    ) {
        let of = id.clone();
        let timer = myself.send_after(after, move || ApprovalMsg::Expire { id, generation });
        self.timers.insert(of, Timer(timer.abort_handle()));
    }

    fn append(&mut self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        self.batch += 1;
        let batch = Batch {
            id: BatchId {
                writer: Writer::Approval,
                number: self.batch,
            },
            at: (self.args.now)(),
            entries,
            sync: false,
        };
        self.unacknowledged.push_back(batch.clone());
        if self.failed {
            self.send_unacknowledged();
        } else {
            self.send(batch);
        }
    }

    fn send_unacknowledged(&mut self) {
        self.failed = false;
        for batch in &self.unacknowledged {
            self.send(batch.clone());
        }
    }

    fn send(&self, batch: Batch) {
        if self.args.journal.cast(JournalMsg::Append(batch)).is_err() {
            debug!("journal is down; the batch is sent again when it is back");
        }
    }
}

#[cfg(test)]
mod tests;
