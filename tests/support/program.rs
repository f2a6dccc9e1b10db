//! A scratch home and project, and the real `interpreter` in them.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A home and a project that vanish with the test.
pub struct World {
    scratch: TempDir,
}

impl World {
    /// An empty home, and a project that is a git repository.
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a temp directory can be made");
        std::fs::create_dir(scratch.path().join("home")).expect("an empty directory takes a child");
        let world = Self { scratch };
        std::fs::create_dir_all(world.project().join(".git"))
            .expect("an empty directory takes a child");
        world
    }

    /// `INTERPRETER_HOME`.
    pub fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// The working directory.
    pub fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a parent"))
            .expect("parents can be made");
        std::fs::write(path, text).expect("a project file can be written");
    }

    /// Reads a file of the project.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).expect("the project file is there")
    }

    /// Writes `config.toml`.
    pub fn config(&self, text: &str) {
        std::fs::write(self.home().join("config.toml"), text)
            .expect("the configuration can be written");
    }

    /// Writes a transcript for the replay provider and gives the flags that use it.
    pub fn replay(&self, script: &Value) -> Vec<String> {
        let path = self.home().join("script.json");
        std::fs::write(&path, script.to_string()).expect("a script can be written");
        vec![
            "-c".to_owned(),
            "model_provider=replay".to_owned(),
            "-c".to_owned(),
            format!("replay={}", path.display()),
        ]
    }

    /// The program in the project, with a clean environment.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interpreter"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("INTERPRETER_HOME", self.home())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        Run::of(
            self.command(arguments)
                .output()
                .expect("the program can be started"),
        )
    }

    /// Runs the program with this on its stdin.
    pub fn run_with_stdin<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        stdin: &[u8],
    ) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        child
            .stdin
            .take()
            .expect("stdin is piped")
            .write_all(stdin)
            .expect("the program reads its stdin");
        Run::of(child.wait_with_output().expect("the program ends"))
    }

    /// The session files, oldest first.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.home().join("sessions"), &mut found);
        found.retain(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` for a signal.
    pub code: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl Run {
    /// Takes an output apart.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing everything when it differs.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// The events of `--json`.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let parse =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}
