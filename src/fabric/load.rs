//! May these run at once without one slowing another? The question of a planner of rounds.

use std::collections::HashMap;

use super::Fabric;
use super::resource::Meaning;
use super::route::Cost;
use super::share::{EPSILON, ResourceId};

/// What a growing set of flows asks of every resource, each flow at the rate it has alone.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    fabric: &'a Fabric,
    /// part of a fixed capacity that is taken
    taken: HashMap<ResourceId, f64>,
    /// flows at a time-shared endpoint or on a pair's link
    count: HashMap<ResourceId, usize>,
    /// which ranks send and receive on which rule, where the two hinder each other
    busy: HashMap<(usize, usize), [bool; 2]>,
}

impl Fabric {
    /// An empty set of flows.
    pub fn load(&self) -> Load<'_> {
        Load { fabric: self, taken: HashMap::new(), count: HashMap::new(), busy: HashMap::new() }
    }

    /// The first resource that the flows, all at once, could saturate; `None` means that they may share a round.
    pub fn can_bind(&self, flows: &[(usize, usize)]) -> Option<ResourceId> {
        let mut load = self.load();
        flows.iter().find_map(|&(from, to)| load.add(from, to))
    }
}

impl Load<'_> {
    /// Add a flow. When it could saturate a resource together with those before, that resource is returned and the flow is not added.
    pub fn add(&mut self, from: usize, to: usize) -> Option<ResourceId> {
        if let Some(bound) = self.bound(from, to) {
            return Some(bound);
        }
        self.take(from, to);
        None
    }

    /// Add flows that run at the same time whatever they do to each other, as the two directions of a pair. When one of them could
    /// saturate a resource together with those before, that resource is returned and none is added.
    pub fn add_together(&mut self, flows: &[(usize, usize)]) -> Option<ResourceId> {
        if let &[(from, to)] = flows {
            return self.add(from, to);
        }
        if let Some(bound) = flows.iter().find_map(|&(from, to)| self.bound(from, to)) {
            return Some(bound);
        }
        let mut own = self.fabric.load();
        for &(from, to) in flows {
            own.take(from, to);
        }
        // Each by itself may fit where all do not: what both those before and these use.
        let full = |&(id, more): &(&ResourceId, &f64)| self.taken.get(id).is_some_and(|taken| taken + more > 1.0 + 1e3 * EPSILON);
        if let Some((id, _)) = own.taken.iter().filter(full).min_by_key(|&(id, _)| *id) {
            return Some(*id);
        }
        for &(from, to) in flows {
            self.take(from, to);
        }
        None
    }

    /// The rate of a flow alone, at its fastest regime: at which size the flows will run is not known here.
    fn rate(&self, from: usize, to: usize) -> f64 {
        let truth = self.fabric.truth(from, to);
        truth.breakpoints.iter().map(|breakpoint| breakpoint.rate).fold(truth.rate, f64::max)
    }

    /// The resource that a flow could saturate together with those before.
    fn bound(&self, from: usize, to: usize) -> Option<ResourceId> {
        let fabric = self.fabric;
        let pair = fabric.numbering.id(Meaning::Pair { from, to });
        if self.count.contains_key(&pair) {
            return Some(pair);
        }
        let rule = fabric.rule_of(from, to);
        if from != to && fabric.rules[rule].duplex < 1.0 {
            for (rank, other) in [(from, 1), (to, 0)] {
                if self.busy.get(&(rank, rule)).is_some_and(|busy| busy[other]) {
                    return Some(fabric.numbering.id(Meaning::Duplex { rank, rule }));
                }
            }
        }
        let rate = self.rate(from, to);
        let full = |(id, cost): &(ResourceId, Cost<'_>)| {
            let load = match cost {
                Cost::Rate(capacity) => self.taken.get(id).copied().unwrap_or(0.0) + rate / capacity,
                Cost::TimeShared(concurrency) => {
                    let width = self.count.get(id).copied().unwrap_or(0) + 1;
                    width as f64 / concurrency.at(width)
                }
            };
            load > 1.0 + 1e3 * EPSILON
        };
        fabric.touched(from, to).into_iter().find(full).map(|(id, _)| id)
    }

    /// Add a flow whatever it saturates.
    fn take(&mut self, from: usize, to: usize) {
        let fabric = self.fabric;
        let rate = self.rate(from, to);
        for (id, cost) in fabric.touched(from, to) {
            match cost {
                Cost::Rate(capacity) => *self.taken.entry(id).or_default() += rate / capacity,
                Cost::TimeShared(_) => *self.count.entry(id).or_default() += 1,
            }
        }
        self.count.insert(fabric.numbering.id(Meaning::Pair { from, to }), 1);
        let rule = fabric.rule_of(from, to);
        if from != to && fabric.rules[rule].duplex < 1.0 {
            self.busy.entry((from, rule)).or_default()[0] = true;
            self.busy.entry((to, rule)).or_default()[1] = true;
        }
    }
}
