use super::*;
use crate::LoadOptions;

struct World {
    _guard: tempfile::TempDir,
    folder: PathBuf,
}

impl World {
    fn new(config: &str) -> Self {
        let guard = tempfile::tempdir().expect("a temp directory can be made");
        let folder = guard.path().canonicalize().expect("it was just made");
        for name in ["user/.ssh", "user/.aws", "home", "project", "extra", "more"] {
            std::fs::create_dir_all(folder.join(name)).expect("a directory can be made");
        }
        std::fs::write(folder.join("home/config.toml"), config).expect("a file can be written");
        Self {
            _guard: guard,
            folder,
        }
    }

    fn policy(&self, overrides: &[&str], add: &[&str]) -> Result<SandboxPolicy, ConfigError> {
        let loaded = Config::load(&LoadOptions {
            home: self.folder.join("home"),
            cwd: self.folder.join("project"),
            profile: None,
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
            strict: true,
        });
        loaded
            .expect("it is right")
            .config
            .sandbox_policy(&PolicyOptions {
                mode: None,
                add_dirs: add.iter().map(PathBuf::from).collect(),
                user_home: Some(self.folder.join("user")),
                secrets: vec!["sk-held".to_owned()],
            })
    }
}

#[test]
fn the_default_is_read_only_until_the_project_has_any_decision() {
    let world = World::new("");
    let policy = world.policy(&[], &["../extra"]).expect("fine");
    assert_eq!(policy.mode, SandboxMode::ReadOnly);
    assert_eq!(
        policy.roots,
        [world.folder.join("project")],
        "visible, and nothing else is added"
    );
    assert!(!policy.network);
    for level in ["trusted", "untrusted"] {
        let decided = format!(
            "projects.\"{}\".trust_level={level}",
            world.folder.join("project").display()
        );
        let policy = world.policy(&[&decided], &[]).expect("fine");
        assert_eq!(policy.mode, SandboxMode::WorkspaceWrite, "{level}");
        assert!(!policy.network);
    }
}

#[test]
fn roots_are_canonical_each_once_and_the_working_directory_first() {
    let world = World::new(
        "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\n\
         writable_roots = [\"../extra\", \"../project\"]\nnetwork_access = true\n",
    );
    std::os::unix::fs::symlink(world.folder.join("more"), world.folder.join("link"))
        .expect("the name is free");
    let policy = world.policy(&[], &["../link", "../more/."]).expect("fine");
    let expected = ["project", "extra", "more"].map(|name| world.folder.join(name));
    assert_eq!(policy.roots, expected);
    assert!(policy.network);
    assert_eq!(policy.protected, PROTECTED);
}

#[test]
fn a_root_that_is_no_directory_is_an_error_with_its_place() {
    let world = World::new(
        "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = [\"gone\"]\n",
    );
    let told = |overrides: &[&str], add: &[&str]| {
        let error = world.policy(overrides, add).expect_err("refused");
        error
            .to_string()
            .replace(&world.folder.display().to_string(), "~")
    };
    let none = "sandbox_workspace_write.writable_roots=[]";
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}\n{}",
        told(&[], &[]),
        told(&["sandbox_workspace_write.writable_roots=[\"gone\"]"], &[]),
        told(&[none], &["gone"]),
        told(&[none], &["../home/config.toml"]),
    ));
}

#[test]
fn credentials_that_exist_and_all_files_of_ours_cannot_be_read() {
    let world = World::new("");
    std::fs::write(world.folder.join("home/fast.config.toml"), "").expect("a file can be written");
    std::os::unix::fs::symlink(world.folder.join("more"), world.folder.join("home/log"))
        .expect("the name is free");
    let denied = world.policy(&[], &[]).expect("fine").deny_read;
    let mut expected: Vec<PathBuf> = [
        "user/.ssh",
        "user/.aws",
        "home/auth.json",
        "home/credentials",
        "home/sessions",
        "home/archived_sessions",
        "home/history.jsonl",
        "home/config.toml",
        "home/fast.config.toml",
        "more",
    ]
    .iter()
    .map(|name| world.folder.join(name))
    .collect();
    expected.sort();
    assert_eq!(denied, expected);
    let policy = world
        .policy(&["sandbox_mode=danger-full-access"], &[])
        .expect("fine");
    assert!(policy.deny_read.is_empty() && policy.network && policy.roots.is_empty());
}

#[test]
fn the_environment_starts_from_a_list_unless_the_user_says_all() {
    let world = World::new("[shell_environment_policy.set]\nA = \"1\"\n");
    let env = world.policy(&[], &[]).expect("fine").env;
    assert_eq!(env.inherit, EnvInherit::Core);
    assert_eq!(env.set, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(env.secrets, [SecretValue("sk-held".to_owned())]);
    for (word, expected) in [
        ("all", EnvInherit::All),
        ("core", EnvInherit::Core),
        ("none", EnvInherit::None),
    ] {
        let flag = format!("shell_environment_policy.inherit={word}");
        assert_eq!(
            world.policy(&[&flag], &[]).expect("fine").env.inherit,
            expected
        );
    }
}
