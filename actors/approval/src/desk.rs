//! The desk: open questions, who can answer them, and what was answered. Pure: messages in, effects out.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::approval::{AnswerFate, ApprovalRequest, DecidedBy, Decision};
use interpreter_messages::journal::{Entry, Record};
use interpreter_messages::policy::OnNoUi;
use interpreter_messages::session::SessionSettings;
use interpreter_messages::{ApprovalId, CallId, TurnId, UiId};

use crate::policy::{Grants, PolicyContext, Verdict, decide};

/// How long a question waits for a UI that was there and may come back, before it is denied for want of one: a UI that
/// crashed, or that has not yet heard that this actor was restarted, is back in milliseconds.
pub(crate) const NO_UI_GRACE: Duration = Duration::from_secs(1);

/// Decisions that are remembered, so that a question that is submitted again gets the same answer.
const REMEMBERED: usize = 10_000;

/// For the model, when nobody could be asked.
const NOBODY: &str = "no one could be asked for approval: nobody is attached who can answer. \
                      Do without it, or say what you need and end the turn";

/// For the model, when the question was taken back.
const WITHDRAWN: &str = "the question was withdrawn before it was answered";

/// What the actor is to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Give an answer to the call that asked.
    Tell {
        call: CallId,
        id: ApprovalId,
        decision: Decision,
    },
    /// Journal this.
    Append(Entry),
    /// A question is open: publish it.
    Asked(ApprovalRequest),
    /// Show a question to all UIs, or only to one.
    Show {
        request: ApprovalRequest,
        only: Option<UiId>,
    },
    /// A question is settled: publish it and close its dialogues.
    Settled {
        id: ApprovalId,
        decision: Decision,
        by: DecidedBy,
    },
    /// Remind of a question after a while.
    Remind {
        id: ApprovalId,
        generation: u64,
        after: Duration,
    },
    /// The user ended the turn.
    AbortTurn(TurnId),
}

/// One open question.
#[derive(Debug)]
struct Pending {
    request: ApprovalRequest,
    /// Of its timer.
    generation: u64,
    /// Nobody can answer it, and it is denied when that stays so.
    for_want_of_ui: bool,
}

/// Open questions and what is known of closed ones.
#[derive(Debug)]
pub(crate) struct Desk {
    settings: Arc<SessionSettings>,
    path: Vec<PathBuf>,
    grants: Grants,
    pending: Vec<Pending>,
    decided: Decided,
    /// Questions that are in the journal without an answer.
    journalled: HashSet<ApprovalId>,
    /// Attached UIs, and whether they can answer.
    uis: BTreeMap<UiId, bool>,
    /// A UI was there a moment ago and may come back.
    expects_ui: bool,
    generation: u64,
    /// A turn that the user ended and that Session has not ended yet.
    aborting: Option<TurnId>,
}

/// The last decisions.
#[derive(Debug, Default)]
struct Decided {
    by_id: HashMap<ApprovalId, Decision>,
    order: VecDeque<ApprovalId>,
}

impl Decided {
    fn insert(&mut self, id: ApprovalId, decision: Decision) {
        if self.by_id.insert(id.clone(), decision).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }
}

impl Desk {
    pub(crate) fn new(settings: Arc<SessionSettings>, path: Vec<PathBuf>) -> Self {
        Self {
            settings,
            path,
            grants: Grants::default(),
            pending: Vec::new(),
            decided: Decided::default(),
            journalled: HashSet::new(),
            uis: BTreeMap::new(),
            expects_ui: false,
            generation: 0,
            aborting: None,
        }
    }

    /// Takes up what this process journalled before the actor crashed. Records of an earlier process grant nothing.
    pub(crate) fn restore(&mut self, records: &[Arc<Record>]) {
        self.expects_ui = !records.is_empty();
        let mut turns = HashMap::new();
        for record in records {
            match &record.entry {
                Entry::ApprovalRequested(request) => {
                    turns.insert(&request.id, request.turn);
                    self.journalled.insert(request.id.clone());
                }
                Entry::ApprovalResolved {
                    id,
                    decision,
                    by,
                    grants,
                } => {
                    self.journalled.remove(id);
                    self.grants.add(grants.iter().cloned());
                    if *by != DecidedBy::Withdrawn {
                        self.decided.insert(id.clone(), decision.clone());
                    }
                    if *decision == Decision::AbortTurn {
                        self.aborting = turns.get(id).copied();
                    }
                }
                Entry::TurnEnded { turn, .. } if self.aborting == Some(*turn) => {
                    self.aborting = None;
                }
                _ => {}
            }
        }
    }

