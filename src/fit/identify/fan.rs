//! A fan, and what each explanation makes of it.

use super::evidence::{Alone, Evidence};
use super::types::Explanation;
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit};

/// What an explanation leaves open; infinite where it does not bind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameters {
    /// R: capacity of the root, bytes per second
    pub root: f64,
    /// the same for each width, ascending
    pub widths: Vec<(usize, f64)>,
    /// X: capacity of the link at the root's border, bytes per second
    pub link: f64,
    /// c
    pub concurrency: f64,
    /// share of the slowest pair
    pub theta: f64,
}

impl Parameters {
    pub const FREE: Self = Self { root: f64::INFINITY, widths: Vec::new(), link: f64::INFINITY, concurrency: 1.0, theta: 0.0 };

    fn at(&self, width: usize) -> f64 {
        self.widths.iter().find(|known| known.0 == width).map_or(f64::INFINITY, |known| known.1)
    }
}

/// One fan as its pairs alone tell it. All seconds are of the bytes of one message, beyond latency.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fan {
    pub pattern: Pattern,
    pub root: usize,
    /// ascending
    pub peers: Vec<usize>,
    /// of all its messages; `None` where they differ
    pub path: Option<PathClass>,
    /// bytes of one message
    pub message: f64,
    pub latency: f64,
    /// of the slowest pair
    pub slowest: f64,
    /// of all pairs, one after another
    pub sum: f64,
    /// the longest of the sums over the peers of one socket (of one host, where they sit on several)
    by_source: f64,
    /// messages over the border of the root's socket (host, where only some peers sit on others)
    pub crossing: f64,
    crossing_sum: f64,
    /// of a single pair, bytes per second: of all, and of those over the border
    pub fastest: f64,
    pub fastest_crossing: f64,
}

impl Fan {
    /// `None` if a pair was not measured, or of a rank that this job has not.
    pub fn of(evidence: &Evidence<'_>, pattern: Pattern, root: usize, peers: &[usize], bytes: u64) -> Option<Self> {
        let mut peers = peers.to_vec();
        peers.sort_unstable();
        let ends = |peer: usize| if pattern == Pattern::FanOut { (root, peer) } else { (peer, root) };
        if peers.is_empty() || peers.iter().chain([&root]).any(|&rank| rank >= evidence.units.world()) {
            return None;
        }
        let alone = |&peer: &usize| {
            let (from, to) = ends(peer);
            evidence.alone(from, to, bytes)
        };
        let alone: Vec<Alone> = peers.iter().map(alone).collect::<Option<_>>()?;
        let paths: Vec<PathClass> = peers.iter().map(|&peer| evidence.path(peer, root)).collect();
        let path = paths.iter().all(|path| *path == paths[0]).then_some(paths[0]);
        let units = evidence.units;
        let border = if path == Some(PathClass::IntraNode) { Level::Socket } else { Level::Host };
        let crosses = |peer: usize| {
            let both = units.unit(border, peer).zip(units.unit(border, root));
            path != Some(PathClass::InterNode) && both.is_some_and(|(a, b)| a != b)
        };
        let mut sources: Vec<(Option<Unit>, f64)> = Vec::new();
        let message = bytes as f64;
        let mut fan = Self {
            pattern,
            root,
            path,
            message,
            latency: 0.0,
            slowest: 0.0,
            sum: 0.0,
            by_source: 0.0,
            crossing: 0.0,
            crossing_sum: 0.0,
            fastest: 0.0,
            fastest_crossing: 0.0,
            peers: Vec::new(),
        };
        for (&peer, alone) in peers.iter().zip(&alone) {
            fan.latency = fan.latency.max(alone.latency);
            fan.slowest = fan.slowest.max(alone.bytes);
            fan.sum += alone.bytes;
            fan.fastest = fan.fastest.max(message / alone.bytes);
            let source = units.unit(border, peer);
            match sources.iter_mut().find(|known| known.0 == source) {
                Some(known) => known.1 += alone.bytes,
                None => sources.push((source, alone.bytes)),
            }
            if crosses(peer) {
                fan.crossing += 1.0;
                fan.crossing_sum += alone.bytes;
                fan.fastest_crossing = fan.fastest_crossing.max(message / alone.bytes);
            }
        }
        fan.by_source = sources.iter().map(|source| source.1).fold(0.0, f64::max);
        fan.peers = peers;
        Some(fan)
    }

    pub fn width(&self) -> usize {
        self.peers.len()
    }

    /// Of all messages.
    pub fn bytes(&self) -> f64 {
        self.message * self.peers.len() as f64
    }

    /// Seconds beyond latency that an aggregate means.
    pub fn seconds_at(&self, aggregate: f64) -> f64 {
        let whole = self.bytes() / aggregate;
        (whole - self.latency).max(whole / 2.0)
    }

    /// Σ seconds alone over the seconds together.
    pub fn concurrency(&self, aggregate: f64) -> f64 {
        self.sum / self.seconds_at(aggregate)
    }

    /// The aggregate that an explanation predicts, bytes per second.
    pub fn predict(&self, by: Explanation, parameters: &Parameters) -> f64 {
        let root = self.bytes() / parameters.root;
        let link = self.crossing * self.message / parameters.link;
        let mixed = (1.0 - parameters.theta) * self.sum + parameters.theta * self.slowest;
        let seconds = match by {
            Explanation::SlowestPair => self.slowest,
            Explanation::Busiest => self.slowest.max(root).max(link),
            Explanation::BusiestByWidth => self.slowest.max(self.bytes() / parameters.at(self.width())).max(link),
            // No pair goes faster than alone.
            Explanation::TimeSharedBy if self.width() > 1 => self.slowest.max(self.sum / parameters.concurrency),
            Explanation::TimeShared | Explanation::TimeSharedBy => self.sum,
            Explanation::TimeSharedBySocket => self.by_source,
            Explanation::TimeSharedLink => self.slowest.max(root).max(self.crossing_sum),
            Explanation::Mixture => mixed,
            Explanation::MixtureBusiest => mixed.max(root).max(link),
        };
        self.bytes() / (self.latency + seconds)
    }
}
