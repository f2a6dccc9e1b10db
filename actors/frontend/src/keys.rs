//! How a person answers a question in `exec`: single keys on the controlling terminal.
//!
//! The only module that touches a terminal's modes. Everything waits in a thread of its own; a question that is settled
//! elsewhere ends the wait within a tenth of a second.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interpreter_messages::approval::Decision;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};

/// Keys are ignored this long after a question appears: they were meant for something else.
const SETTLE: Duration = Duration::from_millis(300);
/// How often a wait looks whether the question is settled.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that follow ESC within this time make it a function key, not the Escape key.
const ESCAPE_GAP: Duration = Duration::from_millis(50);
/// Longest text that is taken with a refusal, in bytes.
const LONGEST_TEXT: usize = 4096;

/// Where answers come from.
pub trait Answers: Send {
    /// Waits for an answer to the question just shown; blocks. `None` when `cancelled` became true first. Must ignore
    /// what was typed before the question was shown. The end of input is a refusal.
    fn wait(&mut self, cancelled: &AtomicBool) -> Option<Decision>;
}

/// The controlling terminal, also when stdin is a pipe.
#[derive(Debug)]
pub struct TerminalAnswers {
    tty: File,
    settle: Duration,
    saved: Arc<Mutex<Option<Termios>>>,
}

/// Puts the terminal's modes back, for a program that ends while a question is open.
#[derive(Debug)]
pub struct Restorer {
    tty: File,
    saved: Arc<Mutex<Option<Termios>>>,
}

impl TerminalAnswers {
    /// Opens the controlling terminal.
    ///
    /// # Errors
    /// When there is none.
    pub fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        Ok(Self::on(tty, SETTLE))
    }

    fn on(tty: File, settle: Duration) -> Self {
        Self {
            tty,
            settle,
            saved: Arc::default(),
        }
    }

    /// A second hold on the terminal's modes; the one who ends the process calls it.
    ///
    /// # Errors
    /// When the system gives no file descriptor.
    pub fn restorer(&self) -> io::Result<Restorer> {
        Ok(Restorer {
            tty: self.tty.try_clone()?,
            saved: Arc::clone(&self.saved),
        })
    }
}

impl Restorer {
    /// Puts the modes back, if a question changed them.
    pub fn restore(&self) {
        put_back(&self.tty, &self.saved);
    }
}

impl Answers for TerminalAnswers {
    fn wait(&mut self, cancelled: &AtomicBool) -> Option<Decision> {
        let keys = self.restorer().and_then(SingleKeys::begin);
        match keys.and_then(|_keys| self.ask(cancelled)) {
            Ok(answer) => answer,
            // A terminal that is gone cannot say yes.
            Err(_) => Some(Decision::Deny { text: None }),
        }
    }
}

impl TerminalAnswers {
    fn ask(&mut self, cancelled: &AtomicBool) -> io::Result<Option<Decision>> {
        let mut settle = self.settle;
        while !settle.is_zero() {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
            settle = settle.saturating_sub(LOOK);
        }
        tcflush(&self.tty, QueueSelector::IFlush)?;
        loop {
            let Some(byte) = self.byte(cancelled)? else {
                return Ok(None);
            };
            match byte {
                Input::End => return Ok(Some(Decision::Deny { text: None })),
                Input::Byte(0x1b) if self.ready(ESCAPE_GAP)? => {
                    tcflush(&self.tty, QueueSelector::IFlush)?;
                }
                Input::Byte(byte) => match meaning(byte) {
                    Some(Decision::Deny { .. }) => return self.refusal(cancelled),
                    Some(decision) => {
                        self.say(name(&decision))?;
                        return Ok(Some(decision));
                    }
                    None => {}
                },
            }
        }
    }

    /// Asks what the model should do instead.
    fn refusal(&mut self, cancelled: &AtomicBool) -> io::Result<Option<Decision>> {
        self.tty
            .write_all("  no. What instead? (Enter: nothing to say) ".as_bytes())?;
        put_back(&self.tty, &self.saved);
        let mut line = Vec::new();
        loop {
            match self.byte(cancelled)? {
                None => return Ok(None),
                Some(Input::End | Input::Byte(b'\n')) => break,
                Some(Input::Byte(byte)) if line.len() < LONGEST_TEXT => line.push(byte),
                Some(Input::Byte(_)) => {}
            }
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        Ok(Some(Decision::Deny {
            text: (!text.is_empty()).then_some(text),
        }))
    }

    fn say(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.tty, "  {what}")
    }

    /// The next byte; `None` when the question is settled elsewhere.
    fn byte(&mut self, cancelled: &AtomicBool) -> io::Result<Option<Input>> {
        loop {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if !self.ready(LOOK)? {
                continue;
            }
            let mut byte = [0];
            return match self.tty.read(&mut byte) {
                Ok(0) => Ok(Some(Input::End)),
                // Ctrl-D in single-key mode is a byte.
                Ok(_) if byte[0] == 0x04 => Ok(Some(Input::End)),
                Ok(_) => Ok(Some(Input::Byte(byte[0]))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Whether something can be read within `patience` (also the end, or an error).
    fn ready(&self, patience: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.tty, PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&patience)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

enum Input {
    Byte(u8),
    End,
}

/// What a key says.
const fn meaning(byte: u8) -> Option<Decision> {
    match byte {
        b'y' | b'Y' => Some(Decision::Approve),
        b'a' | b'A' => Some(Decision::ApproveForSession),
        b'n' | b'N' => Some(Decision::Deny { text: None }),
        b'q' | b'Q' | 0x1b => Some(Decision::AbortTurn),
        _ => None,
    }
}

const fn name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Approve => "yes",
        Decision::ApproveForSession => "yes, for this session",
        Decision::Deny { .. } | Decision::TimedOut => "no",
        Decision::AbortTurn => "no, the turn ends",
    }
}

/// Single keys, without echo, while it lives. Signals and output processing stay as they are.
struct SingleKeys(Restorer);

impl SingleKeys {
    fn begin(restorer: Restorer) -> io::Result<Self> {
        let before = tcgetattr(&restorer.tty)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        *restorer
            .saved
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(before);
        // `Flush` drops what was typed before the question.
        tcsetattr(&restorer.tty, OptionalActions::Flush, &modes)?;
        Ok(Self(restorer))
    }
}

impl Drop for SingleKeys {
    fn drop(&mut self) {
        self.0.restore();
    }
}

fn put_back(tty: &File, saved: &Mutex<Option<Termios>>) {
    let saved = saved.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(modes) = saved {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(tty, OptionalActions::Now, &modes);
    }
}

#[cfg(test)]
mod tests;
