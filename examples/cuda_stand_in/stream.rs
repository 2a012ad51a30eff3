//! Streams are queues, each with a thread of its own: what was enqueued has not happened yet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::codes::{Answer, Code};

/// A piece of work: done in its turn; it may fail, which every later call on the GPU tells.
type Work = Box<dyn FnOnce() -> Answer + Send>;

struct Task {
    /// done even if the GPU has failed: events, and words to the host
    always: bool,
    work: Work,
}

/// Pieces of work that wait in a stream at most.
const ROOM: usize = 1024;

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    enqueued: u64,
    done: u64,
    closed: bool,
}

pub struct Stream {
    pub ordinal: usize,
    pub flags: u32,
    pub priority: i32,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// the error of the GPU, which stays
    sticky: Arc<AtomicU32>,
}

impl Stream {
    /// A stream and its thread, which ends once the stream is closed and empty.
    pub fn start(ordinal: usize, flags: u32, priority: i32, sticky: Arc<AtomicU32>) -> Arc<Self> {
        let stream = Arc::new(Self { ordinal, flags, priority, queue: Mutex::default(), changed: Condvar::new(), sticky });
        let own = Arc::clone(&stream);
        std::thread::spawn(move || own.work());
        stream
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.queue();
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                if (task.always || self.error().is_none())
                    && let Err(code) = (task.work)()
                {
                    let _ = self.sticky.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
                }
                queue = self.queue();
                queue.done += 1;
                self.changed.notify_all();
            } else if queue.closed {
                return;
            } else {
                queue = self.sleep(queue);
            }
        }
    }

    /// The error of its GPU.
    pub fn error(&self) -> Option<Code> {
        Some(self.sticky.load(Ordering::Acquire)).filter(|&code| code != 0)
    }

    /// Put work at the end; its number. As of a GPU's, the queue has room for some pieces of work alone, and whoever brings more
    /// waits.
    pub fn enqueue(&self, always: bool, work: impl FnOnce() -> Answer + Send + 'static) -> u64 {
        let mut queue = self.queue();
        while queue.tasks.len() >= ROOM {
            queue = self.sleep(queue);
        }
        queue.tasks.push_back(Task { always, work: Box::new(work) });
        queue.enqueued += 1;
        self.changed.notify_all();
        queue.enqueued
    }

    /// The number of what was enqueued last.
    pub fn last(&self) -> u64 {
        self.queue().enqueued
    }

    /// True if all up to this number is done.
    pub fn has_done(&self, number: u64) -> bool {
        self.queue().done >= number
    }

    /// Wait for it.
    pub fn wait(&self, number: u64) {
        let mut queue = self.queue();
        while queue.done < number {
            queue = self.sleep(queue);
        }
    }

    /// No more comes; what was enqueued is still done.
    pub fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }
}

/// One recording of an event.
#[derive(Default)]
pub struct Record {
    at: Mutex<Option<Instant>>,
    reached: Condvar,
}

impl Record {
    fn at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream is here.
    pub fn reach(&self) {
        *self.at() = Some(Instant::now());
        self.reached.notify_all();
    }

    /// When the stream was here.
    pub fn time(&self) -> Option<Instant> {
        *self.at()
    }

    /// Wait until the stream is here.
    pub fn wait(&self) {
        let mut at = self.at();
        while at.is_none() {
            at = self.reached.wait(at).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub struct Event {
    pub ordinal: usize,
    /// false if it was made without times
    pub timed: bool,
    record: Mutex<Option<Arc<Record>>>,
}

impl Event {
    pub fn new(ordinal: usize, timed: bool) -> Self {
        Self { ordinal, timed, record: Mutex::new(None) }
    }

    /// The recording that counts: the last one.
    pub fn record(&self) -> Option<Arc<Record>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begin a new one.
    pub fn begin(&self) -> Arc<Record> {
        let record = Arc::new(Record::default());
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&record));
        record
    }
}
