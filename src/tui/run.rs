//! The loop: messages in, at most twenty frames a second out, never inside a timed region.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::feed::{Ended, Feed, Mode, Setup, TuiError};
use super::look::Look;
use super::output::Output;
use super::state::{Tab, Ui};
use super::update::Effect;
use crate::measure::Gate;
use crate::session::{Command, Header, Model};

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// Shortest time between two frames while a probe runs.
const FRAME_MEASURING: Duration = Duration::from_millis(200);
/// How often a session in which nothing goes on is asked for news.
const IDLE: Duration = Duration::from_millis(100);
/// How often the terminal is asked for its size.
const SIZE: Duration = Duration::from_millis(250);
/// How long a probe may keep the screen waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Show a session until the person leaves or its events end.
pub fn run(setup: Setup, header: Header) -> Result<Ended, TuiError> {
    let Setup { mut feed, tty, gate, theme, themes, color, keys, settings, movers, start_tab } = setup;
    let (look, warnings) = Look::new(&theme, themes, super::level(color), keys.as_deref())?;
    // A live session is there to be measured, a recorded one to be looked at.
    let first = if feed.mode() == Mode::Recorded { Tab::Matrix } else { Tab::Sweep };
    let ui = Ui::new(start_tab.unwrap_or(first), &settings, movers);
    let mut app = App::new(Model::new(header), ui, look, feed.mode());
    app.warn(&warnings);
    let mut screen = Screen { output: Output::new(tty.output), spare: Buffer::empty(Rect::ZERO), area: Rect::ZERO, changed: true };
    screen.resize((tty.size)());
    let (mut last_frame, mut last_size): (Option<Instant>, Instant) = (None, Instant::now());
    loop {
        let now = Instant::now();
        if now - last_size >= SIZE {
            last_size = now;
            screen.resize((tty.size)());
        }
        if last_frame.is_none_or(|last| now - last >= pause(gate.as_ref())) {
            let since = last_frame.map_or(Duration::ZERO, |last| now - last);
            last_frame = Some(now);
            if let Some(ended) = pass(gate.as_ref(), || frame(&mut app, &mut screen, feed.as_mut(), since))? {
                return Ok(ended);
            }
        }
        let wait = if screen.changed || app.lively() { FRAME } else { IDLE };
        let wait = last_frame.map_or(wait, |last| (last + wait).saturating_duration_since(Instant::now()));
        let first = match tty.input.recv_timeout(wait.max(Duration::from_millis(1))) {
            Ok(input) => input,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Hangup),
        };
        for input in coalesce(std::iter::once(first).chain(tty.input.try_iter())) {
            if matches!(input, Input::Resize(..)) {
                screen.resize((tty.size)());
            }
            let reaction = app.input(&input);
            screen.changed |= reaction.changed;
            match reaction.effect {
                Effect::Send(command) => feed.send(command),
                Effect::Redraw => screen.output.forget(),
                Effect::ReleaseMouse(released) => screen.output.mouse(!released)?,
                Effect::Leave => {
                    if feed.mode() == Mode::Live {
                        feed.send(Command::Quit);
                    }
                    return Ok(Ended::Quit);
                }
                Effect::Nothing | Effect::NextTheme | Effect::Play(_) => {}
            }
        }
    }
}

struct Screen {
    output: Output,
    spare: Buffer,
    area: Rect,
    changed: bool,
}

impl Screen {
    fn resize(&mut self, (width, height): (u16, u16)) {
        let area = Rect::new(0, 0, width, height);
        if area != self.area {
            self.area = area;
            self.changed = true;
        }
    }
}

fn pause(gate: Option<&Arc<Gate>>) -> Duration {
    if gate.is_some_and(|gate| gate.measuring()) { FRAME_MEASURING } else { FRAME }
}

fn pass<T>(gate: Option<&Arc<Gate>>, work: impl FnOnce() -> T) -> T {
    match gate {
        Some(gate) => gate.pass(PATIENCE, work),
        None => work(),
    }
}

/// News in, and a frame out if anything changed.
fn frame(app: &mut App, screen: &mut Screen, feed: &mut dyn Feed, since: Duration) -> Result<Option<Ended>, TuiError> {
    let news = feed.drain();
    screen.changed |= app.take(news.records);
    screen.changed |= app.tick(since.as_secs_f64());
    if screen.changed && !screen.area.is_empty() {
        let mut buffer = std::mem::take(&mut screen.spare);
        buffer.resize(screen.area);
        buffer.reset();
        app.draw(&mut buffer);
        screen.spare = screen.output.show(buffer)?;
        screen.changed = false;
    }
    Ok(news.ended.map(Ended::Feed))
}

/// Inputs as they came, but of mouse moves that follow one another only the last.
fn coalesce(inputs: impl Iterator<Item = Input>) -> Vec<Input> {
    let moves = |input: &Input| match input {
        Input::Mouse(mouse) => matches!(mouse.kind, MouseEventKind::Moved | MouseEventKind::Drag(_)).then_some(mouse.kind),
        _ => None,
    };
    let mut kept: Vec<Input> = Vec::new();
    for input in inputs {
        match kept.last_mut() {
            Some(last) if moves(&input).is_some() && moves(last) == moves(&input) => *last = input,
            _ => kept.push(input),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};

    #[test]
    fn of_mouse_moves_the_last_counts() {
        let moved = |column| Input::Mouse(MouseEvent { kind: MouseEventKind::Moved, column, row: 0, modifiers: KeyModifiers::NONE });
        let key = Input::Key(KeyEvent::from(KeyCode::Char('j')));
        let inputs = [moved(1), moved(2), key.clone(), moved(3), moved(4)];
        assert_eq!(coalesce(inputs.into_iter()), [moved(2), key, moved(4)]);
    }
}
