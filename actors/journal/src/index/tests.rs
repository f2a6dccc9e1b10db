use std::fs;

use interpreter_messages::journal::{Entry, SessionMeta};
use tempfile::TempDir;

use super::*;
use crate::store::{JournalStore, SyncPolicy};
use crate::testing::{batch, meta, session};

fn write(home: &TempDir, id: &str, cwd: &str, turns: u64) -> PathBuf {
    let meta = SessionMeta {
        id: id.parse().expect("an id"),
        cwd: PathBuf::from(cwd),
        ..meta()
    };
    let store = JournalStore::create(home.path(), &meta, false).expect("a store");
    let epoch = store.begin();
    let mut batches = session(turns);
    batches[0] = batch(1, vec![Entry::Meta(meta)]);
    store.append(epoch, batches, SyncPolicy::Never);
    store.path().expect("a file").to_owned()
}

fn used_at(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    file.set_modified(time).expect("a time");
}

const A: &str = "0193815e-3f00-7000-8000-00000000000a";
const B: &str = "0193815e-3f00-7000-8000-00000000000b";
const C: &str = "0193815e-4f00-7000-8000-00000000000c";

#[test]
fn a_session_is_found_by_its_id_and_by_the_beginning_of_it() {
    let home = tempfile::tempdir().expect("a directory");
    let (a, _, c) = (
        write(&home, A, "/a", 1),
        write(&home, B, "/b", 1),
        write(&home, C, "/c", 0),
    );
    assert_eq!(find(home.path(), A).expect("it is there"), a);
    assert_eq!(find(home.path(), "0193815E-4F").expect("it is there"), c);
    let error = find(home.path(), "0193815e-3").expect_err("two of them");
    assert!(
        error.to_string().contains(A) && error.to_string().contains(B),
        "{error}"
    );
    for wanted in ["", "ffff"] {
        let error = find(home.path(), wanted).expect_err("none");
        assert!(matches!(error, IndexError::NotFound { .. }), "{error}");
    }
}

#[test]
fn the_latest_is_the_one_used_last_in_the_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let (a, b, c) = (
        write(&home, A, "/a", 1),
        write(&home, B, "/b", 1),
        write(&home, C, "/a", 0),
    );
    used_at(&a, 1_000);
    used_at(&b, 2_000);
    used_at(&c, 3_000);
    let latest = |cwd: Option<&str>| {
        latest(home.path(), cwd.map(Path::new))
            .expect("readable")
            .map(|session| session.path)
    };
    assert_eq!(latest(None), Some(b), "the newest has no words of the user");
    assert_eq!(latest(Some("/a")), Some(a));
    assert_eq!(latest(Some("/nowhere")), None);
}

#[test]
fn the_list_shows_what_a_session_is_about() {
    let home = tempfile::tempdir().expect("a directory");
    let path = write(&home, A, "/a", 3);
    write(&home, B, "/b", 0);
    fs::write(path.with_extension("jsonl.lost-1"), "rest").expect("a side file");
    let list = list(home.path()).expect("readable");
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!(list[0].turns, 3);
    assert!(list[0].whole);
    assert_eq!(list[0].first_input, "do thing 1, \u{fc}ber alles");
    assert_eq!(list[0].cwd, Path::new("/a"));
}

#[test]
fn a_session_that_begins_with_a_large_image_is_listed() {
    use interpreter_messages::journal::UserInput;
    let home = tempfile::tempdir().expect("a directory");
    let store = JournalStore::create(home.path(), &meta(), false).expect("a store");
    let mut batches = session(1);
    let image = Part::Image {
        name: "a.png".to_owned(),
        mime: "image/png".to_owned(),
        data: "A".repeat(400_000).into(),
    };
    if let Entry::UserInput(UserInput { parts, .. }) = &mut batches[1].entries[1] {
        parts.insert(0, image);
    }
    store.append(store.begin(), batches, SyncPolicy::Never);
    let list = list(home.path()).expect("readable");
    assert_eq!(list[0].first_input, "[image] do thing 1, \u{fc}ber alles");
}

#[test]
fn a_home_without_sessions_has_an_empty_list() {
    let home = tempfile::tempdir().expect("a directory");
    assert_eq!(list(home.path()).expect("nothing is no error"), []);
    assert_eq!(
        latest(home.path(), None).expect("nothing is no error"),
        None
    );
}
