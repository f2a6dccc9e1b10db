use super::*;

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temp directory can be made");
    let path = folder.path().canonicalize().expect("it was just made");
    (folder, path)
}

fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file has a parent"))
        .expect("parents can be made");
    std::fs::write(path, text).expect("a file can be written");
}

fn markers() -> Vec<String> {
    vec![".git".to_owned()]
}

/// A repository `main` with a linked worktree `side`, as git lays them out.
fn worktree(folder: &Path) {
    let entry = folder.join("main/.git/worktrees/side");
    write(
        entry.join("gitdir"),
        &format!("{}/side/.git\n", folder.display()),
    );
    write(
        folder.join("side/.git"),
        &format!("gitdir: {}\n", entry.display()),
    );
}

#[test]
fn the_root_is_the_nearest_marked_ancestor() {
    let (_guard, folder) = scratch();
    write(folder.join("outer/.git/HEAD"), "");
    write(folder.join("outer/inner/.hg/x"), "");
    write(folder.join("outer/inner/deep/file"), "");
    let deep = folder.join("outer/inner/deep");
    assert_eq!(project_root(&deep, &markers()), Some(folder.join("outer")));
    let both = [".git".to_owned(), ".hg".to_owned()];
    assert_eq!(project_root(&deep, &both), Some(folder.join("outer/inner")));
    assert_eq!(project_root(&deep, &[]), None);
}

#[test]
fn the_directory_decides_before_its_project_and_that_before_the_main_repository() {
    let (_guard, folder) = scratch();
    worktree(&folder);
    write(folder.join("side/deep/file"), "");
    let deep = folder.join("side/deep");
    let order = [deep.clone(), folder.join("side"), folder.join("main")];
    for (at, path) in order.iter().enumerate() {
        // What comes later says the opposite.
        let found = look_up(&deep, &markers(), |asked| {
            let place = order.iter().position(|known| known == asked)?;
            match place.cmp(&at) {
                std::cmp::Ordering::Less => None,
                std::cmp::Ordering::Equal => Some(Trust::Trusted),
                std::cmp::Ordering::Greater => Some(Trust::Untrusted),
            }
        });
        assert_eq!(found, Some(Trust::Trusted), "{}", path.display());
    }
    assert_eq!(look_up(&deep, &markers(), |_| None), None);
}

#[test]
fn a_git_file_that_the_repository_does_not_know_inherits_no_trust() {
    let (_guard, folder) = scratch();
    worktree(&folder);
    let entry = folder.join("main/.git/worktrees/side");
    write(
        folder.join("stranger/.git"),
        &format!("gitdir: {}\n", entry.display()),
    );
    let main = folder.join("main");
    let trusts_main = |path: &Path| (path == main).then_some(Trust::Trusted);
    let found = |name: &str| look_up(&folder.join(name), &markers(), trusts_main);
    assert_eq!(found("side"), Some(Trust::Trusted));
    assert_eq!(found("stranger"), None);
    write(folder.join("side/.git"), "gitdir: ../nowhere\n");
    assert_eq!(found("side"), None);
}
