//! What the Fits tab shows of a model: a table of every fit, kept up to date key by key.
//!
//! A thousand ranks have a million pairs, whose samples stream in. So nothing is fitted before the tab is shown, then a
//! frame's share at a time; classes and the order of the table follow a few times a second.

mod classes;
mod order;
mod panel;
mod row;

pub use classes::ClassFit;
pub use row::{Column, Id, Row, key_text};

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::state::FitsPanel;
use crate::fit::{Confidence, Fit, Key, Kind, Point};
use crate::sample::Pattern;
use crate::session::curves::{self, Curve};
use crate::session::{Change, Model};
use crate::sweep::{Cell, Group};
use crate::topology::PathClass;

use classes::Members;
use order::Order;

/// What fitting may take of a frame: less beside a sweep, whose samples are taken in first.
pub const SHARE: Duration = Duration::from_millis(30);
pub const SHARE_RUNNING: Duration = Duration::from_millis(12);
/// Keys fitted between two looks at the clock.
const CHUNK: usize = 64;
/// Rows up to which classes and order follow every frame.
const FEW: usize = 4096;
/// Above these, seconds between two times that they follow.
const WAIT: f64 = 0.3;
/// The same for very many rows.
const MANY: usize = 100_000;
const WAIT_MANY: f64 = 1.5;
/// Kinds whose key is a cell, with the cell's pattern.
const PAIRS: [(Pattern, Kind); 5] = [
    (Pattern::Local, Kind::Local),
    (Pattern::HostToDevice, Kind::HostToDevice),
    (Pattern::DeviceToHost, Kind::DeviceToHost),
    (Pattern::Peer, Kind::Peer),
    (Pattern::Duplex, Kind::Duplex),
];
/// Of those, the first ones are ranks' own copies.
const OWN: usize = 3;
/// In an index: no row yet.
const NONE: u32 = u32::MAX;
/// In an order: the row is a class's.
const CLASS: u32 = 1 << 31;

/// Every fit there is.
pub struct Book {
    rows: Vec<Row>,
    /// of each kind of pair, the row of `from * world + to`; empty before the first
    pairs: [Vec<u32>; PAIRS.len()],
    fans: Vec<Group>,
    fan_rows: HashMap<(Kind, Group), u32>,
    classes: Vec<ClassFit>,
    members: Members,
    order: Order,
    confidence: Confidence,
    world: usize,
    /// how far the first pass over all cells is; `None` before it begins
    pass: Option<usize>,
    /// cells that have changed since the pass began, each once
    cells: Queue,
    /// groups that have changed; all of them before the pass
    groups: BTreeSet<Group>,
    /// rows that have no fit any more
    gone: usize,
    /// largest bandwidth so far, bytes per second; NaN before the first
    largest: f64,
    /// counts changes of rows
    version: u64,
    /// version that the classes follow
    classes_at: u64,
    /// of very many rows: the classes are made, the order is next
    classes_made: bool,
    /// seconds since classes and order followed
    waited: f64,
}

/// A fit with all that its curve is drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub fit: Fit,
    pub points: Vec<Point>,
    pub curve: Curve,
    /// of a class too large to pool: how many of its members stand for how many
    pub pooled: Option<(usize, usize)>,
}

/// Cells to look at, in the order in which they changed.
#[derive(Default)]
struct Queue {
    cells: VecDeque<Cell>,
    /// of each kind of pair, which of `from * world + to` wait; empty before the first
    waiting: [Vec<bool>; PAIRS.len()],
}

impl Queue {
    /// Wait, unless it does already.
    fn push(&mut self, cell: Cell, world: usize) {
        let Some(slot) = slot(cell.pattern) else { return };
        let waiting = &mut self.waiting[slot];
        if waiting.is_empty() {
            *waiting = vec![false; world * world];
        }
        if let Some(waits) = waiting.get_mut(cell.from * world + cell.to).filter(|waits| !**waits) {
            *waits = true;
            self.cells.push_back(cell);
        }
    }

    fn pop(&mut self, world: usize) -> Option<Cell> {
        let cell = self.cells.pop_front()?;
        if let Some(waits) = slot(cell.pattern).and_then(|slot| self.waiting[slot].get_mut(cell.from * world + cell.to)) {
            *waits = false;
        }
        Some(cell)
    }

    fn len(&self) -> usize {
        self.cells.len()
    }
}

/// Which kind of pair a pattern is; `None` for patterns of groups.
fn slot(pattern: Pattern) -> Option<usize> {
    PAIRS.iter().position(|(of, _)| *of == pattern)
}

