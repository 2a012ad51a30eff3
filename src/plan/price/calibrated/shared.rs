//! What flows share, as a calibration identified it.

use std::collections::HashMap;

use crate::fabric::{Concurrency, Resource, ResourceKind};
use crate::fit::identify::{Capacity, Identified, Owner, Side, name, passes};
use crate::fit::{Fan, Fits, Key, Kind};
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit, Units};

use super::links::Links;

/// How much a resource does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Capacities {
    /// bytes per second for all together
    Fixed(f64),
    /// one flow after another, so many times as fast as strict turns; not clamped: below 1 is a collapse
    Turns(Concurrency),
}

/// One resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shared {
    pub name: String,
    pub capacity: Capacities,
    /// of a rank's side: the rank and the way, for which fans of just these peers may have been measured
    pub fan: Option<(usize, Fan)>,
}

impl Shared {
    pub fn told(&self) -> Resource {
        let (kind, capacity) = match &self.capacity {
            Capacities::Fixed(rate) => (ResourceKind::Fixed, *rate),
            Capacities::Turns(_) => (ResourceKind::TimeShared, self.concurrency(2)),
        };
        Resource { name: self.name.clone(), kind, capacity }
    }

    /// Of so many peers at once.
    pub fn concurrency(&self, width: usize) -> f64 {
        if let Capacities::Turns(concurrency) = &self.capacity { concurrency.at(width) } else { 1.0 }
    }
}

/// Flows of these ranks to those.
#[derive(Debug, Clone, PartialEq)]
struct Between {
    from: Vec<bool>,
    to: Vec<bool>,
    number: usize,
}

const PATHS: usize = 4;

/// Stands for what several flows passed at once without being slowed.
const FREE: u32 = u32::MAX;

/// Every shared resource, and who passes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SharedAll {
    pub all: Vec<Shared>,
    /// `[level, side and path][unit]`: number of the resource; empty where no unit has one
    sides: Vec<Vec<Option<u32>>>,
    between: Vec<Between>,
    /// concurrency of the fans that were measured, by root, way and peers
    sets: HashMap<(usize, Fan, Box<[usize]>), f64>,
    /// roots of those
    roots: HashMap<(usize, Fan), usize>,
}

fn slot(level: Level, side: Side, path: Option<PathClass>) -> usize {
    let path = match path {
        None => 0,
        Some(PathClass::Local) => 1,
        Some(PathClass::IntraNode) => 2,
        Some(PathClass::InterNode) => 3,
    };
    (level as usize * 3 + side as usize) * PATHS + path
}

const fn fan_side(fan: Fan) -> Side {
    match fan {
        Fan::In => Side::In,
        Fan::Out => Side::Out,
    }
}

impl SharedAll {
    /// Of what was identified.
    pub fn of(units: &Units, identified: &Identified) -> Self {
        let mut own = Self::default();
        for capacity in &identified.capacities {
            own.add(units, capacity);
        }
        for fan in &identified.fans {
            let way = if fan.pattern == Pattern::FanOut { Fan::Out } else { Fan::In };
            if let Some(c) = fan.concurrency.filter(|c| *c > 0.0 && c.is_finite()) {
                own.set(fan.root, way, &fan.peers, c);
            }
        }
        own
    }

    /// Of fits alone: what fans of a width, and of these very peers, got beside what their pairs get.
    pub fn of_fits(units: &Units, fits: &Fits, links: &Links) -> Self {
        let mut own = Self::default();
        for fan in [Fan::In, Fan::Out] {
            for path in [PathClass::IntraNode, PathClass::InterNode] {
                let Some(pair) = links.class_rate(path) else { continue };
                let widths = by_width(fits, fan, path, pair);
                if !widths.is_empty() {
                    own.every(units, Level::Rank, fan_side(fan), Some(path), &Capacities::Turns(Concurrency::ByWidth(widths)));
                }
            }
        }
        for fit in &fits.single {
            let (Kind::Receive | Kind::Send, Key::Fan { root, peers }) = (fit.kind, &fit.key) else { continue };
            let fan = if fit.kind == Kind::Receive { Fan::In } else { Fan::Out };
            let alone = |&peer: &usize| {
                let (from, to) = if fan == Fan::In { (peer, *root) } else { (*root, peer) };
                Some(1.0 / links.find(path(units, from, to), from, to)?.curve.at(u64::MAX).rate)
            };
            let Some(sum) = peers.iter().map(alone).sum::<Option<f64>>() else { continue };
            own.set(*root, fan, peers, fit.line.bandwidth * sum / peers.len().max(1) as f64);
        }
        own
    }

    /// A fan that was measured: its concurrency holds for just these peers.
    fn set(&mut self, root: usize, fan: Fan, peers: &[usize], c: f64) {
        if peers.len() > 1 && c > 0.0 && c.is_finite() {
            self.sets.insert((root, fan, peers.into()), c);
            *self.roots.entry((root, fan)).or_default() += 1;
        }
    }

    /// Every unit of a level that has none yet gets a resource.
    pub fn every(&mut self, units: &Units, level: Level, side: Side, path: Option<PathClass>, capacity: &Capacities) {
        for number in 0..units.count(level) {
            self.one(units, Unit { level, number }, side, path, Some(capacity), false);
        }
    }

