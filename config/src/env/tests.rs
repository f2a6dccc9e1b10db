use interpreter_messages::policy::SecretValue;
use proptest::prelude::*;

use super::*;

fn policy() -> EnvPolicy {
    EnvPolicy {
        inherit: EnvInherit::All,
        exclude: Vec::new(),
        include_only: Vec::new(),
        set: Vec::new(),
        secrets: vec![SecretValue("canary-secret".to_owned())],
    }
}

fn names(policy: &EnvPolicy, vars: &[(&str, &str)]) -> Vec<String> {
    let vars = vars
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    clean(policy, vars)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn secrets_and_hooks_of_other_programs_never_pass() {
    let vars = [
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "x"),
        ("my_token", "x"),
        ("DB_PASSWORD", "x"),
        ("LD_PRELOAD", "x"),
        ("GIT_SSH_COMMAND", "x"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("BASH_FUNC_ls%%", "() { :; }"),
        ("SSH_AUTH_SOCK", "x"),
        ("PLAIN", "has canary-secret inside"),
        ("HTTPS_PROXY", "http://user:pw@proxy:1"),
        ("HTTP_PROXY", "http://proxy:1"),
        ("NODE_OPTIONS", "x"),
        ("CARGO_HOME", "/c"),
    ];
    assert_eq!(
        names(&policy(), &vars),
        ["CARGO_HOME", "GIT_AUTHOR_NAME", "HTTP_PROXY", "PATH"]
    );
}

#[test]
fn the_users_own_settings_come_last() {
    let mut policy = policy();
    policy.exclude = vec!["*_tmp".to_owned()];
    policy.set = vec![("API_TOKEN".to_owned(), "mine".to_owned())];
    assert_eq!(
        names(&policy, &[("A_TMP", "1"), ("B", "2")]),
        ["API_TOKEN", "B"]
    );
    policy.include_only = vec!["c*e".to_owned()];
    assert_eq!(
        names(&policy, &[("CAGE", "1"), ("B", "2")]),
        ["API_TOKEN", "CAGE"]
    );
    policy.inherit = EnvInherit::None;
    assert_eq!(names(&policy, &[("CAGE", "1")]), ["API_TOKEN"]);
}

#[test]
fn the_list_has_toolchains_and_proxies_without_credentials() {
    let mut policy = policy();
    policy.inherit = EnvInherit::Core;
    let vars = [
        ("PATH", "/bin"),
        ("LC_CTYPE", "C"),
        ("NVM_DIR", "/n"),
        ("CARGO_HOME", "/c"),
        ("http_proxy", "http://proxy:1"),
        ("HTTPS_PROXY", "http://token@proxy:1"),
        ("ALL_PROXY", "user:pw@proxy:1"),
        ("DATABASE_URL", "x"),
        ("EDITOR", "vi"),
    ];
    assert_eq!(
        names(&policy, &vars),
        ["CARGO_HOME", "LC_CTYPE", "NVM_DIR", "PATH", "http_proxy"]
    );
}

#[test]
fn a_password_in_any_url_of_a_value_keeps_it_out() {
    let vars = [
        ("INDEXES", "https://a/simple https://u:pw@b/simple"),
        ("REMOTE", "ssh://git@host/x"),
        ("TIME", "https://a/?at=10:00@noon"),
    ];
    assert_eq!(names(&policy(), &vars), ["REMOTE", "TIME"]);
}

#[test]
fn a_short_secret_is_only_found_as_a_whole_value() {
    let mut policy = policy();
    policy.secrets = vec![SecretValue("abc".to_owned()), SecretValue(String::new())];
    let vars = [("A", "abc"), ("B", "xabcx"), ("C", "")];
    assert_eq!(names(&policy, &vars), ["B", "C"]);
}

/// A name from the rules, or any other.
const NAME: &str = "[A-Za-z_]{0,4}(KEY|Secret|token|PASSWORD|credential|AUTH|Cookie)?[A-Z_]{0,4}|LD_[A-Z]{1,4}|GIT_[A-Z_]{1,8}|DBUS_[A-Z]{1,4}|\
     BASH_FUNC_[a-z]{1,3}%%|BASH_ENV|ENV|PROMPT_COMMAND|SSH_AUTH_SOCK|DOCKER_HOST|NODE_OPTIONS|PYTHONSTARTUP|PERL5OPT|RUBYOPT|\
     GIT_AUTHOR_NAME|GIT_COMMITTER_EMAIL";

proptest! {
    #[test]
    fn nothing_forbidden_passes_however_much_is_inherited(
        vars in prop::collection::vec((NAME, "[a-z]{0,3}(canary-secret)?[a-z]{0,3}"), 0..20),
        inherit in prop::sample::select(vec![EnvInherit::All, EnvInherit::Core, EnvInherit::None]),
        include in prop::collection::vec("[A-Z]{0,2}[*]", 0..2),
    ) {
        let policy = EnvPolicy { inherit, include_only: include, ..policy() };
        for (name, value) in clean(&policy, vars) {
            let own = ["GIT_AUTHOR_", "GIT_COMMITTER_"].iter().any(|prefix| name.starts_with(prefix));
            let upper = name.to_ascii_uppercase();
            let parts = ["KEY", "SECRET", "TOKEN", "PASS", "CREDENTIAL", "AUTH", "COOKIE"];
            prop_assert!(own || !parts.iter().any(|part| upper.contains(part)), "{}", name);
            let prefixes = ["LD_", "GIT_", "DBUS_", "BASH_FUNC_"];
            prop_assert!(own || !prefixes.iter().any(|prefix| name.starts_with(prefix)), "{}", name);
            let whole = ["BASH_ENV", "ENV", "PROMPT_COMMAND", "DOCKER_HOST", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT"];
            prop_assert!(!whole.contains(&name.as_str()), "{}", name);
            prop_assert!(!value.contains("canary-secret"));
            prop_assert!(inherit != EnvInherit::None);
        }
    }

    #[test]
    fn what_the_user_sets_is_there_whatever_its_name(name in NAME, value in "(canary-secret)?[a-z]{0,3}") {
        prop_assume!(!name.is_empty());
        let mut policy = policy();
        policy.set = vec![(name.clone(), value.clone())];
        let env = clean(&policy, [(name.clone(), "other".to_owned())]);
        prop_assert_eq!(env, vec![(name, value)]);
    }
}
