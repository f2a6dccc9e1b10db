//! The sandbox policy and the approval policy: plain data that configuration makes and the boundary enforces.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `sandbox_mode` (names as in Codex).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Reads, and writes only to a private temp directory.
    ReadOnly,
    /// Writes below the workspace roots too.
    WorkspaceWrite,
    /// No boundary; environment scrub, process group and limits stay.
    DangerFullAccess,
}

impl SandboxMode {
    /// The configuration's name of the mode.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

/// What a command or file operation may touch. Paths are absolute; they are resolved when the plan is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// The mode.
    pub mode: SandboxMode,
    /// Workspace roots; the first is the working directory. Writable but in `read-only`, where they are only kept visible.
    pub roots: Vec<PathBuf>,
    /// Names at the top of each root that stay read-only, also when missing: `.git`, `.agents`, `.codex`, `.openinterpreter`.
    pub protected: Vec<String>,
    /// Paths that cannot be read: credentials, our own auth and session files.
    pub deny_read: Vec<PathBuf>,
    /// Whether the network is reachable. Off gives an empty network with loopback.
    pub network: bool,
    /// Whether the host's /tmp is shared; off gives a private one.
    pub share_tmp: bool,
    /// What of our environment a command sees.
    pub env: EnvPolicy,
}

/// `[shell_environment_policy]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnvPolicy {
    /// How much is inherited.
    pub inherit: EnvInherit,
    /// Dropped names; `*` matches any run of characters, case is ignored.
    pub exclude: Vec<String>,
    /// When not empty: only these names stay.
    pub include_only: Vec<String>,
    /// Set after all else.
    pub set: Vec<(String, String)>,
    /// Values that never pass, under any name: the keys we hold. Not stored anywhere.
    #[serde(skip)]
    pub secrets: Vec<SecretValue>,
}

/// How much of our environment is inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvInherit {
    /// Everything but what looks like a secret or changes what other programs run.
    All,
    /// A short list of harmless names.
    Core,
    /// Nothing.
    None,
}

/// A secret's value, comparable but never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretValue(pub String);

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue(..)")
    }
}

/// `approval_policy` (names as in Codex).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// Every command that is not known to be harmless asks.
    Untrusted,
    /// The sandbox is the boundary; only leaving it asks.
    #[serde(alias = "on-failure")]
    OnRequest,
    /// Nothing asks; what would have to ask is refused.
    Never,
}

impl ApprovalPolicy {
    /// The configuration's name of the policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::OnRequest => "on-request",
            Self::Never => "never",
        }
    }
}

/// What happens to a question when no user interface can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNoUi {
    /// It waits for one (an interactive session).
    Wait,
    /// It is denied, and the model is told so (`exec`).
    Deny,
}
