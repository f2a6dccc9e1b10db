//! `interpreter sandbox -- COMMAND`: a command under exactly a policy, on the caller's own descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interpreter_messages::policy::SandboxPolicy;
use interpreter_messages::process::{ProcessSpec, SpawnFailure};
use interpreter_messages::{CallId, ItemId, ProcessId};
use tokio::signal::unix::{SignalKind, signal};

use crate::host::InitHandle;
use crate::linux::sys;
use crate::plan::boundary;
use crate::process::{environment, wait_for_end};
use crate::proto::{Launch, Status, Terminal};

/// Runs a command with our stdin, stdout and stderr, and gives its exit code, 128+n for a signal.
///
/// SIGTERM and SIGHUP are passed on; Ctrl-C reaches the command from the terminal itself.
///
/// # Errors
/// When the boundary cannot be built or the program cannot be executed; nothing ran then.
pub async fn run_command(
    program: &Path,
    policy: &SandboxPolicy,
    argv: Vec<String>,
    cwd: PathBuf,
) -> Result<i32, SpawnFailure> {
    let failed = |error: std::io::Error| {
        boundary(
            "descriptors",
            error.to_string(),
            "close some files (ulimit -n)",
        )
    };
    let init = InitHandle::start(program, "interpreter-sandbox", policy).await?;
    let spec = ProcessSpec {
        id: ProcessId(1),
        call: CallId::new("sandbox"),
        item: ItemId::new("sandbox"),
        argv,
        cwd,
        // The caller's TERM is right here.
        tty: true,
        policy: Arc::new(policy.clone()),
    };
    let launch = Launch {
        env: environment(&spec),
        argv: spec.argv,
        cwd: spec.cwd,
        terminal: Terminal::Callers,
    };
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let copy = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(failed);
    let stdio: [OwnedFd; 3] = [
        copy(stdin.as_fd())?,
        copy(stdout.as_fd())?,
        copy(stderr.as_fd())?,
    ];
    let mut term = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
    // Listening is enough: the command decides what Ctrl-C means.
    let _interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let _quit = signal(SignalKind::quit()).map_err(failed)?;
    let [ref input, ref output, ref errors] = stdio;
    let launched = init.launch(&launch, [input, output, errors]).await?;
    drop(stdio);
    sys::set_nonblocking(launched.status.as_fd()).map_err(failed)?;
    let end = wait_for_end(launched.status);
    tokio::pin!(end);
    let status = loop {
        tokio::select! {
            status = &mut end => break status,
            Some(()) = term.recv() => init.signal(launched.id, libc::SIGTERM),
            Some(()) = hang_up.recv() => init.signal(launched.id, libc::SIGHUP),
        }
    };
    // What stood in for missing protected names is removed before we are done.
    init.close().await;
    match status {
        Status::Failed(failure) => Err(failure),
        Status::Code(code) => Ok(code),
        Status::Signal(signal) => Ok(128 + signal),
    }
}
