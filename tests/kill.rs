//! kill -9, Ctrl-C and SIGTERM on the real program, and what a resume finds.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use interpreter_messages::SessionId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::crash::valid;
use crate::exec::configure;
use crate::support::processes;
use crate::support::program::World;
use crate::support::server::{Answer, Server, event};

/// A model that streams slowly, runs a command, patches a file and stops; after a resume it says one thing.
fn model() -> Server {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";
    Server::answering(move |seen| {
        let body = String::from_utf8_lossy(&seen.body);
        let results = body.matches("\"role\":\"tool\"").count();
        if body.contains("carry on") {
            return Answer::text("I carry on.");
        }
        match results {
            0 => slow(Answer::call(
                "c1",
                "exec_command",
                &json!({"cmd": "echo ran >> runs.txt; sleep 0.2; echo end >> runs.txt"}),
            )),
            1 => slow(Answer::call("c2", "apply_patch", &json!({"input": patch}))),
            _ => slow(Answer::text("Done.")),
        }
    })
}

/// The same answer with words before it, 10 ms apart.
fn slow(answer: Answer) -> Answer {
    let word = event(&json!({"choices":[{"index":0,"delta":{"content":"word "}}]})).into_bytes();
    let mut pieces: Vec<_> = (0..5)
        .map(|_| (Duration::from_millis(10), word.clone()))
        .collect();
    pieces.extend(answer.pieces.clone());
    Answer { pieces, ..answer }
}

fn start(world: &World) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = world
        .command(["exec", "--json", "-s", "workspace-write", "go"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    (child, stdout)
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid fits"));
    kill(pid, signal).expect("our child can be signalled");
}

fn session_of(world: &World) -> SessionId {
    let path = world.sessions().pop().expect("a session file is there");
    let name = path
        .file_stem()
        .expect("a file has a name")
        .to_string_lossy()
        .into_owned();
    name[name.len() - 36..]
        .parse()
        .expect("the name ends in the session's id")
}

/// Resumes after a kill, and checks what must hold whatever the moment was.
fn resume_and_check(world: &World, server: &Server, what: &str) {
    let runs = std::fs::read_to_string(world.project().join("runs.txt")).unwrap_or_default();
    assert!(
        runs.lines().filter(|line| *line == "ran").count() <= 1,
        "{what}: {runs}"
    );
    assert!(
        ["one\n", "1\n"].contains(&world.read("a.txt").as_str()),
        "{what}: torn file"
    );
    if world.sessions().is_empty() {
        return;
    }
    let session = session_of(world);
    processes::wait_until_gone(session);
    let leftovers: Vec<_> = std::fs::read_dir(world.project())
        .expect("the project is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| ![".git", "a.txt", "runs.txt"].contains(&name.as_str()))
        .collect();
    assert!(leftovers.is_empty(), "{what}: {leftovers:?}");
    let rollout =
        std::fs::read_to_string(&world.sessions()[0]).expect("the session file is readable");
    if !rollout.contains("\"go\"") {
        // The kill came before anything was said to anyone: there is nothing to go on with.
        assert!(
            server.seen().is_empty(),
            "{what}: asked before the question was journalled"
        );
        return;
    }
    let run = world.run([
        "exec",
        "--json",
        "-s",
        "workspace-write",
        "resume",
        "--last",
        "carry on",
    ]);
    assert_eq!(run.code, Some(0), "{what}: {}\n{}", run.stdout, run.stderr);
    let last = server
        .seen()
        .pop()
        .expect("the resumed session asks")
        .json();
    valid(&last, what);
    assert!(
        last.to_string().contains("\"go\""),
        "{what}: what was said is there: {last:#}"
    );
    let after = std::fs::read_to_string(world.project().join("runs.txt")).unwrap_or_default();
    assert_eq!(runs, after, "{what}: a resume runs nothing again");
    for line in std::fs::read_to_string(&world.sessions()[0])
        .expect("the session file is readable")
        .lines()
    {
        serde_json::from_str::<Value>(line)
            .unwrap_or_else(|error| panic!("{what}: {error}: {line}"));
    }
}

#[test]
fn after_a_kill_at_any_event_a_resume_finds_a_valid_conversation() {
    for nth in 1..=7 {
        let world = World::new();
        world.write("a.txt", "one\n");
        let server = model();
        configure(&world, &server);
        let (mut child, stdout) = start(&world);
        let line = stdout.lines().nth(nth - 1);
        signal(&child, Signal::SIGKILL);
        child.wait().expect("a killed child ends");
        resume_and_check(
            &world,
            &server,
            &format!("killed after event {nth}: {line:?}"),
        );
    }
}

#[test]
fn after_a_kill_at_any_time_a_resume_finds_a_valid_conversation() {
    for step in 0..16 {
        let world = World::new();
        world.write("a.txt", "one\n");
        let server = model();
        configure(&world, &server);
        let (mut child, stdout) = start(&world);
        let after = Duration::from_millis(5 + step * 35);
        // The moment is the subject of this test, not something to wait for.
        let timer = std::thread::spawn(move || std::thread::sleep(after));
        timer.join().expect("a timer ends");
        signal(&child, Signal::SIGKILL);
        child.wait().expect("a killed child ends");
        drop(stdout);
        resume_and_check(&world, &server, &format!("killed after {after:?}"));
    }
}

/// Starts a turn that runs a long command with a child that left its process group, and waits until it runs.
fn long_turn(world: &World) -> (Child, BufReader<std::process::ChildStdout>) {
    let (child, mut stdout) = start(world);
    let mut line = String::new();
    while !line.contains("item.started") {
        line.clear();
        assert!(
            stdout.read_line(&mut line).expect("stdout is readable") > 0,
            "the program ended too early"
        );
    }
    (child, stdout)
}

fn long_model() -> Server {
    Server::answering(|seen| {
        if String::from_utf8_lossy(&seen.body).contains("carry on") {
            return Answer::text("I carry on.");
        }
        Answer::call(
            "c1",
            "exec_command",
            &json!({"cmd": "trap '' INT; setsid sleep 300 & sleep 300"}),
        )
    })
}

#[test]
fn signals_end_the_turn_with_a_terminal_event_and_leave_no_process() {
    for (name, number) in [("SIGINT", Signal::SIGINT), ("SIGTERM", Signal::SIGTERM)] {
        let world = World::new();
        let server = long_model();
        configure(&world, &server);
        let (mut child, stdout) = long_turn(&world);
        signal(&child, number);
        let rest: Vec<String> = stdout.lines().map_while(Result::ok).collect();
        let code = child.wait().expect("the program ends").code();
        assert_eq!(code, Some(1), "{name}");
        let last: Value =
            serde_json::from_str(rest.last().expect("a terminal event")).expect("JSON lines");
        assert_eq!(last["type"], "turn.failed", "{name}: {rest:?}");
        assert!(
            rest.iter().any(|line| line.contains("item.completed")),
            "{name}: the open item is closed: {rest:?}"
        );
        let session = session_of(&world);
        processes::wait_until_gone(session);
        world
            .run(["exec", "--json", "resume", "--last", "carry on"])
            .exits(0);
        valid(&server.seen().pop().expect("it asked").json(), name);
    }
}

#[test]
fn a_killed_program_takes_its_commands_with_it() {
    let world = World::new();
    let server = long_model();
    configure(&world, &server);
    let (mut child, _stdout) = long_turn(&world);
    let session = session_of(&world);
    processes::wait_until_there(session);
    signal(&child, Signal::SIGKILL);
    child.wait().expect("a killed child ends");
    processes::wait_until_gone(session);
}
