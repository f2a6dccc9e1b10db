//! [`JournalStore`]: the file of a session, its lock, and the records in it.
//!
//! It outlives the [`Journal`](crate::Journal) actor, so that a crash of the writer neither loses the lock nor reads
//! the file again. State changes only after the file did: whatever happens in between, the file is cut back to what the
//! state knows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use interpreter_messages::journal::{
    Batch, BatchId, Committed, Loaded, Record, SessionMeta, Writer,
};
use interpreter_messages::{Seq, SessionId};

use crate::format::{Encoder, Place};
use crate::load::{Content, MAX_LINE};

mod error;
mod file;
mod lock;
pub(crate) mod medium;
mod mend;
mod sync;

pub use error::StoreError;
pub use sync::{SyncPolicy, UnknownSyncPolicy};

use medium::Medium;

/// The journal of one session: a file that is locked as long as this value lives, or memory only.
pub struct JournalStore {
    path: Option<PathBuf>,
    meta: SessionMeta,
    /// Records that stood in the file when it was opened.
    inherited: usize,
    warnings: Vec<String>,
    in_memory: bool,
    /// Lives of the writer so far. Outside the lock, so that a new life need not wait for the last write of the old.
    lives: AtomicU64,
    /// Shared by the writer's blocking task and the callers of [`JournalStore::loaded`]; held for one write at a time.
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for JournalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JournalStore({}, {:?})", self.meta.id, self.path)
    }
}

struct Inner {
    content: Content,
    /// `None`: memory only.
    medium: Option<Box<dyn Medium>>,
    /// Length of the file up to the last batch that is known here.
    length: u64,
    /// The file may be longer than `length`.
    ragged: bool,
    /// Something was written and not yet forced to the disk.
    dirty: bool,
}

/// One life of the writer. What an earlier one left unfinished is not written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// Nothing of a batch is in the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    #[error("cannot write the session file{}: {source}", .path.as_ref().map(|p| format!(" {}", p.display())).unwrap_or_default())]
    Io {
        path: Option<PathBuf>,
        source: io::Error,
    },
    #[error(transparent)]
    Encode(#[from] crate::format::EncodeError),
    #[error(
        "a record of {bytes} bytes is too long for the session file (at most {MAX_LINE} bytes)"
    )]
    TooLong { bytes: usize },
    #[error("batch {got} of {writer:?} came where {expected} was expected")]
    Gap {
        writer: Writer,
        got: u64,
        expected: u64,
    },
}

/// What became of a batch; the writer is told either way.
pub(crate) type Appended = Result<Committed, (Writer, String)>;

impl JournalStore {
    /// Makes the journal of a new session: a file below `home/sessions`, locked, for this user only; or memory only,
    /// when `ephemeral`. Nothing is in it yet: the first record is Session's `Entry::Meta`.
    ///
    /// # Errors
    /// When the directories or the file cannot be made.
    pub fn create(
        home: &Path,
        meta: &SessionMeta,
        ephemeral: bool,
    ) -> Result<Arc<Self>, StoreError> {
        if ephemeral {
            return Ok(Self::build(
                None,
                meta.clone(),
                Content::default(),
                None,
                0,
                Vec::new(),
            ));
        }
        let path = file::path_of(home, meta);
        let medium = file::create(&path)?;
        Ok(Self::build(
            Some(path),
            meta.clone(),
            Content::default(),
            Some(Box::new(medium)),
            0,
            Vec::new(),
        ))
    }

    /// Opens and locks the journal of an existing session, and mends its file: a torn end is cut off, damaged lines are
    /// taken out; what is taken out is kept in a file beside it, and named in the warnings of [`JournalStore::loaded`].
    ///
    /// # Errors
    /// When the file is not there, is not a regular file of this user, is too large, is in use by another process, has
    /// no session in it, or cannot be mended.
    pub fn open(path: &Path) -> Result<Arc<Self>, StoreError> {
        let opened = mend::open(path)?;
        Ok(Self::build(
            Some(path.to_owned()),
            opened.meta,
            opened.content,
            Some(Box::new(opened.medium)),
            opened.length,
            opened.warnings,
        ))
    }

