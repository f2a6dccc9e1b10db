//! The sandbox policy that configuration and flags add up to. Looks at directories; makes and changes nothing.

use std::path::{Path, PathBuf};

use interpreter_messages::policy::{
    EnvInherit, EnvPolicy, SandboxMode, SandboxPolicy, SecretValue,
};

use crate::error::Origin;
use crate::{Config, ConfigError};

/// Names at the top of each writable root that stay read-only, also when missing.
const PROTECTED: [&str; 4] = [".git", ".agents", ".codex", ".openinterpreter"];

/// Below the user's home: credentials and what gives away what was typed. Those that exist cannot be read.
const DENIED: [&str; 26] = [
    ".ssh",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".gnupg",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    ".config/op",
];

/// Below our own home: nothing there is a tool's business. These are denied before they exist, since a session makes its
/// own file after its policy was computed.
const OWN: [&str; 7] = [
    "auth.json",
    "credentials",
    "sessions",
    "archived_sessions",
    "log",
    "history.jsonl",
    "config.toml",
];

/// What flags say about the policy.
#[derive(Debug, Clone, Default)]
pub struct PolicyOptions {
    /// `--sandbox`; wins over the configuration.
    pub mode: Option<SandboxMode>,
    /// `--add-dir`
    pub add_dirs: Vec<PathBuf>,
    /// The user's home directory.
    pub user_home: Option<PathBuf>,
    /// Values that must not reach a command.
    pub secrets: Vec<String>,
}

impl Config {
    /// The policy for commands and file tools of a session.
    ///
    /// # Errors
    /// When the working directory or a writable root does not exist or is no directory.
    pub fn sandbox_policy(&self, options: &PolicyOptions) -> Result<SandboxPolicy, ConfigError> {
        let mode = options.mode.unwrap_or_else(|| self.sandbox_mode());
        let mut roots = Vec::new();
        if mode != SandboxMode::DangerFullAccess {
            // Not writable in `read-only`; named there so that a private /tmp does not hide it.
            let cwd = directory(&self.cwd).map_err(|reason| unusable(&self.cwd, &reason, None))?;
            push(&mut roots, cwd);
        }
        if mode == SandboxMode::WorkspaceWrite {
            for (root, origin) in self.configured_roots() {
                let root =
                    directory(&root).map_err(|reason| unusable(&root, &reason, Some(&origin)))?;
                push(&mut roots, root);
            }
            for root in &options.add_dirs {
                let given = Origin::Argument(format!("--add-dir {}", root.display()));
                let root = self.cwd.join(root);
                let root =
                    directory(&root).map_err(|reason| unusable(&root, &reason, Some(&given)))?;
                push(&mut roots, root);
            }
        }
        let share_tmp = self
            .flag("sandbox_workspace_write.share_tmp")
            .unwrap_or(false);
        let network = self
            .flag("sandbox_workspace_write.network_access")
            .unwrap_or(false);
        Ok(SandboxPolicy {
            mode,
            roots,
            protected: PROTECTED.map(str::to_owned).to_vec(),
            deny_read: if mode == SandboxMode::DangerFullAccess {
                Vec::new()
            } else {
                self.denied(options)
            },
            network: match mode {
                SandboxMode::ReadOnly => false,
                SandboxMode::WorkspaceWrite => network,
                SandboxMode::DangerFullAccess => true,
            },
            share_tmp,
            env: self.env_policy(&options.secrets),
        })
    }

    fn configured_roots(&self) -> Vec<(PathBuf, Origin)> {
        let Some(leaf) = self.leaf("sandbox_workspace_write.writable_roots") else {
            return Vec::new();
        };
        let items = leaf.value.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some((self.path(item.as_str()?, &leaf.origin), leaf.origin.clone())))
            .collect()
    }

    /// Canonical paths that cannot be read: those of the user that exist, and all of ours.
    fn denied(&self, options: &PolicyOptions) -> Vec<PathBuf> {
        let user = options
            .user_home
            .iter()
            .flat_map(|home| DENIED.iter().map(move |name| home.join(name)))
            .filter_map(|path| path.canonicalize().ok());
        let home = self
            .home
            .canonicalize()
            .unwrap_or_else(|_| self.home.clone());
        let profiles = crate::load::profile_files(&self.home);
        let own = OWN.iter().map(|name| home.join(name)).chain(profiles);
        // A link is followed, so that what it leads to is denied; what does not exist yet is denied by its name.
        let own = own.map(|path| path.canonicalize().unwrap_or(path));
        let mut denied: Vec<PathBuf> = user.chain(own).collect();
        denied.sort();
        denied.dedup();
        denied
    }

    fn env_policy(&self, secrets: &[String]) -> EnvPolicy {
        let table = |name: &str| {
            self.list(&format!("shell_environment_policy.{name}"))
                .unwrap_or_default()
        };
        let set = self
            .values
            .iter()
            .filter(|(path, _)| {
                path.len() == 3 && path[0] == "shell_environment_policy" && path[1] == "set"
            })
            .filter_map(|(path, leaf)| Some((path[2].clone(), leaf.value.as_str()?.to_owned())))
            .collect();
        EnvPolicy {
            inherit: match self.text("shell_environment_policy.inherit").as_deref() {
                Some("all") => EnvInherit::All,
                Some("none") => EnvInherit::None,
                // The original inherits everything; a list is the safer start, and the user can say "all".
                _ => EnvInherit::Core,
            },
            exclude: table("exclude"),
            include_only: table("include_only"),
            set,
            secrets: secrets.iter().cloned().map(SecretValue).collect(),
        }
    }
}

fn push(roots: &mut Vec<PathBuf>, root: PathBuf) {
    if !roots.contains(&root) {
        roots.push(root);
    }
}

/// The canonical path of a directory, or why it is none.
fn directory(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err("it is not a directory".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn unusable(path: &Path, reason: &str, origin: Option<&Origin>) -> ConfigError {
    let message = format!("the directory {} cannot be used: {reason}", path.display());
    match origin {
        Some(origin) => {
            ConfigError::at(origin, message).hint("create the directory, or leave it out")
        }
        None => ConfigError::missing(message).hint("start in a directory that exists"),
    }
}

#[cfg(test)]
mod tests;
