//! The keys that exist, with what each takes. A segment `*` stands for any name.

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// true or false.
    Bool,
    /// A whole number from 0.
    Count,
    /// A number from 0.
    Number,
    /// A list of texts.
    List,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// For "expected …".
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Text => "a text in quotes".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Count => "a whole number from 0".to_owned(),
            Self::Number => "a number from 0".to_owned(),
            Self::List => "a list of texts, such as [\"a\", \"b\"]".to_owned(),
            Self::Word(words) => format!(
                "one of {}",
                words
                    .iter()
                    .map(|word| format!("\"{word}\""))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }
}

/// Sandbox modes.
pub const SANDBOX_MODES: &[&str] = &["read-only", "workspace-write", "danger-full-access"];
/// Approval policies; `on-failure` is an old name of `on-request`.
pub const APPROVAL_POLICIES: &[&str] = &["untrusted", "on-request", "never", "on-failure"];
/// Wire APIs.
pub const WIRES: &[&str] = &["chat", "responses", "messages"];

/// Every key that means something to this program.
pub const KEYS: &[(&str, Kind)] = &[
    ("model", Kind::Text),
    ("model_provider", Kind::Text),
    ("harness", Kind::Text),
    ("model_reasoning_effort", Kind::Text),
    ("model_context_window", Kind::Count),
    ("approval_policy", Kind::Word(APPROVAL_POLICIES)),
    ("sandbox_mode", Kind::Word(SANDBOX_MODES)),
    ("openai_base_url", Kind::Text),
    ("replay", Kind::Text),
    ("max_requests_per_turn", Kind::Count),
    ("project_doc_max_bytes", Kind::Count),
    ("project_doc_fallback_filenames", Kind::List),
    ("project_root_markers", Kind::List),
    ("sandbox_workspace_write.writable_roots", Kind::List),
    ("sandbox_workspace_write.network_access", Kind::Bool),
    ("sandbox_workspace_write.exclude_tmpdir_env_var", Kind::Bool),
    ("sandbox_workspace_write.exclude_slash_tmp", Kind::Bool),
    ("sandbox_workspace_write.share_tmp", Kind::Bool),
    (
        "shell_environment_policy.inherit",
        Kind::Word(&["all", "core", "none"]),
    ),
    (
        "shell_environment_policy.ignore_default_excludes",
        Kind::Bool,
    ),
    (
        "shell_environment_policy.experimental_use_profile",
        Kind::Bool,
    ),
    ("shell_environment_policy.exclude", Kind::List),
    ("shell_environment_policy.include_only", Kind::List),
    ("shell_environment_policy.set.*", Kind::Text),
    ("journal.sync", Kind::Word(&["turn", "always", "never"])),
    ("approvals.timeout_s", Kind::Count),
    (
        "projects.*.trust_level",
        Kind::Word(&["trusted", "untrusted"]),
    ),
    ("model_providers.*.name", Kind::Text),
    ("model_providers.*.base_url", Kind::Text),
    ("model_providers.*.env_key", Kind::Text),
    ("model_providers.*.env_key_instructions", Kind::Text),
    ("model_providers.*.experimental_bearer_token", Kind::Text),
    ("model_providers.*.wire_api", Kind::Word(WIRES)),
    ("model_providers.*.query_params.*", Kind::Text),
    ("model_providers.*.http_headers.*", Kind::Text),
    ("model_providers.*.env_http_headers.*", Kind::Text),
    ("model_providers.*.request_max_retries", Kind::Count),
    ("model_providers.*.stream_max_retries", Kind::Count),
    ("model_providers.*.stream_idle_timeout_ms", Kind::Count),
    (
        "model_providers.*.websocket_connect_timeout_ms",
        Kind::Count,
    ),
    ("model_providers.*.requires_openai_auth", Kind::Bool),
    ("model_providers.*.supports_websockets", Kind::Bool),
    (
        "model_providers.*.supports_standalone_web_search",
        Kind::Bool,
    ),
    ("model_providers.*.auth.command", Kind::Text),
    ("model_providers.*.auth.args", Kind::List),
    ("model_providers.*.auth.timeout_ms", Kind::Count),
    ("model_providers.*.auth.refresh_interval_ms", Kind::Count),
    ("model_providers.*.auth.cwd", Kind::Text),
    ("model_providers.*.aws.profile", Kind::Text),
    ("model_providers.*.aws.region", Kind::Text),
    ("model_providers.*.replay", Kind::Text),
    ("model_providers.*.vision", Kind::Bool),
    ("model_providers.*.echo_reasoning", Kind::Bool),
    ("model_providers.*.context_window", Kind::Count),
    ("model_providers.*.default_model", Kind::Text),
    ("model_providers.*.prices.input", Kind::Number),
    ("model_providers.*.prices.cached", Kind::Number),
    ("model_providers.*.prices.output", Kind::Number),
];

