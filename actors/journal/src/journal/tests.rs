use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use interpreter_messages::journal::{BatchId, Entry};
use ractor::concurrency::JoinHandle;

use super::*;
use crate::testing::{FaultyDisk, batch, meta, session, turn};

/// Takes what is sent to a writer and passes it on to the test.
struct Probe<M>(std::marker::PhantomData<fn(M)>);

impl<M: ractor::Message> Actor for Probe<M> {
    type Msg = M;
    type State = mpsc::UnboundedSender<M>;
    type Arguments = mpsc::UnboundedSender<M>;

    async fn pre_start(
        &self,
        _: ActorRef<M>,
        out: mpsc::UnboundedSender<M>,
    ) -> Result<mpsc::UnboundedSender<M>, ActorProcessingErr> {
        Ok(out)
    }

    async fn handle(
        &self,
        _: ActorRef<M>,
        message: M,
        out: &mut mpsc::UnboundedSender<M>,
    ) -> Result<(), ActorProcessingErr> {
        // The test may be over.
        let _ = out.send(message);
        Ok(())
    }
}

async fn probe<M: ractor::Message>() -> (Peer<M>, mpsc::UnboundedReceiver<M>) {
    let (out, into) = mpsc::unbounded_channel();
    let (actor, _) = Actor::spawn(None, Probe(std::marker::PhantomData), out)
        .await
        .expect("a probe starts");
    (Peer::to(actor), into)
}

struct World {
    journal: ActorRef<JournalMsg>,
    ended: JoinHandle<()>,
    session: mpsc::UnboundedReceiver<SessionMsg>,
    approval: mpsc::UnboundedReceiver<ApprovalMsg>,
    args: JournalArgs,
}

impl World {
    async fn over(store: Arc<JournalStore>) -> Self {
        Self::with(store, FaultSwitch::default()).await
    }

    async fn with(store: Arc<JournalStore>, fault: FaultSwitch) -> Self {
        let (session_peer, session) = probe().await;
        let (approval_peer, approval) = probe().await;
        let args = JournalArgs {
            store,
            session: session_peer,
            approval: approval_peer,
            sync: SyncPolicy::Turn,
            fault,
        };
        let (journal, ended) = Actor::spawn(None, Journal, args.clone())
            .await
            .expect("it starts");
        Self {
            journal,
            ended,
            session,
            approval,
            args,
        }
    }

    async fn restart(&mut self) {
        let (journal, ended) = Actor::spawn(None, Journal, self.args.clone())
            .await
            .expect("it starts again");
        self.journal = journal;
        self.ended = ended;
    }

    fn append(&self, batches: Vec<Batch>) {
        for batch in batches {
            self.journal
                .cast(JournalMsg::Append(batch))
                .expect("it lives");
        }
    }

    /// The next acknowledgement of Session.
    async fn committed(&mut self) -> Committed {
        match self.session.recv().await {
            Some(SessionMsg::Committed(committed)) => committed,
            other => panic!("{other:?}"),
        }
    }

    async fn load(&self) -> Loaded {
        Peer::to(self.journal.clone())
            .call(JournalMsg::Load, Duration::from_secs(10))
            .await
            .expect("an answer")
            .expect("records")
    }
}

fn memory() -> Arc<JournalStore> {
    JournalStore::create(Path::new("/nowhere"), &meta(), true).expect("in memory")
}

