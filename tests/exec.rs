//! `interpreter exec` on the real program: output, exit codes, prompts, tools that really act.

use serde_json::{Value, json};

use crate::support::program::World;
use crate::support::server::{Answer, End, Server, event};

/// A configuration with one provider at this server.
pub fn configure(world: &World, server: &Server) {
    world.config(&format!(
        "model = \"mock-small\"\nmodel_provider = \"mock\"\n\n[model_providers.mock]\nname = \"Mock\"\n\
         base_url = \"{}\"\nwire_api = \"chat\"\nrequest_max_retries = 1\nstream_max_retries = 1\n",
        server.base_url()
    ));
}

fn says(text: &str) -> Value {
    json!({"text": text})
}

fn calls(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn script(responses: &[Value]) -> Value {
    json!({"responses": responses})
}

fn kinds(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event["item"]["type"].as_str() {
            Some(item) => format!("{}:{item}", event["type"].as_str().unwrap_or("?")),
            None => event["type"].as_str().unwrap_or("?").to_owned(),
        })
        .collect()
}

#[test]
fn the_answer_is_all_of_stdout_and_the_rest_is_on_stderr() {
    let world = World::new();
    let mut arguments = world.replay(&script(&[says("Forty-two.")]));
    arguments.extend(["exec".to_owned(), "what is it?".to_owned()]);
    let run = world.run(arguments).exits(0);
    assert_eq!(run.stdout, "Forty-two.\n");
    assert!(run.stderr.contains("read-only"), "{}", run.stderr);
    assert!(
        !run.stderr.contains('\u{1b}'),
        "colours in a pipe: {}",
        run.stderr
    );
}

#[test]
fn a_command_runs_in_the_sandbox_and_its_events_follow_the_protocol() {
    let world = World::new();
    let mut arguments = world.replay(&script(&[
        calls(
            "exec_command",
            &json!({"cmd": "echo out; echo err >&2; exit 3"}),
        ),
        says("It failed with 3."),
    ]));
    arguments.extend(["exec", "--json", "-s", "workspace-write", "run it"].map(str::to_owned));
    let run = world.run(arguments).exits(0);
    let events = run.events();
    assert_eq!(
        kinds(&events),
        [
            "thread.started",
            "turn.started",
            "item.started:command_execution",
            "item.completed:command_execution",
            "item.completed:agent_message",
            "turn.completed",
        ]
    );
    let done = &events[3]["item"];
    assert_eq!(done["id"], events[2]["item"]["id"]);
    assert_eq!(done["exit_code"], 3);
    assert_eq!(done["status"], "failed");
    assert_eq!(done["aggregated_output"], "out\nerr\n");
    assert_eq!(events[4]["item"]["text"], "It failed with 3.");
}

