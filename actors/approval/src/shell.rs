//! A small part of the shell's language, understood exactly; everything else is refused. Pure.
//!
//! A script is simple commands of plain words, joined by `&&`, `||`, `;`, `|` or line ends. Substitutions, expansions
//! of variables and braces, assignments, redirects into files, here-documents, background, groups, functions and
//! keywords are [`Unparsable`]: whoever decides then asks the user. Nothing is unwrapped: to the reader `sudo`, `env`,
//! `xargs` and `sh -c` are commands like others.

use std::fmt::Write as _;

use interpreter_messages::visible::is_hidden;

mod reader;

/// Longest script that is read, in bytes.
pub const MAX_SCRIPT: usize = 16 * 1024;

/// Most commands of one script.
pub const MAX_COMMANDS: usize = 50;

/// Words that begin or join compound commands, or change how the next command is run.
const KEYWORDS: [&str; 22] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "time", "coproc", "[[", "]]", "{", "}", "!",
];

/// A script that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// In order; never empty.
    pub commands: Vec<Simple>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// The program and its arguments; never empty.
    pub words: Vec<Word>,
    /// Harmless redirects (to `/dev/null`, or of one stream to another), as canonical text.
    pub redirects: Vec<String>,
    /// How the next command is joined to it.
    pub join: Join,
}

/// One word, without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// What the program gets, unless the word expands.
    pub text: String,
    /// As it stands in the script.
    pub raw: String,
    /// An unquoted `*`, `?` or `[`: the program may get the names of files instead.
    pub glob: bool,
    /// Such a character is the first one, so that a name may begin with anything, also with `-`.
    pub glob_first: bool,
    /// It begins with an unquoted `~`.
    pub tilde: bool,
}

/// What stands between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or a line end.
    Then,
    /// `|`
    Pipe,
    /// Nothing follows.
    End,
}

/// Why a script is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unparsable {
    /// It has something that is not read here.
    #[error("it has {0}")]
    Construct(&'static str),
    /// It has a character that cannot be seen.
    #[error("it has the invisible character U+{:04X}", u32::from(*.0))]
    Invisible(char),
    /// It is too long.
    #[error("it is too long to be checked")]
    TooLong,
    /// It ends within a quote, or after an operator.
    #[error("it is incomplete")]
    Incomplete,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// [`Unparsable`] for everything that is not surely understood.
    pub fn parse(text: &str) -> Result<Self, Unparsable> {
        if text.len() > MAX_SCRIPT {
            return Err(Unparsable::TooLong);
        }
        if let Some(hidden) = text.chars().find(|c| *c != '\t' && is_hidden(*c)) {
            return Err(Unparsable::Invisible(hidden));
        }
        let commands = reader::read(text)?;
        for command in &commands {
            let program = &command.words[0];
            if KEYWORDS.contains(&program.text.as_str()) {
                return Err(Unparsable::Construct("a shell keyword"));
            }
            if program.text.contains('=') {
                return Err(Unparsable::Construct("an assignment"));
            }
        }
        Ok(Self { commands })
    }

    /// The script with its quoting and spacing made uniform: two scripts with the same text do the same.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        for command in &self.commands {
            let words: Vec<String> = command.words.iter().map(Word::canonical).collect();
            text.push_str(&words.join(" "));
            for redirect in &command.redirects {
                // Writing to a String cannot fail.
                let _ = write!(text, " {redirect}");
            }
            text.push_str(match command.join {
                Join::And => " && ",
                Join::Or => " || ",
                Join::Then => "; ",
                Join::Pipe => " | ",
                Join::End => "",
            });
        }
        text
    }
}

impl Word {
    /// Whether the program gets exactly [`Word::text`].
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        !self.glob && !self.tilde
    }

    fn canonical(&self) -> String {
        if !self.is_plain() {
            return self.raw.clone();
        }
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-./,:@%+".contains(c);
        if !self.text.is_empty() && self.text.chars().all(is_bare) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
