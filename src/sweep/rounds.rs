//! A pass over many targets -> rounds of probes that may run at the same time.

use std::collections::{HashMap, HashSet};

use super::knowledge::Knowledge;
use super::work::Work;
use crate::sample::Pattern;
use crate::topology::PathClass;

/// A target and a size that wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// number of the target ([`Work`])
    pub target: u32,
    /// which of the sweep's sizes
    pub size: u8,
}

/// Items that may share rounds: of one pattern, one class of paths and one size, so that they take about as long and can
/// be compared.
#[derive(Debug)]
struct Queue {
    /// next ones last
    rest: Vec<Item>,
    /// looked through for each round; next ones first
    window: Vec<Item>,
    /// groups: one a round
    alone: bool,
    /// copies between hosts' memory and their GPUs: one a host, since what lies between is shared and nothing tells who shares it
    crosses: bool,
}

/// One pass: every item once, in rounds.
///
/// A round is filled in the order of the items, as far as nobody would take part twice and what is known allows. Only a
/// window of the next items is looked through, so that a round costs about the number of ranks, whatever waits.
#[derive(Debug)]
pub struct Pass {
    queues: Vec<Queue>,
    /// items a round looks at
    window: usize,
    /// queue of the last round
    last: usize,
    /// queues take turns at random, or the first goes first
    mixed: bool,
    rng: fastrand::Rng,
    /// number of the last round in which a rank took part
    busy: Vec<u64>,
    round: u64,
}

impl Pass {
    /// Rounds of `items`, which should be in [`Work::order`] for full rounds. `mixed`: classes and patterns take turns at
    /// random; otherwise those of the first item come first.
    pub fn new(work: &Work, items: impl IntoIterator<Item = Item>, world: usize, mixed: bool, seed: u64) -> Self {
        let mut queues: Vec<Queue> = Vec::new();
        let mut known: HashMap<(Option<Pattern>, Option<PathClass>, u8), usize> = HashMap::new();
        for item in items {
            let target = item.target as usize;
            let class = work.pair(target).map(|(from, to)| work.path(from, to));
            let at = *known.entry((work.pattern(target), class, item.size)).or_insert_with(|| {
                let crosses = work.pattern(target).is_some_and(Pattern::crosses);
                queues.push(Queue { rest: Vec::new(), window: Vec::new(), alone: class.is_none(), crosses });
                queues.len() - 1
            });
            queues[at].rest.push(item);
        }
        for queue in &mut queues {
            queue.rest.reverse();
        }
        let window = (2 * world).max(64);
        Self { queues, window, last: 0, mixed, rng: fastrand::Rng::with_seed(seed), busy: vec![0; world], round: 0 }
    }

    /// Items that have not had their turn.
    pub fn left(&self) -> usize {
        self.queues.iter().map(|queue| queue.rest.len() + queue.window.len()).sum()
    }

    /// The items of the next round; `None` when all had their turn.
    pub fn next(&mut self, work: &Work, knowledge: &dyn Knowledge) -> Option<Vec<Item>> {
        let left = self.left();
        if left == 0 {
            return None;
        }
        let mut pick = if self.mixed { self.rng.usize(..left) } else { 0 };
        let held = |queue: &Queue| queue.rest.len() + queue.window.len();
        self.last = self.queues.iter().position(|queue| {
            let own = held(queue);
            let here = pick < own;
            pick = pick.saturating_sub(own);
            here
        })?;
        let queue = &mut self.queues[self.last];
        let more = queue.rest.len().saturating_sub(self.window.saturating_sub(queue.window.len()));
        queue.window.extend(queue.rest.drain(more..).rev());
        if queue.alone {
            return Some(vec![queue.window.remove(0)]);
        }
        self.round += 1;
        let mut load = knowledge.begin();
        let mut round = Vec::new();
        let mut full = false;
        let (crosses, mut hosts) = (queue.crosses, HashSet::new());
        queue.window.retain(|&item| {
            if full {
                return true;
            }
            let Some((from, to)) = work.pair(item.target as usize) else { return false };
            if [from, to].iter().any(|&rank| self.busy.get(rank).is_none_or(|&last| last == self.round)) {
                return true;
            }
            let both = [(from, to), (to, from)];
            let flows = if work.pattern(item.target as usize) == Some(Pattern::Duplex) { &both[..] } else { &both[..1] };
            if (crosses && hosts.contains(&work.host(from))) || !load.add(flows) {
                return true;
            }
            if crosses {
                hosts.insert(work.host(from));
            }
            self.busy[from] = self.round;
            self.busy[to] = self.round;
            round.push(item);
            full = load.full();
            false
        });
        if round.is_empty() {
            // Knowledge that allows a probe not even alone knows nothing of it.
            round.push(queue.window.remove(0));
        }
        Some(round)
    }

