//! What the root of a fan moved, and how many of its flows it served at once.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::bootstrap::Confidence;
use super::key::{Fan, Key, Kind};
use super::keyed::Fit;
use super::observe::{FanKey, RootRow};
use super::stats::{Interval, median, median_interval};
use crate::topology::PathClass;

/// One fan at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct FanRate {
    pub fan: Fan,
    pub root: usize,
    /// ascending
    pub peers: Box<[usize]>,
    /// what all its messages travel over; `None` where they differ
    pub path: Option<PathClass>,
    /// of one message
    pub bytes: u64,
    /// repeats
    pub n: usize,
    /// median until the root had (or had sent) all messages
    pub root_seconds: f64,
    /// all bytes over that time, bytes per second. A completion rate of this fan, not a capacity of its root.
    pub aggregate: f64,
    /// from order statistics; `None` below 6 repeats
    pub aggregate_ci: Option<Interval>,
    /// effective concurrency; `None` where a pair of the fan has no fit of its own
    pub concurrency: Option<f64>,
}

/// How many flows were served at once, as seen in the time of the whole: Σ bytes/rate, each flow alone, over the time together.
///
/// 1 is one after another, the number of flows is no sharing at all. Not clamped: less than 1 is a collapse, where the flows
/// take longer together than one by one.
pub fn effective_concurrency(flows: impl IntoIterator<Item = (u64, f64)>, seconds: f64) -> f64 {
    flows.into_iter().map(|(bytes, rate)| bytes as f64 / rate).sum::<f64>() / seconds
}

/// The rates of every fan and size; `roots` and `single` sorted.
pub(super) fn rates(
    roots: &[RootRow],
    fans: &[(FanKey, Option<PathClass>)],
    single: &[Fit],
    confidence: Option<&Confidence>,
) -> Vec<FanRate> {
    let rate = |rows: &[RootRow]| {
        let RootRow { fan, bytes, .. } = rows[0];
        let (FanKey { fan, root, peers }, path) = &fans[fan];
        let mut times: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
        let moved = bytes as f64 * peers.len() as f64;
        let interval = confidence.and_then(|confidence| median_interval(&times, confidence.level()));
        let root_seconds = median(&mut times);
        let alone = |&peer: &usize| {
            let (from, to) = if *fan == Fan::In { (peer, *root) } else { (*root, peer) };
            let key = Key::Pair { from, to };
            let index = single.binary_search_by(|fit| (fit.kind, &fit.key).cmp(&(Kind::Peer, &key))).ok()?;
            Some((bytes, single[index].line_at(bytes).bandwidth))
        };
        let flows: Option<Vec<(u64, f64)>> = peers.iter().map(alone).collect();
        FanRate {
            fan: *fan,
            root: *root,
            peers: peers.clone(),
            path: *path,
            bytes,
            n: times.len(),
            root_seconds,
            aggregate: moved / root_seconds,
            aggregate_ci: interval.map(|seconds| Interval { low: moved / seconds.high, high: moved / seconds.low }),
            concurrency: flows.map(|flows| effective_concurrency(flows, root_seconds)),
        }
    };
    roots.chunk_by(|a, b| (a.fan, a.bytes) == (b.fan, b.bytes)).map(rate).collect()
}

impl Serialize for FanRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("FanRate", 10)?;
        to.serialize_field("pattern", &self.fan.kind())?;
        to.serialize_field("root", &self.root)?;
        to.serialize_field("peers", &self.peers)?;
        match &self.path {
            Some(path) => to.serialize_field("path", path)?,
            None => to.skip_field("path")?,
        }
        to.serialize_field("bytes", &self.bytes)?;
        to.serialize_field("n", &self.n)?;
        to.serialize_field("root_seconds", &self.root_seconds)?;
        to.serialize_field("gbps", &(self.aggregate * 1e-9))?;
        to.serialize_field("gbps_ci", &self.aggregate_ci.map(|ci| [ci.low * 1e-9, ci.high * 1e-9]))?;
        to.serialize_field("concurrency", &self.concurrency)?;
        to.end()
    }
}