    fn one(&mut self, units: &Units, unit: Unit, side: Side, path: Option<PathClass>, capacity: Option<&Capacities>, anew: bool) {
        let slot = slot(unit.level, side, path);
        if self.sides.len() <= slot {
            self.sides.resize(slot + 1, Vec::new());
        }
        let known = &mut self.sides[slot];
        if known.len() <= unit.number {
            known.resize(unit.number + 1, None);
        }
        if known[unit.number].is_some() && !anew {
            return;
        }
        let Some(capacity) = capacity else {
            known[unit.number] = Some(FREE);
            return;
        };
        known[unit.number] = u32::try_from(self.all.len()).ok();
        let fan = match side {
            Side::In => Some(Fan::In),
            Side::Out => Some(Fan::Out),
            Side::Within => None,
        };
        let fan = fan.filter(|_| unit.level == Level::Rank).map(|fan| (unit.number, fan));
        self.all.push(Shared { name: name(units, unit, side, path), capacity: capacity.clone(), fan });
    }

    fn add(&mut self, units: &Units, told: &Capacity) {
        // Where the data do not tell a rate from turns, the widths that were measured say more.
        let turns = |c: f64| match &told.by_width {
            widths if widths.is_empty() => Concurrency::Always(c),
            widths => Concurrency::ByWidth(widths.clone()),
        };
        let capacity = match (told.concurrency, told.rate) {
            (Some(c), _) if c > 0.0 && c.is_finite() => Some(Capacities::Turns(turns(c))),
            (_, Some(rate)) if rate > 0.0 && rate.is_finite() => Some(Capacities::Fixed(rate)),
            _ => None,
        };
        match &told.owner {
            Owner::Unit { unit, side } => self.one(units, *unit, *side, told.path, capacity.as_ref(), true),
            Owner::Every { level, side } => {
                for number in 0..units.count(*level) {
                    self.one(units, Unit { level: *level, number }, *side, told.path, capacity.as_ref(), false);
                }
            }
            Owner::Between { from, to } => {
                let Some(capacity) = capacity else { return };
                let hosts = told.path == Some(PathClass::InterNode);
                let ranks = |wanted: &[usize]| {
                    let within = |rank| {
                        let number = if hosts { units.unit(Level::Host, rank).map(|unit| unit.number) } else { Some(rank) };
                        number.is_some_and(|number| wanted.contains(&number))
                    };
                    (0..units.world()).map(within).collect::<Vec<bool>>()
                };
                self.between.push(Between { from: ranks(from), to: ranks(to), number: self.all.len() });
                self.all.push(Shared { name: told.name.clone(), capacity, fan: None });
            }
        }
    }

    /// Numbers of the resources that a flow passes.
    pub fn touched(&self, units: &Units, from: usize, to: usize, mut tell: impl FnMut(usize)) {
        if !self.sides.is_empty() {
            passes(units, from, to, |unit, side, path| {
                let known = self.sides.get(slot(unit.level, side, path)).and_then(|known| known.get(unit.number));
                if let Some(&number) = known.and_then(Option::as_ref).filter(|number| **number != FREE) {
                    tell(number as usize);
                }
            });
        }
        for link in &self.between {
            if from != to && link.from[from] && link.to[to] {
                tell(link.number);
            }
        }
    }

    /// True where several flows at once were measured: of that side of a rank, or of just these peers.
    pub fn knows(&self, root: usize, fan: Fan, path: PathClass, peers: &[usize]) -> bool {
        let side = self.sides.get(slot(Level::Rank, fan_side(fan), Some(path)));
        side.is_some_and(|known| known.get(root).is_some_and(Option::is_some)) || self.measured((root, fan), peers).is_some()
    }

    /// Concurrency of a fan of just these peers (ascending), if it was measured.
    pub fn measured(&self, (root, fan): (usize, Fan), peers: &[usize]) -> Option<f64> {
        self.roots.get(&(root, fan))?;
        self.sets.get(&(root, fan, peers.into())).copied()
    }
}

/// Aggregate over the pair's rate, by width, from the root's times, else from the peers' own.
fn by_width(fits: &Fits, fan: Fan, path: PathClass, pair: f64) -> Vec<(usize, f64)> {
    let of = |kind: Kind| {
        let each = fits.classes.iter().filter(move |fit| fit.kind == kind);
        each.filter_map(move |fit| match fit.key {
            Key::FanClass { path: own, width } if own == path && width > 1 => Some((width, fit.line.bandwidth / pair)),
            _ => None,
        })
    };
    let mut widths: Vec<(usize, f64)> = of(fan.root_kind()).collect();
    for (width, each) in of(fan.kind()) {
        if !widths.iter().any(|known| known.0 == width) {
            widths.push((width, each * width as f64));
        }
    }
    widths.retain(|(_, c)| *c > 0.0 && c.is_finite());
    widths.sort_unstable_by_key(|known| known.0);
    widths
}

/// The class of a pair.
pub(super) fn path(units: &Units, from: usize, to: usize) -> PathClass {
    match (from == to, units.together(Level::Host, from, to)) {
        (true, _) => PathClass::Local,
        (_, true) => PathClass::IntraNode,
        _ => PathClass::InterNode,
    }
}
