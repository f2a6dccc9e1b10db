use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use interpreter_messages::journal::Entry;
use tempfile::TempDir;

use super::*;
use crate::load;
use crate::testing::{FaultyDisk, batch, meta, session, turn};

fn home() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn append(store: &JournalStore, batches: Vec<Batch>) -> Vec<Appended> {
    let epoch = store.begin();
    store
        .append(epoch, batches, SyncPolicy::Turn)
        .expect("the only writer")
}

/// A session's file, closed.
fn written(home: &TempDir, turns: u64) -> PathBuf {
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let appended = append(&store, session(turns));
    assert!(appended.iter().all(Result::is_ok));
    store.path().expect("a file").to_owned()
}

fn entries(store: &JournalStore) -> Vec<Entry> {
    let records = store.loaded().records;
    records.iter().map(|record| record.entry.clone()).collect()
}

fn expected(turns: u64) -> Vec<Entry> {
    session(turns).into_iter().flat_map(|b| b.entries).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

fn assert_every_line_is_json(path: &Path) {
    let text = fs::read_to_string(path).expect("text");
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(value.is_object());
    }
}

#[test]
fn a_new_session_has_its_place_and_nobody_else_can_read_it() {
    let home = home();
    let path = written(&home, 1);
    let relative = path.strip_prefix(home.path()).expect("below home");
    let shown = relative.to_string_lossy();
    assert!(shown.starts_with("sessions/2026/1"), "{shown}");
    assert!(shown.ends_with(&format!("-{}.jsonl", meta().id)), "{shown}");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.path().join("sessions")), 0o700);
    assert_every_line_is_json(&path);
}

#[test]
fn a_session_comes_back_as_it_was_and_goes_on() {
    let home = home();
    let path = written(&home, 2);
    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(store.meta(), meta());
    assert_eq!(entries(&store), expected(2));
    let loaded = store.loaded();
    assert_eq!((loaded.session_batch, loaded.approval_batch), (13, 0));
    assert_eq!(loaded.inherited, expected(2).len());
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let appended = append(&store, turn(3, 14, 4));
    assert!(appended.iter().all(Result::is_ok));
    drop(store);
    let store = JournalStore::open(&path).expect("it opens again");
    assert_eq!(entries(&store), expected(3));
}

#[test]
fn what_is_acknowledged_is_what_is_loaded() {
    let home = home();
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let mut acknowledged = Vec::new();
    for appended in append(&store, session(1)) {
        acknowledged.extend(appended.expect("written").records);
    }
    let path = store.path().expect("a file").to_owned();
    drop(store);
    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(acknowledged, store.loaded().records);
}

#[test]
fn a_batch_that_is_sent_again_is_written_once_and_acknowledged_again() {
    let home = home();
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let first = append(&store, session(1));
    let length = fs::metadata(store.path().expect("a file"))
        .expect("facts")
        .len();
    let again = append(&store, session(1));
    assert_eq!(
        fs::metadata(store.path().expect("a file"))
            .expect("facts")
            .len(),
        length
    );
    for (a, b) in first.into_iter().zip(again) {
        assert_eq!(a.expect("written").records, b.expect("repeated").records);
    }
    let twice_in_one_go = append(&store, [turn(2, 8, 2), turn(2, 8, 2)].concat());
    assert!(twice_in_one_go.iter().all(Result::is_ok));
    assert_eq!(entries(&store), expected(2));
}

#[test]
fn a_batch_is_not_written_before_the_one_before_it() {
    let store = JournalStore::create(Path::new("/nowhere"), &meta(), true).expect("in memory");
    let notice = |number| {
        batch(
            number,
            vec![Entry::Notice {
                text: "n".to_owned(),
            }],
        )
    };
    let appended = append(&store, vec![notice(1), notice(3), notice(2)]);
    assert!(appended[0].is_ok() && appended[2].is_ok());
    let (writer, error) = appended[1].as_ref().expect_err("a gap");
    assert_eq!(*writer, Writer::Session);
    assert_eq!(error, "batch 3 of Session came where 2 was expected");
    assert_eq!(store.loaded().session_batch, 2);
}

