//! What becomes of calls whose executor is gone (DESIGN §4).

use interpreter_messages::journal::Entry;
use interpreter_messages::tool::{Effects, ToolOutcome};

use super::conversation::{OpenCall, OpenTurn};

/// The outcome of a call that ToolPool no longer knows, while the program still runs. `None`: it had not acted, so it
/// is run.
#[must_use]
pub fn outcome_of_lost(call: &OpenCall, cause: &str) -> Option<ToolOutcome> {
    call.intent.as_ref()?;
    Some(ToolOutcome::Crashed {
        effects: Effects::Unknown,
        cause: cause.to_owned(),
        tail: String::new(),
    })
}

/// Outcomes of all open calls after the program itself ended: nothing is run again.
#[must_use]
pub fn outcomes_after_restart(open: &OpenTurn) -> Vec<Entry> {
    open.unanswered()
        .map(|call| {
            let cause = "the program ended while this call was open";
            let never_began = || ToolOutcome::Aborted {
                reason: "the program ended before this call started".to_owned(),
                output: None,
            };
            let outcome = outcome_of_lost(call, cause).unwrap_or_else(never_began);
            Entry::ToolOutcome {
                turn: open.id,
                call: call.call.id.clone(),
                outcome,
            }
        })
        .collect()
}
