//! The profiles that come with the program, as files.

/// A profile's files: path below its folder, and text.
pub type Files = &'static [(&'static str, &'static str)];

macro_rules! profile {
    ($id:literal, $($file:literal),+ $(,)?) => {
        ($id, &[$(($file, include_str!(concat!("../profiles/", $id, "/", $file)))),+])
    };
}

const PROFILES: &[(&str, Files)] = &[
    profile!(
        "native",
        "harness.toml",
        "system.md",
        "permissions.md",
        "instructions.md",
        "environment.md",
        "interrupted.md",
        "tools/exec_command.toml",
        "tools/write_stdin.toml",
        "tools/update_plan.toml",
        "tools/apply_patch.toml",
        "tools/view_image.toml",
    ),
    profile!(
        "minimal",
        "harness.toml",
        "system.md",
        "interrupted.md",
        "tools/bash.toml",
        "tools/read.toml",
        "tools/write.toml",
        "tools/edit.toml",
        "tools/glob.toml",
        "tools/grep.toml",
    ),
];

/// Ids of the profiles that come with the program.
pub fn ids() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(id, _)| *id)
}

/// Files of such a profile.
pub fn files(id: &str) -> Option<Files> {
    PROFILES
        .iter()
        .find(|(known, _)| *known == id)
        .map(|(_, files)| *files)
}
