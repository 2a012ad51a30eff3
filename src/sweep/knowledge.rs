//! Which probes may run at the same time.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use crate::topology::Topology;

/// What is known of who disturbs whom.
pub trait Knowledge {
    /// A round without a probe yet.
    fn begin(&self) -> Box<dyn Load + '_>;

    /// Seconds that a message between two ranks should take alone, if something tells.
    fn expected(&self, _from: usize, _to: usize, _bytes: u64) -> Option<f64> {
        None
    }
}

/// The probes of a round so far.
pub trait Load {
    /// Take in a probe's transfers (sender, receiver), which run at the same time whatever is known. False, and nothing
    /// changed, if they would share with another probe of the round a resource that could bind.
    fn add(&mut self, flows: &[(usize, usize)]) -> bool;

    /// True if no further probe would be taken in; may say false when it does not know.
    fn full(&self) -> bool {
        false
    }
}

/// What hosts alone tell, and on the safe side: ranks of a host share its memory and cores, transfers between hosts their
/// network ports. Within a host one probe at a time, and nothing else there; between hosts one that leaves and one that
/// enters each host.
#[derive(Debug, Clone)]
pub struct Hosts {
    node_of: Vec<usize>,
    count: usize,
}

impl Hosts {
    /// From where ranks sit.
    pub fn new(topology: &Topology) -> Self {
        let node_of = topology.node_of();
        let count = node_of.iter().max().map_or(0, |&most| most + 1);
        Self { node_of, count }
    }
}

impl Knowledge for Hosts {
    fn begin(&self) -> Box<dyn Load + '_> {
        Box::new(HostLoad { hosts: self, sends: vec![false; self.count], receives: vec![false; self.count], free: [self.count; 2] })
    }
}

struct HostLoad<'a> {
    hosts: &'a Hosts,
    sends: Vec<bool>,
    receives: Vec<bool>,
    /// hosts that do not send, that do not receive
    free: [usize; 2],
}

impl Load for HostLoad<'_> {
    fn add(&mut self, flows: &[(usize, usize)]) -> bool {
        // Called for every pair that waits, round after round: nothing is allocated.
        let hosts = &self.hosts.node_of;
        for &(from, to) in flows {
            let (Some(&from), Some(&to)) = (hosts.get(from), hosts.get(to)) else { return false };
            // Within a host both: memory is read and written, whoever else comes by.
            if self.sends[from] || self.receives[to] {
                return false;
            }
        }
        for &(from, to) in flows {
            for (busy, host, free) in [(&mut self.sends, hosts[from], 0), (&mut self.receives, hosts[to], 1)] {
                self.free[free] -= usize::from(!std::mem::replace(&mut busy[host], true));
            }
        }
        true
    }

    fn full(&self) -> bool {
        self.free.contains(&0)
    }
}

/// Something between hosts that was found to be shared: only one probe at a time may go from the one to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// sending hosts
    pub from: BTreeSet<usize>,
    /// receiving hosts
    pub to: BTreeSet<usize>,
}

impl Shared {
    fn overlaps(&self, other: &Self) -> bool {
        !self.from.is_disjoint(&other.from) && !self.to.is_disjoint(&other.to)
    }
}

/// What was known beforehand, and what was learned since.
#[allow(missing_debug_implementations, reason = "holds a trait object")]
pub struct Rules {
    base: Rc<dyn Knowledge>,
    node_of: Vec<usize>,
    /// no two probes at the same time, ever
    isolated: bool,
    shared: Vec<Shared>,
    /// (sender, receiver) that run alone
    alone: HashSet<(usize, usize)>,
}

impl Rules {
    /// Nothing learned yet; `isolated` for one probe at a time in any case.
    pub fn new(base: Rc<dyn Knowledge>, topology: &Topology, isolated: bool) -> Self {
        Self { base, node_of: topology.node_of(), isolated, shared: Vec::new(), alone: HashSet::new() }
    }

    /// True if no probe ever has company.
    pub const fn isolated(&self) -> bool {
        self.isolated
    }

    /// What was found to be shared.
    pub fn shared(&self) -> &[Shared] {
        &self.shared
    }

    /// These transfers share something that all transfers between their hosts are taken to share. What is known already and
    /// overlaps becomes one with it. The whole as it is known now.
    pub fn learn(&mut self, flows: &[(usize, usize)]) -> Shared {
        let host = |&rank: &usize| self.node_of.get(rank).copied();
        let mut new = Shared {
            from: flows.iter().filter_map(|(from, _)| host(from)).collect(),
            to: flows.iter().filter_map(|(_, to)| host(to)).collect(),
        };
        // What was merged may overlap what did not before.
        while let Some(at) = self.shared.iter().position(|old| old.overlaps(&new)) {
            let old = self.shared.swap_remove(at);
            new.from.extend(old.from);
            new.to.extend(old.to);
        }
        self.shared.push(new.clone());
        new
    }

    /// These transfers run alone from now on.
    pub fn set_alone(&mut self, flows: &[(usize, usize)]) {
        self.alone.extend(flows);
    }

    fn uses(&self, flows: &[(usize, usize)]) -> Vec<usize> {
        let host = |rank: usize| self.node_of.get(rank).copied().unwrap_or(usize::MAX);
        let used = |shared: &Shared| flows.iter().any(|&(from, to)| shared.from.contains(&host(from)) && shared.to.contains(&host(to)));
        (0..self.shared.len()).filter(|&at| used(&self.shared[at])).collect()
    }

