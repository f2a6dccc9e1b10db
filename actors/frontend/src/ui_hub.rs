//! UiHub: who looks at which session. Routes questions and their settlement; owns nothing of a session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interpreter_messages::approval::ApprovalMsg;
use interpreter_messages::hub::{SessionHandle, UiHubMsg};
use interpreter_messages::sink::Attachment;
use interpreter_messages::ui::{Event, UiMsg};
use interpreter_messages::{FaultSwitch, SessionId, UiId};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tracing::{debug, warn};

/// How long one UI may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Ids are unique in the process, over restarts of UiHub too, so that no late answer counts for another UI.
static NEXT_UI: AtomicU64 = AtomicU64::new(1);

/// Owns the table of attached UIs, and supervises the UI actors that [`crate::host`] starts under it.
///
/// Root supervises it and starts it again after any crash. A crash takes its UIs with it (each detaches by the drop of
/// its entry); their hosts start them again, and they attach anew and read on from the event they saw last. Sessions
/// notice nothing. On a stop it says goodbye to the UIs first.
pub struct UiHub;

/// What UiHub is started with.
#[derive(Debug, Clone, Default)]
pub struct UiHubArgs {
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The attached UIs.
#[derive(Debug)]
pub struct UiHubState {
    fault: FaultSwitch,
    uis: Vec<AttachedUi>,
}

/// One UI at one session; its drop takes it out of the session's sink and tells the session's Approval.
#[derive(Debug)]
struct AttachedUi {
    ui: UiId,
    actor: ActorRef<UiMsg>,
    can_answer: bool,
    session: SessionHandle,
}

impl AttachedUi {
    fn announce(&self) {
        let attached = ApprovalMsg::Attached {
            ui: self.ui,
            can_answer: self.can_answer,
        };
        if self.session.approval.cast(attached).is_err() {
            debug!(ui = %self.ui, "approval is down; it asks for its UIs when it is back");
        }
    }
}

impl Drop for AttachedUi {
    fn drop(&mut self) {
        self.session.sink.detach(self.ui);
        // An Approval that is down asks who is there when it comes back.
        let _ = self
            .session
            .approval
            .cast(ApprovalMsg::Detached { ui: self.ui });
    }
}

impl Actor for UiHub {
    type Msg = UiHubMsg;
    type State = UiHubState;
    type Arguments = UiHubArgs;

