//! Handed cases that need the whole program: a command that leaves a child behind, a torn session file, questions.

use std::time::{Duration, Instant};

use interpreter_messages::FaultSwitch;
use interpreter_messages::approval::Decision;
use interpreter_messages::hub::Origin;
use interpreter_messages::policy::ApprovalPolicy;
use interpreter_messages::ui::{Event, Item, ItemBody, ItemStatus};
use serde_json::{Value, json};

use crate::crash::valid;
use crate::exec::configure;
use crate::support::program::World;
use crate::support::server::{Answer, Server, event};
use crate::support::tree::{PATIENCE, Running, settings};

fn tool_results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages are a list");
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_background_child_does_not_hold_the_call() {
    let world = World::new();
    let server = Server::start([
        Answer::call(
            "c1",
            "exec_command",
            &json!({"cmd": "sleep 30 & echo started"}),
        ),
        Answer::text("ok"),
    ]);
    configure(&world, &server);
    let began = Instant::now();
    world.run(["exec", "-s", "workspace-write", "go"]).exits(0);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    let results = tool_results(&server.seen()[1].json());
    assert!(
        results[0].contains("Process exited with code 0") && results[0].contains("started"),
        "{results:?}"
    );
}

#[test]
fn a_torn_last_line_costs_only_itself() {
    let world = World::new();
    let server = Server::answering(|_| Answer::text("yes"));
    configure(&world, &server);
    world.run(["exec", "one"]).exits(0);
    for word in ["two", "three"] {
        world.run(["exec", "resume", "--last", word]).exits(0);
    }
    let path = world.sessions().pop().expect("one session");
    let mut bytes = std::fs::read(&path).expect("it is readable");
    bytes.extend_from_slice(b"{\"type\":\"message\",\"role\":\"assis");
    std::fs::write(&path, bytes).expect("it is writable");
    let run = world.run(["exec", "resume", "--last", "four"]).exits(0);
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    let last = server.seen().pop().expect("it asked").json();
    valid(&last, "after the torn line");
    let text = last.to_string();
    for word in ["one", "two", "three", "four"] {
        assert!(
            text.contains(&format!("\"content\":\"{word}\"")),
            "{word}: {text}"
        );
    }
    for line in std::fs::read_to_string(&path).expect("readable").lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn a_session_in_use_is_refused_with_the_reason() {
    let world = World::new();
    let slow = event(&json!({"choices":[{"index":0,"delta":{"content":"slow"}}]})).into_bytes();
    let server = Server::answering(move |_| {
        let mut answer = Answer::text("done");
        answer.pieces.insert(0, (Duration::ZERO, slow.clone()));
        answer.pieces[1].0 = Duration::from_secs(5);
        answer
    });
    configure(&world, &server);
    let mut first = world
        .command(["exec", "hold it"])
        .spawn()
        .expect("the program starts");
    while server.seen().is_empty() {
        std::thread::yield_now();
    }
    let run = world.run(["exec", "resume", "--last", "me too"]).exits(1);
    assert!(
        run.stderr.contains("in use") || run.stderr.contains("another"),
        "{}",
        run.stderr
    );
    first.kill().expect("it can be ended");
    first.wait().expect("it ends");
}

#[test]
fn without_anybody_to_ask_a_question_is_refused_and_the_model_is_told() {
    let world = World::new();
    let outside = json!({"cmd": "touch /escaped", "sandbox_permissions": "require_escalated", "justification": "May I?"});
    let server = Server::start([
        Answer::call("c1", "exec_command", &outside),
        Answer::text("I may not."),
    ]);
    configure(&world, &server);
    let run = world
        .run(["exec", "--json", "-s", "workspace-write", "go"])
        .exits(0);
    assert!(!std::path::Path::new("/escaped").exists());
    let results = tool_results(&server.seen()[1].json());
    assert!(results[0].contains("refused"), "{results:?}");
    let declined = run
        .events()
        .into_iter()
        .find(|event| event["item"]["status"] == "declined");
    assert!(declined.is_some(), "{}", run.stdout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_covers_the_same_command_and_nothing_else() {
    let world = World::new();
    let compound = "mkdir -p tmp && rm -rf ./tmp";
    let commands = [compound, "rm -rf ./other", compound];
    let mut answers: Vec<Answer> = commands
        .iter()
        .enumerate()
        .map(|(at, cmd)| Answer::call(&format!("c{at}"), "exec_command", &json!({"cmd": cmd})))
        .collect();
    answers.push(Answer::text("done"));
    let server = Server::start(answers);
    let settings = settings(&world, &server, ApprovalPolicy::Untrusted);
    let origin = Origin::New { ephemeral: true };
    let mut running = Running::start(
        &world,
        settings,
        origin,
        FaultSwitch::default(),
        Decision::ApproveForSession,
    )
    .await;
    running.submit("go").await;
    let end = |event: &Event| matches!(event, Event::TurnEnded { .. });
    let events = running
        .wait_for(PATIENCE, end)
        .await
        .expect("the turn ends");
    let asked: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ApprovalAsked { request } => serde_json::to_value(&request.subject).ok(),
            _ => None,
        })
        .map(|subject| subject["command"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(asked, [compound, "rm -rf ./other"]);
    assert!(running.tree.shutdown().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_command_is_declined_and_does_not_run() {
    let world = World::new();
    let server = Server::start([
        Answer::call("c0", "exec_command", &json!({"cmd": "touch x"})),
        Answer::text("I did not."),
    ]);
    let settings = settings(&world, &server, ApprovalPolicy::Untrusted);
    let denial = Decision::Deny {
        text: Some("not today".to_owned()),
    };
    let origin = Origin::New { ephemeral: true };
    let mut running =
        Running::start(&world, settings, origin, FaultSwitch::default(), denial).await;
    running.submit("go").await;
    let end = |event: &Event| matches!(event, Event::TurnEnded { .. });
    let events = running
        .wait_for(PATIENCE, end)
        .await
        .expect("the turn ends");
    let declined = events.iter().any(|event| {
        matches!(
            event,
            Event::ItemCompleted {
                item: Item {
                    body: ItemBody::Command {
                        status: ItemStatus::Declined,
                        ..
                    },
                    ..
                }
            }
        )
    });
    assert!(declined, "{events:#?}");
    assert!(!world.project().join("x").exists());
    assert!(tool_results(&server.seen()[1].json())[0].contains("not today"));
    assert!(running.tree.shutdown().await);
}

#[test]
fn twenty_thousand_deltas_and_a_reader_that_is_late_lose_nothing() {
    use std::io::Read;
    let world = World::new();
    let delta = event(&json!({"choices":[{"index":0,"delta":{"content":"word "}}]}));
    let finish = event(&json!({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}));
    let server = Server::start([Answer::sse(format!(
        "{}{finish}data: [DONE]\n\n",
        delta.repeat(20_000)
    ))]);
    configure(&world, &server);
    let mut child = world
        .command(["exec", "--json", "talk"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    // The answer (100 kB) does not fit the pipe: the program is stuck until somebody reads.
    while server.seen().is_empty() {
        std::thread::yield_now();
    }
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("stdout is piped")
        .read_to_string(&mut text)
        .expect("UTF-8");
    assert!(child.wait().expect("it ends").success());
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON lines"))
        .collect();
    let message = events
        .iter()
        .find(|event| event["item"]["type"] == "agent_message")
        .expect("the message");
    assert_eq!(
        message["item"]["text"].as_str().map(str::len),
        Some(100_000)
    );
    assert_eq!(
        events.last().map(|event| event["type"].clone()),
        Some(json!("turn.completed"))
    );
}

#[test]
fn the_demo_fixes_its_project_and_leaves_nothing() {
    let world = World::new();
    let scratch = world.home().join("tmp");
    std::fs::create_dir(&scratch).expect("a directory can be made");
    let output = world
        .command(["demo"])
        .env("TMPDIR", &scratch)
        .output()
        .expect("the program runs");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("recording"), "{stderr}");
    assert!(
        stderr.contains("FAIL") && stderr.contains("changed slug.sh"),
        "{stderr}"
    );
    let last = stderr
        .rfind("sh test.sh")
        .map(|at| &stderr[at..])
        .unwrap_or_default();
    assert!(
        !last.contains("FAIL") && last.contains("exit 0"),
        "{stderr}"
    );
    assert!(stdout.contains("tests pass"), "{stdout}");
    assert_eq!(
        std::fs::read_dir(&scratch).expect("readable").count(),
        0,
        "something is left"
    );
}

#[test]
fn the_minimal_harness_reads_edits_and_searches() {
    let world = World::new();
    world.write("src/a.txt", "alpha\nbeta\n");
    let server = Server::start([
        Answer::call("c1", "read", &json!({"path": "src/a.txt"})),
        Answer::call(
            "c2",
            "edit",
            &json!({"path": "src/a.txt", "old": "beta", "new": "gamma"}),
        ),
        Answer::call("c3", "grep", &json!({"pattern": "gam+a"})),
        Answer::call("c4", "glob", &json!({"pattern": "**/*.txt"})),
        Answer::call(
            "c5",
            "write",
            &json!({"path": "new/b.txt", "content": "x\n"}),
        ),
        Answer::call("c6", "bash", &json!({"command": "cat new/b.txt; exit 4"})),
        Answer::call("c7", "reed", &json!({"path": "x"})),
        Answer::call(
            "c8",
            "edit",
            &json!({"path": "src/a.txt", "old": "nope", "new": "x"}),
        ),
        Answer::text("done"),
    ]);
    configure(&world, &server);
    world
        .run([
            "exec",
            "-s",
            "workspace-write",
            "-c",
            "harness=minimal",
            "go",
        ])
        .exits(0);
    assert_eq!(world.read("src/a.txt"), "alpha\ngamma\n");
    let last = server.seen().pop().expect("it asked").json();
    valid(&last, "minimal");
    let results = tool_results(&last);
    assert_eq!(results.len(), 8, "{results:#?}");
    assert!(results[0].contains("1\talpha"), "{}", results[0]);
    assert!(results[2].contains("src/a.txt:2:gamma"), "{}", results[2]);
    assert!(results[3].contains("src/a.txt"), "{}", results[3]);
    assert!(results[5].contains("[exit code 4]"), "{}", results[5]);
    assert!(results[6].contains("did you mean read"), "{}", results[6]);
    assert!(results[7].contains("not"), "{}", results[7]);
}

#[test]
fn a_planted_key_reaches_neither_tools_nor_files_nor_output() {
    let world = World::new();
    let server = Server::start([
        Answer::call(
            "c1",
            "exec_command",
            &json!({"cmd": "env; cat ~/config.toml; cat /proc/*/environ"}),
        ),
        Answer::json(
            401,
            &json!({"error": {"message": "bad key canary-key-1234"}}),
        ),
    ]);
    world.config(&format!(
        "model = \"m\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"Mock\"\nbase_url = \"{}\"\nenv_key = \"MOCK_KEY\"\n",
        server.base_url()
    ));
    let output = world
        .command(["exec", "--json", "-s", "workspace-write", "go"])
        .env("MOCK_KEY", "canary-key-1234")
        .env("HARMLESS", "canary-key-1234")
        .output()
        .expect("the program runs");
    let sent = server.seen();
    assert!(
        sent[0]
            .headers
            .iter()
            .any(|(name, value)| name == "authorization" && value.contains("canary")),
        "the key is used"
    );
    let mut everything = output.stdout;
    everything.extend(output.stderr);
    everything.extend(&sent[1].body);
    everything.extend(std::fs::read(&world.sessions()[0]).expect("the session file is readable"));
    assert!(
        !String::from_utf8_lossy(&everything).contains("canary"),
        "{}",
        String::from_utf8_lossy(&everything)
    );
}
