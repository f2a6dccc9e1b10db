use super::*;

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().expect("a temp directory can be made");
        for (path, bytes) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a file has a parent"))
                .expect("parents can be made");
            std::fs::write(path, bytes).expect("a file can be written");
        }
        Self { folder }
    }

    fn discover(&self, cwd: &str, max_bytes: usize) -> Discovered {
        discover(&DiscoverOptions {
            cwd: self.folder.path().join(cwd),
            home: self.folder.path().join("home"),
            max_bytes,
            fallback_names: vec!["CLAUDE.md".to_owned()],
            root_markers: vec![".git".to_owned()],
        })
    }
}

fn texts(found: &Discovered) -> Vec<&str> {
    found.files.iter().map(|file| file.text.as_str()).collect()
}

#[test]
fn files_are_read_from_home_and_root_to_cwd_and_overrides_win() {
    let tree = Tree::new(&[
        ("home/AGENTS.md", b"home"),
        ("AGENTS.md", b"outside the project"),
        ("repo/.git/x", b""),
        ("repo/AGENTS.md", b"root"),
        ("repo/AGENTS.override.md", b"root override"),
        ("repo/a/CLAUDE.md", b"fallback"),
        ("repo/a/b/AGENTS.md", b"near"),
    ]);
    let found = tree.discover("repo/a/b", 1000);
    assert_eq!(texts(&found), ["home", "root override", "fallback", "near"]);
    assert!(found.warnings.is_empty());
}

#[test]
fn the_nearest_file_survives_the_budget() {
    let big = "root rule line\n".repeat(2731);
    let tree = Tree::new(&[
        ("AGENTS.md", big.as_bytes()),
        (".git/x", b""),
        ("crates/ui/AGENTS.md", b"NEAREST-RULE\n"),
    ]);
    let found = tree.discover("crates/ui", 32768);
    assert_eq!(
        found
            .files
            .iter()
            .map(|file| file.text.len())
            .sum::<usize>(),
        32768
    );
    assert_eq!(found.files[1].text, "NEAREST-RULE\n");
    assert!(found.files[0].cut);
    assert!(
        found.warnings[0].contains("AGENTS.md") && found.warnings[0].contains("32768"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn a_cut_falls_between_characters_and_bad_bytes_are_told() {
    let tree = Tree::new(&[(".git/x", b""), ("AGENTS.md", "aéé".as_bytes())]);
    assert_eq!(texts(&tree.discover(".", 4)), ["aé"]);
    let tree = Tree::new(&[(".git/x", b""), ("AGENTS.md", b"caf\xE9")]);
    let found = tree.discover(".", 100);
    assert_eq!(texts(&found), ["caf\u{fffd}"]);
    assert!(found.warnings[0].contains("UTF-8"));
}
