//! From flags and configuration to the settings of a session. Nothing is started here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use interpreter_config::{Config, JournalSync, LoadOptions, PolicyOptions};
use interpreter_journal::SyncPolicy;
use interpreter_messages::SessionId;
use interpreter_messages::journal::SessionMeta;
use interpreter_messages::policy::{ApprovalPolicy, OnNoUi, SandboxMode};
use interpreter_messages::session::SessionSettings;
use interpreter_messages::ui::Event;

use super::flags::{ApprovalArg, SandboxArg, SessionFlags};
use crate::VERSION;

/// Configuration as loaded, with where everything is.
pub struct Prepared {
    /// `INTERPRETER_HOME`.
    pub home: PathBuf,
    /// The working directory, canonical.
    pub cwd: PathBuf,
    /// The configuration.
    pub config: Config,
    /// Said to the user before anything starts.
    pub warnings: Vec<String>,
}

/// A text variable of the environment.
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Prepared {
    /// Loads the configuration for flags. `cwd` is where a resumed session lived, and is used unless `--cd` says
    /// otherwise.
    ///
    /// # Errors
    /// For a directory that is not there, and every complaint about configuration.
    pub fn load(flags: &SessionFlags, cwd: Option<&Path>) -> anyhow::Result<Self> {
        let home = interpreter_config::home(var)?;
        let wanted = match (&flags.cd, cwd) {
            (Some(cd), _) => cd.clone(),
            (None, Some(cwd)) => cwd.to_path_buf(),
            (None, None) => {
                std::env::current_dir().context("the working directory cannot be found")?
            }
        };
        let cwd = wanted
            .canonicalize()
            .with_context(|| format!("the directory {} cannot be used", wanted.display()))?;
        anyhow::ensure!(cwd.is_dir(), "{} is not a directory", cwd.display());
        let loaded = Config::load(&LoadOptions {
            home: home.clone(),
            cwd: cwd.clone(),
            profile: flags.profile.clone(),
            overrides: flags.overrides(),
            strict: flags.strict_config,
        })?;
        Ok(Self {
            home,
            cwd,
            config: loaded.config,
            warnings: loaded.warnings,
        })
    }

    /// The settings of a session. `source` names the surface; `before` is the record that a resumed session began with.
    ///
    /// # Errors
    /// When there is no model, no key, or a writable root is missing.
    pub fn settings(
        &self,
        flags: &SessionFlags,
        surface: Surface,
        before: Option<&SessionMeta>,
    ) -> anyhow::Result<SessionSettings> {
        let model = self.config.choose_model(flags.model.as_deref(), &var)?;
        let harness = self
            .config
            .harness()
            .or_else(|| before.map(|meta| meta.harness.clone()));
        let harness = harness.unwrap_or_else(|| DEFAULT_HARNESS.to_owned());
        let sandbox = self.config.sandbox_policy(&PolicyOptions {
            mode: sandbox_mode(flags),
            add_dirs: flags.add_dir.clone(),
            user_home: var("HOME").map(PathBuf::from),
            secrets: self.config.held_secrets(&var),
        })?;
        let meta = SessionMeta {
            id: SessionId::now(),
            started: jiff::Timestamp::now(),
            cwd: self.cwd.clone(),
            source: surface.name().to_owned(),
            version: VERSION.to_owned(),
            provider: model.profile.provider.clone(),
            harness: harness.clone(),
            forked_from: None,
            parent: None,
        };
        Ok(SessionSettings {
            meta,
            cwd: self.cwd.clone(),
            model,
            harness,
            sandbox: Arc::new(sandbox),
            approval: approval_policy(flags).unwrap_or_else(|| self.config.approval_policy()),
            on_no_ui: if surface.can_ask() {
                OnNoUi::Wait
            } else {
                OnNoUi::Deny
            },
            approval_timeout: self.config.approval_timeout(),
            max_requests_per_turn: self.config.max_requests_per_turn(),
            project_doc_max_bytes: self.config.project_doc_max_bytes(),
            project_doc_fallback: self.config.project_doc_fallback(),
            root_markers: self.config.root_markers(),
        })
    }

    /// When journals go to the disk.
    #[must_use]
    pub fn sync(&self) -> SyncPolicy {
        match self.config.journal_sync() {
            JournalSync::Turn => SyncPolicy::Turn,
            JournalSync::Always => SyncPolicy::Always,
            JournalSync::Never => SyncPolicy::Never,
        }
    }
}

/// The harness where nobody chose one.
const DEFAULT_HARNESS: &str = "native";

/// How a session is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// `exec`; a terminal can be asked.
    Exec {
        /// Whether somebody can be asked.
        terminal: bool,
    },
    /// The terminal.
    Cli,
}

impl Surface {
    const fn name(self) -> &'static str {
        match self {
            Self::Exec { .. } => "exec",
            Self::Cli => "cli",
        }
    }

    const fn can_ask(self) -> bool {
        matches!(self, Self::Cli | Self::Exec { terminal: true })
    }
}

/// The sandbox mode that flags name.
#[must_use]
pub fn sandbox_mode(flags: &SessionFlags) -> Option<SandboxMode> {
    if flags.yolo {
        return Some(SandboxMode::DangerFullAccess);
    }
    flags.sandbox.map(|mode| match mode {
        SandboxArg::ReadOnly => SandboxMode::ReadOnly,
        SandboxArg::WorkspaceWrite => SandboxMode::WorkspaceWrite,
        SandboxArg::DangerFullAccess => SandboxMode::DangerFullAccess,
    })
}

fn approval_policy(flags: &SessionFlags) -> Option<ApprovalPolicy> {
    if flags.yolo {
        return Some(ApprovalPolicy::Never);
    }
    flags.approval.map(|policy| match policy {
        ApprovalArg::Untrusted => ApprovalPolicy::Untrusted,
        ApprovalArg::OnRequest => ApprovalPolicy::OnRequest,
        ApprovalArg::Never => ApprovalPolicy::Never,
    })
}

/// The first event of an attachment.
#[must_use]
pub fn ready(id: SessionId, settings: &SessionSettings, turns: u64) -> Event {
    Event::SessionReady {
        session: id,
        cwd: settings.cwd.clone(),
        model: settings.model.profile.id.clone(),
        provider: settings.model.profile.provider_name.clone(),
        harness: settings.harness.clone(),
        sandbox: settings.sandbox.mode.as_str().to_owned(),
        approval: settings.approval.as_str().to_owned(),
        turns,
    }
}