/// Keys of Codex and of later versions: accepted, whatever is below them, and without effect here. Those of a table of
/// ours are written with a dot.
pub const LATER: &[&str] = &[
    "agents",
    "allow_login_shell",
    "analytics",
    "apps_mcp_product_sku",
    "approvals_reviewer",
    "background_terminal_max_timeout",
    "chatgpt_base_url",
    "check_for_update_on_startup",
    "cli_auth_credentials_store",
    "compact_prompt",
    "default_permissions",
    "developer_instructions",
    "disable_paste_burst",
    "experimental_compact_prompt_file",
    "features",
    "feedback",
    "file_opener",
    "forced_login_method",
    "ghost_snapshot",
    "goals",
    "harness_guidance",
    "harnesses",
    "hide_agent_reasoning",
    "history",
    "hooks",
    "include_apps_instructions",
    "include_collaboration_mode_instructions",
    "include_environment_context",
    "include_permissions_instructions",
    "instructions",
    "log_dir",
    "marketplaces",
    "mcp_oauth_callback_port",
    "mcp_oauth_callback_url",
    "mcp_oauth_credentials_store",
    "mcp_servers",
    "memories",
    "model_auto_compact_token_limit",
    "model_auto_compact_token_limit_scope",
    "model_catalog_json",
    "model_instructions_file",
    "model_reasoning_summary",
    "model_verbosity",
    "notice",
    "notify",
    "orchestrator",
    "oss_provider",
    "otel",
    "permissions",
    "personality",
    "plan_mode_reasoning_effort",
    "plugins",
    "responses_api_metadata",
    "review_model",
    "service_tier",
    "shell_environment_policy.filters",
    "show_raw_agent_reasoning",
    "skills",
    "sqlite_home",
    "suppress_unstable_features_warning",
    "tool_output_token_limit",
    "tool_suggest",
    "tools",
    "tui",
    "web_search",
    "windows",
];

/// Keys that a project's own configuration may not set: they choose whom we talk to, or widen what may be done.
pub const NOT_FOR_PROJECTS: &[&str] = &[
    "openai_base_url",
    "chatgpt_base_url",
    "model_provider",
    "model_providers",
    "notify",
    "profile",
    "profiles",
    "otel",
    "responses_api_metadata",
    "apps_mcp_product_sku",
    "projects",
    "replay",
    "approval_policy",
    "sandbox_mode",
    "sandbox_workspace_write",
    "shell_environment_policy",
    "permissions",
    "default_permissions",
    "approvals",
    "journal",
];

/// Whether a project's own configuration may not set what is at or below this first segment of a path.
#[must_use]
pub fn is_not_for_projects(first: &str) -> bool {
    NOT_FOR_PROJECTS.contains(&first) || is_realtime_address(first)
}

/// `experimental_realtime_…base_url`: two addresses of Codex.
fn is_realtime_address(first: &str) -> bool {
    first.starts_with("experimental_realtime_") && first.ends_with("base_url")
}

/// What a path of a leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A key of ours.
    Key(Kind),
    /// A key without effect here.
    Later,
    /// No key.
    Unknown,
}

/// Looks a path up.
#[must_use]
pub fn look_up(path: &[String]) -> Known {
    let Some(first) = path.first() else {
        return Known::Unknown;
    };
    let is_later = |key: &&str| {
        let segments: Vec<&str> = key.split('.').collect();
        segments.len() <= path.len()
            && segments
                .iter()
                .zip(path)
                .all(|(known, given)| known == given)
    };
    if LATER.iter().any(is_later) || is_realtime_address(first) {
        return Known::Later;
    }
    let fits = |pattern: &str| {
        let segments: Vec<&str> = pattern.split('.').collect();
        segments.len() == path.len()
            && segments
                .iter()
                .zip(path)
                .all(|(known, given)| *known == "*" || known == given)
    };
    KEYS.iter()
        .find(|(pattern, _)| fits(pattern))
        .map_or(Known::Unknown, |(_, kind)| Known::Key(*kind))
}

/// Whether something below this path may exist, so that a table there is no mistake.
#[must_use]
pub fn is_table(path: &[String]) -> bool {
    KEYS.iter().any(|(pattern, _)| {
        let segments: Vec<&str> = pattern.split('.').collect();
        segments.len() > path.len()
            && segments
                .iter()
                .zip(path)
                .all(|(known, given)| *known == "*" || known == given)
    })
}

/// First segments that are tables of ours.
pub fn tables() -> impl Iterator<Item = &'static str> {
    KEYS.iter()
        .filter_map(|(pattern, _)| pattern.split_once('.'))
        .map(|(table, _)| table)
}

/// Known names at the place where `path` goes wrong: its first unknown segment, and what could stand there.
#[must_use]
pub fn siblings(path: &[String]) -> (usize, Vec<&'static str>) {
    let mut wrong = 0;
    while wrong + 1 < path.len() && is_table(&path[..=wrong]) {
        wrong += 1;
    }
    let mut names: Vec<&str> = KEYS
        .iter()
        .filter_map(|(pattern, _)| {
            let segments: Vec<&str> = pattern.split('.').collect();
            let before = segments
                .iter()
                .zip(&path[..wrong])
                .all(|(known, given)| *known == "*" || known == given);
            (before && segments.len() > wrong).then(|| segments[wrong])
        })
        .filter(|name| *name != "*")
        .collect();
    if wrong == 0 {
        names.extend(LATER.iter().filter(|key| !key.contains('.')));
    }
    names.sort_unstable();
    names.dedup();
    (wrong, names)
}
