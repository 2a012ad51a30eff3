//! What a pair costs by itself: its own fit, else that of its class.

use std::collections::HashMap;

use crate::fit::{Fit, Fits, Key, Kind, Line};
use crate::topology::PathClass;

/// One fit as a price: a line for each protocol, by ascending size.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    lines: Box<[Line]>,
    /// half the 95 % interval of the rate as a share of it
    half: f64,
}

/// α and rate of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub alpha: f64,
    pub rate: f64,
}

impl Curve {
    fn of(fit: &Fit) -> Self {
        let own: Vec<Line> = if fit.segments.is_empty() { vec![fit.line] } else { fit.segments.iter().map(|one| one.line).collect() };
        let intervals = fit.segments.last().map_or(fit.intervals, |last| last.intervals);
        let bandwidth = fit.segments.last().map_or(fit.line.bandwidth, |last| last.line.bandwidth);
        let half = intervals.map(|both| (both.bandwidth.high - both.bandwidth.low) / 2.0 / bandwidth);
        Self { lines: own.into(), half: half.filter(|half| half.is_finite()).unwrap_or(0.0) }
    }

    fn line(&self, bytes: u64) -> &Line {
        let before = self.lines.partition_point(|line| line.smallest <= bytes);
        &self.lines[before.saturating_sub(1)]
    }

    pub fn at(&self, bytes: u64) -> Cost {
        let line = self.line(bytes);
        if line.bandwidth.is_finite() {
            return Cost { alpha: line.alpha, rate: line.bandwidth };
        }
        // Larger messages took no longer: what the largest one got is all that is known.
        Cost { alpha: 0.0, rate: line.largest as f64 / line.alpha }
    }

    /// How far the rate of a size may be off: the interval and what the line misses.
    pub fn half(&self, bytes: u64) -> f64 {
        self.half.hypot(self.line(bytes).max_rel_error)
    }

    /// Largest relative error of the line of a size.
    pub fn misses(&self, bytes: u64) -> f64 {
        self.line(bytes).max_rel_error
    }

    /// Smallest and largest measured size.
    pub fn sizes(&self) -> (u64, u64) {
        let ends = self.lines.iter().map(|line| (line.smallest, line.largest));
        ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
    }

    /// True where the size was not measured and the line is too poor to say.
    pub fn refuses(&self, bytes: u64) -> bool {
        let (smallest, largest) = self.sizes();
        !(smallest..=largest).contains(&bytes) && self.line(bytes).predict(bytes).is_err()
    }
}

/// A class's price, and how far its members lie apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClassCurve {
    pub curve: Curve,
    /// half of what lies between the slowest and the fastest member, as a share of the class's rate
    pub spread: f64,
}

/// Pairs and ranks by themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Links {
    /// (from, to); a rank's own copies are from it to itself
    own: HashMap<(u32, u32), Curve>,
    classes: [Option<ClassCurve>; 3],
    /// of a rank that sends while it receives, as all others do: by how it receives, and how it sends
    relays: HashMap<(PathClass, PathClass), Curve>,
}

const fn at(path: PathClass) -> usize {
    match path {
        PathClass::Local => 0,
        PathClass::IntraNode => 1,
        PathClass::InterNode => 2,
    }
}

/// What was found for a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub curve: &'a Curve,
    /// of the class where the pair itself was not measured
    pub class: Option<&'a ClassCurve>,
}

impl Links {
    pub fn of(fits: &Fits) -> Self {
        let mut links = Self::default();
        for fit in &fits.single {
            let pair = match (fit.kind, &fit.key) {
                (Kind::Local, Key::Rank { rank }) => (*rank, *rank),
                (Kind::Peer, Key::Pair { from, to }) => (*from, *to),
                _ => continue,
            };
            if let (Ok(from), Ok(to)) = (u32::try_from(pair.0), u32::try_from(pair.1)) {
                links.own.insert((from, to), Curve::of(fit));
            }
        }
        for fit in &fits.classes {
            if let (Kind::Relay, Key::Relay { receive_path, send_path }) = (fit.kind, &fit.key) {
                links.relays.insert((*receive_path, *send_path), Curve::of(fit));
            }
            if let (Kind::Local | Kind::Peer, Key::Class { path }) = (fit.kind, &fit.key) {
                let spread = fit.spread.as_ref().map_or(0.0, |told| (told.max - told.min) / 2.0 / fit.line.bandwidth);
                links.classes[at(*path)] = Some(ClassCurve { curve: Curve::of(fit), spread: spread.max(0.0) });
            }
        }
        links
    }

    /// The pair's own curve, else its class's.
    pub fn find(&self, path: PathClass, from: usize, to: usize) -> Option<Found<'_>> {
        let own = u32::try_from(from).ok().zip(u32::try_from(to).ok()).and_then(|pair| self.own.get(&pair));
        own.map(|curve| Found { curve, class: None })
            .or_else(|| self.classes[at(path)].as_ref().map(|class| Found { curve: &class.curve, class: Some(class) }))
    }

    /// Bytes per second that a rank sends while it receives as many, all others alike.
    pub fn relay(&self, receive: PathClass, send: PathClass, bytes: u64) -> Option<f64> {
        Some(self.relays.get(&(receive, send))?.at(bytes).rate)
    }

    pub fn has_relays(&self) -> bool {
        !self.relays.is_empty()
    }

    /// Bytes per second of a class, of its large messages.
    pub fn class_rate(&self, path: PathClass) -> Option<f64> {
        let class = self.classes[at(path)].as_ref()?;
        Some(class.curve.at(u64::MAX).rate)
    }
}
