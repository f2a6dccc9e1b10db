//! The init's life: set up, serve, end. Two processes: the *outer* one stays in the host's view, holds the directories
//! that stand in for missing protected names, and removes them at the end; the *inner* one is pid 1 inside and serves.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use interpreter_messages::process::SpawnFailure;
use interpreter_messages::worker::{FileReply, FileRequest};

use super::command::{self, Wires, read_memory};
use super::confine::Confinement;
use super::{sys, view};
use crate::plan::{Plan, boundary};
use crate::proto::{Launch, Order, SetUp, SetUpDone, Status};
use crate::role::FileWorker;

/// A frame of the file worker's socket is never longer than this.
const FRAME_LIMIT: usize = 256 * 1024 * 1024;

/// Runs the init; the control socket is stdin. Never returns.
pub fn main(file_worker: FileWorker) -> ! {
    // SAFETY: descriptor 0 is the control socket by contract, and nothing else in this process owns it.
    let control = unsafe { OwnedFd::from_raw_fd(0) };
    let code = match run(&control, file_worker) {
        Ok(()) => 0,
        Err(failure) => {
            answer(control.as_fd(), Err(failure));
            1
        }
    };
    sys::exit(code)
}

fn answer(control: BorrowedFd<'_>, result: Result<(), SpawnFailure>) {
    let text = serde_json::to_vec(&SetUpDone(result)).unwrap_or_default();
    // The program may be gone; then nobody wants to know.
    let _ = sys::send(control, &text, &[]);
}

fn internal(what: &str, error: impl std::fmt::Display) -> SpawnFailure {
    boundary(
        "sandbox process",
        format!("{what}: {error}"),
        "report this as a bug",
    )
}

fn run(control: &OwnedFd, file_worker: FileWorker) -> Result<(), SpawnFailure> {
    let failed = |what: &'static str| move |error: io::Error| internal(what, error);
    sys::close_from(3).map_err(failed("descriptors"))?;
    // A terminal's Ctrl-C is for the command and the program; this process ends when the control socket closes.
    for signal in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGPIPE,
        libc::SIGTERM,
    ] {
        sys::on_signal(signal, libc::SIG_IGN).map_err(failed("signals"))?;
    }
    let (_, mut fds) = sys::receive(control.as_fd()).map_err(failed("control socket"))?;
    if fds.len() != 2 {
        return Err(internal(
            "control socket",
            "the first packet is not a set-up",
        ));
    }
    let worker = fds.remove(1);
    let bytes = read_memory(fds.remove(0)).map_err(failed("plan"))?;
    let SetUp { plan, env } =
        serde_json::from_slice(&bytes).map_err(|error| internal("plan", error))?;
    for (name, value) in env {
        // SAFETY: the process has one thread.
        unsafe { std::env::set_var(name, value) };
    }
    if !plan.bounded {
        return inside(control, &plan, worker, file_worker);
    }
    let held: Vec<Held> = plan
        .missing
        .iter()
        .filter_map(|path| Held::take(path))
        .collect();
    let result = bounded(control, &plan, worker, file_worker);
    held.into_iter().for_each(Held::release);
    result
}

/// Forks the inner process and waits for its end.
fn bounded(
    control: &OwnedFd,
    plan: &Plan,
    worker: OwnedFd,
    file_worker: FileWorker,
) -> Result<(), SpawnFailure> {
    view::enter_user_namespace()?;
    match sys::fork().map_err(|error| internal("fork", error))? {
        Some(_) => {
            drop(worker);
            // Keeps the socket open no longer than the inner process does.
            let null = File::open("/dev/null").map_err(|error| internal("/dev/null", error))?;
            sys::duplicate_to(null.as_fd(), 0).map_err(|error| internal("descriptors", error))?;
            sys::wait_any()
                .map_err(|error| internal("wait", error))
                .map(drop)
        }
        None => {
            let end = sys::prctl(
                libc::PR_SET_PDEATHSIG,
                libc::c_ulong::try_from(libc::SIGKILL).unwrap_or(9),
            );
            let result = end
                .map_err(|error| internal("death signal", error))
                .and_then(|()| {
                    view::enter_namespaces(plan)?;
                    view::build(plan)?;
                    inside(control, plan, worker, file_worker)
                });
            if let Err(failure) = result {
                answer(control.as_fd(), Err(failure));
                sys::exit(1);
            }
            sys::exit(0)
        }
    }
}

