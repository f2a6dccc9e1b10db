//! How a provider is reached: address, key, headers, or a recording; and the secrets that this takes. Pure.

use std::path::PathBuf;

use interpreter_messages::Secret;
use interpreter_messages::model::HttpTransport;

use crate::catalogue::{self, Provider};
use crate::error::Origin;
use crate::model::REPLAY;
use crate::{Config, ConfigError, env};

/// Tables of a provider that another way to sign in needs, with what can be used for now.
const LATER_SIGN_IN: [(&str, &str); 2] = [
    ("auth", "use env_key or experimental_bearer_token"),
    ("aws", "use a provider with a key in env_key"),
];

impl Config {
    /// Values of all keys that this configuration or the environment holds, for the environment rules of tools. Never
    /// empty ones; no value twice.
    #[must_use]
    pub fn held_secrets(&self, var: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let mut held: Vec<String> = catalogue::providers()
            .iter()
            .flat_map(|provider| &provider.env_keys)
            .filter_map(|name| var(name))
            .collect();
        for (path, leaf) in &self.values {
            let [table, _, field, rest @ ..] = path.as_slice() else {
                continue;
            };
            if table != "model_providers" {
                continue;
            }
            let text = leaf.value.as_str().unwrap_or_default();
            let is_secret = rest.first().is_some_and(|name| env::is_secret_name(name));
            match field.as_str() {
                "env_key" | "env_http_headers" => held.extend(var(text)),
                "experimental_bearer_token" => held.push(text.to_owned()),
                "http_headers" | "query_params" if is_secret => {
                    // `Bearer KEY`: a variable may hold the key alone.
                    held.extend(text.split_whitespace().next_back().map(str::to_owned));
                }
                _ => {}
            }
        }
        let mut held: Vec<String> = held
            .iter()
            .map(|secret| secret.trim().to_owned())
            .filter(|secret| !secret.is_empty())
            .collect();
        held.sort();
        held.dedup();
        held
    }

    pub(crate) fn is_replay(&self, provider: &str) -> bool {
        provider == REPLAY || self.field(provider, "replay").is_some()
    }

    /// The recording, if the provider plays one.
    pub(crate) fn replay_script(&self, provider: &str) -> Result<Option<PathBuf>, ConfigError> {
        if !self.is_replay(provider) {
            return Ok(None);
        }
        let leaf = self
            .field(provider, "replay")
            .or_else(|| self.leaf("replay"));
        let named = leaf.and_then(|leaf| Some((leaf.value.as_str()?, &leaf.origin)));
        match named.filter(|(text, _)| !text.is_empty()) {
            Some((text, origin)) => Ok(Some(self.path(text, origin))),
            None => Err(
                ConfigError::missing("the replay provider needs a transcript").hint(
                    "use -c replay=FILE; the format is described in actors/model_stream/REPLAY.md",
                ),
            ),
        }
    }

