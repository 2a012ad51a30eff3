//! What a strategy costs, and what it would if something were faster.

use std::collections::HashSet;

use super::{Job, Strategy, gather};
use crate::fabric::{Demand, Resource, ResourceId, ResourceKind, Route};
use crate::fit::Interval;
use crate::plan::price::{PriceError, Prices, Terms};
use crate::plan::{Flow, Replay, StageTime, Traffic, Warning, replay};
use crate::units::format_gbps;

/// Kinds of resources that are named.
const TOLD: usize = 3;

/// What strategies are priced with.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub prices: &'a dyn Prices,
    /// of the engines of one host as a group of their own, in their order: a library's all-gather runs in such a group, where a pair
    /// may give several times of what it gives in the group of all (275 and 54 GB/s of one `NVLink` pair). `None`: as in the group of all
    pub inside: Option<&'a dyn Prices>,
}

/// Resources that bind together, such as the receivers of all engines.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Binding {
    /// of the prices of a host's engines
    pub inside: bool,
    pub ids: HashSet<ResourceId>,
    /// the busiest of each kind, how many of it there are, and the bytes per second that pass it at most
    kinds: Vec<(String, usize, f64)>,
}

impl Binding {
    /// Those as busy as the busiest: a little less of the same kind, where all do the same; nothing for no resources.
    fn of(told: &Replay, inside: bool) -> Option<Self> {
        let most = told.resources.get(told.bottleneck.resource.unwrap_or(0))?;
        let mut known: Vec<(ResourceKind, String)> = Vec::new();
        let mut kinds: Vec<(String, usize, f64)> = Vec::new();
        let mut ids = HashSet::new();
        for load in &told.resources {
            let own = kind(&load.resource);
            if load.busy < most.busy * if own == kind(&most.resource) { 0.9 } else { 0.99 } {
                continue;
            }
            ids.insert(load.id);
            if let Some(at) = known.iter().position(|known| *known == own) {
                kinds[at].1 += 1;
            } else {
                known.push(own);
                kinds.push((load.resource.name.clone(), 1, load.bytes / load.busy));
            }
        }
        Some(Self { inside, ids, kinds })
    }

    /// These and others of the same prices.
    pub fn and(&self, other: &Self) -> Option<Self> {
        if self.inside != other.inside {
            return None;
        }
        let mut both = self.clone();
        both.ids.extend(&other.ids);
        both.kinds.extend(other.kinds.iter().filter(|kind| !self.kinds.contains(kind)).cloned());
        Some(both)
    }

    /// `send engine out of rank 8 and 7 like it (now 79.5 GB/s)`; of more than three kinds the rest is counted.
    pub fn names(&self) -> String {
        let mut told: Vec<String> = self
            .kinds
            .iter()
            .take(TOLD)
            .map(|(name, number, rate)| {
                let alike = match number {
                    1 => String::new(),
                    2 => " and one like it".to_owned(),
                    many => format!(" and {} like it", many - 1),
                };
                format!("{name}{alike} (now {} GB/s)", format_gbps(*rate))
            })
            .collect();
        match self.kinds.len().saturating_sub(TOLD) {
            0 => {}
            1 => told.push("one more".to_owned()),
            more => told.push(format!("{more} more")),
        }
        let among = if self.inside { "among the engines of a host " } else { "" };
        format!("{among}{}", told.join(", "))
    }

    /// What they would do with a factor: `gave 104 GB/s`, or of several `were 1.31 times as fast`.
    pub fn would(&self, factor: f64) -> String {
        match &self.kinds[..] {
            [(_, _, rate)] => format!("gave {} GB/s", format_gbps(rate * factor)),
            _ if factor >= 1.0 => format!("were {} times as fast", digits(factor)),
            _ => format!("were {} times as slow", digits(1.0 / factor)),
        }
    }
}

/// Two digits or more.
fn digits(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1}") } else { format!("{factor:.0}") }
}

/// Some resources faster or slower than they are.
#[derive(Clone, Copy)]
pub(super) struct Scale<'a> {
    pub of: &'a Binding,
    pub factor: f64,
}

/// A strategy with its price.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Priced {
    pub seconds: f64,
    pub interval: Interval,
    pub stages: Vec<StageTime>,
    pub say: String,
    pub warnings: Vec<Warning>,
    /// nothing where no byte moves
    pub binding: Option<Binding>,
    /// resources that it uses
    used: HashSet<(bool, ResourceId)>,
}

impl Priced {
    /// True if a change of these resources may change its time.
    pub fn uses(&self, of: &Binding) -> bool {
        of.ids.iter().any(|&id| self.used.contains(&(of.inside, id)))
    }

    fn of(told: Replay, inside: bool) -> Self {
        let binding = Binding::of(&told, inside);
        let used = told.resources.iter().map(|load| (inside, load.id)).collect();
        let Replay { seconds, interval, stages, bottleneck, warnings, .. } = told;
        Self { seconds, interval, stages, say: bottleneck.say, warnings, binding, used }
    }

