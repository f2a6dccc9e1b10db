use std::io::Cursor;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use interpreter_messages::journal::TurnEnd;
use interpreter_messages::model::Usage;
use interpreter_messages::session::SessionMsg;
use interpreter_messages::sink::Attachment;
use interpreter_messages::ui::{DeltaKind, Item, ItemBody};
use interpreter_messages::{EventSink, ItemId, SessionId, TurnId, UiId};
use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use tokio::sync::mpsc;

use super::*;

/// An actor that hands on all it is told.
struct Probe<M>(PhantomData<fn(M)>);

impl<M: Message> Actor for Probe<M> {
    type Msg = M;
    type State = mpsc::UnboundedSender<M>;
    type Arguments = mpsc::UnboundedSender<M>;

    async fn pre_start(
        &self,
        _: ActorRef<M>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<M>,
        message: M,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = state.send(message);
        Ok(())
    }
}

async fn probe<M: Message>() -> (Peer<M>, mpsc::UnboundedReceiver<M>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (actor, _) = Actor::spawn(None, Probe(PhantomData), sender)
        .await
        .expect("a probe starts");
    (Peer::to(actor), receiver)
}

/// Attaches whoever asks, like the real hub.
struct Hub;

impl Actor for Hub {
    type Msg = UiHubMsg;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<UiHubMsg>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<UiHubMsg>,
        message: UiHubMsg,
        last: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        if let UiHubMsg::Attach {
            session,
            ui,
            deltas,
            lossless,
            since,
            ready,
            ..
        } = message
        {
            session.sink.detach(UiId(*last));
            *last += 1;
            let id = UiId(*last);
            ui.cast(UiMsg::Attached { ui: id })?;
            let wake = Box::new(move || {
                let _ = ui.cast(UiMsg::Wake);
            });
            let attachment = Attachment {
                ui: id,
                deltas,
                lossless,
                since,
                wake,
            };
            session.sink.attach_with(attachment, Some(ready));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sheet {
    text: Mutex<String>,
    unwritten: AtomicUsize,
    on_idle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Sheet {
    fn text(&self) -> String {
        self.text.lock().expect("not poisoned").clone()
    }
}

impl Paper for Sheet {
    fn put(&self, text: String) {
        self.text.lock().expect("not poisoned").push_str(&text);
    }

    fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::SeqCst)
    }

    fn when_idle(&self, then: Box<dyn FnOnce() + Send>) {
        *self.on_idle.lock().expect("not poisoned") = Some(then);
    }
}

struct World {
    text: Text,
    sheet: Arc<Sheet>,
    handle: SessionHandle,
    slot: Peer<UiMsg>,
    session: mpsc::UnboundedReceiver<SessionMsg>,
}

async fn world(input: &str, fault: FaultSwitch) -> World {
    let (session, heard) = probe().await;
    let (hub, _) = Actor::spawn(None, Hub, ()).await.expect("it starts");
    let id = SessionId(uuid::Uuid::from_u128(7));
    let handle = SessionHandle {
        id,
        session,
        approval: Peer::empty(),
        tools: Peer::empty(),
        supervisor: Peer::empty(),
        sink: EventSink::new(),
    };
    let sheet = Arc::new(Sheet::default());
    let slot = Peer::empty();
    let text = Text::new(TextArgs {
        hub: Peer::to(hub),
        slot: slot.clone(),
        session: handle.clone(),
        ready: Event::SessionReady {
            session: id,
            cwd: "/ws".into(),
            model: "m".into(),
            provider: "p".into(),
            harness: "native".into(),
            sandbox: "read-only".into(),
            approval: "never".into(),
            turns: 0,
        },
        records: Vec::new(),
        first_prompt: None,
        input: Box::new(Cursor::new(input.to_owned().into_bytes())),
        paper: Arc::clone(&sheet) as Arc<dyn Paper>,
        color: false,
        width: 80,
        interactive: false,
        prices: None,
        resubmit: Duration::from_secs(2),
        fault,
    })
    .expect("a thread");
    World {
        text,
        sheet,
        handle,
        slot,
        session: heard,
    }
}

impl World {
    /// Runs the actor until it has finished, again after each crash; gives the number of crashes.
    async fn run(text: &Text, slot: &Peer<UiMsg>) -> usize {
        let mut crashes = 0;
        loop {
            let (actor, args) = text.start();
            let (ui, ended) = Actor::spawn(None, actor, args).await.expect("it starts");
            slot.fill(ui);
            ended.await.expect("its task ends");
            slot.clear();
            if text.is_finished() {
                return crashes;
            }
            crashes += 1;
        }
    }

