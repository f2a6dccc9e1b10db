//! `interpreter demo`: a recording plays the model; the project, the commands, the sandbox and the edit are real.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use clap::Args;
use interpreter_frontend::ExecMode;
use interpreter_messages::hub::Origin;

use super::exec::color;
use super::flags::{ApprovalArg, SandboxArg, SessionFlags};
use super::prepare::{Prepared, Surface};
use super::run::{Run, Show, runtime};

/// The project.
const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/README.md")),
    ("slug.sh", include_str!("../demo/slug.sh")),
    ("test.sh", include_str!("../demo/test.sh")),
];
/// What the recorded model says.
const TRANSCRIPT: &str = include_str!("../demo/transcript.json");
/// What the user asks.
const PROMPT: &str = "The tests of this project fail. Find out why, and fix it.";

/// `demo`
#[derive(Debug, Args)]
pub struct DemoCommand {
    /// Keep the project, to look at it afterwards
    #[arg(long)]
    keep: bool,
}

/// Runs the demo.
///
/// # Errors
/// When the scratch project cannot be made or the session cannot run.
pub fn main(command: &DemoCommand) -> anyhow::Result<u8> {
    let scratch = tempfile::Builder::new()
        .prefix("interpreter-demo-")
        .tempdir()
        .context("no scratch directory can be made")?;
    let project = scratch.path().join("project");
    make(&project)?;
    let transcript = scratch.path().join("transcript.json");
    std::fs::write(&transcript, TRANSCRIPT).context("the transcript cannot be written")?;
    say(&format!(
        "This is a demo. The model is a recording: what it says is played back, and no key or network is used.\n\
         The project is real ({}), and so are the sandbox, the commands, the edit and the test results.\n",
        project.display()
    ));
    let flags = SessionFlags {
        config: vec![
            "model_provider=replay".to_owned(),
            format!("replay={}", transcript.display()),
            "harness=native".to_owned(),
        ],
        cd: Some(project.clone()),
        sandbox: Some(SandboxArg::WorkspaceWrite),
        approval: Some(ApprovalArg::Never),
        ephemeral: true,
        ..SessionFlags::default()
    };
    let prepared = Prepared::load(&flags, None)?;
    let settings = prepared.settings(&flags, Surface::Exec { terminal: false }, None)?;
    let mode = ExecMode::Human {
        color: color(None, io::stderr().is_terminal()),
        stdout_tty: io::stdout().is_terminal(),
    };
    let run = Run {
        prepared,
        settings,
        origin: Origin::New { ephemeral: true },
    };
    let code = runtime()?.block_on(run.exec(PROMPT.to_owned(), Show { mode, ask: false }, None))?;
    if command.keep {
        let kept = scratch.keep();
        say(&format!(
            "The project is kept in {}.",
            kept.join("project").display()
        ));
    }
    Ok(u8::try_from(code).unwrap_or(1))
}

fn make(project: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(project).context("the scratch project cannot be made")?;
    for (name, text) in FILES {
        std::fs::write(project.join(name), text)
            .with_context(|| format!("{name} cannot be written"))?;
    }
    Ok(())
}

fn say(text: &str) {
    // There is nobody left to tell when stderr is closed.
    let _ = writeln!(io::stderr(), "{text}");
}
