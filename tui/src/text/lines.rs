//! Reads lines in a thread, one whenever one is wanted.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use interpreter_messages::Peer;
use interpreter_messages::ui::UiMsg;

use super::actor::Internal;

/// Longest line that is taken, in bytes (1 MiB); what is longer comes as several lines.
const LONGEST: u64 = 1024 * 1024;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// A line without its end.
    Line(String),
    /// There is no more.
    End,
}

/// The reading end. Lines wait here while the actor is restarted.
pub(super) struct Lines {
    wanted: Sender<()>,
    read: Arc<Mutex<VecDeque<Typed>>>,
}

impl Lines {
    /// Starts the thread; `slot` is told of each line. The thread ends with the input, or when nothing is wanted from it
    /// any more. While it waits for a line nothing can end it but the end of the process.
    pub(super) fn start(input: Box<dyn BufRead + Send>, slot: Peer<UiMsg>) -> io::Result<Self> {
        let (wanted, want) = channel();
        let read = Arc::new(Mutex::new(VecDeque::new()));
        let queue = Arc::clone(&read);
        std::thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || read_lines(input, &want, &queue, &slot))?;
        Ok(Self { wanted, read })
    }

    /// Asks for one more line.
    pub(super) fn want(&self) {
        // After the end of the input nobody listens, and nothing more can come.
        let _ = self.wanted.send(());
    }

    /// The next line that was read.
    pub(super) fn take(&self) -> Option<Typed> {
        lock(&self.read).pop_front()
    }
}

fn lock(queue: &Mutex<VecDeque<Typed>>) -> std::sync::MutexGuard<'_, VecDeque<Typed>> {
    // Pushed and popped whole.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lines(
    mut input: Box<dyn BufRead + Send>,
    want: &Receiver<()>,
    queue: &Mutex<VecDeque<Typed>>,
    slot: &Peer<UiMsg>,
) {
    while want.recv().is_ok() {
        let typed = read_line(&mut input);
        let end = typed == Typed::End;
        lock(queue).push_back(typed);
        // An actor that is down looks into the queue when it is back.
        let _ = slot.cast(Internal::Typed.message());
        if end {
            return;
        }
    }
}

fn read_line(input: &mut Box<dyn BufRead + Send>) -> Typed {
    let mut bytes = Vec::new();
    loop {
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
            Ok(0) => return Typed::End,
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A terminal that is gone.
            Err(_) => return Typed::End,
        }
    }
    let line = String::from_utf8_lossy(&bytes);
    Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned())
}
