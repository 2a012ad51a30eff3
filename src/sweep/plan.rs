use std::collections::{HashMap, VecDeque};

use super::targets::{Flows, targets};
use super::{Probe, SweepSettings, Target};
use crate::topology::Topology;

/// Every cell gets `repeats` repeats of one size before the next step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    bytes: u64,
    /// repeats that a cell has of this size when the step is done with it
    until: u32,
}

/// A sweep under way: which probe comes next. Breadth first: one large message for every pair, then each other
/// size once, then the remaining repeats; the order within a step is random by the seed.
#[derive(Debug)]
pub struct Sweep {
    settings: SweepSettings,
    targets: Vec<(Target, Flows)>,
    steps: Vec<Step>,
    step: usize,
    at: usize,
    /// repeats of the sweep's own take below which all are given out, found done, or in `holes`
    taken: HashMap<(Target, u64), u32>,
    /// runs of repeats, first and count, that a session has not although it has later ones
    holes: HashMap<(Target, u64), Vec<(u32, u32)>>,
    /// re-measurements, which go first
    urgent: VecDeque<Probe>,
    /// seconds of one repeat of the largest size seen, with that size
    seen: HashMap<Target, (u64, f64)>,
    next_id: u64,
}

impl Sweep {
    /// A sweep over the ranks of a job; `done` are the numbers of the repeats that the session has already.
    pub fn new(
        settings: &SweepSettings,
        topology: &Topology,
        done: impl IntoIterator<Item = (Target, u64, Vec<u32>)>,
        next_id: u64,
    ) -> Self {
        let first = first_size(&settings.sizes);
        let others = settings.sizes.iter().rev().copied().filter(|&size| size != first);
        let mut steps: Vec<Step> = std::iter::once(first).chain(others).map(|bytes| Step { bytes, until: 1 }).collect();
        if settings.repeats > 1 {
            let rest: Vec<Step> = steps.iter().map(|step| Step { until: settings.repeats, ..*step }).collect();
            steps.extend(rest);
        }
        let (mut taken, mut holes) = (HashMap::new(), HashMap::new());
        for (target, bytes, mut repeats) in done {
            let (next, missing) = missing(&mut repeats, settings.repeats);
            taken.insert((target.clone(), bytes), next);
            holes.insert((target, bytes), missing);
        }
        let mut sweep = Self {
            settings: settings.clone(),
            targets: targets(settings, topology),
            steps,
            step: 0,
            at: 0,
            taken,
            holes,
            urgent: VecDeque::new(),
            seen: HashMap::new(),
            next_id,
        };
        sweep.shuffle();
        sweep
    }

    /// A sweep with nothing of its own to do, for re-measurements after one has ended.
    pub fn nothing(settings: &SweepSettings, topology: &Topology, next_id: u64) -> Self {
        let mut sweep = Self::new(settings, topology, [], next_id);
        sweep.steps.clear();
        sweep
    }

