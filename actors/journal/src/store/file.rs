//! Making and opening session files, and what may not be opened.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use interpreter_messages::journal::SessionMeta;
use jiff::tz::TimeZone;

use super::error::StoreError;
use super::lock::{self, Locked};
use super::medium::FileMedium;

/// Largest file that is opened: it is read into memory as a whole.
pub(super) const MAX_FILE: u64 = 1024 * 1024 * 1024;

/// How often a file that is replaced while it is opened is opened again.
const TRIES: u32 = 5;

/// Where a new session's file goes: `home/sessions/YYYY/MM/DD/rollout-YYYY-MM-DDThh-mm-ss-<id>.jsonl`, local time.
pub(super) fn path_of(home: &Path, meta: &SessionMeta) -> PathBuf {
    let local = meta.started.to_zoned(TimeZone::system());
    let name = format!(
        "rollout-{}-{}.jsonl",
        local.strftime("%Y-%m-%dT%H-%M-%S"),
        meta.id
    );
    home.join("sessions")
        .join(local.strftime("%Y/%m/%d").to_string())
        .join(name)
}

/// Makes a new file and locks it.
pub(super) fn create(path: &Path) -> Result<FileMedium, StoreError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Create { path, source }
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed(directory))?;
    let file = new_file(path).map_err(failed(path))?;
    lock_or_say_who(&file, path)?;
    Ok(FileMedium {
        file,
        new_in: Some(directory.to_owned()),
    })
}

/// A new file for this user only; never one that is there, nor one behind a link.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Opens an existing file, checks that it can be trusted, and locks it. Returns its length too.
pub(super) fn open(path: &Path) -> Result<(File, u64), StoreError> {
    if path.extension().is_some_and(|ext| ext == "zst") {
        return Err(StoreError::Compressed {
            path: path.to_owned(),
        });
    }
    for _ in 0..TRIES {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            // A link is not followed, and a pipe does not block.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(|source| open_error(path, source))?;
        let length = check(&file, path)?;
        if lock_or_say_who(&file, path)? {
            return Ok((file, length));
        }
    }
    Err(StoreError::InUse {
        path: path.to_owned(),
        pid: None,
    })
}

fn open_error(path: &Path, source: io::Error) -> StoreError {
    let what = match source.raw_os_error() {
        Some(libc::ELOOP) => "a symbolic link",
        Some(libc::EISDIR) => "a directory",
        Some(libc::ENXIO) => "a pipe or a socket",
        _ => {
            return StoreError::Read {
                path: path.to_owned(),
                source,
            };
        }
    };
    StoreError::NotAFile {
        path: path.to_owned(),
        what,
    }
}

/// A session file is read as the user's own words, so only the user may have written it.
fn check(file: &File, path: &Path) -> Result<u64, StoreError> {
    let path = path.to_owned();
    let facts = match file.metadata() {
        Ok(facts) => facts,
        Err(source) => return Err(StoreError::Read { path, source }),
    };
    if !facts.is_file() {
        let what = "no regular file";
        return Err(StoreError::NotAFile { path, what });
    }
    let us = rustix::process::geteuid().as_raw();
    if facts.uid() != us {
        let why = format!("it belongs to user {}, not to {us}", facts.uid());
        return Err(StoreError::NotOurs { path, why });
    }
    if facts.mode() & 0o022 != 0 {
        let mode = facts.mode() & 0o777;
        let why = format!("others may write to it (mode {mode:o})");
        return Err(StoreError::NotOurs { path, why });
    }
    if facts.len() > MAX_FILE {
        return Err(StoreError::TooLarge {
            path,
            bytes: facts.len(),
            limit: MAX_FILE,
        });
    }
    Ok(facts.len())
}

/// True when locked, false when the file was replaced meanwhile.
fn lock_or_say_who(file: &File, path: &Path) -> Result<bool, StoreError> {
    match lock::try_lock(file, path) {
        Ok(Locked::Yes) => Ok(true),
        Ok(Locked::Moved) => Ok(false),
        Ok(Locked::Held { by }) => Err(StoreError::InUse {
            path: path.to_owned(),
            pid: by,
        }),
        Err(source) => Err(StoreError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}
