//! The other role of the program: an init, started as the same executable under another name.

use interpreter_messages::worker::{FileReply, FileRequest};

/// `argv[0]` of an init.
pub const NAME: &str = "interpreter-sandbox-init";

/// Carries out a file operation; runs inside the boundary.
pub type FileWorker = fn(FileRequest) -> FileReply;

/// In the init's role this never returns; else it does nothing. Must be called first in `main`, before any thread.
pub fn run_if_role(file_worker: FileWorker) {
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        crate::linux::init::main(file_worker)
    }
}
