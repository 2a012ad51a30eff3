//! What flows share, and how resources are numbered: by arithmetic, so that a thousand ranks store nothing for each pair.

use super::class::Class;
use super::layout::{Layout, Unit};
use super::share::ResourceId;

/// Which way a flow must cross a unit's border to use its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// flows that leave the unit
    Out,
    /// flows that enter it
    In,
    /// one resource for those that leave and one for those that enter: a full-duplex link
    Each,
    /// one resource for both together: a half-duplex link or a bus
    Both,
    /// flows that stay inside, local copies included: a memory bus, a switch's backplane
    Within,
}

/// How much a resource can do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Capacity {
    /// bytes per second, whoever uses it
    Rate(f64),
    /// it serves one flow after another at each one's own rate; several at once get this many times the speed of strict turns
    TimeShared(Concurrency),
}

/// Effective concurrency of a time-shared endpoint by the number of flows at once: 1 alone; below 1 is an incast collapse.
#[derive(Debug, Clone, PartialEq)]
pub enum Concurrency {
    /// the same for two flows and more
    Always(f64),
    /// number of flows and concurrency, ascending; in between it follows a line, from 1 for one flow on
    ByWidth(Vec<(usize, f64)>),
}

impl Concurrency {
    /// Of so many flows at once.
    pub fn at(&self, width: usize) -> f64 {
        match self {
            _ if width <= 1 => 1.0,
            Self::Always(c) => *c,
            Self::ByWidth(points) => {
                let mut before = (1, 1.0);
                for &(next, c) in points {
                    if width <= next {
                        let part = (width - before.0) as f64 / (next - before.0).max(1) as f64;
                        return before.1 + (c - before.1) * part;
                    }
                    before = (next, c);
                }
                before.1
            }
        }
    }
}

/// One resource for each unit (two for [`Direction::Each`]).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shared {
    pub name: String,
    pub per: Unit,
    pub direction: Direction,
    pub capacity: Capacity,
    /// only flows of this class; `None` for all
    pub path: Option<Class>,
}

/// A link between two groups of hosts, used by flows from the one to the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trunk {
    pub name: String,
    /// `true` for hosts of the near side
    pub near: Vec<bool>,
    pub far: Vec<bool>,
    /// bytes per second from near to far, and back
    pub rates: [f64; 2],
}

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// the link of one ordered pair
    Pair,
    /// a fixed capacity
    Fixed,
    /// an endpoint that serves one flow after another
    TimeShared,
    /// what a rank's sending and receiving take from each other
    Duplex,
}

/// A resource told.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// such as "uplink out of switch 1 of node0"
    pub name: String,
    pub kind: ResourceKind,
    /// bytes per second; the concurrency of two flows for [`ResourceKind::TimeShared`]; what is left of the rate for
    /// [`ResourceKind::Duplex`]
    pub capacity: f64,
}

/// Where in the numbering each group of resources begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbering {
    /// first number and number of units, by entry of `shared`
    shared: Vec<(u64, u64)>,
    trunks: u64,
    duplex: u64,
    pairs: u64,
    world: u64,
}

/// What a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// entry, unit, and whether it is the entering side of an `each`
    Shared {
        entry: usize,
        unit: usize,
        entering: bool,
    },
    Trunk {
        trunk: usize,
        back: bool,
    },
    /// rank, number of the path rule
    Duplex {
        rank: usize,
        rule: usize,
    },
    Pair {
        from: usize,
        to: usize,
    },
}

impl Numbering {
    pub fn new(layout: &Layout, shared: &[Shared], trunks: usize, rules: usize) -> Self {
        let mut next = 0;
        let shared = shared
            .iter()
            .map(|entry| {
                let units = layout.units(entry.per).unwrap_or(0) as u64;
                let first = next;
                next += units * if entry.direction == Direction::Each { 2 } else { 1 };
                (first, units)
            })
            .collect();
        let world = layout.world() as u64;
        let duplex = next + 2 * trunks as u64;
        Self { shared, trunks: next, duplex, pairs: duplex + world * rules as u64, world }
    }

    pub fn id(&self, meaning: Meaning) -> ResourceId {
        ResourceId(match meaning {
            Meaning::Shared { entry, unit, entering } => {
                let (first, units) = self.shared[entry];
                first + unit as u64 + if entering { units } else { 0 }
            }
            Meaning::Trunk { trunk, back } => self.trunks + 2 * trunk as u64 + u64::from(back),
            Meaning::Duplex { rank, rule } => self.duplex + rule as u64 * self.world + rank as u64,
            Meaning::Pair { from, to } => self.pairs + from as u64 * self.world + to as u64,
        })
    }

    /// The inverse of [`Self::id`]; `None` for a number that was never given out.
    pub fn meaning(&self, id: ResourceId) -> Option<Meaning> {
        let ResourceId(id) = id;
        let index = |value: u64| usize::try_from(value).ok();
        if id < self.trunks {
            let entry = self.shared.iter().rposition(|&(first, units)| units > 0 && first <= id)?;
            let (first, units) = self.shared[entry];
            Some(Meaning::Shared { entry, unit: index((id - first) % units)?, entering: id - first >= units })
        } else if id < self.duplex {
            Some(Meaning::Trunk { trunk: index((id - self.trunks) / 2)?, back: (id - self.trunks) % 2 == 1 })
        } else if id < self.pairs {
            Some(Meaning::Duplex { rank: index((id - self.duplex) % self.world)?, rule: index((id - self.duplex) / self.world)? })
        } else {
            let pair = id - self.pairs;
            (pair / self.world < self.world).then_some(())?;
            Some(Meaning::Pair { from: index(pair / self.world)?, to: index(pair % self.world)? })
        }
    }
}
