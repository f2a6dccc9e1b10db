//! When a journal goes to the disk.

/// `journal.sync` of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At the ends of turns, and before anything is changed outside.
    #[default]
    Turn,
    /// After every write.
    Always,
    /// When the system likes; a power cut may cost the last seconds, a crash of the program costs nothing.
    Never,
}

impl SyncPolicy {
    /// The configuration's name of the policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// A value that `journal.sync` cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown journal.sync \"{0}\": expected \"turn\", \"always\" or \"never\"")]
pub struct UnknownSyncPolicy(String);

impl std::str::FromStr for SyncPolicy {
    type Err = UnknownSyncPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Turn, Self::Always, Self::Never]
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| UnknownSyncPolicy(text.to_owned()))
    }
}
