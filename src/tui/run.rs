//! The loop: messages in, at most twenty frames a second out, never inside a timed region.

use std::borrow::Cow;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::feed::{Ended, Feed, Keep, Keeper, Mode, Setup, Shelf, Themes, Tty, TuiError};
use super::look::Look;
use super::output::Output;
use super::state::{Tab, Ui};
use super::update::Effect;
use crate::measure::Gate;
use crate::session::{Command, Header, Model};

/// Frames a second at most, when nobody says otherwise.
pub const FRAMES: u32 = 20;
/// Shortest time between two frames while a probe runs.
const FRAME_MEASURING: Duration = Duration::from_millis(200);
/// How often a session in which nothing goes on is asked for news.
const IDLE: Duration = Duration::from_millis(100);
/// How often the terminal is asked for its size.
const SIZE: Duration = Duration::from_millis(250);
/// How long a probe may keep the screen waiting.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same, for a probe that is known to be long.
const PATIENCE_KNOWN: Duration = Duration::from_millis(100);

/// Show a session until the person leaves or its events end.
pub fn run(setup: Setup, header: Header) -> Result<Ended, TuiError> {
    let Stage { mut app, mut screen, mut beside, mut feed, size, input, gate, shortest, mut untouched } = begin(setup, header)?;
    let keys = input.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut asked, mut drawn, mut sized): (Option<Instant>, Option<Instant>, Instant) = (None, None, Instant::now());
    let mut overdrawn: Option<u64> = None;
    let mut leaving = false;
    loop {
        let now = Instant::now();
        if now - sized >= SIZE {
            sized = now;
            screen.resize(size());
        }
        let measuring = gate.as_ref().is_some_and(|gate| gate.measuring());
        let (between_frames, between_news) = match (measuring, app.lively()) {
            (true, _) => (FRAME_MEASURING.max(shortest), FRAME_MEASURING.max(shortest)),
            (false, true) => (shortest, shortest),
            (false, false) => (shortest, IDLE.max(shortest)),
        };
        // A key in an idle session is answered at once: no frame was drawn lately.
        let frame_due = drawn.filter(|_| screen.changed).map(|drawn| drawn + between_frames);
        let due = asked.map(|asked| frame_due.map_or(asked + between_news, |frame| frame.min(asked + between_news)));
        if due.is_none_or(|due| now >= due) {
            let since = asked.map_or(Duration::ZERO, |asked| now - asked);
            // A probe that was drawn over once is a long one: the keys need not wait for it again and again.
            let known = overdrawn.is_some() && overdrawn == app.probe();
            let patience = if known { PATIENCE_KNOWN } else { PATIENCE };
            let news = pass(gate.as_ref(), patience, || {
                screen.changed |= beside.news(&mut app);
                frame(&mut app, &mut screen, feed.as_mut(), (since, untouched))
            })?;
            if let Some(ended) = news.ended {
                return Ok(if leaving { Ended::Quit } else { ended });
            }
            let after = Instant::now();
            if !known {
                overdrawn = if after - now >= PATIENCE { app.probe() } else { None };
            }
            asked = Some(after);
            if news.drawn {
                drawn = asked;
            }
            continue;
        }
        let wait = due.map_or(shortest, |due| due.saturating_duration_since(now)).max(Duration::from_millis(1));
        let first = match keys.recv_timeout(wait) {
            Ok(input) => input,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Hangup),
        };
        for input in coalesce(std::iter::once(first).chain(keys.try_iter())) {
            if matches!(input, Input::Resize(..)) {
                screen.resize(size());
            }
            if matches!(input, Input::Key(_)) || matches!(input, Input::Mouse(mouse) if matches!(mouse.kind, MouseEventKind::Down(_))) {
                // From now on the person decides what is looked at.
                untouched = false;
                app.ui.replay.named.clear();
            }
            let reaction = app.input(&input);
            screen.changed |= reaction.changed;
            match reaction.effect {
                Effect::Send(command) => feed.send(command),
                // The question was answered before.
                _ if leaving && (reaction.effect == Effect::Leave || app.asks_to_leave()) => return Ok(Ended::AtOnce),
                Effect::Leave => {
                    if feed.mode() == Mode::Live {
                        feed.send(Command::Quit);
                        // The job ends between probes; one that hangs takes its time, and a still picture would look hung.
                        if gate.as_ref().is_some_and(|gate| gate.measuring()) {
                            leaving = true;
                            app.leaving();
                            screen.changed = true;
                            continue;
                        }
                    }
                    return Ok(Ended::Quit);
                }
                other => {
                    if let Some(ended) = beside.carry_out(other, &mut app, &mut screen, gate.as_ref())? {
                        return Ok(ended);
                    }
                }
            }
        }
    }
}

/// All that the loop goes on.
struct Stage {
    app: App,
    screen: Screen,
    beside: Beside,
    feed: Box<dyn Feed>,
    size: Box<dyn Fn() -> (u16, u16) + Send>,
    input: Arc<Mutex<Receiver<Input>>>,
    gate: Option<Arc<Gate>>,
    /// shortest time between two frames
    shortest: Duration,
    /// the person has not decided yet what is looked at
    untouched: bool,
}

