use proptest::prelude::*;

use super::*;
use interpreter_messages::model::Transport;
use interpreter_messages::policy::{ApprovalPolicy, SandboxMode};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temp directory can be made");
        for name in ["home", "project"] {
            std::fs::create_dir(folder.path().join(name))
                .expect("an empty directory takes a child");
        }
        let world = Self { folder };
        std::fs::write(world.home().join("config.toml"), config).expect("a file can be written");
        world
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn load(&self, overrides: &[&str]) -> Result<Loaded, ConfigError> {
        Config::load(&LoadOptions {
            home: self.home(),
            cwd: self.project(),
            profile: None,
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
            strict: false,
        })
    }

    /// What the user is told, with the scratch directory left out.
    fn complaint(&self, overrides: &[&str]) -> String {
        let told = match self.load(overrides) {
            Ok(loaded) => match loaded.config.choose_model(None, &|_| None) {
                Ok(_) => format!("fine; warnings: {:?}", loaded.warnings),
                Err(error) => format!("{error}; warnings: {:?}", loaded.warnings),
            },
            Err(error) => error.to_string(),
        };
        told.replace(&self.folder.path().display().to_string(), "~")
    }
}

#[test]
fn complaints_name_place_kind_and_cure() {
    let files = [
        "model = \"m\"\nsandbox_mode = [1\n",
        "sandbox_mode = \"readonly\"\n",
        "approval_policy = 3\n",
        "sandbox_mod = \"read-only\"\nmodel_provider = \"ollama\"\n",
        "[sandbox_workspace_write]\nnetwork = true\n",
        "[sandbox_workspace_write]\nwritable_roots = \"a\"\n",
        "model_provider = \"moonshot\"\n",
        "model_provider = \"moonshotai\"\n",
        "model_provider = \"x\"\n[model_providers.x]\nname = \"X\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nname = \"X\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"localhost:1\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"http://x\"\nwire_api = \"messages\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"http://x\"\nrequest_max_retries = -1\n",
        "[profiles.fast]\nmodel = \"m\"\n",
        "project_doc_max_bytes = 1.5\n",
        "\u{feff}model_provider = \"ollama\"\r\n[features]\r\nanything = true\r\n",
        "[model_provider.x]\nname = \"X\"\n",
        "model_provider = \"replay\"\n",
        "",
    ];
    let told: Vec<String> = files
        .iter()
        .map(|file| format!("{file:?}\n  {}", World::new(file).complaint(&[])))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn overrides_are_strict_and_say_so() {
    let world = World::new("model_provider = \"ollama\"\n");
    let given = [
        "sandbox_mod=read-only",
        "sandbox_mode=readonly",
        "sandbox_mode",
        "=x",
        "a b=1",
        "model_provider.x=1",
        "sandbox_workspace_write={network=true}",
        "sandbox_workspace_write={network_access=true}",
        "features.x=true",
        "web_search=disabled",
        "projects.\"/a.b=c\".trust_level=trusted",
        "model='quoted'",
        "sandbox_workspace_write=true",
    ];
    let told: Vec<String> = given
        .iter()
        .map(|text| format!("{text}\n  {}", world.complaint(&[text])))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn later_layers_win_and_lists_are_replaced() {
    let world = World::new(
        "model = \"a\"\nmodel_provider = \"ollama\"\nproject_root_markers = [\"x\", \"y\"]\n",
    );
    let loaded = world
        .load(&[
            "model=b",
            "model=c",
            "project_root_markers=[\"z\"]",
            "approval_policy=on-failure",
        ])
        .expect("fine");
    assert_eq!(loaded.config.text("model").as_deref(), Some("c"));
    assert_eq!(loaded.config.root_markers(), ["z"]);
    assert_eq!(loaded.config.approval_policy(), ApprovalPolicy::OnRequest);
}

#[test]
fn a_projects_configuration_counts_only_when_trusted_and_cannot_widen() {
    let world = World::new("model_provider = \"ollama\"\n");
    std::fs::create_dir_all(world.project().join(".openinterpreter"))
        .expect("a directory can be made");
    let own = "model = \"from-project\"\nsandbox_mode = \"danger-full-access\"\nmodel_provider = \"evil\"\n";
    std::fs::write(world.project().join(".openinterpreter/config.toml"), own)
        .expect("a file can be written");
    let loaded = world.load(&[]).expect("fine");
    assert_eq!(loaded.config.text("model"), None);
    assert_eq!(loaded.config.sandbox_mode(), SandboxMode::ReadOnly);
    let trust = format!(
        "model_provider = \"ollama\"\n[projects.{:?}]\ntrust_level = \"trusted\"\n",
        world.project()
    );
    std::fs::write(world.home().join("config.toml"), trust).expect("a file can be written");
    let loaded = world.load(&[]).expect("fine");
    assert_eq!(loaded.config.text("model").as_deref(), Some("from-project"));
    assert_eq!(
        loaded.config.text("model_provider").as_deref(),
        Some("ollama")
    );
    assert_eq!(loaded.config.sandbox_mode(), SandboxMode::WorkspaceWrite);
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
}

#[test]
fn a_key_in_the_environment_chooses_its_provider_and_is_a_held_secret() {
    let world = World::new("");
    let config = world.load(&[]).expect("fine").config;
    let var = |name: &str| (name == "MOONSHOT_API_KEY").then(|| " sk-moon ".to_owned());
    let choice = config.choose_model(None, &var).expect("a key is enough");
    assert_eq!(
        (choice.profile.provider.as_str(), choice.profile.id.as_str()),
        ("moonshotai", "kimi-k2.6")
    );
    let Transport::Http(http) = &choice.endpoint.transport else {
        panic!("not over HTTP")
    };
    assert_eq!(http.key.as_ref().map(|key| key.expose()), Some("sk-moon"));
    assert_eq!(config.held_secrets(&var), [" sk-moon "]);
    let choice = config
        .choose_model(Some("ollama/qwen3:8b"), &|_| None)
        .expect("a prefix is enough");
    assert_eq!(
        (choice.profile.provider.as_str(), choice.profile.id.as_str()),
        ("ollama", "qwen3:8b")
    );
}

#[test]
fn a_configured_provider_overrides_the_catalogue_field_by_field() {
    let world = World::new(
        "model_provider = \"moonshotai\"\n[model_providers.moonshotai]\nbase_url = \"http://127.0.0.1:1/v1/\"\n\
         request_max_retries = 7\nhttp_headers = { \"X-A\" = \"b\" }\n",
    );
    let config = world.load(&[]).expect("fine").config;
    let choice = config
        .choose_model(Some("kimi-k3"), &|name| {
            (name == "MOONSHOT_API_KEY").then(|| "key".to_owned())
        })
        .expect("fine");
    let Transport::Http(http) = &choice.endpoint.transport else {
        panic!("not over HTTP")
    };
    assert_eq!(http.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(http.headers.len(), 1);
    assert_eq!(choice.endpoint.request_max_retries, 7);
    assert_eq!(
        choice.profile.prices.map(|prices| prices.output),
        Some(15.0)
    );
    assert!(choice.profile.thinking_toggle);
}

#[test]
fn a_recording_is_found_relative_to_where_it_was_named() {
    let world =
        World::new("model_provider = \"tape\"\n[model_providers.tape]\nreplay = \"tape.json\"\n");
    let script = |loaded: Loaded| match &loaded
        .config
        .choose_model(None, &|_| None)
        .expect("fine")
        .endpoint
        .transport
    {
        Transport::Replay { script } => script.clone(),
        Transport::Http(_) => panic!("over HTTP"),
    };
    assert_eq!(
        script(world.load(&[]).expect("fine")),
        world.home().join("tape.json")
    );
    let flags = ["model_provider=replay", "replay=other.json"];
    assert_eq!(
        script(world.load(&flags).expect("fine")),
        world.project().join("other.json")
    );
}

proptest! {
    #[test]
    fn nothing_that_is_written_in_a_file_or_flag_panics(file in "[a-z_.=\\[\\]\"'{}\n 0-9#,é]{0,80}", flag in "[a-z_.=\\[\\]\"'{} 0-9é]{0,40}") {
        let world = World::new(&file);
        let _told = world.complaint(&[]);
        let _told = world.complaint(&[&flag]);
    }
}