    fn is_alone(&self, flows: &[(usize, usize)]) -> bool {
        !self.alone.is_empty() && flows.iter().any(|flow| self.alone.contains(flow))
    }

    /// Of probes that ran at the same time, those that what was learned since forbids to run with one of the others.
    pub fn disturbed(&self, round: &[Vec<(usize, usize)>]) -> Vec<usize> {
        let mut counts = vec![0_u32; self.shared.len()];
        let uses: Vec<Vec<usize>> = round.iter().map(|flows| self.uses(flows)).collect();
        for &at in uses.iter().flatten() {
            counts[at] += 1;
        }
        let bad = |&at: &usize| self.is_alone(&round[at]) || uses[at].iter().any(|&shared| counts[shared] > 1);
        (0..round.len()).filter(|at| round.len() > 1 && bad(at)).collect()
    }
}

impl Knowledge for Rules {
    fn expected(&self, from: usize, to: usize, bytes: u64) -> Option<f64> {
        self.base.expected(from, to, bytes)
    }

    fn begin(&self) -> Box<dyn Load + '_> {
        Box::new(RuleLoad { rules: self, base: self.base.begin(), used: vec![false; self.shared.len()], count: 0, alone: false })
    }
}

struct RuleLoad<'a> {
    rules: &'a Rules,
    base: Box<dyn Load + 'a>,
    used: Vec<bool>,
    count: usize,
    alone: bool,
}

impl Load for RuleLoad<'_> {
    fn add(&mut self, flows: &[(usize, usize)]) -> bool {
        let alone = self.rules.isolated || self.rules.is_alone(flows);
        if self.alone || (alone && self.count > 0) {
            return false;
        }
        let uses = self.rules.uses(flows);
        if uses.iter().any(|&at| self.used[at]) || !self.base.add(flows) {
            return false;
        }
        for at in uses {
            self.used[at] = true;
        }
        self.alone = alone;
        self.count += 1;
        true
    }

    fn full(&self) -> bool {
        self.alone || self.base.full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made::on;

    /// The probes that a round takes in, in order.
    fn taken(knowledge: &dyn Knowledge, probes: &[&[(usize, usize)]]) -> Vec<bool> {
        let mut load = knowledge.begin();
        probes.iter().map(|flows| load.add(flows)).collect()
    }

    #[test]
    fn a_host_moves_one_thing_within_or_one_in_and_one_out() {
        let hosts = Hosts::new(&on(&[4, 4, 4]));
        assert_eq!(taken(&hosts, &[&[(0, 1)], &[(2, 3)], &[(4, 5)], &[(8, 8)]]), [true, false, true, true]);
        assert_eq!(
            taken(&hosts, &[&[(0, 4)], &[(1, 8)], &[(5, 1)], &[(9, 6)], &[(6, 10)], &[(2, 3)]]),
            [true, false, true, false, false, false]
        );
        // Both ways between two hosts leave nothing of either.
        assert_eq!(taken(&hosts, &[&[(0, 4), (4, 0)], &[(5, 8)], &[(9, 10)]]), [true, false, true]);
        assert_eq!(taken(&hosts, &[&[(0, 99)]]), [false]);
        let mut load = hosts.begin();
        for (flow, full) in [((0, 4), false), ((4, 8), false), ((8, 1), true)] {
            assert!(load.add(&[flow]));
            assert_eq!(load.full(), full);
        }
    }

    #[test]
    fn what_was_learned_holds_for_all_pairs_of_its_hosts_one_way() {
        let topology = on(&[1; 8]);
        let mut rules = Rules::new(Rc::new(Hosts::new(&topology)), &topology, false);
        assert_eq!(taken(&rules, &[&[(0, 4)], &[(1, 5)], &[(6, 2)]]), [true, true, true]);
        rules.learn(&[(0, 4), (1, 5)]);
        assert_eq!(taken(&rules, &[&[(0, 5)], &[(1, 4)], &[(2, 6)], &[(7, 3)]]), [true, false, true, true]);
        rules.learn(&[(2, 6), (3, 7)]);
        assert_eq!(rules.shared().len(), 2);
        let whole = rules.learn(&[(1, 4), (3, 7)]);
        assert_eq!((whole.from, whole.to, rules.shared().len()), ((0..4).collect(), (4..8).collect(), 1));
        assert_eq!(taken(&rules, &[&[(0, 7)], &[(2, 5)], &[(4, 1)], &[(5, 3)]]), [true, false, true, true]);
        let round = [vec![(0, 7)], vec![(1, 2)], vec![(3, 4)], vec![(5, 6)]];
        assert_eq!(rules.disturbed(&round), [0, 2]);
    }

    #[test]
    fn alone_means_alone() {
        let topology = on(&[1; 6]);
        let mut rules = Rules::new(Rc::new(Hosts::new(&topology)), &topology, false);
        rules.set_alone(&[(0, 1)]);
        assert_eq!(taken(&rules, &[&[(0, 1)], &[(2, 3)]]), [true, false]);
        assert_eq!(taken(&rules, &[&[(2, 3)], &[(0, 1)], &[(1, 0)]]), [true, false, true]);
        assert_eq!(rules.disturbed(&[vec![(0, 1)], vec![(2, 3)]]), [0]);
        assert_eq!(rules.disturbed(&[vec![(0, 1)]]), [0; 0]);
        let isolated = Rules::new(Rc::new(Hosts::new(&topology)), &topology, true);
        assert_eq!(taken(&isolated, &[&[(0, 1)], &[(2, 3)]]), [true, false]);
    }
}
