//! How much each resource had to do.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::types::{Epoch, ResourceLoad};
use crate::fabric::{Resource, ResourceId, ResourceKind, Use};
use crate::plan::price::Prices;

/// Resources that are told of; of more (a million pairs) the busiest.
const TOLD: usize = 4096;

#[derive(Debug)]
struct Load {
    id: ResourceId,
    bytes: f64,
    busy: f64,
    /// stage and seconds, in the order of first use
    stages: Vec<(usize, f64)>,
    flows: Vec<usize>,
}

/// Loads of all resources, numbered in the order of first use.
#[derive(Debug, Default)]
pub(super) struct Loads {
    numbers: HashMap<ResourceId, usize>,
    all: Vec<Load>,
    /// share in use within a step, and the numbers that are not 0
    sum: Vec<f64>,
    touched: Vec<usize>,
}

impl Loads {
    pub fn number(&mut self, id: ResourceId) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.all.push(Load { id, bytes: 0.0, busy: 0.0, stages: Vec::new(), flows: Vec::new() });
            self.sum.push(0.0);
        }
        number
    }

    /// A flow uses a resource from now on.
    pub fn joined(&mut self, number: usize, flow: usize) {
        self.all[number].flows.push(flow);
    }

    /// Bytes of a flow of a stage that passed one of its resources.
    pub fn passed(&mut self, number: usize, used: &Use, stage: usize, bytes: f64) {
        let busy = bytes * used.weight;
        let load = &mut self.all[number];
        load.bytes += bytes;
        load.busy += busy;
        match load.stages.iter_mut().rev().find(|known| known.0 == stage) {
            Some(known) => known.1 += busy,
            None => load.stages.push((stage, busy)),
        }
        if busy == 0.0 {
            return;
        }
        if self.sum[number] == 0.0 {
            self.touched.push(number);
        }
        self.sum[number] += busy;
    }

    /// Shares in use since the last call, a step of so many seconds.
    pub fn used(&mut self, seconds: f64) -> Vec<(usize, f64)> {
        let sum = &mut self.sum;
        self.touched.drain(..).map(|number| (number, std::mem::take(&mut sum[number]) / seconds)).collect()
    }

    /// Those that count, the busiest first, and the epochs with their numbers.
    pub fn told(self, prices: &dyn Prices, mut epochs: Vec<Epoch>, stages: usize) -> (Vec<ResourceLoad>, Vec<Epoch>) {
        let most = self.all.iter().map(|load| load.busy).fold(0.0, f64::max);
        // Sums of the same parts in another order are equal.
        let level = |load: &Load| (load.busy / most * 1e9).round() as u64;
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        // Of equally busy ones the one with most flows says most; the lower numbers are those of shared ones.
        order.sort_by_cached_key(|&number| {
            let load = &self.all[number];
            (Reverse(level(load)), Reverse(load.flows.len()), load.id)
        });
        order.truncate(TOLD);
        let mut place = vec![None; self.all.len()];
        for (at, &number) in order.iter().enumerate() {
            place[number] = Some(at);
        }
        for epoch in &mut epochs {
            epoch.used = epoch.used.iter().filter_map(|&(number, share)| Some((place[number]?, share))).collect();
            epoch.used.sort_unstable_by_key(|used| used.0);
        }
        let mut loads: Vec<Option<Load>> = self.all.into_iter().map(Some).collect();
        let told = order.into_iter().filter_map(|number| loads[number].take()).map(|load| {
            let unnamed = || Resource { name: format!("resource {}", load.id.0), kind: ResourceKind::Fixed, capacity: f64::NAN };
            let resource = prices.resource(load.id).unwrap_or_else(unnamed);
            let mut by_stage = vec![0.0; stages];
            for (stage, busy) in load.stages {
                by_stage[stage] += busy;
            }
            let mut flows = load.flows;
            flows.sort_unstable();
            flows.dedup();
            ResourceLoad { id: load.id, resource, bytes: load.bytes, busy: load.busy, by_stage, flows }
        });
        (told.collect(), epochs)
    }
}
