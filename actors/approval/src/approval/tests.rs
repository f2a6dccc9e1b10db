use std::sync::atomic::{AtomicBool, Ordering};

use interpreter_messages::approval::{ApprovalRequest, DecidedBy};
use interpreter_messages::journal::{Committed, Loaded, Record};
use interpreter_messages::policy::OnNoUi;
use interpreter_messages::sink::Attachment;
use interpreter_messages::{Seq, TurnId};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::desk::tests::{question, settings};

const TUI: UiId = UiId(1);

/// Takes what is sent to a peer and passes it on to the test.
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

/// A journal in memory that can be told to fail.
struct FakeJournal;

#[derive(Default)]
struct Book {
    records: Vec<Arc<Record>>,
    inherited: usize,
    last: u64,
    batches: Vec<u64>,
    full: bool,
    approval: Peer<ApprovalMsg>,
}

type SharedBook = Arc<std::sync::Mutex<Book>>;

impl Actor for FakeJournal {
    type Msg = JournalMsg;
    type State = SharedBook;
    type Arguments = SharedBook;

    async fn pre_start(
        &self,
        _: ActorRef<JournalMsg>,
        book: SharedBook,
    ) -> Result<SharedBook, ActorProcessingErr> {
        Ok(book)
    }

    async fn handle(
        &self,
        _: ActorRef<JournalMsg>,
        message: JournalMsg,
        book: &mut SharedBook,
    ) -> Result<(), ActorProcessingErr> {
        let mut book = book.lock().expect("not poisoned");
        match message {
            JournalMsg::Append(batch) => {
                let number = batch.id.number;
                if book.full || number > book.last + 1 {
                    let error = "no room".to_owned();
                    let _ = book.approval.cast(ApprovalMsg::AppendFailed { error });
                    return Ok(());
                }
                if number > book.last {
                    book.last = number;
                    book.batches.push(number);
                    for entry in batch.entries {
                        let seq = Seq(book.records.len() as u64);
                        book.records.push(Arc::new(Record {
                            seq,
                            at: batch.at,
                            entry,
                        }));
                    }
                }
                let committed = Committed {
                    id: batch.id,
                    records: Vec::new(),
                };
                let _ = book.approval.cast(ApprovalMsg::Committed(committed));
            }
            JournalMsg::Load(reply) => {
                let loaded = Loaded {
                    records: book.records.clone(),
                    approval_batch: book.last,
                    inherited: book.inherited,
                    ..Loaded::default()
                };
                reply.send(Ok(loaded))?;
            }
            JournalMsg::Sync(reply) => reply.send(Ok(()))?,
        }
        Ok(())
    }
}

struct World {
    approval: ActorRef<ApprovalMsg>,
    ended: JoinHandle<()>,
    args: ApprovalArgs,
    book: SharedBook,
    tools: mpsc::UnboundedReceiver<ToolPoolMsg>,
    driver: mpsc::UnboundedReceiver<SessionMsg>,
    ui_hub: mpsc::UnboundedReceiver<UiHubMsg>,
}

impl World {
    async fn new(on_no_ui: OnNoUi) -> Self {
        Self::with(on_no_ui, SharedBook::default(), FaultSwitch::default()).await
    }

    async fn with(on_no_ui: OnNoUi, book: SharedBook, fault: FaultSwitch) -> Self {
        let (tool_peer, tools) = probe().await;
        let (driver_peer, driver) = probe().await;
        let (hub_peer, ui_hub) = probe().await;
        let (journal, _) = Actor::spawn(None, FakeJournal, Arc::clone(&book))
            .await
            .expect("it starts");
        let settings = settings(on_no_ui);
        let args = ApprovalArgs {
            session: settings.meta.id,
            settings,
            journal: Peer::to(journal),
            tools: tool_peer,
            driver: driver_peer,
            ui_hub: hub_peer,
            sink: EventSink::new(),
            now: Timestamp::now,
            fault,
        };
        let (approval, ended) = Actor::spawn(None, Approval, args.clone())
            .await
            .expect("it starts");
        let mut world = Self {
            approval,
            ended,
            args,
            book,
            tools,
            driver,
            ui_hub,
        };
        world.started().await;
        world
    }

