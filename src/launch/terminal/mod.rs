//! The terminal of the person: found wherever the launcher left it, taken over, and put back in any case.
//!
//! Under a launcher, rank 0 sits in a background process group, or in a session of its own; the launcher stays in the
//! foreground, reads the raw terminal and forwards every byte to rank 0's standard input, while rank 0 draws on the
//! terminal itself (see [`find`] and [`super::keys`]).

mod codes;
mod find;
mod screen;

pub use codes::{ENTER, LEAVE};
pub use find::find;
pub use screen::{Handle, Screen, ScreenWriter, panic_hook};

pub(crate) use codes::{put, raw_of, restore_settings, still_raw};

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{SigSet, Signal};
use rustix::termios::tcgetwinsize;

/// Value of [`SCREEN_VARIABLE`] when the screen travels over the launcher's forwarded streams.
pub const FORWARD: &str = "forward";
/// Environment variable by which `toposcope run` tells rank 0 where its screen is.
pub const SCREEN_VARIABLE: &str = "TOPOSCOPE_SCREEN";

/// How a terminal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// this process is in its foreground: it reads keys itself
    Own,
    /// the launcher reads it and forwards keys to standard input; this process draws on it
    Shared,
    /// another host's: keys and sizes come by standard input, drawing goes to standard output
    Forwarded,
}

/// A terminal to draw on.
#[derive(Debug)]
pub struct Terminal {
    /// open for drawing; for [`Link::Forwarded`] the stream to the launcher
    pub file: File,
    pub link: Link,
    /// its name in the file system, if it has one here
    pub path: Option<PathBuf>,
    /// how it was found, for the log
    pub how: String,
    /// the size that came by standard input, for [`Link::Forwarded`]
    pub told: Told,
}

/// A size told from afar: columns and rows.
#[derive(Debug, Clone)]
pub struct Told(Arc<AtomicU32>);

impl Default for Told {
    fn default() -> Self {
        let told = Self(Arc::default());
        told.set(80, 24);
        told
    }
}

impl Told {
    pub fn set(&self, columns: u16, rows: u16) {
        self.0.store(u32::from(columns) << 16 | u32::from(rows), Ordering::Relaxed);
    }

    pub fn get(&self) -> (u16, u16) {
        let both = self.0.load(Ordering::Relaxed);
        ((both >> 16) as u16, both as u16)
    }
}

impl Terminal {
    /// Columns and rows, now.
    pub fn size(&self) -> (u16, u16) {
        size_of(&self.file, self.link, &self.told)
    }
}

fn size_of(file: &File, link: Link, told: &Told) -> (u16, u16) {
    match tcgetwinsize(file) {
        // Some terminals (serial lines) do not know: 0 x 0.
        Ok(size) if link != Link::Forwarded && size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => told.get(),
    }
}

/// Have this thread, and those it starts, not stopped for using the terminal from the background. First thing in `main`.
pub fn block_stop_signals() -> io::Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTTOU);
    set.add(Signal::SIGTTIN);
    set.thread_block().map_err(io::Error::from)
}
