//! The SandboxProcess actor: one command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interpreter_messages::process::{ProcessMsg, ProcessSnapshot, ProcessSpec, SpawnFailure};
use interpreter_messages::tool::ExitStatus;
use interpreter_messages::ui::DeltaKind;
use interpreter_messages::{EventSink, FaultSwitch, ItemId};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

use crate::host::{InitHandle, Launched, Sandboxes};
use crate::linux::sys;
use crate::plan::boundary;
use crate::proto::{Launch, Status, Terminal};
use crate::ring::Ring;

/// SIGINT, then SIGTERM after this.
const AFTER_INTERRUPT: Duration = Duration::from_secs(2);
/// SIGTERM, then SIGKILL after this.
const AFTER_TERMINATE: Duration = Duration::from_secs(3);
/// How long the pipes of an ended command may stay open.
const DRAIN: Duration = Duration::from_secs(2);
/// More output than this ends the command.
const OUTPUT_LIMIT: u64 = 64 * 1024 * 1024;
/// Size of a terminal that no UI has.
const ROWS: u16 = 24;
/// Columns of it.
const COLUMNS: u16 = 80;

/// What a SandboxProcess is started with.
pub struct SandboxProcessArgs {
    /// The command.
    pub spec: ProcessSpec,
    /// Its boundary.
    pub sandboxes: Sandboxes,
    /// Gets output while it comes.
    pub sink: EventSink,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// One command, from its start until nobody asks for it any more.
///
/// Owns the command with everything that it starts: dropping the state, however that comes, has the init kill all of
/// it. Supervised by ToolPool, temporary; a crash costs the command. It ends when it was released and the command ended.
pub struct SandboxProcess;

/// The command as far as it got.
pub struct SandboxProcessState {
    shared: Arc<Shared>,
    running: Option<Running>,
    exit: Option<ExitStatus>,
    failure: Option<SpawnFailure>,
    drained: bool,
    released: bool,
    cancel: Option<bool>,
    waiters: Vec<Waiter>,
    next_waiter: u64,
    fault: FaultSwitch,
    _work: Guard,
}

/// Between the actor and its reader: what was read. A short lock, never held over an await.
struct Shared {
    ring: Mutex<Ring>,
}

struct Guard(AbortHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Running {
    init: Arc<InitHandle>,
    id: u64,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.init.signal(self.id, libc::SIGKILL);
    }
}

struct Waiter {
    id: u64,
    from: u64,
    reply: RpcReplyPort<ProcessSnapshot>,
}

enum Internal {
    Started(Running),
    NotStarted(SpawnFailure),
    Exited(Status),
    Drained,
    TooMuch,
    WaitOver(u64),
    Ladder(i32),
}

impl Actor for SandboxProcess {
    type Msg = ProcessMsg;
    type State = SandboxProcessState;
    type Arguments = SandboxProcessArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<ProcessMsg>,
        args: SandboxProcessArgs,
    ) -> Result<SandboxProcessState, ActorProcessingErr> {
        let shared = Arc::new(Shared {
            ring: Mutex::new(Ring::default()),
        });
        let work = Work {
            myself,
            shared: Arc::clone(&shared),
            sink: args.sink,
            spec: args.spec,
            sandboxes: args.sandboxes,
        };
        let work = tokio::spawn(work.run());
        Ok(SandboxProcessState {
            shared,
            running: None,
            exit: None,
            failure: None,
            drained: false,
            released: false,
            cancel: None,
            waiters: Vec::new(),
            next_waiter: 0,
            fault: args.fault,
            _work: Guard(work.abort_handle()),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ProcessMsg>,
        message: ProcessMsg,
        state: &mut SandboxProcessState,
    ) -> Result<(), ActorProcessingErr> {
        state.fault.hit(point(&message));
        match message {
            ProcessMsg::Wait {
                from,
                within_ms,
                reply,
            } => state.wait(from, within_ms, reply, &myself),
            ProcessMsg::Stdin { bytes, reply } => state.stdin(bytes, reply),
            ProcessMsg::Resize { rows, columns } => state.resize(rows, columns),
            ProcessMsg::Cancel { now } => state.cancel(now, &myself),
            ProcessMsg::Release => state.released = true,
            ProcessMsg::Internal(internal) => {
                if let Ok(internal) = internal.downcast::<Internal>() {
                    state.internal(*internal, &myself);
                }
            }
        }
        if state.is_over() {
            state.answer_all();
            if state.released {
                myself.stop(None);
            }
        }
        Ok(())
    }
}

const fn point(message: &ProcessMsg) -> &'static str {
    match message {
        ProcessMsg::Wait { .. } => "sandbox_process.wait",
        ProcessMsg::Stdin { .. } => "sandbox_process.stdin",
        ProcessMsg::Resize { .. } => "sandbox_process.resize",
        ProcessMsg::Cancel { .. } => "sandbox_process.cancel",
        ProcessMsg::Release => "sandbox_process.release",
        ProcessMsg::Internal(_) => "sandbox_process.internal",
    }
}

fn tell(myself: &ActorRef<ProcessMsg>, internal: Internal) {
    // An actor that ended took its command with it.
    let _ = myself.cast(ProcessMsg::Internal(Box::new(internal)));
}

fn later(
    myself: &ActorRef<ProcessMsg>,
    after: Duration,
    internal: impl FnOnce() -> Internal + Send + 'static,
) {
    myself.send_after(after, move || ProcessMsg::Internal(Box::new(internal())));
}

impl SandboxProcessState {
    fn is_over(&self) -> bool {
        self.failure.is_some() || (self.exit.is_some() && self.drained)
    }

