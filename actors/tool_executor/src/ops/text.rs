//! What kind of text a file holds, and how to write text back in the same way: encoding, byte order mark, line ends.

use super::SNIFF;

/// How a file's text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Valid UTF-8.
    Utf8,
    /// With a byte order mark, whole and valid.
    Utf16Le,
    /// With a byte order mark, whole and valid.
    Utf16Be,
    /// UTF-16 with a byte order mark, but cut or with lone surrogates: it cannot be written back.
    BrokenUtf16,
    /// Some other encoding; its ASCII part can be matched and edited.
    Unknown,
}

/// A text file, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextFile {
    /// How it is stored.
    pub encoding: Encoding,
    /// Whether it begins with a byte order mark.
    pub bom: bool,
    /// The text without the mark: UTF-8, or for [`Encoding::Unknown`] the bytes as they are.
    pub body: Vec<u8>,
}

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

impl TextFile {
    /// Takes a file's bytes apart; `None` when they are binary (a NUL among the first [`SNIFF`] bytes).
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if let Some(rest) = bytes.strip_prefix(UTF8_BOM) {
            let mut file = Self::parse_plain(rest)?;
            file.bom = true;
            return Some(file);
        }
        // FF FE 00 00 would be UTF-32, which nobody writes; as UTF-16 it starts with NUL, so it ends up as text with one.
        for (mark, encoding) in [
            (b"\xFF\xFE", Encoding::Utf16Le),
            (b"\xFE\xFF", Encoding::Utf16Be),
        ] {
            if let Some(rest) = bytes.strip_prefix(mark) {
                return Some(Self::parse_utf16(rest, encoding));
            }
        }
        Self::parse_plain(bytes)
    }

    fn parse_plain(bytes: &[u8]) -> Option<Self> {
        if memchr::memchr(0, &bytes[..bytes.len().min(SNIFF)]).is_some() {
            return None;
        }
        let encoding = if std::str::from_utf8(bytes).is_ok() {
            Encoding::Utf8
        } else {
            Encoding::Unknown
        };
        Some(Self {
            encoding,
            bom: false,
            body: bytes.to_vec(),
        })
    }

    fn parse_utf16(bytes: &[u8], encoding: Encoding) -> Self {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| match encoding {
                Encoding::Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
                _ => u16::from_le_bytes([pair[0], pair[1]]),
            })
            .collect();
        let (encoding, text) = match String::from_utf16(&units) {
            Ok(text) if bytes.len().is_multiple_of(2) => (encoding, text),
            _ => (Encoding::BrokenUtf16, String::from_utf16_lossy(&units)),
        };
        Self {
            encoding,
            bom: true,
            body: text.into_bytes(),
        }
    }

    /// Whether reading it as text loses or hides something of its bytes.
    pub(crate) fn lossy(&self) -> bool {
        self.encoding != Encoding::Utf8
    }

    /// The text, with U+FFFD for what is not UTF-8 and without the mark.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The bytes of a file that is stored in the same way and has `body` as its text.
    ///
    /// `None` for [`Encoding::BrokenUtf16`], and for a body that UTF-16 cannot hold.
    pub(crate) fn bytes_with(&self, body: &[u8]) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Utf8 | Encoding::Unknown => {
                let mark = if self.bom { UTF8_BOM } else { b"" };
                Some([mark, body].concat())
            }
            Encoding::Utf16Le | Encoding::Utf16Be => {
                let text = std::str::from_utf8(body).ok()?;
                let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
                Some(
                    units
                        .flat_map(|unit: u16| match self.encoding {
                            Encoding::Utf16Be => unit.to_be_bytes(),
                            _ => unit.to_le_bytes(),
                        })
                        .collect(),
                )
            }
            Encoding::BrokenUtf16 => None,
        }
    }

    /// Whether most line ends are CRLF.
    pub(crate) fn crlf(&self) -> bool {
        let (mut crlf, mut lf) = (0_usize, 0_usize);
        for at in memchr::memchr_iter(b'\n', &self.body) {
            if at > 0 && self.body[at - 1] == b'\r' {
                crlf += 1;
            } else {
                lf += 1;
            }
        }
        crlf > lf
    }
}

/// Turns every lone `\n` into `\r\n`.
pub(crate) fn to_crlf(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    let mut last = '\0';
    for c in text.chars() {
        if c == '\n' && last != '\r' {
            out.push('\r');
        }
        out.push(c);
        last = c;
    }
    out
}

/// A guess at what a binary file is, from its first bytes.
pub(crate) fn kind_of(bytes: &[u8]) -> &'static str {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\xFF\xD8\xFF", "a JPEG image"),
        (b"GIF87a", "a GIF image"),
        (b"GIF89a", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"\xFD7zXZ\x00", "xz data"),
        (b"BZh", "bzip2 data"),
        (b"\x7FELF", "an ELF program or library"),
        (b"\xCF\xFA\xED\xFE", "a Mach-O program or library"),
        (b"\x00asm", "a WebAssembly module"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"MZ", "a Windows program"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "a WebP image";
    }
    KINDS
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map_or("data of an unknown kind", |(_, kind)| kind)
}
