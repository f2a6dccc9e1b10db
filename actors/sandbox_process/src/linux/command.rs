//! One command: the monitor, which is pid 1 of the command's own pid namespace, and the command below it.
//!
//! When the command ends, the monitor tells its status and ends too, and with pid 1 the kernel ends whatever the command
//! left behind. Without a boundary the monitor is a subreaper instead and ends its descendants itself.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use interpreter_messages::process::SpawnFailure;

use super::confine::Confinement;
use super::{sys, view};
use crate::plan::{Plan, boundary};
use crate::proto::{Launch, Status, Terminal};

/// The command's process group, for the signal handler; 0 before it runs.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Descriptors of a command.
pub struct Wires {
    /// Gets one [`Status`].
    pub status: OwnedFd,
    /// The command's standard descriptors.
    pub stdio: [OwnedFd; 3],
}

/// Starts a command from the init; the monitor's pid, as the init sees it.
pub fn start(
    plan: &Plan,
    confinement: Confinement,
    launch: Launch,
    wires: Wires,
) -> Option<libc::pid_t> {
    let flags = if plan.bounded {
        libc::CLONE_NEWPID | libc::CLONE_NEWNS
    } else {
        0
    };
    match sys::clone_into(flags) {
        Ok(Some(pid)) => Some(pid),
        Ok(None) => monitor(plan.bounded, confinement, &launch, wires),
        Err(error) => {
            let failure = boundary(
                "pid namespace",
                error.to_string(),
                "end some processes, or raise the limits",
            );
            tell(wires.status, &Status::Failed(failure));
            None
        }
    }
}

fn tell(status: OwnedFd, what: &Status) {
    let text = serde_json::to_vec(what).unwrap_or_default();
    // The program may be gone; then nobody wants to know.
    let _ = File::from(status).write_all(&text);
}

/// Never returns.
fn monitor(bounded: bool, confinement: Confinement, launch: &Launch, wires: Wires) -> ! {
    let outcome = run(bounded, confinement, launch, wires.stdio);
    tell(wires.status, &outcome.unwrap_or_else(Status::Failed));
    if !bounded {
        end_descendants();
    }
    sys::exit(0)
}

fn run(
    bounded: bool,
    confinement: Confinement,
    launch: &Launch,
    stdio: [OwnedFd; 3],
) -> Result<Status, SpawnFailure> {
    let failed = |layer: &'static str| {
        move |error: io::Error| boundary(layer, error.to_string(), "try again")
    };
    sys::on_signal(libc::SIGCHLD, libc::SIG_DFL).map_err(failed("signals"))?;
    if bounded {
        view::fresh_proc(false).map_err(failed("fresh /proc"))?;
    } else {
        sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1).map_err(failed("subreaper"))?;
    }
    let (broken, tells) = sys::pipe().map_err(failed("pipes"))?;
    let child = match sys::fork().map_err(failed("fork"))? {
        Some(child) => child,
        None => {
            drop(broken);
            let failure = become_command(confinement, launch, &stdio);
            let _ = File::from(tells).write_all(&serde_json::to_vec(&failure).unwrap_or_default());
            sys::exit(127)
        }
    };
    drop((tells, stdio));
    if launch.terminal == Terminal::Callers {
        GROUP.store(child, Ordering::SeqCst);
    } else {
        GROUP.store(-child, Ordering::SeqCst);
    }
    // The pipe closes at the exec; what comes before that is why there was none.
    let mut failure = Vec::new();
    File::from(broken)
        .read_to_end(&mut failure)
        .map_err(failed("pipes"))?;
    if !failure.is_empty() {
        let failure = serde_json::from_slice(&failure)
            .map_err(|error| boundary("fork", error.to_string(), "try again"))?;
        return Err(failure);
    }
    pass_signals_on(launch.terminal).map_err(failed("signals"))?;
    loop {
        let (pid, status) = sys::wait_any().map_err(failed("wait"))?;
        if pid != child {
            continue;
        }
        if libc::WIFSIGNALED(status) {
            return Ok(Status::Signal(libc::WTERMSIG(status)));
        }
        if libc::WIFEXITED(status) {
            return Ok(Status::Code(libc::WEXITSTATUS(status)));
        }
    }
}

