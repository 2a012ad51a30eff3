//! What flows pass: the sides of ranks, switches, sockets and hosts, and what was seen to pass each at most.

use std::collections::HashMap;

use super::evidence::{Evidence, Ran};
use super::types::Side;
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit, Units};

/// A side of a unit; of a rank for each class of paths, since other hardware serves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Resource {
    pub unit: Unit,
    pub side: Side,
    /// of a rank's sides
    pub path: Option<PathClass>,
}

/// Every known resource that a flow passes, fine ones first. Where bytes to another host leave a host's switches and sockets
/// depends on its network cards, so those count for flows within a host only.
pub(super) fn passed(units: &Units, path: PathClass, (from, to): (usize, usize), mut tell: impl FnMut(Resource)) {
    let mut side = |level, rank, side, path| {
        if let Some(unit) = units.unit(level, rank) {
            tell(Resource { unit, side, path });
        }
    };
    if path == PathClass::Local {
        side(Level::Rank, from, Side::Within, None);
    } else {
        side(Level::Rank, from, Side::Out, Some(path));
        side(Level::Rank, to, Side::In, Some(path));
    }
    let levels: &[Level] = if path == PathClass::InterNode { &[Level::Host] } else { &[Level::Switch, Level::Socket, Level::Host] };
    for &level in levels {
        if units.together(level, from, to) {
            side(level, from, Side::Within, None);
        } else if level != Level::Host || path == PathClass::InterNode {
            side(level, from, Side::Out, None);
            side(level, to, Side::In, None);
        }
    }
}

/// The same for those who price flows: unit, side, and of a rank's sides the class of paths.
pub fn passes(units: &Units, from: usize, to: usize, mut tell: impl FnMut(Unit, Side, Option<PathClass>)) {
    let path = match (from == to, units.together(Level::Host, from, to)) {
        (true, _) => PathClass::Local,
        (_, true) => PathClass::IntraNode,
        _ => PathClass::InterNode,
    };
    passed(units, path, (from, to), |Resource { unit, side, path }| tell(unit, side, path));
}

/// What passed a resource in one measurement.
#[derive(Debug, Clone)]
pub(super) struct Passed {
    pub resource: Resource,
    /// flows, by number
    pub flows: Vec<usize>,
    /// bytes per second until the last of them was through
    pub rate: f64,
    /// what they would ask for together, each as fast as alone, bytes per second; infinite where one was not measured alone
    pub demand: f64,
}

/// What passed each resource that several flows of a measurement had in common.
pub(super) fn passed_in(evidence: &Evidence<'_>, ran: &Ran<'_>) -> Vec<Passed> {
    let mut flows: HashMap<Resource, Vec<usize>> = HashMap::new();
    for (at, &(from, to)) in ran.told.flows.iter().enumerate() {
        passed(evidence.units, evidence.path(from, to), (from, to), |resource| flows.entry(resource).or_default().push(at));
    }
    let bytes = ran.told.bytes as f64;
    let one = |(resource, flows): (Resource, Vec<usize>)| {
        let rate = bytes * flows.len() as f64 / ran.seconds(flows.iter().copied());
        let demand = flows.iter().map(|&at| ran.alone[at].map_or(f64::INFINITY, |alone| bytes / alone.bytes)).sum();
        Passed { resource, flows, rate, demand }
    };
    let mut all: Vec<Passed> = flows.into_iter().filter(|(_, flows)| flows.len() > 1).map(one).collect();
    // Fine ones first; of one measurement's two ends the sending one.
    all.sort_by_key(|passed| (passed.resource.unit.level, passed.resource.side, passed.resource));
    all
}

/// What was seen to pass each resource at most.
#[derive(Debug)]
pub(super) struct Carried {
    /// by several flows at once, bytes per second
    together: HashMap<Resource, f64>,
    /// by a single one: of each kind of resource, by the number of its unit; empty where several were never seen
    alone: [Vec<f64>; KINDS],
}

/// Levels, sides, and classes of paths.
const KINDS: usize = 4 * 3 * 3;

impl Resource {
    fn kind(&self) -> usize {
        let path = match self.path {
            Some(PathClass::IntraNode) => 1,
            Some(PathClass::InterNode) => 2,
            _ => 0,
        };
        (self.unit.level as usize * 3 + self.side as usize) * 3 + path
    }
}

impl Carried {
    /// Of all measurements; of single flows only where several were seen, too.
    pub fn of(evidence: &Evidence<'_>, ran: &[Ran<'_>], passed: &[Vec<Passed>]) -> Self {
        let mut carried = Self { together: HashMap::new(), alone: std::array::from_fn(|_| Vec::new()) };
        for (ran, passed) in ran.iter().zip(passed) {
            // Both directions of a pair at once are no matter of one direction.
            for one in passed.iter().filter(|_| ran.told.pattern != Pattern::Duplex) {
                let most = carried.together.entry(one.resource).or_default();
                *most = most.max(one.rate);
            }
        }
        for resource in carried.together.keys() {
            let alone = &mut carried.alone[resource.kind()];
            alone.resize(evidence.units.count(resource.unit.level), 0.0);
        }
        let is_across = |resource: &Resource| {
            resource.path == Some(PathClass::InterNode) || (resource.unit.level == Level::Host && resource.side != Side::Within)
        };
        let (across, within) = (carried.together.keys().any(is_across), carried.together.keys().any(|resource| !is_across(resource)));
        let (units, bytes) = (evidence.units, evidence.usual_bytes());
        // A job has a million pairs, few of them within a host.
        for from in 0..units.world() {
            let host = units.unit(Level::Host, from);
            if across {
                (0..units.world()).for_each(|to| carried.flow(evidence, bytes, (from, to)));
            } else if let Some(host) = host.filter(|_| within) {
                units.members(host).iter().for_each(|&to| carried.flow(evidence, bytes, (from, to)));
            }
        }
        carried
    }

    /// Take in what a single flow of messages of `bytes` has.
    fn flow(&mut self, evidence: &Evidence<'_>, bytes: u64, (from, to): (usize, usize)) {
        let path = evidence.path(from, to);
        let Some(alone) = (path != PathClass::Local).then(|| evidence.alone(from, to, bytes)).flatten() else { return };
        let rate = bytes as f64 / alone.bytes;
        passed(evidence.units, path, (from, to), |resource| {
            if let Some(known) = self.alone[resource.kind()].get_mut(resource.unit.number) {
                *known = known.max(rate);
            }
        });
    }

    /// Most that passed it, bytes per second; 0 if several never did.
    pub fn most(&self, resource: &Resource) -> f64 {
        self.together.get(resource).copied().unwrap_or(0.0).max(self.single(resource))
    }

    /// Most that a single flow had through it, bytes per second.
    pub fn single(&self, resource: &Resource) -> f64 {
        self.alone[resource.kind()].get(resource.unit.number).copied().unwrap_or(0.0)
    }

    /// All that several flows passed together, in order.
    pub fn resources(&self) -> Vec<Resource> {
        let mut all: Vec<Resource> = self.together.keys().copied().collect();
        all.sort_unstable();
        all
    }
}
