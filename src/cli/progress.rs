//! One line on a terminal that says how far something long is; nothing in a pipe.

use std::cell::Cell;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The line. It is cleared when this is dropped.
pub(super) struct Progress {
    out: Option<File>,
    last: Cell<Option<Instant>>,
}

impl Progress {
    const EVERY: Duration = Duration::from_millis(200);

    /// On standard error.
    pub(super) fn new() -> Self {
        let own = stderr().as_fd().try_clone_to_owned().ok().map(File::from);
        Self { out: own.filter(IsTerminal::is_terminal), last: Cell::new(None) }
    }

    /// On what was standard error before the ranks' chatter went to the log.
    pub(super) fn on(stderr: &File) -> Self {
        Self { out: stderr.try_clone().ok().filter(IsTerminal::is_terminal), last: Cell::new(None) }
    }

    /// A few times a second at most; never inside a timed region.
    pub(super) fn show(&self, say: impl FnOnce() -> Option<String>) {
        let Some(mut out) = self.out.as_ref() else { return };
        if self.last.get().is_some_and(|last| last.elapsed() < Self::EVERY) {
            return;
        }
        if let Some(say) = say() {
            self.last.set(Some(Instant::now()));
            let _ = write!(out, "\r\x1b[2K{say}");
        }
    }

    /// Room for other words; what is told next is shown at once.
    pub(super) fn clear(&self) {
        if let Some(mut out) = self.out.as_ref()
            && self.last.take().is_some()
        {
            let _ = write!(out, "\r\x1b[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
