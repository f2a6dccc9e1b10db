//! Writing files: whole or not at all where the system allows it.
//!
//! A file is written beside its target, put on the disk and renamed over it, with mode and owner kept and symbolic
//! links followed. Where that would change what the file is (it has other hard links, it is a mount point, its owner
//! cannot be given again) or is refused, it is written in place.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::error::OpError;
use super::load::require_regular;

/// Links followed before a chain counts as a loop, as in Linux.
const MAX_LINKS: usize = 40;

/// Writes a file. Missing parents are made, and taken away again when the write fails; gives those that were made.
///
/// `like`: mode and owner for a file that does not exist yet (the source of a move); default: what the umask gives.
///
/// # Errors
/// When it cannot be written; the target is then as before, unless an in-place write broke off, which the error of
/// the system tells.
pub(crate) fn put(
    path: &Path,
    bytes: &[u8],
    like: Option<&Metadata>,
) -> Result<Vec<PathBuf>, OpError> {
    let target = follow(path).map_err(|source| OpError::io("write", path, source))?;
    // The real place is told: whoever is asked to let it be written must see what would be.
    let failed = |source| OpError::io("write", &real(&target), source);
    match fs::metadata(&target) {
        Ok(meta) => {
            require_regular(path, &meta)?;
            replace(&target, bytes, &meta).map_err(failed)?;
            Ok(Vec::new())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = Parents::make(&target).map_err(failed)?;
            create(&target, bytes, like).map_err(failed)?;
            Ok(made.keep())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Removes a file; of a symbolic link, the link.
pub(crate) fn remove(path: &Path) -> Result<(), OpError> {
    fs::remove_file(path).map_err(|source| OpError::io("delete", path, source))
}

/// The path that a write to `path` would reach: links are followed, also to a target that does not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.file_type().is_symlink() => {
                let to = fs::read_link(&at)?;
                at = at.parent().unwrap_or(Path::new("/")).join(to);
            }
            _ => return Ok(at),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A path with the links of its directories resolved, as far as they exist.
fn real(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    match target.parent().map(fs::canonicalize) {
        Some(Ok(directory)) => directory.join(name),
        _ => target.to_owned(),
    }
}

fn replace(target: &Path, bytes: &[u8], meta: &Metadata) -> io::Result<()> {
    // Opening it for writing tells whether it may be written at all: a rename would get around a read-only file.
    let opened = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(target);
    let file = match opened {
        Ok(file) => Some(file),
        // A running program cannot be written, but its name can be given to a new file.
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => None,
        Err(error) => return Err(error),
    };
    let sole = meta.nlink() == 1;
    let renamed = if sole || file.is_none() {
        rename_over(target, bytes, meta)
    } else {
        Err(io::ErrorKind::CrossesDevices.into())
    };
    match (renamed, file) {
        (Err(error), Some(file)) if in_place_may_work(&error) => write_in_place(file, bytes),
        (result, _) => result,
    }
}

/// Whether an error means "not by renaming" and not "not at all".
fn in_place_may_work(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn rename_over(target: &Path, bytes: &[u8], meta: &Metadata) -> io::Result<()> {
    let mut temp = beside(target, 0o600)?;
    temp.write_all(bytes)?;
    let file = temp.as_file();
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
        // Refused for most users: then the file is written in place, where it keeps its owner.
        std::os::unix::fs::fchown(file, Some(meta.uid()), Some(meta.gid()))?;
    }
    // After the owner, as a change of owner clears the set-id bits.
    file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    file.sync_data()?;
    temp.persist(target).map_err(|error| error.error)?;
    Ok(())
}

fn create(target: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mut temp = beside(target, 0o666)?;
    temp.write_all(bytes)?;
    if let Some(meta) = like {
        let file = temp.as_file();
        let own = file.metadata()?;
        let kept = (own.uid(), own.gid()) == (meta.uid(), meta.gid())
            || std::os::unix::fs::fchown(file, Some(meta.uid()), Some(meta.gid())).is_ok();
        // Set-id bits are never given to a file that has another owner than the source.
        let bits = if kept { 0o7777 } else { 0o777 };
        file.set_permissions(fs::Permissions::from_mode(meta.mode() & bits))?;
    }
    temp.as_file().sync_data()?;
    // Not over a file that somebody made meanwhile.
    temp.persist_noclobber(target)
        .map_err(|error| error.error)?;
    Ok(())
}

/// A temporary file in the target's directory: unpredictable name, made exclusively, removed unless persisted.
fn beside(target: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let directory = target.parent().unwrap_or(Path::new("/"));
    tempfile::Builder::new()
        .prefix(".interpreter-")
        .suffix(".tmp")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(directory)
}

fn write_in_place(mut file: File, bytes: &[u8]) -> io::Result<()> {
    // Cut at the end and not at the start: a break in between leaves more of the old text, not less.
    file.rewind()?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_data()
}

/// Removes directories that [`put`] made.
pub(crate) fn remove_made(directories: &[PathBuf]) {
    for directory in directories.iter().rev() {
        // Best effort: somebody may have put something into it.
        let _ = fs::remove_dir(directory);
    }
}

/// Directories that were made for a file; removed again unless kept.
struct Parents(Vec<PathBuf>);

impl Parents {
    fn make(target: &Path) -> io::Result<Self> {
        let mut missing = Vec::new();
        let mut at = target.parent();
        while let Some(directory) = at {
            if directory.as_os_str().is_empty() || directory.exists() {
                break;
            }
            missing.push(directory.to_owned());
            at = directory.parent();
        }
        let mut made = Self(Vec::new());
        for directory in missing.into_iter().rev() {
            match fs::create_dir(&directory) {
                Ok(()) => made.0.push(directory),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    fn keep(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        remove_made(&self.0);
    }
}
