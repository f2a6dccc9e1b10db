//! The boundary, from outside: what a command tries, and what is there afterwards. Each attempt is also made without
//! the sandbox, where it must succeed: an attempt that cannot work shows nothing.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::support::program::{Run, World};

/// The arguments of a sandboxed shell script.
fn sandboxed<'a>(mode: &'a str, script: &'a str) -> Vec<&'a str> {
    vec!["sandbox", "--sandbox", mode, "--", "/bin/sh", "-c", script]
}

/// Runs a script as this user, and again as an ordinary one where this is root.
fn as_every_user(world: &World, arguments: &[&str]) -> Vec<(&'static str, Run)> {
    let mut runs = vec![("this user", world.run(arguments))];
    if nix::unistd::geteuid().is_root() && reachable_for_others() {
        runs.push(("an ordinary user", as_ordinary_user(world, arguments)));
    }
    runs
}

fn as_ordinary_user(world: &World, arguments: &[&str]) -> Run {
    open_to_all(world);
    let program = world.command(arguments);
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(world.project())
        .stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Run::of(command.output().expect("setpriv is a part of util-linux"))
}

/// Lets an ordinary user work in the scratch world, and reach the program that was built.
fn open_to_all(world: &World) {
    let opened = Command::new("chmod")
        .args(["-R", "a+rwX"])
        .arg(world.home().parent().expect("it has a parent"))
        .status();
    assert!(opened.expect("chmod runs").success());
}

/// Whether an ordinary user can execute the program here: builds below /root are closed to them.
fn reachable_for_others() -> bool {
    let mut path = std::path::PathBuf::from(env!("CARGO_BIN_EXE_interpreter"));
    while path.pop() {
        use std::os::unix::fs::PermissionsExt;
        let open = path
            .metadata()
            .is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
        if !open {
            return false;
        }
    }
    true
}

/// Attempts that must leave no trace outside: a script (`$OUT` is a directory outside the roots), and what would be
/// there.
const WRITES: [(&str, &str); 12] = [
    ("create", "echo x > $OUT/new; test -e $OUT/new"),
    ("append", "echo x >> $OUT/old; grep -q x $OUT/old"),
    ("truncate", ": > $OUT/full; test ! -s $OUT/full"),
    ("remove", "rm -f $OUT/gone; test ! -e $OUT/gone"),
    (
        "rename",
        "mv $OUT/moved $OUT/elsewhere; test -e $OUT/elsewhere",
    ),
    ("directory", "mkdir $OUT/dir; test -d $OUT/dir"),
    (
        "symbolic link",
        "ln -s /etc/passwd $OUT/link; test -L $OUT/link",
    ),
    ("hard link", "ln $OUT/old $OUT/hard; test -e $OUT/hard"),
    (
        "through a link inside",
        "ln -s $OUT inner; echo x > inner/through; test -e $OUT/through",
    ),
    (
        "mode",
        "chmod 600 $OUT/moded; test $(stat -c %a $OUT/moded) = 600",
    ),
    (
        "times",
        "touch -d 2001-01-01 $OUT/old; test $(stat -c %Y $OUT/old) -lt 1000000000",
    ),
    ("fifo", "mkfifo $OUT/fifo; test -p $OUT/fifo"),
];

fn outside(world: &World) -> String {
    let out = world
        .home()
        .parent()
        .expect("it has a parent")
        .join("outside");
    std::fs::create_dir_all(&out).expect("it can be made");
    for name in ["old", "full", "gone", "moved", "moded"] {
        std::fs::write(out.join(name), "content\n").expect("it can be written");
    }
    out.display().to_string()
}

