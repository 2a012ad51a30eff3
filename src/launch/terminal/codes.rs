use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Alternate screen, no cursor, mouse (any motion, SGR coordinates), bracketed paste.
pub const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?2004h";

/// All of it undone, whatever was on: a cut sequence ended (ST), synchronized update, kitty keys, mouse modes, focus,
/// paste, wrap, colours, cursor and its shape, alternate screen.
pub const LEAVE: &[u8] = b"\x1b\\\x1b[?2026l\x1b[<1u\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0m\x1b[0 q\x1b[?25h\x1b[?1049l";

/// The settings for drawing, made of the person's own.
pub(crate) fn raw_of(saved: &Termios) -> Termios {
    let mut raw = saved.clone();
    raw.make_raw();
    raw
}

/// Whether the settings are the ones that drawing left: if a shell has set its own meanwhile, they are its business.
pub(crate) fn still_raw(file: &File, saved: &Termios) -> bool {
    let raw = raw_of(saved);
    // Signal keys are given back when keys cannot come any more, see `Screen::allow_interrupt`.
    let local = |modes: LocalModes| modes - LocalModes::ISIG;
    tcgetattr(file).is_ok_and(|now| {
        now.input_modes == raw.input_modes && now.output_modes == raw.output_modes && local(now.local_modes) == local(raw.local_modes)
    })
}

/// Put the person's settings back, at once: waiting for output to drain could take forever.
pub(crate) fn restore_settings(file: &File, saved: &Termios) -> io::Result<()> {
    Ok(tcsetattr(file, OptionalActions::Now, saved)?)
}

/// Write all of it, waiting for a full terminal no longer than `patience`.
pub(crate) fn put(file: &File, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&wait)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Terminals are opened non-blocking; a pipe that is ready takes this much without blocking (PIPE_BUF).
        match rustix::io::write(file, &bytes[..bytes.len().min(4096)]) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
