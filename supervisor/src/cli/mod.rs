//! The edge: flags and configuration in, a session with a user interface, an exit code out.
//!
//! One file per command. Errors are `anyhow` with context here, typed everywhere else.

mod demo;
mod exec;
mod flags;
mod prepare;
mod prompt;
mod resume;
mod run;
mod sandbox;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use flags::SessionFlags;

/// A coding agent for the terminal, made for low-cost models
#[derive(Debug, Parser)]
#[command(name = "interpreter", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    flags: SessionFlags,
    /// What to do first
    prompt: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Carry out one request and exit
    #[command(after_help = exec::EXAMPLES)]
    Exec(Box<exec::ExecCommand>),
    /// Go on with an earlier session
    #[command(after_help = resume::EXAMPLES)]
    Resume(resume::ResumeCommand),
    /// Watch an agent fix a failing test, without a key or a network
    Demo(demo::DemoCommand),
    /// Run a command in the agent's sandbox
    #[command(after_help = sandbox::EXAMPLES)]
    Sandbox(sandbox::SandboxCommand),
}

/// Exit code of a command that could not begin: bad configuration, no prompt, no such session.
const CANNOT_BEGIN: u8 = 1;

/// The program.
pub fn main() -> ExitCode {
    // In its other role this process is the spawner inside a sandbox, and does not come back from here.
    interpreter_sandbox_process::role::run_if_role(interpreter_tool_executor::file_worker::serve);
    let cli = Cli::parse();
    let result = match cli.command {
        Some(Command::Exec(command)) => exec::main(cli.flags, *command),
        Some(Command::Resume(command)) => resume::main(cli.flags, command),
        Some(Command::Demo(command)) => demo::main(&command),
        Some(Command::Sandbox(command)) => sandbox::main(cli.flags, command),
        None => resume::fresh(cli.flags, cli.prompt),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&error);
            ExitCode::from(CANNOT_BEGIN)
        }
    }
}

/// Says on stderr why nothing was done.
fn complain(error: &anyhow::Error) {
    use std::io::Write;
    let text = interpreter_messages::visible::visible(&format!("{error:#}"));
    // There is nobody left to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "error: {text}");
}
