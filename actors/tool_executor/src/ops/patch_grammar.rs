//! The patch grammar of Codex' `apply_patch`: text in, hunks out. Pure.
//!
//! Tolerated: wrappers around the patch (a code fence, a heredoc), CRLF line ends, a context line that is empty
//! because its leading space was trimmed, line ranges after `@@` as in unified diffs. A patch without its end marker
//! is refused: it was cut, and half a patch must not be applied.

use std::path::PathBuf;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hunk {
    /// A new file.
    Add {
        /// As written.
        path: PathBuf,
        /// All of it; every line ends in `\n`.
        content: String,
    },
    /// Removes a file.
    Delete {
        /// As written.
        path: PathBuf,
    },
    /// Changes a file.
    Update {
        /// As written.
        path: PathBuf,
        /// Its new name.
        moved_to: Option<PathBuf>,
        /// In file order.
        chunks: Vec<Chunk>,
    },
}

/// A group of lines that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Lines to find first, outermost first (`@@ context`).
    pub contexts: Vec<String>,
    /// The lines, in order.
    pub lines: Vec<ChunkLine>,
    /// The old lines are the last of the file.
    pub end_of_file: bool,
}

/// A line of a chunk, without its mark and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkLine {
    /// Stays.
    Keep(String),
    /// Goes.
    Remove(String),
    /// Comes.
    Insert(String),
}

/// What is wrong with a patch's text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchSyntax {
    #[error("it must begin with the line `*** Begin Patch`")]
    NoBegin,
    #[error("it must end with the line `*** End Patch`; it may have been cut")]
    NoEnd,
    #[error("line {line}: unexpected text outside of the patch: `{text}`")]
    Outside { line: usize, text: String },
    #[error(
        "line {line}: `{text}` is no file header; use `*** Add File: `, `*** Delete File: ` or `*** Update File: ` with a path"
    )]
    NoHeader { line: usize, text: String },
    #[error("line {line}: the path is missing")]
    NoPath { line: usize },
    #[error("line {line}: lines of a new file must begin with `+`")]
    NoPlus { line: usize },
    #[error(
        "line {line}: `{text}` must begin with a space (stays), `-` (goes), `+` (comes) or `@@`"
    )]
    NoMark { line: usize, text: String },
    #[error("line {line}: the update of {path} has no changes")]
    EmptyUpdate { line: usize, path: String },
    #[error("it has no file headers")]
    Empty,
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const EOF: &str = "*** End of File";

/// Parses a patch.
pub(crate) fn parse(text: &str) -> Result<Vec<Hunk>, PatchSyntax> {
    let all: Vec<&str> = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    let begin = all
        .iter()
        .position(|line| line.trim() == BEGIN)
        .ok_or(PatchSyntax::NoBegin)?;
    let end = all
        .iter()
        .rposition(|line| line.trim() == END)
        .filter(|end| *end > begin)
        .ok_or(PatchSyntax::NoEnd)?;
    for (at, line) in all.iter().enumerate() {
        if (at < begin || at > end) && !is_wrapper(line) {
            return Err(PatchSyntax::Outside {
                line: at + 1,
                text: (*line).to_owned(),
            });
        }
    }
    let mut parser = Parser {
        lines: &all[begin + 1..end],
        at: 0,
        first: begin + 2,
    };
    let mut hunks = Vec::new();
    while let Some(hunk) = parser.hunk()? {
        hunks.push(hunk);
    }
    if hunks.is_empty() {
        return Err(PatchSyntax::Empty);
    }
    Ok(hunks)
}

/// What may stand around a patch: blank lines, a code fence, a heredoc's first and last line.
fn is_wrapper(line: &str) -> bool {
    let line = line.trim();
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    line.is_empty() || line.starts_with("```") || line.contains("<<") || is_word(line)
}

