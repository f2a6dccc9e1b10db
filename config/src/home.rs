//! Where our own files live.

use std::path::PathBuf;

use crate::ConfigError;

/// `INTERPRETER_HOME`, which must be a directory, or `~/.openinterpreter`, which need not exist yet.
///
/// # Errors
/// When the variable names something else than a directory, or there is no home directory.
pub fn home(var: impl Fn(&str) -> Option<String>) -> Result<PathBuf, ConfigError> {
    if let Some(set) = var("INTERPRETER_HOME").filter(|set| !set.is_empty()) {
        let path = PathBuf::from(&set);
        return match path.canonicalize() {
            Ok(path) if path.is_dir() => Ok(path),
            Ok(_) => Err(ConfigError::missing(format!(
                "INTERPRETER_HOME={set} is not a directory"
            ))
            .hint("set it to a directory, or unset it")),
            Err(error) => Err(ConfigError::missing(format!(
                "INTERPRETER_HOME={set} cannot be used: {error}"
            ))
            .hint("create the directory, or unset the variable")),
        };
    }
    let user = var("HOME").filter(|home| !home.is_empty());
    let Some(user) = user else {
        return Err(
            ConfigError::missing("there is no home directory").hint("set HOME or INTERPRETER_HOME")
        );
    };
    Ok(PathBuf::from(user).join(".openinterpreter"))
}

#[cfg(test)]
mod tests;