#[test]
fn a_session_in_memory_leaves_no_file() {
    let home = home();
    let store = JournalStore::create(home.path(), &meta(), true).expect("a store");
    append(&store, session(1));
    assert_eq!(entries(&store), expected(1));
    assert_eq!(store.path(), None);
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0);
}

#[test]
fn an_earlier_life_of_the_writer_writes_nothing_any_more() {
    let store = JournalStore::create(Path::new("/nowhere"), &meta(), true).expect("in memory");
    let old = store.begin();
    let new = store.begin();
    assert!(store.append(old, session(0), SyncPolicy::Turn).is_none());
    assert_eq!(store.loaded().records, []);
    assert!(store.append(new, session(0), SyncPolicy::Turn).is_some());
}

#[test]
fn a_second_writer_is_refused_and_told_who_the_first_is() {
    let home = home();
    let path = written(&home, 1);
    let first = JournalStore::open(&path).expect("it opens");
    let error = JournalStore::open(&path).expect_err("it is in use");
    let StoreError::InUse { pid, .. } = &error else {
        panic!("{error}");
    };
    // Some container file systems do not show their locks; where they are shown, it is us.
    assert!(pid.is_none() || *pid == Some(std::process::id()), "{error}");
    drop(first);
    JournalStore::open(&path).expect("the lock went with the first writer");
}

#[test]
fn an_ended_process_holds_no_lock() {
    let home = home();
    let path = written(&home, 1);
    // `flock` keeps the lock as long as its command runs: the shell says when it has it.
    let mut other = std::process::Command::new("flock")
        .arg(&path)
        .args(["sh", "-c", "echo locked; cat"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("flock is a part of util-linux");
    let mut line = String::new();
    let out = other.stdout.as_mut().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a word");
    let error = JournalStore::open(&path).expect_err("it is in use");
    assert!(
        error.to_string().contains("is in use by another process"),
        "{error}"
    );
    drop(other.stdin.take());
    other.wait().expect("it ended");
    JournalStore::open(&path).expect("the lock went with the process");
}

#[test]
fn a_torn_last_line_costs_nothing_but_itself() {
    let case: serde_json::Value =
        serde_json::from_str(include_str!("../../testdata/cases/torn-last-line.json"))
            .expect("JSON");
    let turns = case["make"]["turns"].as_u64().expect("a number");
    let home = home();
    let path = written(&home, turns);
    let torn = case["damage"][0]["append_bytes"]["b64"]
        .as_str()
        .expect("text");
    let torn =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, torn).expect("base64");
    let mut bytes = fs::read(&path).expect("the file");
    bytes.extend_from_slice(&torn);
    fs::write(&path, &bytes).expect("damaged");

    let store = JournalStore::open(&path).expect("resumes");
    assert_eq!(entries(&store), expected(turns));
    let warnings = store.loaded().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("was not written to its end"),
        "{warnings:?}"
    );
    let side = format!("{}.lost-1", path.display());
    assert!(warnings[0].contains(&side), "{warnings:?}");
    assert_eq!(fs::read(side).expect("the side file"), torn);
    assert_every_line_is_json(&path);

    append(&store, turn(turns + 1, turns * 6 + 2, turns * 2));
    drop(store);
    let store = JournalStore::open(&path).expect("resumes again");
    assert_eq!(entries(&store), expected(turns + 1));
    assert_eq!(store.loaded().warnings, Vec::<String>::new());
}

