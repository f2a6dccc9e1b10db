//! Grep: a regular expression in files, in order of path.

use std::io;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use interpreter_messages::tool::{Grep, GrepOutput, ToolOutput};

use super::error::OpError;
use super::load::{absolute, require_regular};
use super::walk::{self, Deadline, is_file, names_hidden, shown, walk};
use super::{MAX_FILE, MAX_OUTPUT};

/// Results by default, and at the most.
const LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 5_000;
/// Characters of a line at the most: minified files have lines of megabytes.
const MAX_LINE_CHARS: usize = 500;
/// Lines of context at the most.
const MAX_CONTEXT: u32 = 50;

/// Searches.
pub(crate) fn grep(cwd: &Path, order: &Grep) -> Result<ToolOutput, OpError> {
    let path = absolute(cwd, order.path.as_deref().unwrap_or(Path::new(".")))?;
    let matcher = matcher(order)?;
    let filter = order.glob.as_deref().map(Filter::new).transpose()?;
    let mut results = Results {
        output: order.output,
        limit: order.limit.unwrap_or(LIMIT).min(MAX_LIMIT),
        lines: Vec::new(),
        bytes: 0,
        found: 0,
        left_out: 0,
    };
    let mut searcher = searcher(order);
    let meta = std::fs::metadata(&path).map_err(|error| OpError::io("search", &path, error))?;
    if !meta.is_dir() {
        require_regular(&path, &meta)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        search(&mut searcher, &matcher, &path, name, &mut results)
            .map_err(|error| OpError::io("search", &path, error))?;
        return Ok(results.into_output());
    }
    let hidden = order.glob.as_deref().is_some_and(names_hidden);
    let mut deadline = Deadline::start();
    let files = walk(&path, hidden)
        .max_filesize(Some(MAX_FILE))
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in files.flatten() {
        if !deadline.has_time() {
            if results.found == 0 {
                return Err(deadline.error());
            }
            results.left_out += 1;
            break;
        }
        let name = shown(&path, entry.path());
        let wanted = filter.as_ref().is_none_or(|filter| filter.takes(&name));
        if is_file(&entry) && wanted {
            let searched = search(&mut searcher, &matcher, entry.path(), name, &mut results);
            // A file that cannot be read, or went away, is no reason to fail the search of the others; an error that
            // is not the system's is about the search itself.
            if let Err(error) = searched
                && error.raw_os_error().is_none()
            {
                return Err(OpError::io("search", entry.path(), error));
            }
        }
    }
    Ok(results.into_output())
}

fn matcher(order: &Grep) -> Result<RegexMatcher, OpError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(order.ignore_case).multi_line(true);
    if order.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.crlf(true);
    }
    builder.build(&order.pattern).map_err(|error| {
        let mut reason = error.to_string();
        if !order.multiline && order.pattern.contains("\\n") {
            reason.push_str("; to match over line ends, search multiline");
        }
        OpError::Regex { reason }
    })
}

fn searcher(order: &Grep) -> Searcher {
    let lines = order.output == GrepOutput::Lines;
    let context = |lines_wanted: u32| {
        if lines {
            lines_wanted.min(MAX_CONTEXT) as usize
        } else {
            0
        }
    };
    let mut builder = SearcherBuilder::new();
    if !order.multiline {
        // As the matcher has it; lines still end at every `\n`.
        builder.line_terminator(LineTerminator::crlf());
    }
    builder
        .line_number(true)
        .multi_line(order.multiline)
        .before_context(context(order.before))
        .after_context(context(order.after))
        .binary_detection(BinaryDetection::quit(0))
        .max_matches((order.output == GrepOutput::Files).then_some(1))
        .build()
}

fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    name: String,
    results: &mut Results,
) -> io::Result<()> {
    let found = FileResults {
        name,
        matches: 0,
        lines: Vec::new(),
        binary: false,
        room: results.room(),
    };
    let mut sink = found;
    searcher.search_path(matcher, path, &mut sink)?;
    if !sink.binary {
        results.take(sink);
    }
    Ok(())
}

/// Which files are searched: by name for a glob without a slash, else by path.
struct Filter {
    glob: GlobMatcher,
    by_path: bool,
    inverted: bool,
}

impl Filter {
    fn new(pattern: &str) -> Result<Self, OpError> {
        let (inverted, pattern) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        Ok(Self {
            glob: walk::glob(pattern)?,
            by_path: pattern.contains('/'),
            inverted,
        })
    }

    fn takes(&self, name: &str) -> bool {
        let path = PathBuf::from(name);
        let matches = if self.by_path {
            self.glob.is_match(&path)
        } else {
            path.file_name()
                .is_some_and(|name| self.glob.is_match(Path::new(name)))
        };
        matches != self.inverted
    }
}

/// What one file gave.
struct FileResults {
    name: String,
    matches: u64,
    lines: Vec<String>,
    binary: bool,
    /// Matches whose lines are still wanted.
    room: u64,
}

impl FileResults {
    fn push(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let first = number.unwrap_or_default();
        for (n, line) in text.trim_end_matches(['\r', '\n']).split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let line = match line.char_indices().nth(MAX_LINE_CHARS) {
                Some((at, _)) => format!("{}… [line cut]", &line[..at]),
                None => line.to_owned(),
            };
            let number = first + n as u64;
            self.lines
                .push(format!("{}{mark}{number}{mark}{line}", self.name));
        }
    }
}

impl Sink for FileResults {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.matches <= self.room {
            self.push(':', found.line_number(), found.bytes());
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        if self.matches <= self.room {
            self.push('-', found.line_number(), found.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.matches < self.room {
            self.lines.push("--".to_owned());
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> io::Result<()> {
        Ok(())
    }
}

/// What all files gave.
struct Results {
    output: GrepOutput,
    limit: u64,
    lines: Vec<String>,
    bytes: usize,
    /// Matches, or files for the other kinds of output.
    found: u64,
    left_out: u64,
}

impl Results {
    fn room(&self) -> u64 {
        match self.output {
            GrepOutput::Lines => self.limit.saturating_sub(self.found),
            GrepOutput::Files | GrepOutput::Counts => 0,
        }
    }

    fn take(&mut self, file: FileResults) {
        if file.matches == 0 {
            return;
        }
        match self.output {
            GrepOutput::Lines => {
                self.left_out += file.matches.saturating_sub(self.room());
                self.found += file.matches;
                for line in file.lines {
                    self.add(line);
                }
            }
            GrepOutput::Files => self.one(file.name),
            GrepOutput::Counts => self.one(format!("{}:{}", file.name, file.matches)),
        }
    }

    fn one(&mut self, line: String) {
        self.found += 1;
        if self.found > self.limit {
            self.left_out += 1;
        } else {
            self.add(line);
        }
    }

    fn add(&mut self, line: String) {
        if self.bytes + line.len() > MAX_OUTPUT {
            self.left_out += 1;
            return;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
    }

    fn into_output(self) -> ToolOutput {
        ToolOutput::Lines {
            lines: self.lines,
            left_out: self.left_out,
        }
    }
}
