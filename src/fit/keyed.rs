//! A fit with its key, and how it is written.

use std::ops::Range;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::bootstrap::Confidence;
use super::key::{Key, Kind};
use super::line::{Extrapolation, FitError, Line, LineIntervals, Point};
use super::segments::segments;
use super::stats::Interval;
use crate::topology::PathClass;

/// α + bytes/bandwidth of what a key names.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub kind: Kind,
    pub key: Key,
    /// what all its messages travel over; `None` where they differ, and for relays
    pub path: Option<PathClass>,
    /// one line through all sizes, whatever the segments
    pub line: Line,
    /// `None` below 6 repeats a size, or where none were asked for
    pub intervals: Option<LineIntervals>,
    /// times behind it, over all sizes
    pub n: usize,
    /// measured sizes
    pub sizes: usize,
    /// one a protocol, by ascending size; empty where one line serves
    pub segments: Vec<Segment>,
    /// how far the members of a class lie apart; `None` for a fit that is of no class
    pub spread: Option<Box<Spread>>,
}

/// The sizes of one protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    pub line: Line,
    pub intervals: Option<LineIntervals>,
}

/// The bandwidths of a class's members, bytes per second: a class with a wide spread is no class.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// members with a fit of their own
    pub count: usize,
    pub min: f64,
    pub min_key: Key,
    pub median: f64,
    pub max: f64,
    pub max_key: Key,
}

impl Fit {
    /// Fits one curve; orders the points by size.
    pub fn of(
        kind: Kind,
        key: Key,
        path: Option<PathClass>,
        points: &mut [Point],
        confidence: Option<&Confidence>,
    ) -> Result<Self, FitError> {
        points.sort_unstable_by_key(|point| point.bytes);
        let line = Line::fit(points)?;
        let intervals = |points: &[Point], line: &Line| confidence.and_then(|confidence| confidence.of_line(points, line));
        let segment = |range: Range<usize>| {
            let points = &points[range];
            Line::fit(points).map(|line| Segment { line, intervals: intervals(points, &line) })
        };
        let segments = segments(points).into_iter().map(segment).collect::<Result<_, _>>()?;
        let n = points.iter().map(|point| point.n).sum();
        Ok(Self { kind, key, path, line, intervals: intervals(points, &line), n, sizes: points.len(), segments, spread: None })
    }

    /// Sizes at which a new protocol begins, bytes: the first measured one of each segment but the first.
    pub fn breakpoints(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().skip(1).map(|segment| segment.line.smallest)
    }

    /// The line that a size is on.
    pub fn line_at(&self, bytes: u64) -> &Line {
        let before = self.segments.iter().rev().find(|segment| segment.line.smallest <= bytes);
        before.or(self.segments.first()).map_or(&self.line, |segment| &segment.line)
    }

    /// Seconds for a message of a size; refused outside the measured sizes where the line there is too poor.
    pub fn predict(&self, bytes: u64) -> Result<f64, Extrapolation> {
        let line = self.line_at(bytes);
        // Between the last size of one segment and the first of the next nothing was measured, but both sides were.
        if (self.line.smallest..=self.line.largest).contains(&bytes) { Ok(line.seconds(bytes)) } else { line.predict(bytes) }
    }
}

/// Per second or so: what files hold.
const MICROSECONDS: f64 = 1e6;
const GBPS: f64 = 1e-9;

/// An interval as `[low, high]`; ends that are not finite become null in JSON.
fn ends(interval: Interval, factor: f64) -> [f64; 2] {
    let Interval { low, high } = interval.times(factor);
    [low, high]
}

fn write_line<S: SerializeStruct>(to: &mut S, line: &Line, intervals: Option<&LineIntervals>) -> Result<(), S::Error> {
    to.serialize_field("alpha_us", &(line.alpha * MICROSECONDS))?;
    to.serialize_field("gbps", &(line.bandwidth * GBPS))?;
    to.serialize_field("alpha_ci", &intervals.map(|intervals| ends(intervals.alpha, MICROSECONDS)))?;
    to.serialize_field("gbps_ci", &intervals.map(|intervals| ends(intervals.bandwidth, GBPS)))?;
    to.serialize_field("max_rel_error", &line.max_rel_error)?;
    to.serialize_field("smallest", &line.smallest)?;
    to.serialize_field("largest", &line.largest)
}

impl Serialize for Segment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Segment", 7)?;
        write_line(&mut to, &self.line, self.intervals.as_ref())?;
        to.end()
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Spread", 6)?;
        to.serialize_field("count", &self.count)?;
        to.serialize_field("min_gbps", &(self.min * GBPS))?;
        to.serialize_field("min_key", &self.min_key)?;
        to.serialize_field("median_gbps", &(self.median * GBPS))?;
        to.serialize_field("max_gbps", &(self.max * GBPS))?;
        to.serialize_field("max_key", &self.max_key)?;
        to.end()
    }
}

impl Serialize for Fit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Fit", 15)?;
        to.serialize_field("pattern", &self.kind)?;
        to.serialize_field("key", &self.key)?;
        match &self.path {
            Some(path) => to.serialize_field("path", path)?,
            None => to.skip_field("path")?,
        }
        write_line(&mut to, &self.line, self.intervals.as_ref())?;
        to.serialize_field("n", &self.n)?;
        to.serialize_field("sizes", &self.sizes)?;
        to.serialize_field("breakpoints", &self.breakpoints().collect::<Vec<_>>())?;
        if self.segments.is_empty() {
            to.skip_field("segments")?;
        } else {
            to.serialize_field("segments", &self.segments)?;
        }
        match &self.spread {
            Some(spread) => to.serialize_field("spread", spread)?,
            None => to.skip_field("spread")?,
        }
        to.end()
    }
}