    /// What this sweep measures, in no particular order.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().map(|(target, _)| target)
    }

    /// The number that the next probe will have.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Measure these again, before anything else: every size of the sweep, or one, as many repeats as the sweep takes.
    pub fn remeasure(&mut self, targets: &[(Target, u32)], bytes: Option<u64>) {
        let sizes: Vec<u64> = self.settings.sizes.iter().rev().copied().filter(|&size| bytes.is_none_or(|only| only == size)).collect();
        for (target, take) in targets {
            let flows = self.targets.iter().find(|(own, _)| own == target).map(|(_, flows)| flows.clone()).unwrap_or_default();
            for &size in &sizes {
                let probe = self.probe(target.clone(), flows.clone(), size, 0, self.settings.repeats, *take);
                self.urgent.push_back(probe);
            }
        }
    }

    /// Tell how long one repeat took, so that later probes of the same target fit in their time.
    pub fn observe(&mut self, probe: &Probe, seconds_per_repeat: f64) {
        // Of small messages the large ones cannot be foretold, so the largest size seen counts; the first step is a large one.
        let seen = self.seen.entry(probe.target.clone()).or_insert((probe.bytes, seconds_per_repeat));
        if probe.bytes >= seen.0 {
            *seen = (probe.bytes, seconds_per_repeat);
        }
    }

    /// The next probes, which run at the same time; `None` when all that was asked for has been given out.
    pub fn next_round(&mut self) -> Option<Vec<Probe>> {
        self.next_probe().map(|probe| vec![probe])
    }

    fn next_probe(&mut self) -> Option<Probe> {
        if let Some(mut probe) = self.urgent.pop_front() {
            let fits = self.fitting(&probe.target, probe.bytes, probe.repeats);
            if fits < probe.repeats {
                let (first, repeats) = (probe.first_repeat + fits, probe.repeats - fits);
                let rest = self.probe(probe.target.clone(), probe.flows.clone(), probe.bytes, first, repeats, probe.take);
                self.urgent.push_front(rest);
                probe.repeats = fits;
            }
            return Some(probe);
        }
        while let Some(&step) = self.steps.get(self.step) {
            let Some((target, flows)) = self.targets.get(self.at).cloned() else {
                self.step += 1;
                self.at = 0;
                self.shuffle();
                continue;
            };
            let key = (target.clone(), step.bytes);
            // Before the target is new: what an earlier job of the session left out.
            let hole = self.holes.get_mut(&key).and_then(Vec::pop);
            if let Some((first, count)) = hole {
                let repeats = self.fitting(&target, step.bytes, count);
                if repeats < count {
                    self.holes.entry(key).or_default().push((first + repeats, count - repeats));
                }
                return Some(self.probe(target, flows, step.bytes, first, repeats, 0));
            }
            let taken = self.taken.get(&key).copied().unwrap_or(0);
            if taken >= step.until {
                self.at += 1;
                continue;
            }
            let repeats = self.fitting(&target, step.bytes, step.until - taken);
            self.taken.insert(key, taken + repeats);
            return Some(self.probe(target, flows, step.bytes, taken, repeats, 0));
        }
        None
    }

    fn probe(&mut self, target: Target, flows: Flows, bytes: u64, first_repeat: u32, repeats: u32, take: u32) -> Probe {
        let id = self.next_id;
        self.next_id += 1;
        Probe { id, target, flows, bytes, first_repeat, repeats, take, isolated: true, round: id }
    }

    /// As many of `wanted` repeats as half the probe's time holds, at least one.
    fn fitting(&self, target: &Target, bytes: u64, wanted: u32) -> u32 {
        let Some(&(seen_bytes, seconds)) = self.seen.get(target) else { return wanted };
        let one = seconds * (bytes as f64 / seen_bytes as f64).max(1.0);
        let room = self.settings.timeout / 2.0 / one.max(1e-9) - f64::from(self.settings.warmup + 2);
        wanted.min(room.clamp(1.0, f64::from(u32::MAX)) as u32)
    }

    fn shuffle(&mut self) {
        let mut rng = fastrand::Rng::with_seed(self.settings.seed ^ (self.step as u64) << 48);
        self.targets.sort_unstable();
        rng.shuffle(&mut self.targets);
    }
}

/// The first repeat that is above all those done, and the runs below it that are missing, last first.
fn missing(done: &mut Vec<u32>, wanted: u32) -> (u32, Vec<(u32, u32)>) {
    done.retain(|&repeat| repeat < wanted);
    done.sort_unstable();
    let (mut next, mut runs) = (0, Vec::new());
    for &repeat in &*done {
        if repeat > next {
            runs.push((next, repeat - next));
        }
        next = repeat + 1;
    }
    runs.reverse();
    (next, runs)
}