    async fn started(&mut self) {
        self.book.lock().expect("not poisoned").approval = Peer::to(self.approval.clone());
        loop {
            match self.ui_hub.recv().await.expect("the probe lives") {
                UiHubMsg::WhoCanAnswer { .. } => return,
                // From before a crash.
                UiHubMsg::Ask { .. } | UiHubMsg::Resolved { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn restart(&mut self) {
        let (approval, ended) = Actor::spawn(None, Approval, self.args.clone())
            .await
            .expect("it starts again");
        self.approval = approval;
        self.ended = ended;
        self.started().await;
    }

    fn cast(&self, message: ApprovalMsg) {
        self.approval.cast(message).expect("it lives");
    }

    fn attach(&self) {
        self.cast(ApprovalMsg::Attached {
            ui: TUI,
            can_answer: true,
        });
    }

    fn ask(&self, n: u64, text: &str) {
        self.cast(ApprovalMsg::Request(question(n, 1, text)));
    }

    async fn answer(&self, n: u64, decision: Decision) -> AnswerFate {
        Peer::to(self.approval.clone())
            .call(
                |reply| ApprovalMsg::Answer {
                    id: question(n, 1, "").id,
                    decision,
                    by: TUI,
                    reply: Some(reply),
                },
                Duration::from_secs(5),
            )
            .await
            .expect("an answer")
    }

    async fn pending(&self) -> Vec<ApprovalRequest> {
        Peer::to(self.approval.clone())
            .call(ApprovalMsg::Pending, Duration::from_secs(5))
            .await
            .expect("an answer")
    }

    /// The next decision that a call gets.
    async fn decided(&mut self) -> (String, Decision) {
        match self.tools.recv().await {
            Some(ToolPoolMsg::Decided {
                approval, decision, ..
            }) => (approval.0, decision),
            other => panic!("{other:?}"),
        }
    }

    fn journal(&self) -> Vec<&'static str> {
        let book = self.book.lock().expect("not poisoned");
        book.records
            .iter()
            .filter_map(|record| match &record.entry {
                Entry::ApprovalRequested(_) => Some("requested"),
                Entry::ApprovalResolved { .. } => Some("resolved"),
                Entry::Notice { .. } => None,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Until everything that was sent so far is in the journal.
    async fn settled(&self) {
        self.pending().await;
        self.args
            .journal
            .call(JournalMsg::Sync, Duration::from_secs(5))
            .await
            .expect("an answer")
            .expect("synced");
        self.pending().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_to_the_uis_and_its_answer_to_the_call() {
    let mut world = World::new(OnNoUi::Wait).await;
    world.args.sink.attach(Attachment {
        ui: TUI,
        deltas: false,
        lossless: true,
        since: Some(0),
        wake: Box::new(|| {}),
    });
    world.attach();
    world.ask(1, "make");
    match world.ui_hub.recv().await {
        Some(UiHubMsg::Ask { request, only, .. }) => {
            assert_eq!((request.id.as_str(), only), ("call-1/1", None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        world.answer(1, Decision::Approve).await,
        AnswerFate::Counted
    );
    assert_eq!(world.answer(1, Decision::Approve).await, AnswerFate::Stale);
    assert_eq!(
        world.decided().await,
        ("call-1/1".to_owned(), Decision::Approve)
    );
    match world.ui_hub.recv().await {
        Some(UiHubMsg::Resolved { by, .. }) => assert_eq!(by, DecidedBy::Ui(TUI)),
        other => panic!("{other:?}"),
    }
    world.settled().await;
    assert_eq!(world.journal(), ["requested", "resolved"]);
    let events: Vec<Event> = world
        .args
        .sink
        .drain(TUI)
        .events
        .into_iter()
        .map(|n| n.event)
        .collect();
    assert!(
        matches!(
            events[..],
            [Event::ApprovalAsked { .. }, Event::ApprovalResolved { .. }]
        ),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_times_out() {
    let mut world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.ask(1, "make");
    let before = tokio::time::Instant::now();
    assert_eq!(world.decided().await.1, Decision::TimedOut);
    assert_eq!(before.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn an_answered_question_does_not_time_out() {
    let mut world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.ask(1, "make");
    world.answer(1, Decision::Approve).await;
    world.decided().await;
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    world.settled().await;
    assert_eq!(world.journal(), ["requested", "resolved"]);
}

#[tokio::test(start_paused = true)]
async fn when_the_last_ui_leaves_exec_the_call_is_told_that_nobody_could_be_asked() {
    let mut world = World::new(OnNoUi::Deny).await;
    world.attach();
    world.ask(1, "make");
    world.cast(ApprovalMsg::Detached { ui: TUI });
    match world.decided().await {
        (_, Decision::Deny { text: Some(text) }) => {
            assert!(text.starts_with("no one could be asked"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_turn_reaches_session_also_after_session_was_down() {
    let mut world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.ask(1, "make");
    let session = world.args.driver.get().expect("a probe");
    world.args.driver.clear();
    world.answer(1, Decision::AbortTurn).await;
    world.args.driver.fill(session);
    world.cast(ApprovalMsg::PeerRestarted(Who::Session));
    let told = world.driver.recv().await;
    assert!(
        matches!(told, Some(SessionMsg::AbortTurn { turn: TurnId(1) })),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_missed_is_sent_again_in_order() {
    let mut world = World::new(OnNoUi::Wait).await;
    world.attach();
    let journal = world.args.journal.get().expect("it runs");
    world.args.journal.clear();
    world.ask(1, "make");
    world.answer(1, Decision::Approve).await;
    world.decided().await;
    assert_eq!(world.journal(), Vec::<&str>::new());
    world.args.journal.fill(journal);
    world.cast(ApprovalMsg::PeerRestarted(Who::Journal));
    world.settled().await;
    assert_eq!(world.journal(), ["requested", "resolved"]);
}

#[tokio::test(start_paused = true)]
async fn what_did_not_fit_the_disk_is_sent_again_with_the_next_batch() {
    let world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.book.lock().expect("not poisoned").full = true;
    world.ask(1, "make");
    world.ask(2, "make check");
    world.settled().await;
    assert_eq!(world.journal(), Vec::<&str>::new());
    world.book.lock().expect("not poisoned").full = false;
    world.answer(1, Decision::Approve).await;
    world.settled().await;
    assert_eq!(world.journal(), ["requested", "requested", "resolved"]);
    assert_eq!(world.book.lock().expect("not poisoned").batches, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_tool_pool_has_no_questions_any_more() {
    let world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.ask(1, "make");
    world.cast(ApprovalMsg::PeerRestarted(Who::ToolPool));
    assert_eq!(world.pending().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_stop_withdraws_what_is_open() {
    let world = World::new(OnNoUi::Wait).await;
    world.attach();
    world.ask(1, "make");
    world.pending().await;
    world
        .approval
        .stop_and_wait(None, None)
        .await
        .expect("it stops");
    world
        .args
        .journal
        .call(JournalMsg::Sync, Duration::from_secs(5))
        .await
        .expect("an answer")
        .expect("synced");
    assert_eq!(world.journal(), ["requested", "resolved"]);
}

#[tokio::test(start_paused = true)]
async fn records_of_an_earlier_process_grant_nothing() {
    let first = World::new(OnNoUi::Wait).await;
    first.attach();
    first.ask(1, "make");
    first.answer(1, Decision::ApproveForSession).await;
    first.settled().await;
    let book = Arc::clone(&first.book);
    first
        .approval
        .stop_and_wait(None, None)
        .await
        .expect("it stops");
    {
        let mut book = book.lock().expect("not poisoned");
        book.inherited = book.records.len();
    }
    let world = World::with(OnNoUi::Wait, book, FaultSwitch::default()).await;
    world.attach();
    world.ask(1, "make");
    world.ask(2, "make");
    assert_eq!(world.pending().await.len(), 2);
}

/// The actor crashes at each of its messages; the calls ask again, as ToolPool has them do.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_message_changes_no_decision() {
    for point in [
        "approval.attached",
        "approval.request",
        "approval.answer",
        "approval.committed",
    ] {
        let armed = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&armed);
        let fault = FaultSwitch::new(move |at| {
            assert!(
                !(at == point && switch.swap(false, Ordering::SeqCst)),
                "injected"
            );
        });
        let mut world = World::with(OnNoUi::Deny, SharedBook::default(), fault).await;
        // Session journals before it does anything else.
        world
            .book
            .lock()
            .expect("not poisoned")
            .records
            .push(Arc::new(Record {
                seq: Seq(0),
                at: Timestamp::UNIX_EPOCH,
                entry: Entry::Notice {
                    text: "begun".to_owned(),
                },
            }));
        if point != "approval.attached" {
            world.attach();
        }
        if point == "approval.answer" {
            world.ask(1, "make");
            world.pending().await;
        }
        armed.store(true, Ordering::SeqCst);
        match point {
            "approval.attached" => world.attach(),
            "approval.answer" => world.cast(ApprovalMsg::Answer {
                id: question(1, 1, "").id,
                decision: Decision::ApproveForSession,
                by: TUI,
                reply: None,
            }),
            _ => world.ask(1, "make"),
        }
        (&mut world.ended)
            .await
            .expect("the task of the actor ends");
        world.restart().await;
        // The question may come before UiHub has said who is there.
        world.ask(1, "make");
        world.attach();
        assert_eq!(
            world.answer(1, Decision::ApproveForSession).await,
            AnswerFate::Counted,
            "{point}"
        );
        assert_eq!(
            world.decided().await,
            ("call-1/1".to_owned(), Decision::ApproveForSession),
            "{point}"
        );
        world.settled().await;
        assert_eq!(world.journal(), ["requested", "resolved"], "{point}");
        world.approval.kill_and_wait(None).await.expect("it ends");
        world.restart().await;
        world.ask(2, "make");
        assert_eq!(
            world.decided().await.1,
            Decision::Approve,
            "{point}: the grant is folded"
        );
    }
}

#[test]
fn the_search_path_is_the_one_that_commands_get() {
    let mut settings = settings(OnNoUi::Wait);
    let ours = Some("/usr/bin:/bin".into());
    assert_eq!(
        search_path(&settings, ours.clone()),
        [PathBuf::from("/usr/bin"), "/bin".into()]
    );
    let changed = Arc::make_mut(&mut settings);
    let sandbox = Arc::make_mut(&mut changed.sandbox);
    sandbox
        .env
        .set
        .push(("PATH".to_owned(), "/opt::.".to_owned()));
    assert_eq!(
        search_path(&settings, ours),
        [PathBuf::from("/opt"), "".into(), ".".into()]
    );
}
