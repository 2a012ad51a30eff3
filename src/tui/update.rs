//! Actions -> where the person is now, and what they want.

use std::path::PathBuf;

use super::atlas::Atlas;
use super::draw::{HitMap, guess, running};
use super::fans::Fans;
use super::feed::{Mode, Wish};
use super::findings::{Desk, Lit};
use super::fits::Book;
use super::form::Field;
use super::keys::Action;
use super::replay::Replays;
use super::state::{Ask, Popup, Tab, Ui, Whose};
use super::view::View;
use crate::matrix::Metric;
use crate::sample::Pattern;
use crate::session::{Command, Model, Running};
use crate::sweep::{Cell, estimate};
use crate::units::{format_size, plain};

/// What an action asks of the world around the screen's state.
#[allow(clippy::large_enum_variant, reason = "one at a time, and soon gone")]
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Nothing,
    Send(Command),
    /// leave the screen
    Leave,
    /// draw everything again
    Redraw,
    NextTheme,
    /// give the mouse back to the terminal (true), or take it
    ReleaseMouse(bool),
    /// write the screen as a picture
    SavePicture,
    /// write the report
    WriteReport,
    Play(Play),
    /// a text for the terminal's clipboard
    Copy(String),
    /// something of the recorded sessions
    Ask(Wish),
    /// leave for another session, to be compared with yet another if there is one
    Open {
        folder: PathBuf,
        against: Option<PathBuf>,
    },
}

/// What is wanted of a recorded session's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Play {
    Toggle,
    Step {
        forward: bool,
    },
    Speed {
        faster: bool,
    },
    /// by a share of the session
    Shift(f64),
    /// to a share of the session
    Seek(f64),
}

/// The facts that an action is judged by.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub model: &'a Model,
    pub atlas: &'a Atlas,
    pub view: &'a View,
    pub fans: &'a Fans,
    pub fits: &'a Book,
    pub desk: &'a Desk,
    pub replays: &'a Replays,
    pub mode: Mode,
}

impl Facts<'_> {
    /// False for a metric of which there is nothing to see: nobody knows what to expect, or nothing is compared with.
    pub fn shows(&self, metric: Metric) -> bool {
        match metric {
            Metric::ShareOfExpected => self.atlas.router.knows(),
            Metric::Change => self.view.changes.is_some(),
            _ => true,
        }
    }
}

/// Pairs that a key goes through at most.
const SUSPECTS: usize = 32;
/// Cells that are measured again at once at most: a block of 256 ranks by 256.
const MOST_CELLS: usize = 1 << 16;

