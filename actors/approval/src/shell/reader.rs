//! The reader of [`Script::parse`](super::Script::parse): one pass over the characters, no looking back.

use super::{Join, MAX_COMMANDS, Simple, Unparsable, Word};

/// Characters that end a word when unquoted.
const ENDS_WORD: &str = " \t\n;|&<>()";

/// The only file that output may go to.
const NULL: &str = "/dev/null";

pub(super) fn read(text: &str) -> Result<Vec<Simple>, Unparsable> {
    let mut reader = Reader {
        rest: text,
        commands: Vec::new(),
    };
    reader.script()?;
    Ok(reader.commands)
}

struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Simple>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn lines(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n']);
    }

    fn script(&mut self) -> Result<(), Unparsable> {
        self.lines();
        loop {
            if self.commands.len() == MAX_COMMANDS {
                return Err(Unparsable::TooLong);
            }
            let mut command = self.simple()?;
            command.join = self.join()?;
            let join = command.join;
            self.commands.push(command);
            if join == Join::End {
                return Ok(());
            }
        }
    }

    /// What stands after a command. A `;` or line end with nothing after it is the end.
    fn join(&mut self) -> Result<Join, Unparsable> {
        self.blanks();
        let join = if self.rest.is_empty() {
            return Ok(Join::End);
        } else if self.take("&&") {
            Join::And
        } else if self.take("||") {
            Join::Or
        } else if self.rest.starts_with("|&") {
            return Err(Unparsable::Construct("a pipe of errors"));
        } else if self.take("|") {
            Join::Pipe
        } else if self.rest.starts_with(";;") {
            return Err(Unparsable::Construct("a case"));
        } else if self.take(";") || self.take("\n") {
            Join::Then
        } else if self.rest.starts_with('&') {
            return Err(Unparsable::Construct("a command in the background"));
        } else {
            return Err(Unparsable::Construct("a group or a function"));
        };
        self.lines();
        match (join, self.rest.is_empty()) {
            (Join::Then, true) => Ok(Join::End),
            (_, true) => Err(Unparsable::Incomplete),
            (join, false) => Ok(join),
        }
    }

    fn simple(&mut self) -> Result<Simple, Unparsable> {
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | '&') => break,
                Some('(' | ')') => return Err(Unparsable::Construct("a group or a function")),
                Some('#') => return Err(Unparsable::Construct("a comment")),
                Some('<' | '>') => redirects.push(self.redirect(None)?),
                Some(_) => {
                    if let Some(stream) = self.stream_number() {
                        redirects.push(self.redirect(Some(stream))?);
                    } else {
                        words.push(self.word()?);
                    }
                }
            }
        }
        if words.is_empty() {
            return Err(if self.rest.is_empty() {
                Unparsable::Incomplete
            } else {
                Unparsable::Construct("an operator without a command")
            });
        }
        Ok(Simple {
            words,
            redirects,
            join: Join::End,
        })
    }

    /// The number of a stream directly before a redirect.
    fn stream_number(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let (number, operator) = (chars.next()?, chars.next()?);
        if !number.is_ascii_digit() || !matches!(operator, '<' | '>') {
            return None;
        }
        self.rest = &self.rest[1..];
        Some(number)
    }

    fn redirect(&mut self, stream: Option<char>) -> Result<String, Unparsable> {
        let refused = Err(Unparsable::Construct("a redirect"));
        if !matches!(stream, None | Some('0'..='2')) {
            return refused;
        }
        let stream = stream.map(String::from).unwrap_or_default();
        if self.take(">&") {
            let target = self.next();
            let at_end = self.peek().is_none_or(|c| ENDS_WORD.contains(c));
            return match target {
                Some(target @ ('1' | '2')) if at_end => Ok(format!("{stream}>&{target}")),
                _ => refused,
            };
        }
        let operator = if self.take(">>") {
            ">>"
        } else if self.take(">") {
            ">"
        } else if self.take("<") {
            "<"
        } else {
            return refused;
        };
        self.blanks();
        let at_end = |rest: &str| rest.chars().next().is_none_or(|c| ENDS_WORD.contains(c));
        if self.take(NULL) && at_end(self.rest) {
            return Ok(format!("{stream}{operator}{NULL}"));
        }
        refused
    }

    fn word(&mut self) -> Result<Word, Unparsable> {
        let start = self.rest;
        let mut word = Word {
            tilde: start.starts_with('~'),
            ..Word::default()
        };
        while let Some(next) = self.peek() {
            if ENDS_WORD.contains(next) {
                break;
            }
            self.next();
            match next {
                '\'' => self.single_quoted(&mut word.text)?,
                '"' => self.double_quoted(&mut word.text)?,
                '\\' => word.text.push(self.escaped()?),
                '$' | '`' => return Err(Unparsable::Construct("a substitution")),
                '{' | '}' => return Err(Unparsable::Construct("a brace")),
                '!' => return Err(Unparsable::Construct("an exclamation mark")),
                '*' | '?' | '[' => {
                    word.glob = true;
                    // Also after empty quotes: `""*`.
                    word.glob_first |= word.text.is_empty();
                    word.text.push(next);
                }
                other => word.text.push(other),
            }
        }
        let raw: &'a str = &start[..start.len() - self.rest.len()];
        raw.clone_into(&mut word.raw);
        let is_number = raw.bytes().all(|b| b.is_ascii_digit());
        if is_number && self.rest.starts_with(['<', '>']) {
            return Err(Unparsable::Construct("a redirect"));
        }
        Ok(word)
    }

    fn escaped(&mut self) -> Result<char, Unparsable> {
        match self.next() {
            None => Err(Unparsable::Incomplete),
            Some('\n') => Err(Unparsable::Construct("a continued line")),
            Some(other) => Ok(other),
        }
    }

    fn single_quoted(&mut self, text: &mut String) -> Result<(), Unparsable> {
        let Some((inside, rest)) = self.rest.split_once('\'') else {
            return Err(Unparsable::Incomplete);
        };
        if inside.contains('\n') {
            return Err(Unparsable::Construct("a line end in quotes"));
        }
        text.push_str(inside);
        self.rest = rest;
        Ok(())
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), Unparsable> {
        loop {
            match self.next() {
                None => return Err(Unparsable::Incomplete),
                Some('"') => return Ok(()),
                Some('\n') => return Err(Unparsable::Construct("a line end in quotes")),
                Some('$' | '`') => return Err(Unparsable::Construct("a substitution")),
                Some('!') => return Err(Unparsable::Construct("an exclamation mark")),
                Some('\\') => match self.escaped()? {
                    special @ ('"' | '\\' | '$' | '`') => text.push(special),
                    // Within double quotes a backslash before any other character stays.
                    other => {
                        text.push('\\');
                        text.push(other);
                    }
                },
                Some(other) => text.push(other),
            }
        }
    }
}
