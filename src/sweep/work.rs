//! Settings and where ranks sit -> what is measured, by number.

use super::fans::fans;
use super::hosts::ByHost;
use super::sampled::sampled;
use super::{Cell, Group, SweepSettings, Target, Transfer};
use crate::sample::Pattern;
use crate::topology::{PathClass, Topology, path_of};

/// Transfers of one target: (sender, receiver) each.
pub type Flows = Vec<(usize, usize)>;

/// Everything that a sweep measures, numbered from 0. Pairs are computed, not kept: a thousand ranks have a million.
#[derive(Debug, Clone)]
pub struct Work {
    /// ranks that are measured, ascending
    ranks: Vec<usize>,
    /// of each rank of the job, its place in `ranks`
    place: Vec<Option<u32>>,
    /// host of each rank of the job
    node_of: Vec<usize>,
    by_host: ByHost,
    transfers: Vec<Transfer>,
    parts: Vec<Part>,
    /// pairs that somebody asked for besides, numbered after all others
    added: Vec<Cell>,
}

/// The targets of one pattern.
#[derive(Debug, Clone)]
struct Part {
    pattern: Pattern,
    /// number of the first one
    first: usize,
    length: usize,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// each rank with itself
    Each,
    /// each ordered pair
    Ordered,
    /// each unordered pair
    Unordered,
    /// these, as places, ascending
    Listed(Vec<(u32, u32)>),
    /// ascending
    Groups(Vec<Group>),
}

impl Work {
    /// What these settings measure in a job.
    pub fn new(settings: &SweepSettings, topology: &Topology) -> Self {
        let ranks = settings.ranks_of(topology.world());
        let node_of = topology.node_of();
        let mut place = vec![None; topology.world()];
        for (at, &rank) in (0_u32..).zip(&ranks) {
            if let Some(own) = place.get_mut(rank) {
                *own = Some(at);
            }
        }
        let nodes: Vec<usize> = ranks.iter().map(|&rank| node_of.get(rank).copied().unwrap_or(0)).collect();
        let by_host = ByHost::new(&nodes);
        let mut transfers = settings.transfers.clone();
        transfers.sort_by_key(|transfer| transfer.set);
        let mut work = Self { ranks, place, node_of, by_host, transfers, parts: Vec::new(), added: Vec::new() };
        for &pattern in &settings.patterns {
            let kind = work.kind(pattern, settings, topology);
            let n = work.ranks.len();
            let length = match &kind {
                Kind::Each => n,
                Kind::Ordered => n * n.saturating_sub(1),
                Kind::Unordered => n * n.saturating_sub(1) / 2,
                Kind::Listed(pairs) => pairs.len(),
                Kind::Groups(groups) => groups.len(),
            };
            work.parts.push(Part { pattern, first: work.own(), length, kind });
        }
        work
    }

    fn kind(&self, pattern: Pattern, settings: &SweepSettings, topology: &Topology) -> Kind {
        let n = self.ranks.len();
        let groups = |mut groups: Vec<Group>| {
            groups.sort_unstable();
            groups.dedup();
            Kind::Groups(groups)
        };
        match pattern {
            Pattern::Local | Pattern::HostToDevice | Pattern::DeviceToHost => Kind::Each,
            Pattern::Peer if settings.pairs > 0 => Kind::Listed(sampled(&self.by_host, settings.pairs, settings.seed)),
            Pattern::Peer => Kind::Ordered,
            Pattern::Duplex if settings.pairs > 0 => {
                // Each pair has two ends: half as many from each rank are as many of each rank.
                let half = sampled(&self.by_host, settings.pairs.div_ceil(2), settings.seed);
                let mut pairs: Vec<(u32, u32)> = half.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
                pairs.sort_unstable();
                pairs.dedup();
                Kind::Listed(pairs)
            }
            Pattern::Duplex => Kind::Unordered,
            Pattern::FanOut | Pattern::FanIn => groups(fans(pattern, settings, &self.ranks, topology)),
            Pattern::Relay => {
                let shifts = settings.shifts.iter().map(|&shift| shift % n.max(1)).filter(|&shift| shift > 0);
                groups(shifts.map(Group::relay).collect())
            }
            Pattern::Custom => groups(self.transfers.iter().map(|transfer| Group::custom(transfer.set)).collect()),
        }
    }

