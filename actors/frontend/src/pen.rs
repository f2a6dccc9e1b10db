//! [`Pen`]: writes to a device that may be stuck, from a thread of its own.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use interpreter_messages::show::Paper;
use tokio::sync::oneshot;

/// A queue and the thread that writes it. Cheap to clone; the thread ends when the last clone is gone and all is
/// written.
///
/// The queue has no bound: what is put here are whole events, which must not be lost, and whose number is bounded by the
/// work that caused them. A UI that shows deltas bounds itself by [`Paper::unwritten`].
#[derive(Clone)]
pub struct Pen {
    handle: Arc<Handle>,
}

/// Called when the device is gone.
type OnBroken = Box<dyn FnOnce(io::ErrorKind) + Send>;
/// Called when all is written.
type OnIdle = Box<dyn FnOnce() + Send>;

struct Handle {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    text: String,
    writing: usize,
    closed: bool,
    broken: Option<io::ErrorKind>,
    on_idle: Vec<OnIdle>,
    on_broken: Option<OnBroken>,
}

impl fmt::Debug for Pen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pen({} unwritten)", self.unwritten())
    }
}

impl Pen {
    /// Starts the thread that owns `device`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(device: Box<dyn Write + Send>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("pen".to_owned())
            .spawn(move || write_all(&writer, device))?;
        Ok(Self {
            handle: Arc::new(Handle { shared }),
        })
    }

    /// Why nothing is written any more.
    #[must_use]
    pub fn broken(&self) -> Option<io::ErrorKind> {
        self.handle.shared.lock().broken
    }

    /// Calls `then` once when the device refuses what is written, at once if it did already. What is put after that is
    /// dropped. `then` must not block; a second call takes the place of the first.
    pub fn when_broken(&self, then: impl FnOnce(io::ErrorKind) + Send + 'static) {
        let mut queue = self.handle.shared.lock();
        match queue.broken {
            Some(kind) => {
                drop(queue);
                then(kind);
            }
            None => queue.on_broken = Some(Box::new(then)),
        }
    }

    /// Waits until all is written, or cannot be.
    pub async fn finish(&self) {
        let (done, all_written) = oneshot::channel();
        self.when_idle(Box::new(move || {
            // Nobody waits when the caller gave up.
            let _ = done.send(());
        }));
        // An error means that the thread is gone, and with it the text.
        let _ = all_written.await;
    }
}

impl Paper for Pen {
    fn put(&self, text: String) {
        let mut queue = self.handle.shared.lock();
        if queue.broken.is_some() || text.is_empty() {
            return;
        }
        if queue.text.is_empty() {
            queue.text = text;
        } else {
            queue.text.push_str(&text);
        }
        self.handle.shared.changed.notify_one();
    }

    fn unwritten(&self) -> usize {
        let queue = self.handle.shared.lock();
        queue.text.len() + queue.writing
    }

    fn when_idle(&self, then: Box<dyn FnOnce() + Send>) {
        let mut queue = self.handle.shared.lock();
        if queue.text.is_empty() && queue.writing == 0 {
            drop(queue);
            then();
        } else {
            queue.on_idle.push(then);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code of others runs under the lock, so the data is whole whatever happened.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for text; `None` when no more will come.
    fn next(&self) -> Option<String> {
        let mut queue = self.lock();
        loop {
            if !queue.text.is_empty() {
                queue.writing = queue.text.len();
                return Some(std::mem::take(&mut queue.text));
            }
            if queue.closed {
                return None;
            }
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a piece was written, or not; gives whom to tell.
    fn written(&self, result: &io::Result<()>) -> (Vec<OnIdle>, Option<OnBroken>) {
        let mut queue = self.lock();
        queue.writing = 0;
        let mut on_broken = None;
        if let Err(error) = result {
            queue.broken = Some(error.kind());
            queue.text = String::new();
            on_broken = queue.on_broken.take();
        }
        let on_idle = if queue.text.is_empty() {
            std::mem::take(&mut queue.on_idle)
        } else {
            Vec::new()
        };
        (on_idle, on_broken)
    }
}

fn write_all(shared: &Shared, mut device: Box<dyn Write + Send>) {
    while let Some(text) = shared.next() {
        let result = device
            .write_all(text.as_bytes())
            .and_then(|()| device.flush());
        let (on_idle, on_broken) = shared.written(&result);
        if let (Some(tell), Err(error)) = (on_broken, &result) {
            tell(error.kind());
        }
        for tell in on_idle {
            tell();
        }
    }
}

#[cfg(test)]
mod tests;
