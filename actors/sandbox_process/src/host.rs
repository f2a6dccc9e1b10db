//! The program's side of inits: one per policy and session, started when first needed.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use interpreter_messages::policy::SandboxPolicy;
use interpreter_messages::process::{SpawnFailure, SpawnInit, SpawnProcess};
use interpreter_messages::worker::{FileReply, FileRequest};
use interpreter_messages::{EventSink, FaultSwitch, SessionId};
use ractor::Actor;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::Mutex;

use crate::init_actor::{SandboxInit, SandboxInitArgs};
use crate::linux::sys;
use crate::plan::{Plan, boundary};
use crate::process::{SandboxProcess, SandboxProcessArgs, watched};
use crate::proto::{Launch, Order, SetUp, SetUpDone};
use crate::role;

/// How long a boundary may take to build.
const SET_UP: Duration = Duration::from_secs(20);
/// How long an init may take to end.
const CLOSE: Duration = Duration::from_secs(2);
/// A reply of the file worker is never longer than this.
const FRAME_LIMIT: u32 = 256 * 1024 * 1024;

/// What the sandboxes of a session are made with.
#[derive(Debug, Clone)]
pub struct SandboxesArgs {
    /// The session: a mark on the command line of its processes.
    pub session: SessionId,
    /// The executable to start in the other role; it calls [`role::run_if_role`] first thing.
    pub program: PathBuf,
    /// Gets output while it comes.
    pub sink: EventSink,
    /// Fault injection.
    pub fault: FaultSwitch,
}

/// The inits of a session. Cheap to clone; when the last clone and the last actor are gone, so are they.
#[derive(Clone)]
pub struct Sandboxes {
    inner: Arc<Inner>,
}

struct Inner {
    args: SandboxesArgs,
    inits: Mutex<HashMap<SandboxPolicy, Arc<InitHandle>>>,
}

impl Sandboxes {
    /// No init is started yet.
    #[must_use]
    pub fn new(args: SandboxesArgs) -> Self {
        Self {
            inner: Arc::new(Inner {
                args,
                inits: Mutex::new(HashMap::new()),
            }),
        }
    }

    /// How ToolPool starts commands.
    #[must_use]
    pub fn spawn_process(&self) -> SpawnProcess {
        let sandboxes = self.clone();
        Arc::new(move |spec, supervisor| {
            let sandboxes = sandboxes.clone();
            Box::pin(async move {
                let args = SandboxProcessArgs {
                    spec,
                    sink: sandboxes.inner.args.sink.clone(),
                    fault: sandboxes.inner.args.fault.clone(),
                    sandboxes,
                };
                let spawned = Actor::spawn_linked(None, SandboxProcess, args, supervisor).await;
                spawned
                    .map(|(actor, _)| actor)
                    .map_err(|error| error.to_string())
            })
        })
    }

    /// How ToolPool starts file workers.
    #[must_use]
    pub fn spawn_init(&self) -> SpawnInit {
        let sandboxes = self.clone();
        Arc::new(move |policy, supervisor| {
            let sandboxes = sandboxes.clone();
            Box::pin(async move {
                let init = sandboxes
                    .ensure(&policy)
                    .await
                    .map_err(|failure| failure.to_string())?;
                let args = SandboxInitArgs {
                    init,
                    fault: sandboxes.inner.args.fault.clone(),
                };
                let spawned = Actor::spawn_linked(None, SandboxInit, args, supervisor).await;
                spawned
                    .map(|(actor, _)| actor)
                    .map_err(|error| error.to_string())
            })
        })
    }

    /// Ends every init with all that runs in it, and waits until they are gone, 2 s at the most.
    pub async fn close(&self) {
        let inits: Vec<_> = self
            .inner
            .inits
            .lock()
            .await
            .drain()
            .map(|(_, init)| init)
            .collect();
        for init in inits {
            init.close().await;
        }
    }

    /// The init of a policy, started if it is not running.
    pub(crate) async fn ensure(
        &self,
        policy: &SandboxPolicy,
    ) -> Result<Arc<InitHandle>, SpawnFailure> {
        let mut inits = self.inner.inits.lock().await;
        if let Some(init) = inits.get(policy).filter(|init| !init.is_dead()) {
            return Ok(Arc::clone(init));
        }
        let args = &self.inner.args;
        let init =
            Arc::new(InitHandle::start(&args.program, &args.session.to_string(), policy).await?);
        inits.insert(policy.clone(), Arc::clone(&init));
        Ok(init)
    }
}

/// A running init. Dropping it closes the control socket, which ends the init and all that runs in it.
pub struct InitHandle {
    control: AsyncFd<OwnedFd>,
    worker: Mutex<UnixStream>,
    child: Mutex<Child>,
    next: AtomicU64,
    dead: AtomicBool,
}

/// A started command.
pub struct Launched {
    /// Its number in the init.
    pub id: u64,
    /// Gets one status when it ended, or did not start.
    pub status: OwnedFd,
}

fn died(reason: impl std::fmt::Display) -> SpawnFailure {
    SpawnFailure::InitDied {
        reason: reason.to_string(),
    }
}