    fn build(
        path: Option<PathBuf>,
        meta: SessionMeta,
        content: Content,
        medium: Option<Box<dyn Medium>>,
        length: u64,
        warnings: Vec<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            path,
            meta,
            inherited: content.records.len(),
            warnings,
            in_memory: medium.is_none(),
            lives: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                content,
                medium,
                length,
                ragged: false,
                dirty: false,
            }),
        })
    }

    /// A store over any medium, for tests of what a disk can do.
    #[cfg(test)]
    pub(crate) fn over(meta: SessionMeta, medium: Box<dyn Medium>) -> Arc<Self> {
        Self::build(None, meta, Content::default(), Some(medium), 0, Vec::new())
    }

    /// The session's first record, as created or as found.
    #[must_use]
    pub fn meta(&self) -> SessionMeta {
        self.meta.clone()
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.meta.id
    }

    /// The file; `None` when the session is in memory only.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// All records, and what was mended when the file was opened.
    #[must_use]
    pub fn loaded(&self) -> Loaded {
        let inner = self.lock();
        Loaded {
            records: inner.content.records.clone(),
            session_batch: inner.content.last.session,
            approval_batch: inner.content.last.approval,
            inherited: self.inherited,
            warnings: self.warnings.clone(),
        }
    }

    /// Begins a life of the writer and ends the one before.
    pub(crate) fn begin(&self) -> Epoch {
        Epoch(self.lives.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Appends batches in one write. `None` when another writer has begun since.
    pub(crate) fn append(
        &self,
        epoch: Epoch,
        batches: Vec<Batch>,
        sync: SyncPolicy,
    ) -> Option<Vec<Appended>> {
        let mut inner = self.lock();
        if self.lives.load(Ordering::SeqCst) != epoch.0 {
            return None;
        }
        Some(inner.append(batches, sync, self.path.as_ref()))
    }

    /// Forces everything to the disk.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let mut inner = self.lock();
        inner
            .sync()
            .map_err(|source| self.io_error(source).to_string())
    }

    /// Whether nothing is written to disk.
    pub(crate) const fn is_ephemeral(&self) -> bool {
        self.in_memory
    }

    fn io_error(&self, source: io::Error) -> AppendError {
        AppendError::Io {
            path: self.path.clone(),
            source,
        }
    }

    /// A panic in a write leaves the state as it was before it, and perhaps more bytes in the file.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| {
            let mut inner = poisoned.into_inner();
            inner.ragged = true;
            self.inner.clear_poison();
            inner
        })
    }
}

/// Batches that are encoded and not yet written.
struct Staged {
    text: String,
    encoder: Encoder,
    records: Vec<Arc<Record>>,
    last: crate::load::Last,
    sync: bool,
}

/// A batch's fate before the write: its records, already in the file or staged, or a refusal.
enum Fate {
    Known(BatchId),
    Staged(BatchId, std::ops::Range<usize>),
    Refused(Writer, AppendError),
}

impl Inner {
    fn append(
        &mut self,
        batches: Vec<Batch>,
        policy: SyncPolicy,
        path: Option<&PathBuf>,
    ) -> Vec<Appended> {
        let mut staged = Staged {
            text: String::new(),
            encoder: self.content.encoder,
            records: Vec::new(),
            last: self.content.last,
            sync: policy == SyncPolicy::Always,
        };
        let fates: Vec<Fate> = batches
            .into_iter()
            .map(|batch| {
                staged.sync |= batch.sync && policy == SyncPolicy::Turn;
                self.stage(batch, &mut staged)
            })
            .collect();
        let written = self.write(&staged);
        if written.is_ok() {
            self.content.encoder = staged.encoder;
            self.content.last = staged.last;
            self.content.records.append(&mut staged.records);
        }
        fates
            .into_iter()
            .map(|fate| self.settle(fate, &written, path))
            .collect()
    }

