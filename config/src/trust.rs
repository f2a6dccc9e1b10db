//! Which project a directory belongs to, and whether the user trusts it.

use std::path::{Path, PathBuf};

/// What the user decided. No decision is `None`, and counts as untrusted for everything that could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its configuration is read.
    Trusted,
    /// Its configuration is ignored.
    Untrusted,
}

/// The nearest ancestor (or the directory itself) that holds one of the markers.
#[must_use]
pub fn project_root(cwd: &Path, markers: &[String]) -> Option<PathBuf> {
    let marked = |folder: &&Path| markers.iter().any(|marker| folder.join(marker).exists());
    cwd.ancestors().find(marked).map(Path::to_path_buf)
}

/// The first decision found for the directory, its project's root, or the main repository of its linked worktree.
pub fn look_up(
    cwd: &Path,
    markers: &[String],
    decision: impl Fn(&Path) -> Option<Trust>,
) -> Option<Trust> {
    let root = project_root(cwd, markers);
    let main = root.as_deref().and_then(main_repository);
    [Some(cwd.to_path_buf()), root, main]
        .into_iter()
        .flatten()
        .find_map(|path| decision(&path))
}

/// The working directory of the repository that a linked worktree belongs to: `.git` is then a file that names
/// `MAIN/.git/worktrees/NAME`, whose `gitdir` names that file in turn. Without the way back anybody's `.git` file could
/// claim the trust of another project.
fn main_repository(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if !link.metadata().ok()?.is_file() {
        return None;
    }
    let text = std::fs::read_to_string(&link).ok()?;
    let folder = root
        .join(text.strip_prefix("gitdir:")?.trim())
        .canonicalize()
        .ok()?;
    let back = std::fs::read_to_string(folder.join("gitdir")).ok()?;
    let back = folder.join(back.trim()).canonicalize().ok()?;
    let worktrees = folder.parent()?;
    let git = worktrees.parent()?;
    let fits = back == link.canonicalize().ok()?
        && worktrees.file_name()? == "worktrees"
        && git.file_name()? == ".git";
    fits.then(|| git.parent().map(Path::to_path_buf)).flatten()
}

#[cfg(test)]
mod tests;
