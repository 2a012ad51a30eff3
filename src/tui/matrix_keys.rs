//! What keys do on the Matrix tab: where the cursor goes, and what part of the whole is looked at.

use std::sync::Arc;

use super::atlas::{Atlas, Grouping, Order, Orders};
use super::draw::HitMap;
use super::keys::Action;
use super::state::{MatrixPanel, Ui};
use super::typing::Typing;
use super::update::{Facts, suspects};
use super::widgets::matrix::Zoom;
use crate::matrix::{Axes, Edge, Grid, Metric};
use crate::topology::Topology;

impl MatrixPanel {
    /// The next block down and along the rows, at its worst pair; on a transposed matrix rows are receivers.
    pub fn step(&mut self, (down, along): (isize, isize), level: usize, grid: &Grid) {
        let axes = grid.axes();
        let (rows, columns) = if self.transpose { (along, down) } else { (down, along) };
        let (row, column) = axes.places(self.cursor);
        let last = axes.side(level).saturating_sub(1);
        let next = |place: usize, by: isize| axes.block_of(level, place).saturating_add_signed(by).min(last);
        self.put(at(grid, level, (next(row, rows), next(column, columns))), grid.world());
    }

    /// The first row of the next host, of this one or of the one before.
    fn step_host(&mut self, next: bool, topology: &Topology, axes: &Axes) {
        let edge = if self.transpose { Edge::Receivers } else { Edge::Senders };
        let own = if self.transpose { self.cursor.1 } else { self.cursor.0 };
        let place = beside_host(topology, axes, edge, axes.place(edge, own), next);
        let rank = axes.rank(edge, place);
        self.put(if self.transpose { (self.cursor.0, rank) } else { (rank, self.cursor.1) }, axes.len());
    }

    /// Look closer at what is under the cursor, or at more of what is around it; what there is to say comes back.
    pub fn look(&mut self, closer: bool, axes: &Axes) -> Option<&'static str> {
        let deepest = axes.stops().len() - 1;
        self.depth = self.depth.min(deepest);
        match (closer, self.zoom) {
            (true, Zoom::Fit) if self.depth < deepest => self.depth += 1,
            (true, Zoom::Fit | Zoom::Pixels) => self.zoom = Zoom::Digits,
            (true, Zoom::Digits) => return Some("this is as close as it gets"),
            (false, Zoom::Pixels | Zoom::Digits) => self.zoom = Zoom::Fit,
            (false, Zoom::Fit) if self.depth > 0 => self.depth -= 1,
            (false, Zoom::Fit) => return Some("all of it is in sight"),
        }
        None
    }

    /// Take what was typed: the cursor goes to that rank, host or pair.
    pub fn accept(&mut self, atlas: &Atlas) -> Option<String> {
        let typed = self.typing.take()?.text();
        if typed.trim().is_empty() {
            return None;
        }
        let found = atlas.orders.find(&typed);
        self.wanted = typed;
        match found {
            Ok(found) => {
                let pair = (found.from.unwrap_or(self.cursor.0), found.to.unwrap_or(self.cursor.1));
                self.put(pair, atlas.orders.by_rank().len());
                self.pinned = true;
                None
            }
            Err(word) => Some(word),
        }
    }
}

impl Ui {
    /// Look at a rank, a host, a rack or a pair of them (`host012:host031`), as closely as it takes to see it; the error says what
    /// is not known.
    pub fn look_at(&mut self, topology: &Topology, text: &str) -> Result<(), String> {
        let orders = Orders::of(topology);
        let found = orders.find(text)?;
        // Of one thing alone, what lies within it.
        let (from, to) = (found.from.or(found.to).unwrap_or(0), found.to.or(found.from).unwrap_or(0));
        self.matrix.put((from, to), topology.world());
        // Of nothing known the slowest come first by rank, in blocks of powers of two; no table is needed to say how deep that is.
        let axes = match self.matrix.order {
            Order::Slowness => Arc::new(Axes::plain(topology.world())),
            order => orders.axes(order, &Grid::new(Metric::Bandwidth, 0)),
        };
        self.matrix.depth = found.unit.depth(&axes);
        Ok(())
    }

