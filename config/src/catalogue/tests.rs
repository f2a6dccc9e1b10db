use std::collections::HashSet;

use super::*;

#[test]
fn ids_are_unique_and_addresses_can_be_called() {
    let mut ids = HashSet::new();
    for provider in providers() {
        assert!(ids.insert(&provider.id), "{} twice", provider.id);
        let url = &provider.base_url;
        assert!(
            url.starts_with("https://") || url.starts_with("http://localhost:"),
            "{url}"
        );
        assert!(!url.ends_with('/'), "{url}");
        assert_ne!(
            provider.env_keys.is_empty(),
            provider.local.is_none(),
            "{}: a key, or how to start it",
            provider.id
        );
        let mut models = HashSet::new();
        for model in &provider.models {
            assert!(models.insert(&model.id), "{} twice", model.id);
            assert!(!model.thinking_toggle || model.reasoning, "{}", model.id);
            assert!(!model.echo_reasoning || model.reasoning, "{}", model.id);
        }
        assert!(!models.is_empty(), "{} has no default model", provider.id);
    }
    for id in [
        "openai",
        "moonshotai",
        "kimi-for-coding",
        "deepseek",
        "ollama",
        "lmstudio",
    ] {
        assert!(provider(id).is_some(), "{id}");
    }
}

#[test]
fn thinking_models_get_their_reasoning_back() {
    let model = |provider_id: &str, id: &str| {
        let models = &provider(provider_id).expect("a known provider").models;
        models
            .iter()
            .find(|model| model.id == id)
            .expect("a known model")
    };
    for (provider, id) in [
        ("moonshotai", "kimi-k3"),
        ("moonshotai", "kimi-k2-thinking"),
        ("kimi-for-coding", "k3"),
        ("deepseek", "deepseek-reasoner"),
        ("alibaba-cn", "kimi-k2-thinking"),
    ] {
        assert!(model(provider, id).echo_reasoning, "{provider}/{id}");
    }
    assert!(!model("deepseek", "deepseek-chat").echo_reasoning);
    assert_eq!(
        model("moonshotai", "kimi-k2-0711-preview").context_window,
        Some(131_072)
    );
}
