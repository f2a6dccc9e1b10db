//! `interpreter sandbox -- COMMAND`: any command under exactly the policy that the agent's commands have.

use std::path::Path;

use clap::Args;
use interpreter_config::PolicyOptions;

use super::flags::{SandboxArg, SessionFlags};
use super::prepare::{Prepared, var};

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  interpreter sandbox -- cargo test
  interpreter sandbox --sandbox read-only -- sh -c 'touch x'

Exit code: the command's own, 128+n for a signal, 125 when nothing ran because the sandbox could not be built,
126 or 127 when the command could not be executed.";

/// The sandbox could not be built: nothing ran.
const EXIT_NO_BOUNDARY: u8 = 125;
/// The command cannot be executed.
const EXIT_NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
const EXIT_NOT_FOUND: u8 = 127;

/// `sandbox`
#[derive(Debug, Args)]
pub struct SandboxCommand {
    #[command(flatten)]
    flags: SessionFlags,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When it cannot begin.
pub fn main(before: SessionFlags, command: SandboxCommand) -> anyhow::Result<u8> {
    use interpreter_messages::process::SpawnFailure;
    let mut flags = before.then(command.flags);
    if flags.sandbox.is_none() && !flags.yolo {
        // Whoever asks for a sandbox by hand means the directory to be worked in.
        flags.sandbox = Some(SandboxArg::WorkspaceWrite);
    }
    let prepared = Prepared::load(&flags, None)?;
    let policy = prepared.config.sandbox_policy(&PolicyOptions {
        mode: super::prepare::sandbox_mode(&flags),
        add_dirs: flags.add_dir.clone(),
        user_home: var("HOME").map(Into::into),
        secrets: prepared.config.held_secrets(&var),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let program = Path::new("/proc/self/exe");
    let ran =
        interpreter_sandbox_process::run_command(program, &policy, command.command, prepared.cwd);
    match runtime.block_on(ran) {
        Ok(code) => Ok(u8::try_from(code).unwrap_or(1)),
        Err(failure) => {
            super::complain(&anyhow::anyhow!("{failure}"));
            Ok(match failure {
                SpawnFailure::Program { reason, .. } if reason.contains("No such file") => {
                    EXIT_NOT_FOUND
                }
                SpawnFailure::Program { .. } => EXIT_NOT_EXECUTABLE,
                _ => EXIT_NO_BOUNDARY,
            })
        }
    }
}
