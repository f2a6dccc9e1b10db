//! A command's output: the head and the tail are kept, the middle is counted. Pure.

/// Bytes kept of the beginning (DESIGN §2).
pub const HEAD: usize = 256 * 1024;
/// Bytes kept of the end.
pub const TAIL: usize = 1024 * 1024;

/// Output up to now.
#[derive(Debug, Default)]
pub struct Ring {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    total: u64,
    lines: u64,
}

/// What was written since an offset.
#[derive(Debug, PartialEq, Eq)]
pub struct Since {
    /// The bytes that are kept.
    pub bytes: Vec<u8>,
    /// Where bytes are missing, and how many.
    pub gap: Option<(usize, u64)>,
}

impl Ring {
    /// Adds output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += memchr_count(bytes);
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL)..]);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// All bytes ever written.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// All line ends ever written.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// What was written since `from`.
    #[must_use]
    pub fn since(&self, from: u64) -> Since {
        let head_end = self.head.len() as u64;
        let tail_start = self.total - self.tail.len() as u64;
        let part = |start: u64, bytes: &mut Vec<u8>| {
            let skip = usize::try_from(start.saturating_sub(tail_start)).unwrap_or(usize::MAX);
            bytes.extend(self.tail.iter().skip(skip));
        };
        let mut bytes = Vec::new();
        if from >= tail_start {
            part(from, &mut bytes);
            return Since { bytes, gap: None };
        }
        let head_from = usize::try_from(from.min(head_end)).unwrap_or(self.head.len());
        bytes.extend_from_slice(&self.head[head_from..]);
        let lost = tail_start - from.max(head_end);
        let at = bytes.len();
        part(tail_start, &mut bytes);
        Since {
            bytes,
            gap: (lost > 0).then_some((at, lost)),
        }
    }
}

fn memchr_count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole_and_can_be_read_from_any_offset() {
        let mut ring = Ring::default();
        ring.push(b"one\ntwo\n");
        ring.push(b"three");
        assert_eq!(
            ring.since(4),
            Since {
                bytes: b"two\nthree".to_vec(),
                gap: None
            }
        );
        assert_eq!((ring.total(), ring.lines()), (13, 2));
        assert_eq!(ring.since(13).bytes, b"");
    }

    #[test]
    fn the_middle_of_long_output_is_counted() {
        let mut ring = Ring::default();
        let total = HEAD + TAIL + 1000;
        for at in 0..total {
            ring.push(&[u8::try_from(at % 251).unwrap_or(0)]);
        }
        let since = ring.since(0);
        assert_eq!(since.bytes.len(), HEAD + TAIL);
        assert_eq!(since.gap, Some((HEAD, 1000)));
        assert_eq!(
            since.bytes[HEAD],
            u8::try_from((HEAD + 1000) % 251).unwrap_or(0)
        );
        let inside = ring.since(HEAD as u64 + 10);
        assert_eq!((inside.bytes.len(), inside.gap), (TAIL, Some((0, 990))));
        assert_eq!(ring.since(total as u64 - 5).bytes.len(), 5);
    }
}