    /// What is open, oldest first.
    pub(crate) fn pending(&self) -> Vec<ApprovalRequest> {
        self.pending.iter().map(|p| p.request.clone()).collect()
    }

    pub(crate) fn request(&mut self, mut request: ApprovalRequest) -> Vec<Effect> {
        if let Some(decision) = self.decided.by_id.get(&request.id) {
            return vec![tell(&request, decision.clone())];
        }
        if self.pending.iter().any(|p| p.request.id == request.id) {
            return Vec::new();
        }
        let decision = match self.verdict(&request) {
            Verdict::Allow => Decision::Approve,
            Verdict::Deny { reason } => Decision::Deny { text: Some(reason) },
            Verdict::Ask { reason } => {
                if self.is_hopeless() && !self.expects_ui {
                    nobody()
                } else {
                    request.reason.get_or_insert(reason);
                    return self.ask(request);
                }
            }
        };
        self.decided.insert(request.id.clone(), decision.clone());
        vec![tell(&request, decision)]
    }

    pub(crate) fn answer(
        &mut self,
        id: &ApprovalId,
        decision: Decision,
        by: UiId,
    ) -> (AnswerFate, Vec<Effect>) {
        let may_answer = self.uis.get(&by).copied().unwrap_or(false);
        match self.position(id) {
            Some(at) if may_answer => {
                let mut effects = self.settle(at, decision, DecidedBy::Ui(by));
                effects.extend(self.settle_covered());
                (AnswerFate::Counted, effects)
            }
            _ => (AnswerFate::Stale, Vec::new()),
        }
    }

    pub(crate) fn attached(&mut self, ui: UiId, can_answer: bool) -> Vec<Effect> {
        let could_answer = self.uis.insert(ui, can_answer);
        if !can_answer || could_answer == Some(true) {
            return Vec::new();
        }
        self.expects_ui = false;
        let mut effects = Vec::new();
        for at in 0..self.pending.len() {
            if self.pending[at].for_want_of_ui {
                self.pending[at].for_want_of_ui = false;
                effects.extend(self.remind(at, self.settings.approval_timeout));
            }
            effects.push(Effect::Show {
                request: self.pending[at].request.clone(),
                only: Some(ui),
            });
        }
        effects
    }

    pub(crate) fn detached(&mut self, ui: UiId) -> Vec<Effect> {
        if self.uis.remove(&ui) != Some(true) || !self.is_hopeless() {
            return Vec::new();
        }
        self.expects_ui = true;
        (0..self.pending.len())
            .flat_map(|at| self.wait_for_ui(at))
            .collect()
    }

    /// A reminder came. Ignored unless the question still has this generation.
    pub(crate) fn expire(&mut self, id: &ApprovalId, generation: u64) -> Vec<Effect> {
        let Some(at) = self.position(id) else {
            return Vec::new();
        };
        if self.pending[at].generation != generation {
            return Vec::new();
        }
        if self.pending[at].for_want_of_ui {
            self.expects_ui = false;
            return self.settle(at, nobody(), DecidedBy::Policy);
        }
        self.settle(at, Decision::TimedOut, DecidedBy::Timeout)
    }

    /// The turn is over: its askers are gone.
    pub(crate) fn withdraw(&mut self, turn: TurnId) -> Vec<Effect> {
        if self.aborting == Some(turn) {
            self.aborting = None;
        }
        self.withdraw_if(|request| request.turn == turn)
    }

    /// All askers are gone.
    pub(crate) fn withdraw_all(&mut self) -> Vec<Effect> {
        self.withdraw_if(|_| true)
    }

    /// Session came back: it may not have heard that the user ended the turn.
    pub(crate) fn session_is_back(&self) -> Vec<Effect> {
        self.aborting.map(Effect::AbortTurn).into_iter().collect()
    }

    fn verdict(&self, request: &ApprovalRequest) -> Verdict {
        let context = PolicyContext {
            policy: self.settings.approval,
            sandbox: &self.settings.sandbox,
            path: &self.path,
        };
        decide(&context, &self.grants, request)
    }

