//! Which processes of a session still run, by the marker that the sandbox gives each of them.

use interpreter_messages::SessionId;

/// Command lines of processes whose environment or command line names this session.
pub fn of_session(session: SessionId) -> Vec<String> {
    let marker = session.to_string();
    let mut found = Vec::new();
    let me = std::process::id().to_string();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == me || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let read = |file| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let (command, environment) = (read("cmdline"), read("environ"));
        let names = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&marker);
        if names(&command) || names(&environment) {
            found.push(format!(
                "{name}: {}",
                String::from_utf8_lossy(&command).replace('\0', " ")
            ));
        }
    }
    found
}

/// Waits until no process of the session is left. The kernel ends them; nothing tells us when, so this looks again.
pub fn wait_until_gone(session: SessionId) {
    wait_until(session, "processes are left", |left| left.is_empty());
}

/// Waits until a process of the session runs.
pub fn wait_until_there(session: SessionId) {
    wait_until(session, "no process runs", |running| !running.is_empty());
}

fn wait_until(session: SessionId, otherwise: &str, fits: impl Fn(&[String]) -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let now = of_session(session);
        if fits(&now) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{otherwise}: {now:?}");
        std::thread::yield_now();
    }
}
