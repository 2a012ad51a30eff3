//! What rules look at: everything measured, told once, so that a thousand ranks take a second.

#[cfg(test)]
use std::ops::Range;

use crate::fit::Interval;
use crate::fit::identify::{Evidence, Identified, Together, identify_all};
use crate::sample::{EngineKind, Memory, MoverKind, Status};
use crate::topology::{Efficiency, GpuRange, PathClass, PathLabel, Router, Topology, Units};

use super::Executed;
use super::next::TestResult;

/// What was seen of one ordered pair, or of a rank's own copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSeen {
    pub from: u32,
    pub to: u32,
    /// index in [`Measured::classes`]
    pub class: u16,
    /// of the newest take at [`Measured::bytes`]; where that was waived because smaller messages failed, theirs
    pub status: Status,
    /// good repeats there
    pub n: u32,
    /// median bandwidth at [`Measured::bytes`], bytes per second; NaN without a good repeat
    pub rate: f64,
    /// 95 % interval of it; `None` below 6 repeats
    pub interval: Option<Interval>,
    /// what the hardware between them should give, bytes per second; NaN where nothing tells
    pub expected: f64,
    /// median seconds of one message at [`Measured::small_bytes`]; NaN where it was not measured
    pub small: f64,
    /// largest relative error of the line through all sizes; NaN below three sizes, and where it has segments of its own
    pub fit_error: f32,
    /// half of the middle half of the repeats over their median: how they scatter; NaN below 4
    pub scatter: f32,
    /// median time of the later half of the repeats over that of the earlier half; NaN below 6
    pub drift: f32,
}

impl PairSeen {
    /// Nothing.
    pub const NONE: Self = Self {
        from: 0,
        to: 0,
        class: 0,
        status: Status::Waived,
        n: 0,
        rate: f64::NAN,
        interval: None,
        expected: f64::NAN,
        small: f64::NAN,
        fit_error: f32::NAN,
        scatter: f32::NAN,
        drift: f32::NAN,
    };
}

/// What was seen of something at one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtSize {
    /// of one message
    pub bytes: u64,
    /// median time of one message
    pub seconds: f64,
    /// good repeats
    pub n: u32,
    /// half of the middle half of the repeats over their median; NaN below 4
    pub scatter: f32,
}

/// Pairs of a pattern, row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    /// `rows[from]..rows[from + 1]` in `seen`
    rows: Vec<usize>,
    /// ascending by sender, then receiver
    seen: Vec<PairSeen>,
    /// sizes of all pairs, pair by pair; empty where only [`PairSeen`]s are known
    sizes: Vec<AtSize>,
    /// `starts[at]..starts[at + 1]` in `sizes` for `seen[at]`
    starts: Vec<usize>,
}

impl Pairs {
    /// Of so many ranks, in any order; pairs of other ranks are left out.
    pub fn new(world: usize, mut seen: Vec<PairSeen>) -> Self {
        seen.retain(|pair| (pair.from as usize) < world && (pair.to as usize) < world);
        seen.sort_unstable_by_key(|pair| (pair.from, pair.to));
        Self::in_order(world, seen, Vec::new(), Vec::new())
    }

    /// Of so many ranks, each of them one of those, in order already: by sender, then receiver. The sizes that have a good repeat are
    /// `sizes[starts[at]..starts[at + 1]]` of the pair at `at`.
    pub fn in_order(world: usize, seen: Vec<PairSeen>, sizes: Vec<AtSize>, starts: Vec<usize>) -> Self {
        let rows = (0..=world).map(|from| seen.partition_point(|pair| (pair.from as usize) < from)).collect();
        Self { rows, seen, sizes, starts }
    }

    /// The same in any order: a range of `sizes` each.
    #[cfg(test)]
    pub fn with_sizes(world: usize, mut told: Vec<(PairSeen, Range<usize>)>, sizes: &[AtSize]) -> Self {
        told.sort_unstable_by_key(|(pair, _)| (pair.from, pair.to));
        let mut own = Vec::with_capacity(told.iter().map(|(_, range)| range.len()).sum());
        let mut starts = vec![0];
        for (_, range) in &told {
            own.extend_from_slice(sizes.get(range.clone()).unwrap_or_default());
            starts.push(own.len());
        }
        Self::in_order(world, told.into_iter().map(|(pair, _)| pair).collect(), own, starts)
    }

    pub fn len(&self) -> usize {
        self.seen.len()
    }

    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// What a rank sends.
    pub fn row(&self, from: usize) -> &[PairSeen] {
        match (self.rows.get(from), self.rows.get(from + 1)) {
            (Some(&begin), Some(&end)) => &self.seen[begin..end],
            _ => &[],
        }
    }

    /// One pair, in O(log n).
    pub fn get(&self, from: usize, to: usize) -> Option<&PairSeen> {
        let row = self.row(from);
        row.binary_search_by_key(&to, |pair| pair.to as usize).ok().map(|at| &row[at])
    }