/// The serving process: pid 1 inside a boundary.
fn inside(
    control: &OwnedFd,
    plan: &Plan,
    worker: OwnedFd,
    file_worker: FileWorker,
) -> Result<(), SpawnFailure> {
    // Every layer is built once here, so that what is missing is known before anything runs.
    Confinement::prepare(plan)?;
    start_worker(plan, worker, control, file_worker)?;
    // Ended monitors need no one to wait for them.
    sys::on_signal(libc::SIGCHLD, libc::SIG_IGN).map_err(|error| internal("signals", error))?;
    answer(control.as_fd(), Ok(()));
    serve(control, plan).map_err(|error| internal("control socket", error))
}

fn start_worker(
    plan: &Plan,
    worker: OwnedFd,
    control: &OwnedFd,
    file_worker: FileWorker,
) -> Result<(), SpawnFailure> {
    let confinement = Confinement::prepare(plan)?;
    let (failed, tells) = sys::pipe().map_err(|error| internal("pipes", error))?;
    if sys::fork()
        .map_err(|error| internal("fork", error))?
        .is_none()
    {
        drop(failed);
        // The worker must not keep the program's end of the control socket from closing, nor answer on it.
        let closed = File::open("/dev/null")
            .and_then(|null| sys::duplicate_to(null.as_fd(), control.as_raw_fd()));
        let bound = closed
            .map_err(|error| internal("descriptors", error))
            .and_then(|()| confinement.apply());
        if let Err(failure) = bound {
            let _ = File::from(tells).write_all(&serde_json::to_vec(&failure).unwrap_or_default());
            sys::exit(1);
        }
        drop(tells);
        let _ = work(File::from(worker), file_worker);
        sys::exit(0);
    }
    drop((tells, worker));
    let mut failure = Vec::new();
    File::from(failed)
        .read_to_end(&mut failure)
        .map_err(|error| internal("pipes", error))?;
    if failure.is_empty() {
        return Ok(());
    }
    Err(serde_json::from_slice(&failure).unwrap_or_else(|error| internal("file worker", error)))
}

/// The file worker's loop: a length and a request in, a length and a reply out.
fn work(mut socket: File, file_worker: FileWorker) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        socket.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        socket.read_exact(&mut bytes)?;
        let reply = match serde_json::from_slice::<FileRequest>(&bytes) {
            Ok(request) => file_worker(request),
            Err(error) => FileReply::Failed {
                error: format!("the file worker cannot read the request: {error}"),
                denied: false,
            },
        };
        let bytes = serde_json::to_vec(&reply)?;
        let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        socket.write_all(&length.to_le_bytes())?;
        socket.write_all(&bytes)?;
    }
}

fn serve(control: &OwnedFd, plan: &Plan) -> io::Result<()> {
    let mut monitors: HashMap<u64, libc::pid_t> = HashMap::new();
    loop {
        let (packet, fds) = sys::receive(control.as_fd())?;
        if packet.is_empty() {
            // The program is gone, or wants us gone. Inside a boundary the kernel ends the rest with us.
            if !plan.bounded {
                monitors
                    .values()
                    .for_each(|pid| sys::kill(*pid, libc::SIGTERM));
                monitors.values().for_each(|pid| end_tree(*pid));
            }
            return Ok(());
        }
        match serde_json::from_slice(&packet) {
            Ok(Order::Spawn { id }) => {
                if let Some(pid) = spawn(plan, fds) {
                    monitors.insert(id, pid);
                }
            }
            Ok(Order::Kill { id, signal }) => {
                let Some(pid) = monitors.get(&id) else {
                    continue;
                };
                if signal == libc::SIGKILL && !plan.bounded {
                    end_tree(*pid)
                } else {
                    sys::kill(*pid, signal)
                }
            }
            Ok(Order::SetUp) | Err(_) => {}
        }
        monitors.retain(|_, pid| Path::new(&format!("/proc/{pid}")).exists());
    }
}