#[test]
fn nothing_outside_the_roots_can_be_written() {
    for mode in ["workspace-write", "read-only"] {
        for (name, script) in WRITES {
            let world = World::new();
            // The scratch world lies in /tmp, which is private inside: what is outside is looked at from outside.
            let script = script.replace("$OUT", &outside(&world));
            let (attempt, look) = script.rsplit_once(';').expect("an attempt and a look");
            let arguments = sandboxed(mode, attempt);
            let users = as_every_user(&world, &arguments);
            for (user, run) in users {
                assert_ne!(
                    run.code,
                    Some(125),
                    "{mode}, {name}, {user}: {}",
                    run.stderr
                );
                let there = Command::new("/bin/sh")
                    .args(["-c", look])
                    .current_dir(world.project())
                    .status();
                assert!(
                    !there.expect("sh runs").success(),
                    "{mode}, {name}, {user}: it was done"
                );
            }
            let _ = std::fs::remove_file(world.project().join("inner"));
            world.run(sandboxed("danger-full-access", attempt));
            let there = Command::new("/bin/sh")
                .args(["-c", look])
                .current_dir(world.project())
                .status();
            assert!(
                there.expect("sh runs").success(),
                "{name}: the attempt does not work without a sandbox either"
            );
        }
    }
}

#[test]
fn the_workspace_is_written_in_one_mode_and_not_in_the_other() {
    let world = World::new();
    world
        .run(sandboxed(
            "workspace-write",
            "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && chmod 700 d",
        ))
        .exits(0);
    assert_eq!(world.read("d"), "x\n");
    let run = world.run(sandboxed("read-only", "cat d; echo y > d"));
    assert_ne!(run.code, Some(0));
    assert_eq!(
        (run.stdout.as_str(), world.read("d").as_str()),
        ("x\n", "x\n")
    );
    let extra = tempfile::tempdir().expect("a temp directory");
    let path = extra.path().display().to_string();
    let script = format!("echo x > {path}/x");
    world
        .run([
            "sandbox",
            "--add-dir",
            &path,
            "--",
            "/bin/sh",
            "-c",
            &script,
        ])
        .exits(0);
    assert!(extra.path().join("x").exists());
}

#[test]
fn protected_names_stay_as_they_are_and_do_not_come_into_being() {
    for script in [
        "echo x > .git/hooks",
        "rm -rf .git",
        "mv .git gone",
        "mkdir -p .agents/skills",
        "echo x > .codex/config",
        "mkdir .openinterpreter && echo x > .openinterpreter/config.toml",
        "rmdir .codex; mkdir .codex; echo x > .codex/y",
        "mv .agents elsewhere; echo x > .agents",
        "ln -s /tmp .agents/x",
        "chmod 777 .git",
    ] {
        let world = World::new();
        world.write(".git/config", "[core]\n");
        let mode = |path: &std::path::Path| {
            std::fs::metadata(path)
                .map(|meta| std::os::unix::fs::MetadataExt::mode(&meta))
                .ok()
        };
        let before = mode(&world.project().join(".git"));
        let run = world.run(sandboxed("workspace-write", script));
        assert_ne!(run.code, Some(0), "{script}");
        assert_eq!(world.read(".git/config"), "[core]\n", "{script}");
        assert_eq!(mode(&world.project().join(".git")), before, "{script}");
        let mut left: Vec<_> = std::fs::read_dir(world.project())
            .expect("readable")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".git"], "{script}: something is left");
    }
}

#[test]
fn credentials_and_our_own_files_cannot_be_read() {
    let world = World::new();
    let user = world
        .home()
        .parent()
        .expect("it has a parent")
        .to_path_buf();
    std::fs::create_dir_all(user.join(".ssh")).expect("it can be made");
    std::fs::write(user.join(".ssh/id"), "canary-ssh").expect("it can be written");
    std::fs::write(user.join(".netrc"), "canary-netrc").expect("it can be written");
    world.config("# canary-config\n");
    let add = user.display().to_string();
    // The whole scratch world is a root here, so that nothing is hidden by the private /tmp.
    let read = format!(
        "cat {add}/.ssh/id {add}/.netrc {add}/home/config.toml; ln -s {add}/.ssh s; cat s/id; ls {add}/.ssh; true"
    );
    let run = world
        .run(["sandbox", "--add-dir", &add, "--", "/bin/sh", "-c", &read])
        .exits(0);
    assert!(!run.stdout.contains("canary"), "{}", run.stdout);
    let open = world
        .run([
            "sandbox",
            "--sandbox",
            "danger-full-access",
            "--",
            "/bin/sh",
            "-c",
            &read,
        ])
        .exits(0);
    assert_eq!(open.stdout.matches("canary").count(), 4, "{}", open.stdout);
}

