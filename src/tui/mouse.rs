//! The mouse: tells, goes, selects, scrolls.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::draw::HitMap;
use super::findings::{FindingsSight, Lit};
use super::form::Field;
use super::keys::Action;
use super::matrix_keys;
use super::state::{Popup, Tab, Ui};
use super::update::{Effect, Facts, Play};

/// Lines that one step of the wheel scrolls.
const WHEEL: usize = 3;

impl Ui {
    /// React to the mouse; `None` if nothing on the screen changes.
    pub fn mouse(&mut self, mouse: &MouseEvent, facts: &Facts<'_>, hits: &HitMap) -> Option<Effect> {
        let at = Position::new(mouse.column, mouse.row);
        if !self.popups.is_empty() {
            return self.mouse_on_popup(mouse.kind, facts, hits);
        }
        match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(at, facts, hits),
            MouseEventKind::Drag(MouseButton::Left) => {
                if let Some(share) = hits.slider.and_then(|slider| along(slider, at)) {
                    return Some(Effect::Play(Play::Seek(share)));
                }
                if let Some(at) = self.scrub(at, hits) {
                    self.replay.seek(at, facts.replays);
                    return Some(Effect::Nothing);
                }
                let start = self.pressed.filter(|_| self.tab == Tab::Matrix)?;
                let cell = cell_under(facts, hits, at)?;
                if cell == self.matrix.cursor {
                    return None;
                }
                self.matrix.anchor = Some(start);
                self.matrix.put(cell, facts.model.world());
                Some(Effect::Nothing)
            }
            MouseEventKind::Up(MouseButton::Left) => {
                self.pressed = None;
                None
            }
            MouseEventKind::Moved if self.tab == Tab::Matrix && !self.matrix.pinned && self.matrix.anchor.is_none() => {
                let cell = cell_under(facts, hits, at)?;
                if cell == self.matrix.cursor {
                    return None;
                }
                self.matrix.put(cell, facts.model.world());
                Some(Effect::Nothing)
            }
            MouseEventKind::ScrollUp => self.wheel(false, at, facts, hits),
            MouseEventKind::ScrollDown => self.wheel(true, at, facts, hits),
            _ => None,
        }
    }

    fn mouse_on_popup(&mut self, kind: MouseEventKind, facts: &Facts<'_>, hits: &HitMap) -> Option<Effect> {
        let Some(Popup::Help { .. }) = self.popups.last() else { return None };
        let action = match kind {
            MouseEventKind::ScrollUp => Action::Up,
            MouseEventKind::ScrollDown => Action::Down,
            MouseEventKind::Down(_) => Action::Cancel,
            _ => return None,
        };
        Some(self.update(action, facts, hits))
    }

    fn click(&mut self, at: Position, facts: &Facts<'_>, hits: &HitMap) -> Option<Effect> {
        if let Some((_, tab)) = hits.tabs.iter().find(|(area, _)| area.contains(at)) {
            self.tab = *tab;
            return Some(Effect::Nothing);
        }
        if let Some((_, field)) = hits.fields.iter().find(|(area, _)| area.contains(at)) {
            let again = self.form.field == *field;
            self.form.go(*field);
            return Some(match field {
                Field::Start => self.update(Action::StartSweep, facts, hits),
                // What is switched needs no second click.
                Field::Pattern(_) | Field::Isolated => self.update(Action::Toggle, facts, hits),
                _ if again => self.update(Action::Toggle, facts, hits),
                _ => Effect::Nothing,
            });
        }
        if let Some(share) = hits.slider.and_then(|slider| along(slider, at)) {
            return Some(Effect::Play(Play::Seek(share)));
        }
        if let Some(at) = self.scrub(at, hits) {
            self.replay.playing = false;
            self.replay.seek(at, facts.replays);
            return Some(Effect::Nothing);
        }
        if let Some((_, line)) = hits.strategies.iter().find(|(area, _)| area.contains(at)) {
            // A second click changes the line, or looks at the strategy.
            if self.replay.form.at == *line {
                return Some(self.update(Action::Choose, facts, hits));
            }
            self.replay.form.accept();
            self.replay.form.at = *line;
            return Some(Effect::Nothing);
        }
        if let Some((_, resource)) = hits.resources.iter().find(|(area, _)| area.contains(at)) {
            self.replay.click(*resource);
            return Some(Effect::Nothing);
        }
        if let Some((_, pair)) = hits.pairs.iter().find(|(area, _)| area.contains(at)) {
            self.matrix.pinned = true;
            self.matrix.put(*pair, facts.model.world());
            return Some(Effect::Nothing);
        }
        if let Some((_, row)) = hits.tree_rows.iter().find(|(area, _)| area.contains(at)) {
            // A second click folds.
            if self.topology.at == *row {
                return Some(self.update(Action::Fold, facts, hits));
            }
            self.topology.put(*row);
            return Some(Effect::Nothing);
        }
        if let Some((_, column)) = hits.columns.iter().find(|(area, _)| area.contains(at)) {
            self.fits.sort(*column);
            return Some(Effect::Nothing);
        }
        if let Some((_, row)) = hits.fit_rows.iter().find(|(area, _)| area.contains(at)) {
            self.fits.go(*row);
            return Some(Effect::Nothing);
        }
        if let Some((_, (entry, fan))) = hits.entries.iter().find(|(area, _)| area.contains(at)) {
            self.fans.go(*entry, facts.fans);
            if let Some(fan) = fan {
                self.fans.look_at(*fan, facts.fans);
            }
            return Some(Effect::Nothing);
        }
        if let Some((_, entry)) = hits.findings.iter().find(|(area, _)| area.contains(at)) {
            // A second click goes to its pairs.
            let again = match self.findings.sight {
                FindingsSight::Findings => self.findings.lit == Lit::Finding && self.findings.at == *entry,
                FindingsSight::Changes => self.findings.lit == Lit::Change && self.findings.change == *entry,
                FindingsSight::Silenced => false,
            };
            if again {
                return Some(self.update(Action::ShowCells, facts, hits));
            }
            if let Some(told) = facts.desk.told() {
                self.findings.go(*entry, told);
            }
            return Some(Effect::Nothing);
        }
        if let Some((_, action)) = hits.actions.iter().find(|(area, _)| area.contains(at)) {
            return Some(self.update(*action, facts, hits));
        }
        if let Some((_, fan)) = hits.fans.iter().find(|(area, _)| area.contains(at)) {
            self.fans.look_at(*fan, facts.fans);
            return Some(Effect::Nothing);
        }
        let cell = cell_under(facts, hits, at)?;
        if self.tab == Tab::Findings && self.findings.sight != FindingsSight::Findings {
            return None;
        }
        if self.tab == Tab::Findings {
            // The finding that a pair belongs to, if there is one.
            let told = facts.desk.told()?;
            self.findings.choose(told.at_cell(cell)?.0, told);
            return Some(Effect::Nothing);
        }
        let panel = &mut self.matrix;
        panel.pinned = !(panel.pinned && panel.cursor == cell && panel.anchor.is_none());
        panel.anchor = None;
        panel.put(cell, facts.model.world());
        self.pressed = Some(cell);
        Some(Effect::Nothing)
    }

    fn wheel(&mut self, down: bool, at: Position, facts: &Facts<'_>, hits: &HitMap) -> Option<Effect> {
        let turn = |scroll: usize, most: usize| if down { (scroll + WHEEL).min(most) } else { scroll.min(most).saturating_sub(WHEEL) };
        if let Some((_, most)) = hits.samples.filter(|(area, _)| area.contains(at)) {
            self.matrix.scroll = turn(self.matrix.scroll, most);
        } else if let Some((_, most)) = hits.facts.filter(|(area, _)| area.contains(at)) {
            self.session.facts = turn(self.session.facts, most);
        } else if let Some((_, most)) = hits.log.filter(|(area, _)| area.contains(at)) {
            // The log scrolls from its end.
            let older = !down;
            let scroll = self.session.scroll.min(most);
            self.session.scroll = if older { (scroll + WHEEL).min(most) } else { scroll.saturating_sub(WHEEL) };
        } else if let Some((_, most)) = hits.peers.filter(|(area, _)| area.contains(at)) {
            self.fans.scroll = turn(self.fans.scroll, most);
        } else if let Some((_, most)) = hits.residuals.filter(|(area, _)| area.contains(at)) {
            self.fits.scroll = turn(self.fits.scroll, most);
        } else if let Some((_, most)) = hits.notes.filter(|(area, _)| area.contains(at)) {
            self.topology.scroll = turn(self.topology.scroll, most);
        } else if self.tab == Tab::Topology {
            self.topology.put(turn(self.topology.at, facts.atlas.rows().len().saturating_sub(1)));
        } else if self.tab == Tab::Fits {
            self.fits.go(turn(self.fits.at, facts.fits.shown().saturating_sub(1)));
        } else if let Some((_, most)) = hits.detail.filter(|(area, _)| area.contains(at)) {
            self.findings.scroll = turn(self.findings.scroll, most);
        } else if let Some((_, most)) = hits.lanes.filter(|(area, _)| area.contains(at)) {
            self.replay.scroll = turn(self.replay.scroll, most);
        } else if matches!(self.tab, Tab::Fans | Tab::Findings | Tab::Replay) {
            return Some(self.update(if down { Action::Down } else { Action::Up }, facts, hits));
        } else if self.tab == Tab::Sweep {
            self.form.scroll = turn(self.form.scroll, facts.model.world().saturating_sub(hits.placement_rows));
        } else if let Some(cell) = cell_under(facts, hits, at) {
            self.matrix.put(cell, facts.model.world());
            return Some(self.update(if down { Action::ZoomOut } else { Action::ZoomIn }, facts, hits));
        } else {
            return None;
        }
        Some(Effect::Nothing)
    }
}

impl Ui {
    /// The time of a point on the timeline, seconds.
    fn scrub(&self, at: Position, hits: &HitMap) -> Option<f64> {
        let (from, to) = hits.times.filter(|_| self.tab == Tab::Replay)?;
        Some(from + (to - from) * along(hits.timeline?, at)?)
    }
}

/// Where along a line a point lies, 0 to 1.
fn along(line: Rect, at: Position) -> Option<f64> {
    line.contains(at).then(|| f64::from(at.x - line.x) / f64::from(line.width.saturating_sub(1).max(1)))
}

/// The pair drawn at a point; of a block of pairs, the worst.
fn cell_under(facts: &Facts<'_>, hits: &HitMap, at: Position) -> Option<(usize, usize)> {
    let hit = hits.matrix.at(at.x, at.y, false)?;
    let (grid, level) = (&facts.view.grid, hits.matrix.level());
    let block = |place: usize| grid.axes().block_of(level, place);
    Some(matrix_keys::at(grid, level, (block(hit.from.start), block(hit.to.start))))
}
