//! One session with one user interface, from the start of the tree to its ordered end.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use interpreter_frontend::exec::{self, RESUBMIT};
use interpreter_frontend::{AskMode, ExecArgs, ExecMode, ExecOutcome, Pen, TerminalAnswers, host};
use interpreter_messages::hub::{Origin, SessionHandle, SessionHubMsg};
use interpreter_messages::journal::{Entry, JournalMsg, Part, Record};
use interpreter_messages::session::{SessionMsg, SessionSettings};
use interpreter_messages::ui::UiMsg;
use interpreter_messages::{ClientId, FaultSwitch, Peer};
use interpreter_tui::text::{Text, TextArgs};
use tokio::signal::unix::{SignalKind, signal};

use super::prepare::{Prepared, ready};
use crate::tree::{Tree, World};

/// How long opening a session may take: a large one is read from a slow disk.
const OPEN: Duration = Duration::from_secs(120);
/// Exit code when the supervision tree itself gave up.
const EXIT_TREE: i32 = 70;

/// A session to run.
pub struct Run {
    /// Where everything is.
    pub prepared: Prepared,
    /// What the session is.
    pub settings: SessionSettings,
    /// New or resumed.
    pub origin: Origin,
}

/// A started session.
struct Open {
    tree: Tree,
    session: SessionHandle,
    settings: SessionSettings,
    records: Vec<Arc<Record>>,
}

/// The runtime that everything runs on: two workers are enough for a person and a model.
///
/// # Errors
/// When the system gives no threads.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime cannot start")
}

impl Run {
    async fn open(self) -> anyhow::Result<Open> {
        let world = World::new(
            self.prepared.home.clone(),
            self.prepared.sync(),
            FaultSwitch::default(),
        );
        let tree = Tree::start(world)
            .await
            .context("the supervision tree cannot start")?;
        let settings = self.settings.clone();
        let past = matches!(self.origin, Origin::Resume { .. });
        let (boxed, origin) = (Box::new(self.settings), self.origin);
        let opened = tree
            .world
            .session_hub
            .call(
                |reply| SessionHubMsg::Open {
                    settings: boxed,
                    origin,
                    reply,
                },
                OPEN,
            )
            .await
            .map_err(|error| anyhow::anyhow!("the session could not be opened: {error}"))?;
        let session = match opened {
            Ok(session) => session,
            Err(error) => {
                tree.shutdown().await;
                anyhow::bail!("{error}");
            }
        };
        let records = if past {
            records(&tree, &session).await
        } else {
            Vec::new()
        };
        Ok(Open {
            tree,
            session,
            settings,
            records,
        })
    }

    /// One prompt, one turn; gives the exit code.
    ///
    /// # Errors
    /// When the session cannot be opened or shown.
    pub async fn exec(
        self,
        prompt: String,
        show: Show,
        last_message: Option<PathBuf>,
    ) -> anyhow::Result<i32> {
        let mut open = self.open().await?;
        let slot = Peer::empty();
        let answers = if show.ask {
            TerminalAnswers::open().ok()
        } else {
            None
        };
        let restorer = answers.as_ref().and_then(|answers| answers.restorer().ok());
        let signals = tokio::spawn(pass_signals_on(
            slot.clone(),
            open.session.session.clone(),
            restorer,
        ));
        let args = ExecArgs {
            hub: open.tree.world.ui_hub.clone(),
            slot,
            session: open.session.clone(),
            ready: ready(open.session.id, &open.settings, turns(&open.records)),
            mode: show.mode,
            prompt: vec![Part::Text { text: prompt }],
            client: ClientId::now(),
            ask: answers.map_or(AskMode::None, |answers| AskMode::Person(Box::new(answers))),
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            prices: open.settings.model.profile.prices,
            resubmit: RESUBMIT,
            fault: FaultSwitch::default(),
        };
        let outcome = tokio::select! {
            outcome = exec::run(args) => outcome,
            _ = &mut open.tree.ended => return Ok(EXIT_TREE),
        };
        let closed = open.tree.shutdown().await;
        signals.abort();
        let ExecOutcome {
            exit_code,
            last_message: text,
        } = outcome?;
        if let Some(path) = last_message.filter(|_| exit_code == 0) {
            std::fs::write(&path, text.unwrap_or_default()).with_context(|| {
                format!("the last message cannot be written to {}", path.display())
            })?;
        }
        Ok(if closed { exit_code } else { exit_code.max(1) })
    }

    /// A conversation in the terminal, line by line.
    ///
    /// # Errors
    /// When the session cannot be opened or shown.
    pub async fn text(self, first: Option<String>, color: bool) -> anyhow::Result<i32> {
        let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        let open = self.open().await?;
        let slot = Peer::empty();
        let signals = tokio::spawn(pass_signals_on(
            slot.clone(),
            open.session.session.clone(),
            None,
        ));
        let pen = Pen::new(Box::new(io::stdout())).context("cannot write to the terminal")?;
        let text = Text::new(TextArgs {
            hub: open.tree.world.ui_hub.clone(),
            slot: slot.clone(),
            session: open.session.clone(),
            ready: ready(open.session.id, &open.settings, turns(&open.records)),
            records: open.records.clone(),
            first_prompt: first.map(|text| vec![Part::Text { text }]),
            input: Box::new(io::BufReader::new(io::stdin())),
            paper: Arc::new(pen.clone()),
            color,
            width: width(),
            interactive,
            prices: open.settings.model.profile.prices,
            resubmit: RESUBMIT,
            fault: FaultSwitch::default(),
        })
        .context("cannot read from the terminal")?;
        let shown = host(
            &open.tree.world.ui_hub,
            &slot,
            || text.start(),
            || text.is_finished(),
        )
        .await;
        open.tree.shutdown().await;
        pen.finish().await;
        signals.abort();
        shown?;
        Ok(0)
    }
}

/// How `exec` is shown.
pub struct Show {
    /// Human or JSON.
    pub mode: ExecMode,
    /// Whether a person can be asked on the terminal.
    pub ask: bool,
}

fn turns(records: &[Arc<Record>]) -> u64 {
    records
        .iter()
        .filter(|record| matches!(record.entry, Entry::TurnStarted(_)))
        .count() as u64
}

/// The past, for showing it.
async fn records(tree: &Tree, session: &SessionHandle) -> Vec<Arc<Record>> {
    let Some(journal) = tree.world.sessions.journal(session.id) else {
        return Vec::new();
    };
    match journal.call(JournalMsg::Load, OPEN).await {
        Ok(Ok(loaded)) => loaded.records,
        _ => Vec::new(),
    }
}

fn width() -> usize {
    crossterm::terminal::size()
        .map_or(80, |(columns, _)| usize::from(columns))
        .max(20)
}

/// Ctrl-C and SIGTERM end the turn; a second one ends the program at once, which the journal makes safe.
async fn pass_signals_on(
    ui: Peer<UiMsg>,
    session: Peer<SessionMsg>,
    restorer: Option<interpreter_frontend::Restorer>,
) {
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else {
        return;
    };
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    let Ok(mut hang_up) = signal(SignalKind::hangup()) else {
        return;
    };
    let mut again = false;
    loop {
        let code = tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
            _ = hang_up.recv() => 129,
        };
        if again {
            if let Some(restorer) = &restorer {
                restorer.restore();
            }
            std::process::exit(code);
        }
        if ui.cast(UiMsg::Signal { again }).is_err() {
            // The interface is being started again; a driver that is down too ends with the next signal.
            let _ = session.cast(SessionMsg::Interrupt {
                now: false,
                by: "user",
            });
        }
        again = true;
    }
}
