use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr};

use super::{ENTER, LEAVE, Link, Terminal, Told, put, raw_of, restore_settings, size_of, still_raw};
use crate::launch::{LaunchError, guard::Guard};

/// How long putting the terminal back waits for whoever draws, and for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long drawing waits for a terminal that takes nothing before the frame is given up.
const FRAME_PATIENCE: Duration = Duration::from_secs(10);

/// A terminal taken over for drawing; dropping it puts it back.
#[derive(Debug)]
pub struct Screen(Handle);

/// The same terminal for other threads: the one for signals, the one that reads keys, a panic's.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Held>);

impl Deref for Screen {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl Screen {
    /// One more handle.
    pub fn handle(&self) -> Handle {
        self.0.clone()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.restore();
    }
}

#[derive(Debug)]
struct Held {
    file: File,
    link: Link,
    told: Told,
    /// the person's settings; none where the terminal is on another host
    saved: Option<Termios>,
    /// the screen is entered; held while something is written
    entered: Mutex<bool>,
    guard: Option<Guard>,
}

impl Terminal {
    /// Take it over: raw mode, alternate screen, no cursor, mouse, bracketed paste. The guard is told before and after.
    pub fn enter(self, guard: Option<Guard>) -> Result<Screen, LaunchError> {
        let Self { file, link, told, how, .. } = self;
        let what = format!("take over the terminal ({how})");
        if let Some(guard) = &guard {
            guard.screen(true);
        }
        let saved = match link {
            Link::Forwarded => {
                // The launcher may give rank 0 a pseudo-terminal: it must pass bytes as they are.
                if let Ok(mut settings) = tcgetattr(&file) {
                    settings.output_modes -= OutputModes::OPOST;
                    tcsetattr(&file, OptionalActions::Now, &settings).map_err(LaunchError::at(&what))?;
                }
                None
            }
            Link::Own | Link::Shared => {
                let saved = tcgetattr(&file).map_err(LaunchError::at(&what))?;
                tcsetattr(&file, OptionalActions::Now, &raw_of(&saved)).map_err(LaunchError::at(&what))?;
                Some(saved)
            }
        };
        // From here on dropping it restores.
        let screen = Screen(Handle(Arc::new(Held { file, link, told, saved, entered: Mutex::new(true), guard })));
        put(&screen.0.0.file, ENTER, PATIENCE).map_err(LaunchError::at(&what))?;
        Ok(screen)
    }
}

impl Handle {
    /// Put everything back as it was. Any thread, any number of times; does nothing but system calls.
    pub fn restore(&self) {
        self.0.restore();
    }

    /// Columns and rows, now.
    pub fn size(&self) -> (u16, u16) {
        size_of(&self.0.file, self.0.link, &self.0.told)
    }

    /// How the terminal is reached.
    pub fn link(&self) -> Link {
        self.0.link
    }

    /// Where sizes from afar are told.
    pub fn told(&self) -> Told {
        self.0.told.clone()
    }

    /// Something to draw through: what is written goes out whole at `flush`, and nowhere once the terminal is restored.
    pub fn writer(&self) -> ScreenWriter {
        ScreenWriter { held: Arc::clone(&self.0), frame: Vec::new() }
    }

    /// Let Ctrl-C be a signal again, for the launcher: no key will come any more.
    pub fn allow_interrupt(&self) {
        let entered = self.0.lock();
        if let (true, Ok(mut settings)) = (*entered && self.0.saved.is_some(), tcgetattr(&self.0.file)) {
            settings.local_modes |= LocalModes::ISIG;
            // Ctrl-C is a convenience here; the launcher can be ended otherwise.
            let _ = tcsetattr(&self.0.file, OptionalActions::Now, &settings);
        }
    }

    /// Write lines below whatever is there, after [`Self::restore`]; does nothing before.
    pub fn say(&self, text: &str) {
        let entered = self.0.lock();
        if !*entered {
            let text = text.replace('\n', "\r\n");
            // A terminal that is gone cannot be told.
            let _ = put(&self.0.file, text.as_bytes(), PATIENCE);
        }
    }
}

impl Held {
    /// The lock of drawing; without it after [`PATIENCE`], since a terminal must be put back even if a writer hangs.
    fn lock_or_go_on(&self) -> Option<MutexGuard<'_, bool>> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.entered.try_lock() {
                Ok(entered) => return Some(entered),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() > end => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restore(&self) {
        let entered = self.lock_or_go_on();
        if let Some(mut entered) = entered {
            if !std::mem::replace(&mut *entered, false) {
                return;
            }
            self.leave();
        } else {
            self.leave();
        }
        if let Some(guard) = &self.guard {
            guard.screen(false);
        }
    }

    fn leave(&self) {
        // Nobody is left to tell if either fails: a terminal that hung up needs nothing.
        let _ = put(&self.file, LEAVE, PATIENCE);
        if let Some(saved) = &self.saved
            && still_raw(&self.file, saved)
        {
            let _ = restore_settings(&self.file, saved);
        }
    }
}

/// Collects a frame and sends it whole; silent once the terminal is restored.
#[derive(Debug)]
pub struct ScreenWriter {
    held: Arc<Held>,
    frame: Vec<u8>,
}

impl Write for ScreenWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let entered = self.held.lock();
        let sent = if *entered { put(&self.held.file, &self.frame, FRAME_PATIENCE) } else { Ok(()) };
        self.frame.clear();
        sent
    }
}

/// On a panic in any thread: terminal back, then where it happened and `how_to_go_on()`, on the terminal or, if there is
/// no screen, on `stderr` (standard error itself may have been redirected).
pub fn panic_hook(screen: Option<Handle>, stderr: Option<File>, how_to_go_on: impl Fn() -> String + Send + Sync + 'static) {
    panic::set_hook(Box::new(move |info| {
        let text = panic_text(info, &how_to_go_on());
        if let Some(screen) = &screen {
            screen.restore();
            screen.say(&text);
        } else if let Some(stderr) = &stderr {
            // Nobody is left to tell.
            let _ = put(stderr, text.as_bytes(), PATIENCE);
        } else {
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }));
}

fn panic_text(info: &PanicHookInfo<'_>, go_on: &str) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let payload = info.payload();
    let what =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let thread = thread::current();
    let name = thread.name().unwrap_or("?");
    let version = env!("CARGO_PKG_VERSION");
    let end = if go_on.is_empty() { String::new() } else { format!("{go_on}\n") };
    format!("toposcope {version}: a fault in the program, in thread {name} at {place}: {what}\n{end}")
}
