//! One writer per session: an advisory lock on the file, which the kernel takes back when the process ends.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a try to lock gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// It is ours until the file is closed.
    Yes,
    /// Somebody has it.
    Held {
        /// The process, where the system tells.
        by: Option<u32>,
    },
    /// The name leads to another file by now: open it again.
    Moved,
}

/// Tries to lock `file`, which was opened by `path`.
pub(crate) fn try_lock(file: &File, path: &Path) -> io::Result<Locked> {
    let own = file.metadata()?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            // Where there is no such file, the message does without the pid.
            let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
            let by = holder(&locks, own.dev(), own.ino());
            return Ok(Locked::Held { by });
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let named = std::fs::symlink_metadata(path)?;
    if (named.dev(), named.ino()) == (own.dev(), own.ino()) {
        Ok(Locked::Yes)
    } else {
        Ok(Locked::Moved)
    }
}

/// The process that holds a lock on a file, by the text of `/proc/locks`:
/// `1: FLOCK  ADVISORY  WRITE 1234 00:2a:56789 0 EOF`.
///
/// The device is compared where that helps; some file systems show another one there than `stat` does.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let device = format!("{:02x}:{:02x}", major(device), minor(device));
    let mut found = None;
    for line in locks.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some("FLOCK"), Some(_), Some(_), Some(pid), Some(file)) = (
            words.next(),
            words.next(),
            words.next(),
            words.next(),
            words.next(),
        ) else {
            continue;
        };
        let Some((on, number)) = file.rsplit_once(':') else {
            continue;
        };
        let Some(pid) = pid.parse().ok().filter(|pid| *pid != 0) else {
            continue;
        };
        if number.parse() == Ok(inode) {
            if on == device {
                return Some(pid);
            }
            found = found.or(Some(pid));
        }
    }
    found
}

/// As Linux packs them into a device number.
const fn major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000)
}

/// As Linux packs them into a device number.
const fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & 0xffff_ff00)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "1: POSIX  ADVISORY  WRITE 11 fe:02:777 0 EOF
2: FLOCK  ADVISORY  WRITE 22 fe:01:777 0 EOF
2: -> FLOCK  ADVISORY  WRITE 23 fe:02:777 0 EOF
3: FLOCK  ADVISORY  WRITE 33 fe:02:777 0 EOF
4: FLOCK  ADVISORY  WRITE 0 fe:02:888 0 EOF
";

    #[test]
    fn the_holder_is_the_one_on_the_same_device() {
        assert_eq!(holder(LOCKS, 0xfe02, 777), Some(33));
    }

    #[test]
    fn the_inode_decides_where_the_device_is_shown_otherwise() {
        assert_eq!(holder(LOCKS, 0x1, 777), Some(22));
    }

    #[test]
    fn a_process_that_cannot_be_seen_from_here_has_no_number() {
        assert_eq!(holder(LOCKS, 0xfe02, 888), None);
        assert_eq!(holder("", 0xfe02, 777), None);
    }
}
