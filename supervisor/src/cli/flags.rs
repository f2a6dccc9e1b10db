//! The flags that every way to start a session takes, before and after a subcommand.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of a session. They may stand before a subcommand, after it, or both; the later ones win.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionFlags {
    /// Model to ask, such as `kimi-k2.6` or `moonshotai/kimi-k2.6`
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Override a configuration value; KEY is a dotted path, VALUE is TOML or plain text
    #[arg(short, long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// Use the configuration file NAME.config.toml as well
    #[arg(short, long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Refuse configuration files with unknown keys instead of warning
    #[arg(long)]
    pub strict_config: bool,
    /// Turn a feature on (the same as -c features.NAME=true)
    #[arg(long, value_name = "NAME", hide = true)]
    pub enable: Vec<String>,
    /// Turn a feature off (the same as -c features.NAME=false)
    #[arg(long, value_name = "NAME", hide = true)]
    pub disable: Vec<String>,
    /// Work in this directory
    #[arg(short = 'C', long = "cd", value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// What commands and file changes may touch
    #[arg(short, long, value_name = "MODE", value_enum)]
    pub sandbox: Option<SandboxArg>,
    /// When to ask before acting
    #[arg(
        short = 'a',
        long = "ask-for-approval",
        value_name = "POLICY",
        value_enum
    )]
    pub approval: Option<ApprovalArg>,
    /// Another directory that may be written in
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// No sandbox and no questions: everything runs with your rights
    #[arg(long = "yolo", alias = "dangerously-bypass-approvals-and-sandbox", conflicts_with_all = ["sandbox", "approval"])]
    pub yolo: bool,
    /// Write no session file
    #[arg(long)]
    pub ephemeral: bool,
}

/// `--sandbox`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// Reads only, and a private temp directory
    ReadOnly,
    /// Writes in the working directory too
    WorkspaceWrite,
    /// No boundary
    DangerFullAccess,
}

/// `--ask-for-approval`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApprovalArg {
    /// Before every command that is not known to be harmless
    Untrusted,
    /// Before leaving the sandbox
    #[value(alias = "on-failure")]
    OnRequest,
    /// Never; what would have to ask is refused
    Never,
}

impl SessionFlags {
    /// These flags, then those of a subcommand: lists are joined, single values are replaced.
    #[must_use]
    pub fn then(mut self, later: Self) -> Self {
        self.config.extend(later.config);
        self.enable.extend(later.enable);
        self.disable.extend(later.disable);
        self.add_dir.extend(later.add_dir);
        Self {
            model: later.model.or(self.model),
            profile: later.profile.or(self.profile),
            strict_config: self.strict_config || later.strict_config,
            cd: later.cd.or(self.cd),
            sandbox: later.sandbox.or(self.sandbox),
            approval: later.approval.or(self.approval),
            yolo: self.yolo || later.yolo,
            ephemeral: self.ephemeral || later.ephemeral,
            ..self
        }
    }

    /// `-c` overrides in order, with those that other flags stand for behind them.
    #[must_use]
    pub fn overrides(&self) -> Vec<String> {
        let mut all = self.config.clone();
        all.extend(
            self.enable
                .iter()
                .map(|name| format!("features.{name}=true")),
        );
        all.extend(
            self.disable
                .iter()
                .map(|name| format!("features.{name}=false")),
        );
        all
    }
}

/// Flags of `exec`, before and after its subcommands.
#[derive(Debug, Clone, Default, Args)]
pub struct ExecFlags {
    /// Flags of the session
    #[command(flatten)]
    pub session: SessionFlags,
    /// Print events as JSON lines
    #[arg(long, alias = "experimental-json")]
    pub json: bool,
    /// Write the last message of the agent to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,
    /// Run outside a git repository too
    #[arg(long)]
    pub skip_git_repo_check: bool,
    /// Colours on the terminal
    #[arg(long, value_name = "WHEN", value_enum)]
    pub color: Option<ColorArg>,
    /// Accepted for the Codex SDK; has no effect
    #[arg(long, value_name = "SOURCE", hide = true)]
    pub thread_source: Option<String>,
    /// Accepted for the Codex SDK; has no effect
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub cyber_access_program: Option<String>,
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// Also into a file or pipe
    Always,
    /// Not at all
    Never,
    /// On a terminal, unless NO_COLOR is set
    Auto,
}

impl ExecFlags {
    /// These flags, then those of a subcommand.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            session: self.session.then(later.session),
            json: self.json || later.json,
            output_last_message: later.output_last_message.or(self.output_last_message),
            skip_git_repo_check: self.skip_git_repo_check || later.skip_git_repo_check,
            color: later.color.or(self.color),
            thread_source: later.thread_source.or(self.thread_source),
            cyber_access_program: later.cyber_access_program.or(self.cyber_access_program),
        }
    }
}
