use std::sync::LazyLock;

use interpreter_messages::policy::{EnvInherit, EnvPolicy};
use interpreter_messages::tool::ChangeKind;
use interpreter_messages::{ApprovalId, CallId, TurnId};

use super::*;
use ApprovalPolicy::{Never, OnRequest, Untrusted};
use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

static PATH: LazyLock<Vec<PathBuf>> = LazyLock::new(|| vec!["/usr/bin".into(), "/bin".into()]);

pub(crate) fn sandbox(mode: SandboxMode) -> SandboxPolicy {
    SandboxPolicy {
        mode,
        roots: match mode {
            ReadOnly => Vec::new(),
            WorkspaceWrite | DangerFullAccess => vec!["/work/project".into()],
        },
        protected: vec![".git".to_owned()],
        deny_read: vec![
            "/home/ada/.openinterpreter/auth.json".into(),
            "/home/ada/.ssh".into(),
        ],
        network: false,
        share_tmp: false,
        env: EnvPolicy {
            inherit: EnvInherit::Core,
            exclude: Vec::new(),
            include_only: Vec::new(),
            set: Vec::new(),
            secrets: Vec::new(),
        },
    }
}

pub(crate) fn request(subject: Subject) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new("call/1"),
        call: CallId::new("call"),
        turn: TurnId(1),
        subject,
        reason: None,
        origin: Vec::new(),
    }
}

pub(crate) fn command(command: &str, escalated: bool) -> Subject {
    Subject::Command {
        command: command.to_owned(),
        cwd: "/work/project".into(),
        escalated,
    }
}

pub(crate) fn files(paths: &[&str], kind: ChangeKind, escalated: bool) -> Subject {
    let changes = paths
        .iter()
        .map(|path| FileChange {
            path: path.into(),
            kind,
            moved_to: None,
            before: None,
            after: None,
            diff: String::new(),
        })
        .collect();
    Subject::Files { changes, escalated }
}

fn verdict(policy: ApprovalPolicy, mode: SandboxMode, subject: Subject) -> &'static str {
    let sandbox = sandbox(mode);
    let context = PolicyContext {
        policy,
        sandbox: &sandbox,
        path: &PATH,
    };
    match decide(&context, &Grants::default(), &request(subject)) {
        Verdict::Allow => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Ask { .. } => "ask",
    }
}

#[test]
fn each_policy_decides_as_it_is_documented() {
    let file = |escalated| files(&["/work/project/a"], ChangeKind::Update, escalated);
    // (policy, mode, harmless, unknown, unknown outside the sandbox, file, file outside)
    let table = [
        (Untrusted, ReadOnly, ["allow", "ask", "ask", "ask", "ask"]),
        (
            Untrusted,
            WorkspaceWrite,
            ["allow", "ask", "ask", "ask", "ask"],
        ),
        (
            Untrusted,
            DangerFullAccess,
            ["allow", "ask", "ask", "ask", "ask"],
        ),
        (
            OnRequest,
            ReadOnly,
            ["allow", "allow", "ask", "allow", "ask"],
        ),
        (
            OnRequest,
            WorkspaceWrite,
            ["allow", "allow", "ask", "allow", "ask"],
        ),
        (OnRequest, DangerFullAccess, ["allow"; 5]),
        (Never, ReadOnly, ["allow", "allow", "deny", "allow", "deny"]),
        (
            Never,
            WorkspaceWrite,
            ["allow", "allow", "deny", "allow", "deny"],
        ),
        (Never, DangerFullAccess, ["allow"; 5]),
    ];
    for (policy, mode, expected) in table {
        let subjects = [
            command("ls -la", false),
            command("make", false),
            command("make", true),
            file(false),
            file(true),
        ];
        let got = subjects.map(|subject| verdict(policy, mode, subject));
        assert_eq!(got, expected, "{policy:?} {mode:?}");
    }
}

#[test]
fn a_harmless_command_outside_the_sandbox_is_asked() {
    assert_eq!(
        verdict(Untrusted, WorkspaceWrite, command("ls", true)),
        "ask"
    );
    assert_eq!(verdict(OnRequest, ReadOnly, command("ls", true)), "ask");
}