    fn wait(
        &mut self,
        from: u64,
        within_ms: Option<u64>,
        reply: RpcReplyPort<ProcessSnapshot>,
        myself: &ActorRef<ProcessMsg>,
    ) {
        self.next_waiter += 1;
        let id = self.next_waiter;
        self.waiters.push(Waiter { id, from, reply });
        if let Some(within) = within_ms {
            later(myself, Duration::from_millis(within), move || {
                Internal::WaitOver(id)
            });
        }
    }

    fn snapshot(&self, from: u64) -> ProcessSnapshot {
        let ring = self
            .shared
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = ring.since(from);
        let kept = since.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        ProcessSnapshot {
            lines: if from == 0 { ring.lines() } else { kept },
            output: since.bytes,
            gap: since.gap,
            offset: ring.total(),
            exit: self.exit.filter(|_| self.drained),
            denial: None,
            failure: self.failure.clone(),
        }
    }

    fn answer_all(&mut self) {
        for waiter in std::mem::take(&mut self.waiters) {
            // Whoever waited may have been cancelled.
            let _ = waiter.reply.send(self.snapshot(waiter.from));
        }
    }

    fn stdin(&self, bytes: Vec<u8>, reply: RpcReplyPort<Result<(), String>>) {
        let terminal = self
            .running
            .as_ref()
            .and_then(|running| running.terminal.clone());
        let refused = match (&terminal, self.exit) {
            (_, Some(_)) => Some("the command has ended"),
            (None, None) => Some(
                "the command has no terminal: its input is empty; start it with a terminal to write to it",
            ),
            (Some(_), None) => None,
        };
        let Some(terminal) = terminal.filter(|_| refused.is_none()) else {
            let _ = reply.send(Err(refused.unwrap_or_default().to_owned()));
            return;
        };
        tokio::spawn(async move {
            let _ = reply.send(
                write_all(&terminal, &bytes)
                    .await
                    .map_err(|error| error.to_string()),
            );
        });
    }

    fn resize(&self, rows: u16, columns: u16) {
        if let Some(terminal) = self
            .running
            .as_ref()
            .and_then(|running| running.terminal.as_ref())
        {
            // A terminal that is gone has no size.
            let _ = sys::set_size(terminal.get_ref().as_fd(), rows, columns);
        }
    }

    fn cancel(&mut self, now: bool, myself: &ActorRef<ProcessMsg>) {
        let before = self.cancel.replace(now || self.cancel == Some(true));
        if self.running.is_none() || self.exit.is_some() || (before == Some(false) && !now) {
            return;
        }
        self.ladder(if now { libc::SIGKILL } else { libc::SIGINT }, myself);
    }

