//! The screen without its terminal: records, keys and time in; frames and commands out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::atlas::Atlas;
use super::draw::{HitMap, Scene, draw};
use super::expected::Expected;
use super::fans::Fans;
use super::feed::Mode;
use super::feed::Played;
use super::findings::{Desk, Other, Told};
use super::fits::{Book, SHARE, SHARE_RUNNING};
use super::form::Form;
use super::keys::{Action, Context};
use super::look::Look;
use super::past::Past;
use super::player::{Moved, Player};
use super::replay::{Lights, Replays};
use super::state::{Ask, Popup, Tab, Ui};
use super::typing::{Stroke, stroke};
use super::update::{Effect, Facts, Play};
use super::view::{Key, View};
use crate::export::svg::Canvas;
use crate::session::{Change, Event, Model, Record, Running};
use crate::topology::Efficiency;
use crate::transport::Collector;

/// What taking in records may take of a frame, and how many are taken in between two looks at the clock.
const NEWS: Duration = Duration::from_millis(25);
const CHUNK: usize = 32;

/// What actions are decided by, beside the panel's own state, which they change.
macro_rules! facts {
    ($app:ident) => {
        Facts {
            model: &$app.model,
            atlas: &$app.atlas,
            view: &$app.view,
            fans: &$app.fans,
            fits: &$app.fits,
            desk: &$app.desk,
            replays: &$app.replays,
            mode: $app.mode,
        }
    };
}

mod orders;

/// Facts, what is derived from them, and where the person is.
pub struct App {
    /// shared with the thread that diagnoses it, while that reads it
    pub model: Arc<Model>,
    pub ui: Ui,
    view: View,
    atlas: Atlas,
    expected: Expected,
    pub(super) fans: Fans,
    fits: Book,
    pub(super) desk: Desk,
    pub(super) replays: Replays,
    lights: Lights,
    /// the diagnosis that the view is of
    seen: u64,
    /// records that came faster than frames can take them in
    backlog: VecDeque<Record>,
    /// what fitting may take of a frame; `None` for as long as it takes, for records too
    pub(super) share: Option<Duration>,
    look: Look,
    mode: Mode,
    /// view changes to take back
    past: Past,
    /// recorded sessions can be asked for
    pub(super) shelf: bool,
    /// the time of a recorded session
    player: Option<Player>,
    /// what lay where in the last frame
    pub(super) hits: HitMap,
}

/// What an input did.
#[derive(Debug, Clone, PartialEq)]
pub struct Reaction {
    /// a new frame is due
    pub changed: bool,
    pub effect: Effect,
}

impl App {
    /// A screen on a session that has just begun, or is about to be loaded.
    pub fn new(model: Model, mut ui: Ui, look: Look, mode: Mode, efficiency: &Efficiency) -> Self {
        ui.fit(model.world());
        let atlas = Atlas::new(&model.header.topology, efficiency);
        let view = View::build(&model, &atlas, Key::of(&model, &ui.matrix), None);
        let player = (mode == Mode::Recorded).then(Player::default);
        let expected = Expected::of(&ui.form, &model, &view);
        let fits = Book::new(&model);
        Self {
            model: Arc::new(model),
            ui,
            view,
            atlas,
            expected,
            fans: Fans::default(),
            fits,
            desk: Desk::new(efficiency),
            replays: Replays::default(),
            lights: Lights::default(),
            seen: 0,
            backlog: VecDeque::new(),
            share: Some(SHARE),
            look,
            mode,
            past: Past::default(),
            shelf: false,
            player,
            hits: HitMap::default(),
        }
    }

    /// Compare the session with another one.
    pub fn compare_with(&mut self, other: Model) {
        self.desk.compare_with(Other::new(other));
        self.ui.compare();
        self.turn();
    }

    #[cfg(test)]
    pub(super) fn set_look(&mut self, look: Look) {
        self.look = look;
    }

    #[cfg(test)]
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    #[cfg(test)]
    pub(super) fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    #[cfg(test)]
    pub(super) fn theme(&self) -> &super::theme::Theme {
        &self.look.theme
    }

    /// Tell what was wrong with a theme's file.
    pub fn warn(&mut self, warnings: &[String]) {
        if let Some(first) = warnings.first() {
            let more = if warnings.len() > 1 { format!(" (and {} more)", warnings.len() - 1) } else { String::new() };
            self.ui.say(format!("theme {}: {first}{more}", self.look.theme.name()), true);
        }
    }

    /// Tell which theme is in use now, and what was wrong with it.
    fn tell_theme(&mut self, warnings: &[String]) {
        let name = self.look.theme.name().to_owned();
        self.ui.say(format!("theme {name}"), false);
        self.warn(warnings);
    }

