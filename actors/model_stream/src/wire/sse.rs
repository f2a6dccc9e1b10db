//! Server-sent events, split at any byte.
//!
//! Line ends are CR, LF or CRLF; a byte order mark at the start is skipped; comments are activity without content;
//! several `data:` lines of one event are joined by a line feed; an event that the end of the stream cuts off before
//! its blank line is still given, because servers forget it.

/// The longest event; more is a broken server.
pub const EVENT_LIMIT: usize = 64 * 1024 * 1024;

/// An event longer than [`EVENT_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than 64 MiB")]
pub struct TooLong;

/// The parser's state between two pieces.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    started: bool,
    other_text: bool,
}

impl SseParser {
    /// Takes a piece of the body, and calls `event` with the data of each event that it completes.
    ///
    /// # Errors
    /// When an event is too long; the parser is then of no further use.
    pub fn push(&mut self, mut piece: &[u8], mut event: impl FnMut(&[u8])) -> Result<(), TooLong> {
        while !piece.is_empty() {
            if std::mem::take(&mut self.after_cr) && piece[0] == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', piece) else {
                self.line.extend_from_slice(piece);
                return self.check();
            };
            self.after_cr = piece[end] == b'\r';
            if self.line.is_empty() {
                let line = &piece[..end];
                self.take_line(line, &mut event);
            } else {
                self.line.extend_from_slice(&piece[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut event);
                self.line = line;
                self.line.clear();
            }
            piece = &piece[end + 1..];
            self.check()?;
        }
        Ok(())
    }

    /// The stream ended: gives an event that was not closed by a blank line.
    pub fn finish(&mut self, mut event: impl FnMut(&[u8])) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut event);
        }
        self.take_line(b"", &mut event);
    }

    /// Whether lines came that are no part of an event stream: the body is something else.
    #[must_use]
    pub fn saw_other_text(&self) -> bool {
        self.other_text
    }

    fn check(&self) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() > EVENT_LIMIT {
            Err(TooLong)
        } else {
            Ok(())
        }
    }

    fn take_line(&mut self, line: &[u8], event: &mut impl FnMut(&[u8])) {
        let line = if self.started {
            line
        } else {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        };
        self.started = true;
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                event(&self.data);
                self.data.clear();
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data:") else {
            let known = [&b":"[..], b"event:", b"id:", b"retry:"];
            self.other_text |= !known.iter().any(|field| line.starts_with(field));
            return;
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data
            .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        self.has_data = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut take = |data: &[u8]| events.push(String::from_utf8_lossy(data).into_owned());
        for piece in pieces {
            parser.push(piece, &mut take).expect("short");
        }
        parser.finish(&mut take);
        events
    }

    #[test]
    fn line_ends_comments_marks_and_open_ends_are_understood() {
        assert_eq!(
            parse(&[b"\xEF\xBB\xBFdata: a\r\n\r\n: hi\ndata:b\ndata: c\n\ndata: d\r\rdata: open"]),
            ["a", "b\nc", "d", "open"]
        );
        assert_eq!(parse(&[b"event: x\nid: 1\n\n"]), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(text in "(data: ?[a-z]{0,3}|: c|event: x)?(\r\n|\n|\r){1,2}(data: é[a-z]{0,3}(\r\n|\n|\r)){0,3}(\n|\r\n)?", cuts in prop::collection::vec(0usize..60, 0..5)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(parse(&pieces), parse(&[bytes]));
        }
    }
}
