//! One line on a terminal that says how far something long is; nothing in a pipe.

use std::cell::Cell;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// `━━━━━╌╌╌╌╌  50 %  1:02 left  `: how much is done, 0 to 1, and how long the rest takes, seconds, if that is known.
pub(super) fn bar(share: f64, left: Option<f64>) -> String {
    const COLUMNS: usize = 20;
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let full = (share * COLUMNS as f64).floor() as usize;
    let left = left.filter(|left| left.is_finite()).map(|left| format!("  {} left", crate::units::format_duration(left)));
    format!("{}{} {:3.0} %{}", "━".repeat(full), "╌".repeat(COLUMNS - full), (100.0 * share).floor(), left.unwrap_or_default())
}

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
