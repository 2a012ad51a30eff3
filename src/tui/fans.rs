//! What the Fans tab shows of a model, kept up to date group by group: aggregates by root and width, relays, sets.

mod panel;
mod why;

pub use why::{Against, Why};

use std::collections::{BTreeMap, BTreeSet};

use super::state::FansPanel;
use crate::fit::{Interval, median, median_interval};
use crate::sample::{Pattern, Status};
use crate::session::{Change, GroupSize, Model};
use crate::sweep::Group;

/// A fan at the size shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Fan {
    pub group: Group,
    /// all bytes of a repeat over the root's median time, bytes per second; NaN if no repeat is good
    pub aggregate: f64,
    /// 95 % interval of that
    pub interval: Option<Interval>,
    /// worst state of its transfers
    pub status: Status,
}

impl Fan {
    fn of(group: &Group, size: &GroupSize) -> Self {
        let bytes = size.bytes as f64 * group.peers.len() as f64;
        let mut times = size.root_times();
        let interval = median_interval(&times, 0.95).map(|time| Interval { low: bytes / time.high, high: bytes / time.low });
        Self { group: group.clone(), aggregate: bytes / median(&mut times), interval, status: size.status }
    }

    /// Number of peers.
    pub fn width(&self) -> usize {
        self.group.peers.len()
    }
}

/// All fans of a root one way, by width and peers.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    pub rank: usize,
    pub fans: Vec<Fan>,
}

impl Root {
    /// The slowest of its fans of a width.
    pub fn worst(&self, width: usize) -> Option<&Fan> {
        let own = self.fans.iter().filter(|fan| fan.width() == width);
        own.min_by(|a, b| a.aggregate.total_cmp(&b.aggregate))
    }
}

/// One transfer of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    pub from: usize,
    pub to: usize,
    /// bandwidth by the transfer's own median time, bytes per second
    pub rate: f64,
}

/// A relay or a set of a pattern file at the size shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    pub group: Group,
    /// its transfers, the slowest first
    pub moved: Vec<Moved>,
}

/// Aggregates over the roots at one width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Over {
    pub width: usize,
    /// bytes per second, and of which root
    pub least: (f64, usize),
    pub median: f64,
    pub most: (f64, usize),
    /// roots that have one
    pub roots: usize,
}

/// One way: every root and what is over all of them.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// by rank
    pub roots: Vec<Root>,
    /// by width
    pub over: Vec<Over>,
}

/// What has changed since the last frame of the tab.
#[derive(Debug, Clone)]
enum Pending {
    All,
    Some(BTreeSet<Group>),
}

/// All groups at one size.
#[derive(Debug, Clone)]
pub struct Fans {
    /// size shown, bytes; 0 before the first sample
    pub bytes: u64,
    /// sizes that a group has a sample of, ascending
    pub sizes: Vec<u64>,
    ways: [Way; 2],
    pub others: Vec<Other>,
    pending: Pending,
}

impl Default for Fans {
    fn default() -> Self {
        Self { bytes: 0, sizes: Vec::new(), ways: Default::default(), others: Vec::new(), pending: Pending::All }
    }
}

/// Index of a way's table.
const fn index(pattern: Pattern) -> usize {
    if matches!(pattern, Pattern::FanOut) { 1 } else { 0 }
}

impl Fans {
    /// Take note of what an event changed; nothing is found before a frame needs it.
    pub fn follow(&mut self, change: &Change) {
        match (change, &mut self.pending) {
            (Change::Cleared, pending) => *pending = Pending::All,
            (Change::Group { group, .. }, Pending::Some(groups)) => {
                groups.insert(group.clone());
            }
            _ => {}
        }
    }

    /// Everything anew.
    pub fn forget(&mut self) {
        self.pending = Pending::All;
    }

    /// Bring it up to date for what the panel shows.
    pub fn settle(&mut self, model: &Model, panel: &FansPanel) {
        let pending = std::mem::replace(&mut self.pending, Pending::Some(BTreeSet::new()));
        if matches!(&pending, Pending::Some(groups) if groups.is_empty()) && panel.size.is_none_or(|size| size == self.bytes) {
            return;
        }
        let (sizes, bytes) = sizes(model, panel.size);
        let all = matches!(pending, Pending::All) || bytes != self.bytes;
        (self.sizes, self.bytes) = (sizes, bytes);
        if all {
            (self.ways, self.others) = Default::default();
            for (group, sizes) in model.groups.iter() {
                self.put(group, sizes);
            }
        } else if let Pending::Some(groups) = pending {
            for group in &groups {
                self.put(group, model.groups.get(group));
            }
        }
        for way in &mut self.ways {
            way.over = over(&way.roots);
        }
    }