#[test]
fn damage_in_the_middle_is_moved_aside_and_the_file_is_valid_again() {
    let home = home();
    let path = written(&home, 2);
    let text = fs::read_to_string(&path).expect("text");
    let mut lines: Vec<&str> = text.lines().collect();
    let damaged = "{\"timestamp\":\"2026";
    lines[9] = damaged;
    fs::write(&path, lines.join("\n") + "\n").expect("damaged");

    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(entries(&store).len(), expected(2).len() - 1);
    let warnings = store.loaded().warnings;
    assert!(warnings[0].contains("line 10 is damaged"), "{warnings:?}");
    assert_every_line_is_json(&path);
    assert_eq!(mode(&path), 0o600);
    assert!(
        JournalStore::open(&path).is_err(),
        "the mended file is locked too"
    );
    let names: Vec<String> = fs::read_dir(path.parent().expect("a directory"))
        .expect("a directory")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names.len(), 2, "the file and its side file: {names:?}");
    append(&store, turn(3, 14, 4));
    drop(store);
    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(store.loaded().warnings, Vec::<String>::new());
    assert_eq!(entries(&store).len(), expected(3).len() - 1);
}

#[test]
fn a_damaged_end_stays_mended() {
    let home = home();
    let path = written(&home, 1);
    let text = fs::read_to_string(&path).expect("text");
    let end = text.trim_end().rfind('\n').expect("lines") + 1;
    fs::write(&path, format!("{}oops\n", &text[..end])).expect("damaged");
    let store = JournalStore::open(&path).expect("it opens");
    let after_mending = store.loaded().records;
    assert_eq!(
        after_mending.len(),
        expected(1).len(),
        "the last entry became a notice"
    );
    drop(store);
    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(store.loaded().records, after_mending);
    assert_eq!(store.loaded().warnings, Vec::<String>::new());
}

#[test]
fn a_lost_first_line_is_made_again_from_what_is_left() {
    let home = home();
    let path = written(&home, 1);
    let text = fs::read_to_string(&path).expect("text");
    let rest = text.split_once('\n').expect("lines").1;
    fs::write(&path, format!("xx\n{rest}")).expect("damaged");
    let store = JournalStore::open(&path).expect("it opens");
    let found = store.meta();
    assert_eq!(
        (found.id, found.cwd, found.provider),
        (meta().id, meta().cwd, meta().provider)
    );
    assert_eq!(store.loaded().warnings.len(), 2);
    assert_eq!(entries(&store).len(), expected(1).len());
    append(&store, turn(2, 8, 2));
    drop(store);
    let store = JournalStore::open(&path).expect("it opens");
    assert_eq!(store.loaded().warnings, Vec::<String>::new());
    assert_eq!(entries(&store).len(), expected(2).len());
}

#[test]
fn a_file_without_a_session_is_refused_with_its_path_and_stays_as_it_is() {
    let home = home();
    let path = home.path().join("notes.jsonl");
    for content in ["", "hello\n", "{\"a\":1}\n"] {
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        let error = JournalStore::open(&path).expect_err("no session");
        let expected = format!(
            "{} holds no session: it has no session_meta line",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(fs::read_to_string(&path).expect("text"), content);
    }
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1);
}