    /// Do what a key asks for on the Matrix tab.
    pub(super) fn update_matrix(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) {
        let world = facts.model.world();
        let (grid, level) = (&facts.view.grid, hits.matrix.level());
        let axes = grid.axes();
        let panel = &mut self.matrix;
        match action {
            Action::Up => panel.step((-1, 0), level, grid),
            Action::Down => panel.step((1, 0), level, grid),
            Action::Left => panel.step((0, -1), level, grid),
            Action::Right => panel.step((0, 1), level, grid),
            Action::PageUp | Action::PageDown => panel.step_host(action == Action::PageDown, &facts.model.header.topology, axes),
            Action::Home => panel.put(axes.pair((0, 0)), world),
            Action::End => panel.put(axes.pair((world.saturating_sub(1), world.saturating_sub(1))), world),
            Action::ZoomIn | Action::ZoomOut => {
                if let Some(word) = panel.look(action == Action::ZoomIn, axes) {
                    self.say(word, false);
                }
            }
            Action::NextReduce => panel.reduce = panel.reduce.next(),
            Action::NextOrder => panel.order = panel.order.next(),
            Action::FindPair => panel.typing = Some(Typing::new(&panel.wanted)),
            Action::NextMetric => {
                panel.metric = panel.metric.next();
                while !facts.shows(panel.metric) {
                    panel.metric = panel.metric.next();
                }
            }
            Action::NextGrouping => {
                panel.grouping = facts.atlas.groups.next(panel.grouping);
                if facts.atlas.groups.names(Grouping::Socket).is_none() {
                    self.say("ruled off by host: this session does not tell what its hosts are made of", false);
                }
            }
            Action::NextPattern => panel.pattern = Some(facts.view.key.next_pattern(facts.model)),
            Action::NextSize | Action::PrevSize => {
                let sizes = facts.model.cells.sizes();
                let at = sizes.iter().position(|&size| size == facts.view.key.bytes).unwrap_or(0);
                let to = if action == Action::NextSize { (at + 1).min(sizes.len().saturating_sub(1)) } else { at.saturating_sub(1) };
                panel.size = sizes.get(to).copied();
            }
            Action::Transpose => panel.transpose = !panel.transpose,
            Action::Zoom => panel.zoom = panel.zoom.next(),
            Action::Select => panel.anchor = if panel.anchor.is_none() { Some(panel.cursor) } else { None },
            Action::NextSuspect => {
                let suspects = suspects(facts);
                if !suspects.is_empty() {
                    let next = panel.suspect.map_or(0, |last| (last + 1) % suspects.len());
                    panel.put(suspects[next], world);
                    panel.suspect = Some(next);
                }
            }
            Action::ShowFinding => self.show_finding(facts),
            Action::SamplesUp => panel.scroll = panel.scroll.saturating_sub(1),
            Action::SamplesDown => panel.scroll = (panel.scroll + 1).min(hits.samples.map_or(0, |(_, most)| most)),
            _ => {}
        }
    }
}

/// The pair that a block stands for: its worst, or its first where nothing is known.
pub(super) fn at(grid: &Grid, level: usize, (senders, receivers): (usize, usize)) -> (usize, usize) {
    let axes = grid.axes();
    match grid.block(level, senders, receivers).worst_at {
        Some((from, to)) => (from as usize, to as usize),
        None => axes.pair((axes.span(level, senders).start, axes.span(level, receivers).start)),
    }
}

/// The first place of the next host, or of this one or the one before; eight places further where there is one host.
fn beside_host(topology: &Topology, axes: &Axes, edge: Edge, at: usize, next: bool) -> usize {
    let host = |place: usize| topology.ranks.get(axes.rank(edge, place)).map(|placement| &placement.host);
    let starts = |place: usize| place == 0 || host(place) != host(place - 1);
    let several = (1..axes.len()).any(starts);
    let found =
        if next { (at + 1..axes.len()).find(|&place| starts(place)) } else { (0..at).rev().find(|&place| several && starts(place)) };
    match found {
        Some(place) => place,
        None if next => (at + 8).min(axes.len().saturating_sub(1)),
        None => at.saturating_sub(8),
    }
}

impl Order {
    /// As it stands in the title.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Rank => "by rank",
            Self::Topology => "by topology",
            Self::Slowness => "slowest first",
        }
    }
}
