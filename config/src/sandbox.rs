//! The sandbox policy that configuration and flags add up to.

use std::path::{Path, PathBuf};

use interpreter_messages::policy::{
    EnvInherit, EnvPolicy, SandboxMode, SandboxPolicy, SecretValue,
};

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

/// Below our own home: nothing there is a tool's business.
const OWN: [&str; 6] = [
    "auth.json",
    "credentials",
    "sessions",
    "archived_sessions",
    "log",
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
    /// When a writable root does not exist or is no directory.
    pub fn sandbox_policy(&self, options: &PolicyOptions) -> Result<SandboxPolicy, ConfigError> {
        let mode = options.mode.unwrap_or_else(|| self.sandbox_mode());
        let mut roots = Vec::new();
        if mode == SandboxMode::ReadOnly {
            // Not writable; named so that a private /tmp does not hide it.
            push(&mut roots, directory(&self.cwd, "the working directory")?);
        }
        if mode == SandboxMode::WorkspaceWrite {
            push(&mut roots, directory(&self.cwd, "the working directory")?);
            for root in self.configured_roots() {
                push(&mut roots, directory(&root, "writable root")?);
            }
            for root in &options.add_dirs {
                push(&mut roots, directory(&self.cwd.join(root), "--add-dir")?);
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

    fn configured_roots(&self) -> Vec<PathBuf> {
        let Some(leaf) = self.leaf("sandbox_workspace_write.writable_roots") else {
            return Vec::new();
        };
        let one = |text: &str| {
            let value = toml_edit::Value::from(text);
            self.path(&crate::load::Leaf {
                value,
                origin: leaf.origin.clone(),
            })
        };
        leaf.value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| one(item.as_str()?))
            .collect()
    }

    fn denied(&self, options: &PolicyOptions) -> Vec<PathBuf> {
        let user = options
            .user_home
            .iter()
            .flat_map(|home| DENIED.iter().map(move |name| home.join(name)));
        let own = OWN.iter().map(|name| self.home.join(name));
        let mut denied: Vec<PathBuf> = user
            .chain(own)
            .filter_map(|path| path.canonicalize().ok())
            .collect();
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
                Some("core") => EnvInherit::Core,
                Some("none") => EnvInherit::None,
                _ => EnvInherit::All,
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

fn directory(path: &Path, what: &str) -> Result<PathBuf, ConfigError> {
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(ConfigError::missing(format!(
            "{what} {} is not a directory",
            path.display()
        ))),
        Err(error) => Err(ConfigError::missing(format!(
            "{what} {} cannot be used: {error}",
            path.display()
        ))),
    }
}