    async fn pre_start(
        &self,
        _: ActorRef<UiHubMsg>,
        args: UiHubArgs,
    ) -> Result<UiHubState, ActorProcessingErr> {
        Ok(UiHubState {
            fault: args.fault,
            uis: Vec::new(),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<UiHubMsg>,
        message: UiHubMsg,
        state: &mut UiHubState,
    ) -> Result<(), ActorProcessingErr> {
        state.fault.hit(point(&message));
        match message {
            UiHubMsg::Attach {
                session,
                ui,
                can_answer,
                deltas,
                lossless,
                since,
                ready,
                reply,
            } => {
                let view = View {
                    can_answer,
                    deltas,
                    lossless,
                    since,
                };
                state.attach(session, ui, view, ready, reply);
            }
            UiHubMsg::Detach { ui } => state.detach(ui),
            UiHubMsg::Ask {
                session,
                request,
                only,
            } => state.tell(
                |ui| {
                    ui.session.id == session
                        && ui.can_answer
                        && only.is_none_or(|only| only == ui.ui)
                },
                || UiMsg::Ask(request.clone()),
            ),
            UiHubMsg::Resolved {
                session,
                id,
                decision,
                by,
            } => state.tell(
                |ui| ui.session.id == session,
                || UiMsg::Resolved {
                    id: id.clone(),
                    decision: decision.clone(),
                    by,
                },
            ),
            UiHubMsg::WhoCanAnswer { session } => state.announce(session),
            UiHubMsg::CloseAll(reply) => {
                let uis = state.actors();
                tokio::spawn(async move {
                    close(uis).await;
                    // Whoever asked may be gone.
                    let _ = reply.send(());
                });
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<UiHubMsg>,
        event: SupervisionEvent,
        state: &mut UiHubState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, cause) => {
                warn!(%cause, "a UI crashed");
                state.forget(cell.get_id());
            }
            SupervisionEvent::ActorTerminated(cell, _, _) => state.forget(cell.get_id()),
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        myself: ActorRef<UiHubMsg>,
        state: &mut UiHubState,
    ) -> Result<(), ActorProcessingErr> {
        close(state.actors()).await;
        myself
            .get_cell()
            .stop_children_and_wait(Some("shutdown".to_owned()), Some(GOODBYE))
            .await;
        Ok(())
    }
}

/// How a UI wants to look at a session.
struct View {
    can_answer: bool,
    deltas: bool,
    lossless: bool,
    since: Option<u64>,
}

impl UiHubState {
    fn attach(
        &mut self,
        session: SessionHandle,
        actor: ActorRef<UiMsg>,
        view: View,
        ready: Event,
        reply: Option<RpcReplyPort<UiId>>,
    ) {
        let same = |other: &AttachedUi| {
            other.actor.get_id() == actor.get_id() && other.session.id == session.id
        };
        self.uis.retain(|other| !same(other));
        let ui = UiId(NEXT_UI.fetch_add(1, Ordering::Relaxed));
        if actor.cast(UiMsg::Attached { ui }).is_err() {
            return;
        }
        let wake = {
            let actor = actor.clone();
            Box::new(move || {
                // A UI that is gone is detached when its end is reported.
                let _ = actor.cast(UiMsg::Wake);
            })
        };
        let attachment = Attachment {
            ui,
            deltas: view.deltas,
            lossless: view.lossless,
            since: view.since,
            wake,
        };
        session.sink.attach_with(attachment, Some(ready));
        let attached = AttachedUi {
            ui,
            actor,
            can_answer: view.can_answer,
            session,
        };
        attached.announce();
        self.uis.push(attached);
        if let Some(reply) = reply {
            // Whoever asked may be gone.
            let _ = reply.send(ui);
        }
    }

    fn detach(&mut self, ui: UiId) {
        if let Some(at) = self.uis.iter().position(|other| other.ui == ui) {
            let gone = self.uis.swap_remove(at);
            let why = "it was detached".to_owned();
            // A UI that is gone needs no word.
            let _ = gone.actor.cast(UiMsg::Detach { why });
        }
    }

    fn forget(&mut self, actor: ActorId) {
        self.uis.retain(|ui| ui.actor.get_id() != actor);
    }

    /// Sends to the UIs that `wanted` picks; those that are gone are detached.
    fn tell(&mut self, wanted: impl Fn(&AttachedUi) -> bool, message: impl Fn() -> UiMsg) {
        self.uis
            .retain(|ui| !wanted(ui) || ui.actor.cast(message()).is_ok());
    }

    fn announce(&self, session: SessionId) {
        for ui in self.uis.iter().filter(|ui| ui.session.id == session) {
            ui.announce();
        }
    }

    fn actors(&self) -> Vec<ActorRef<UiMsg>> {
        let mut actors: Vec<ActorRef<UiMsg>> = Vec::new();
        for ui in &self.uis {
            if !actors
                .iter()
                .any(|other| other.get_id() == ui.actor.get_id())
            {
                actors.push(ui.actor.clone());
            }
        }
        actors
    }
}

/// Says goodbye to all, and waits for each at most [`GOODBYE`], all at the same time.
async fn close(uis: Vec<ActorRef<UiMsg>>) {
    let goodbyes: Vec<_> = uis
        .into_iter()
        .map(|ui| tokio::spawn(async move { ui.call(UiMsg::Close, Some(GOODBYE)).await.is_ok() }))
        .collect();
    for goodbye in goodbyes {
        // A UI that is gone, or too slow, has said all it could.
        let _ = goodbye.await;
    }
}

const fn point(message: &UiHubMsg) -> &'static str {
    match message {
        UiHubMsg::Attach { .. } => "ui_hub.attach",
        UiHubMsg::Detach { .. } => "ui_hub.detach",
        UiHubMsg::Ask { .. } => "ui_hub.ask",
        UiHubMsg::Resolved { .. } => "ui_hub.resolved",
        UiHubMsg::WhoCanAnswer { .. } => "ui_hub.who_can_answer",
        UiHubMsg::CloseAll(_) => "ui_hub.close_all",
    }
}

#[cfg(test)]
mod tests;