impl Book {
    /// Nothing fitted yet.
    pub fn new(model: &Model) -> Self {
        let topology = &model.header.topology;
        Self {
            rows: Vec::new(),
            pairs: Default::default(),
            fans: Vec::new(),
            fan_rows: HashMap::new(),
            classes: Vec::new(),
            members: Members::of(&topology.node_of()),
            order: Order::default(),
            confidence: Confidence::new(0.95),
            world: topology.world(),
            pass: None,
            cells: Queue::default(),
            groups: BTreeSet::new(),
            gone: 0,
            largest: f64::NAN,
            version: 0,
            classes_at: 0,
            classes_made: false,
            waited: f64::INFINITY,
        }
    }

    /// Forget all of it: the model is another one.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.pairs.iter_mut().for_each(Vec::clear);
        self.fans.clear();
        self.fan_rows.clear();
        self.classes.clear();
        self.order = Order::default();
        (self.pass, self.waited) = (None, f64::INFINITY);
        (self.gone, self.largest) = (0, f64::NAN);
        self.cells = Queue::default();
        self.groups.clear();
        self.version += 1;
    }

    /// Take note of what an event changed.
    pub fn follow(&mut self, change: &Change) {
        match change {
            Change::Cleared => self.forget(),
            // Before the pass nothing is fitted, and the pass will come by.
            _ if self.pass.is_none() => {}
            Change::Cells { cells, .. } => {
                for &cell in cells {
                    self.cells.push(cell, self.world);
                }
            }
            Change::Group { group, .. } => {
                self.groups.insert(group.clone());
            }
            _ => {}
        }
    }

    /// Let time go by.
    pub fn tick(&mut self, seconds: f64) {
        self.waited += seconds;
    }

    /// True while there is something left to fit or to order.
    pub fn busy(&self) -> bool {
        self.left() > 0 || self.order.version != self.version || self.classes_at != self.version
    }

    /// Cells and groups still to look at.
    pub fn left(&self) -> usize {
        self.steps() - self.pass.unwrap_or(0) + self.cells.len() + self.groups.len()
    }

    /// Bring it up to date for a frame: as much as fits in `share`, or all of it where nobody waits.
    pub fn settle(&mut self, model: &Model, panel: &mut FitsPanel, share: Option<Duration>) {
        let wait = match self.rows.len() {
            few if few <= FEW => 0.0,
            some if some <= MANY => WAIT,
            _ => WAIT_MANY,
        };
        let many = wait >= WAIT_MANY && share.is_some();
        let stale = self.classes_at != self.version || self.order.version != self.version;
        let due = (share.is_none() || self.waited >= wait) && stale;
        // Of very many rows a frame fits some, or makes the classes, or the order.
        if !(many && due) {
            self.fit_some(model, share);
        }
        let due = due || !many;
        if due && !(many && self.classes_made) && self.classes_at != self.version {
            let width = |id| if let Id::Fan(number) = id { self.fans.get(number as usize).map_or(0, |fan| fan.peers.len()) } else { 0 };
            self.classes = classes::of(model, &self.members, &self.rows, &self.confidence, width, |id| self.key(id));
            self.classes_at = self.version;
            if many {
                self.classes_made = true;
                return;
            }
        }
        let asked = order::Asked { column: panel.column, descending: panel.descending, filter: &panel.filter };
        if !self.order.answers(&asked) || due && self.order.version != self.version {
            let selected = self.order.ids.get(panel.at).map(|&id| self.row(id)).map(|row| (row.kind, row.id));
            let same = self.order.answers(&asked);
            self.order = order::make(self, &asked);
            // Who looks at a row goes with it, but for the first one: that is whichever comes first.
            let find = |(kind, id): (Kind, Id)| self.order.ids.iter().position(|&at| self.row(at).id == id && self.row(at).kind == kind);
            panel.at = if same && panel.at > 0 { selected.and_then(find).unwrap_or(panel.at) } else { 0 };
            (self.waited, self.classes_made) = (0.0, false);
        }
        panel.at = panel.at.min(self.order.ids.len().saturating_sub(1));
    }

    /// Rows in the order of the table.
    pub fn shown(&self) -> usize {
        self.order.ids.len()
    }

    /// The row at a place of the table.
    pub fn at(&self, place: usize) -> Option<&Row> {
        self.order.ids.get(place).map(|&id| self.row(id))
    }

    /// Rows in all.
    pub fn all(&self) -> usize {
        self.rows.len() + self.classes.len()
    }

    /// Share of all there is to fit that has been looked at, 0 to 1.
    pub fn done(&self) -> f64 {
        1.0 - self.left() as f64 / (self.steps() + self.cells.len() + self.groups.len()).max(1) as f64
    }

    /// Columns of the longest name of a kind that a rank or a pair has, the space after it included.
    pub fn longest_kind(&self) -> usize {
        let there = PAIRS.iter().zip(&self.pairs).filter(|(_, rows)| !rows.is_empty());
        there.map(|((_, kind), _)| kind.name().len() + 1).max().unwrap_or(0)
    }

    /// Largest bandwidth of a row so far, bytes per second; NaN without.
    pub const fn largest(&self) -> f64 {
        self.largest
    }

    /// All of a row's fit.
    pub fn detail(&self, model: &Model, place: usize) -> Option<Cow<'_, Detail>> {
        let id = *self.order.ids.get(place)?;
        if id & CLASS != 0 {
            return self.classes.get((id ^ CLASS) as usize).map(|class| Cow::Borrowed(class.detail()));
        }
        let row = self.rows.get(id as usize)?;
        let mut curve = self.curve(model, row.kind, row.id);
        let mut points = curves::points(&mut curve);
        let fit = Fit::of(row.kind, self.key(row.id), row.path, &mut points, Some(&self.confidence)).ok()?;
        Some(Cow::Owned(Detail { fit, points, curve, pooled: None }))
    }

    /// The key as fits name it.
    pub fn key(&self, id: Id) -> Key {
        match id {
            Id::Class(path) => Key::Class { path },
            Id::FanClass(path, width) => Key::FanClass { path, width: width as usize },
            Id::Relay(receive_path, send_path) => Key::Relay { receive_path, send_path },
            Id::Rank(rank) => Key::Rank { rank: rank as usize },
            Id::Pair(from, to) => Key::Pair { from: from as usize, to: to as usize },
            Id::Fan(number) => {
                let fan = self.fans.get(number as usize);
                let peers = fan.map(|fan| fan.peers.clone()).unwrap_or_default();
                Key::Fan { root: fan.and_then(|fan| fan.root).unwrap_or(0), peers: peers.into_boxed_slice() }
            }
        }
    }

    fn row(&self, id: u32) -> &Row {
        if id & CLASS == 0 { &self.rows[id as usize] } else { &self.classes[(id ^ CLASS) as usize].row }
    }

    fn curve(&self, model: &Model, kind: Kind, id: Id) -> Curve {
        let pattern = PAIRS.iter().find(|(_, of)| *of == kind).map(|(pattern, _)| *pattern);
        let cell = |from: u32, to: u32| pattern.map(|pattern| Cell { pattern, from: from as usize, to: to as usize });
        match id {
            Id::Rank(rank) => cell(rank, rank),
            Id::Pair(from, to) => cell(from, to),
            Id::Fan(number) => {
                let Some(group) = self.fans.get(number as usize) else { return Curve::new() };
                let sizes = model.groups.get(group);
                return if matches!(kind, Kind::Receive | Kind::Send) { curves::of_root(group, sizes) } else { curves::of_group(sizes) };
            }
            Id::Class(_) | Id::FanClass(..) | Id::Relay(..) => None,
        }
        .map(|cell| curves::of_cell(model.cells.sizes_of(cell)))
        .unwrap_or_default()
    }

    /// Fit what has changed, for as long as `share` allows.
    fn fit_some(&mut self, model: &Model, share: Option<Duration>) {
        let begun = Instant::now();
        let over = |count: usize| count.is_multiple_of(CHUNK) && share.is_some_and(|share| begun.elapsed() >= share);
        let mut count = 0;
        if self.pass.is_none() {
            self.groups = model.groups.iter().map(|(group, _)| group.clone()).collect();
            self.pass = Some(0);
        }
        // What a person sees change goes before what they have not seen yet.
        while let Some(group) = self.groups.pop_first() {
            self.fit_group(model, &group);
            count += 1;
            if over(count) {
                return;
            }
        }
        while let Some(cell) = self.cells.pop(self.world) {
            self.fit_cell(model, cell);
            count += 1;
            if over(count) {
                return;
            }
        }
        while let Some(cell) = self.pass.and_then(|at| self.cell_of(at)) {
            self.fit_cell(model, cell);
            self.pass = self.pass.map(|at| at + 1);
            count += 1;
            if over(count) {
                return;
            }
        }
    }

    /// The cell that the pass comes to at a step: the copies, then row by row the pairs of each pattern.
    fn cell_of(&self, at: usize) -> Option<Cell> {
        if at >= self.steps() {
            return None;
        }
        let world = self.world;
        let Some(pair) = at.checked_sub(OWN * world) else {
            return Some(Cell { pattern: PAIRS[at / world].0, from: at % world, to: at % world });
        };
        let (pattern, _) = PAIRS.get(OWN + pair / (world * world))?;
        let pair = pair % (world * world);
        Some(Cell { pattern: *pattern, from: pair / world, to: pair % world })
    }

    /// Steps of the pass.
    const fn steps(&self) -> usize {
        OWN * self.world + (PAIRS.len() - OWN) * self.world * self.world
    }

    fn fit_cell(&mut self, model: &Model, cell: Cell) {
        let sizes = model.cells.sizes_of(cell);
        if sizes.len() < 2 {
            return;
        }
        let Some(slot) = slot(cell.pattern) else { return };
        let (kind, from, to) = (PAIRS[slot].1, cell.from as u32, cell.to as u32);
        let id = if kind.is_own() { Id::Rank(from) } else { Id::Pair(from, to) };
        let mut points: Vec<Point> = sizes.iter().map(|size| Point::of(size.bytes, &mut size.times())).filter(Point::is_timed).collect();
        let path = self.members.path(cell.from, cell.to);
        let fit = Fit::of(kind, self.key(id), Some(path), &mut points, Some(&self.confidence)).ok();
        if self.pairs[slot].is_empty() {
            self.pairs[slot] = vec![NONE; self.world * self.world];
        }
        let at = cell.from * self.world + cell.to;
        let Some(&known) = self.pairs[slot].get(at) else { return };
        self.pairs[slot][at] = self.put(known, id, fit.as_ref());
    }

    fn fit_group(&mut self, model: &Model, group: &Group) {
        let kinds = match group.pattern {
            Pattern::FanIn => [Kind::FanIn, Kind::Receive],
            Pattern::FanOut => [Kind::FanOut, Kind::Send],
            // Of relays only classes have fits; of sets nothing has.
            _ => {
                self.version += 1;
                return;
            }
        };
        let sizes = model.groups.get(group);
        let path = path_of_group(sizes);
        for kind in kinds {
            let known = self.fan_rows.get(&(kind, group.clone())).copied();
            let id = match known {
                Some(row) => self.rows[row as usize].id,
                None => Id::Fan(self.number(group)),
            };
            let mut curve = self.curve(model, kind, id);
            let fit = Fit::of(kind, self.key(id), path, &mut curves::points(&mut curve), Some(&self.confidence)).ok();
            let row = self.put(known.unwrap_or(NONE), id, fit.as_ref());
            if row != NONE {
                self.fan_rows.insert((kind, group.clone()), row);
            }
        }
    }

    /// Number of a fan; both its kinds share it.
    fn number(&mut self, group: &Group) -> u32 {
        let known =
            [Kind::FanIn, Kind::FanOut, Kind::Receive, Kind::Send].iter().find_map(|kind| self.fan_rows.get(&(*kind, group.clone())));
        if let Some(Id::Fan(number)) = known.map(|&row| self.rows[row as usize].id) {
            return number;
        }
        if self.fans.last() != Some(group) {
            self.fans.push(group.clone());
        }
        self.fans.len() as u32 - 1
    }

    /// Write a row, or a new one; where it is.
    fn put(&mut self, known: u32, id: Id, fit: Option<&Fit>) -> u32 {
        self.version += 1;
        if let Some(rate) = fit.map(|fit| fit.line.bandwidth).filter(|rate| rate.is_finite()) {
            self.largest = self.largest.max(rate);
        }
        match (fit, self.rows.get_mut(known as usize)) {
            (Some(fit), Some(row)) => {
                self.gone -= usize::from(row.n == 0);
                *row = Row::of(id, fit);
            }
            (Some(fit), None) => {
                self.rows.push(Row::of(id, fit));
                return self.rows.len() as u32 - 1;
            }
            (None, Some(row)) => {
                self.gone += usize::from(row.n > 0);
                row.n = 0;
            }
            (None, None) => {}
        }
        known
    }
}

/// What all messages of a group travel over; `None` where they differ.
fn path_of_group(sizes: &[crate::session::GroupSize]) -> Option<PathClass> {
    let mut paths = sizes.iter().flat_map(|size| &size.shots).map(|shot| shot.path);
    let first = paths.next()?;
    paths.all(|path| path == first).then_some(first)
}