    /// An item of the last round has more to do: it goes on next.
    pub fn again(&mut self, item: Item) {
        self.queues[self.last].window.insert(0, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::knowledge::{Hosts, Load, Rules};
    use crate::sweep::made::on;
    use crate::sweep::{Shared, SweepSettings};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    fn pass(work: &Work, world: usize, seed: u64) -> Pass {
        let order = work.order(&mut fastrand::Rng::with_seed(seed));
        Pass::new(work, order.into_iter().map(|target| Item { target, size: 0 }), world, true, seed)
    }

    fn rounds(work: &Work, world: usize, knowledge: &dyn Knowledge) -> Vec<Vec<Item>> {
        let mut pass = pass(work, world, 4);
        std::iter::from_fn(|| pass.next(work, knowledge)).collect()
    }

    /// Any two probes may share a round unless a rank is in both.
    struct Anything;
    struct Nothing;
    impl Knowledge for Anything {
        fn begin(&self) -> Box<dyn Load + '_> {
            Box::new(Nothing)
        }
    }
    impl Load for Nothing {
        fn add(&mut self, _: &[(usize, usize)]) -> bool {
            true
        }
    }

    #[test]
    fn rounds_are_as_few_as_ranks_allow_when_nothing_is_shared() {
        for sizes in [vec![8, 8], vec![1; 16], vec![4; 8]] {
            let topology = on(&sizes);
            let n = topology.world();
            let work = Work::new(&SweepSettings { patterns: vec![Pattern::Peer], ..SweepSettings::default() }, &topology);
            let rounds = rounds(&work, n, &Anything);
            assert_eq!(rounds.len(), 2 * (n - 1), "{sizes:?}");
        }
    }

    #[test]
    fn hosts_alone_allow_a_round_as_many_probes_as_there_are_hosts() {
        let topology = on(&[8; 16]);
        let work = Work::new(&SweepSettings { patterns: vec![Pattern::Peer], ..SweepSettings::default() }, &topology);
        let rounds = rounds(&work, 128, &Hosts::new(&topology));
        // 896 pairs within hosts, 15,360 between them; 16 at a time would be 1,016 rounds.
        assert!(rounds.len() < 1016 * 11 / 10, "{}", rounds.len());
    }

    #[test]
    fn a_thousand_ranks_are_planned_in_seconds() {
        let topology = on(&[8; 128]);
        let work = Work::new(&SweepSettings::default(), &topology);
        let begin = std::time::Instant::now();
        let mut pass = pass(&work, 1024, 1);
        let hosts = Hosts::new(&topology);
        let (mut rounds, mut items) = (0, 0);
        while let Some(round) = pass.next(&work, &hosts) {
            rounds += 1;
            items += round.len();
        }
        assert_eq!(items, 1024 * 1024);
        assert!(rounds < 8192 * 12 / 10, "{rounds} rounds; 128 probes at a time would be 8192");
        // Unoptimised, on a machine that does other things too.
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    }

    #[test]
    fn a_host_copies_to_or_from_one_gpu_at_a_time_whatever_else_is_known() {
        let topology = on(&[4, 4, 1]);
        let patterns = vec![Pattern::Local, Pattern::HostToDevice, Pattern::DeviceToHost];
        let work = Work::new(&SweepSettings { patterns, ..SweepSettings::default() }, &topology);
        let rounds = rounds(&work, 9, &Anything);
        let (all, known) = (&rounds, &work);
        let of = |pattern| all.iter().filter(move |round| known.pattern(round[0].target as usize) == Some(pattern));
        assert_eq!(of(Pattern::Local).map(Vec::len).collect::<Vec<_>>(), [9], "copies within GPUs share nothing");
        for pattern in [Pattern::HostToDevice, Pattern::DeviceToHost] {
            assert_eq!(of(pattern).map(Vec::len).sum::<usize>(), 9);
            for round in of(pattern) {
                let hosts: BTreeSet<usize> = round.iter().filter_map(|item| Some(work.host(work.pair(item.target as usize)?.0))).collect();
                assert_eq!(hosts.len(), round.len(), "{round:?}");
            }
        }
    }

    fn worlds() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(1_usize..5, 1..6).prop_filter("two ranks", |sizes| sizes.iter().sum::<usize>() > 1)
    }

