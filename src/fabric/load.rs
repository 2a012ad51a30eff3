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
        let fabric = self.fabric;
        let truth = fabric.truth(from, to);
        // The fastest regime: at which size the flows will run is not known here.
        let rate = truth.breakpoints.iter().map(|breakpoint| breakpoint.rate).fold(truth.rate, f64::max);
        let touched = fabric.touched(from, to);
        let pair = fabric.numbering.id(Meaning::Pair { from, to });
        if self.count.contains_key(&pair) {
            return Some(pair);
        }
        let rule = fabric.rule_of(from, to);
        let coupled = from != to && fabric.rules[rule].duplex < 1.0;
        if coupled {
            for (rank, other) in [(from, 1), (to, 0)] {
                if self.busy.get(&(rank, rule)).is_some_and(|busy| busy[other]) {
                    return Some(fabric.numbering.id(Meaning::Duplex { rank, rule }));
                }
            }
        }
        for (id, cost) in &touched {
            let load = match cost {
                Cost::Rate(capacity) => self.taken.get(id).copied().unwrap_or(0.0) + rate / capacity,
                Cost::TimeShared(concurrency) => {
                    let width = self.count.get(id).copied().unwrap_or(0) + 1;
                    width as f64 / concurrency.at(width)
                }
            };
            if load > 1.0 + 1e3 * EPSILON {
                return Some(*id);
            }
        }
        for (id, cost) in &touched {
            match cost {
                Cost::Rate(capacity) => *self.taken.entry(*id).or_default() += rate / capacity,
                Cost::TimeShared(_) => *self.count.entry(*id).or_default() += 1,
            }
        }
        self.count.insert(pair, 1);
        if coupled {
            self.busy.entry((from, rule)).or_default()[0] = true;
            self.busy.entry((to, rule)).or_default()[1] = true;
        }
        None
    }
}