    /// One way's table.
    pub fn way(&self, pattern: Pattern) -> &Way {
        &self.ways[index(pattern)]
    }

    /// The way to show: as chosen, or else the one that is measured, fans into a root first.
    pub fn direction(&self, panel: &FansPanel) -> Pattern {
        let usual = if self.ways[0].roots.is_empty() && !self.ways[1].roots.is_empty() { Pattern::FanOut } else { Pattern::FanIn };
        panel.direction.unwrap_or(usual)
    }

    /// Entries to choose from: the roots, then relays and sets.
    pub fn entries(&self, pattern: Pattern) -> usize {
        self.way(pattern).roots.len() + self.others.len()
    }

    /// True if nothing is measured.
    pub fn is_empty(&self) -> bool {
        self.ways.iter().all(|way| way.roots.is_empty()) && self.others.is_empty()
    }

    /// The largest aggregate, bytes per second; NaN without fans.
    pub fn largest(&self) -> f64 {
        let aggregates = self.ways.iter().flat_map(|way| &way.over).map(|over| over.most.0);
        aggregates.chain(self.others.iter().filter_map(|other| other.moved.last()).map(|moved| moved.rate)).fold(f64::NAN, f64::max)
    }

    fn put(&mut self, group: &Group, sizes: &[GroupSize]) {
        let Some(size) = sizes.iter().find(|size| size.bytes == self.bytes) else { return };
        let Some(root) = group.root.filter(|_| group.pattern.is_fan()) else {
            let other = Other { group: group.clone(), moved: moved(size) };
            match self.others.binary_search_by(|known| known.group.cmp(group)) {
                Ok(at) => self.others[at] = other,
                Err(at) => self.others.insert(at, other),
            }
            return;
        };
        let roots = &mut self.ways[index(group.pattern)].roots;
        let at = roots.binary_search_by_key(&root, |known| known.rank).unwrap_or_else(|at| {
            roots.insert(at, Root { rank: root, fans: Vec::new() });
            at
        });
        let fans = &mut roots[at].fans;
        let fan = Fan::of(group, size);
        match fans.binary_search_by(|known| (known.width(), &known.group.peers).cmp(&(fan.width(), &group.peers))) {
            Ok(at) => fans[at] = fan,
            Err(at) => fans.insert(at, fan),
        }
    }
}

/// Sizes that groups have, and the one to show: as chosen, or else the largest of those that most groups have.
fn sizes(model: &Model, chosen: Option<u64>) -> (Vec<u64>, u64) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for size in model.groups.iter().flat_map(|(_, sizes)| sizes) {
        *counts.entry(size.bytes).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|&(&bytes, &count)| (count, bytes)).map_or(0, |(&bytes, _)| bytes);
    (counts.keys().copied().collect(), chosen.filter(|size| counts.contains_key(size)).unwrap_or(most))
}

/// Least, median and most over the roots, width by width.
fn over(roots: &[Root]) -> Vec<Over> {
    let mut widths: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
    for root in roots {
        for fan in root.fans.iter().filter(|fan| fan.aggregate.is_finite()) {
            widths.entry(fan.width()).or_default().push((fan.aggregate, root.rank));
        }
    }
    let over = widths.into_iter().filter_map(|(width, mut known)| {
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut values: Vec<f64> = known.iter().map(|(aggregate, _)| *aggregate).collect();
        let roots = known.iter().map(|(_, root)| root).collect::<BTreeSet<_>>().len();
        Some(Over { width, least: *known.first()?, median: median(&mut values), most: *known.last()?, roots })
    });
    over.collect()
}

/// The transfers of a group, the slowest first.
pub fn moved(size: &GroupSize) -> Vec<Moved> {
    let mut times: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for shot in size.shots.iter().filter(|shot| shot.shot.take == size.take) {
        let own = times.entry((shot.from, shot.to)).or_default();
        own.extend(shot.shot.seconds_per_message());
    }
    let rate = |mut times: Vec<f64>| size.bytes as f64 / median(&mut times);
    let mut moved: Vec<Moved> = times.into_iter().map(|((from, to), times)| Moved { from, to, rate: rate(times) }).collect();
    moved.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    moved
}
