use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Probe, SweepSettings};
use crate::sample::Pattern;

/// One cell of a matrix: a pattern and its ordered pair of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    pub pattern: Pattern,
    /// sending rank
    pub from: usize,
    /// receiving rank
    pub to: usize,
}

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
    cells: Vec<Cell>,
    steps: Vec<Step>,
    step: usize,
    at: usize,
    /// repeats of the sweep's own take below which all are given out, found done, or in `holes`
    taken: HashMap<(Cell, u64), u32>,
    /// runs of repeats, first and count, that a session has not although it has later ones
    holes: HashMap<(Cell, u64), Vec<(u32, u32)>>,
    /// re-measurements, which go first
    urgent: VecDeque<Probe>,
    /// seconds of one repeat of the largest size seen, with that size
    seen: HashMap<Cell, (u64, f64)>,
    next_id: u64,
}

impl Sweep {
    /// A sweep over the ranks of a job of `world`; `done` are the numbers of the repeats that the session has already.
    pub fn new(settings: &SweepSettings, world: usize, done: impl IntoIterator<Item = (Cell, u64, Vec<u32>)>, next_id: u64) -> Self {
        let ranks = settings.ranks_of(world);
        let mut cells = Vec::new();
        for &pattern in &settings.patterns {
            match pattern {
                Pattern::Local => cells.extend(ranks.iter().map(|&rank| Cell { pattern, from: rank, to: rank })),
                Pattern::Peer => cells.extend(
                    ranks.iter().flat_map(|&from| ranks.iter().filter(move |&&to| to != from).map(move |&to| Cell { pattern, from, to })),
                ),
            }
        }
        let first = first_size(&settings.sizes);
        let others = settings.sizes.iter().rev().copied().filter(|&size| size != first);
        let mut steps: Vec<Step> = std::iter::once(first).chain(others).map(|bytes| Step { bytes, until: 1 }).collect();
        if settings.repeats > 1 {
            let rest: Vec<Step> = steps.iter().map(|step| Step { until: settings.repeats, ..*step }).collect();
            steps.extend(rest);
        }
        let (mut taken, mut holes) = (HashMap::new(), HashMap::new());
        for (cell, bytes, mut repeats) in done {
            let (next, missing) = missing(&mut repeats, settings.repeats);
            taken.insert((cell, bytes), next);
            holes.insert((cell, bytes), missing);
        }
        let mut sweep = Self {
            settings: settings.clone(),
            cells,
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
    pub fn nothing(settings: &SweepSettings, next_id: u64) -> Self {
        let mut sweep = Self::new(settings, 0, [], next_id);
        sweep.steps.clear();
        sweep
    }

    /// The cells of this sweep, in no particular order.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The number that the next probe will have.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Measure these cells again, before anything else: every size of the sweep, or one, as many repeats as the sweep takes.
    pub fn remeasure(&mut self, cells: &[(Cell, u32)], bytes: Option<u64>) {
        let sizes: Vec<u64> = self.settings.sizes.iter().rev().copied().filter(|&size| bytes.is_none_or(|only| only == size)).collect();
        for &(cell, take) in cells {
            for &size in &sizes {
                let probe = self.probe(cell, size, 0, self.settings.repeats, take);
                self.urgent.push_back(probe);
            }
        }
    }

    /// Tell how long one repeat of a cell took, so that later probes of it fit in their time.
    pub fn observe(&mut self, probe: &Probe, seconds_per_repeat: f64) {
        let cell = Cell { pattern: probe.pattern, from: probe.from, to: probe.to };
        // Of small messages the large ones cannot be foretold, so the largest size seen counts; the first step is a large one.
        let seen = self.seen.entry(cell).or_insert((probe.bytes, seconds_per_repeat));
        if probe.bytes >= seen.0 {
            *seen = (probe.bytes, seconds_per_repeat);
        }
    }

    /// The next probe, or `None` when all that was asked for has been given out.
    pub fn next_probe(&mut self) -> Option<Probe> {
        if let Some(mut probe) = self.urgent.pop_front() {
            let cell = Cell { pattern: probe.pattern, from: probe.from, to: probe.to };
            let fits = self.fitting(cell, probe.bytes, probe.repeats);
            if fits < probe.repeats {
                let rest = self.probe(cell, probe.bytes, probe.first_repeat + fits, probe.repeats - fits, probe.take);
                self.urgent.push_front(rest);
                probe.repeats = fits;
            }
            return Some(probe);
        }
        while let Some(&step) = self.steps.get(self.step) {
            let Some(&cell) = self.cells.get(self.at) else {
                self.step += 1;
                self.at = 0;
                self.shuffle();
                continue;
            };
            // Before the cell is new: what an earlier job of the session left out.
            let hole = self.holes.get_mut(&(cell, step.bytes)).and_then(Vec::pop);
            if let Some((first, count)) = hole {
                let repeats = self.fitting(cell, step.bytes, count);
                if repeats < count {
                    self.holes.entry((cell, step.bytes)).or_default().push((first + repeats, count - repeats));
                }
                return Some(self.probe(cell, step.bytes, first, repeats, 0));
            }
            let taken = self.taken.get(&(cell, step.bytes)).copied().unwrap_or(0);
            if taken >= step.until {
                self.at += 1;
                continue;
            }
            let repeats = self.fitting(cell, step.bytes, step.until - taken);
            self.taken.insert((cell, step.bytes), taken + repeats);
            return Some(self.probe(cell, step.bytes, taken, repeats, 0));
        }
        None
    }

    fn probe(&mut self, cell: Cell, bytes: u64, first_repeat: u32, repeats: u32, take: u32) -> Probe {
        let id = self.next_id;
        self.next_id += 1;
        Probe { id, pattern: cell.pattern, from: cell.from, to: cell.to, bytes, first_repeat, repeats, take }
    }

    /// As many of `wanted` repeats as half the probe's time holds, at least one.
    fn fitting(&self, cell: Cell, bytes: u64, wanted: u32) -> u32 {
        let Some(&(seen_bytes, seconds)) = self.seen.get(&cell) else { return wanted };
        let one = seconds * (bytes as f64 / seen_bytes as f64).max(1.0);
        let room = self.settings.timeout / 2.0 / one.max(1e-9) - f64::from(self.settings.warmup + 2);
        wanted.min(room.clamp(1.0, f64::from(u32::MAX)) as u32)
    }

    fn shuffle(&mut self) {
        let mut rng = fastrand::Rng::with_seed(self.settings.seed ^ (self.step as u64) << 48);
        self.cells.sort_unstable();
        rng.shuffle(&mut self.cells);
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
    use std::collections::BTreeMap;

    fn settings() -> SweepSettings {
        SweepSettings { sizes: vec![4096, 1 << 20, 64 << 20], repeats: 5, ..SweepSettings::default() }
    }

    fn counts(sweep: &mut Sweep) -> BTreeMap<(usize, usize, u64), Vec<u32>> {
        let mut seen: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        while let Some(probe) = sweep.next_probe() {
            let repeats = seen.entry((probe.from, probe.to, probe.bytes)).or_default();
            repeats.extend(probe.first_repeat..probe.first_repeat + probe.repeats);
        }
        seen
    }

    #[test]
    fn every_pair_size_and_repeat_comes_once() {
        let seen = counts(&mut Sweep::new(&settings(), 3, [], 0));
        assert_eq!(seen.len(), 9 * 3);
        for (key, repeats) in seen {
            assert_eq!(repeats, [0, 1, 2, 3, 4], "{key:?}");
        }
    }

    #[test]
    fn the_first_pass_is_one_large_message_for_every_cell() {
        let mut sweep = Sweep::new(&settings(), 3, [], 0);
        let mut first: Vec<_> = (0..9).filter_map(|_| sweep.next_probe()).collect();
        assert!(first.iter().all(|probe| probe.bytes == 1 << 20 && probe.repeats == 1));
        first.sort_by_key(|probe| (probe.from, probe.to));
        first.dedup_by_key(|probe| (probe.from, probe.to));
        assert_eq!(first.len(), 9);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| {
            let mut sweep = Sweep::new(&SweepSettings { seed, ..settings() }, 4, [], 0);
            std::iter::from_fn(move || sweep.next_probe()).map(|p| (p.from, p.to, p.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }

    #[test]
    fn a_resumed_sweep_asks_only_for_what_is_missing() {
        let cell = Cell { pattern: Pattern::Peer, from: 0, to: 1 };
        let seen = counts(&mut Sweep::new(
            &settings(),
            3,
            [(cell, 4096, vec![4, 3, 2, 1, 0, 9]), (cell, 1 << 20, vec![2, 0]), (cell, 64 << 20, vec![4])],
            9,
        ));
        assert!(!seen.contains_key(&(0, 1, 4096)));
        assert_eq!(seen[&(0, 1, 1 << 20)], [1, 3, 4]);
        assert_eq!(seen[&(0, 1, 64 << 20)], [0, 1, 2, 3]);
        assert_eq!(seen[&(1, 0, 4096)], [0, 1, 2, 3, 4]);
    }

    #[test]
    fn slow_cells_get_fewer_repeats_a_probe_and_all_in_the_end() {
        let mut sweep = Sweep::new(&settings(), 2, [], 0);
        let mut repeats = Vec::new();
        while let Some(probe) = sweep.next_probe() {
            sweep.observe(&probe, 0.9 * (probe.bytes as f64) / f64::from(1 << 20));
            if probe.bytes == 1 << 20 && (probe.from, probe.to) == (0, 1) {
                repeats.push(probe.repeats);
            }
        }
        assert_eq!(repeats.iter().sum::<u32>(), 5);
        assert!(repeats.iter().all(|&n| n <= 2), "{repeats:?}");
    }

    #[test]
    fn remeasured_cells_go_first_with_their_take() {
        let mut sweep = Sweep::new(&settings(), 3, [], 0);
        let cell = Cell { pattern: Pattern::Peer, from: 2, to: 0 };
        sweep.remeasure(&[(cell, 1)], Some(4096));
        let probe = sweep.next_probe().unwrap();
        assert_eq!((probe.from, probe.to, probe.bytes, probe.take, probe.repeats), (2, 0, 4096, 1, 5));
        assert_eq!(sweep.next_probe().unwrap().take, 0);
    }
}