#[test]
fn the_network_is_off_and_loopback_works_inside() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 3)");
    let python = |mode: &str, code: &str| {
        world.run(["sandbox", "--sandbox", mode, "--", "python3", "-c", code])
    };
    assert_eq!(
        python("danger-full-access", &connect).code,
        Some(0),
        "the listener is there"
    );
    assert_ne!(python("workspace-write", &connect).code, Some(0));
    let allowed = "sandbox_workspace_write.network_access=true";
    let run = world.run([
        "sandbox",
        "--sandbox",
        "workspace-write",
        "-c",
        allowed,
        "--",
        "python3",
        "-c",
        &connect,
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let inside = "import socket,threading\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n\
                  threading.Thread(target=lambda: s.accept()[0].sendall(b'hi')).start()\n\
                  print(socket.create_connection(s.getsockname()).recv(2))";
    assert_eq!(python("workspace-write", inside).stdout, "b'hi'\n");
    for refused in [
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
        "socket.socket(socket.AF_VSOCK)",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_PACKET)",
    ] {
        let run = python("workspace-write", &format!("import socket; {refused}"));
        assert!(
            run.stderr.contains("PermissionError"),
            "{refused}: {}",
            run.stderr
        );
    }
}

#[test]
fn other_processes_the_kernel_and_the_environment_are_out_of_reach() {
    let world = World::new();
    let mut victim = Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let script = format!(
        "kill -9 {pid}; test -e /proc/{pid} && echo SEEN; echo x > /proc/sys/kernel/core_pattern && echo CORE; \
         unshare -r true && echo UNSHARE; mount -t tmpfs none /mnt && echo MOUNT; chroot / true && echo CHROOT; \
         ls /proc/self/fd | grep -vx '[0123]' && echo FDS; cat /proc/*/environ | tr '\\0' '\\n' | grep -c CANARY; id -u > /dev/null; true",
        pid = victim.id()
    );
    let output = world
        .command(sandboxed("workspace-write", &script))
        .env("CANARY_TOKEN", "x")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.trim(), "0", "{text}");
    assert!(
        victim.try_wait().expect("it can be asked").is_none(),
        "the victim lives"
    );
    victim.kill().expect("it is ours");
    victim.wait().expect("it ends");
}

#[test]
fn nothing_outlives_the_command_or_the_program() {
    let world = World::new();
    let marker = format!("{}", 700_000 + std::process::id() % 90_000);
    let script = format!(
        "setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit' &) ; sleep 0.1; echo done"
    );
    let run = world.run(sandboxed("workspace-write", &script)).exits(0);
    assert_eq!(run.stdout, "done\n");
    gone(&marker);
    let endless = format!("setsid sleep {marker} & sleep {marker}");
    let mut child = world
        .command(sandboxed("workspace-write", &endless))
        .spawn()
        .expect("it runs");
    until(|| running(&marker) >= 2, "the command runs");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    gone(&marker);
    let daemon = world
        .run(sandboxed(
            "danger-full-access",
            &format!("setsid sleep {marker} & echo started"),
        ))
        .exits(0);
    assert_eq!(daemon.stdout, "started\n");
    gone(&marker);
}

fn running(marker: &str) -> usize {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let commands = names.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let wanted = format!("sleep\0{marker}\0");
    commands
        .filter(|command| *command == wanted.as_bytes())
        .count()
}

fn gone(marker: &str) {
    until(|| running(marker) == 0, "everything is gone");
}