#[test]
fn links_directories_pipes_and_files_of_others_are_refused() {
    let home = home();
    let path = written(&home, 1);
    let link = home.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let error = JournalStore::open(&link).expect_err("a link");
    assert!(error.to_string().contains("is a symbolic link"), "{error}");
    let error = JournalStore::open(home.path()).expect_err("a directory");
    assert!(error.to_string().contains("is a directory"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("mode");
    let error = JournalStore::open(&path).expect_err("others may write");
    assert!(
        error
            .to_string()
            .contains("others may write to it (mode 620)"),
        "{error}"
    );
    let error = JournalStore::open(&home.path().join("x.jsonl.zst")).expect_err("compressed");
    assert!(error.to_string().contains("is compressed"), "{error}");
    let error = JournalStore::open(&home.path().join("none.jsonl")).expect_err("not there");
    assert!(matches!(error, StoreError::Read { .. }), "{error}");
}

#[test]
fn a_home_that_cannot_be_written_says_so() {
    let home = home();
    fs::write(home.path().join("sessions"), "a file in the way").expect("written");
    let error = JournalStore::create(home.path(), &meta(), false).expect_err("no directory");
    assert!(error.to_string().contains("cannot make"), "{error}");
    assert!(error.to_string().contains("--ephemeral"), "{error}");
}

fn faulty() -> (FaultyDisk, Arc<JournalStore>) {
    let disk = FaultyDisk::default();
    let store = JournalStore::over(meta(), Box::new(disk.clone()));
    (disk, store)
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let (disk, store) = faulty();
    assert!(append(&store, session(1)).iter().all(Result::is_ok));
    let good = disk.bytes();
    disk.set(|disk| disk.room = Some(good.len() + 100));
    let appended = append(&store, turn(2, 8, 2));
    for result in &appended {
        let (_, error) = result.as_ref().expect_err("no room");
        assert!(error.contains("cannot write the session file"), "{error}");
    }
    assert_eq!(disk.bytes(), good);
    disk.set(|disk| disk.room = None);
    assert!(append(&store, turn(2, 8, 2)).iter().all(Result::is_ok));
    let parsed = load::parse(&disk.bytes());
    assert_eq!(parsed.lost, []);
    assert_eq!(parsed.content.records, store.loaded().records);
}

#[test]
fn a_disk_that_is_full_and_cannot_be_cut_is_cut_before_the_next_write() {
    let (disk, store) = faulty();
    append(&store, session(1));
    let good = disk.bytes().len();
    disk.set(|disk| {
        disk.room = Some(good + 100);
        disk.truncate_fails = true;
    });
    assert!(append(&store, turn(2, 8, 2)).iter().all(Result::is_err));
    disk.set(|disk| disk.room = None);
    assert!(
        append(&store, turn(2, 8, 2)).iter().all(Result::is_err),
        "still ragged"
    );
    disk.set(|disk| disk.truncate_fails = false);
    assert!(append(&store, turn(2, 8, 2)).iter().all(Result::is_ok));
    assert_eq!(load::parse(&disk.bytes()).lost, []);
}

#[test]
fn a_panic_in_a_write_leaves_the_journal_usable() {
    let (disk, store) = faulty();
    append(&store, session(1));
    disk.set(|disk| disk.panics = true);
    let crashed = std::panic::catch_unwind(|| append(&store, turn(2, 8, 2)));
    assert!(crashed.is_err());
    disk.set(|disk| disk.panics = false);
    assert_eq!(entries(&store), expected(1));
    assert!(append(&store, turn(2, 8, 2)).iter().all(Result::is_ok));
    let parsed = load::parse(&disk.bytes());
    assert_eq!(parsed.lost, []);
    assert_eq!(parsed.content.records, store.loaded().records);
}

#[test]
fn the_policy_says_when_the_disk_is_waited_for() {
    let syncing = |number| {
        let mut batch = batch(
            number,
            vec![Entry::Notice {
                text: "n".to_owned(),
            }],
        );
        batch.sync = number == 2;
        batch
    };
    for (policy, expected) in [
        (SyncPolicy::Turn, 1),
        (SyncPolicy::Always, 3),
        (SyncPolicy::Never, 0),
    ] {
        let (disk, store) = faulty();
        let epoch = store.begin();
        for number in 1..=3 {
            let appended = store
                .append(epoch, vec![syncing(number)], policy)
                .expect("current");
            assert!(appended[0].is_ok());
        }
        assert_eq!(disk.syncs(), expected, "{policy:?}");
        assert_eq!(policy.as_str().parse(), Ok(policy));
    }
    assert!("often".parse::<SyncPolicy>().is_err());
}

#[test]
fn a_batch_whose_sync_fails_is_not_in_the_file() {
    let (disk, store) = faulty();
    append(&store, session(1));
    let good = disk.bytes();
    disk.set(|disk| disk.sync_fails = true);
    let mut last = batch(
        8,
        vec![Entry::Notice {
            text: "n".to_owned(),
        }],
    );
    last.sync = true;
    assert!(append(&store, vec![last])[0].is_err());
    assert_eq!(disk.bytes(), good);
}