fn spawn(plan: &Plan, fds: Vec<OwnedFd>) -> Option<libc::pid_t> {
    let [memory, status, stdin, stdout, stderr] = <[OwnedFd; 5]>::try_from(fds).ok()?;
    let prepared = read_memory(memory)
        .map_err(|error| internal("launch", error))
        .and_then(|bytes| {
            serde_json::from_slice::<Launch>(&bytes).map_err(|error| internal("launch", error))
        })
        .and_then(|launch| Ok((launch, Confinement::prepare(plan)?)));
    match prepared {
        Ok((launch, confinement)) => command::start(
            plan,
            confinement,
            launch,
            Wires {
                status,
                stdio: [stdin, stdout, stderr],
            },
        ),
        Err(failure) => {
            let text = serde_json::to_vec(&Status::Failed(failure)).unwrap_or_default();
            let _ = File::from(status).write_all(&text);
            None
        }
    }
}

/// Without a pid namespace: kills a process and everything below it, the leaves last found included.
fn end_tree(pid: libc::pid_t) {
    let mut open = vec![pid];
    let mut all = Vec::new();
    while let Some(next) = open.pop() {
        all.push(next);
        let children = std::fs::read_to_string(format!("/proc/{next}/task/{next}/children"))
            .unwrap_or_default();
        open.extend(
            children
                .split_whitespace()
                .filter_map(|child| child.parse::<libc::pid_t>().ok()),
        );
    }
    // The parent last: as long as it lives, it adopts what its children leave.
    all.into_iter()
        .rev()
        .for_each(|pid| sys::kill(pid, libc::SIGKILL));
}

/// An empty directory that stands where a protected name is missing, so that a command cannot make it. Several
/// programs may hold the same one; the last removes it.
struct Held {
    path: PathBuf,
    directory: File,
}

/// Marks a directory as ours, so that an empty one of the user is never removed.
const MARK: &std::ffi::CStr = c"user.interpreter.placeholder";

impl Held {
    /// `None`: it cannot be made, so nobody with our rights can; or it is not ours.
    fn take(path: &Path) -> Option<Self> {
        let made = std::fs::create_dir(path).is_ok();
        let directory = File::open(path).ok()?;
        sys::lock(directory.as_fd(), libc::LOCK_SH | libc::LOCK_NB).ok()?;
        if made {
            mark(&directory);
        }
        Some(Self {
            path: path.to_path_buf(),
            directory,
        })
    }

    fn release(self) {
        let last = sys::lock(self.directory.as_fd(), libc::LOCK_EX | libc::LOCK_NB).is_ok();
        if last && is_marked(&self.directory) {
            // Not empty any more, or already gone: then it is not ours to remove.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn mark(directory: &File) {
    // SAFETY: the name is a C string, and the value is one byte. Where extended attributes are missing the directory
    // stays behind, which is better than removing one that is not ours.
    unsafe {
        libc::fsetxattr(
            directory.as_raw_fd(),
            MARK.as_ptr(),
            c"1".as_ptr().cast(),
            1,
            0,
        )
    };
}

fn is_marked(directory: &File) -> bool {
    // SAFETY: asks only for the size; no buffer is written.
    unsafe {
        libc::fgetxattr(
            directory.as_raw_fd(),
            MARK.as_ptr(),
            std::ptr::null_mut(),
            0,
        ) > 0
    }
}