impl Ui {
    /// Do what a key or the mouse asks for.
    pub fn update(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) -> Effect {
        if let Some(Popup::Help { scroll }) = self.popups.last_mut() {
            let most = hits.help_scroll;
            match action {
                Action::Up => *scroll = scroll.saturating_sub(1),
                Action::Down => *scroll = (*scroll + 1).min(most),
                Action::PageUp => *scroll = scroll.saturating_sub(10),
                Action::PageDown => *scroll = (*scroll + 10).min(most),
                Action::Home => *scroll = 0,
                Action::End => *scroll = most,
                Action::Help | Action::Cancel | Action::Quit => {
                    self.popups.pop();
                }
                Action::Redraw => return Effect::Redraw,
                Action::NextTheme => return Effect::NextTheme,
                Action::SavePicture => return Effect::SavePicture,
                Action::WriteReport => return Effect::WriteReport,
                _ => {}
            }
            return Effect::Nothing;
        }
        match action {
            Action::Tab1 => self.tab = Tab::Topology,
            Action::Tab2 => self.tab = Tab::Sweep,
            Action::Tab3 => self.tab = Tab::Matrix,
            Action::Tab4 => self.tab = Tab::Fits,
            Action::Tab5 => self.tab = Tab::Fans,
            Action::Tab6 => self.tab = Tab::Findings,
            Action::Tab7 => self.tab = Tab::Replay,
            Action::Tab8 => self.tab = Tab::Session,
            Action::NextTab => self.tab = self.tab.beside(true),
            Action::PrevTab => self.tab = self.tab.beside(false),
            Action::Help => self.popups.push(Popup::Help { scroll: 0 }),
            Action::Cancel => self.cancel(),
            Action::NextTheme => return Effect::NextTheme,
            Action::Redraw => return Effect::Redraw,
            Action::SavePicture => return Effect::SavePicture,
            Action::WriteReport => return Effect::WriteReport,
            Action::ReleaseMouse => {
                self.mouse_released = !self.mouse_released;
                self.say(
                    if self.mouse_released { "the mouse is the terminal's: select text with it" } else { "the mouse is toposcope's" },
                    false,
                );
                return Effect::ReleaseMouse(self.mouse_released);
            }
            // What these do takes more than where the person is.
            Action::Palette | Action::Sessions | Action::Undo | Action::Redo | Action::CopyFacts => {}
            Action::Quit => {
                if facts.mode != Mode::Live || !running(facts.model) {
                    return Effect::Leave;
                }
                self.popups.push(Popup::Confirm(Ask::Quit));
            }
            Action::PlayPause => return Effect::Play(Play::Toggle),
            Action::StepBack => return Effect::Play(Play::Step { forward: false }),
            Action::StepForward => return Effect::Play(Play::Step { forward: true }),
            Action::SeekBack => return Effect::Play(Play::Shift(-0.05)),
            Action::SeekForward => return Effect::Play(Play::Shift(0.05)),
            Action::Faster => return Effect::Play(Play::Speed { faster: true }),
            Action::Slower => return Effect::Play(Play::Speed { faster: false }),
            Action::StartSweep | Action::PauseContinue | Action::Abort | Action::Remeasure | Action::RemeasureBlock => {
                if facts.mode == Mode::Recorded {
                    self.say("this session was recorded: nothing can be measured in it", true);
                    return Effect::Nothing;
                }
                return self.measure(action, facts, hits);
            }
            other => match self.tab {
                Tab::Topology => {
                    if let Some(word) = self.topology.update(other, facts, hits, &mut self.matrix) {
                        self.say(word, false);
                    }
                }
                Tab::Sweep => return self.update_form(other, facts, hits),
                Tab::Matrix => self.update_matrix(other, facts, hits),
                Tab::Fits => self.fits.update(other, facts.fits, hits),
                Tab::Fans => self.fans.update(other, facts.fans, hits),
                Tab::Findings => return self.update_findings(other, facts, hits),
                Tab::Replay => return self.update_replay(other, facts, hits),
                Tab::Session => self.update_session(other, facts.model, hits),
            },
        }
        Effect::Nothing
    }

    /// Answer the question on top.
    pub fn answer(&mut self, yes: bool) -> Effect {
        let Some(Popup::Confirm(ask)) = self.popups.pop() else { return Effect::Nothing };
        match (yes, ask) {
            (true, Ask::Quit) => Effect::Leave,
            (true, Ask::Abort) => Effect::Send(Command::Abort),
            (true, Ask::Execute) => self.execute_asked(),
            (false, _) => Effect::Nothing,
        }
    }

    fn cancel(&mut self) {
        if self.form.typing.is_some() {
            self.form.cancel();
        } else if self.popups.pop().is_none() {
            self.notice = None;
            if self.tab == Tab::Fits {
                self.fits.filter.clear();
            }
            self.matrix.anchor = None;
            self.matrix.pinned = false;
            self.findings.lit = Lit::Nothing;
            self.replay.drop_selection(self.tab);
        }
    }

    fn measure(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) -> Effect {
        let sweep = facts.model.sweep.as_ref();
        match action {
            Action::StartSweep => return self.start(facts),
            Action::PauseContinue => match sweep.map(|sweep| sweep.running) {
                Some(Running::Measuring) => return Effect::Send(Command::Pause),
                Some(Running::Paused) => return Effect::Send(Command::Continue),
                _ => self.say("no sweep is running", false),
            },
            // A test is short, and asked for again by one key.
            Action::Abort if facts.model.testing.is_some() => return Effect::Send(Command::Abort),
            Action::Abort if running(facts.model) => self.popups.push(Popup::Confirm(Ask::Abort)),
            Action::Abort => self.say("no sweep is running", false),
            Action::Remeasure => return self.remeasure(facts, None),
            // By name from another tab: which blocks the selection takes is seen on the matrix alone.
            Action::RemeasureBlock if hits.matrix.drawn() == (0, 0) => self.say("look at the block on the Matrix tab first", true),
            Action::RemeasureBlock => return self.remeasure(facts, Some(hits.matrix.level())),
            _ => {}
        }
        Effect::Nothing
    }

