//! The way of a transfer: its latency, its rate, and every resource it uses on the way.

use std::collections::HashMap;

use super::Fabric;
use super::class::Class;
use super::fault::FaultKind;
use super::resource::{Capacity, Concurrency, Direction, Meaning};
use super::rule::{Breakpoint, Truth};
use super::share::{Flow, ResourceId, Use};

/// Bytes that one rank sends to another; equal ranks for a copy in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Demand {
    pub from: usize,
    pub to: usize,
    /// of one message: breakpoints follow it
    pub bytes: u64,
}

/// The way of one transfer among those that run with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// latency of a message, seconds
    pub alpha: f64,
    /// its own link as the cap, and what it shares with others
    pub flow: Flow,
}

/// What a resource lets pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cost<'a> {
    /// bytes per second for all flows together
    Rate(f64),
    TimeShared(&'a Concurrency),
}

impl Fabric {
    /// The rule that a pair follows: its finest class that has one.
    pub(super) fn rule_of(&self, from: usize, to: usize) -> usize {
        let class = self.layout.class(from, to);
        // Parsing made sure that every class that occurs has a rule.
        class.chain().find_map(|class| self.rules.iter().position(|rule| rule.class == class)).unwrap_or(0)
    }

    /// The finest class of a pair.
    pub fn class(&self, from: usize, to: usize) -> Class {
        self.layout.class(from, to)
    }

    /// α and rates of the pair's own link, whatever it shares: the pair's figures if given, else its class's; slow faults are in.
    pub(super) fn link(&self, from: usize, to: usize) -> Truth {
        let rule = &self.rules[self.rule_of(from, to)];
        let own = self.pairs.get(&(from, to));
        let told =
            own.map(|own| own.rate).or_else(|| self.matrix.as_ref().map(|matrix| matrix[from * self.world() + to]).filter(|_| from != to));
        let slow: f64 = self
            .faults
            .iter()
            .filter(|fault| fault.strikes(from, to))
            .map(|fault| if let FaultKind::Slow { factor } = fault.kind { factor } else { 1.0 })
            .product::<f64>()
            * self.narrowed(from, to);
        let rate = told.unwrap_or_else(|| rule.rate(from, to, self.seed)) * slow;
        // A pair faster than its class is as much faster below a breakpoint.
        let part = rate / rule.truth.rate;
        let breakpoints = rule.truth.breakpoints.iter().map(|b| Breakpoint { rate: b.rate * part, ..*b }).collect();
        Truth { alpha: own.and_then(|own| own.alpha).unwrap_or(rule.truth.alpha), rate, breakpoints }
    }

    /// What a message from one rank to another takes when nothing else runs; what a fit of isolated samples should find.
    pub fn truth(&self, from: usize, to: usize) -> Truth {
        let mut truth = self.link(from, to);
        let narrowest = self
            .touched(from, to)
            .into_iter()
            .filter_map(|(_, cost)| if let Cost::Rate(rate) = cost { Some(rate) } else { None })
            .fold(f64::INFINITY, f64::min);
        truth.rate = truth.rate.min(narrowest);
        for breakpoint in &mut truth.breakpoints {
            breakpoint.rate = breakpoint.rate.min(narrowest);
        }
        truth
    }

