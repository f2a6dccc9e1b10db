//! The Journal actor: takes batches, writes them in the background, tells their writers.

use std::sync::Arc;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::journal::{Batch, Committed, JournalMsg, Loaded, Writer};
use interpreter_messages::session::SessionMsg;
use interpreter_messages::{FaultSwitch, Peer};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

use crate::store::{Appended, Epoch, JournalStore, SyncPolicy};

/// Jobs that one write takes at the most.
const BURST: usize = 1024;

/// Owns the queue in front of a session's file; the file and its lock belong to the [`JournalStore`].
///
/// SessionSupervisor supervises it: first part to start, last to stop. Writes run in a blocking task, one at a time;
/// what queues meanwhile goes out together in the next one. A crash costs the queue: Session and Approval send what was
/// not acknowledged again, and batches that were written before are acknowledged again, not written twice. On restart it
/// sends nothing. On a stop or drain it writes what is queued and forces it to the disk.
pub struct Journal;

/// What a Journal is started with.
#[derive(Debug, Clone)]
pub struct JournalArgs {
    /// The file.
    pub store: Arc<JournalStore>,
    /// Told of its batches.
    pub session: Peer<SessionMsg>,
    /// Told of its batches.
    pub approval: Peer<ApprovalMsg>,
    /// When the file is forced to the disk.
    pub sync: SyncPolicy,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The way to the writer.
#[derive(Debug)]
pub struct JournalState {
    store: Arc<JournalStore>,
    sync: SyncPolicy,
    fault: FaultSwitch,
    /// `None` when the actor stops.
    jobs: Option<mpsc::UnboundedSender<Job>>,
    /// The writing task; its drop aborts it.
    writer: JoinSet<()>,
}

#[derive(Debug)]
enum Job {
    Append(Batch),
    Load(RpcReplyPort<Result<Loaded, String>>),
    Sync(RpcReplyPort<Result<(), String>>),
}

/// What a job gave.
enum Answer {
    Appended(Appended),
    Loaded(RpcReplyPort<Result<Loaded, String>>, Loaded),
    Synced(RpcReplyPort<Result<(), String>>, Result<(), String>),
}

impl Actor for Journal {
    type Msg = JournalMsg;
    type State = JournalState;
    type Arguments = JournalArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<JournalMsg>,
        args: JournalArgs,
    ) -> Result<JournalState, ActorProcessingErr> {
        let (jobs, queue) = mpsc::unbounded_channel();
        let task = WriterTask {
            epoch: args.store.begin(),
            store: Arc::clone(&args.store),
            session: args.session,
            approval: args.approval,
            sync: args.sync,
        };
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            if let Err(panic) = task.run(queue).await {
                error!(%panic, "the journal's writer crashed");
                myself.stop(Some(format!("the writer crashed: {panic}")));
            }
        });
        Ok(JournalState {
            store: args.store,
            sync: args.sync,
            fault: args.fault,
            jobs: Some(jobs),
            writer,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<JournalMsg>,
        message: JournalMsg,
        state: &mut JournalState,
    ) -> Result<(), ActorProcessingErr> {
        let (point, job) = match message {
            JournalMsg::Append(batch) => ("journal.append", Job::Append(batch)),
            JournalMsg::Load(reply) => ("journal.load", Job::Load(reply)),
            JournalMsg::Sync(reply) => ("journal.sync", Job::Sync(reply)),
        };
        state.fault.hit(point);
        if let Some(jobs) = &state.jobs {
            // Fails only when the writer crashed: then this actor is about to end too.
            jobs.send(job)?;
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<JournalMsg>,
        state: &mut JournalState,
    ) -> Result<(), ActorProcessingErr> {
        state.jobs = None;
        while state.writer.join_next().await.is_some() {}
        if state.sync != SyncPolicy::Never {
            let store = Arc::clone(&state.store);
            let synced = tokio::task::spawn_blocking(move || store.sync()).await?;
            if let Err(error) = synced {
                warn!(%error, "the session file may not be on the disk");
            }
        }
        Ok(())
    }
}

struct WriterTask {
    store: Arc<JournalStore>,
    epoch: Epoch,
    session: Peer<SessionMsg>,
    approval: Peer<ApprovalMsg>,
    sync: SyncPolicy,
}

impl WriterTask {
    /// Works until the actor drops the queue, or a write panics.
    async fn run(
        self,
        mut queue: mpsc::UnboundedReceiver<Job>,
    ) -> Result<(), tokio::task::JoinError> {
        let in_memory = self.store.is_ephemeral();
        let mut jobs = Vec::new();
        while queue.recv_many(&mut jobs, BURST).await > 0 {
            let (store, epoch, sync) = (Arc::clone(&self.store), self.epoch, self.sync);
            let burst = std::mem::take(&mut jobs);
            let work = move || perform(&store, epoch, sync, burst);
            let answers = if in_memory {
                work()
            } else {
                tokio::task::spawn_blocking(work).await?
            };
            for answer in answers {
                self.deliver(answer);
            }
        }
        Ok(())
    }

    fn deliver(&self, answer: Answer) {
        match answer {
            Answer::Appended(Ok(committed)) => self.committed(committed),
            Answer::Appended(Err((writer, error))) => self.failed(writer, error),
            // Whoever asked may be gone.
            Answer::Loaded(reply, loaded) => {
                let _ = reply.send(Ok(loaded));
            }
            Answer::Synced(reply, result) => {
                let _ = reply.send(result);
            }
        }
    }

    /// A writer that is down learns from the file what is in it.
    fn committed(&self, committed: Committed) {
        let down = match committed.id.writer {
            Writer::Session => self.session.cast(SessionMsg::Committed(committed)).is_err(),
            Writer::Approval => self
                .approval
                .cast(ApprovalMsg::Committed(committed))
                .is_err(),
        };
        if down {
            debug!("the writer of a batch is down; it will load it");
        }
    }

    fn failed(&self, writer: Writer, error: String) {
        warn!(?writer, %error, "a batch was not written");
        let down = match writer {
            Writer::Session => self
                .session
                .cast(SessionMsg::AppendFailed { error })
                .is_err(),
            Writer::Approval => self
                .approval
                .cast(ApprovalMsg::AppendFailed { error })
                .is_err(),
        };
        if down {
            debug!(
                "the writer of a batch that failed is down; it does not know of the batch any more"
            );
        }
    }
}

/// Does the jobs in order; appends that follow one another go out in one write.
fn perform(store: &JournalStore, epoch: Epoch, sync: SyncPolicy, jobs: Vec<Job>) -> Vec<Answer> {
    let mut answers = Vec::with_capacity(jobs.len());
    let mut batches = Vec::new();
    let flush = |batches: &mut Vec<Batch>, answers: &mut Vec<Answer>| {
        if batches.is_empty() {
            return;
        }
        // None: another life of the actor has begun; this one's peers ask that one.
        if let Some(appended) = store.append(epoch, std::mem::take(batches), sync) {
            answers.extend(appended.into_iter().map(Answer::Appended));
        }
    };
    for job in jobs {
        match job {
            Job::Append(batch) => batches.push(batch),
            Job::Load(reply) => {
                flush(&mut batches, &mut answers);
                answers.push(Answer::Loaded(reply, store.loaded()));
            }
            Job::Sync(reply) => {
                flush(&mut batches, &mut answers);
                let synced = match sync {
                    SyncPolicy::Never => Ok(()),
                    SyncPolicy::Turn | SyncPolicy::Always => store.sync(),
                };
                answers.push(Answer::Synced(reply, synced));
            }
        }
    }
    flush(&mut batches, &mut answers);
    answers
}

#[cfg(test)]
mod tests;
