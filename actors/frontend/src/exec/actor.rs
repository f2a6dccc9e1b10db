//! ExecUi: the actor around the core of a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interpreter_messages::approval::{ApprovalMsg, Decision};
use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::journal::Part;
use interpreter_messages::session::{SessionMsg, Submit};
use interpreter_messages::show::Paper;
use interpreter_messages::ui::{Event, UiInternal, UiMsg};
use interpreter_messages::{ApprovalId, ClientId, FaultSwitch, Peer};
use interpreter_restart::AbortOnDrop;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tracing::debug;

use super::core::{Core, Effect};
use super::{AskMode, ExecOutcome};
use crate::Pen;
use crate::keys::Answers;

/// What a run keeps over crashes of its actor.
pub(super) struct Shared {
    setup: Setup,
    core: Mutex<Core>,
    answers: Option<Arc<Mutex<Box<dyn Answers>>>>,
}

/// The fixed part of a run.
pub(super) struct Setup {
    pub(super) session: SessionHandle,
    pub(super) hub: Peer<UiHubMsg>,
    pub(super) ready: Event,
    pub(super) client: ClientId,
    pub(super) prompt: Vec<Part>,
    /// stdout waits for stderr: both are the same terminal.
    pub(super) ordered: bool,
    pub(super) out: Pen,
    pub(super) err: Pen,
    pub(super) resubmit: Duration,
    pub(super) fault: FaultSwitch,
}

impl Shared {
    pub(super) fn new(core: Core, ask: AskMode, setup: Setup) -> Arc<Self> {
        let answers = match ask {
            AskMode::None => None,
            AskMode::Person(answers) => Some(Arc::new(Mutex::new(answers))),
        };
        Arc::new(Self {
            setup,
            core: Mutex::new(core),
            answers,
        })
    }

    pub(super) fn outcome(&self) -> Option<ExecOutcome> {
        self.core().outcome().cloned()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // Held only within one call of the core. An event that panics there is not counted as shown.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(&self, myself: &ActorRef<UiMsg>) {
        let attach = UiHubMsg::Attach {
            session: self.setup.session.clone(),
            ui: myself.clone(),
            can_answer: self.answers.is_some(),
            deltas: false,
            lossless: true,
            since: Some(self.core().last()),
            ready: self.setup.ready.clone(),
            reply: None,
        };
        if self.setup.hub.cast(attach).is_err() {
            // This actor ends with the hub, and its host starts both of them anew.
            debug!("the hub is down");
        }
    }
}

/// Owns nothing but the wait for a person's answer: what it knows lives in [`Shared`], which its host keeps.
///
/// UiHub supervises it; [`crate::host`] starts it again after a crash, which costs nothing: it attaches anew and reads
/// on from the event it showed last. On restart it sends the prompt again unless that was accepted (same id), and
/// answers again what it was asked. It ends by itself when its turn is over.
pub(super) struct ExecUi;

/// What ends with the actor.
pub(super) struct ExecState {
    shared: Arc<Shared>,
    asking: Option<Asking>,
    _ticks: AbortOnDrop,
}

/// The wait for an answer; its drop ends the wait.
struct Asking {
    cancelled: Arc<AtomicBool>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// From its own tasks and threads.
enum Internal {
    Tick,
    Answered { id: ApprovalId, decision: Decision },
    Unread,
}

impl Internal {
    fn message(self) -> UiMsg {
        UiMsg::Internal(Box::new(self))
    }
}

impl Actor for ExecUi {
    type Msg = UiMsg;
    type State = ExecState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        myself: ActorRef<UiMsg>,
        shared: Arc<Shared>,
    ) -> Result<ExecState, ActorProcessingErr> {
        let every = shared.setup.resubmit;
        let ticker = myself.clone();
        let ticks = tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                if ticker.cast(Internal::Tick.message()).is_err() {
                    return;
                }
            }
        });
        let reader = myself.clone();
        shared.setup.out.when_broken(move |kind| {
            debug!(%kind, "stdout is gone");
            // An actor that ended has no turn to end.
            let _ = reader.cast(Internal::Unread.message());
        });
        Ok(ExecState {
            shared,
            asking: None,
            _ticks: AbortOnDrop::new(&ticks),
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<UiMsg>,
        state: &mut ExecState,
    ) -> Result<(), ActorProcessingErr> {
        state.shared.attach(&myself);
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<UiMsg>,
        message: UiMsg,
        state: &mut ExecState,
    ) -> Result<(), ActorProcessingErr> {
        state.shared.setup.fault.hit(point(&message));
        match message {
            UiMsg::Attached { ui } => state.decide(&myself, |core| core.attached(ui)),
            UiMsg::Wake => state.drain(&myself),
            UiMsg::Ask(request) => state.decide(&myself, |core| core.ask(request)),
            UiMsg::Resolved { id, .. } => state.decide(&myself, |core| core.resolved(&id)),
            UiMsg::Detach { .. } => state.decide(&myself, Core::give_up),
            UiMsg::Signal { again } => state.decide(&myself, |core| core.signal(again)),
            UiMsg::Close(reply) => {
                state.decide(&myself, Core::give_up);
                // Whoever asked may be gone.
                let _ = reply.send(());
            }
            UiMsg::Internal(internal) => state.internal(&myself, internal),
        }
        Ok(())
    }
}