    /// Address, key and headers of a provider. `var` reads the environment.
    pub(crate) fn http(
        &self,
        provider: &str,
        known: Option<&Provider>,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HttpTransport, ConfigError> {
        self.refuse_later_sign_in(provider)?;
        let base_url = self.base_url(provider, known)?;
        let (key, key_hint) = self.key(provider, known, var)?;
        let query = self.field_map(provider, "query_params");
        Ok(HttpTransport {
            base_url,
            key,
            key_hint: key_hint.or_else(|| known.and_then(|known| known.local.clone())),
            headers: self.headers(provider, var)?,
            query: query
                .map(|(name, value, _)| (name.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    fn refuse_later_sign_in(&self, provider: &str) -> Result<(), ConfigError> {
        for (path, leaf) in &self.values {
            let [table, id, field, name] = path.as_slice() else {
                continue;
            };
            if table != "model_providers" || id != provider {
                continue;
            }
            if let Some((_, hint)) = LATER_SIGN_IN.iter().find(|(later, _)| later == field) {
                let message = format!("{field}.{name} of a provider is not supported yet");
                return Err(ConfigError::at(&leaf.origin, message).hint(*hint));
            }
        }
        Ok(())
    }

    /// The address, without a trailing slash.
    fn base_url(&self, provider: &str, known: Option<&Provider>) -> Result<String, ConfigError> {
        let own = self
            .leaf("openai_base_url")
            .filter(|_| provider == "openai")
            .or_else(|| self.field(provider, "base_url"));
        let (url, origin) = match (own, known) {
            (Some(leaf), _) => (leaf.value.as_str().unwrap_or_default(), &leaf.origin),
            (None, Some(known)) => (known.base_url.as_str(), &Origin::Default),
            (None, None) => {
                let first = self.values.iter().find(|(path, _)| {
                    path[0] == "model_providers" && path.get(1).is_some_and(|id| id == provider)
                });
                let origin = first.map_or(Origin::Default, |(_, leaf)| leaf.origin.clone());
                let message = format!("provider \"{provider}\" has no address");
                return Err(ConfigError::at(&origin, message)
                    .hint(format!("set base_url in [model_providers.{provider}]")));
            }
        };
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
        if !rest
            .is_some_and(|rest| !rest.trim_matches('/').is_empty() && rest.chars().all(is_plain))
        {
            let message = format!("{url:?} is not the address of provider \"{provider}\"");
            return Err(ConfigError::at(origin, message)
                .hint("write it as https://HOST/PATH or http://HOST:PORT/PATH"));
        }
        Ok(url.trim_end_matches('/').to_owned())
    }

    fn headers(
        &self,
        provider: &str,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, Secret)>, ConfigError> {
        let mut headers = Vec::new();
        for (name, value, origin) in self.field_map(provider, "http_headers") {
            headers.push(header(name, value, origin)?);
        }
        for (name, variable, origin) in self.field_map(provider, "env_http_headers") {
            if let Some(value) = var(variable).filter(|value| !value.trim().is_empty()) {
                headers.push(header(name, value.trim(), origin)?);
            }
        }
        Ok(headers)
    }

    /// The key, and where it can be set.
    fn key(
        &self,
        provider: &str,
        known: Option<&Provider>,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Option<Secret>, Option<String>), ConfigError> {
        let token = self.field_text(provider, "experimental_bearer_token");
        if let Some(token) = token.filter(|token| !token.trim().is_empty()) {
            let place = "experimental_bearer_token in config.toml";
            let origin = self.field_origin(provider, "experimental_bearer_token");
            return Ok((Some(sendable(&token, &origin)?), Some(place.to_owned())));
        }
        let names = match self.field_text(provider, "env_key") {
            Some(name) => vec![name],
            None => known
                .map(|known| known.env_keys.clone())
                .unwrap_or_default(),
        };
        let Some(first) = names.first() else {
            return Ok((None, None));
        };
        for name in &names {
            if let Some(value) = var(name).filter(|value| !value.trim().is_empty()) {
                let place = format!("the environment variable {name}");
                let origin = Origin::Argument(place.clone());
                return Ok((Some(sendable(&value, &origin)?), Some(place)));
            }
        }
        let how = self
            .field_text(provider, "env_key_instructions")
            .unwrap_or_else(|| {
                format!("export {first}=..., or use a local server with `-c model_provider=ollama`")
            });
        let message = format!("no key for provider \"{provider}\": {first} is not set");
        Err(match self.field(provider, "env_key") {
            Some(leaf) => ConfigError::at(&leaf.origin, message),
            None => ConfigError::missing(message),
        }
        .hint(how))
    }
}

/// A key without white space around it. It is never part of the complaint.
fn sendable(key: &str, origin: &Origin) -> Result<Secret, ConfigError> {
    let key = key.trim();
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Secret::new(key));
    }
    Err(ConfigError::at(origin, "the key cannot be sent")
        .hint("a key has no spaces, line ends or characters outside ASCII: copy it again"))
}

/// A header as HTTP allows it (RFC 9110 section 5). Its value, which may be a secret, is never part of the complaint.
fn header(name: &str, value: &str, origin: &Origin) -> Result<(String, Secret), ConfigError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(
            ConfigError::at(origin, format!("{name:?} is not the name of a header"))
                .hint("names have letters, digits and \"-\""),
        );
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(ConfigError::at(
            origin,
            format!("the value of header \"{name}\" cannot be sent"),
        )
        .hint("it has a line end or another control character"));
    }
    Ok((name.to_owned(), Secret::new(value)))
}

#[cfg(test)]
mod tests;
