//! Fakes for the tests of this crate: sessions and approvals that record what they are told, and devices.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use interpreter_messages::approval::{ApprovalMsg, ApprovalRequest, Subject};
use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::journal::TurnEnd;
use interpreter_messages::model::Usage;
use interpreter_messages::session::SessionMsg;
use interpreter_messages::ui::{Event, Item, ItemBody, UiMsg};
use interpreter_messages::{
    ApprovalId, CallId, EventSink, FaultSwitch, ItemId, Peer, SessionId, TurnId,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use tokio::sync::mpsc;

use crate::{UiHub, UiHubArgs};

/// An actor that hands on all it is told.
pub(crate) struct Probe<M>(PhantomData<fn(M)>);

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

pub(crate) async fn probe<M: Message>() -> (ActorRef<M>, mpsc::UnboundedReceiver<M>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (actor, _) = Actor::spawn(None, Probe(PhantomData), sender)
        .await
        .expect("a probe starts");
    (actor, receiver)
}

/// A session of fakes, and a real hub.
pub(crate) struct World {
    pub(crate) handle: SessionHandle,
    pub(crate) session: mpsc::UnboundedReceiver<SessionMsg>,
    pub(crate) approval: mpsc::UnboundedReceiver<ApprovalMsg>,
    pub(crate) hub: Peer<UiHubMsg>,
    pub(crate) slot: Peer<UiMsg>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(FaultSwitch::default()).await
    }

    pub(crate) async fn with(fault: FaultSwitch) -> Self {
        let (session, from_session) = probe().await;
        let (approval, from_approval) = probe().await;
        let handle = SessionHandle {
            id: SessionId(uuid::Uuid::from_u128(7)),
            session: Peer::to(session),
            approval: Peer::to(approval),
            tools: Peer::empty(),
            supervisor: Peer::empty(),
            sink: EventSink::new(),
        };
        let world = Self {
            handle,
            session: from_session,
            approval: from_approval,
            hub: Peer::empty(),
            slot: Peer::empty(),
        };
        world.start_hub(fault).await;
        world
    }

    pub(crate) async fn start_hub(&self, fault: FaultSwitch) -> tokio::task::JoinHandle<()> {
        let (hub, ended) = Actor::spawn(None, UiHub, UiHubArgs { fault })
            .await
            .expect("the hub starts");
        self.hub.fill(hub);
        ended
    }

    /// Waits for the prompt; gives its client id.
    pub(crate) async fn submitted(&mut self) -> interpreter_messages::ClientId {
        loop {
            if let SessionMsg::Submit(submit) =
                self.session.recv().await.expect("the session lives")
            {
                return submit.client;
            }
        }
    }

    /// Publishes the events of a record.
    pub(crate) fn record(&self, events: Vec<Event>) {
        let seq = self.handle.sink.published().unwrap_or_default().next();
        self.handle.sink.publish_record(seq, events);
    }

    /// Publishes the begin of turn 1.
    pub(crate) fn begin(&self, client: interpreter_messages::ClientId) {
        let turn = TurnId(1);
        self.record(vec![Event::TurnStarted { turn }]);
        self.record(vec![Event::Accepted {
            client,
            turn,
            parts: Vec::new(),
        }]);
    }

    pub(crate) fn end(&self, end: TurnEnd) {
        self.record(vec![Event::TurnEnded {
            turn: TurnId(1),
            end,
            total: Usage::default(),
        }]);
    }
}

pub(crate) fn ready() -> Event {
    Event::SessionReady {
        session: SessionId(uuid::Uuid::from_u128(7)),
        cwd: PathBuf::from("/ws"),
        model: "m".into(),
        provider: "p".into(),
        harness: "native".into(),
        sandbox: "read-only".into(),
        approval: "never".into(),
        turns: 0,
    }
}

pub(crate) fn message(id: &str, text: &str) -> Event {
    Event::ItemCompleted {
        item: Item {
            id: ItemId::new(id),
            turn: TurnId(1),
            body: ItemBody::Message { text: text.into() },
        },
    }
}

pub(crate) fn question(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(id),
        call: CallId::new("c"),
        turn: TurnId(1),
        subject: Subject::Command {
            command: "make install".into(),
            cwd: PathBuf::from("/ws"),
            escalated: true,
        },
        reason: None,
        origin: Vec::new(),
    }
}

/// A device that keeps what is written, and can be stuck or gone.
#[derive(Clone, Default)]
pub(crate) struct Device {
    state: Arc<(Mutex<DeviceState>, Condvar)>,
}

#[derive(Default)]
struct DeviceState {
    text: String,
    stuck: bool,
    gone: bool,
}

impl Device {
    pub(crate) fn boxed(&self) -> Box<dyn Write + Send> {
        Box::new(self.clone())
    }

    pub(crate) fn stuck() -> Self {
        let device = Self::default();
        device.state.0.lock().expect("not poisoned").stuck = true;
        device
    }

    pub(crate) fn gone() -> Self {
        let device = Self::default();
        device.state.0.lock().expect("not poisoned").gone = true;
        device
    }

    pub(crate) fn release(&self) {
        self.state.0.lock().expect("not poisoned").stuck = false;
        self.state.1.notify_all();
    }

    pub(crate) fn text(&self) -> String {
        self.state.0.lock().expect("not poisoned").text.clone()
    }
}

impl Write for Device {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.0.lock().expect("not poisoned");
        while state.stuck {
            state = self.state.1.wait(state).expect("not poisoned");
        }
        if state.gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        state.text.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
