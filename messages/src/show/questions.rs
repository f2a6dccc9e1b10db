//! The open questions of one front end, in the order they came.

use std::collections::{HashMap, VecDeque};

use crate::ApprovalId;
use crate::approval::{ApprovalRequest, Decision};

/// Which question is posed, which wait, and what was answered and is not yet known to be settled.
#[derive(Debug, Default)]
pub struct Questions {
    open: VecDeque<ApprovalRequest>,
    answered: HashMap<ApprovalId, Decision>,
}

/// What to do with a question that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// Show it: it is the current one.
    Pose,
    /// Another one is open, or it is known.
    Later,
    /// The person has answered it; the answer was lost in a crash. Send it again.
    Repeat(Decision),
}

impl Questions {
    /// Takes a question.
    pub fn asked(&mut self, request: ApprovalRequest) -> Asked {
        if let Some(decision) = self.answered.get(&request.id) {
            return Asked::Repeat(decision.clone());
        }
        if self.open.iter().any(|open| open.id == request.id) {
            return Asked::Later;
        }
        self.open.push_back(request);
        if self.open.len() == 1 {
            Asked::Pose
        } else {
            Asked::Later
        }
    }

    /// The one that is posed.
    #[must_use]
    pub fn current(&self) -> Option<&ApprovalRequest> {
        self.open.front()
    }

    /// Takes an answer to the posed question; false when that is another one. The next one is current then.
    pub fn answer(&mut self, id: &ApprovalId, decision: Decision) -> bool {
        if self.current().is_none_or(|open| open.id != *id) {
            return false;
        }
        self.open.pop_front();
        self.answered.insert(id.clone(), decision);
        true
    }

    /// A question is settled, here or elsewhere; true when it was the posed one.
    pub fn resolved(&mut self, id: &ApprovalId) -> bool {
        self.answered.remove(id);
        let was_posed = self.current().is_some_and(|open| open.id == *id);
        self.open.retain(|open| open.id != *id);
        was_posed
    }

    /// Forgets what is open: whoever asks asks again. Answers are kept.
    pub fn forget_open(&mut self) {
        self.open.clear();
    }
}