impl InitHandle {
    /// Starts an init and waits until its boundary stands.
    pub async fn start(
        program: &Path,
        tag: &str,
        policy: &SandboxPolicy,
    ) -> Result<Self, SpawnFailure> {
        let plan = Plan::of(policy)?;
        let failed = |error: io::Error| {
            boundary(
                "sandbox process",
                error.to_string(),
                "check the limits of this session (ulimit -a)",
            )
        };
        let (control, theirs) = sys::packet_pair().map_err(failed)?;
        let (worker, their_worker) = sys::stream_pair().map_err(failed)?;
        // Started as a plain program: nothing of ours runs between fork and exec.
        let child = tokio::process::Command::new(program)
            .arg0(role::NAME)
            .arg(tag)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        sys::set_nonblocking(control.as_fd()).map_err(failed)?;
        sys::set_nonblocking(worker.as_fd()).map_err(failed)?;
        let worker = UnixStream::from_std(worker.into()).map_err(failed)?;
        let control = watched(control, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        let init = Self {
            control,
            worker: Mutex::new(worker),
            child: Mutex::new(child),
            next: AtomicU64::new(1),
            dead: AtomicBool::new(false),
        };
        let env = std::env::var("HOME")
            .map(|home| vec![("HOME".to_owned(), home)])
            .unwrap_or_default();
        let memory = memory(&SetUp { plan, env }).map_err(failed)?;
        init.send(
            &Order::SetUp,
            &[memory.as_raw_fd(), their_worker.as_raw_fd()],
        )
        .await?;
        drop((memory, their_worker));
        let answer = tokio::time::timeout(SET_UP, init.receive()).await;
        let bytes = answer.map_err(|_| {
            boundary(
                "sandbox process",
                "it did not get ready within 20 s",
                "try again",
            )
        })??;
        let SetUpDone(result) =
            serde_json::from_slice(&bytes).map_err(|_| died("it ended while it was set up"))?;
        result.map(|()| init)
    }

    /// Ends it, and waits until it is gone.
    pub async fn close(&self) {
        self.dead.store(true, Ordering::SeqCst);
        sys::shut_down(self.control.get_ref().as_fd());
        // One that hangs in the kernel cannot be waited for; it has nothing to serve any more.
        let _ = tokio::time::timeout(CLOSE, self.child.lock().await.wait()).await;
    }

    /// Whether it was seen to be gone.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn dies(&self, reason: impl std::fmt::Display) -> SpawnFailure {
        self.dead.store(true, Ordering::SeqCst);
        died(reason)
    }

    async fn send(&self, order: &Order, fds: &[i32]) -> Result<(), SpawnFailure> {
        let bytes = serde_json::to_vec(order).map_err(died)?;
        let sent = self
            .control
            .async_io(Interest::WRITABLE, |socket| {
                sys::send(socket.as_fd(), &bytes, fds)
            })
            .await;
        sent.map_err(|error| self.dies(error))
    }

    async fn receive(&self) -> Result<Vec<u8>, SpawnFailure> {
        let received = self
            .control
            .async_io(Interest::READABLE, |socket| sys::receive(socket.as_fd()))
            .await;
        received
            .map(|(bytes, _)| bytes)
            .map_err(|error| self.dies(error))
    }

    /// Waits until the init is gone.
    pub async fn gone(&self) -> SpawnFailure {
        loop {
            match self.receive().await {
                Ok(bytes) if bytes.is_empty() => return self.dies("its control socket closed"),
                Ok(_) => {}
                Err(failure) => return failure,
            }
        }
    }

    /// Starts a command with these standard descriptors.
    pub async fn launch(
        &self,
        launch: &Launch,
        stdio: [&OwnedFd; 3],
    ) -> Result<Launched, SpawnFailure> {
        let failed = |error: io::Error| {
            boundary(
                "descriptors",
                error.to_string(),
                "close some files (ulimit -n)",
            )
        };
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let memory = memory(launch).map_err(failed)?;
        let (status, theirs) = sys::pipe().map_err(failed)?;
        let [stdin, stdout, stderr] = stdio.map(AsRawFd::as_raw_fd);
        self.send(
            &Order::Spawn { id },
            &[
                memory.as_raw_fd(),
                theirs.as_raw_fd(),
                stdin,
                stdout,
                stderr,
            ],
        )
        .await?;
        Ok(Launched { id, status })
    }

    /// Signals a command; SIGKILL ends all that it started. Does not wait: with a full socket the order is lost, which
    /// a later step of the ladder repeats.
    pub fn signal(&self, id: u64, signal: i32) {
        if let Ok(bytes) = serde_json::to_vec(&Order::Kill { id, signal }) {
            let _ = sys::send(self.control.get_ref().as_fd(), &bytes, &[]);
        }
    }

    /// Has the file worker carry out a request.
    pub async fn file(&self, request: &FileRequest) -> Result<FileReply, SpawnFailure> {
        let bytes = serde_json::to_vec(request).map_err(died)?;
        let length = u32::try_from(bytes.len()).map_err(died)?;
        let mut worker = self.worker.lock().await;
        let exchange = async {
            worker.write_all(&length.to_le_bytes()).await?;
            worker.write_all(&bytes).await?;
            let length = worker.read_u32_le().await?;
            if length > FRAME_LIMIT {
                return Err(io::Error::from(io::ErrorKind::InvalidData));
            }
            let mut bytes = vec![0; length as usize];
            worker.read_exact(&mut bytes).await?;
            Ok(bytes)
        };
        let bytes = exchange
            .await
            .map_err(|error| self.dies(format!("the file worker is gone: {error}")))?;
        serde_json::from_slice(&bytes).map_err(|error| self.dies(error))
    }
}

fn memory(content: &impl serde::Serialize) -> io::Result<OwnedFd> {
    sys::memory_file(&serde_json::to_vec(content)?)
}
