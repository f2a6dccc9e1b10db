//! Finding and reading files. Nothing here blocks on what is not a regular file: a fifo or a device is refused by
//! its type before it is opened, and again by the opened file's type, so a swap in between does not matter.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use super::MAX_FILE;
use super::error::OpError;

/// A regular file's bytes and what is known of it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Mode and owner, to be kept.
    pub meta: Metadata,
    /// The path with its symbolic links resolved.
    pub real: PathBuf,
}

/// The absolute form of a path as a person would write it: `.` and `..` are resolved by their letters, as shells and
/// editors show them, so that what is shown is exactly what is used.
pub(crate) fn absolute(cwd: &Path, path: &Path) -> Result<PathBuf, OpError> {
    if path.as_os_str().is_empty() {
        return Err(OpError::EmptyPath);
    }
    let mut clean = PathBuf::from("/");
    for component in cwd.join(path).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(clean)
}

/// BLAKE3 of bytes, in hex.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Reads a regular file.
///
/// # Errors
/// When there is none, when it is something else, when it is larger than [`MAX_FILE`], or when it cannot be read.
pub(crate) fn load(path: &Path) -> Result<Loaded, OpError> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(path)),
        Err(error) => return Err(OpError::io("read", path, error)),
    };
    require_regular(path, &meta)?;
    let real = fs::canonicalize(path).map_err(|error| OpError::io("read", path, error))?;
    if real.starts_with("/proc") || path.starts_with("/proc") {
        return Err(OpError::NotAFile {
            path: path.to_owned(),
            kind: "a view of the kernel",
            hint: ": use a command to look at it",
        });
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| OpError::io("read", path, error))?;
    let meta = file
        .metadata()
        .map_err(|error| OpError::io("read", path, error))?;
    require_regular(path, &meta)?;
    let bytes = read_whole(path, &file, &meta)?;
    Ok(Loaded { bytes, meta, real })
}

/// As [`load`], but nothing there is a value; so is a symbolic link whose target does not exist.
pub(crate) fn load_if_there(path: &Path) -> Result<Option<Loaded>, OpError> {
    match load(path) {
        Ok(loaded) => Ok(Some(loaded)),
        Err(OpError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_whole(path: &Path, file: &File, meta: &Metadata) -> Result<Vec<u8>, OpError> {
    let too_large = |size| OpError::TooLarge {
        path: path.to_owned(),
        size,
        limit: MAX_FILE,
    };
    if meta.len() > MAX_FILE {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    // One byte more than allowed, so that a file that grew meanwhile is noticed.
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| OpError::io("read", path, error))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Refuses what is not a regular file.
pub(crate) fn require_regular(path: &Path, meta: &Metadata) -> Result<(), OpError> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let (kind, hint) = if kind.is_dir() {
        ("a directory", ": list it instead")
    } else if kind.is_fifo() {
        ("a named pipe", "")
    } else if kind.is_socket() {
        ("a socket", "")
    } else if kind.is_block_device() || kind.is_char_device() {
        ("a device", "")
    } else {
        ("something special", "")
    };
    Err(OpError::NotAFile {
        path: path.to_owned(),
        kind,
        hint,
    })
}

/// The error for a file that is not there, with what helps to find it.
fn missing(path: &Path) -> OpError {
    OpError::Missing {
        path: path.to_owned(),
        hint: missing_hint(path).unwrap_or_default(),
    }
}

fn missing_hint(path: &Path) -> Option<String> {
    if fs::symlink_metadata(path).is_ok() {
        return Some(" (it is a symbolic link to nothing)".to_owned());
    }
    let parent = path.parent()?;
    if !parent.is_dir() {
        return Some(format!(
            " (the directory {} does not exist either)",
            parent.display()
        ));
    }
    let wanted = path.file_name()?.to_string_lossy().to_lowercase();
    let stem = path.file_stem()?.to_string_lossy().to_lowercase();
    let mut near: Vec<String> = fs::read_dir(parent)
        .ok()?
        .take(2_000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let name = name.to_lowercase();
            name == wanted || name.split('.').next() == Some(stem.as_str())
        })
        .collect();
    near.sort();
    let name = near.first()?;
    Some(format!(
        "; there is {}",
        Path::new(parent).join(name).display()
    ))
}
