//! The pool with its executors, over small stand-ins for the session, Approval, the sandbox and commands.

mod calls;
mod commands;
mod crashes;
mod fakes;
mod world;
