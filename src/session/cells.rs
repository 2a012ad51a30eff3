use std::collections::{HashMap, HashSet};

use crate::fit::{Interval, median, median_interval};
use crate::sample::{Sample, Status};
use crate::sweep::Cell;

/// One sample of a cell, without what the cell already says.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    pub repeat: u32,
    pub take: u32,
    pub messages: u64,
    /// all messages, seconds; `None` unless timed
    pub seconds: Option<f64>,
    pub ack_seconds: Option<f64>,
    pub isolated: bool,
    pub status: Status,
    pub reason: Option<String>,
}

impl Shot {
    fn of(sample: &Sample) -> Self {
        Self {
            repeat: sample.repeat,
            take: sample.take,
            messages: sample.messages,
            seconds: sample.seconds,
            ack_seconds: sample.ack_seconds,
            isolated: sample.isolated,
            status: sample.status,
            reason: sample.reason.clone(),
        }
    }
}

/// The samples of one cell at one size, and their summary.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeCell {
    /// size of one message, bytes
    pub bytes: u64,
    /// every sample, in the order in which it came
    pub shots: Vec<Shot>,
    /// the newest take; summaries are of this one only
    pub take: u32,
    /// good samples of the newest take
    pub count: usize,
    /// median seconds of a message over the newest take's good samples; NaN if there is none
    pub median: f64,
    /// worst state of the newest take: a cell with one timeout is not `ok`
    pub status: Status,
}

impl SizeCell {
    /// Good samples of the newest take, seconds a message, in the order in which they came.
    pub fn times(&self) -> Vec<f64> {
        self.shots
            .iter()
            .filter(|shot| shot.take == self.take && shot.status == Status::Ok)
            .filter_map(|shot| shot.seconds.map(|seconds| seconds / shot.messages.max(1) as f64))
            .collect()
    }

    /// Median bandwidth, bytes per second; NaN if no sample is good.
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.median
    }

    /// 95 % interval of the median seconds a message; `None` below 6 samples.
    pub fn interval(&self) -> Option<Interval> {
        median_interval(&self.times(), 0.95)
    }

    /// 95 % interval of the median bandwidth, bytes per second.
    pub fn bandwidth_interval(&self) -> Option<Interval> {
        self.interval().map(|time| Interval { low: self.bytes as f64 / time.high, high: self.bytes as f64 / time.low })
    }

    fn push(&mut self, shot: Shot) {
        if shot.take > self.take {
            self.take = shot.take;
            self.status = Status::Ok;
        }
        if shot.take == self.take && severity(shot.status) > severity(self.status) {
            self.status = shot.status;
        }
        self.shots.push(shot);
    }

    /// Forget what an earlier job of the session could not time and these samples try again: a repeat has one state.
    /// How many were forgotten.
    fn tried_again(&mut self, samples: &[Sample]) -> usize {
        if self.status == Status::Ok {
            return 0;
        }
        let again: HashSet<(u32, u32)> = samples.iter().map(|sample| (sample.take, sample.repeat)).collect();
        let failed = |shot: &Shot| matches!(shot.status, Status::Timeout | Status::Waived);
        let before = self.shots.len();
        self.shots.retain(|shot| !(failed(shot) && again.contains(&(shot.take, shot.repeat))));
        let newest = self.shots.iter().filter(|shot| shot.take == self.take).map(|shot| shot.status);
        self.status = newest.max_by_key(|&status| severity(status)).unwrap_or(Status::Ok);
        before - self.shots.len()
    }

    /// Bring the summary up to date; once a probe, since it sorts.
    fn summarise(&mut self) {
        let mut times = self.times();
        self.count = times.len();
        self.median = median(&mut times);
    }
}

const fn severity(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::Waived => 1,
        Status::Timeout => 2,
        Status::Corrupt => 3,
    }
}

/// Every cell of every pattern that has a sample.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    known: HashMap<Cell, Vec<SizeCell>>,
    sizes: Vec<u64>,
    samples: u64,
}

impl Cells {
    /// Sizes that any cell has a sample of, ascending.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Samples in all.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// What is known of a cell at one size.
    pub fn get(&self, cell: Cell, bytes: u64) -> Option<&SizeCell> {
        self.sizes_of(cell).iter().find(|size| size.bytes == bytes)
    }

    /// What is known of a cell, by size ascending.
    pub fn sizes_of(&self, cell: Cell) -> &[SizeCell] {
        self.known.get(&cell).map_or(&[], Vec::as_slice)
    }

    /// All cells, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Cell, &[SizeCell])> {
        self.known.iter().map(|(&cell, sizes)| (cell, sizes.as_slice()))
    }

    /// Take in the samples of a probe; the cells that they belong to, usually one.
    pub(super) fn add(&mut self, samples: &[Sample]) -> Vec<Cell> {
        let mut touched = Vec::new();
        let one = |a: &Sample, b: &Sample| (a.pattern, a.from, a.to, a.bytes) == (b.pattern, b.from, b.to, b.bytes);
        for group in samples.chunk_by(one) {
            let Some(first) = group.first() else { continue };
            let cell = Cell { pattern: first.pattern, from: first.from, to: first.to };
            let size = self.size_cell(cell, first.bytes, first.take);
            let forgotten = size.tried_again(group) as u64;
            for sample in group {
                size.push(Shot::of(sample));
            }
            size.summarise();
            self.samples = self.samples + group.len() as u64 - forgotten;
            touched.push(cell);
        }
        touched
    }

    fn size_cell(&mut self, cell: Cell, bytes: u64, take: u32) -> &mut SizeCell {
        if let Err(at) = self.sizes.binary_search(&bytes) {
            self.sizes.insert(at, bytes);
        }
        let sizes = self.known.entry(cell).or_default();
        let at = sizes.binary_search_by_key(&bytes, |size| size.bytes).unwrap_or_else(|at| {
            sizes.insert(at, SizeCell { bytes, shots: Vec::new(), take, count: 0, median: f64::NAN, status: Status::Ok });
            at
        });
        &mut sizes[at]
    }
}
