//! Complaints about configuration: where, what, and what would be right.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file, with line and column from 1.
    File {
        /// The file.
        path: PathBuf,
        /// Line and column; `None` for the file as a whole.
        at: Option<(usize, usize)>,
    },
    /// An override of the command line, as given but for secrets.
    Flag(String),
    /// Another argument of the command line, or a variable of the environment, as a person would name it.
    Argument(String),
    /// Built in.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                path,
                at: Some((line, column)),
            } => write!(f, "{}:{line}:{column}", path.display()),
            Self::File { path, at: None } => write!(f, "{}", path.display()),
            Self::Flag(text) => write!(f, "-c {text}"),
            Self::Argument(text) => f.write_str(text),
            Self::Default => f.write_str("built-in default"),
        }
    }
}

/// Configuration that cannot be used. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Where; `None` when nothing in particular is wrong but something is missing.
    pub origin: Option<Origin>,
    /// What. Lower case, no full stop.
    pub message: String,
    /// What would be right, or what to do.
    pub hint: Option<String>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl ConfigError {
    /// A complaint about a value.
    #[must_use]
    pub fn at(origin: &Origin, message: impl Into<String>) -> Self {
        Self {
            origin: Some(origin.clone()),
            message: message.into(),
            hint: None,
        }
    }

    /// A complaint about something that is missing.
    #[must_use]
    pub fn missing(message: impl Into<String>) -> Self {
        Self {
            origin: None,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The known word that looks most like `word`, if one does.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"?`, when there is such an x.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean \"{candidate}\"?"))
}
