//! `cargo bench --bench figures`: prints the table of `tests/benches/README.md`, measured on the real program.
//!
//! Each case runs in a process of its own (this program again, with the case's name), because the system counts the
//! CPU time and peak memory of ended children per parent. Nothing is asserted: figures depend on the machine.

#![allow(
    clippy::print_stdout,
    reason = "printing a table is what this program does"
)]

#[path = "../support/server.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;
use server::{Answer, Server, event};
use tempfile::TempDir;

/// Runs of each case; the table shows the smallest, the median and the largest.
const ROUNDS: usize = 9;

/// A case: its name, what it runs, and what it shows.
type Case = (&'static str, fn(&Scratch) -> Command, &'static str);

/// The cases.
const CASES: [Case; 11] = [
    ("version", version, "`--version`"),
    ("plain-true", plain_true, "spawn of `true`, nothing else"),
    (
        "sandbox-true",
        sandbox_true,
        "`interpreter sandbox -- true`, whole process",
    ),
    ("one-turn", one_turn, "`exec`, one answer over HTTP"),
    (
        "deltas",
        deltas,
        "`exec`, one answer of 20,000 deltas over HTTP",
    ),
    (
        "turns-10",
        |s| tool_turns(s, 10, "danger-full-access"),
        "`exec`, 10 tool turns, no sandbox",
    ),
    (
        "turns-60",
        |s| tool_turns(s, 60, "danger-full-access"),
        "60",
    ),
    (
        "turns-450",
        |s| tool_turns(s, 450, "danger-full-access"),
        "450",
    ),
    (
        "turns-500",
        |s| tool_turns(s, 500, "danger-full-access"),
        "500",
    ),
    (
        "sandboxed-10",
        |s| tool_turns(s, 10, "workspace-write"),
        "10 tool turns, sandboxed",
    ),
    (
        "sandboxed-60",
        |s| tool_turns(s, 60, "workspace-write"),
        "60",
    ),
];

fn main() {
    // `cargo bench` and `cargo test --benches` add flags of their own; only a case's name is ours.
    if let Some(name) = std::env::args()
        .nth(2)
        .filter(|_| std::env::args().nth(1).as_deref() == Some("--case"))
    {
        let Some((_, build, _)) = CASES.into_iter().find(|(case, _, _)| *case == name) else {
            return;
        };
        return measure(build);
    }
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let size = std::fs::metadata(program()).map_or(0, |meta| meta.len());
    println!(
        "| case | wall ms (min / median / max) | CPU ms (median) | peak RSS MB |\n| --- | --- | --- | --- |"
    );
    let mut medians = std::collections::HashMap::new();
    for (name, _, what) in CASES {
        let mut samples: Vec<Sample> = (0..ROUNDS).filter_map(|_| sample(name)).collect();
        if samples.is_empty() {
            println!("| {name}: {what} | failed | | |");
            continue;
        }
        samples.sort_by(|a, b| a.wall.total_cmp(&b.wall));
        let middle = samples[samples.len() / 2];
        let mut cpu: Vec<f64> = samples.iter().map(|sample| sample.cpu).collect();
        cpu.sort_by(f64::total_cmp);
        let (low, high) = (samples[0].wall, samples[samples.len() - 1].wall);
        let rss = samples.iter().map(|sample| sample.rss).fold(0.0, f64::max);
        let cpu = cpu[cpu.len() / 2];
        println!(
            "| {name}: {what} | {low:.1} / {:.1} / {high:.1} | {cpu:.1} | {rss:.1} |",
            middle.wall
        );
        medians.insert(name, (middle.wall, cpu));
    }
    println!("\n| derived | wall ms | CPU ms |\n| --- | --- | --- |");
    for (what, more, less, turns) in [
        ("a tool turn at turn 10–60", "turns-60", "turns-10", 50.0),
        (
            "a tool turn at turn 450–500",
            "turns-500",
            "turns-450",
            50.0,
        ),
        (
            "a sandboxed tool turn",
            "sandboxed-60",
            "sandboxed-10",
            50.0,
        ),
    ] {
        if let (Some(more), Some(less)) = (medians.get(more), medians.get(less)) {
            println!(
                "| {what} | {:.2} | {:.2} |",
                (more.0 - less.0) / turns,
                (more.1 - less.1) / turns
            );
        }
    }
    println!(
        "\nbinary: {:.1} MB; first native request: {} bytes",
        mb(size),
        first_request()
    );
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    wall: f64,
    cpu: f64,
    rss: f64,
}