struct Parser<'a> {
    lines: &'a [&'a str],
    at: usize,
    /// Number of the first of `lines` in the text as given.
    first: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn number(&self) -> usize {
        self.first + self.at
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// The rest of a line that begins with `header`; consumes it.
    fn header(&mut self, header: &str) -> Option<&'a str> {
        let rest = self.peek()?.trim_start().strip_prefix(header)?.trim();
        self.at += 1;
        Some(rest)
    }

    fn path(&mut self, header: &str) -> Result<Option<PathBuf>, PatchSyntax> {
        let line = self.number();
        match self.header(header) {
            None => Ok(None),
            Some("") => Err(PatchSyntax::NoPath { line }),
            Some(path) => Ok(Some(PathBuf::from(path))),
        }
    }

    fn hunk(&mut self) -> Result<Option<Hunk>, PatchSyntax> {
        self.skip_blank();
        let Some(line) = self.peek() else {
            return Ok(None);
        };
        if let Some(path) = self.path(ADD)? {
            let content = self.added()?;
            return Ok(Some(Hunk::Add { path, content }));
        }
        if let Some(path) = self.path(DELETE)? {
            return Ok(Some(Hunk::Delete { path }));
        }
        if let Some(path) = self.path(UPDATE)? {
            return self.update(path).map(Some);
        }
        Err(PatchSyntax::NoHeader {
            line: self.number(),
            text: line.to_owned(),
        })
    }

    fn added(&mut self) -> Result<String, PatchSyntax> {
        let mut content = String::new();
        // Blank lines count only when more of the file follows.
        let mut blank = 0;
        while let Some(line) = self.peek() {
            if let Some(text) = line.strip_prefix('+') {
                content.push_str(&"\n".repeat(std::mem::take(&mut blank)));
                content.push_str(text);
                content.push('\n');
            } else if line.trim().is_empty() {
                blank += 1;
            } else if line.trim_end() == EOF {
                // Says what is known anyway.
            } else if is_header(line) {
                break;
            } else {
                return Err(PatchSyntax::NoPlus {
                    line: self.number(),
                });
            }
            self.at += 1;
        }
        Ok(content)
    }

    fn update(&mut self, path: PathBuf) -> Result<Hunk, PatchSyntax> {
        let line = self.number() - 1;
        let moved_to = self.path(MOVE)?;
        let mut chunks = Vec::new();
        while let Some(chunk) = self.chunk()? {
            chunks.push(chunk);
        }
        if chunks.is_empty() && moved_to.is_none() {
            return Err(PatchSyntax::EmptyUpdate {
                line,
                path: path.display().to_string(),
            });
        }
        Ok(Hunk::Update {
            path,
            moved_to,
            chunks,
        })
    }

    fn chunk(&mut self) -> Result<Option<Chunk>, PatchSyntax> {
        let mut chunk = Chunk::default();
        self.skip_blank();
        while let Some(context) = self.peek().and_then(context_of) {
            if !context.is_empty() {
                chunk.contexts.push(context.to_owned());
            }
            self.at += 1;
        }
        while let Some(line) = self.peek() {
            if line.trim_end() == EOF {
                self.at += 1;
                chunk.end_of_file = true;
                break;
            }
            if is_header(line) || context_of(line).is_some() {
                break;
            }
            chunk.lines.push(self.line(line)?);
            self.at += 1;
        }
        Ok((!chunk.lines.is_empty() || chunk.end_of_file).then_some(chunk))
    }

    fn line(&self, line: &str) -> Result<ChunkLine, PatchSyntax> {
        let Some(mark) = line.chars().next() else {
            return Ok(ChunkLine::Keep(String::new()));
        };
        let text = line[mark.len_utf8()..].to_owned();
        match mark {
            ' ' => Ok(ChunkLine::Keep(text)),
            '-' => Ok(ChunkLine::Remove(text)),
            '+' => Ok(ChunkLine::Insert(text)),
            // A context line that begins with a tab lost its space more often than it is something else.
            '\t' => Ok(ChunkLine::Keep(line.to_owned())),
            _ => Err(PatchSyntax::NoMark {
                line: self.number(),
                text: line.to_owned(),
            }),
        }
    }
}

fn is_header(line: &str) -> bool {
    [ADD, DELETE, UPDATE, MOVE]
        .iter()
        .any(|header| line.starts_with(header))
}

/// The context after `@@`; of a unified diff's `@@ -1,2 +3,4 @@ fn name` nothing, as its section name is no line.
fn context_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("@@")?;
    let context = rest.strip_prefix(' ').unwrap_or(rest).trim_end();
    let mut words = context.split(' ');
    let is_range = |word: Option<&str>, mark: char| {
        word.and_then(|word| word.strip_prefix(mark))
            .is_some_and(|range| {
                !range.is_empty() && range.chars().all(|c| c.is_ascii_digit() || c == ',')
            })
    };
    if is_range(words.next(), '-') && is_range(words.next(), '+') {
        return Some("");
    }
    Some(context)
}
