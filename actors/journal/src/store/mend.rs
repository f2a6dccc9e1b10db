//! Opening a file that may be damaged: nothing is lost silently, and what stays is valid.
//!
//! What is taken out goes to `<file>.lost-<n>` first, and to the disk; then the file is cut, or written anew beside
//! itself and renamed. A crash in between leaves the damaged file and a copy of the damage.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use interpreter_messages::journal::{Entry, Record, SessionMeta};
use interpreter_messages::{Seq, SessionId};
use jiff::Timestamp;

use super::error::StoreError;
use super::file;
use super::medium::FileMedium;
use crate::format::Encoder;
use crate::load::{self, Content, Lost, Parsed};

/// Damaged places that are named one by one in the warnings; of more, the number is told.
const NAMED: usize = 5;

/// An opened, locked and valid file.
pub(super) struct Opened {
    pub meta: SessionMeta,
    pub content: Content,
    pub medium: FileMedium,
    pub length: u64,
    pub warnings: Vec<String>,
}

pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    let (mut file, length) = file::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.read_to_end(&mut bytes)
        .map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
    let mut parsed = load::parse(&bytes);
    let mut warnings = Vec::new();
    let mut head = String::new();
    let meta = match parsed.meta() {
        Some(meta) => meta.clone(),
        None => {
            let meta = restored_meta(path, &parsed)?;
            head = first_line(&meta, &parsed);
            warnings.push(format!(
                "the first line of {} was lost; it was made again from the file's name and its first turn",
                path.display()
            ));
            meta
        }
    };
    let tail = last_line(path, &parsed);
    let failed = |source| StoreError::Mend {
        path: path.to_owned(),
        source,
    };
    let mended = mend(path, file, &bytes, &parsed, &head, &tail).map_err(failed)?;
    if !head.is_empty() || !tail.is_empty() {
        let whole = [
            head.as_bytes(),
            &kept(&bytes, &parsed.lost),
            tail.as_bytes(),
        ]
        .concat();
        parsed.content = load::parse(&whole).content;
    }
    warnings.extend(warnings_of(path, &parsed, mended.side.as_deref()));
    let length = match mended.file.metadata() {
        Ok(facts) => facts.len(),
        Err(source) => {
            return Err(StoreError::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    Ok(Opened {
        meta,
        content: parsed.content,
        medium: FileMedium {
            file: mended.file,
            new_in: None,
        },
        length,
        warnings,
    })
}

/// What the first line said, from the file's name (`rollout-<time>-<id>.jsonl`) and the first turn.
fn restored_meta(path: &Path, parsed: &Parsed) -> Result<SessionMeta, StoreError> {
    let none = || StoreError::NoMeta {
        path: path.to_owned(),
    };
    let id = crate::index::id_of(path).ok_or_else(none)?;
    let first = parsed.content.records.iter().find_map(|record| {
        let Entry::TurnStarted(turn) = &record.entry else {
            return None;
        };
        Some((record.at, turn))
    });
    let (at, turn) = first.ok_or_else(none)?;
    Ok(SessionMeta {
        id,
        started: started(&id).unwrap_or(at),
        cwd: turn.cwd.clone(),
        source: "unknown".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        provider: turn.provider.clone(),
        harness: turn.harness.clone(),
        forked_from: None,
        parent: None,
    })
}

/// The time in an id.
fn started(id: &SessionId) -> Option<Timestamp> {
    let (seconds, nanos) = id.0.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
}

/// A new first line.
fn first_line(meta: &SessionMeta, parsed: &Parsed) -> String {
    let at = match parsed.content.records.first() {
        Some(record) => record.at,
        None => meta.started,
    };
    line(Encoder::default(), at, Entry::Meta(meta.clone()))
}

/// What must stand after the last line that stays.
fn last_line(path: &Path, parsed: &Parsed) -> String {
    if parsed.damaged_end {
        let text = format!(
            "the end of {} was damaged and was taken out",
            path.display()
        );
        let at = Timestamp::now();
        return line(parsed.content.encoder, at, Entry::Notice { text });
    }
    if parsed.needs_newline { "\n" } else { "" }.to_owned()
}

/// A line of no batch.
fn line(mut encoder: Encoder, at: Timestamp, entry: Entry) -> String {
    let record = Record {
        seq: Seq(0),
        at,
        entry,
    };
    let mut line = String::new();
    encoder
        .encode(&record, None, &mut line)
        .expect("its paths were read from JSON, so they can be written as JSON");
    line
}

struct Mended {
    file: File,
    side: Option<PathBuf>,
}

fn mend(
    path: &Path,
    mut file: File,
    bytes: &[u8],
    parsed: &Parsed,
    head: &str,
    tail: &str,
) -> io::Result<Mended> {
    let side = if parsed.lost.is_empty() {
        None
    } else {
        Some(set_aside(path, bytes, &parsed.lost)?)
    };
    let cut = match parsed.lost.as_slice() {
        [] => Some(bytes.len()),
        // One piece at the very end.
        [lost] if lost.range.end == bytes.len() => Some(lost.range.start),
        _ => None,
    };
    if let Some(length) = cut.filter(|_| head.is_empty()) {
        if length < bytes.len() {
            file.set_len(length as u64)?;
        }
        file.write_all(tail.as_bytes())?;
        if length < bytes.len() || !tail.is_empty() {
            file.sync_all()?;
        }
        return Ok(Mended { file, side });
    }
    let kept = kept(bytes, &parsed.lost);
    let file = replace(path, &[head.as_bytes(), &kept, tail.as_bytes()].concat())?;
    Ok(Mended { file, side })
}

fn kept(bytes: &[u8], lost: &[Lost]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for lost in lost {
        kept.extend_from_slice(&bytes[from..lost.range.start]);
        from = lost.range.end;
    }
    kept.extend_from_slice(&bytes[from..]);
    kept
}

/// Writes what is taken out to the first free `<file>.lost-<n>`.
fn set_aside(path: &Path, bytes: &[u8], lost: &[Lost]) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    let (side, mut file) = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".lost-{number}"));
        let side = PathBuf::from(name);
        match file::new_file(&side) {
            Ok(file) => break (side, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    for lost in lost {
        file.write_all(&bytes[lost.range.clone()])?;
    }
    file.sync_all()?;
    Ok(side)
}

/// Puts a new file in the place of the old one; it is locked before it has the name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".mend-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = (|| {
        let mut file = file::new_file(&temporary)?;
        file.try_lock().map_err(io::Error::from)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        Ok(file)
    })();
    if written.is_err() {
        // It may not have been made.
        let _ = std::fs::remove_file(&temporary);
    } else if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    written
}

fn warnings_of(path: &Path, parsed: &Parsed, side: Option<&Path>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(side) = side {
        let mut places: Vec<String> = parsed
            .lost
            .iter()
            .take(NAMED)
            .map(|lost| format!("line {} {}", lost.line, lost.why))
            .collect();
        if parsed.lost.len() > NAMED {
            places.push(format!("and {} more", parsed.lost.len() - NAMED));
        }
        warnings.push(format!(
            "the session file {} was damaged: {}; what could not be read was moved to {}",
            path.display(),
            places.join(", "),
            side.display()
        ));
    }
    if parsed.unknown > 0 {
        warnings.push(format!(
            "{} lines of the session file {} are of another version of this program and are left out of the conversation",
            parsed.unknown,
            path.display()
        ));
    }
    warnings
}