    /// What a pair gave at each of its sizes that has a good repeat, ascending; empty where that is not known.
    pub fn sizes(&self, from: usize, to: usize) -> &[AtSize] {
        let Some(&begin) = self.rows.get(from) else { return &[] };
        let Ok(at) = self.row(from).binary_search_by_key(&to, |pair| pair.to as usize) else { return &[] };
        match (self.starts.get(begin + at), self.starts.get(begin + at + 1)) {
            (Some(&begin), Some(&end)) => &self.sizes[begin..end],
            _ => &[],
        }
    }

    /// All of them, by sender, then receiver.
    pub fn iter(&self) -> impl Iterator<Item = &PairSeen> {
        self.seen.iter()
    }
}

/// Pairs that should be alike.
#[derive(Debug, Clone, PartialEq)]
pub struct PairClass {
    pub path: PathClass,
    /// as nvidia-smi names it, where the hardware is known
    pub label: Option<PathLabel>,
    /// same host, and the same NUMA node; `None` between hosts and where nothing tells
    pub same_socket: Option<bool>,
    /// median rate of its pairs, bytes per second; NaN without one
    pub usual: f64,
    /// median of `small`, seconds; NaN without one
    pub usual_small: f64,
    /// pairs that have a rate
    pub count: usize,
}

impl PairClass {
    /// `PIX`, `SYS`; without hardware `intra_node, across NUMA nodes` and the like.
    pub fn name(&self) -> String {
        match (self.label, self.same_socket) {
            (Some(label), _) => label.to_string(),
            (None, Some(false)) => format!("{}, across NUMA nodes", self.path.name()),
            (None, _) => self.path.name().to_owned(),
        }
    }
}

/// Sizes further apart than this tell latency from what the bytes take.
const APART: u64 = 16;

/// With what it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    pub engine: EngineKind,
    pub mover: MoverKind,
    pub memory: Memory,
    /// messages outstanding at a time
    pub window: u32,
    /// the job's own numbers of the ranks, where only a group of it took part
    pub group: Vec<usize>,
    /// name and version of what matters, such as the MPI library
    pub software: Vec<(String, String)>,
    /// variables that change what is measured
    pub environment: Vec<(String, String)>,
}

/// Patterns that have pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    Peer,
    Duplex,
    Local,
}

/// All that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    pub topology: Topology,
    /// how the ranks' GPUs were doing between probes; of none where there are none
    pub gpus: Vec<GpuRange>,
    pub units: Units,
    pub efficiency: Efficiency,
    /// routes of pairs on this topology
    pub router: Router,
    pub provenance: Provenance,
    /// size at which rates compare: the largest that most pairs have
    pub bytes: u64,
    /// the smallest size, at which latency shows
    pub small_bytes: u64,
    pub sizes: Vec<u64>,
    pub classes: Vec<PairClass>,
    /// one way, alone
    pub peer: Pairs,
    /// one direction of two at once
    pub duplex: Pairs,
    /// copies inside a rank, `from` = `to`
    pub local: Pairs,
    /// fans, relays, sets; and rounds in which pairs were found to slow each other
    pub together: Vec<Together>,
    /// ranks that stopped answering, with the reason
    pub lost: Vec<(usize, String)>,
    /// what tests of earlier findings brought
    pub tests: Vec<TestResult>,
    /// plans that were run: the last run of each
    pub executed: Vec<Executed>,
}

impl Measured {
    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.units.world()
    }

    /// What a pair gives alone, bytes per second.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        self.peer.get(from, to).map(|pair| pair.rate).filter(|rate| rate.is_finite())
    }

    /// Seconds of a message that is nearly empty: the line through the smallest size and that of the rates.
    fn latency(&self, from: usize, to: usize) -> Option<f64> {
        let pair = self.peer.get(from, to)?;
        let (small, bytes) = (self.small_bytes as f64, self.bytes as f64);
        let seconds = bytes / pair.rate;
        Some(pair.small - small * (seconds - pair.small) / (bytes - small)).filter(|latency| *latency > 0.0)
    }

    /// What pairs and all that ran together tell of resources.
    pub fn identified(&self) -> Identified {
        let rate = |from, to| self.rate(from, to);
        let latency = |from, to| self.latency(from, to);
        let duplex = |tell: &mut dyn FnMut(usize, usize, f64)| {
            self.duplex.iter().for_each(|pair| tell(pair.from as usize, pair.to as usize, pair.rate));
        };
        identify_all(&Evidence {
            bytes: self.bytes,
            latency: if self.bytes / APART >= self.small_bytes { Some(&latency) } else { None },
            duplex: Some(&duplex),
            together: &self.together,
            ..Evidence::new(&self.units, &rate)
        })
    }

    /// The class of a pair.
    pub fn class(&self, pair: &PairSeen) -> &PairClass {
        &self.classes[usize::from(pair.class)]
    }

    /// Share of what is usual in its class.
    pub fn share(&self, pair: &PairSeen) -> f64 {
        pair.rate / self.class(pair).usual
    }

    /// The pairs of a pattern.
    pub fn pairs(&self, selected: Selected) -> &Pairs {
        match selected {
            Selected::Peer => &self.peer,
            Selected::Duplex => &self.duplex,
            Selected::Local => &self.local,
        }
    }
}