    /// The person's theme files are others now; true if a new frame is due.
    pub fn renew_themes(&mut self, own: std::collections::BTreeMap<String, String>) -> bool {
        let Some(warnings) = self.look.renew_themes(own) else { return false };
        let name = self.look.theme.name().to_owned();
        self.ui.say(format!("theme {name}: its file was read again"), false);
        self.warn(&warnings);
        true
    }

    /// The probe that runs, as far as is known.
    pub fn probe(&self) -> Option<u64> {
        self.model.sweep.as_ref()?.probe().map(|probe| probe.id)
    }

    /// Say that leaving waits for the probe under way, for how long at most, and how not to wait.
    pub fn leaving(&mut self) {
        let most = self.model.sweep.as_ref().map_or(0.0, |sweep| sweep.settings.timeout) + Collector::GRACE.as_secs_f64();
        self.ui.say(format!("leaving when this probe ends, in {most:.0} s at most; leave again to end it now"), true);
        if let Some(notice) = &mut self.ui.notice {
            notice.left = f64::INFINITY;
        }
    }

    /// True while the question whether to leave is open.
    pub fn asks_to_leave(&self) -> bool {
        self.ui.popups.last() == Some(&Popup::Confirm(Ask::Quit))
    }

    /// True while something moves by itself.
    pub fn lively(&self) -> bool {
        self.fitting()
            || self.desk.busy()
            || self.pricing()
            || self.ui.replay.playing
            || !self.backlog.is_empty()
            || self.player.as_ref().map_or_else(|| super::draw::running(&self.model) || self.model.testing.is_some(), Player::playing)
    }

    /// True while the table in sight is not whole yet.
    pub fn fitting(&self) -> bool {
        self.ui.tab == Tab::Fits && self.fits.busy()
    }

    /// True while a plan is priced.
    pub fn pricing(&self) -> bool {
        self.replays.busy()
    }

    /// Take in new records, those of a live session for as long as a frame allows; true if a new frame is due.
    pub fn take(&mut self, records: Vec<Record>) -> bool {
        if records.is_empty() && self.backlog.is_empty() {
            return false;
        }
        if self.player.is_some() {
            self.release();
        }
        if self.player.as_ref().is_some_and(|player| player.position().1 > 0) {
            // What comes to a session that is there is an answer.
            let told = records.iter().rev().find_map(|record| if let Event::Notice { text } = &record.event { Some(text) } else { None });
            if let Some(text) = told {
                self.ui.say(text.clone(), true);
            }
        }
        if let Some(player) = &mut self.player {
            player.load(records, Arc::make_mut(&mut self.model));
            self.loaded();
            return true;
        }
        self.backlog.extend(records);
        // A report that is being written holds the model, too.
        let read = self.desk.reads() || self.replays.reads() || Arc::strong_count(&self.model) > 1;
        if self.share.is_some() && read {
            // A little later: the thread that reads the model takes a second of a thousand ranks.
            return false;
        }
        let begun = Instant::now();
        let mut count = 0_usize;
        while let Some(record) = self.backlog.pop_front() {
            if let Event::Notice { text } = &record.event {
                self.ui.say(text.clone(), false);
            }
            if let Event::ExecutionDone(run) = &record.event {
                self.ui.tell_run(run);
            }
            self.apply(&record);
            count += 1;
            if count.is_multiple_of(CHUNK) && self.share.is_some() && begun.elapsed() >= NEWS {
                break;
            }
        }
        true
    }

    /// Take in a recorded session that was read beside the screen.
    pub fn begin(&mut self, played: Played) {
        self.release();
        if let Some(player) = &mut self.player {
            player.begin(played.records);
        }
        self.model = Arc::new(played.model);
        self.loaded();
    }

    /// More of a recorded session is there.
    fn loaded(&mut self) {
        if let Some(sweep) = &self.model.sweep {
            self.ui.form = Form::new(&sweep.settings, vec![sweep.settings.mover]);
        }
        self.replaced();
    }

    /// Take in one record.
    pub fn apply(&mut self, record: &Record) {
        self.release();
        let others = |model: &Model| (model.lost.len(), model.tests.len());
        let before = others(&self.model);
        let change = Arc::make_mut(&mut self.model).apply(record);
        if others(&self.model) != before {
            self.desk.changed();
        }
        self.follow(&change);
    }

    /// Wait until nothing reads the model, which is to change.
    fn release(&mut self) {
        self.desk.release();
        self.replays.release();
    }

    fn follow(&mut self, change: &Change) {
        match change {
            Change::Nothing => return,
            Change::Placed => {
                self.replaced();
                return;
            }
            _ => {}
        }
        self.fans.follow(change);
        self.fits.follow(change);
        self.desk.follow(change);
        self.replays.follow(change);
        self.atlas.follow(&self.model, change);
        let key = self.key();
        if key == self.view.key && *change != Change::Cleared {
            self.view.follow(&self.model, &self.atlas.router, change);
        } else {
            self.rebuild();
        }
    }

