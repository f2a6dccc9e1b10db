//! `interpreter exec`: one request, one turn.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use interpreter_frontend::ExecMode;
use interpreter_messages::hub::Origin;

use super::flags::{ColorArg, ExecFlags, SessionFlags};
use super::prepare::{Prepared, Surface};
use super::prompt;
use super::resume::{Which, find};
use super::run::{Run, Show, runtime};

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  interpreter exec -s workspace-write \"find out why the tests fail, and fix it\"
  git diff | interpreter exec \"review this change\"
  interpreter exec --json resume --last \"and now the documentation\"";

/// `exec`
#[derive(Debug, Args)]
pub struct ExecCommand {
    #[command(flatten)]
    flags: ExecFlags,
    /// What to do; `-` or nothing reads it from stdin
    prompt: Option<String>,
    #[command(subcommand)]
    command: Option<ExecSubcommand>,
}

#[derive(Debug, Subcommand)]
enum ExecSubcommand {
    /// Go on with an earlier session
    Resume(ExecResume),
}

#[derive(Debug, Args)]
struct ExecResume {
    #[command(flatten)]
    flags: ExecFlags,
    #[command(flatten)]
    which: Which,
}

/// Runs the command.
///
/// # Errors
/// When it cannot begin.
pub fn main(before: SessionFlags, command: ExecCommand) -> anyhow::Result<u8> {
    let before = ExecFlags {
        session: before,
        ..ExecFlags::default()
    };
    let flags = before.then(command.flags);
    match command.command {
        None => begin(&flags, command.prompt.as_deref(), None),
        Some(ExecSubcommand::Resume(resume)) => {
            let flags = flags.then(resume.flags);
            // A prompt before `resume` would be lost silently otherwise.
            anyhow::ensure!(command.prompt.is_none(), "give the prompt after `resume`");
            let prompt = resume.which.prompt().map(str::to_owned);
            begin(&flags, prompt.as_deref(), Some(&resume.which))
        }
    }
}

fn begin(flags: &ExecFlags, argument: Option<&str>, which: Option<&Which>) -> anyhow::Result<u8> {
    let stdin = io::stdin();
    let piped = if stdin.is_terminal() {
        None
    } else {
        Some(prompt::read_all(stdin.lock())?)
    };
    // Piped text goes along with the prompt of a new session only (fact of the exec protocol).
    let piped = piped.filter(|_| which.is_none() || argument.is_none_or(|text| text == "-"));
    let prompt = prompt::assemble(argument, piped.as_deref())?;
    let found = which.map(|which| find(which, &flags.session)).transpose()?;
    let prepared = Prepared::load(
        &flags.session,
        found.as_ref().map(|found| found.cwd.as_path()),
    )?;
    check_repository(flags, &prepared)?;
    for warning in &prepared.warnings {
        warn(warning);
    }
    // Questions go to the terminal itself, whatever stdin and stdout are; without one, nobody can be asked.
    let terminal =
        !flags.json && io::stderr().is_terminal() && std::fs::File::open("/dev/tty").is_ok();
    let settings = prepared.settings(
        &flags.session,
        Surface::Exec { terminal },
        found.as_ref().map(|found| &found.meta),
    )?;
    let origin = match &found {
        Some(found) => Origin::Resume {
            path: found.path.clone(),
        },
        None => Origin::New {
            ephemeral: flags.session.ephemeral,
        },
    };
    let mode = if flags.json {
        ExecMode::Json
    } else {
        ExecMode::Human {
            color: color(flags.color, io::stderr().is_terminal()),
            stdout_tty: io::stdout().is_terminal(),
        }
    };
    let last: Option<PathBuf> = flags.output_last_message.clone();
    let run = Run {
        prepared,
        settings,
        origin,
    };
    let code = runtime()?.block_on(run.exec(
        prompt,
        Show {
            mode,
            ask: terminal,
        },
        last,
    ))?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Outside a repository a change cannot be looked at or taken back.
fn check_repository(flags: &ExecFlags, prepared: &Prepared) -> anyhow::Result<()> {
    let inside = prepared
        .cwd
        .ancestors()
        .any(|folder| folder.join(".git").exists());
    let trusted = prepared.config.trust().is_some();
    if inside || trusted || flags.skip_git_repo_check || flags.session.yolo {
        return Ok(());
    }
    anyhow::bail!(
        "{} is not in a git repository, where changes could be looked at and taken back; use --skip-git-repo-check to run all the same",
        prepared.cwd.display()
    )
}

/// Whether to use colours.
#[must_use]
pub fn color(wanted: Option<ColorArg>, terminal: bool) -> bool {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match wanted {
        Some(ColorArg::Always) => true,
        Some(ColorArg::Never) => false,
        Some(ColorArg::Auto) | None => {
            terminal && var("NO_COLOR").is_none() && var("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Says something on stderr before a user interface is there.
pub fn warn(text: &str) {
    use std::io::Write;
    // There is nobody left to tell when stderr is closed.
    let _ = writeln!(
        io::stderr(),
        "warning: {}",
        interpreter_messages::visible::visible(text)
    );
}