#[test]
fn a_patch_changes_the_project_and_gives_a_file_change() {
    let world = World::new();
    world.write("a.txt", "one\ntwo\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new/b.txt\n+hello\n*** End Patch\n";
    let mut arguments = world.replay(&script(&[
        calls("apply_patch", &json!({"input": patch})),
        says("done"),
    ]));
    arguments.extend(["exec", "--json", "-s", "workspace-write", "edit"].map(str::to_owned));
    let run = world.run(arguments).exits(0);
    assert_eq!(world.read("a.txt"), "one\n2\n");
    assert_eq!(world.read("new/b.txt"), "hello\n");
    let events = run.events();
    let change = events
        .iter()
        .find(|event| event["type"] == "item.completed" && event["item"]["type"] == "file_change");
    let change = change.unwrap_or_else(|| panic!("no file change in {events:#?}"));
    assert_eq!(change["item"]["status"], "completed");
    let project = world
        .project()
        .canonicalize()
        .expect("the project is there");
    assert_eq!(
        change["item"]["changes"],
        json!([
            {"path": project.join("a.txt"), "kind": "update"},
            {"path": project.join("new/b.txt"), "kind": "add"},
        ])
    );
}

#[test]
fn a_read_only_session_changes_nothing_and_tells_the_model() {
    let world = World::new();
    world.write("a.txt", "one\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";
    let server = Server::start([
        Answer::call("c1", "apply_patch", &json!({"input": patch})),
        Answer::call(
            "c2",
            "exec_command",
            &json!({"cmd": "echo x > a.txt; echo code $?"}),
        ),
        Answer::text("I could not."),
    ]);
    configure(&world, &server);
    let run = world.run(["exec", "-s", "read-only", "edit it"]).exits(0);
    assert_eq!(world.read("a.txt"), "one\n", "{}", run.stderr);
    let last = server.seen().pop().expect("three requests").json();
    let results: Vec<_> = last["messages"]
        .as_array()
        .expect("messages are a list")
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(results.len(), 2);
    assert!(results[1].contains("Read-only file system"), "{results:?}");
}

#[test]
fn stdin_is_the_prompt_or_goes_with_it() {
    let world = World::new();
    let server = Server::start([Answer::text("1"), Answer::text("2"), Answer::text("3")]);
    configure(&world, &server);
    world.run_with_stdin(["exec", "-"], b"from a pipe").exits(0);
    world
        .run_with_stdin(["exec"], b"\xEF\xBB\xBFwith a mark")
        .exits(0);
    world.run_with_stdin(["exec", "sum up"], b"a\nb").exits(0);
    let prompts: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| {
            let body = seen.json();
            let last = body["messages"]
                .as_array()
                .and_then(|all| all.last().cloned())
                .unwrap_or_default();
            last["content"].as_str().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(
        prompts,
        [
            "from a pipe",
            "with a mark",
            "sum up\n\n<stdin>\na\nb\n</stdin>"
        ]
    );
}

#[test]
fn without_a_prompt_nothing_happens() {
    let world = World::new();
    let run = world.run(["exec", "--json"]).exits(1);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("no prompt"), "{}", run.stderr);
    assert!(world.sessions().is_empty());
}

#[test]
fn outside_a_repository_it_wants_to_be_told() {
    let world = World::new();
    std::fs::remove_dir_all(world.project().join(".git")).expect("the directory is there");
    let mut arguments = world.replay(&script(&[says("hi")]));
    arguments.extend(["exec".to_owned(), "hi".to_owned()]);
    let run = world.run(&arguments).exits(1);
    assert!(
        run.stderr.contains("--skip-git-repo-check"),
        "{}",
        run.stderr
    );
    arguments.push("--skip-git-repo-check".to_owned());
    world.run(&arguments).exits(0);
}

#[test]
fn the_last_message_goes_to_a_file_without_a_line_end() {
    let world = World::new();
    let mut arguments = world.replay(&script(&[says("the end")]));
    arguments.extend(["exec", "-o", "last.txt", "talk"].map(str::to_owned));
    world.run(arguments).exits(0);
    assert_eq!(world.read("last.txt"), "the end");
}

#[test]
fn a_refused_request_ends_the_turn_with_the_providers_words() {
    let world = World::new();
    let refusal = json!({"error": {"message": "bad thing happened", "type": "invalid_request_error", "code": "x"}});
    let server = Server::start([Answer::json(400, &refusal)]);
    configure(&world, &server);
    let run = world.run(["exec", "--json", "hi"]).exits(1);
    let events = run.events();
    assert_eq!(server.seen().len(), 1, "a 400 is not retried");
    assert_eq!(
        events.last().map(|event| event["type"].clone()),
        Some(json!("turn.failed"))
    );
    assert!(run.stdout.contains("bad thing happened"), "{}", run.stdout);
}

#[test]
fn a_cut_stream_is_asked_again_and_leaves_no_half_message() {
    let world = World::new();
    let half = event(&json!({"choices":[{"index":0,"delta":{"content":"The answer is forty"}}]}));
    let cut = Answer {
        end: End::Cut,
        ..Answer::sse(half)
    };
    let server = Server::start([cut, Answer::text("The answer is 42.")]);
    configure(&world, &server);
    let run = world.run(["exec", "--json", "hi"]).exits(0);
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, seen[1].body, "the same bytes are asked again");
    let texts: Vec<_> = run
        .events()
        .into_iter()
        .filter(|event| event["item"]["type"] == "agent_message")
        .collect();
    assert_eq!(texts.len(), 1);
    assert_eq!(texts[0]["item"]["text"], "The answer is 42.");
    assert!(run.stdout.contains("Reconnecting... 1/1"), "{}", run.stdout);
}

#[test]
fn missing_key_unknown_provider_and_refused_connection_say_what_to_do() {
    let world = World::new();
    let run = world
        .run(["exec", "-c", "model_provider=moonshotai", "hi"])
        .exits(1);
    assert!(run.stderr.contains("MOONSHOT_API_KEY"), "{}", run.stderr);
    let run = world
        .run(["exec", "-c", "model_provider=moonshot", "hi"])
        .exits(1);
    assert!(run.stderr.contains("moonshotai"), "{}", run.stderr);
    world.config(
        "model = \"m\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"Mock\"\n\
         base_url = \"http://127.0.0.1:9/v1\"\nwire_api = \"chat\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
    );
    let run = world.run(["exec", "hi"]).exits(1);
    assert!(run.stderr.contains("127.0.0.1:9"), "{}", run.stderr);
}

#[test]
fn a_bad_key_and_an_unknown_model_are_one_clear_message() {
    let world = World::new();
    let unauthorised = json!({"error": {"message": "invalid api key"}});
    let no_model = json!({"error": {"message": "model `mock-small` not found"}});
    let server = Server::start([
        Answer::json(401, &unauthorised),
        Answer::json(404, &no_model),
    ]);
    configure(&world, &server);
    let run = world.run(["exec", "hi"]).exits(1);
    assert!(run.stderr.contains("key"), "{}", run.stderr);
    let run = world.run(["exec", "hi"]).exits(1);
    assert!(run.stderr.contains("mock-small"), "{}", run.stderr);
    assert_eq!(server.seen().len(), 2, "neither is retried");
}

#[test]
fn a_typo_in_an_override_stops_before_anything_happens() {
    let world = World::new();
    let run = world
        .run(["exec", "-c", "sandbox_mod=read-only", "hi"])
        .exits(1);
    assert!(run.stderr.contains("sandbox_mode"), "{}", run.stderr);
    let run = world
        .run(["exec", "-c", "sandbox_mode=readonly", "hi"])
        .exits(1);
    assert!(run.stderr.contains("read-only"), "{}", run.stderr);
    world.config("model = \"m\"\nsandbox_mode = [1\n");
    let run = world.run(["exec", "hi"]).exits(1);
    assert!(run.stderr.contains("config.toml:2"), "{}", run.stderr);
    assert!(world.sessions().is_empty());
}

#[test]
fn an_ephemeral_session_leaves_no_file() {
    let world = World::new();
    let mut arguments = world.replay(&script(&[says("hi")]));
    arguments.extend(["exec", "--ephemeral", "hi"].map(str::to_owned));
    world.run(&arguments).exits(0);
    assert!(world.sessions().is_empty());
    arguments.retain(|argument| argument != "--ephemeral");
    world.run(&arguments).exits(0);
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn secrets_of_the_environment_do_not_reach_a_command() {
    let world = World::new();
    let server = Server::start([
        Answer::call(
            "c1",
            "exec_command",
            &json!({"cmd": "env; cat /proc/*/environ | tr '\\0' '\\n'"}),
        ),
        Answer::text("ok"),
    ]);
    configure(&world, &server);
    let output = world
        .command(["exec", "-s", "workspace-write", "show the environment"])
        .env("MOCK_API_KEY", "canary-secret-value")
        .env("PLAIN_NAME", "harmless")
        .output()
        .expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let body = String::from_utf8(server.seen()[1].body.clone()).expect("a body is UTF-8");
    assert!(
        body.contains("INTERPRETER_SANDBOX"),
        "the command ran: {body}"
    );
    assert!(!body.contains("canary-secret-value"), "{body}");
}

#[test]
fn a_resumed_session_sends_what_was_said_before() {
    let world = World::new();
    let server = Server::start([Answer::text("Your name is Ada."), Answer::text("Ada.")]);
    configure(&world, &server);
    let first = world.run(["exec", "--json", "I am Ada"]).exits(0);
    let second = world
        .run(["exec", "--json", "resume", "--last", "who am I?"])
        .exits(0);
    assert_eq!(first.events()[0], second.events()[0], "the same thread");
    let seen = server.seen();
    let (before, after) = (&seen[0].body, &seen[1].body);
    let common = before.len() - b"]}".len();
    assert_eq!(before[..common], after[..common], "the request only grows");
    let total = &second.events().pop().expect("a last event")["usage"]["input_tokens"];
    assert_eq!(total, 40, "usage is the thread's");
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn resuming_something_unknown_is_refused() {
    let world = World::new();
    let mut arguments = world.replay(&script(&[says("hi")]));
    arguments.extend(
        [
            "exec",
            "resume",
            "01a22fe2-1cdc-7763-9269-51407ed05aeb",
            "hi",
        ]
        .map(str::to_owned),
    );
    let run = world.run(&arguments).exits(1);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("01a22fe2"), "{}", run.stderr);
}

#[test]
fn a_silent_server_ends_the_turn_and_says_how_long_it_was_silent() {
    let world = World::new();
    let half = event(&json!({"choices":[{"index":0,"delta":{"content":"half"}}]}));
    let silent = Answer {
        end: End::Hold(std::time::Duration::from_secs(3)),
        ..Answer::sse(half)
    };
    let server = Server::start([silent]);
    world.config(&format!(
        "model = \"m\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"Mock\"\nbase_url = \"{}\"\n\
         stream_idle_timeout_ms = 300\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        server.base_url()
    ));
    let run = world.run(["exec", "--json", "hi"]).exits(1);
    assert!(run.stdout.contains("0.3 s"), "{}", run.stdout);
    assert_eq!(server.seen()[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert!(
        !run.stdout.contains("agent_message"),
        "half an answer is not one: {}",
        run.stdout
    );
}
