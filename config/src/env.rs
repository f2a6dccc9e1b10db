//! Which environment variables a tool's process gets. Pure.
//!
//! Names that look like secrets, values that are secrets, and variables that change what other programs run never
//! pass, whatever is inherited; only the user's own `set` may name them.

use interpreter_messages::policy::{EnvInherit, EnvPolicy};

/// Parts of names that hold secrets (case is ignored).
const SECRET_PARTS: [&str; 8] = [
    "KEY",
    "SECRET",
    "TOKEN",
    "PASS",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "PRIVATE",
];

/// Names that make other programs run or load something, or lead to a session of the user.
const DANGEROUS: [&str; 24] = [
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "DOCKER_HOST",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "EDITOR",
    "VISUAL",
];

/// Prefixes of such names.
const DANGEROUS_PREFIXES: [&str; 8] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "SSH_",
    "DBUS_",
    "BASH_FUNC_",
    "INTERPRETER_",
    "CODEX_",
];

/// Exceptions to the prefixes.
const HARMLESS: [&str; 6] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// The list of `inherit = "core"`, and where nothing was chosen: who and where the user is, the terminal, and where
/// toolchains live (list of the sandbox's design).
const CORE: [&str; 31] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "COLUMNS",
    "LINES",
    "PWD",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "JAVA_HOME",
    "NODE_PATH",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "CI",
];

/// Prefixes of more such names.
const CORE_PREFIXES: [&str; 3] = ["LC_", "NVM_", "PYENV_"];

/// Where to find a proxy, in any case; passed only without credentials.
const PROXIES: [&str; 5] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// The variables that a command sees, sorted by name.
///
/// Secrets shorter than six characters are not looked for inside other values: they would match by accident.
pub fn clean(
    policy: &EnvPolicy,
    vars: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = vars
        .into_iter()
        .filter(|(name, value)| passes(policy, name, value))
        .collect();
    for (name, value) in &policy.set {
        kept.retain(|(other, _)| other != name);
        kept.push((name.clone(), value.clone()));
    }
    kept.sort();
    kept.dedup_by(|a, b| a.0 == b.0);
    kept
}

fn passes(policy: &EnvPolicy, name: &str, value: &str) -> bool {
    let inherited = match policy.inherit {
        EnvInherit::All => true,
        EnvInherit::Core => is_core(name),
        EnvInherit::None => false,
    };
    let listed = policy.include_only.is_empty()
        || policy
            .include_only
            .iter()
            .any(|pattern| fits(pattern, name));
    inherited
        && listed
        && is_plain(name)
        && !policy.exclude.iter().any(|pattern| fits(pattern, name))
        && !is_secret_name(name)
        && !is_dangerous(name)
        && !holds_secret(policy, value)
        && !holds_credentials(value)
        && !(is_proxy(name) && value.contains('@'))
}

fn is_core(name: &str) -> bool {
    CORE.contains(&name)
        || CORE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_proxy(name)
}

fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name))
}

/// What every program can read: other names (with `=`, spaces, `()`) are tricks or accidents.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether such a name usually holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    !HARMLESS.contains(&name.as_str()) && SECRET_PARTS.iter().any(|part| name.contains(part))
}

fn is_dangerous(name: &str) -> bool {
    let prefixed = DANGEROUS_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix));
    DANGEROUS.contains(&name) || (prefixed && !HARMLESS.contains(&name))
}

fn holds_secret(policy: &EnvPolicy, value: &str) -> bool {
    policy.secrets.iter().any(|secret| {
        secret.0.len() >= 6 && value.contains(&secret.0)
            || !secret.0.is_empty() && secret.0 == value
    })
}

/// A URL with a password, such as a package index's, anywhere in the value.
fn holds_credentials(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let ends = |c: char| c.is_whitespace() || "/?#".contains(c);
        let authority = rest.split(ends).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

/// `*` stands for any run of characters; case is ignored.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_uppercase(), name.to_ascii_uppercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else {
                return false;
            };
            rest = &rest[at + before.len()..];
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests;