    fn key(&self) -> Key {
        Key::of(&self.model, &self.ui.matrix)
    }

    fn rebuild(&mut self) {
        self.view = View::build(&self.model, &self.atlas, self.key(), self.view.changes.take());
    }

    /// Everything derived is of another model.
    fn replaced(&mut self) {
        self.fans.forget();
        self.fits.forget();
        self.desk.changed();
        self.replays.changed();
        self.atlas.forget(&self.model.header.topology);
        self.rebuild();
    }

    /// Let time go by; true if a new frame is due.
    pub fn tick(&mut self, seconds: f64) -> bool {
        let mut changed = self.ui.tick(seconds) || self.fitting();
        self.fits.tick(seconds);
        changed |= self.desk.tick(seconds, self.model.world(), self.busy());
        if self.ui.tab == Tab::Replay {
            changed |= self.replays.tick(seconds, &self.ui.replay, self.busy());
        }
        changed |= self.ui.replay.tick(seconds, &self.replays);
        if let Some(mut player) = self.player.take() {
            if player.playing() {
                self.release();
            }
            let moved = player.tick(seconds, Arc::make_mut(&mut self.model));
            self.player = Some(player);
            changed |= self.moved(&moved);
        }
        changed
    }

    fn moved(&mut self, moved: &Moved) -> bool {
        match moved {
            Moved::Stayed => return false,
            Moved::Forward(changes) => changes.iter().for_each(|change| self.follow(change)),
            Moved::Replaced => self.replaced(),
        }
        true
    }

    /// True while samples come in.
    fn busy(&self) -> bool {
        let measures = self.model.sweep.as_ref().is_some_and(|sweep| sweep.running == Running::Measuring) || self.model.testing.is_some();
        self.player.as_ref().map_or(measures || !self.backlog.is_empty(), Player::playing)
    }

    /// Draw a frame, and remember what lies where.
    pub fn draw(&mut self, buf: &mut Buffer) {
        self.desk.settle(&self.model, self.busy(), self.share.is_none());
        if self.seen != self.desk.made() {
            self.seen = self.desk.made();
            let told = self.desk.told();
            self.view.compare(&self.model, &self.atlas, told.and_then(Told::changes).cloned());
            self.ui.findings.follow(told);
        }
        if self.ui.tab == Tab::Replay || self.ui.replay.lit {
            let busy = self.busy();
            self.replays.settle(&self.model, &mut self.ui.replay, busy, self.share.is_none());
            self.lights.settle(&self.model, &self.atlas, &self.ui.replay, &self.replays);
            self.ui.forget_unpriced(&self.replays);
        }
        if self.ui.tab == Tab::Topology {
            self.atlas.settle(&self.model, self.view.key, &mut self.ui.topology);
            if !self.ui.topology.greeted {
                let facts = facts!(self);
                self.ui.topology.greet(&facts, &mut self.ui.matrix);
                self.atlas.settle(&self.model, self.view.key, &mut self.ui.topology);
            }
        }
        if self.ui.tab == Tab::Matrix {
            self.atlas.shares.settle(&self.model, &self.atlas.router, self.view.key);
            self.view.insight.settle();
        }
        if self.ui.tab == Tab::Sweep {
            self.expected.settle(&self.ui.form, &self.model, &self.view, super::draw::running(&self.model));
        }
        if self.ui.tab == Tab::Fans {
            self.fans.settle(&self.model, &self.ui.fans);
        }
        if self.ui.tab == Tab::Fits {
            let running = super::draw::running(&self.model) || !self.backlog.is_empty();
            let share = self.share.map(|share| if running { share.min(SHARE_RUNNING) } else { share });
            self.fits.settle(&self.model, &mut self.ui.fits, share);
        }
        let scene = self.scene();
        let area = buf.area;
        let hits = draw(&scene, buf, area);
        self.hits = hits;
    }

