//! The list of sessions alone on the screen, where none is open yet.

use std::sync::PoisonError;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyEventKind};

use super::browser::{Browser, Wanted, take};
use super::draw::draw_sessions;
use super::feed::{Ended, Shelf, Tty, TuiError, Wish};
use super::look::Look;
use super::run::Screen;
use super::typing::Stroke;

/// How often a list that is waited for, and the terminal's size, are asked for.
const LOOK: Duration = Duration::from_millis(100);

/// Let the person choose a session, and do what they want with the others; `why` is told first.
pub fn browse(mut shelf: Box<dyn Shelf>, tty: Tty, look: &Look, why: Option<String>) -> Result<Ended, TuiError> {
    let mut browser = Browser::default();
    browser.open(true, false);
    browser.error = why;
    shelf.ask(Wish::List);
    let mut screen = Screen::new(tty.output);
    // It has no use for the mouse: the terminal's own selection works.
    screen.output.mouse(false)?;
    let keys = tty.input.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        screen.resize((tty.size)());
        for told in shelf.drain() {
            take(&mut browser, told);
            screen.changed = true;
        }
        if screen.changed && !screen.area.is_empty() {
            let mut buffer = std::mem::take(&mut screen.spare);
            buffer.resize(screen.area);
            buffer.reset();
            let area = buffer.area;
            buffer.set_style(area, look.ground());
            draw_sessions(&browser, look, &mut buffer, area);
            screen.spare = screen.output.show(buffer)?;
            screen.changed = false;
        }
        let input = match keys.recv_timeout(LOOK) {
            Ok(input) => input,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(Ended::Hangup),
        };
        screen.changed = true;
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => match browser.key(key) {
                Wanted::Nothing => {}
                Wanted::Close => return Ok(Ended::Quit),
                Wanted::Ask(wish) => shelf.ask(wish),
                Wanted::Open { folder, against } => {
                    // The next screen begins as this one did.
                    screen.output.mouse(true)?;
                    return Ok(Ended::Open { folder, against });
                }
            },
            Input::Paste(text) => {
                if let Some((.., typing)) = &mut browser.typing {
                    text.chars().for_each(|c| typing.stroke(Stroke::Insert(c)));
                }
            }
            _ => {}
        }
    }
}