fn begin(setup: Setup, header: Header) -> Result<Stage, TuiError> {
    let Setup {
        feed,
        keeper,
        tty: Tty { output, size, input },
        gate,
        theme,
        themes,
        color,
        keys,
        settings,
        movers,
        efficiency,
        against,
        start_tab,
        mouse,
        frames,
        shelf,
        changed_themes,
    } = setup;
    let (look, warnings) = Look::new(&theme, themes, super::level(color), keys.as_deref())?;
    // A live session is there to be measured, a recorded one to be looked at.
    let first = if feed.mode() == Mode::Recorded { Tab::Matrix } else { Tab::Sweep };
    let mut ui = Ui::new(start_tab.unwrap_or(first), &settings, movers);
    ui.mouse_released = !mouse;
    let shortest = Duration::from_secs(1) / frames.clamp(1, 60);
    let mut app = App::new(Model::new(header), ui, look, feed.mode(), &efficiency);
    app.shelf = shelf.is_some();
    let beside = Beside { keeper, shelf, changed_themes, mouse };
    app.warn(&warnings);
    if let Some(other) = against {
        app.compare_with(other);
    }
    let mut screen = Screen::new(output);
    if !mouse {
        screen.output.mouse(false)?;
    }
    screen.resize(size());
    Ok(Stage { app, screen, beside, feed, size, input, gate, shortest, untouched: start_tab.is_none() })
}

/// What a screen has besides its session.
struct Beside {
    /// writes pictures and reports
    keeper: Box<dyn Keeper>,
    shelf: Option<Box<dyn Shelf>>,
    changed_themes: Option<Themes>,
    /// the mouse is the screen's from the beginning
    mouse: bool,
}

impl Beside {
    /// What became of wishes, of what was to be kept, and of theme files; true if a new frame is due.
    fn news(&mut self, app: &mut App) -> bool {
        let mut changed = false;
        if let Some(own) = self.changed_themes.as_mut().and_then(|changed| changed()) {
            changed |= app.renew_themes(own);
        }
        for told in self.shelf.iter_mut().flat_map(|shelf| shelf.drain()) {
            app.shelf_told(told);
            changed = true;
        }
        if let Some(told) = self.keeper.told() {
            let refused = told.is_err();
            app.ui.say(told.unwrap_or_else(|why| why), refused);
            changed = true;
        }
        changed
    }

    /// What an input asks of the terminal and of the recorded sessions; how the screen ends, if it does.
    fn carry_out(
        &mut self,
        effect: Effect,
        app: &mut App,
        screen: &mut Screen,
        gate: Option<&Arc<Gate>>,
    ) -> Result<Option<Ended>, TuiError> {
        match effect {
            Effect::Redraw => screen.output.forget(),
            Effect::SavePicture => {
                let size = (screen.area.width, screen.area.height);
                let canvas = pass(gate, PATIENCE_KNOWN, || app.picture(size));
                let of = app.ui.tab.title().to_lowercase();
                self.keeper.keep(Keep::Picture { session: app.model.header.name.clone(), of, canvas });
            }
            Effect::WriteReport => {
                app.ui.say("writing the report …", false);
                self.keeper.keep(Keep::Report { model: Arc::clone(&app.model) });
            }
            Effect::ReleaseMouse(released) => screen.output.mouse(!released)?,
            Effect::Copy(text) => screen.output.copy(&text)?,
            Effect::Ask(wish) => {
                if let Some(shelf) = &mut self.shelf {
                    shelf.ask(wish);
                }
            }
            Effect::Open { folder, against } => {
                // The next one begins as this one did.
                screen.output.mouse(self.mouse)?;
                return Ok(Some(Ended::Open { folder, against }));
            }
            Effect::Nothing | Effect::NextTheme | Effect::Play(_) | Effect::Send(_) | Effect::Leave => {}
        }
        Ok(None)
    }
}

pub(super) struct Screen {
    pub(super) output: Output,
    pub(super) spare: Buffer,
    pub(super) area: Rect,
    pub(super) changed: bool,
}

impl Screen {
    /// A screen of which nothing is known yet.
    pub(super) fn new(to: Box<dyn Write + Send>) -> Self {
        Self { output: Output::new(to), spare: Buffer::empty(Rect::ZERO), area: Rect::ZERO, changed: true }
    }

    pub(super) fn resize(&mut self, (width, height): (u16, u16)) {
        let area = Rect::new(0, 0, width, height);
        if area != self.area {
            self.area = area;
            self.changed = true;
        }
    }
}

fn pass<T>(gate: Option<&Arc<Gate>>, patience: Duration, work: impl FnOnce() -> T) -> T {
    match gate {
        Some(gate) => gate.pass(patience, work),
        None => work(),
    }
}

/// What a look at the news brought.
struct News {
    drawn: bool,
    ended: Option<Ended>,
}

/// News in, and a frame out if anything changed.
fn frame(app: &mut App, screen: &mut Screen, feed: &mut dyn Feed, (since, untouched): (Duration, bool)) -> Result<News, TuiError> {
    let news = feed.drain();
    if untouched {
        let own = news.played.iter().flat_map(|played| (0..played.records.len()).rev().filter_map(|at| played.records.get(at)));
        app.ui.open_plans(news.records.iter().rev().map(Cow::Borrowed).chain(own));
    }
    if let Some(played) = news.played {
        app.begin(*played);
        screen.changed = true;
    }
    if let Some(waits) = news.waits {
        screen.changed |= app.ui.notice.as_ref().is_none_or(|notice| notice.text != waits);
        app.ui.say(waits, false);
    }
    screen.changed |= app.take(news.records);
    screen.changed |= app.tick(since.as_secs_f64());
    let drawn = screen.changed && !screen.area.is_empty();
    if drawn {
        let mut buffer = std::mem::take(&mut screen.spare);
        buffer.resize(screen.area);
        buffer.reset();
        app.draw(&mut buffer);
        screen.spare = screen.output.show(buffer)?;
        screen.changed = false;
    }
    Ok(News { drawn, ended: news.ended.map(Ended::Feed) })
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
