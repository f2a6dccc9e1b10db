//! Which paths the policy lets be written, by their letters. Pure.
//!
//! The kernel decides in the end; this only tells beforehand whether a change needs to leave the sandbox, so that the
//! question can be asked before anything happens.

use std::path::{Path, PathBuf};

use interpreter_messages::policy::{SandboxMode, SandboxPolicy};

/// Directories that are private to the sandbox, and writable in it.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What a policy lets be written.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    everything: bool,
    roots: Vec<PathBuf>,
    protected: Vec<String>,
}

impl Scope {
    /// The scope of a policy. Looks the roots up once, so that they are known under their real names too.
    pub(crate) fn of(policy: &SandboxPolicy) -> Self {
        let mut roots = policy.roots.clone();
        for root in &policy.roots {
            if let Ok(real) = std::fs::canonicalize(root)
                && !roots.contains(&real)
            {
                roots.push(real);
            }
        }
        Self {
            everything: policy.mode == SandboxMode::DangerFullAccess,
            roots: match policy.mode {
                SandboxMode::ReadOnly => Vec::new(),
                SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess => roots,
            },
            protected: policy.protected.clone(),
        }
    }

    /// Whether there is a boundary at all.
    pub(crate) const fn is_bounded(&self) -> bool {
        !self.everything
    }

    /// Whether an absolute path may be written. Compared by components: `/srv/app` does not cover `/srv/app-other`.
    pub(crate) fn allows(&self, path: &Path) -> bool {
        if self.everything {
            return true;
        }
        let mut inside = false;
        for root in &self.roots {
            let Ok(rest) = path.strip_prefix(root) else {
                continue;
            };
            let first = rest.components().next();
            let is_protected = first.is_some_and(|first| {
                self.protected
                    .iter()
                    .any(|name| first.as_os_str() == name.as_str())
            });
            if is_protected {
                return false;
            }
            inside = true;
        }
        inside || PRIVATE.iter().any(|private| path.starts_with(private))
    }
}
