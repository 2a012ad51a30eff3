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
            // A line that breaks could not be taken back.
            let columns = rustix::termios::tcgetwinsize(out).map_or(80, |size| usize::from(size.ws_col)).max(1);
            let say: String = say.chars().take(columns - 1).collect();
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

/// Steps of much the same length, one after another: how many are done, and how long the rest takes if it goes on like that.
pub(super) struct Steps {
    progress: Progress,
    begun: Instant,
    total: usize,
    done: usize,
}

impl Steps {
    /// So many of them, told on what was standard error.
    pub(super) fn new(stderr: &File, total: usize) -> Self {
        Self { progress: Progress::on(stderr), begun: Instant::now(), total, done: 0 }
    }

    /// The next one begins.
    pub(super) fn next(&mut self, what: &str) {
        let share = if self.total == 0 { 0.0 } else { self.done as f64 / self.total as f64 };
        let left = (self.done > 0).then(|| self.begun.elapsed().as_secs_f64() * (1.0 - share) / share);
        self.done += 1;
        self.progress.last.set(None);
        self.progress.show(|| Some(format!("{}  {} of {}: {what}", bar(share, left), self.done, self.total)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_tells_how_much_and_how_long() {
        assert_eq!(bar(0.5, Some(62.0)), "━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌  50 %  1:02 left");
        assert_eq!(bar(0.0, None), "╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌   0 %");
        assert_eq!(bar(1.5, Some(f64::INFINITY)), "━━━━━━━━━━━━━━━━━━━━ 100 %");
        assert_eq!(bar(f64::NAN, None), bar(0.0, None));
    }

    #[test]
    fn a_pipe_is_told_nothing_and_a_terminal_one_line_of_its_width() {
        use std::io::Read;
        let (mut read, write) = std::io::pipe().unwrap();
        let write = File::from(std::os::fd::OwnedFd::from(write));
        let mut steps = Steps::new(&write, 2);
        steps.next("one");
        steps.next("two");
        drop((steps, write));
        let mut told = String::new();
        read.read_to_string(&mut told).unwrap();
        assert_eq!(told, "");

        let pty = portable_pty::native_pty_system();
        let size = portable_pty::PtySize { rows: 4, cols: 40, pixel_width: 0, pixel_height: 0 };
        let pair = portable_pty::PtySystem::openpty(&*pty, size).unwrap();
        let terminal = std::fs::OpenOptions::new().write(true).open(pair.master.tty_name().unwrap()).unwrap();
        let mut steps = Steps::new(&terminal, 4);
        steps.next(&"a".repeat(100));
        steps.next("last");
        let mut reader = pair.master.try_clone_reader().unwrap();
        let mut screen = vt100::Parser::new(4.try_into().unwrap(), 40.try_into().unwrap(), 0);
        while !screen.screen().contents().contains("25 %") {
            let mut bytes = [0; 512];
            let count = reader.read(&mut bytes).unwrap();
            screen.process(&bytes[..count]);
        }
        let seen = screen.screen().contents();
        assert!(seen.starts_with("━━━━━╌") && seen.lines().count() == 1, "{seen}");
    }
}
