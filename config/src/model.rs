//! Which model is asked, at which provider, and what is known of both. How it is reached: `transport.rs`. Pure.

use std::sync::Arc;
use std::time::Duration;

use interpreter_messages::model::{
    Endpoint, ModelChoice, ModelProfile, Prices, Transport, WireApi,
};

use crate::catalogue::{self, Provider};
use crate::error::{Origin, did_you_mean};
use crate::{Config, ConfigError};

/// Retries of a request before any output (default of the original).
const REQUEST_MAX_RETRIES: u64 = 4;
/// Re-asks of a broken stream (default of the original).
const STREAM_MAX_RETRIES: u64 = 5;
/// More retries than this are a mistake (bound of the original).
const RETRY_CAP: u64 = 100;
/// Longest silence in a stream, in milliseconds (default of the original).
const IDLE_MS: u64 = 300_000;
/// Asked, in this order, when the user chose nothing and a key is there.
const FIRST_CHOICES: [&str; 4] = ["openai", "moonshotai", "kimi-for-coding", "deepseek"];
/// The id of the provider that plays a recording.
pub const REPLAY: &str = "replay";

impl Config {
    /// The model and its endpoint. `var` reads the environment; `model` is the flag, which wins.
    ///
    /// # Errors
    /// For an unknown provider, a missing key, a provider without address or model, an API that is not supported.
    pub fn choose_model(
        &self,
        model: Option<&str>,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ModelChoice, ConfigError> {
        let wanted = model.map(str::to_owned).or_else(|| self.text("model"));
        let (provider, wanted) = self.provider_of(wanted, var)?;
        let known = catalogue::provider(&provider);
        if known.is_none() && !self.has_provider(&provider) && provider != REPLAY {
            return Err(self.unknown_provider(&provider));
        }
        let profile = self.profile(&provider, known, wanted)?;
        let transport = match self.replay_script(&provider)? {
            Some(script) => Transport::Replay { script },
            None => Transport::Http(self.http(&provider, known, var)?),
        };
        let field = |name: &str| self.field_count(&provider, name);
        let retries = |name: &str, default: u64| {
            u32::try_from(field(name).unwrap_or(default).min(RETRY_CAP)).unwrap_or_default()
        };
        let endpoint = Endpoint {
            request_max_retries: retries("request_max_retries", REQUEST_MAX_RETRIES),
            stream_max_retries: retries("stream_max_retries", STREAM_MAX_RETRIES),
            idle_timeout: Duration::from_millis(
                field("stream_idle_timeout_ms").unwrap_or(IDLE_MS).max(1),
            ),
            provider,
            transport,
        };
        Ok(ModelChoice {
            profile: Arc::new(profile),
            endpoint: Arc::new(endpoint),
        })
    }

    fn provider_of(
        &self,
        wanted: Option<String>,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(String, Option<String>), ConfigError> {
        if let Some(provider) = self.text("model_provider") {
            return Ok((provider, wanted));
        }
        if self.leaf("replay").is_some() {
            return Ok((REPLAY.to_owned(), wanted));
        }
        if let Some(model) = &wanted
            && let Some((prefix, rest)) = model.split_once('/')
            && (catalogue::provider(prefix).is_some() || self.has_provider(prefix))
        {
            return Ok((prefix.to_owned(), Some(rest.to_owned())));
        }
        let held = |provider: &&Provider| {
            provider
                .env_keys
                .iter()
                .any(|key| var(key).is_some_and(|value| !value.is_empty()))
        };
        let choices = || {
            FIRST_CHOICES
                .iter()
                .filter_map(|id| catalogue::provider(id))
        };
        if let Some(model) = &wanted {
            let offers =
                |provider: &&Provider| provider.models.iter().any(|known| known.id == *model);
            let with_key = catalogue::providers().iter().filter(offers).find(held);
            let any = || catalogue::providers().iter().find(offers);
            if let Some(provider) = with_key.or_else(any) {
                return Ok((provider.id.clone(), wanted));
            }
        }
        match choices().find(held).or_else(|| catalogue::providers().iter().find(held)) {
            Some(provider) => Ok((provider.id.clone(), wanted)),
            None => Err(ConfigError::missing("no model is set up").hint(
                "set a key such as MOONSHOT_API_KEY, OPENAI_API_KEY or DEEPSEEK_API_KEY, or use a local server with \
                 `-c model_provider=ollama`; `interpreter demo` needs neither",
            )),
        }
    }

    fn has_provider(&self, id: &str) -> bool {
        self.values
            .keys()
            .any(|path| path.len() > 2 && path[0] == "model_providers" && path[1] == id)
    }

    fn unknown_provider(&self, id: &str) -> ConfigError {
        let mut known: Vec<&str> = catalogue::providers()
            .iter()
            .map(|provider| provider.id.as_str())
            .collect();
        known.extend(
            self.values
                .keys()
                .filter(|path| path[0] == "model_providers")
                .map(|path| path[1].as_str()),
        );
        known.push(REPLAY);
        let mut seen = std::collections::HashSet::new();
        known.retain(|id| seen.insert(*id));
        let origin = self
            .leaf("model_provider")
            .map_or(Origin::Default, |leaf| leaf.origin.clone());
        let near = did_you_mean(id, known.iter().copied())
            .map_or(String::new(), |hint| format!("{hint} "));
        ConfigError::at(&origin, format!("unknown model provider \"{id}\"")).hint(format!(
            "{near}known: {}; or define [model_providers.{id}]",
            known.join(", ")
        ))
    }

    pub(crate) fn field(&self, provider: &str, name: &str) -> Option<&crate::load::Leaf> {
        let path = ["model_providers", provider, name].map(str::to_owned);
        self.values.get(path.as_slice())
    }

    pub(crate) fn field_text(&self, provider: &str, name: &str) -> Option<String> {
        self.field(provider, name)?
            .value
            .as_str()
            .map(str::to_owned)
    }

    fn field_bool(&self, provider: &str, name: &str) -> Option<bool> {
        self.field(provider, name)?.value.as_bool()
    }

    fn field_count(&self, provider: &str, name: &str) -> Option<u64> {
        self.field(provider, name)?
            .value
            .as_integer()?
            .try_into()
            .ok()
    }

    /// Where a field was set; the built-in default where it was not.
    pub(crate) fn field_origin(&self, provider: &str, name: &str) -> Origin {
        self.field(provider, name)
            .map_or(Origin::Default, |leaf| leaf.origin.clone())
    }

    /// Name, text and origin of each entry of a table of texts.
    pub(crate) fn field_map<'a>(
        &'a self,
        provider: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a Origin)> {
        self.values.iter().filter_map(move |(path, leaf)| {
            let [table, id, field, key] = path.as_slice() else {
                return None;
            };
            let inside = table == "model_providers" && id == provider && field == name;
            let text = leaf.value.as_str().filter(|_| inside)?;
            Some((key.as_str(), text, &leaf.origin))
        })
    }

    fn profile(
        &self,
        provider: &str,
        known: Option<&Provider>,
        wanted: Option<String>,
    ) -> Result<ModelProfile, ConfigError> {
        let default = || {
            self.field_text(provider, "default_model")
                .or_else(|| known?.models.first().map(|model| model.id.clone()))
                .or_else(|| (self.is_replay(provider)).then(|| "recording".to_owned()))
        };
        let Some(id) = wanted.or_else(default) else {
            return Err(ConfigError::missing(format!(
                "no model is chosen for provider \"{provider}\""
            ))
            .hint("use -m MODEL, or set model in config.toml"));
        };
        let model = known
            .and_then(|known| known.models.iter().find(|model| model.id == id).cloned())
            .unwrap_or_default();
        let wire = match self.field_text(provider, "wire_api").as_deref() {
            None | Some("chat") => WireApi::Chat,
            Some(other) => {
                let origin = self.field_origin(provider, "wire_api");
                return Err(ConfigError::at(
                    &origin,
                    format!("wire_api \"{other}\" is not supported yet"),
                )
                .hint("use \"chat\" if the provider offers chat completions"));
            }
        };
        let name = self
            .field_text(provider, "name")
            .or_else(|| known.map(|known| known.name.clone()));
        Ok(ModelProfile {
            id,
            provider: provider.to_owned(),
            provider_name: name.unwrap_or_else(|| provider.to_owned()),
            wire,
            context_window: self
                .count("model_context_window")
                .or_else(|| self.field_count(provider, "context_window"))
                .or(model.context_window),
            vision: self.field_bool(provider, "vision").unwrap_or(model.vision),
            reasoning: model.reasoning,
            thinking_toggle: model.thinking_toggle,
            effort: self.text("model_reasoning_effort"),
            echo_reasoning: self
                .field_bool(provider, "echo_reasoning")
                .unwrap_or(model.echo_reasoning),
            prices: self.prices(provider).or(model.prices),
        })
    }

    fn prices(&self, provider: &str) -> Option<Prices> {
        let price = |name: &str| {
            let path = ["model_providers", provider, "prices", name].map(str::to_owned);
            let value = &self.values.get(path.as_slice())?.value;
            #[expect(clippy::cast_precision_loss, reason = "a price is a small number")]
            value
                .as_float()
                .or_else(|| value.as_integer().map(|whole| whole as f64))
        };
        let (input, output) = (price("input")?, price("output")?);
        Some(Prices {
            input,
            cached: price("cached").unwrap_or(input),
            output,
        })
    }
}
