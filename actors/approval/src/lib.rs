//! Approval: what may run, what must be asked, and who answered.
//!
//! Owns the pending questions of a session and what the user granted for it. It never runs anything, and never decides
//! for the user: [`policy`] (pure) says allow, deny or ask; `desk` (pure) keeps the questions; [`Approval`] is the actor
//! around them. [`shell`] and [`safe`] tell which commands are known to be harmless.

mod approval;
mod desk;
pub mod policy;
pub mod safe;
pub mod shell;

pub use approval::{Approval, ApprovalArgs, ApprovalState};