impl ExecState {
    /// Lets the core decide, then acts.
    fn decide(&mut self, myself: &ActorRef<UiMsg>, decide: impl FnOnce(&mut Core) -> Vec<Effect>) {
        let effects = decide(&mut self.shared.core());
        for effect in effects {
            self.act(myself, effect);
        }
    }

    fn drain(&mut self, myself: &ActorRef<UiMsg>) {
        let Some(ui) = self.shared.core().ui() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let drained = shared.setup.session.sink.drain(ui);
        for numbered in &drained.events {
            self.decide(myself, |core| core.drained(numbered, &shared.setup.client));
        }
        if drained.detached {
            self.decide(myself, |core| core.lost());
        }
    }

    fn internal(&mut self, myself: &ActorRef<UiMsg>, internal: UiInternal) {
        // Only this file makes these messages.
        let Ok(internal) = internal.downcast::<Internal>() else {
            return;
        };
        match *internal {
            Internal::Tick => self.decide(myself, |core| core.tick()),
            Internal::Answered { id, decision } => {
                self.decide(myself, |core| core.answered(&id, decision));
            }
            Internal::Unread => self.decide(myself, Core::unread),
        }
    }

    fn act(&mut self, myself: &ActorRef<UiMsg>, effect: Effect) {
        let setup = &self.shared.setup;
        match effect {
            Effect::Out(text) if setup.ordered => {
                let out = setup.out.clone();
                setup.err.when_idle(Box::new(move || out.put(text)));
            }
            Effect::Out(text) => setup.out.put(text),
            Effect::Err(text) => setup.err.put(text),
            Effect::Submit => self.send(SessionMsg::Submit(Submit {
                client: setup.client.clone(),
                parts: setup.prompt.clone(),
            })),
            Effect::Interrupt { now } => self.send(SessionMsg::Interrupt { now, by: "user" }),
            Effect::Answer { id, decision } => self.answer(id, decision),
            Effect::Ask(id) => self.ask(myself, id),
            Effect::StopAsking => self.asking = None,
            Effect::Attach => self.shared.attach(myself),
            Effect::Finish => myself.stop(None),
        }
    }

    /// What is lost because the session is down is sent again by the next tick.
    fn send(&self, message: SessionMsg) {
        if self.shared.setup.session.session.cast(message).is_err() {
            debug!("the session is down; asked again soon");
        }
    }

    fn answer(&self, id: ApprovalId, decision: Decision) {
        let Some(by) = self.shared.core().ui() else {
            return;
        };
        let answer = ApprovalMsg::Answer {
            id,
            decision,
            by,
            reply: None,
        };
        if self.shared.setup.session.approval.cast(answer).is_err() {
            debug!("approval is down; answered when it asks again");
        }
    }

    /// Starts the wait for an answer, in a thread: reading a terminal cannot be cancelled from outside.
    fn ask(&mut self, myself: &ActorRef<UiMsg>, id: ApprovalId) {
        let Some(answers) = self.shared.answers.clone() else {
            return;
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        self.asking = Some(Asking {
            cancelled: Arc::clone(&cancelled),
        });
        let err = self.shared.setup.err.clone();
        let asker = myself.clone();
        let answered = id.clone();
        let wait = move || {
            let decision = wait_for_answer(&err, &answers, &cancelled);
            if let Some(decision) = decision
                && !cancelled.load(Ordering::Relaxed)
            {
                let answered = Internal::Answered {
                    id: answered,
                    decision,
                };
                // An actor that ended asks again when it is back.
                let _ = asker.cast(answered.message());
            }
        };
        if std::thread::Builder::new()
            .name("answers".to_owned())
            .spawn(wait)
            .is_err()
        {
            let decision = Decision::Deny { text: None };
            // As above.
            let _ = myself.cast(Internal::Answered { id, decision }.message());
        }
    }
}

/// Waits until the question can be read, then for its answer. A panic on the way is a refusal.
fn wait_for_answer(
    err: &Pen,
    answers: &Mutex<Box<dyn Answers>>,
    cancelled: &AtomicBool,
) -> Option<Decision> {
    /// How often the wait for the writer looks whether the question is settled.
    const LOOK: Duration = Duration::from_millis(100);
    let (shown, is_shown) = std::sync::mpsc::channel();
    err.when_idle(Box::new(move || {
        // Nobody waits when the question was settled.
        let _ = shown.send(());
    }));
    while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = is_shown.recv_timeout(LOOK) {
        if cancelled.load(Ordering::Relaxed) {
            return None;
        }
    }
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    if cancelled.load(Ordering::Relaxed) {
        return None;
    }
    let wait = std::panic::AssertUnwindSafe(|| answers.wait(cancelled));
    std::panic::catch_unwind(wait).unwrap_or(Some(Decision::Deny { text: None }))
}

fn point(message: &UiMsg) -> &'static str {
    match message {
        UiMsg::Attached { .. } => "exec_ui.attached",
        UiMsg::Wake => "exec_ui.wake",
        UiMsg::Ask(_) => "exec_ui.ask",
        UiMsg::Resolved { .. } => "exec_ui.resolved",
        UiMsg::Detach { .. } => "exec_ui.detach",
        UiMsg::Signal { .. } => "exec_ui.signal",
        UiMsg::Close(_) => "exec_ui.close",
        UiMsg::Internal(internal) => match internal.downcast_ref::<Internal>() {
            Some(Internal::Answered { .. }) => "exec_ui.answered",
            Some(Internal::Unread) => "exec_ui.unread",
            Some(Internal::Tick) | None => "exec_ui.tick",
        },
    }
}