    /// Targets that the settings ask for.
    fn own(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first + part.length)
    }

    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.own() + self.added.len()
    }

    /// The number of a pair, also of one that the settings do not ask for.
    pub fn add(&mut self, cell: Cell) -> usize {
        self.number(cell.pattern, cell.from, cell.to).unwrap_or_else(|| {
            self.added.push(cell);
            self.len() - 1
        })
    }

    /// A pair that was added.
    fn added(&self, target: usize) -> Option<Cell> {
        target.checked_sub(self.own()).and_then(|at| self.added.get(at).copied())
    }

    /// True if there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ranks that are measured, ascending.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Number of a rank's host, as in [`Topology::hosts`].
    pub fn host(&self, rank: usize) -> usize {
        self.node_of.get(rank).copied().unwrap_or(usize::MAX)
    }

    /// Path class between two ranks.
    pub fn path(&self, from: usize, to: usize) -> PathClass {
        path_of(&self.node_of, from, to)
    }

    /// The part that holds a target, and the target's number within it.
    fn part(&self, target: usize) -> Option<(&Part, usize)> {
        let at = self.parts.partition_point(|part| part.first + part.length <= target);
        self.parts.get(at).map(|part| (part, target - part.first))
    }

    /// What a target does.
    pub fn pattern(&self, target: usize) -> Option<Pattern> {
        self.part(target).map(|(part, _)| part.pattern).or_else(|| self.added(target).map(|cell| cell.pattern))
    }

    /// Sender and receiver of a pair; of `duplex` the smaller rank first. `None` for a group.
    pub fn pair(&self, target: usize) -> Option<(usize, usize)> {
        let Some((part, own)) = self.part(target) else { return self.added(target).map(|cell| (cell.from, cell.to)) };
        let n = self.ranks.len();
        let (from, to) = match &part.kind {
            Kind::Each => (own, own),
            Kind::Ordered => {
                let (from, to) = (own / (n - 1), own % (n - 1));
                (from, to + usize::from(to >= from))
            }
            Kind::Unordered => {
                // Row by row: each member with the one `own / n + 1` above it, modulo n.
                let (from, to) = (own % n, (own % n + own / n + 1) % n);
                (from.min(to), from.max(to))
            }
            Kind::Listed(pairs) => pairs.get(own).map(|&(from, to)| (from as usize, to as usize))?,
            Kind::Groups(_) => return None,
        };
        Some((self.ranks[from], self.ranks[to]))
    }

    /// Number of a pair; `None` if this sweep does not measure it.
    pub fn number(&self, pattern: Pattern, from: usize, to: usize) -> Option<usize> {
        let part = self.parts.iter().find(|part| part.pattern == pattern);
        let seat = |rank: usize| self.place.get(rank).copied().flatten();
        let own = part.and_then(|part| self.seated(part, seat(from)?, seat(to)?));
        own.or_else(|| self.added.iter().position(|&cell| cell == Cell { pattern, from, to }).map(|at| self.own() + at))
    }

    fn seated(&self, part: &Part, from: u32, to: u32) -> Option<usize> {
        let n = self.ranks.len();
        let (a, b) = (from as usize, to as usize);
        let own = match &part.kind {
            Kind::Each => (a == b).then_some(a)?,
            Kind::Ordered if a != b => a * (n - 1) + b - usize::from(b > a),
            Kind::Unordered if a != b => {
                let up = (b + n - a) % n;
                // Of the two ways around, the shorter one; of equal ones that from the smaller member.
                let (apart, first) = if 2 * up < n || (2 * up == n && a < b) { (up, a) } else { (n - up, b) };
                (apart - 1) * n + first
            }
            Kind::Listed(pairs) => pairs.binary_search(&(from, to)).ok()?,
            _ => return None,
        };
        Some(part.first + own)
    }

    /// What a target is.
    pub fn target(&self, target: usize) -> Option<Target> {
        if let Some((Part { kind: Kind::Groups(groups), .. }, own)) = self.part(target) {
            return groups.get(own).cloned().map(Target::Group);
        }
        let (pattern, (from, to)) = (self.pattern(target)?, self.pair(target)?);
        Some(Target::Pair(Cell { pattern, from, to }))
    }

    /// The number of a target; `None` if this sweep does not measure it.
    pub fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Pair(cell) => self.number(cell.pattern, cell.from, cell.to),
            Target::Group(group) => {
                let part = self.parts.iter().find(|part| part.pattern == group.pattern)?;
                let Kind::Groups(groups) = &part.kind else { return None };
                groups.binary_search(group).ok().map(|own| part.first + own)
            }
        }
    }

    /// Its transfers, which run at the same time.
    pub fn flows(&self, target: usize) -> Flows {
        match self.target(target) {
            Some(Target::Group(group)) => self.flows_of(&group),
            Some(pair) => pair.cells().into_iter().map(|cell| (cell.from, cell.to)).collect(),
            None => Vec::new(),
        }
    }

    /// The transfers of a group.
    pub fn flows_of(&self, group: &Group) -> Flows {
        let n = self.ranks.len();
        match (group.pattern, group.root, group.shift, group.set) {
            (Pattern::FanOut, Some(root), ..) => group.peers.iter().map(|&peer| (root, peer)).collect(),
            (Pattern::FanIn, Some(root), ..) => group.peers.iter().map(|&peer| (peer, root)).collect(),
            (_, _, Some(shift), _) => (0..n).map(|at| (self.ranks[at], self.ranks[(at + shift) % n])).collect(),
            (_, _, _, Some(set)) => {
                let first = self.transfers.partition_point(|transfer| transfer.set < set);
                self.transfers[first..].iter().take_while(|transfer| transfer.set == set).map(|t| (t.from, t.to)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How many transfers a target has: samples of one repeat.
    pub fn width(&self, target: usize) -> usize {
        match self.part(target) {
            Some((Part { kind: Kind::Groups(groups), .. }, own)) => groups.get(own).map_or(0, |group| self.width_of(group)),
            _ => self.pattern(target).map_or(0, |pattern| 1 + usize::from(pattern == Pattern::Duplex)),
        }
    }

    fn width_of(&self, group: &Group) -> usize {
        match group {
            Group { root: Some(_), peers, .. } => peers.len(),
            Group { shift: Some(_), .. } => self.ranks.len(),
            Group { set: Some(set), .. } => self.transfers.iter().filter(|transfer| transfer.set == *set).count(),
            _ => 0,
        }
    }

    /// Transfers of all targets: samples of one repeat of everything.
    pub fn transfers(&self) -> u64 {
        let of = |part: &Part| match &part.kind {
            Kind::Groups(groups) => groups.iter().map(|group| self.width_of(group) as u64).sum(),
            _ => part.length as u64 * (1 + u64::from(part.pattern == Pattern::Duplex)),
        };
        self.parts.iter().map(of).sum()
    }

    /// Pairs that are measured of each pattern, and how many there are; the same for patterns that measure all.
    pub fn coverage(&self) -> impl Iterator<Item = (Pattern, u64, u64)> {
        let n = self.ranks.len() as u64;
        let all = move |pattern| n * n.saturating_sub(1) / if pattern == Pattern::Duplex { 2 } else { 1 };
        let pairs = |part: &&Part| matches!(part.pattern, Pattern::Peer | Pattern::Duplex);
        self.parts.iter().filter(pairs).map(move |part| (part.pattern, part.length as u64, all(part.pattern)))
    }

    /// Groups, fans among them.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.parts.iter().flat_map(|part| if let Kind::Groups(groups) = &part.kind { groups.as_slice() } else { &[] })
    }

    /// How many targets of each pattern of pairs go over each class of paths.
    pub(super) fn classes(&self) -> Vec<(Pattern, PathClass, u64)> {
        let n = self.ranks.len() as u64;
        let inside: u64 = self.by_host.sizes().map(|size| size * (size - 1)).sum();
        let mut found = Vec::new();
        for part in &self.parts {
            let (within, between) = match &part.kind {
                Kind::Each => {
                    found.push((part.pattern, PathClass::Local, n));
                    continue;
                }
                Kind::Ordered => (inside, n * n.saturating_sub(1) - inside),
                Kind::Unordered => (inside / 2, (n * n.saturating_sub(1) - inside) / 2),
                Kind::Listed(pairs) => {
                    let host = |seat: u32| self.host(self.ranks[seat as usize]);
                    let within = pairs.iter().filter(|&&(a, b)| host(a) == host(b)).count() as u64;
                    (within, pairs.len() as u64 - within)
                }
                Kind::Groups(_) => continue,
            };
            found.extend([(part.pattern, PathClass::IntraNode, within), (part.pattern, PathClass::InterNode, between)]);
        }
        found.retain(|&(_, _, count)| count > 0);
        found
    }

    /// Classes of paths that the pairs of a pattern go over.
    pub fn classes_of(&self, pattern: Pattern) -> Vec<PathClass> {
        self.classes().into_iter().filter(|&(own, ..)| own == pattern).map(|(_, class, _)| class).collect()
    }

    /// Hosts that have ranks to measure.
    pub(super) fn hosts(&self) -> u64 {
        self.by_host.sizes().count() as u64
    }

    /// Every target once, in a random order in which pairs of the same pattern and class that have no rank in common
    /// follow each other: what [`super::Pass`] makes rounds of.
    pub fn order(&self, rng: &mut fastrand::Rng) -> Vec<u32> {
        let mut order: Vec<u32> = Vec::with_capacity(self.own());
        for part in &self.parts {
            let begin = order.len();
            match &part.kind {
                Kind::Ordered | Kind::Unordered => {
                    let rounds = self.by_host.rounds(matches!(part.kind, Kind::Ordered), rng);
                    order.extend(rounds.iter().flatten().filter_map(|&(from, to)| Some(self.seated(part, from, to)? as u32)));
                }
                _ => {
                    order.extend((0..part.length).map(|own| (part.first + own) as u32));
                    rng.shuffle(&mut order[begin..]);
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made::on;
    use std::collections::BTreeSet;

    fn settings(patterns: &[Pattern]) -> SweepSettings {
        SweepSettings { patterns: patterns.to_vec(), ..SweepSettings::default() }
    }

    #[test]
    fn every_target_has_one_number_and_comes_once_in_the_order() {
        let patterns = Pattern::ALL;
        let custom = [(3, 0, 1), (1, 2, 0), (3, 1, 2)].map(|(set, from, to)| Transfer { set, from, to });
        for (sizes, ranks) in [(vec![1, 1], vec![]), (vec![4], vec![]), (vec![3, 4], vec![]), (vec![2, 3, 4], vec![1, 3, 4, 7, 8])] {
            let topology = on(&sizes);
            for pairs in [0, 2] {
                let settings = SweepSettings {
                    ranks: ranks.clone(),
                    widths: vec![1, 2],
                    shifts: vec![1, 2, 1 + topology.world()],
                    transfers: custom.to_vec(),
                    pairs,
                    ..settings(&patterns)
                };
                let work = Work::new(&settings, &topology);
                let targets: BTreeSet<Target> = (0..work.len()).map(|number| work.target(number).unwrap()).collect();
                assert_eq!(targets.len(), work.len(), "{sizes:?} {ranks:?}");
                assert_eq!(work.target(work.len()), None);
                for number in 0..work.len() {
                    let target = work.target(number).unwrap();
                    assert_eq!(work.find(&target), Some(number), "{target:?}");
                    assert_eq!(work.width(number), work.flows(number).len(), "{target:?}");
                    if let Target::Pair(Cell { pattern: Pattern::Duplex, from, to }) = target {
                        assert!(from < to);
                    }
                }
                let total: usize = (0..work.len()).map(|number| work.width(number)).sum();
                assert_eq!(work.transfers(), total as u64);
                let order: BTreeSet<u32> = work.order(&mut fastrand::Rng::with_seed(1)).into_iter().collect();
                assert_eq!(order, (0..work.len() as u32).collect());
                let mut counted = 0;
                for (pattern, class, count) in work.classes() {
                    let own = (0..work.len()).filter(|&number| work.pattern(number) == Some(pattern));
                    let own = own.filter(|&number| work.pair(number).is_some_and(|(from, to)| topology.path(from, to) == class));
                    assert_eq!(own.count() as u64, count, "{pattern:?} {class:?}");
                    counted += count as usize;
                }
                assert_eq!(counted, (0..work.len()).filter(|&number| work.pair(number).is_some()).count());
            }
        }
    }

    #[test]
    fn transfers_of_groups_run_the_way_the_pattern_says() {
        let topology = on(&[2, 2]);
        let transfers = [(3, 0, 1), (1, 2, 0), (3, 1, 2)].map(|(set, from, to)| Transfer { set, from, to }).to_vec();
        let settings =
            SweepSettings { transfers, widths: vec![2], ..settings(&[Pattern::FanIn, Pattern::FanOut, Pattern::Relay, Pattern::Custom]) };
        let work = Work::new(&settings, &topology);
        let flows = |group: Group| work.flows(work.find(&Target::Group(group)).unwrap());
        assert_eq!(flows(Group::fan(Pattern::FanIn, 3, vec![2, 0])), [(0, 3), (2, 3)]);
        assert_eq!(flows(Group::fan(Pattern::FanOut, 3, vec![2, 0])), [(3, 0), (3, 2)]);
        assert_eq!(flows(Group::relay(1)), [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(flows(Group::custom(3)), [(0, 1), (1, 2)]);
        assert_eq!(work.find(&Target::Group(Group::custom(2))), None);
    }

    #[test]
    fn a_pair_that_was_not_asked_for_can_be_added_once() {
        let mut work = Work::new(&SweepSettings { ranks: vec![0, 1], ..settings(&[Pattern::Peer]) }, &on(&[2, 2]));
        let cell = Cell { pattern: Pattern::Duplex, from: 1, to: 3 };
        assert_eq!((work.add(cell), work.add(cell), work.len()), (2, 2, 3));
        assert_eq!((work.target(2), work.flows(2), work.width(2)), (Some(Target::Pair(cell)), vec![(1, 3), (3, 1)], 2));
        assert_eq!(work.add(Cell { pattern: Pattern::Peer, from: 1, to: 0 }), 1);
        assert_eq!(work.order(&mut fastrand::Rng::with_seed(1)).len(), 2, "nobody's pass has it");
    }

    #[test]
    fn a_thousand_ranks_are_a_million_targets_and_little_memory() {
        let topology = on(&[8; 128]);
        let work = Work::new(&settings(&[Pattern::Local, Pattern::Peer]), &topology);
        assert_eq!(work.len(), 1024 + 1024 * 1023);
        assert_eq!(work.pair(work.number(Pattern::Peer, 1023, 5).unwrap()), Some((1023, 5)));
        let sampled = Work::new(&SweepSettings { pairs: 8, ..settings(&[Pattern::Peer]) }, &topology);
        assert_eq!(sampled.coverage().collect::<Vec<_>>(), [(Pattern::Peer, 8192, 1_047_552)]);
        let duplex = Work::new(&SweepSettings { pairs: 8, ..settings(&[Pattern::Duplex]) }, &topology);
        let (_, pairs, all) = duplex.coverage().next().unwrap();
        assert!((3500..=4096).contains(&pairs) && all == 523_776, "{pairs}");
    }
}
