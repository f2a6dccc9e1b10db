//! Where the prompt of `exec` comes from (facts of the Codex exec protocol): the argument, stdin, or both.

use std::io::Read;

/// Bytes of stdin at the most; a prompt beyond it is a mistake.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Why there is no prompt.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PromptError {
    /// Neither argument nor stdin.
    #[error("no prompt: give one as an argument, or pipe it in (`interpreter exec \"say hello\"`)")]
    Missing,
    /// Stdin holds something else than text.
    #[error("the prompt on stdin is not {0}")]
    Encoding(&'static str),
    /// Stdin is longer than 16 MiB.
    #[error("the prompt on stdin is longer than 16 MiB")]
    TooLong,
    /// Stdin cannot be read.
    #[error("stdin cannot be read: {0}")]
    Read(String),
}

/// Joins the argument and what is piped in. `piped` is `None` when stdin is a terminal.
///
/// # Errors
/// When there is no text, or it is not text.
pub fn assemble(argument: Option<&str>, piped: Option<&[u8]>) -> Result<String, PromptError> {
    let piped = piped.map(decode).transpose()?.unwrap_or_default();
    let argument = argument.filter(|text| *text != "-");
    let prompt = match argument {
        None => piped,
        Some(text) if piped.trim().is_empty() => text.to_owned(),
        Some(text) => format!("{text}\n\n<stdin>\n{piped}\n</stdin>"),
    };
    if prompt.trim().is_empty() {
        Err(PromptError::Missing)
    } else {
        Ok(prompt)
    }
}

/// Reads stdin to its end, up to 16 MiB.
///
/// # Errors
/// When it cannot be read, or is longer.
pub fn read_all(stdin: impl Read) -> Result<Vec<u8>, PromptError> {
    let mut bytes = Vec::new();
    stdin
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| PromptError::Read(error.to_string()))?;
    if bytes.len() as u64 > LIMIT {
        Err(PromptError::TooLong)
    } else {
        Ok(bytes)
    }
}

fn decode(bytes: &[u8]) -> Result<String, PromptError> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Err(PromptError::Encoding(
            "UTF-8 but UTF-32; convert it to UTF-8",
        )),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, PromptError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| PromptError::Encoding("valid UTF-8; convert it to UTF-8"))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, PromptError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    match String::from_utf16(&units) {
        Ok(text) if rest.is_empty() => Ok(text),
        _ => Err(PromptError::Encoding(
            "valid UTF-16 in spite of its byte order mark",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_and_pipe_are_joined_and_each_alone_is_enough() {
        assert_eq!(assemble(Some("do it"), None), Ok("do it".to_owned()));
        assert_eq!(
            assemble(Some("do it"), Some(b" \n")),
            Ok("do it".to_owned())
        );
        assert_eq!(
            assemble(None, Some(b"from a pipe\n")),
            Ok("from a pipe\n".to_owned())
        );
        assert_eq!(
            assemble(Some("-"), Some(b"from a pipe")),
            Ok("from a pipe".to_owned())
        );
        assert_eq!(
            assemble(Some("sum up"), Some(b"a\nb")),
            Ok("sum up\n\n<stdin>\na\nb\n</stdin>".to_owned())
        );
    }

    #[test]
    fn nothing_to_say_is_an_error() {
        for (argument, piped) in [
            (None, None),
            (Some("-"), Some(&b""[..])),
            (Some("  "), None),
            (None, Some(b"\n")),
        ] {
            assert_eq!(assemble(argument, piped), Err(PromptError::Missing));
        }
    }

    #[test]
    fn byte_order_marks_are_understood() {
        assert_eq!(assemble(None, Some(b"\xEF\xBB\xBFhi")), Ok("hi".to_owned()));
        assert_eq!(assemble(None, Some(b"\xFF\xFEh\0i\0")), Ok("hi".to_owned()));
        assert_eq!(assemble(None, Some(b"\xFE\xFF\0h\0i")), Ok("hi".to_owned()));
        for bad in [&b"\xFF\xFE\0\0h\0\0\0"[..], b"\xFF\xFEh", b"caf\xE9"] {
            assert!(matches!(
                assemble(None, Some(bad)),
                Err(PromptError::Encoding(_))
            ));
        }
    }
}
