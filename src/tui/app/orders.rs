//! What is typed into the palette and chosen among the sessions, carried out.

use crossterm::event::KeyEvent;

use super::App;
use crate::tui::browser::{self, Wanted};
use crate::tui::draw::{HitMap, facts_text};
use crate::tui::feed::{Mode, ShelfTold, Wish};
use crate::tui::findings::Other;
use crate::tui::keys::{Action, Context};
use crate::tui::palette::{Order, Palette, Pressed, Words, tab_of};
use crate::tui::state::{Popup, Tab};
use crate::tui::typing::Typing;
use crate::tui::update::{Effect, Facts};
use crate::units::{format_size, plain};

impl App {
    /// Open the palette.
    pub(super) fn open_palette(&mut self) {
        let words = Words { themes: self.look.theme_names(), sizes: self.model.cells.sizes().to_vec() };
        self.ui.palette = Palette::new(&words);
        self.ui.popups.push(Popup::Palette);
    }

    /// A key while the palette is open.
    pub(super) fn palette_key(&mut self, key: KeyEvent) -> Effect {
        match self.ui.palette.key(key, &self.look.keymap) {
            Pressed::Stays => Effect::Nothing,
            Pressed::Closes => {
                self.ui.popups.pop();
                Effect::Nothing
            }
            Pressed::Runs(order) => match self.order(order) {
                Ok(effect) => effect,
                Err(error) => {
                    self.ui.palette.error = Some(error);
                    Effect::Nothing
                }
            },
        }
    }

    /// Carry an order out, and close the palette; what is wrong with it is told there.
    fn order(&mut self, order: Order) -> Result<Effect, String> {
        match order {
            Order::Theme(name) => {
                let warnings = self.look.take_theme(&name)?;
                self.ui.popups.pop();
                self.tell_theme(&warnings);
            }
            Order::Tab(tab) => {
                self.ui.popups.pop();
                self.ui.tab = tab;
            }
            Order::Find(text) => {
                self.ui.topology.typing = Some(Typing::new(&text));
                if let Some(error) = self.ui.topology.accept(&self.atlas) {
                    self.ui.topology.typing = None;
                    return Err(error);
                }
                self.ui.popups.pop();
                self.ui.tab = Tab::Topology;
            }
            Order::Size(bytes) => {
                let sizes = self.model.cells.sizes();
                if !sizes.contains(&bytes) {
                    let known: Vec<String> = sizes.iter().map(|&size| format_size(size)).collect();
                    let known = if known.is_empty() { "nothing yet".to_owned() } else { known.join(", ") };
                    return Err(format!("size: nothing was measured at {}; there is {known}", format_size(bytes)));
                }
                self.ui.popups.pop();
                (self.ui.tab, self.ui.matrix.size) = (Tab::Matrix, Some(bytes));
            }
            Order::Metric(metric) => {
                if !facts!(self).shows(metric) {
                    let why = if metric == crate::matrix::Metric::Change {
                        "another session to compare with"
                    } else {
                        "what the hosts are made of"
                    };
                    return Err(format!("metric: it needs {why}"));
                }
                self.ui.popups.pop();
                (self.ui.tab, self.ui.matrix.metric) = (Tab::Matrix, metric);
            }
            Order::Action(action) => {
                if action.context() == Context::Recorded && self.mode != Mode::Recorded {
                    return Err(format!("{}: only a recorded session has a time to go to", action.name()));
                }
                self.ui.popups.pop();
                if let Some(tab) = tab_of(action.context()).filter(|tab| *tab != self.ui.tab) {
                    // What lay where was on another tab.
                    (self.ui.tab, self.hits) = (tab, HitMap::default());
                }
                return Ok(self.act(action));
            }
        }
        Ok(Effect::Nothing)
    }

    /// What an action comes to, whoever asked for it.
    pub(super) fn act(&mut self, action: Action) -> Effect {
        if self.ui.popups.is_empty() {
            match action {
                Action::Palette => {
                    self.open_palette();
                    return Effect::Nothing;
                }
                Action::Sessions => return self.open_sessions(),
                Action::Undo | Action::Redo => {
                    self.step(action == Action::Undo);
                    return Effect::Nothing;
                }
                Action::CopyFacts => return self.copy(),
                _ => {}
            }
        }
        let facts = facts!(self);
        self.ui.update(action, &facts, &self.hits)
    }

    fn step(&mut self, back: bool) {
        let mut past = std::mem::take(&mut self.past);
        if !past.step(&mut self.ui, back) {
            self.ui.say(if back { "nothing to take back" } else { "nothing to make again" }, true);
        }
        self.past = past;
    }

    /// What is told here, for the clipboard.
    fn copy(&mut self) -> Effect {
        let lines = facts_text(&self.scene());
        if lines.is_empty() {
            self.ui.say("nothing to copy here", true);
            return Effect::Nothing;
        }
        let count = lines.len();
        self.ui.say(format!("{count} line{} sent to the terminal's clipboard", if count == 1 { "" } else { "s" }), false);
        Effect::Copy(lines.join("\n") + "\n")
    }

    fn open_sessions(&mut self) -> Effect {
        if !self.shelf {
            self.ui.say("this screen has no list of sessions", true);
            return Effect::Nothing;
        }
        self.ui.browser.open(self.mode == Mode::Recorded, true);
        self.ui.popups.push(Popup::Sessions);
        Effect::Ask(Wish::List)
    }

    /// A key while the sessions are listed.
    pub(super) fn browser_key(&mut self, key: KeyEvent) -> Effect {
        match self.ui.browser.key(key) {
            Wanted::Nothing => Effect::Nothing,
            Wanted::Close => {
                self.ui.popups.pop();
                Effect::Nothing
            }
            Wanted::Ask(wish) => Effect::Ask(wish),
            Wanted::Open { folder, against } if self.mode == Mode::Recorded => Effect::Open { folder, against },
            Wanted::Open { .. } => {
                self.ui.browser.error = Some("this job goes on here: open it in another terminal, toposcope open NAME".to_owned());
                Effect::Nothing
            }
        }
    }

    /// Take in what became of a wish.
    pub fn shelf_told(&mut self, told: ShelfTold) {
        match told {
            ShelfTold::Loaded { name, model } => {
                // Who has gone on to something else is told, and left there.
                let waited = self.ui.popups.contains(&Popup::Sessions);
                self.ui.popups.retain(|popup| *popup != Popup::Sessions);
                self.release();
                self.desk.compare_with(Other::new(*model));
                if waited {
                    self.ui.compare();
                    self.ui.tab = Tab::Findings;
                }
                self.ui.say(format!("compared with {}", plain(&name)), false);
                self.turn();
            }
            told => browser::take(&mut self.ui.browser, told),
        }
    }
}