#[test]
fn a_denial_tells_the_model_which_policy_it_was() {
    let sandbox = sandbox(WorkspaceWrite);
    let context = PolicyContext {
        policy: Never,
        sandbox: &sandbox,
        path: &PATH,
    };
    match decide(
        &context,
        &Grants::default(),
        &request(command("make", true)),
    ) {
        Verdict::Deny { reason } => {
            assert!(reason.starts_with("approval policy is never"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

fn reason(path: &[PathBuf], mode: SandboxMode, text: &str) -> Option<String> {
    let sandbox = sandbox(mode);
    let context = PolicyContext {
        policy: Untrusted,
        sandbox: &sandbox,
        path,
    };
    match decide(&context, &Grants::default(), &request(command(text, false))) {
        Verdict::Ask { reason } => Some(reason),
        Verdict::Allow => None,
        Verdict::Deny { reason } => panic!("{reason}"),
    }
}

#[test]
fn a_search_path_that_the_project_can_fill_makes_no_name_harmless() {
    for open in ["/work/project/.venv/bin", "/work/project", ".", "", "bin"] {
        let path = vec![PathBuf::from(open), "/usr/bin".into()];
        let reason = reason(&path, WorkspaceWrite, "ls").expect("asked");
        assert!(reason.contains("PATH has"), "{reason}");
    }
    // Compared by components.
    let path = vec![PathBuf::from("/work/project-tools/bin")];
    assert_eq!(reason(&path, WorkspaceWrite, "ls"), None);
}

#[test]
fn what_must_not_be_read_is_asked_also_for_harmless_commands() {
    let scripts = [
        "cat /home/ada/.ssh/id_ed25519",
        "cat ../../home/ada/.ssh/../.ssh/id",
        "grep -r --file=/home/ada/.ssh/config x",
        "cd /home/ada && cat .ssh/id",
        "cd /home/ada/.ssh && cat id",
        "head -c 10 /home/ada/.openinterpreter/auth.json",
    ];
    for script in scripts {
        let reason = reason(&PATH, DangerFullAccess, script).expect(script);
        assert!(reason.contains("must not be read"), "{script}: {reason}");
    }
    assert_eq!(
        reason(&PATH, DangerFullAccess, "cat /home/ada/.sshrc"),
        None
    );
    assert_eq!(
        reason(&PATH, DangerFullAccess, "cd /tmp && cat .ssh/id"),
        None
    );
}

#[test]
fn a_question_says_what_is_not_known() {
    let because = |text: &str| reason(&PATH, WorkspaceWrite, text).expect("asked");
    assert!(because("ls && make").contains("`make`"));
    assert!(because("ls $(id)").contains("a substitution"));
    assert!(because("ls \u{202e}x").contains("U+202E"));
}

/// The answers of a session, by the reports of other agents.
#[test]
fn always_on_a_compound_command_covers_that_command_only() {
    let case: serde_json::Value = serde_json::from_str(include_str!(
        "../../testdata/cases/always-on-a-compound-command.json"
    ))
    .expect("JSON");
    let sandbox = sandbox(WorkspaceWrite);
    let context = PolicyContext {
        policy: Untrusted,
        sandbox: &sandbox,
        path: &PATH,
    };
    let mut grants = Grants::default();
    let mut asks = Vec::new();
    let mut open = None;
    for step in case["steps"].as_array().expect("steps") {
        if let Some(text) = step["request"].as_str() {
            let request = request(command(text, false));
            if matches!(decide(&context, &grants, &request), Verdict::Ask { .. }) {
                asks.push(text);
                open = Some(request);
            }
        } else {
            let request = open.take().expect("a question is open");
            grants.add(Grants::keys(&context, &request.subject));
        }
    }
    let expected: Vec<&str> = case["expect"]["asks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(serde_json::Value::as_str)
        .collect();
    assert_eq!(asks, expected);
}

fn granted(first: Subject, then: Subject) -> bool {
    let sandbox = sandbox(WorkspaceWrite);
    let context = PolicyContext {
        policy: Untrusted,
        sandbox: &sandbox,
        path: &PATH,
    };
    let mut grants = Grants::default();
    grants.add(Grants::keys(&context, &first));
    grants.cover(&context, &then)
}

#[test]
fn a_grant_is_exact() {
    assert!(granted(
        command("make  'test'", false),
        command("make test", false)
    ));
    assert!(granted(command("x $(y)", false), command("x $(y)", false)));
    for other in [
        "make test2",
        "make",
        "make test x",
        "make test && id",
        "make test > out",
        "make te*",
    ] {
        assert!(
            !granted(command("make test", false), command(other, false)),
            "{other}"
        );
    }
    assert!(!granted(
        command("x $(y)", false),
        command("x  $(y)", false)
    ));
    assert!(!granted(
        command("bash", false),
        command("bash -c id", false)
    ));
}

#[test]
fn a_grant_is_bound_to_directory_and_sandbox() {
    let elsewhere = Subject::Command {
        command: "make".to_owned(),
        cwd: "/work/project/sub".into(),
        escalated: false,
    };
    assert!(!granted(command("make", false), elsewhere));
    assert!(!granted(command("make", false), command("make", true)));
    assert!(!granted(command("make", true), command("make", false)));
    let (inside, outside) = (sandbox(WorkspaceWrite), sandbox(DangerFullAccess));
    let context = |sandbox| PolicyContext {
        policy: Untrusted,
        sandbox,
        path: &PATH,
    };
    let subject = command("make", false);
    let mut grants = Grants::default();
    grants.add(Grants::keys(&context(&inside), &subject));
    assert!(!grants.cover(&context(&outside), &subject));
}

#[test]
fn a_grant_of_files_covers_each_file_and_the_kind_of_its_change() {
    let both = files(&["/p/a", "/p/b"], ChangeKind::Update, false);
    assert!(granted(
        both.clone(),
        files(&["/p/a"], ChangeKind::Update, false)
    ));
    assert!(!granted(
        both.clone(),
        files(&["/p/a", "/p/c"], ChangeKind::Update, false)
    ));
    assert!(!granted(
        both.clone(),
        files(&["/p/a"], ChangeKind::Delete, false)
    ));
    assert!(!granted(
        both.clone(),
        files(&["/p/a"], ChangeKind::Update, true)
    ));
    assert!(!granted(
        both,
        files(&["/p/a/x"], ChangeKind::Update, false)
    ));
    assert!(!granted(
        files(&[], ChangeKind::Update, false),
        files(&[], ChangeKind::Update, false)
    ));
}
