use super::*;
use crate::LoadOptions;

fn config(text: &str) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().expect("a temp directory can be made");
    std::fs::write(folder.path().join("config.toml"), text).expect("a file can be written");
    let loaded = Config::load(&LoadOptions {
        home: folder.path().to_path_buf(),
        cwd: folder.path().to_path_buf(),
        profile: None,
        overrides: Vec::new(),
        strict: true,
    });
    (folder, loaded.expect("it is right").config)
}

fn var(name: &str) -> Option<String> {
    match name {
        "OPENAI_API_KEY" => Some(" sk-open\n".to_owned()),
        "CODEX_API_KEY" => Some("sk-codex".to_owned()),
        "X_KEY" => Some("sk-x".to_owned()),
        "X_ACCOUNT" => Some("acc-1".to_owned()),
        "EMPTY" => Some("  ".to_owned()),
        _ => None,
    }
}

#[test]
fn every_key_that_is_held_is_a_held_secret_once() {
    let (_folder, config) = config(
        "[model_providers.x]\nenv_key = \"X_KEY\"\nexperimental_bearer_token = \"sk-bearer\"\n\
         http_headers = { Authorization = \"Bearer sk-header\", \"X-Title\" = \"plain\", \"Api-Key\" = \"sk-x\" }\n\
         env_http_headers = { \"X-Account\" = \"X_ACCOUNT\", \"X-None\" = \"EMPTY\" }\n\
         query_params = { \"api-version\" = \"v1\", token = \"sk-query\" }\n",
    );
    let expected = [
        "acc-1",
        "sk-bearer",
        "sk-codex",
        "sk-header",
        "sk-open",
        "sk-query",
        "sk-x",
    ];
    assert_eq!(config.held_secrets(&var), expected);
}

#[test]
fn headers_query_and_key_come_from_file_and_environment() {
    let (_folder, config) = config(
        "[model_providers.x]\nbase_url = \"https://h/v1/\"\nenv_key = \"X_KEY\"\n\
         http_headers = { \"X-Title\" = \"plain\" }\n\
         env_http_headers = { \"X-Account\" = \"X_ACCOUNT\", \"X-None\" = \"EMPTY\" }\n\
         query_params = { \"api-version\" = \"v1\" }\n",
    );
    let http = config.http("x", None, &var).expect("complete");
    let headers: Vec<(&str, &str)> = http
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(http.base_url, "https://h/v1");
    assert_eq!(headers, [("X-Title", "plain"), ("X-Account", "acc-1")]);
    assert_eq!(http.query, [("api-version".to_owned(), "v1".to_owned())]);
    assert_eq!(http.key.as_ref().map(Secret::expose), Some("sk-x"));
    assert_eq!(
        http.key_hint.as_deref(),
        Some("the environment variable X_KEY")
    );
}

#[test]
fn openais_address_has_its_own_key_and_its_key_two_variables() {
    let (_folder, config) = config("openai_base_url = \"http://127.0.0.1:1/v1\"\n");
    let openai = catalogue::provider("openai");
    let http = config.http("openai", openai, &var).expect("complete");
    assert_eq!(http.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(http.key.as_ref().map(Secret::expose), Some("sk-open"));
    let second = |name: &str| var(name).filter(|_| name != "OPENAI_API_KEY");
    let http = config.http("openai", openai, &second).expect("complete");
    assert_eq!(http.key.as_ref().map(Secret::expose), Some("sk-codex"));
    let other = catalogue::provider("ollama");
    let http = config.http("ollama", other, &var).expect("complete");
    assert_ne!(http.base_url, "http://127.0.0.1:1/v1");
}

#[test]
fn a_complaint_never_shows_the_key() {
    let (_folder, config) = config("");
    let broken = |_: &str| Some("sk-canary\nsk-canary".to_owned());
    let error = config
        .http("openai", catalogue::provider("openai"), &broken)
        .expect_err("a line end cannot be sent");
    assert!(!error.to_string().contains("canary"), "{error}");
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}
