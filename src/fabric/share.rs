//! Who gets how much while several flows run: weighted max–min fairness by progressive filling.
//!
//! A resource R serves flows; flow f costs `w_R(f)` seconds a byte there, and `Σ_f w_R(f)·r_f ≤ 1` must hold for every R. A fixed
//! capacity C has `w = 1/C` for all its flows; an endpoint that serves one peer after another has `w = 1/(c·P(f))` with the flow's own pair
//! rate P and an effective concurrency c; a pair's own link is the flow's cap.
//!
//! All rates rise together; a flow stops at its cap or when a resource that it uses is full (Bertsekas & Gallager, Data Networks, 6.5.2).
//! The result is the one allocation in which no flow can have more without another, not larger one, having less.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Which resource: a number that the fabric gives out and can name (`Fabric::resource`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(pub u64);

/// What a flow costs at one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    pub resource: ResourceId,
    /// seconds a byte: finite, not negative
    pub weight: f64,
}

/// Bytes on their way from one place to another, as the resources see them.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// most that its own link can carry, bytes per second; 0 when nothing passes, infinite when only the resources bind
    pub cap: f64,
    pub uses: Vec<Use>,
}

/// What keeps a flow from having more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// its own link
    Cap,
    /// a resource that is full
    Resource(ResourceId),
}

/// What a flow gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// bytes per second
    pub rate: f64,
    pub bound: Bound,
}

impl Flow {
    /// What the flow gets when it runs alone.
    pub fn alone(&self) -> Share {
        let mut share = Share { rate: self.cap, bound: Bound::Cap };
        for used in &self.uses {
            if used.weight * share.rate > 1.0 + EPSILON {
                share = Share { rate: 1.0 / used.weight, bound: Bound::Resource(used.resource) };
            }
        }
        share
    }
}

/// Relative slack in comparisons: sums of a few thousand weights are exact to better than this.
pub(super) const EPSILON: f64 = 1e-9;

/// The resources that could bind some of the flows, if all ran at once, with the flows that use them.
pub(super) struct Contended {
    /// what each flow gets alone
    pub limits: Vec<Share>,
    /// flow and weight, by resource
    pub users: Vec<Vec<(usize, f64)>>,
    pub ids: Vec<ResourceId>,
}

impl Contended {
    /// A resource that is not full with every flow at its own limit never is, for these flows or fewer of them, and is left out.
    pub fn of<F: Borrow<Flow>>(flows: &[F]) -> Self {
        let limits: Vec<Share> = flows.iter().map(|flow| flow.borrow().alone()).collect();
        let mut load: HashMap<ResourceId, f64> = HashMap::new();
        for (flow, limit) in flows.iter().zip(&limits) {
            for used in flow.borrow().uses.iter().filter(|used| used.weight > 0.0 && limit.rate > 0.0) {
                *load.entry(used.resource).or_default() += used.weight * limit.rate;
            }
        }
        let mut ids: Vec<ResourceId> = load.into_iter().filter(|&(_, load)| load > 1.0 + EPSILON).map(|(id, _)| id).collect();
        ids.sort_unstable();
        let place: HashMap<ResourceId, usize> = ids.iter().enumerate().map(|(at, &id)| (id, at)).collect();
        let mut users = vec![Vec::new(); ids.len()];
        if !ids.is_empty() {
            for (number, (flow, limit)) in flows.iter().zip(&limits).enumerate() {
                for used in flow.borrow().uses.iter().filter(|used| used.weight > 0.0 && limit.rate > 0.0) {
                    if let Some(&at) = place.get(&used.resource) {
                        users[at].push((number, used.weight));
                    }
                }
            }
        }
        Self { limits, users, ids }
    }
}

/// A level at which something stops rising, ordered by `total_cmp`.
#[derive(Clone, Copy, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The max–min fair rate of every flow, in the order given, and what binds it.
///
/// Costs one pass over the flows while nothing is contended, and U·log U for U uses of contended resources.
pub fn shares<F: Borrow<Flow>>(flows: &[F]) -> Vec<Share> {
    let contended = Contended::of(flows);
    let Contended { limits, users, ids } = &contended;
    let shares = limits.clone();
    if ids.is_empty() {
        return shares;
    }
    let mut used_by: Vec<Vec<(usize, f64)>> = vec![Vec::new(); flows.len()];
    for (resource, users) in users.iter().enumerate() {
        for &(flow, weight) in users {
            used_by[flow].push((resource, weight));
        }
    }
    let mut filling = Filling {
        rising: used_by.iter().map(|uses| !uses.is_empty()).collect(),
        taken: vec![0.0; users.len()],
        weight: users.iter().map(|users| users.iter().map(|&(_, weight)| weight).sum()).collect(),
        shares,
    };
    let mut full: BinaryHeap<Reverse<(Level, usize)>> = (0..users.len()).map(|at| Reverse((Level(filling.level(at)), at))).collect();
    let mut by_limit: Vec<usize> = (0..flows.len()).filter(|&flow| filling.rising[flow]).collect();
    by_limit.sort_by(|&a, &b| limits[b].rate.total_cmp(&limits[a].rate));

    while let Some(&flow) = by_limit.last() {
        if !filling.rising[flow] {
            by_limit.pop();
            continue;
        }
        match full.peek() {
            Some(&Reverse((Level(noted), at))) if noted < limits[flow].rate * (1.0 - EPSILON) => {
                full.pop();
                // A resource fills no earlier than noted: flows that stopped meanwhile leave it more. Summed anew only when its turn has come.
                let later = |level: f64| level > noted * (1.0 + EPSILON);
                if later(filling.level(at)) || later(filling.recount(at, &users[at])) {
                    full.push(Reverse((Level(filling.level(at)), at)));
                    continue;
                }
                let share = Share { rate: filling.level(at), bound: Bound::Resource(ids[at]) };
                for &(flow, _) in &users[at] {
                    filling.stop(flow, share, &used_by[flow]);
                }
            }
            _ => {
                by_limit.pop();
                filling.stop(flow, limits[flow], &used_by[flow]);
            }
        }
    }
    filling.shares
}

/// How far the filling has come.
struct Filling {
    /// flows whose rate still rises
    rising: Vec<bool>,
    /// what stopped flows take of each resource
    taken: Vec<f64>,
    /// weight of the rising flows at each resource; 0 when none is left
    weight: Vec<f64>,
    shares: Vec<Share>,
}

impl Filling {
    /// The rate of the rising flows at which the resource is full; infinite when no flow rises there.
    fn level(&self, resource: usize) -> f64 {
        if self.weight[resource] > 0.0 { ((1.0 - self.taken[resource]) / self.weight[resource]).max(0.0) } else { f64::INFINITY }
    }

    /// [`Self::level`] from sums made anew: differences of weights that are far apart would keep no digit of the small one.
    fn recount(&mut self, resource: usize, users: &[(usize, f64)]) -> f64 {
        let (mut taken, mut weight) = (0.0, 0.0);
        for &(flow, w) in users {
            if self.rising[flow] {
                weight += w;
            } else {
                taken += w * self.shares[flow].rate;
            }
        }
        (self.taken[resource], self.weight[resource]) = (taken, weight);
        self.level(resource)
    }

    fn stop(&mut self, flow: usize, share: Share, uses: &[(usize, f64)]) {
        if !std::mem::replace(&mut self.rising[flow], false) {
            return;
        }
        self.shares[flow] = share;
        for &(resource, w) in uses {
            self.taken[resource] += w * share.rate;
            self.weight[resource] -= w;
        }
    }
}
