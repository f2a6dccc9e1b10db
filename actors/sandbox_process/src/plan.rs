//! What exactly is enforced: a policy, resolved against the file system of this moment.

use std::path::{Path, PathBuf};

use interpreter_messages::policy::{SandboxMode, SandboxPolicy};
use interpreter_messages::process::SpawnFailure;
use serde::{Deserialize, Serialize};

/// A plan for an init. Paths are absolute and canonical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether there is a boundary at all.
    pub bounded: bool,
    /// Writable trees, outermost first.
    pub roots: Vec<PathBuf>,
    /// Read-only trees that stay visible below a private /tmp.
    pub visible: Vec<PathBuf>,
    /// Existing paths inside them that stay read-only.
    pub protected: Vec<PathBuf>,
    /// Paths inside them that must not come into being: an empty directory is put there while the init lives.
    pub missing: Vec<PathBuf>,
    /// Directories that cannot be read.
    pub denied_dirs: Vec<PathBuf>,
    /// Files that cannot be read.
    pub denied_files: Vec<PathBuf>,
    /// Whether the host's network is there.
    pub network: bool,
    /// Whether the host's /tmp is there.
    pub share_tmp: bool,
}

impl Plan {
    /// Resolves a policy.
    ///
    /// # Errors
    /// When it cannot be enforced: a root is missing or is `/`, or a protected name is a symbolic link, which could be
    /// turned to something else.
    pub fn of(policy: &SandboxPolicy) -> Result<Self, SpawnFailure> {
        let bounded = policy.mode != SandboxMode::DangerFullAccess;
        let mut plan = Self {
            bounded,
            roots: Vec::new(),
            visible: Vec::new(),
            protected: Vec::new(),
            missing: Vec::new(),
            denied_dirs: Vec::new(),
            denied_files: Vec::new(),
            network: policy.network,
            share_tmp: policy.share_tmp,
        };
        if !bounded {
            return Ok(plan);
        }
        if policy.mode == SandboxMode::WorkspaceWrite {
            for root in &policy.roots {
                plan.root(root)?;
            }
        }
        if policy.mode == SandboxMode::ReadOnly {
            let hidden = |path: &PathBuf| {
                ["/tmp", "/var/tmp"]
                    .iter()
                    .any(|tmp| path.starts_with(tmp) && path != Path::new(tmp))
            };
            plan.visible = policy
                .roots
                .iter()
                .filter_map(|root| root.canonicalize().ok())
                .filter(hidden)
                .collect();
        }
        // An outer tree is mounted before what lies inside it.
        plan.roots.sort();
        plan.roots.dedup();
        for root in plan.roots.clone() {
            for name in &policy.protected {
                plan.protect(&root, name)?;
            }
        }
        plan.protected.sort();
        plan.protected.dedup();
        plan.deny(&policy.deny_read);
        Ok(plan)
    }

    fn root(&mut self, root: &Path) -> Result<(), SpawnFailure> {
        let canonical = root.canonicalize().map_err(|error| {
            boundary(
                "writable roots",
                format!("{}: {error}", root.display()),
                "create it, or leave it out",
            )
        })?;
        if canonical == Path::new("/") {
            return Err(boundary(
                "writable roots",
                "the whole file system cannot be a writable root".to_owned(),
                "work in a project directory",
            ));
        }
        self.roots.push(canonical);
        Ok(())
    }

    fn protect(&mut self, root: &Path, name: &str) -> Result<(), SpawnFailure> {
        let path = root.join(name);
        match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => Err(boundary(
                "protected names",
                format!(
                    "{} is a symbolic link, which a command could turn elsewhere",
                    path.display()
                ),
                "replace the link by what it points to, or use --sandbox read-only",
            )),
            Ok(meta) => {
                if name == ".git" && meta.is_file() {
                    self.protect_git_dir(root, &path);
                }
                self.protected.push(path);
                Ok(())
            }
            // Inside a repository an empty .git would only confuse git; the repository's own is at its root.
            Err(_)
                if name == ".git"
                    && root
                        .ancestors()
                        .skip(1)
                        .any(|folder| folder.join(".git").exists()) =>
            {
                Ok(())
            }
            Err(_) => {
                self.missing.push(path);
                Ok(())
            }
        }
    }

    /// The directory that a linked worktree's or submodule's `.git` file names.
    fn protect_git_dir(&mut self, root: &Path, file: &Path) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let Some(target) = text.strip_prefix("gitdir:").map(str::trim) else {
            return;
        };
        if let Ok(target) = root.join(target).canonicalize()
            && self.roots.iter().any(|root| target.starts_with(root))
        {
            self.protected.push(target);
        }
    }

    fn deny(&mut self, paths: &[PathBuf]) {
        let mut canonical: Vec<PathBuf> = paths
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        canonical.sort();
        canonical.dedup();
        for path in canonical {
            if self.denied_dirs.iter().any(|dir| path.starts_with(dir)) {
                continue;
            }
            if path.is_dir() {
                self.denied_dirs.push(path);
            } else {
                self.denied_files.push(path);
            }
        }
    }
}

/// A layer that is missing.
pub fn boundary(layer: &str, reason: impl Into<String>, hint: &str) -> SpawnFailure {
    SpawnFailure::Boundary {
        layer: layer.to_owned(),
        reason: reason.into(),
        hint: hint.to_owned(),
    }
}
