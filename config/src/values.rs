//! Typed access to the merged values. Kinds were checked on loading, so a value that is there fits.

use std::path::PathBuf;
use std::time::Duration;

use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};

use crate::error::Origin;
use crate::load::{Config, Leaf};

/// `journal.sync`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalSync {
    /// At turn ends and before anything acts.
    Turn,
    /// After every write.
    Always,
    /// The system decides.
    Never,
}

impl Config {
    pub(crate) fn leaf(&self, path: &str) -> Option<&Leaf> {
        let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
        self.values.get(&keys)
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.leaf(path)?.value.as_str().map(str::to_owned)
    }

    pub(crate) fn flag(&self, path: &str) -> Option<bool> {
        self.leaf(path)?.value.as_bool()
    }

    pub(crate) fn count(&self, path: &str) -> Option<u64> {
        self.leaf(path)?.value.as_integer()?.try_into().ok()
    }

    pub(crate) fn list(&self, path: &str) -> Option<Vec<String>> {
        let list = self.leaf(path)?.value.as_array()?;
        Some(
            list.iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect(),
        )
    }

    /// A path: relative to its file's folder, or to the working directory for an override; `~` is the user's home.
    pub(crate) fn path(&self, text: &str, origin: &Origin) -> PathBuf {
        let user_home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let below_home = match text.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        if let (Some(rest), Some(home)) = (below_home, below_home.and_then(|_| user_home())) {
            return home.join(rest);
        }
        let base = match origin {
            Origin::File { path, .. } => path.parent().unwrap_or(&self.cwd),
            Origin::Flag(_) | Origin::Argument(_) | Origin::Default => &self.cwd,
        };
        base.join(text)
    }

    /// `harness`
    #[must_use]
    pub fn harness(&self) -> Option<String> {
        self.text("harness")
    }

    /// `approval_policy`; `on-request` by default.
    #[must_use]
    pub fn approval_policy(&self) -> ApprovalPolicy {
        match self.text("approval_policy").as_deref() {
            Some("untrusted") => ApprovalPolicy::Untrusted,
            Some("never") => ApprovalPolicy::Never,
            _ => ApprovalPolicy::OnRequest,
        }
    }

    /// `sandbox_mode`; by default `workspace-write` once the user decided whether the project is trusted, `read-only`
    /// before (facts of the original).
    #[must_use]
    pub fn sandbox_mode(&self) -> SandboxMode {
        match self.text("sandbox_mode").as_deref() {
            Some("danger-full-access") => SandboxMode::DangerFullAccess,
            Some("workspace-write") => SandboxMode::WorkspaceWrite,
            Some(_) => SandboxMode::ReadOnly,
            None if self.trust().is_some() => SandboxMode::WorkspaceWrite,
            None => SandboxMode::ReadOnly,
        }
    }

    /// `journal.sync`
    #[must_use]
    pub fn journal_sync(&self) -> JournalSync {
        match self.text("journal.sync").as_deref() {
            Some("always") => JournalSync::Always,
            Some("never") => JournalSync::Never,
            _ => JournalSync::Turn,
        }
    }

    /// `approvals.timeout_s`: how long a question waits; ten minutes by default, 0 for ever.
    #[must_use]
    pub fn approval_timeout(&self) -> Option<Duration> {
        match self.count("approvals.timeout_s") {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => Some(Duration::from_secs(600)),
        }
    }

    /// `max_requests_per_turn`; 200 by default.
    #[must_use]
    pub fn max_requests_per_turn(&self) -> u32 {
        self.count("max_requests_per_turn")
            .map_or(200, |count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// `project_doc_max_bytes`; 32 KiB by default.
    #[must_use]
    pub fn project_doc_max_bytes(&self) -> usize {
        self.count("project_doc_max_bytes")
            .map_or(32 * 1024, |count| {
                usize::try_from(count).unwrap_or(usize::MAX)
            })
    }

    /// `project_doc_fallback_filenames`
    #[must_use]
    pub fn project_doc_fallback(&self) -> Vec<String> {
        self.list("project_doc_fallback_filenames")
            .unwrap_or_default()
    }

    /// `project_root_markers`; `[".git"]` by default.
    #[must_use]
    pub fn root_markers(&self) -> Vec<String> {
        self.list("project_root_markers")
            .unwrap_or_else(|| vec![".git".to_owned()])
    }
}