    fn stage(&self, batch: Batch, staged: &mut Staged) -> Fate {
        let id = batch.id;
        let last = *staged.last.of(id.writer);
        if id.number <= last {
            return Fate::Known(id);
        }
        if id.number > last + 1 {
            let gap = AppendError::Gap {
                writer: id.writer,
                got: id.number,
                expected: last + 1,
            };
            return Fate::Refused(id.writer, gap);
        }
        let (length, encoder, count) = (staged.text.len(), staged.encoder, staged.records.len());
        if let Err(error) = self.encode(batch, staged) {
            staged.text.truncate(length);
            staged.encoder = encoder;
            staged.records.truncate(count);
            return Fate::Refused(id.writer, error);
        }
        *staged.last.of(id.writer) = id.number;
        let base = self.content.records.len();
        Fate::Staged(id, base + count..base + staged.records.len())
    }

    fn encode(&self, batch: Batch, staged: &mut Staged) -> Result<(), AppendError> {
        let of = u32::try_from(batch.entries.len()).unwrap_or(u32::MAX);
        for (index, entry) in (0..of).zip(batch.entries) {
            let seq = self.content.records.len() + staged.records.len();
            let record = Record {
                seq: Seq(seq as u64),
                at: batch.at,
                entry,
            };
            if self.medium.is_some() {
                let place = Place {
                    batch: batch.id,
                    index,
                    of,
                };
                let before = staged.text.len();
                staged
                    .encoder
                    .encode(&record, Some(place), &mut staged.text)?;
                let bytes = staged.text.len() - before;
                if bytes > MAX_LINE {
                    return Err(AppendError::TooLong { bytes });
                }
            }
            staged.records.push(Arc::new(record));
        }
        Ok(())
    }

    fn write(&mut self, staged: &Staged) -> io::Result<()> {
        let Some(medium) = &mut self.medium else {
            return Ok(());
        };
        if staged.text.is_empty() {
            return Ok(());
        }
        if self.ragged {
            medium.truncate(self.length)?;
        }
        self.ragged = true;
        let written = medium
            .append(staged.text.as_bytes())
            .and_then(|()| if staged.sync { medium.sync() } else { Ok(()) });
        match written {
            Ok(()) => {
                self.length += staged.text.len() as u64;
                self.ragged = false;
                self.dirty = !staged.sync;
                Ok(())
            }
            Err(error) => {
                // When even this fails, it is tried again before the next write.
                self.ragged = medium.truncate(self.length).is_err();
                Err(error)
            }
        }
    }

    fn settle(&mut self, fate: Fate, written: &io::Result<()>, path: Option<&PathBuf>) -> Appended {
        let failed = |writer: Writer, error: &io::Error| {
            let source = io::Error::new(error.kind(), error.to_string());
            let error = AppendError::Io {
                path: path.cloned(),
                source,
            };
            Err((writer, error.to_string()))
        };
        match (fate, written) {
            (Fate::Refused(writer, error), _) => Err((writer, error.to_string())),
            (Fate::Staged(id, _), Err(error)) => failed(id.writer, error),
            (Fate::Staged(id, range), Ok(())) => {
                self.content.batches.insert(id, range.clone());
                Ok(self.committed(id))
            }
            (Fate::Known(id), Err(error)) if id.number > *self.content.last.of(id.writer) => {
                failed(id.writer, error)
            }
            (Fate::Known(id), _) => Ok(self.committed(id)),
        }
    }

    /// The acknowledgement of a batch that is in the file. One whose records were lost to damage has none.
    fn committed(&self, id: BatchId) -> Committed {
        let range = self.content.batches.get(&id).cloned().unwrap_or(0..0);
        Committed {
            id,
            records: self.content.records[range].to_vec(),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(medium) = &mut self.medium
            && self.dirty
        {
            medium.sync()?;
            self.dirty = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