/// The kernel ends processes without telling us: looks until it is so.
fn until(fits: impl Fn() -> bool, what: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !fits() {
        assert!(
            std::time::Instant::now() < deadline,
            "waited too long until {what}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn exit_codes_and_streams_are_the_commands_own() {
    let world = World::new();
    assert_eq!(
        world.run(sandboxed("workspace-write", "exit 3")).code,
        Some(3)
    );
    assert_eq!(
        world
            .run(sandboxed("workspace-write", "kill -TERM $$"))
            .code,
        Some(143)
    );
    assert_eq!(
        world.run(["sandbox", "--", "no-such-program"]).code,
        Some(127)
    );
    world.write("data", "x");
    assert_eq!(world.run(["sandbox", "--", "./data"]).code, Some(126));
    let refused = world.run(["sandbox", "--cd", "/", "--", "true"]).exits(125);
    assert!(
        refused.stderr.contains("whole file system"),
        "{}",
        refused.stderr
    );
    let big = vec![b'x'; 30_000];
    let run = world
        .run_with_stdin(["sandbox", "--", "cat"], &big)
        .exits(0);
    assert_eq!(run.stdout.len(), big.len());
    let argv = world
        .run(["sandbox", "--", "printf", "[%s]", "a b", "", "$HOME", "-n"])
        .exits(0);
    assert_eq!(argv.stdout, "[a b][][$HOME][-n]");
}

#[test]
fn ordinary_work_goes_on_inside() {
    let work = [
        "git -c user.name=a -c user.email=a@b init -q repo && cd repo && touch f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline | grep -q x",
        "python3 -c 'import subprocess, asyncio, multiprocessing as m; subprocess.run([\"true\"], check=True); asyncio.run(asyncio.sleep(0)); p = m.Process(target=print); p.start(); p.join(); assert p.exitcode == 0'",
        "python3 -c 'import sqlite3; c = sqlite3.connect(\"d.db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(a)\"); c.commit()'",
        "printf 'all: a b\\na b:\\n\\ttouch $@\\n' > Makefile && make -s -j2 && test -e a && test -e b",
        "bash -c 'diff <(echo a) <(echo a)'",
        "mkfifo p && (echo x > p &) && test $(cat p) = x",
        "echo x > /tmp/t && test $(cat /var/tmp/t) = x && echo x > /dev/null && head -c4 /dev/urandom > /dev/shm/r",
        "test \"$(nproc)\" -ge 1 && ulimit -c | grep -qx 0 && test $INTERPRETER_SANDBOX = workspace-write",
        "script -qec 'test -t 0' /dev/null",
        "timeout 5 sh -c 'while :; do :; done & kill $!; wait'; true",
    ];
    for script in work {
        for ordinary in [false, true] {
            let world = World::new();
            let arguments = sandboxed("workspace-write", script);
            let run = if ordinary && nix::unistd::geteuid().is_root() && reachable_for_others() {
                as_ordinary_user(&world, &arguments)
            } else {
                world.run(&arguments)
            };
            assert_eq!(
                run.code,
                Some(0),
                "ordinary: {ordinary}: {script}\n{}{}",
                run.stdout,
                run.stderr
            );
        }
    }
    assert!(!std::path::Path::new("/tmp/t").exists(), "/tmp is private");
}

#[test]
fn a_commit_in_a_linked_worktree_is_refused_in_words_or_works() {
    let world = World::new();
    let scratch = world
        .home()
        .parent()
        .expect("it has a parent")
        .to_path_buf();
    let git = |arguments: &str| {
        let run = Command::new("/bin/sh")
            .args([
                "-c",
                &format!("git -c user.name=a -c user.email=a@b {arguments}"),
            ])
            .current_dir(&scratch)
            .output();
        assert!(run.expect("git runs").status.success(), "{arguments}");
    };
    git("init -q main");
    git("-C main commit -q --allow-empty -m a");
    git("-C main worktree add -q ../wt");
    let script = "touch f && git add f && git -c user.name=a -c user.email=a@b commit -qm b";
    let cd = scratch.join("wt").display().to_string();
    let run = world.run(["sandbox", "--cd", &cd, "--", "/bin/sh", "-c", script]);
    // The worktree's data lies outside the root: git cannot write its lock, and names the path.
    assert!(
        run.code == Some(0) || run.stderr.contains("worktrees/wt"),
        "{}",
        run.stderr
    );
}