    /// Whether nobody can answer, and nobody is waited for.
    fn is_hopeless(&self) -> bool {
        self.settings.on_no_ui == OnNoUi::Deny && !self.uis.values().any(|can| *can)
    }

    fn position(&self, id: &ApprovalId) -> Option<usize> {
        self.pending.iter().position(|p| p.request.id == *id)
    }

    fn ask(&mut self, request: ApprovalRequest) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.journalled.insert(request.id.clone()) {
            effects.push(Effect::Append(Entry::ApprovalRequested(request.clone())));
        }
        effects.push(Effect::Asked(request.clone()));
        effects.push(Effect::Show {
            request: request.clone(),
            only: None,
        });
        self.pending.push(Pending {
            request,
            generation: 0,
            for_want_of_ui: false,
        });
        let at = self.pending.len() - 1;
        if self.is_hopeless() {
            effects.extend(self.wait_for_ui(at));
        } else {
            effects.extend(self.remind(at, self.settings.approval_timeout));
        }
        effects
    }

    fn wait_for_ui(&mut self, at: usize) -> Option<Effect> {
        self.pending[at].for_want_of_ui = true;
        self.remind(at, Some(NO_UI_GRACE))
    }

    /// A new timer for a question, in place of the one before; `None`: no timer any more.
    fn remind(&mut self, at: usize, after: Option<Duration>) -> Option<Effect> {
        self.generation += 1;
        let pending = &mut self.pending[at];
        pending.generation = self.generation;
        Some(Effect::Remind {
            id: pending.request.id.clone(),
            generation: pending.generation,
            after: after?,
        })
    }

    fn settle(&mut self, at: usize, decision: Decision, by: DecidedBy) -> Vec<Effect> {
        let Pending { request, .. } = self.pending.remove(at);
        let id = request.id.clone();
        self.decided.insert(id, decision.clone());
        let mut effects = Vec::new();
        if decision == Decision::AbortTurn {
            // First, so that Session does not go on with the refused call's result.
            self.aborting = Some(request.turn);
            effects.push(Effect::AbortTurn(request.turn));
        }
        effects.push(tell(&request, decision.clone()));
        effects.extend(self.close(&request, decision, by));
        effects
    }

    /// Journals and publishes the end of a question.
    fn close(
        &mut self,
        request: &ApprovalRequest,
        decision: Decision,
        by: DecidedBy,
    ) -> [Effect; 2] {
        let id = request.id.clone();
        self.journalled.remove(&id);
        let mut grants = Vec::new();
        if decision == Decision::ApproveForSession {
            let context = PolicyContext {
                policy: self.settings.approval,
                sandbox: &self.settings.sandbox,
                path: &self.path,
            };
            grants = Grants::keys(&context, &request.subject);
            self.grants.add(grants.iter().cloned());
        }
        [
            Effect::Append(Entry::ApprovalResolved {
                id: id.clone(),
                decision: decision.clone(),
                by,
                grants,
            }),
            Effect::Settled { id, decision, by },
        ]
    }

    /// Settles the open questions that the last grant covers too.
    fn settle_covered(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(at) = self
            .pending
            .iter()
            .position(|p| self.verdict(&p.request) == Verdict::Allow)
        {
            effects.extend(self.settle(at, Decision::Approve, DecidedBy::Policy));
        }
        effects
    }

    /// Takes questions back. Nobody is told but the UIs and the journal; asked again, they are new questions.
    fn withdraw_if(&mut self, gone: impl Fn(&ApprovalRequest) -> bool) -> Vec<Effect> {
        let (gone, left): (Vec<Pending>, Vec<Pending>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|p| gone(&p.request));
        self.pending = left;
        let decision = Decision::Deny {
            text: Some(WITHDRAWN.to_owned()),
        };
        gone.iter()
            .flat_map(|p| self.close(&p.request, decision.clone(), DecidedBy::Withdrawn))
            .collect()
    }
}

fn tell(request: &ApprovalRequest, decision: Decision) -> Effect {
    Effect::Tell {
        call: request.call.clone(),
        id: request.id.clone(),
        decision,
    }
}

fn nobody() -> Decision {
    Decision::Deny {
        text: Some(NOBODY.to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