    fn ladder(&self, signal: i32, myself: &ActorRef<ProcessMsg>) {
        let Some(running) = self.running.as_ref().filter(|_| self.exit.is_none()) else {
            return;
        };
        running.init.signal(running.id, signal);
        match signal {
            libc::SIGINT => later(myself, AFTER_INTERRUPT, || Internal::Ladder(libc::SIGTERM)),
            libc::SIGTERM => later(myself, AFTER_TERMINATE, || Internal::Ladder(libc::SIGKILL)),
            _ => {}
        }
    }

    fn internal(&mut self, internal: Internal, myself: &ActorRef<ProcessMsg>) {
        match internal {
            Internal::Started(running) => {
                self.running = Some(running);
                // A cancel that came before the command was there.
                if self.cancel.is_some() {
                    self.ladder(libc::SIGKILL, myself);
                }
            }
            Internal::NotStarted(failure) => self.failure = Some(failure),
            Internal::Exited(Status::Failed(failure)) => self.failure = Some(failure),
            Internal::Exited(Status::Code(code)) => self.exited(ExitStatus::Code(code), myself),
            Internal::Exited(Status::Signal(signal)) => {
                self.exited(ExitStatus::Signal(signal), myself)
            }
            Internal::Drained => self.drained = true,
            Internal::TooMuch => self.ladder(libc::SIGKILL, myself),
            Internal::WaitOver(id) => {
                if let Some(at) = self.waiters.iter().position(|waiter| waiter.id == id) {
                    let waiter = self.waiters.swap_remove(at);
                    let _ = waiter.reply.send(self.snapshot(waiter.from));
                }
            }
            Internal::Ladder(signal) => self.ladder(signal, myself),
        }
    }

    fn exited(&mut self, exit: ExitStatus, myself: &ActorRef<ProcessMsg>) {
        self.exit = Some(exit);
        later(myself, DRAIN, || Internal::Drained);
    }
}

/// The task of one command: starts it, reads its output, waits for its end.
struct Work {
    myself: ActorRef<ProcessMsg>,
    shared: Arc<Shared>,
    sink: EventSink,
    spec: ProcessSpec,
    sandboxes: Sandboxes,
}

/// A started command and its output.
struct Started {
    status: OwnedFd,
    output: Arc<AsyncFd<OwnedFd>>,
}

impl Work {
    async fn run(self) {
        match self.start().await {
            Ok(Started { status, output }) => {
                let reading = self.read(&output);
                let waiting = wait_for_end(status);
                let ((), status) = tokio::join!(reading, async {
                    let status = waiting.await;
                    tell(&self.myself, Internal::Exited(status));
                });
                let () = status;
            }
            Err(failure) => tell(&self.myself, Internal::NotStarted(failure)),
        }
    }