    fn start(&mut self, facts: &Facts<'_>) -> Effect {
        self.form.accept();
        if running(facts.model) {
            self.say("a sweep is running: abort it first, or wait", true);
            return Effect::Nothing;
        }
        let world = facts.model.world();
        let settings = match self.form.settings(world) {
            Ok(settings) => settings,
            Err(error) => {
                self.form.field = error.field;
                self.say(error.message, true);
                return Effect::Nothing;
            }
        };
        let topology = &facts.model.header.topology;
        let estimate = estimate(&settings, topology, |class| facts.view.typical(class).unwrap_or_else(|| guess(class)));
        if let Some((host, wanted, available)) = estimate.does_not_fit() {
            let sizes = (format_size(wanted), format_size(available));
            let text = format!("buffers of {} do not fit in the {} of {}: {}", sizes.0, sizes.1, plain(host), estimate.advice());
            // A wide fan is narrowed down before its messages are made small.
            self.form.field = if self.form.matters(Field::Widths) { Field::Widths } else { Field::Sizes };
            self.say(text, true);
            return Effect::Nothing;
        }
        let lost: Vec<usize> = settings.ranks_of(world).into_iter().filter(|rank| facts.model.lost.contains_key(rank)).collect();
        if let Some(rank) = lost.first() {
            self.form.field = Field::Ranks;
            self.say(format!("rank {rank} is lost: leave it out of the ranks, or start the job again"), true);
            return Effect::Nothing;
        }
        self.form.field = Field::Start;
        self.say("sweep asked for: the Matrix tab fills as it goes", false);
        Effect::Send(Command::StartSweep { settings })
    }

    /// Measure a cell again, or of a block of the drawn `level` all pairs.
    fn remeasure(&mut self, facts: &Facts<'_>, level: Option<usize>) -> Effect {
        let Some(sweep) = &facts.model.sweep else {
            self.say("nothing has been measured: start a sweep first", true);
            return Effect::Nothing;
        };
        let (from, to) = self.matrix.cursor;
        let cell = || (vec![from], vec![to]);
        let (senders, receivers) = level.map_or_else(cell, |level| self.matrix.block(facts.view.grid.axes(), level));
        if senders.len() * receivers.len() > MOST_CELLS {
            let all = senders.len() * receivers.len();
            self.say(
                format!("{all} cells are more than the {MOST_CELLS} that can be chosen: choose a smaller block, or start a sweep"),
                true,
            );
            return Effect::Nothing;
        }
        let ranks = sweep.settings.ranks_of(facts.model.world());
        let takes_part = |rank: usize| ranks.binary_search(&rank).is_ok() && !facts.model.lost.contains_key(&rank);
        let key = facts.view.key;
        let receivers: Vec<usize> = receivers.into_iter().filter(|&to| takes_part(to)).collect();
        let mut cells: Vec<Cell> = senders
            .into_iter()
            .filter(|&from| takes_part(from))
            .flat_map(|from| receivers.iter().map(move |&to| key.cell(from, to)))
            .filter(|cell| sweep.settings.patterns.contains(&cell.pattern))
            .collect();
        if key.pattern == Pattern::Duplex {
            // Both directions are measured at once: the pair stands for them.
            cells.retain(|cell| cell.from != cell.to);
            for cell in &mut cells {
                (cell.from, cell.to) = (cell.from.min(cell.to), cell.from.max(cell.to));
            }
            cells.sort_unstable();
            cells.dedup();
        }
        if cells.is_empty() {
            self.say("not part of the sweep, or lost: choose another pair, or start a sweep with it", true);
            return Effect::Nothing;
        }
        let shown = if key.metric == Metric::SmallTime { key.small } else { key.bytes };
        // One cell at every size, for its curve; a block only at what is shown.
        let bytes = (level.is_some() && cells.len() > 1 && sweep.settings.sizes.contains(&shown)).then_some(shown);
        let what = bytes.map_or_else(|| "every size".to_owned(), format_size);
        let count = cells.len();
        self.say(format!("measuring {count} cell{} again, {what}", if count == 1 { "" } else { "s" }), false);
        self.matrix.anchor = None;
        Effect::Send(Command::Remeasure { cells, bytes })
    }