/// The size of the first pass: the largest one up to 16 MiB, so that a picture is there in seconds.
fn first_size(sizes: &[u64]) -> u64 {
    let large = sizes.iter().rev().find(|&&size| size <= 16 << 20);
    large.or(sizes.first()).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::Cell;
    use crate::topology::Placement;
    use std::collections::BTreeMap;

    fn on(world: usize) -> Topology {
        let place = |rank| Placement {
            rank,
            host: "here".to_owned(),
            pid: 1,
            cores: vec![rank],
            numa: None,
            memory_available: 1 << 40,
            memory_total: 1 << 40,
            cache: 0,
        };
        Topology { ranks: (0..world).map(place).collect() }
    }

    fn ends(probe: &Probe) -> (usize, usize) {
        probe.flows()[0]
    }

    fn peer(from: usize, to: usize) -> Target {
        Target::Pair(Cell { pattern: Pattern::Peer, from, to })
    }

    fn settings() -> SweepSettings {
        SweepSettings { sizes: vec![4096, 1 << 20, 64 << 20], repeats: 5, ..SweepSettings::default() }
    }

    fn counts(sweep: &mut Sweep) -> BTreeMap<(usize, usize, u64), Vec<u32>> {
        let mut seen: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        while let Some(probe) = sweep.next_probe() {
            let (from, to) = ends(&probe);
            let repeats = seen.entry((from, to, probe.bytes)).or_default();
            repeats.extend(probe.first_repeat..probe.first_repeat + probe.repeats);
        }
        seen
    }

    #[test]
    fn every_pair_size_and_repeat_comes_once() {
        let seen = counts(&mut Sweep::new(&settings(), &on(3), [], 0));
        assert_eq!(seen.len(), 9 * 3);
        for (key, repeats) in seen {
            assert_eq!(repeats, [0, 1, 2, 3, 4], "{key:?}");
        }
    }

    #[test]
    fn the_first_pass_is_one_large_message_for_every_cell() {
        let mut sweep = Sweep::new(&settings(), &on(3), [], 0);
        let mut first: Vec<_> = (0..9).filter_map(|_| sweep.next_probe()).collect();
        assert!(first.iter().all(|probe| probe.bytes == 1 << 20 && probe.repeats == 1));
        first.sort_by_key(ends);
        first.dedup_by_key(|probe| ends(probe));
        assert_eq!(first.len(), 9);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| {
            let mut sweep = Sweep::new(&SweepSettings { seed, ..settings() }, &on(4), [], 0);
            std::iter::from_fn(move || sweep.next_probe()).map(|p| (ends(&p), p.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }

    #[test]
    fn a_resumed_sweep_asks_only_for_what_is_missing() {
        let cell = peer(0, 1);
        let seen = counts(&mut Sweep::new(
            &settings(),
            &on(3),
            [(cell.clone(), 4096, vec![4, 3, 2, 1, 0, 9]), (cell.clone(), 1 << 20, vec![2, 0]), (cell, 64 << 20, vec![4])],
            9,
        ));
        assert!(!seen.contains_key(&(0, 1, 4096)));
        assert_eq!(seen[&(0, 1, 1 << 20)], [1, 3, 4]);
        assert_eq!(seen[&(0, 1, 64 << 20)], [0, 1, 2, 3]);
        assert_eq!(seen[&(1, 0, 4096)], [0, 1, 2, 3, 4]);
    }

    #[test]
    fn slow_cells_get_fewer_repeats_a_probe_and_all_in_the_end() {
        let mut sweep = Sweep::new(&settings(), &on(2), [], 0);
        let mut repeats = Vec::new();
        while let Some(probe) = sweep.next_probe() {
            sweep.observe(&probe, 0.9 * (probe.bytes as f64) / f64::from(1 << 20));
            if probe.bytes == 1 << 20 && ends(&probe) == (0, 1) {
                repeats.push(probe.repeats);
            }
        }
        assert_eq!(repeats.iter().sum::<u32>(), 5);
        assert!(repeats.iter().all(|&n| n <= 2), "{repeats:?}");
    }

    #[test]
    fn remeasured_cells_go_first_with_their_take() {
        let mut sweep = Sweep::new(&settings(), &on(3), [], 0);
        sweep.remeasure(&[(peer(2, 0), 1)], Some(4096));
        let probe = sweep.next_probe().unwrap();
        assert_eq!((ends(&probe), probe.bytes, probe.take, probe.repeats), ((2, 0), 4096, 1, 5));
        assert_eq!(sweep.next_probe().unwrap().take, 0);
    }
}
