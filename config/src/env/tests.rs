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

proptest! {
    #[test]
    fn no_secret_name_or_value_passes(
        vars in prop::collection::vec(("[A-Za-z_]{0,6}(KEY|Secret|token|PASSWORD)?[A-Z]{0,3}", "[a-z]{0,3}(canary-secret)?[a-z]{0,3}"), 0..20)
    ) {
        for (name, value) in clean(&policy(), vars) {
            let name = name.to_ascii_uppercase();
            prop_assert!(!["KEY", "SECRET", "TOKEN", "PASS"].iter().any(|part| name.contains(part)));
            prop_assert!(!value.contains("canary-secret"));
        }
    }
}