    /// All that a frame is drawn from.
    fn scene(&self) -> Scene<'_> {
        Scene {
            model: &self.model,
            view: &self.view,
            atlas: &self.atlas,
            expected: &self.expected,
            fans: &self.fans,
            fits: &self.fits,
            desk: &self.desk,
            replays: &self.replays,
            lights: &self.lights,
            ui: &self.ui,
            look: &self.look,
            mode: self.mode,
            player: self.player.as_ref(),
        }
    }

    /// The screen as it is, for a picture.
    pub fn picture(&mut self, (width, height): (u16, u16)) -> Canvas {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.draw(&mut buffer);
        super::picture::canvas(&buffer, &self.look.theme)
    }

    /// React to a key, the mouse, a paste or a resize.
    pub fn input(&mut self, input: &Input) -> Reaction {
        // What is being typed is no change until it is taken, and a pointer that moves is on its way.
        let hovers = matches!(input, Input::Mouse(mouse) if mouse.kind == MouseEventKind::Moved);
        if self.ui.typing().is_none() {
            self.past.arrive(&self.ui);
        }
        let effect = match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key_pressed(*key),
            Input::Mouse(mouse) => {
                let facts = facts!(self);
                match self.ui.mouse(mouse, &facts, &self.hits) {
                    Some(effect) => effect,
                    None => return Reaction { changed: false, effect: Effect::Nothing },
                }
            }
            Input::Paste(text) => {
                let Some(typing) = self.ui.typing() else { return Reaction { changed: false, effect: Effect::Nothing } };
                text.chars().for_each(|c| typing.stroke(Stroke::Insert(c)));
                self.ui.fits.narrow();
                Effect::Nothing
            }
            Input::Resize(..) => Effect::Nothing,
            _ => return Reaction { changed: false, effect: Effect::Nothing },
        };
        self.carry_out(&effect);
        if self.ui.typing().is_none() && !hovers {
            self.past.note(&self.ui);
        }
        self.turn();
        Reaction { changed: true, effect }
    }

    /// The view follows the metric and the size that the person chose.
    fn turn(&mut self) {
        let key = self.key();
        if key != self.view.key {
            self.view.turn(&self.model, &self.atlas, key);
        }
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::NextTheme => {
                let warnings = self.look.next_theme();
                self.tell_theme(&warnings);
            }
            Effect::Play(play) => self.play(*play),
            Effect::Nothing
            | Effect::Send(_)
            | Effect::Leave
            | Effect::Redraw
            | Effect::ReleaseMouse(_)
            | Effect::SavePicture
            | Effect::WriteReport
            | Effect::Copy(_)
            | Effect::Ask(_)
            | Effect::Open { .. } => {}
        }
    }

    fn play(&mut self, play: Play) {
        let Some(mut player) = self.player.take() else {
            self.ui.say("only a recorded session can be played", false);
            return;
        };
        self.release();
        let model = Arc::make_mut(&mut self.model);
        let moved = match play {
            Play::Toggle => player.toggle(model),
            Play::Step { forward } => player.step(forward, model),
            Play::Speed { faster } => {
                player.change_speed(faster);
                Moved::Stayed
            }
            Play::Shift(share) => player.seek(player.time() + share * player.end(), model),
            Play::Seek(share) => player.seek(share * player.end(), model),
        };
        self.player = Some(player);
        self.moved(&moved);
    }

    fn key_pressed(&mut self, key: KeyEvent) -> Effect {
        match self.ui.popups.last() {
            Some(Popup::Palette) => return self.palette_key(key),
            Some(Popup::Sessions) => return self.browser_key(key),
            _ => {}
        }
        if let Some(&Popup::Confirm(ask)) = self.ui.popups.last() {
            return match key.code {
                // Who presses ctrl-c again wants to leave.
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.ui.answer(ask == Ask::Quit),
                KeyCode::Char('y' | 'Y') | KeyCode::Enter => self.ui.answer(true),
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => self.ui.answer(false),
                _ => Effect::Nothing,
            };
        }
        if self.ui.popups.is_empty() && self.ui.typing().is_some() {
            return self.typed(key);
        }
        let Some(action) = self.action_of(key) else { return Effect::Nothing };
        // A word to the person goes with their next key.
        self.ui.notice = None;
        self.act(action)
    }

    /// What a key means on this tab; in a recorded session its time comes first.
    fn action_of(&self, key: KeyEvent) -> Option<Action> {
        let keymap = &self.look.keymap;
        let own = |context| keymap.action_in(context, key).filter(|action| action.context() == context);
        let tab = self.ui.tab.context();
        let recorded = (self.mode == Mode::Recorded).then_some(Context::Recorded);
        // A plan has a time of its own.
        let plan = tab.filter(|tab| *tab == Context::Replay);
        plan.and_then(own)
            .or_else(|| recorded.and_then(own))
            .or_else(|| tab.and_then(own))
            .or_else(|| keymap.action_in(Context::Everywhere, key))
    }

    fn typed(&mut self, key: KeyEvent) -> Effect {
        match key.code {
            KeyCode::Enter | KeyCode::Tab => return self.ui.accept(&self.atlas),
            KeyCode::Esc => self.ui.cancel_typing(),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.ui.cancel_typing(),
            KeyCode::Up | KeyCode::Down if self.ui.tab == Tab::Sweep => self.ui.form.step(key.code == KeyCode::Down),
            _ => {
                if let (Some(stroke), Some(typing)) = (stroke(key), self.ui.typing()) {
                    typing.stroke(stroke);
                }
                // The table narrows down while its filter is typed.
                self.ui.fits.narrow();
            }
        }
        Effect::Nothing
    }
}
