//! Gathers the facts of the surroundings. Reads files and the clock; starts no process.

use std::path::Path;

use interpreter_config::instructions::{DiscoverOptions, discover};
use interpreter_messages::journal::EnvFacts;
use interpreter_messages::session::SessionSettings;

/// The facts, and what the user should hear of them.
#[must_use]
pub fn gather(settings: &SessionSettings, home: &Path) -> (EnvFacts, Vec<String>) {
    let found = discover(&DiscoverOptions {
        cwd: settings.cwd.clone(),
        home: home.to_path_buf(),
        max_bytes: settings.project_doc_max_bytes,
        fallback_names: settings.project_doc_fallback.clone(),
        root_markers: settings.root_markers.clone(),
    });
    let now = jiff::Zoned::now();
    let facts = EnvFacts {
        cwd: settings.cwd.clone(),
        shell: if Path::new("/bin/bash").exists() {
            "bash"
        } else {
            "sh"
        }
        .to_owned(),
        date: now.date().to_string(),
        timezone: now.time_zone().iana_name().unwrap_or("UTC").to_owned(),
        os: std::env::consts::OS.to_owned(),
        os_version: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        git: settings
            .cwd
            .ancestors()
            .any(|folder| folder.join(".git").exists()),
        sandbox: settings.sandbox.mode,
        roots: settings.sandbox.roots.clone(),
        network: settings.sandbox.network,
        approval: settings.approval,
        instructions: found.files,
    };
    (facts, found.warnings)
}