    /// The other begins when this one is complete; whichever takes longer binds.
    fn then(mut self, mut later: Self) -> Self {
        for stage in &mut later.stages {
            (stage.start, stage.end) = (stage.start + self.seconds, stage.end + self.seconds);
        }
        self.stages.extend(later.stages);
        if later.seconds > self.seconds {
            (self.say, self.binding) = (later.say, later.binding);
        }
        self.seconds += later.seconds;
        self.interval = Interval { low: self.interval.low + later.interval.low, high: self.interval.high + later.interval.high };
        self.warnings.extend(later.warnings.into_iter().filter(|warning| !self.warnings.contains(warning)).collect::<Vec<_>>());
        self.used.extend(later.used);
        self
    }
}

/// A resource's name without its numbers, and its kind. Links of single pairs are all alike.
fn kind(resource: &Resource) -> (ResourceKind, String) {
    (resource.kind, resource.name.chars().filter(|c| !c.is_ascii_digit()).collect())
}

/// What a strategy costs.
pub(super) fn price(strategy: Strategy, job: &Job, traffic: &Traffic, ground: &Ground, scale: Option<Scale>) -> Result<Priced, PriceError> {
    let scaled = |prices, inside| Scaled { prices, scale: scale.filter(|scale| scale.of.inside == inside) };
    let outer = scaled(ground.prices, false);
    let ring = traffic.stages.iter().position(|stage| stage.name == gather::RING);
    match (ground.inside, ring) {
        (Some(inside), Some(ring)) if strategy == Strategy::ShardedRing => {
            let inner = scaled(inside, true);
            let across =
                Traffic { flows: traffic.flows.iter().filter(|flow| flow.stage < ring).cloned().collect(), ..part(traffic, 0, ring) };
            let first = Priced::of(replay(&across, &outer)?, false);
            let mut rings: Option<Priced> = None;
            for (_, engines) in job.engine_hosts() {
                let own = Priced::of(replay(&inside_one(traffic, ring, &engines), &inner)?, true);
                // Each host's is a group of its own; the last one counts.
                rings = Some(rings.take().filter(|other| other.seconds >= own.seconds).unwrap_or(own));
            }
            Ok(match rings {
                Some(rings) => first.then(rings),
                None => first,
            })
        }
        _ => Ok(Priced::of(replay(traffic, &outer)?, false)),
    }
}

/// The stages from one on to before another, without their flows.
fn part(traffic: &Traffic, from: usize, to: usize) -> Traffic {
    Traffic { name: traffic.name.clone(), ranks: traffic.ranks, stages: traffic.stages[from..to].to_vec(), ..Traffic::default() }
}

/// A stage's flows among the engines of one host, these numbered from 0.
fn inside_one(traffic: &Traffic, stage: usize, engines: &[usize]) -> Traffic {
    let number = |rank: usize| engines.iter().position(|&engine| engine == rank);
    let mut own = Traffic { ranks: engines.len(), ..part(traffic, stage, stage + 1) };
    let mut place = vec![None; traffic.flows.len()];
    for (at, flow) in traffic.flows.iter().enumerate().filter(|(_, flow)| flow.stage == stage) {
        let (Some(from), Some(to)) = (number(flow.from), number(flow.to)) else { continue };
        place[at] = Some(own.flows.len());
        let after = flow.after.iter().filter_map(|&before| place[before]).collect();
        // Its messages are the library's own affair, whatever the staging budget.
        own.flows.push(Flow { stage: 0, from, to, after, messages: 1, ..flow.clone() });
    }
    own
}

/// Prices with some resources faster or slower.
struct Scaled<'a> {
    prices: &'a dyn Prices,
    scale: Option<Scale<'a>>,
}

impl Prices for Scaled<'_> {
    fn world(&self) -> usize {
        self.prices.world()
    }

    fn routes(&self, together: &[Demand]) -> Result<Vec<Route>, PriceError> {
        let mut routes = self.prices.routes(together)?;
        let Some(Scale { of, factor }) = self.scale else { return Ok(routes) };
        for route in &mut routes {
            for used in route.flow.uses.iter_mut().filter(|used| of.ids.contains(&used.resource)) {
                used.weight /= factor;
                if self.prices.resource(used.resource).is_some_and(|resource| resource.kind == ResourceKind::Pair) {
                    route.flow.cap *= factor;
                }
            }
        }
        Ok(routes)
    }

    fn resource(&self, id: ResourceId) -> Option<Resource> {
        let mut resource = self.prices.resource(id)?;
        if let Some(Scale { factor, .. }) = self.scale.filter(|scale| scale.of.ids.contains(&id)) {
            resource.capacity *= factor;
        }
        Some(resource)
    }

    fn copy(&self, rank: usize, bytes: u64) -> Option<f64> {
        self.prices.copy(rank, bytes)
    }

    fn uncertainty(&self, from: usize, to: usize, bytes: u64) -> f64 {
        self.prices.uncertainty(from, to, bytes)
    }

    fn terms(&self) -> Terms {
        self.prices.terms()
    }

    fn warnings(&self, traffic: &Traffic) -> Vec<Warning> {
        self.prices.warnings(traffic)
    }
}