    /// Every shared resource on the way, without the pair's own link.
    pub(super) fn touched(&self, from: usize, to: usize) -> Vec<(ResourceId, Cost<'_>)> {
        let class = self.layout.class(from, to);
        let mut touched = Vec::new();
        for (entry, shared) in self.shared.iter().enumerate() {
            if shared.path.is_some_and(|path| !class.chain().any(|of| of == path)) {
                continue;
            }
            let (out, into) = (self.layout.unit_of(shared.per, from), self.layout.unit_of(shared.per, to));
            let cost = match &shared.capacity {
                Capacity::Rate(rate) => Cost::Rate(*rate),
                Capacity::TimeShared(concurrency) => Cost::TimeShared(concurrency),
            };
            let mut touch = |unit, entering| touched.push((self.numbering.id(Meaning::Shared { entry, unit, entering }), cost));
            match shared.direction {
                Direction::Within if out == into => touch(out, false),
                Direction::Within => {}
                _ if out == into => {}
                Direction::Out => touch(out, false),
                Direction::In => touch(into, false),
                Direction::Each => {
                    touch(out, false);
                    touch(into, true);
                }
                Direction::Both => {
                    touch(out, false);
                    touch(into, false);
                }
            }
        }
        let (near, far) = (self.layout.host_of(from), self.layout.host_of(to));
        for (number, trunk) in self.trunks.iter().enumerate() {
            for (back, crosses) in [(false, trunk.near[near] && trunk.far[far]), (true, trunk.far[near] && trunk.near[far])] {
                if crosses {
                    let id = self.numbering.id(Meaning::Trunk { trunk: number, back });
                    touched.push((id, Cost::Rate(trunk.rates[usize::from(back)])));
                }
            }
        }
        touched
    }

    /// The way of a message when nothing else runs.
    pub fn route(&self, from: usize, to: usize, bytes: u64) -> Route {
        let alone = Demand { from, to, bytes };
        self.routes(&[alone]).pop().unwrap_or(Route { alpha: 0.0, flow: Flow { cap: 0.0, uses: Vec::new() } })
    }

    /// The ways of messages that run at once, in the order given.
    ///
    /// Together, because two things depend on who else runs: the concurrency of a time-shared endpoint on the number of flows there, and
    /// a flow's rate on whether one of its ends sends and receives on the same class of path (its duplex ratio then). A flow over a dead
    /// link has cap 0 and loads nothing.
    pub fn routes(&self, demands: &[Demand]) -> Vec<Route> {
        let mut busy: HashMap<(usize, usize), [bool; 2]> = HashMap::new();
        if self.rules.iter().any(|rule| rule.duplex < 1.0) {
            for demand in demands.iter().filter(|demand| demand.from != demand.to) {
                let rule = self.rule_of(demand.from, demand.to);
                busy.entry((demand.from, rule)).or_default()[0] = true;
                busy.entry((demand.to, rule)).or_default()[1] = true;
            }
        }
        let touched: Vec<Vec<(ResourceId, Cost<'_>)>> = demands.iter().map(|demand| self.touched(demand.from, demand.to)).collect();
        let mut width: HashMap<ResourceId, usize> = HashMap::new();
        for (id, _) in touched.iter().flatten().filter(|(_, cost)| matches!(cost, Cost::TimeShared(_))) {
            *width.entry(*id).or_default() += 1;
        }
        let both_ways = |rank, rule| busy.get(&(rank, rule)) == Some(&[true, true]);
        demands
            .iter()
            .zip(touched)
            .map(|(&Demand { from, to, bytes }, touched)| {
                let rule = self.rule_of(from, to);
                let (alpha, mut rate) = self.link(from, to).at(bytes);
                if self.link_fault(from, to).dead {
                    return Route { alpha, flow: Flow { cap: 0.0, uses: Vec::new() } };
                }
                if from != to && (both_ways(from, rule) || both_ways(to, rule)) {
                    rate *= self.rules[rule].duplex;
                }
                let mut uses = vec![Use { resource: self.numbering.id(Meaning::Pair { from, to }), weight: 1.0 / rate }];
                uses.extend(touched.into_iter().map(|(resource, cost)| {
                    let weight = match cost {
                        Cost::Rate(capacity) => 1.0 / capacity,
                        Cost::TimeShared(c) => 1.0 / (c.at(width.get(&resource).copied().unwrap_or(1)) * rate),
                    };
                    Use { resource, weight }
                }));
                Route { alpha, flow: Flow { cap: rate, uses } }
            })
            .collect()
    }
}
