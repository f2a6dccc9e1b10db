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

    fn options(&self, overrides: &[&str]) -> LoadOptions {
        LoadOptions {
            home: self.home(),
            cwd: self.project(),
            profile: None,
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
            strict: false,
        }
    }

    fn load(&self, overrides: &[&str]) -> Result<Loaded, ConfigError> {
        Config::load(&self.options(overrides))
    }

    /// With the scratch directory left out.
    fn brief(&self, told: &str) -> String {
        told.replace(&self.folder.path().display().to_string(), "~")
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
        self.brief(&told)
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
        "sandbox_mode = { a = 1 }\n",
        "[sandbox_mode]\n",
        "sandbox_workspace_write = true\n",
        "[[model_providers]]\nid = \"x\"\n",
        "[projects]\n\"/a\" = \"trusted\"\n",
        "approval_policy = { granular = { rules = true } }\n",
        "model_provider = \"ollama\"\nmade_up = {}\n[zzz]\n[zzz.deeper]\nx = 1\n",
        "model = \"a\"\nmodel = \"b\"\n",
        "model = \"\\u0000\"\n",
        "[shell_environment_policy.set]\n\"A=B\" = \"c\"\n",
        "[shell_environment_policy]\ninherit = \"al\"\n",
        "[journal]\nsync = \"alway\"\n",
        "[model_providers.x.prices]\ninput = -1\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"https://h\"\nenv_key = \"X_KEY\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"https://h\"\nauth = { command = \"c\" }\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x.aws]\nregion = \"r\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"https://h\"\nexperimental_bearer_token = \"a canary\"\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"https://h\"\nhttp_headers = { \"a b\" = \"canary\" }\n",
        "model_provider = \"x\"\nmodel = \"m\"\n[model_providers.x]\nbase_url = \"https://h\"\nhttp_headers = { A = \"canary\\n\" }\n",
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
        "sandbox_workspace_write={}",
        "made_up={}",
        "sandbox_mode={}",
        "features={}",
        "shell_environment_policy.filters.x=1",
        "approvals.timeout_s=soon",
        "openai_base_url=\"http://127.0.0.1:1/v1\"",
        "a..b=1",
        "model_providers.x={ name = 1 }",
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
    assert_eq!(config.held_secrets(&var), ["sk-moon"]);
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

#[test]
fn a_complaint_never_shows_what_may_be_a_secret() {
    let typed = [
        "model_providers.x.experimental_bearer_tokn=canary",
        "model_providers.x.experimental_bearer_token=[\"canary\"]",
        "model_providers.x.http_headers.X-Any=[\"canary\"]",
        "model_providers.x={experimental_bearer_tokn=\"canary\"}",
        "model_provider={x={experimental_bearer_token=\"canary\"}}",
        "shell_environment_policy.set.API_KEY=[\"canary\"]",
        "[x].token=canary",
    ];
    for text in typed {
        let told = World::new("")
            .load(&[text])
            .expect_err("it is wrong")
            .to_string();
        assert!(!told.contains("canary"), "{told}");
        assert!(
            World::new(text).complaint(&[]).find("canary").is_none(),
            "{text}"
        );
    }
    let named = World::new("").load(&["model_providers.x.env_key=[\"NAME\"]"]);
    let told = named.expect_err("it is wrong").to_string();
    assert!(
        told.contains("NAME"),
        "the name of a variable is no secret: {told}"
    );
}

#[test]
fn files_that_are_no_text_are_named_with_the_place() {
    let world = World::new("");
    std::fs::write(
        world.home().join("config.toml"),
        b"model = 1\nsandbox_mode = \"\xff\"\n",
    )
    .expect("a file can be written");
    let bytes = world.complaint(&[]);
    std::fs::remove_file(world.home().join("config.toml")).expect("it is there");
    std::fs::create_dir(world.home().join("config.toml")).expect("the name is free");
    insta::assert_snapshot!(format!("{bytes}\n{}", world.complaint(&[])));
}

#[test]
fn a_file_that_may_not_be_read_is_an_error_and_not_an_empty_layer() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new("model = \"m\"\n");
    let file = world.home().join("config.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).expect("its owner may");
    // Root reads everything: then there is nothing to refuse.
    let expected = std::fs::read(&file).is_err();
    let told = world.complaint(&[]);
    assert_eq!(
        told.contains("~/home/config.toml: cannot be read: Permission denied"),
        expected,
        "{told}"
    );
}

#[test]
fn a_profile_is_a_file_that_must_be_there() {
    let world =
        World::new("model = \"a\"\nsandbox_mode = \"read-only\"\n[profiles.old]\nmodel = \"x\"\n");
    std::fs::write(world.home().join("fast.config.toml"), "model = \"b\"\n")
        .expect("a file can be written");
    let with = |name: &str| {
        let options = LoadOptions {
            profile: Some(name.to_owned()),
            ..world.options(&[])
        };
        Config::load(&options)
    };
    let loaded = with("fast").expect("the profile is there");
    assert_eq!(loaded.config.text("model").as_deref(), Some("b"));
    assert_eq!(loaded.config.sandbox_mode(), SandboxMode::ReadOnly);
    let told: Vec<String> = ["fst", "old", "../x", "nothing"]
        .iter()
        .map(|name| world.brief(&with(name).expect_err("no such profile").to_string()))
        .collect();
    std::fs::write(world.home().join("old.config.toml"), "").expect("a file can be written");
    let old = world.brief(
        &with("old")
            .expect_err("the old table is not dropped")
            .to_string(),
    );
    insta::assert_snapshot!(format!("{}\n{old}", told.join("\n")));
}

#[test]
fn strict_makes_an_unknown_key_an_error() {
    let world = World::new("model_provider = \"ollama\"\nsandbox_mod = \"read-only\"\n");
    assert_eq!(world.load(&[]).expect("a warning").warnings.len(), 1);
    let options = LoadOptions {
        strict: true,
        ..world.options(&[])
    };
    let error = Config::load(&options).expect_err("strict");
    assert_eq!(
        world.brief(&error.to_string()),
        "~/home/config.toml:2:1: unknown key \"sandbox_mod\"; did you mean \"sandbox_mode\"?"
    );
}

#[test]
fn a_project_cannot_choose_whom_we_talk_to_nor_widen_anything() {
    let world = World::new("");
    let trust = format!(
        "[projects.{:?}]\ntrust_level = \"trusted\"\n",
        world.project()
    );
    std::fs::write(world.home().join("config.toml"), trust).expect("a file can be written");
    std::fs::create_dir(world.project().join(".openinterpreter")).expect("the name is free");
    for key in keys::NOT_FOR_PROJECTS
        .iter()
        .chain(&["experimental_realtime_ws_base_url"])
    {
        let text = format!("{key} = \"anything, even of the wrong kind\"\n");
        std::fs::write(world.project().join(".openinterpreter/config.toml"), text)
            .expect("a file can be written");
        let loaded = world.load(&[]).expect("ignored");
        assert!(
            loaded.warnings[0].contains("a project may not set"),
            "{key}"
        );
        assert_eq!(
            loaded.config.values.len(),
            1,
            "{key}: only the trust is left"
        );
    }
}

#[test]
fn the_nearest_project_layer_wins_and_flags_win_over_it() {
    let world = World::new("");
    let near = world.project().join("a/b");
    for (folder, text) in [
        (world.project(), "model = \"root\"\nharness = \"root\"\n"),
        (near.clone(), "model = \"near\"\n"),
    ] {
        std::fs::create_dir_all(folder.join(".openinterpreter")).expect("a directory can be made");
        std::fs::write(folder.join(".openinterpreter/config.toml"), text)
            .expect("a file can be written");
    }
    std::fs::create_dir(world.project().join(".git")).expect("the name is free");
    let trust = format!(
        "[projects.\"{}/\"]\ntrust_level = \"trusted\"\n",
        world.project().display()
    );
    std::fs::write(world.home().join("config.toml"), trust).expect("a file can be written");
    let load = |overrides: &[&str]| {
        let options = LoadOptions {
            cwd: near.clone(),
            ..world.options(overrides)
        };
        Config::load(&options).expect("fine").config
    };
    let config = load(&[]);
    assert_eq!(config.text("model").as_deref(), Some("near"));
    assert_eq!(config.harness().as_deref(), Some("root"));
    assert_eq!(load(&["model=x=y"]).text("model").as_deref(), Some("x=y"));
}

#[test]
fn a_tilde_is_the_users_home_wherever_ours_is() {
    let world = World::new("model_provider = \"replay\"\nreplay = \"~/tape.json\"\n");
    let choice = world
        .load(&[])
        .expect("fine")
        .config
        .choose_model(None, &|_| None)
        .expect("fine");
    let expected = std::env::home_dir()
        .expect("tests run as somebody")
        .join("tape.json");
    let Transport::Replay { script } = &choice.endpoint.transport else {
        panic!("over HTTP")
    };
    assert_eq!(*script, expected);
}

#[test]
fn values_behind_every_bound_are_taken_without_wrapping() {
    let world = World::new(
        "max_requests_per_turn = 9223372036854775807\nmodel_provider = \"ollama\"\n\
         [model_providers.ollama]\nstream_max_retries = 4294967296\n[approvals]\ntimeout_s = 0\n",
    );
    let config = world.load(&[]).expect("fine").config;
    assert_eq!(config.max_requests_per_turn(), u32::MAX);
    assert_eq!(config.approval_timeout(), None);
    let choice = config.choose_model(None, &|_| None).expect("fine");
    assert_eq!(choice.endpoint.stream_max_retries, 100);
}

#[test]
fn deep_nesting_is_refused_and_not_recursed_into() {
    let deep = [
        format!("model = {}", "[".repeat(200_000)),
        format!("{} = 1", vec!["a"; 200_000].join(".")),
        format!("x = {}1{}", "{a=".repeat(100_000), "}".repeat(100_000)),
    ];
    for text in deep {
        let told = World::new(&text).complaint(&[]);
        assert!(!told.is_empty());
        let told = World::new("").complaint(&[&text]);
        assert!(!told.is_empty());
    }
}

proptest! {
    #[test]
    fn nothing_that_is_written_in_a_file_or_flag_panics(file in prop::collection::vec(any::<u8>(), 0..120), toml in TOML, flag in FLAG, wild in any::<String>()) {
        let world = World::new("");
        for bytes in [file.as_slice(), toml.as_bytes()] {
            std::fs::write(world.home().join("config.toml"), bytes).expect("a file can be written");
            let _told = world.complaint(&[]);
        }
        std::fs::remove_file(world.home().join("config.toml")).expect("it is there");
        let _told = world.complaint(&[&flag]);
        let _told = world.complaint(&[&wild]);
    }

    #[test]
    fn a_text_given_by_flag_arrives_as_it_is(text in "[a-zA-Z/][a-zA-Z0-9 =./:-]{0,30}[a-z_]") {
        prop_assume!(text.parse::<Value>().is_err());
        let world = World::new("");
        for given in [text.clone(), format!("\"{text}\""), format!("'{text}'")] {
            let loaded = world.load(&[&format!("harness={given}")]).expect("any text will do");
            prop_assert_eq!(loaded.config.harness(), Some(text.clone()));
        }
    }
}

/// Text with the marks and words that lead deep into parser and check.
const TOML: &str = "((model|sandbox_mode|projects|model_providers|x|\"a.b\"|[a-z_]{1,3})[.]?|[ =\\[\\]\"'{}\n,#é0-9.-]){0,40}";
/// The same for an override.
const FLAG: &str = "((model|sandbox_mode|projects|model_providers|x|[a-z_]{1,3})[.]?){1,4}=?[ =\\[\\]\"'{},é0-9a-z.-]{0,20}";
