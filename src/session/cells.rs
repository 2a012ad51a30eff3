use std::collections::{HashMap, HashSet};

use super::mix::Mix;
use crate::fit::{Interval, median, median_interval, outliers_about};
use crate::sample::{Sample, Status};
use crate::sweep::{Cell, Enough};

/// One sample of a cell, without what the cell already says. Small: a thousand ranks have millions.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// all messages, seconds; NaN unless timed
    seconds: f64,
    ack_seconds: f64,
    /// what few samples have
    words: Option<Box<Words>>,
    pub repeat: u32,
    pub take: u32,
    pub messages: u32,
    pub isolated: bool,
    /// discarded by rule
    pub warmup: bool,
    /// far from the others by rule; counted all the same
    pub outlier: bool,
    pub status: Status,
}

/// What is told of a sample in words.
#[derive(Debug, Clone, PartialEq)]
struct Words {
    reason: Option<Box<str>>,
    via: Option<Box<str>>,
}

impl Shot {
    pub(super) fn of(sample: &Sample) -> Self {
        let [reason, via] = [&sample.reason, &sample.via].map(|words| words.as_deref().map(Into::into));
        Self {
            repeat: sample.repeat,
            take: sample.take,
            messages: u32::try_from(sample.messages).unwrap_or(u32::MAX),
            seconds: sample.seconds.unwrap_or(f64::NAN),
            ack_seconds: sample.ack_seconds.unwrap_or(f64::NAN),
            isolated: sample.isolated,
            warmup: sample.warmup,
            outlier: false,
            status: sample.status,
            words: (reason.is_some() || via.is_some()).then(|| Box::new(Words { reason, via })),
        }
    }

    /// All messages, seconds; `None` unless timed.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.seconds).filter(|seconds| !seconds.is_nan())
    }

    /// What was taken off for acknowledgements, seconds; `None` unless timed.
    pub fn ack_seconds(&self) -> Option<f64> {
        Some(self.ack_seconds).filter(|seconds| !seconds.is_nan())
    }

    /// Why it is not good.
    pub fn reason(&self) -> Option<&str> {
        self.words.as_ref()?.reason.as_deref()
    }

    /// How its bytes went, where the mover told it ([`Sample::via`]).
    pub fn via(&self) -> Option<&str> {
        self.words.as_ref()?.via.as_deref()
    }

    /// Seconds of one message, of a good sample that is no warm-up.
    pub fn seconds_per_message(&self) -> Option<f64> {
        self.seconds().filter(|_| self.status == Status::Ok && !self.warmup).map(|seconds| seconds / f64::from(self.messages.max(1)))
    }

    /// The sample again; `blank` says where it belongs.
    pub fn sample(&self, blank: Sample) -> Sample {
        Sample {
            repeat: self.repeat,
            take: self.take,
            messages: u64::from(self.messages),
            seconds: self.seconds(),
            ack_seconds: self.ack_seconds(),
            isolated: self.isolated,
            warmup: self.warmup,
            outlier: self.outlier,
            status: self.status,
            reason: self.reason().map(str::to_owned),
            via: self.via().map(str::to_owned),
            ..blank
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
    /// why there are no further samples, once there will be none
    pub enough: Option<Enough>,
}

impl SizeCell {
    /// Good samples of the newest take, seconds a message, in the order in which they came.
    pub fn times(&self) -> Vec<f64> {
        self.shots.iter().filter(|shot| shot.take == self.take).filter_map(Shot::seconds_per_message).collect()
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
        let again: HashSet<(u32, u32)> =
            samples.iter().filter(|sample| !sample.warmup).map(|sample| (sample.take, sample.repeat)).collect();
        let failed = |shot: &Shot| matches!(shot.status, Status::Timeout | Status::Waived);
        let before = self.shots.len();
        self.shots.retain(|shot| !(failed(shot) && again.contains(&(shot.take, shot.repeat))));
        let newest = self.shots.iter().filter(|shot| shot.take == self.take).map(|shot| shot.status);
        self.status = newest.max_by_key(|&status| severity(status)).unwrap_or(Status::Ok);
        before - self.shots.len()
    }

    /// Bring the summary up to date; once a probe, since it sorts.
    fn summarise(&mut self) {
        (self.count, self.median) = flag_outliers(self.shots.iter_mut().filter(|shot| shot.take == self.take));
    }
}

/// Flag which of these are outliers among the good ones: derived from the samples, whatever a file says. How many are good, and
/// their median seconds a message.
pub(super) fn flag_outliers<'a>(shots: impl Iterator<Item = &'a mut Shot>) -> (usize, f64) {
    let (mut good, times): (Vec<&mut Shot>, Vec<f64>) =
        shots.filter_map(|shot| shot.seconds_per_message().map(|time| (shot, time))).unzip();
    let center = median(&mut times.clone());
    for (shot, far) in good.iter_mut().zip(outliers_about(center, &times)) {
        shot.outlier = far;
    }
    (times.len(), center)
}

pub(super) const fn severity(status: Status) -> u8 {
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
    known: HashMap<Cell, Vec<SizeCell>, Mix>,
    sizes: Vec<u64>,
    samples: u64,
}

impl Cells {
    /// Sizes that any cell has a sample of, ascending.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Samples in all, warm-ups not counted.
    pub(super) fn samples(&self) -> u64 {
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
    pub(super) fn add(&mut self, samples: &[Sample], enough: Option<Enough>) -> Vec<Cell> {
        let mut touched = Vec::new();
        let one = |a: &Sample, b: &Sample| (a.pattern, a.from, a.to, a.bytes) == (b.pattern, b.from, b.to, b.bytes);
        for group in samples.chunk_by(one) {
            let Some(first) = group.first() else { continue };
            let cell = Cell { pattern: first.pattern, from: first.from, to: first.to };
            let size = self.size_cell(cell, first.bytes, first.take);
            let forgotten = size.tried_again(group) as u64;
            // Most cells get all their samples at once, and there may be millions of them.
            if size.shots.is_empty() {
                size.shots.reserve_exact(group.len());
            }
            for sample in group {
                size.push(Shot::of(sample));
            }
            size.enough = enough.or(size.enough);
            size.summarise();
            let warmups = group.iter().filter(|sample| sample.warmup).count() as u64;
            self.samples = self.samples + group.len() as u64 - warmups - forgotten;
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
            // A cell of many ranks has one size, or a few: no more room than that.
            sizes.reserve_exact(1);
            sizes.insert(at, SizeCell { bytes, shots: Vec::new(), take, count: 0, median: f64::NAN, status: Status::Ok, enough: None });
            at
        });
        &mut sizes[at]
    }
}
