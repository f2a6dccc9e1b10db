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

#[test]
fn the_global_file_is_beside_the_budget_and_survives_zero() {
    let tree = Tree::new(&[
        ("home/AGENTS.override.md", b" \n"),
        ("home/AGENTS.md", b"global rule"),
        (".git/x", b""),
        ("AGENTS.md", b"project rule"),
    ]);
    assert_eq!(texts(&tree.discover(".", 7)), ["global rule", "project"]);
    let found = tree.discover(".", 0);
    assert_eq!(texts(&found), ["global rule"]);
    assert!(found.warnings.is_empty());
    // Inside our home, its file is read once.
    assert_eq!(
        texts(&tree.discover("home", 100)),
        ["global rule", "project rule"]
    );
}

#[test]
fn an_empty_override_hides_the_file_beside_it() {
    let tree = Tree::new(&[
        (".git/x", b""),
        ("AGENTS.override.md", b"\n"),
        ("AGENTS.md", b"hidden"),
    ]);
    assert_eq!(tree.discover(".", 100), Discovered::default());
}

#[test]
fn without_a_marker_only_the_working_directory_speaks() {
    let tree = Tree::new(&[("AGENTS.md", b"above"), ("a/AGENTS.md", b"here")]);
    assert_eq!(texts(&tree.discover("a", 100)), ["here"]);
}

#[test]
fn what_does_not_fit_at_all_is_left_out_and_said() {
    let tree = Tree::new(&[
        (".git/x", b""),
        ("AGENTS.md", "é".as_bytes()),
        ("a/AGENTS.md", b"near"),
    ]);
    for budget in [4, 5] {
        let found = tree.discover("a", budget);
        assert_eq!(texts(&found), ["near"]);
        assert!(
            found.warnings[0].contains("left out"),
            "{:?}",
            found.warnings
        );
    }
}

#[test]
fn a_directory_or_a_link_to_nothing_is_no_file_and_a_link_is_followed() {
    let tree = Tree::new(&[
        (".git/x", b""),
        ("AGENTS.override.md/x", b""),
        ("elsewhere", b"\xEF\xBB\xBFlinked"),
    ]);
    let root = tree.folder.path();
    std::os::unix::fs::symlink("elsewhere", root.join("AGENTS.md")).expect("the name is free");
    assert_eq!(texts(&tree.discover(".", 100)), ["linked"]);
    std::fs::remove_file(root.join("elsewhere")).expect("it is there");
    assert_eq!(tree.discover(".", 100), Discovered::default());
}

proptest::proptest! {
    #[test]
    fn any_bytes_give_text_within_the_budget(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40), budget in 1..40_usize) {
        let tree = Tree::new(&[(".git/x", b""), ("AGENTS.md", &bytes)]);
        let found = tree.discover(".", budget);
        for file in &found.files {
            proptest::prop_assert!(file.text.len() <= budget && !file.text.trim().is_empty());
            // Nothing is made up at the cut.
            if let Ok(whole) = std::str::from_utf8(&bytes) {
                let whole = whole.trim_start_matches('\u{feff}');
                proptest::prop_assert!(whole.starts_with(&file.text));
            }
            proptest::prop_assert_eq!(file.cut, !found.warnings.iter().all(|told| !told.contains("budget")));
        }
    }
}