    async fn start(&self) -> Result<Started, SpawnFailure> {
        let spec = &self.spec;
        let init = self.sandboxes.ensure(&spec.policy).await?;
        let failed = |error: io::Error| {
            boundary(
                "descriptors",
                error.to_string(),
                "close some files (ulimit -n)",
            )
        };
        let launch = Launch {
            argv: spec.argv.clone(),
            env: environment(spec),
            cwd: spec.cwd.clone(),
            terminal: if spec.tty {
                Terminal::Own
            } else {
                Terminal::None
            },
        };
        let (ours, theirs, stdin) = if spec.tty {
            let (master, slave) = sys::open_pty(ROWS, COLUMNS).map_err(failed)?;
            (master, slave, None)
        } else {
            let (read, write) = sys::pipe().map_err(failed)?;
            let null = std::fs::File::open("/dev/null").map_err(failed)?;
            (read, write, Some(OwnedFd::from(null)))
        };
        let Launched { id, status } = init
            .launch(
                &launch,
                [stdin.as_ref().unwrap_or(&theirs), &theirs, &theirs],
            )
            .await?;
        drop((theirs, stdin));
        sys::set_nonblocking(ours.as_fd()).map_err(failed)?;
        sys::set_nonblocking(status.as_fd()).map_err(failed)?;
        let interest = if spec.tty {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        let output = Arc::new(watched(ours, interest).map_err(failed)?);
        let terminal = spec.tty.then(|| Arc::clone(&output));
        tell(
            &self.myself,
            Internal::Started(Running { init, id, terminal }),
        );
        Ok(Started { status, output })
    }

    /// Reads until every writer is gone; keeps what the ring keeps, and goes on reading what it does not.
    async fn read(&self, output: &AsyncFd<OwnedFd>) {
        let mut buffer = vec![0; 64 * 1024];
        let mut decoder = Decoder::default();
        let mut too_much = false;
        loop {
            let read = output
                .async_io(Interest::READABLE, |fd| read_some(fd, &mut buffer))
                .await;
            // A terminal whose last user is gone gives an error instead of an end.
            let Ok(count @ 1..) = read else { break };
            let total = {
                let mut ring = self
                    .shared
                    .ring
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                ring.push(&buffer[..count]);
                ring.total()
            };
            decoder.show(&buffer[..count], &self.sink, &self.spec.item);
            if total > OUTPUT_LIMIT && !std::mem::replace(&mut too_much, true) {
                tell(&self.myself, Internal::TooMuch);
            }
        }
        tell(&self.myself, Internal::Drained);
    }
}

/// What a command sees of our environment, with what is true inside.
pub fn environment(spec: &ProcessSpec) -> Vec<(String, String)> {
    let policy = &spec.policy;
    let mut env = interpreter_config::env::clean(
        &policy.env,
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    );
    let network = if policy.network {
        None
    } else {
        Some(("INTERPRETER_SANDBOX_NETWORK_DISABLED", "1".to_owned()))
    };
    let bounded = policy.mode != interpreter_messages::policy::SandboxMode::DangerFullAccess;
    let tmp = bounded.then(|| ("TMPDIR", "/tmp".to_owned()));
    let terminal = (!spec.tty).then(|| ("TERM", "dumb".to_owned()));
    let own = [
        Some(("INTERPRETER_SANDBOX", policy.mode.as_str().to_owned())),
        Some(("PWD", spec.cwd.display().to_string())),
        network,
        tmp,
        terminal,
    ];
    for (name, value) in own.into_iter().flatten() {
        env.retain(|(other, _)| other != name);
        env.push((name.to_owned(), value));
    }
    if !env.iter().any(|(name, _)| name == "PATH") {
        env.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()));
    }
    env
}

fn read_some(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    use std::io::Read;
    let mut file = std::mem::ManuallyDrop::new(borrowed(fd));
    file.read(buffer)
}

/// A descriptor that the runtime watches.
pub fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd gives the same open descriptor for as long as it lives, and the AsyncFd owns it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

/// The descriptor as a file that must not be closed.
fn borrowed(fd: &OwnedFd) -> std::fs::File {
    use std::os::fd::{AsRawFd, FromRawFd};
    // SAFETY: the callers wrap the file in ManuallyDrop, so the descriptor stays its owner's.
    unsafe { std::fs::File::from_raw_fd(fd.as_raw_fd()) }
}

async fn write_all(terminal: &AsyncFd<OwnedFd>, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = terminal
            .async_io(Interest::WRITABLE, |fd| {
                std::mem::ManuallyDrop::new(borrowed(fd)).write(rest)
            })
            .await?;
        rest = &rest[written..];
    }
    Ok(())
}

/// The one status that comes; a pipe that closes without one means that the monitor was killed.
pub async fn wait_for_end(status: OwnedFd) -> Status {
    let Ok(pipe) = watched(status, Interest::READABLE) else {
        return Status::Signal(libc::SIGKILL);
    };
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 4096];
    loop {
        match pipe
            .async_io(Interest::READABLE, |fd| read_some(fd, &mut buffer))
            .await
        {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return serde_json::from_slice(&bytes).unwrap_or(Status::Signal(libc::SIGKILL)),
        }
    }
}

/// Output as text for UIs: a character split between two reads waits for its rest.
#[derive(Default)]
struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    fn show(&mut self, bytes: &[u8], sink: &EventSink, item: &ItemId) {
        self.rest.extend_from_slice(bytes);
        let end = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            // Only a character that may still be completed waits.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..end).collect();
        sink.delta(item, DeltaKind::Output, &String::from_utf8_lossy(&text));
    }
}