    proptest! {
        #[test]
        fn every_target_has_its_turn_and_nobody_is_in_two_places(
            sizes in worlds(),
            seed: u64,
            learned in prop::collection::vec((0_usize..20, 0_usize..20, 0_usize..20, 0_usize..20), 0..4),
            again in 0_usize..5,
        ) {
            let topology = on(&sizes);
            let n = topology.world();
            let patterns = vec![
                Pattern::Local,
                Pattern::HostToDevice,
                Pattern::Peer,
                Pattern::Duplex,
                Pattern::FanIn,
                Pattern::Relay,
            ];
            let work = Work::new(&SweepSettings { patterns, ..SweepSettings::default() }, &topology);
            let mut rules = Rules::new(Rc::new(Hosts::new(&topology)), &topology, false);
            for (a, b, c, d) in learned {
                rules.learn(&[(a % n, b % n), (c % n, d % n)]);
            }
            rules.set_alone(&[(0, 1)]);
            let node_of = topology.node_of();
            let mut pass = pass(&work, n, seed);
            let mut turns = vec![0; work.len()];
            let mut repeated = again;
            while let Some(round) = pass.next(&work, &rules) {
                let flows: Vec<Vec<(usize, usize)>> = round.iter().map(|item| work.flows(item.target as usize)).collect();
                if round.len() > 1 {
                    let ranks: Vec<BTreeSet<usize>> =
                        flows.iter().map(|flows| flows.iter().flat_map(|&(a, b)| [a, b]).collect()).collect();
                    let distinct: BTreeSet<usize> = ranks.iter().flatten().copied().collect();
                    prop_assert_eq!(distinct.len(), ranks.iter().map(BTreeSet::len).sum::<usize>());
                    prop_assert!(flows.iter().all(|flows| !flows.contains(&(0, 1))));
                    prop_assert!(round.iter().all(|item| work.pair(item.target as usize).is_some()), "groups run alone");
                    for Shared { from, to } in rules.shared() {
                        let users = flows.iter().filter(|flows| {
                            flows.iter().any(|&(a, b)| from.contains(&node_of[a]) && to.contains(&node_of[b]))
                        });
                        prop_assert!(users.count() <= 1);
                    }
                    let hosts = Hosts::new(&topology);
                    let mut load = hosts.begin();
                    prop_assert!(flows.iter().all(|flows| load.add(flows)));
                }
                for &item in &round {
                    turns[item.target as usize] += 1;
                }
                if repeated > 0 {
                    repeated -= 1;
                    turns[round[0].target as usize] -= 1;
                    pass.again(round[0]);
                }
            }
            prop_assert!(turns.iter().all(|&turns| turns == 1));
        }
    }
}