/// Runs a case in a process of its own and reads its three figures.
fn sample(case: &str) -> Option<Sample> {
    let me = std::env::current_exe().ok()?;
    let output = Command::new(me)
        .args(["--case", case])
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut figures = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || figures.next()?.ok();
    Some(Sample {
        wall: next()?,
        cpu: next()?,
        rss: next()?,
    })
}

fn measure(build: fn(&Scratch) -> Command) {
    let scratch = Scratch::new();
    let mut command = build(&scratch);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let start = Instant::now();
    let output = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("the case runs");
    let wall = start.elapsed();
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system counts its children");
    let ms = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().unsigned_abs(), 0).as_secs_f64() * 1e3
            + time.tv_usec() as f64 / 1e3
    };
    let cpu = ms(usage.user_time()) + ms(usage.system_time());
    println!(
        "{} {cpu} {}",
        wall.as_secs_f64() * 1e3,
        usage.max_rss() as f64 / 1e3
    );
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_interpreter"))
}

/// A home, a project, and a server where a case needs one.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temp directory can be made");
        for name in ["home", "project/.git"] {
            std::fs::create_dir_all(folder.path().join(name))
                .expect("an empty directory takes children");
        }
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn interpreter(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.path().join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("INTERPRETER_HOME", self.path().join("home"));
        command
    }

    /// A configuration with `provider = "bench"` at this server.
    fn configure(&self, server: &Server) {
        let text = format!(
            "model = \"bench\"\nmodel_provider = \"bench\"\nmax_requests_per_turn = 10000\n\
             [model_providers.bench]\nname = \"bench\"\nbase_url = \"{}\"\nwire_api = \"chat\"\n",
            server.base_url()
        );
        std::fs::write(self.path().join("home/config.toml"), text)
            .expect("a configuration can be written");
    }
}

fn version(scratch: &Scratch) -> Command {
    scratch.interpreter(&["--version"])
}

fn plain_true(_: &Scratch) -> Command {
    Command::new("true")
}

fn sandbox_true(scratch: &Scratch) -> Command {
    scratch.interpreter(&["sandbox", "--sandbox", "workspace-write", "--", "true"])
}

fn one_turn(scratch: &Scratch) -> Command {
    scratch.configure(&Server::start([Answer::text("done")]));
    scratch.interpreter(&["exec", "say done"])
}

fn deltas(scratch: &Scratch) -> Command {
    let delta = |_| {
        event(
            &json!({"id":"c","object":"chat.completion.chunk","created":1,"model":"bench",
        "choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}),
        )
    };
    let finish = json!({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]});
    let body: String = (0..20_000)
        .map(delta)
        .chain([event(&finish), "data: [DONE]\n\n".to_owned()])
        .collect();
    scratch.configure(&Server::start([Answer::sse(body)]));
    scratch.interpreter(&["exec", "--json", "talk"])
}

fn tool_turns(scratch: &Scratch, turns: usize, sandbox: &str) -> Command {
    let call = |n| {
        Answer::call(
            &format!("call_{n}"),
            "exec_command",
            &json!({"cmd": "true"}),
        )
    };
    let answers: Vec<Answer> = (0..turns).map(call).chain([Answer::text("done")]).collect();
    scratch.configure(&Server::start(answers));
    scratch.interpreter(&["exec", "-s", sandbox, "run it"])
}

/// Bytes of the first request of the native harness.
fn first_request() -> usize {
    let scratch = Scratch::new();
    let server = Server::start([Answer::text("done")]);
    scratch.configure(&server);
    let run = scratch
        .interpreter(&["exec", "-c", "harness=native", "say done"])
        .stdin(Stdio::null())
        .output();
    let fine = run.is_ok_and(|output| output.status.success());
    server
        .seen()
        .first()
        .filter(|_| fine)
        .map_or(0, |seen| seen.body.len())
}