#[tokio::test]
async fn batches_are_acknowledged_in_order_to_their_writer() {
    let home = tempfile::tempdir().expect("a directory");
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let mut world = World::over(store).await;
    let batches = session(3);
    world.append(batches.clone());
    for sent in &batches {
        let committed = world.committed().await;
        assert_eq!(committed.id, sent.id);
        let entries: Vec<Entry> = committed.records.iter().map(|r| r.entry.clone()).collect();
        assert_eq!(entries, sent.entries);
    }
    let of_approval = Batch {
        id: BatchId {
            writer: Writer::Approval,
            number: 1,
        },
        ..batch(
            1,
            vec![Entry::Notice {
                text: "n".to_owned(),
            }],
        )
    };
    world.append(vec![of_approval.clone()]);
    match world.approval.recv().await {
        Some(ApprovalMsg::Committed(committed)) => assert_eq!(committed.id, of_approval.id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn loading_sees_what_was_sent_before() {
    let world = World::over(memory()).await;
    world.append(session(2));
    let loaded = world.load().await;
    assert_eq!(loaded.session_batch, 13);
    assert_eq!(loaded.inherited, 0);
}

#[tokio::test]
async fn syncing_waits_for_what_was_sent_before() {
    let disk = FaultyDisk::default();
    let world = World::over(JournalStore::over(meta(), Box::new(disk.clone()))).await;
    world.append(session(1));
    let synced = Peer::to(world.journal.clone())
        .call(JournalMsg::Sync, Duration::from_secs(10))
        .await
        .expect("an answer");
    assert_eq!(synced, Ok(()));
    assert_eq!(disk.syncs(), 1);
    assert!(!disk.bytes().is_empty());
}

#[tokio::test]
async fn a_full_disk_is_told_to_the_writer_and_the_same_batch_may_come_again() {
    let disk = FaultyDisk::default();
    let mut world = World::over(JournalStore::over(meta(), Box::new(disk.clone()))).await;
    disk.set(|disk| disk.room = Some(10));
    world.append(session(0));
    match world.session.recv().await {
        Some(SessionMsg::AppendFailed { error }) => {
            assert!(error.contains("cannot write the session file"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    disk.set(|disk| disk.room = None);
    world.append(session(0));
    assert_eq!(world.committed().await.id.number, 1);
}

#[tokio::test]
async fn a_crash_costs_nothing_when_the_writer_sends_again() {
    let home = tempfile::tempdir().expect("a directory");
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let batches = session(2);
    for k in 0..batches.len() {
        let armed = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&armed);
        let fault = FaultSwitch::new(move |point| {
            assert!(
                !(point == "journal.append" && switch.swap(false, Ordering::SeqCst)),
                "injected"
            );
        });
        let mut world = World::with(Arc::clone(&store), fault).await;
        armed.store(true, Ordering::SeqCst);
        world.append(vec![batches[k].clone()]);
        (&mut world.ended)
            .await
            .expect("the task of the actor ends");
        world.restart().await;
        let upto = batches[..=k].to_vec();
        world.append(upto.clone());
        for sent in upto {
            let committed = world.committed().await;
            assert_eq!(committed.id, sent.id);
            assert_eq!(committed.records.len(), sent.entries.len());
        }
        world
            .journal
            .stop_and_wait(None, None)
            .await
            .expect("it stops");
    }
    let path = store.path().expect("a file").to_owned();
    let expected: Vec<Entry> = batches.into_iter().flat_map(|b| b.entries).collect();
    drop(store);
    let store = JournalStore::open(&path).expect("nobody holds it");
    let found: Vec<Entry> = store
        .loaded()
        .records
        .iter()
        .map(|r| r.entry.clone())
        .collect();
    assert_eq!(found, expected);
    assert_eq!(store.loaded().warnings, Vec::<String>::new());
}

#[tokio::test]
async fn a_panic_in_a_write_ends_the_actor_and_the_next_one_goes_on() {
    let disk = FaultyDisk::default();
    let mut world = World::over(JournalStore::over(meta(), Box::new(disk.clone()))).await;
    world.append(session(1));
    for _ in session(1) {
        world.committed().await;
    }
    disk.set(|disk| disk.panics = true);
    world.append(turn(2, 8, 2));
    (&mut world.ended).await.expect("the actor ends");
    disk.set(|disk| disk.panics = false);
    world.restart().await;
    world.append(turn(2, 8, 2));
    assert_eq!(world.committed().await.id.number, 8);
    assert_eq!(crate::load::parse(&disk.bytes()).lost, []);
}

#[tokio::test]
async fn a_drain_writes_everything_that_was_sent() {
    let disk = FaultyDisk::default();
    let store = JournalStore::over(meta(), Box::new(disk.clone()));
    let world = World::over(Arc::clone(&store)).await;
    world.append(session(3));
    world.journal.drain_and_wait(None).await.expect("it drains");
    assert_eq!(store.loaded().session_batch, 19);
    let parsed = crate::load::parse(&disk.bytes());
    assert_eq!(parsed.content.records, store.loaded().records);
    assert_eq!(disk.syncs(), 1, "forced to the disk at the end");
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_down_is_no_reason_to_stop() {
    let world = World::over(memory()).await;
    world.args.session.clear();
    world.append(session(1));
    assert_eq!(world.load().await.session_batch, 7);
}
