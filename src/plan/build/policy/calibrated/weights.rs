//! What a byte from one process to another costs at each resource.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Calibrated, bytes};
use crate::fabric::{Demand, ResourceId, Route};
use crate::plan::build::{Answer, Request};

/// What is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// own link of a pair
    Link(usize, usize),
    Shared(ResourceId),
}

/// Costs of pairs.
#[derive(Clone, Default)]
pub(super) struct Weights {
    /// resources, numbered as they come
    numbers: HashMap<Key, usize>,
    /// by (from, to): resource and seconds a byte
    costs: HashMap<(usize, usize), Vec<(usize, f64)>>,
    /// bytes below which a part of a pair's path takes longer to begin than to send: α × bandwidth
    floors: HashMap<(usize, usize), u64>,
}

/// Every pair that could be used; `None` without processes.
pub(super) fn pairs(requests: &[Request]) -> Option<BTreeSet<(usize, usize)>> {
    let mut pairs = BTreeSet::new();
    for request in requests {
        let to = request.process?;
        for candidate in &request.candidates {
            pairs.insert((candidate.process?, to));
        }
    }
    Some(pairs)
}

impl Weights {
    /// As if all pairs sent at once.
    pub fn together(policy: &Calibrated, pairs: &BTreeSet<(usize, usize)>) -> Option<Self> {
        let demands: Vec<Demand> = pairs.iter().map(|&(from, to)| Demand { from, to, bytes: policy.bytes_per_peer }).collect();
        let routes = policy.prices.routes(&demands).ok()?;
        Some(Self::new(policy, pairs.iter().copied().zip(routes)))
    }

    /// As if each sent alone.
    pub fn alone(policy: &Calibrated, pairs: &BTreeSet<(usize, usize)>) -> Option<Self> {
        let alone = |&(from, to): &(usize, usize)| {
            let route = policy.prices.routes(&[Demand { from, to, bytes: policy.bytes_per_peer }]).ok()?.pop()?;
            Some(((from, to), route))
        };
        let routes: Option<Vec<_>> = pairs.iter().map(alone).collect();
        Some(Self::new(policy, routes?))
    }

    /// As if those sent at once that answers use; the others as they were.
    pub fn of(policy: &Calibrated, others: &Self, requests: &[Request], answers: &[Answer]) -> Option<Self> {
        let mut used: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (request, answer) in requests.iter().zip(answers) {
            let process = |location: i64| request.candidates.iter().find(|known| known.location == location)?.process;
            let to = request.process?;
            let mut add = |source: i64, shape: &[u64]| {
                let sum = used.entry((process(source)?, to)).or_default();
                *sum = sum.saturating_add(bytes(request, shape));
                Some(())
            };
            match answer {
                Answer::Whole(source) => add(*source, &request.shape)?,
                Answer::Parts(parts) => parts.iter().try_for_each(|part| add(part.source, &part.shape))?,
            }
        }
        let demand = |(&(from, to), &bytes): (&(usize, usize), &u64)| Demand { from, to, bytes: bytes.min(policy.bytes_per_peer) };
        let demands: Vec<Demand> = used.iter().map(demand).collect();
        let routes = policy.prices.routes(&demands).ok()?;
        let mut both = others.clone();
        used.keys().zip(routes).for_each(|(&pair, route)| both.add(policy, pair, &route));
        Some(both)
    }

    fn new(policy: &Calibrated, routes: impl IntoIterator<Item = ((usize, usize), Route)>) -> Self {
        let mut weights = Self::default();
        routes.into_iter().for_each(|(pair, route)| weights.add(policy, pair, &route));
        weights
    }

    fn add(&mut self, policy: &Calibrated, pair: (usize, usize), Route { alpha, flow }: &Route) {
        let mut number = |key: Key| {
            let next = self.numbers.len();
            *self.numbers.entry(key).or_insert(next)
        };
        let rate = flow.alone().rate;
        // Each message keeps its link waiting.
        let message = policy.prices.terms().round.unwrap_or(*alpha) / policy.bytes_per_peer.max(1) as f64;
        let mut costs = vec![(number(Key::Link(pair.0, pair.1)), if rate > 0.0 { 1.0 / rate + message } else { f64::MAX.sqrt() })];
        costs.extend(flow.uses.iter().map(|used| (number(Key::Shared(used.resource)), used.weight)));
        self.costs.insert(pair, costs);
        self.floors.insert(pair, (alpha * rate).ceil() as u64);
    }

    /// Number of resources.
    pub fn resources(&self) -> usize {
        self.numbers.len()
    }

    /// Resources of a pair, and seconds a byte there.
    pub fn of_pair(&self, from: usize, to: usize) -> &[(usize, f64)] {
        self.costs.get(&(from, to)).map_or(&[], |costs| costs)
    }

    pub fn floor(&self, from: usize, to: usize) -> u64 {
        self.floors.get(&(from, to)).copied().unwrap_or(u64::MAX)
    }
}