    fn update_form(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) -> Effect {
        if facts.mode == Mode::Recorded && !matches!(action, Action::PageUp | Action::PageDown) {
            return Effect::Nothing;
        }
        let page = hits.placement_rows.max(1);
        let last = facts.model.world().saturating_sub(hits.placement_rows);
        match action {
            Action::Up => self.form.step(false),
            Action::Down => self.form.step(true),
            Action::Left => self.form.beside(false),
            Action::Right => self.form.beside(true),
            Action::Home => self.form.go(Field::LINES[0][0]),
            Action::End => self.form.go(Field::Start),
            Action::PageUp => self.form.scroll = self.form.scroll.saturating_sub(page),
            Action::PageDown => self.form.scroll = (self.form.scroll + page).min(last),
            Action::Increase => self.form.count(true),
            Action::Decrease => self.form.count(false),
            Action::Toggle => match self.form.field {
                Field::Start => return self.measure(Action::PauseContinue, facts, hits),
                Field::Pattern(pattern) if self.form.can(pattern) => self.form.switch(pattern),
                Field::Pattern(pattern) if pattern.crosses() => {
                    self.say("between the host's memory and GPUs: choose memory cuda first", true);
                }
                Field::Pattern(_) => self.say("custom runs the transfers of a pattern file, and none is loaded: --pattern-file", true),
                field if field.is_choice() => self.form.choose(true),
                _ => self.form.edit(),
            },
            _ => {}
        }
        Effect::Nothing
    }

    fn update_session(&mut self, action: Action, model: &Model, hits: &HitMap) {
        let (area, most) = hits.log.unwrap_or_default();
        let page = usize::from(area.height.saturating_sub(3)).max(1);
        let panel = &mut self.session;
        match action {
            Action::Up => panel.scroll = (panel.scroll + 1).min(most),
            Action::Down => panel.scroll = panel.scroll.min(most).saturating_sub(1),
            Action::PageUp => panel.scroll = (panel.scroll + page).min(most),
            Action::PageDown => panel.scroll = panel.scroll.min(most).saturating_sub(page),
            Action::Home => panel.scroll = most,
            Action::End => panel.scroll = 0,
            Action::SamplesUp => panel.facts = panel.facts.saturating_sub(1),
            Action::SamplesDown => panel.facts = (panel.facts + 1).min(hits.facts.map_or(0, |(_, most)| most)),
            Action::Left | Action::Right => {
                let mut all = vec![Whose::All, Whose::Program];
                let ranks: std::collections::BTreeSet<usize> = model.log.iter().filter_map(|line| line.rank).collect();
                all.extend(ranks.into_iter().map(Whose::Rank));
                let at = all.iter().position(|whose| *whose == panel.whose).unwrap_or(0);
                let step = if action == Action::Right { 1 } else { all.len() - 1 };
                panel.whose = all[(at + step) % all.len()];
                panel.scroll = 0;
            }
            _ => {}
        }
    }
}

/// Pairs worth a look, most urgent first: one of each finding, or what stands out where nothing is found yet.
pub(super) fn suspects(facts: &Facts<'_>) -> Vec<(usize, usize)> {
    let mut suspects: Vec<(usize, usize)> = Vec::new();
    if let Some(told) = facts.desk.speaks(facts.model, facts.view.key) {
        for cell in told.findings().iter().filter_map(|finding| finding.cells.first().copied()) {
            if suspects.len() < SUSPECTS && !suspects.contains(&cell) {
                suspects.push(cell);
            }
        }
        return suspects;
    }
    suspects = facts.view.insight.suspects();
    for (rank, way, best) in facts.atlas.slow_ranks() {
        let pair = way.pair(rank, best.other);
        if suspects.len() < SUSPECTS && !suspects.contains(&pair) {
            suspects.push(pair);
        }
    }
    suspects
}
