//! The providers that are known without configuration (`catalogue.toml`).

use std::sync::LazyLock;

use interpreter_messages::model::Prices;
use serde::Deserialize;

/// A provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// As in `model_provider`.
    pub id: String,
    /// For people.
    pub name: String,
    /// Without a trailing slash.
    pub base_url: String,
    /// Environment variables that may hold the key, first one first; none for local servers.
    #[serde(default)]
    pub env_keys: Vec<String>,
    /// For a local server: how to start it.
    #[serde(default)]
    pub local: Option<String>,
    /// Known models; the first is the default.
    #[serde(default, rename = "model")]
    pub models: Vec<Model>,
}

/// A model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// As in `model`.
    pub id: String,
    /// In tokens.
    pub context_window: Option<u64>,
    /// Images may be sent.
    pub vision: bool,
    /// It reasons.
    pub reasoning: bool,
    /// Reasoning is switched by a `thinking` parameter.
    pub thinking_toggle: bool,
    /// Its reasoning must be sent back with tool results.
    pub echo_reasoning: bool,
    /// Per million tokens, where known.
    pub prices: Option<Prices>,
}

#[derive(Deserialize)]
struct File {
    provider: Vec<Provider>,
}

static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("catalogue.toml"))
        .expect("the catalogue is part of the program");
    file.provider
});

/// All known providers, in the order in which they are offered.
#[must_use]
pub fn providers() -> &'static [Provider] {
    &PROVIDERS
}

/// A provider by its id.
#[must_use]
pub fn provider(id: &str) -> Option<&'static Provider> {
    providers().iter().find(|provider| provider.id == id)
}

#[cfg(test)]
mod tests;