/// Signals that the program sends to the monitor are meant for the command.
fn pass_signals_on(terminal: Terminal) -> io::Result<()> {
    let handler = forward as *const () as libc::sighandler_t;
    for signal in [
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        sys::on_signal(signal, handler)?;
    }
    // On the caller's terminal Ctrl-C reaches the command by itself.
    let interrupt = if terminal == Terminal::Callers {
        libc::SIG_IGN
    } else {
        handler
    };
    sys::on_signal(libc::SIGINT, interrupt)
}

extern "C" fn forward(signal: libc::c_int) {
    let group = GROUP.load(Ordering::SeqCst);
    if group != 0 {
        sys::kill(group, signal);
    }
}

/// Returns only when there was no exec.
fn become_command(confinement: Confinement, launch: &Launch, stdio: &[OwnedFd; 3]) -> SpawnFailure {
    match prepare(confinement, launch, stdio) {
        Ok(never) => never,
        Err(failure) => failure,
    }
}

fn prepare(
    confinement: Confinement,
    launch: &Launch,
    stdio: &[OwnedFd; 3],
) -> Result<SpawnFailure, SpawnFailure> {
    let failed = |layer: &'static str| {
        move |error: io::Error| boundary(layer, error.to_string(), "try again")
    };
    if launch.terminal != Terminal::Callers {
        sys::new_session().map_err(failed("session"))?;
    }
    for (from, to) in stdio.iter().zip(0..) {
        sys::duplicate_to(from.as_fd(), to).map_err(failed("descriptors"))?;
    }
    if launch.terminal == Terminal::Own {
        sys::take_terminal().map_err(failed("terminal"))?;
    }
    let env: Vec<CString> = launch
        .env
        .iter()
        .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
        .collect();
    let text = |text: &String| {
        CString::new(text.as_str()).map_err(|_| program_failure(text, "it holds a zero byte"))
    };
    let argv: Vec<CString> = launch.argv.iter().map(text).collect::<Result<_, _>>()?;
    let Some(name) = launch.argv.first() else {
        return Err(program_failure("", "there is no program"));
    };
    for signal in [
        libc::SIGPIPE,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGHUP,
    ] {
        sys::on_signal(signal, libc::SIG_DFL).map_err(failed("signals"))?;
    }
    sys::unblock_signals().map_err(failed("signals"))?;
    confinement.apply()?;
    std::env::set_current_dir(&launch.cwd).map_err(|error| SpawnFailure::Directory {
        path: launch.cwd.clone(),
        reason: error.to_string(),
    })?;
    let path = launch
        .env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("/usr/bin:/bin", |(_, value)| value);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for candidate in candidates(name, path) {
        let Ok(program) = sys::c_path(&candidate) else {
            continue;
        };
        let error = sys::exec(&program, &argv, &env);
        if error.kind() != io::ErrorKind::NotFound || last.kind() == io::ErrorKind::NotFound {
            last = error;
        }
    }
    Ok(program_failure(name, &last.to_string()))
}

fn program_failure(program: &str, reason: &str) -> SpawnFailure {
    SpawnFailure::Program {
        program: program.to_owned(),
        reason: reason.to_owned(),
    }
}

/// A name without a slash is looked for on PATH; relative entries of PATH are not searched.
fn candidates(name: &str, path: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .collect()
}

/// Without a pid namespace: ends every process below the monitor, again and again until none is left.
fn end_descendants() {
    /// A fork bomb can outrun this; without a boundary nothing stops it.
    const ROUNDS: usize = 100;
    let me = std::process::id();
    for _ in 0..ROUNDS {
        let children = children_of(me);
        if children.is_empty() {
            return;
        }
        for child in children {
            sys::kill(child, libc::SIGKILL);
        }
        // Their own children now belong to the monitor, as its subreaper.
        if sys::wait_any().is_err() {
            return;
        }
    }
}

fn children_of(parent: u32) -> Vec<libc::pid_t> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = std::str::from_utf8(name.as_bytes())
            .ok()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything; the parent is the second field behind it.
        let parent_field = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if parent_field.and_then(|field| field.parse().ok()) == Some(parent) {
            children.push(pid);
        }
    }
    children
}

/// Reads a memory file that came with a packet.
pub fn read_memory(fd: OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(fd).read_to_end(&mut bytes)?;
    Ok(bytes)
}
