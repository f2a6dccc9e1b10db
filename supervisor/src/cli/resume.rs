//! `interpreter resume`, and `interpreter` alone: a conversation in the terminal.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use interpreter_journal::format::{self, Line};
use interpreter_journal::index;
use interpreter_messages::hub::Origin;
use interpreter_messages::journal::{Entry, SessionMeta};

use super::exec::{color, warn};
use super::flags::SessionFlags;
use super::prepare::{Prepared, Surface};
use super::run::{Run, runtime};

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  interpreter resume --last
  interpreter resume 01a22fe2 \"and now the tests\"";

/// Which session.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The session's id, or its beginning
    #[arg(value_name = "ID")]
    first: Option<String>,
    /// What to say
    #[arg(value_name = "PROMPT")]
    second: Option<String>,
    /// The newest session of this directory
    #[arg(long)]
    last: bool,
    /// With --last: of any directory
    #[arg(long, requires = "last")]
    all: bool,
}

impl Which {
    /// With `--last` the only positional is the prompt.
    #[must_use]
    pub fn prompt(&self) -> Option<&str> {
        if self.last {
            self.first.as_deref()
        } else {
            self.second.as_deref()
        }
    }
}

/// `resume`
#[derive(Debug, Args)]
pub struct ResumeCommand {
    #[command(flatten)]
    flags: SessionFlags,
    #[command(flatten)]
    which: Which,
}

/// A session that can be resumed.
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// Where it worked.
    pub cwd: PathBuf,
    /// Its first record.
    pub meta: SessionMeta,
}

/// Finds a session.
///
/// # Errors
/// When there is none, or several begin alike.
pub fn find(which: &Which, flags: &SessionFlags) -> anyhow::Result<Found> {
    let home = interpreter_config::home(super::prepare::var)?;
    let path = if which.last {
        anyhow::ensure!(
            which.second.is_none(),
            "with --last only a prompt can be given, not an id as well"
        );
        let here = match &flags.cd {
            Some(cd) => cd.clone(),
            None => std::env::current_dir().context("the working directory cannot be found")?,
        };
        let here = here.canonicalize().unwrap_or(here);
        let found = index::latest(&home, (!which.all).then_some(here.as_path()))?;
        match found {
            Some(summary) => summary.path,
            None if which.all => anyhow::bail!("there is no session yet"),
            None => anyhow::bail!(
                "there is no session of {}; use --last --all for one of any directory",
                here.display()
            ),
        }
    } else {
        let Some(id) = &which.first else {
            anyhow::bail!("say which session: an id, or --last");
        };
        index::find(&home, id)?
    };
    let meta = meta(&path)?;
    let cwd = if meta.cwd.is_dir() {
        meta.cwd.clone()
    } else {
        let here = std::env::current_dir().context("the working directory cannot be found")?;
        warn(&format!(
            "the session's directory {} is gone; it goes on in {}",
            meta.cwd.display(),
            here.display()
        ));
        here
    };
    Ok(Found { path, cwd, meta })
}

/// The first record of a session's file, read without taking the file's lock.
fn meta(path: &std::path::Path) -> anyhow::Result<SessionMeta> {
    use std::io::{BufRead, BufReader};
    let file = std::fs::File::open(path)
        .with_context(|| format!("the session file {} cannot be read", path.display()))?;
    for line in BufReader::new(file).split(b'\n').take(64) {
        let line =
            line.with_context(|| format!("the session file {} cannot be read", path.display()))?;
        if let Ok(Line::Record { entry, .. }) = format::decode(&line)
            && let Entry::Meta(meta) = *entry
        {
            return Ok(meta);
        }
    }
    // The journal mends a lost first line from the file's name; it knows better than this what is missing.
    let store = interpreter_journal::JournalStore::open(path)?;
    Ok(store.meta())
}

/// Runs `resume`.
///
/// # Errors
/// When it cannot begin.
pub fn main(before: SessionFlags, command: ResumeCommand) -> anyhow::Result<u8> {
    let flags = before.then(command.flags);
    let found = find(&command.which, &flags)?;
    let prompt = command.which.prompt().map(str::to_owned);
    talk(&flags, prompt, Some(found))
}

/// Runs `interpreter` without a command: a new session.
///
/// # Errors
/// When it cannot begin.
pub fn fresh(flags: SessionFlags, prompt: Option<String>) -> anyhow::Result<u8> {
    talk(&flags, prompt, None)
}

fn talk(flags: &SessionFlags, prompt: Option<String>, found: Option<Found>) -> anyhow::Result<u8> {
    let prepared = Prepared::load(flags, found.as_ref().map(|found| found.cwd.as_path()))?;
    for warning in &prepared.warnings {
        warn(warning);
    }
    let surface = if io::stdin().is_terminal() {
        Surface::Cli
    } else {
        Surface::Exec { terminal: false }
    };
    let settings = prepared.settings(flags, surface, found.as_ref().map(|found| &found.meta))?;
    let origin = match found {
        Some(found) => Origin::Resume { path: found.path },
        None => Origin::New {
            ephemeral: flags.ephemeral,
        },
    };
    let run = Run {
        prepared,
        settings,
        origin,
    };
    let code = runtime()?.block_on(run.text(prompt, color(None, io::stdout().is_terminal())))?;
    Ok(u8::try_from(code).unwrap_or(1))
}
