//! What a journal is written to.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Bytes with an end that can be moved. A file; in tests also a disk that is full or breaks.
pub(crate) trait Medium: Send {
    /// Writes all of it at the end, or fails having written any part of it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts everything after `length`.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Returns when everything is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A locked file, opened for appending.
pub(crate) struct FileMedium {
    pub file: File,
    /// Its directory, until the file's name in it is on the disk too.
    pub new_in: Option<PathBuf>,
}

impl Medium for FileMedium {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(directory) = self.new_in.take() {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}
