//! Frames to the terminal: one write each, only what changed, between synchronized-update markers.

use std::io::{self, Write};

use crossterm::cursor::Hide;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::queue;
use crossterm::style::{ResetColor, force_color_output};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The terminal's side of the screen: what it shows now.
pub struct Output {
    to: Box<dyn Write + Send>,
    shown: Buffer,
    bytes: Vec<u8>,
    /// what the terminal shows is not known: clear and send everything
    unknown: bool,
}

impl Output {
    /// Frames go to `to`.
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        // `ramp` has chosen the colours; crossterm must not drop them again because of NO_COLOR.
        force_color_output(true);
        Self { to, shown: Buffer::empty(Rect::ZERO), bytes: Vec::new(), unknown: true }
    }

    /// Send everything with the next frame.
    pub fn forget(&mut self) {
        self.unknown = true;
    }

    /// Take the mouse, or give it back to the terminal.
    pub fn mouse(&mut self, take: bool) -> io::Result<()> {
        self.bytes.clear();
        if take {
            queue!(self.bytes, EnableMouseCapture)?;
        } else {
            queue!(self.bytes, DisableMouseCapture)?;
        }
        self.to.write_all(&self.bytes)?;
        self.to.flush()
    }

    /// Hand a text to the terminal's clipboard (OSC 52), between two frames. A terminal that does not know it shows nothing; tmux takes it
    /// with `set-clipboard on`.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.extend_from_slice(b"\x1b]52;c;");
        base64(text.as_bytes(), &mut self.bytes);
        self.bytes.extend_from_slice(b"\x1b\\");
        self.to.write_all(&self.bytes)?;
        self.to.flush()
    }

    /// Show `frame`, and take its buffer; the one that was shown comes back for the next frame.
    pub fn show(&mut self, frame: Buffer) -> io::Result<Buffer> {
        self.bytes.clear();
        queue!(self.bytes, BeginSynchronizedUpdate)?;
        if self.unknown || self.shown.area != frame.area {
            queue!(self.bytes, ResetColor, Clear(ClearType::All), Hide)?;
            self.shown = Buffer::empty(frame.area);
            self.unknown = false;
        }
        let changes = self.shown.diff(&frame);
        if !changes.is_empty() {
            CrosstermBackend::new(&mut self.bytes).draw(changes.into_iter())?;
        }
        queue!(self.bytes, EndSynchronizedUpdate)?;
        self.to.write_all(&self.bytes)?;
        self.to.flush()?;
        Ok(std::mem::replace(&mut self.shown, frame))
    }
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let part = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= three.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::{Color, Style};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn frame(text: &str) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(1, 1, text, Style::new().fg(Color::Rgb(1, 2, 3)));
        buffer
    }

    #[test]
    fn base_64_is_as_the_standard_s_examples() {
        for (text, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")]
        {
            let mut out = Vec::new();
            base64(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_copy_is_one_write_and_changes_nothing_on_the_screen() {
        let writes = Writes::default();
        let mut output = Output::new(Box::new(writes.clone()));
        output.show(frame("hello")).unwrap();
        output.copy("0→1\n").unwrap();
        let seen = writes.0.lock().unwrap();
        assert_eq!(seen[1], b"\x1b]52;c;MOKGkjEK\x1b\\");
        let mut terminal = vt100::Parser::new(2.try_into().unwrap(), 12.try_into().unwrap(), 0);
        seen.iter().for_each(|write| terminal.process(write));
        assert_eq!(terminal.screen().contents(), "\n hello");
    }

    #[test]
    fn a_frame_is_one_write_and_only_what_changed() {
        let writes = Writes::default();
        let mut output = Output::new(Box::new(writes.clone()));
        output.show(frame("hello")).unwrap();
        output.show(frame("hallo")).unwrap();
        let seen = writes.0.lock().unwrap();
        assert_eq!(seen.len(), 2);
        let second = String::from_utf8_lossy(&seen[1]);
        assert!(second.starts_with("\u{1b}[?2026h") && second.ends_with("\u{1b}[?2026l"), "{second:?}");
        assert!(!second.contains('o'), "{second:?}");
        let mut terminal = vt100::Parser::new(2.try_into().unwrap(), 12.try_into().unwrap(), 0);
        terminal.process(&seen[0]);
        terminal.process(&seen[1]);
        assert_eq!(terminal.screen().contents(), "\n hallo");
        assert_eq!(terminal.screen().cell(1, 1).unwrap().fgcolor(), vt100::Color::Rgb(1, 2, 3));
    }
}