    /// Plays the session's part of a turn that answers each input.
    async fn serve(sink: EventSink, mut session: mpsc::UnboundedReceiver<SessionMsg>, turns: u64) {
        let mut known = Vec::new();
        let publish = |event| {
            let seq = sink.published().unwrap_or_default().next();
            sink.publish_record(seq, vec![event]);
        };
        while (known.len() as u64) < turns {
            let Some(SessionMsg::Submit(submit)) = session.recv().await else {
                continue;
            };
            if known.contains(&submit.client) {
                continue;
            }
            known.push(submit.client.clone());
            let turn = TurnId(known.len() as u64);
            publish(Event::TurnStarted { turn });
            publish(Event::Accepted {
                client: submit.client,
                turn,
                parts: submit.parts,
            });
            let id = ItemId::new(format!("text-{turn}"));
            sink.delta(&id, DeltaKind::Text, "an ");
            sink.delta(&id, DeltaKind::Text, "answer");
            let body = ItemBody::Message {
                text: "an answer".into(),
            };
            publish(Event::ItemCompleted {
                item: Item { id, turn, body },
            });
            publish(Event::TurnEnded {
                turn,
                end: TurnEnd::Completed,
                total: Usage::default(),
            });
        }
    }
}

#[tokio::test]
async fn two_lines_of_a_pipe_make_two_turns_then_it_ends() {
    let World {
        text,
        sheet,
        handle,
        slot,
        session,
    } = world("one\ntwo\n", FaultSwitch::default()).await;
    tokio::spawn(World::serve(handle.sink.clone(), session, 2));
    assert_eq!(World::run(&text, &slot).await, 0);
    let version = env!("CARGO_PKG_VERSION");
    insta::assert_snapshot!(sheet.text().replace(version, "VERSION"));
}

#[tokio::test]
async fn a_crash_at_any_message_changes_nothing_that_is_shown() {
    async fn shown(fault: FaultSwitch) -> (usize, String) {
        let World {
            text,
            sheet,
            handle,
            slot,
            session,
        } = world("one\ntwo\n", fault).await;
        tokio::spawn(World::serve(handle.sink.clone(), session, 2));
        let crashes = World::run(&text, &slot).await;
        (crashes, sheet.text())
    }
    let (_, expected) = shown(FaultSwitch::default()).await;
    let mut crashes = 0;
    for n in 0..100 {
        let seen = AtomicUsize::new(0);
        let fault = FaultSwitch::new(move |point| {
            assert_ne!(
                seen.fetch_add(1, Ordering::SeqCst),
                n,
                "as the test wants, at {point}"
            );
        });
        let (crashed, text) = shown(fault).await;
        assert_eq!(text, expected, "crash at message {n}");
        crashes += crashed;
        if crashed == 0 {
            break;
        }
    }
    assert!(crashes >= 3, "attached, a line, a wake: {crashes}");
}

#[tokio::test]
async fn a_stuck_terminal_is_not_written_to_until_it_moves_again() {
    let mut world = world("one\n", FaultSwitch::default()).await;
    world.sheet.unwritten.store(usize::MAX, Ordering::SeqCst);
    let (text, slot) = (world.text, world.slot.clone());
    let run = tokio::spawn(async move { World::run(&text, &slot).await });
    while world.sheet.on_idle.lock().expect("not poisoned").is_none() {
        tokio::task::yield_now().await;
    }
    for _ in 0..20_000 {
        world
            .handle
            .sink
            .delta(&ItemId::new("a"), DeltaKind::Text, "0123456789");
    }
    assert_eq!(world.sheet.text(), "");
    world.sheet.unwritten.store(0, Ordering::SeqCst);
    let wake = world.sheet.on_idle.lock().expect("not poisoned").take();
    wake.expect("it waits")();
    loop {
        if let Some(SessionMsg::Submit(_)) = world.session.recv().await {
            break;
        }
    }
    assert!(world.sheet.text().ends_with(&"0123456789".repeat(20_000)));
    let (reply, closed) = ractor::concurrency::oneshot();
    world
        .slot
        .cast(UiMsg::Close(reply.into()))
        .expect("it runs");
    closed.await.expect("it says goodbye");
    assert_eq!(run.await.expect("no panic"), 0);
    assert!(
        world
            .sheet
            .text()
            .ends_with("to go on: interpreter resume 00000000-0000-0000-0000-000000000007\n")
    );
}
