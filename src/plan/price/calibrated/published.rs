//! Prices from numbers alone: fits as `toposcope fit --json` writes them, or as somebody published them.

use std::collections::HashMap;

use serde::Deserialize;
use thiserror::Error;

use super::{Calibrated, Capacities, Conditions, Terms};
use crate::fit::identify::Side;
use crate::fit::{Fit, Fits, Key, Kind, Line, Segment};
use crate::plan::MOST_RANKS;
use crate::sample::{Memory, MoverKind};
use crate::topology::{Level, PathClass, Placement, Topology, Units};

/// Fits without their samples, and what else is known.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Published {
    /// number of the host of each rank; empty where the fits' own pairs tell
    pub node_of: Vec<usize>,
    /// ranks that took part in the calibration; 0: as many as `node_of` has
    pub ranks: usize,
    /// how the bytes went
    pub mover: Option<MoverKind>,
    /// where they lay
    pub memory: Option<Memory>,
    pub fits: Vec<Entry>,
    /// capacities of hosts, sockets or ranks, each alike
    pub shared: Vec<SharedRate>,
    pub terms: Terms,
}

/// A capacity of every unit of a level.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedRate {
    pub level: Level,
    pub side: Side,
    /// of a rank's side: for which paths
    #[serde(default)]
    pub path: Option<PathClass>,
    pub gbps: f64,
}

/// One fit. Its `pattern` and `key` are those of [`Fit`] in files; other fields of such files are not needed.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    pub pattern: Kind,
    pub key: EntryKey,
    #[serde(default)]
    pub path: Option<PathClass>,
    #[serde(flatten)]
    pub line: EntryLine,
    #[serde(default)]
    pub segments: Vec<EntryLine>,
}

/// Fields of all keys; which are there says which one it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EntryKey {
    pub path: Option<PathClass>,
    pub width: Option<usize>,
    pub receive_path: Option<PathClass>,
    pub send_path: Option<PathClass>,
    pub rank: Option<usize>,
    pub from: Option<usize>,
    pub to: Option<usize>,
    pub root: Option<usize>,
    pub peers: Option<Vec<usize>>,
}

/// α, rate and what they rest on.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct EntryLine {
    /// microseconds
    #[serde(default)]
    pub alpha_us: f64,
    /// 1e9 bytes per second; absent where larger messages took no longer
    #[serde(default)]
    pub gbps: Option<f64>,
    #[serde(default)]
    pub max_rel_error: f64,
    /// measured sizes, bytes; absent where that was not published
    #[serde(default)]
    pub smallest: Option<u64>,
    #[serde(default)]
    pub largest: Option<u64>,
}

/// Why such numbers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishedError {
    #[error(
        "line {line}, column {column}: {what}; expected an array of fits (toposcope fit --json) or an object with \"fits\" and \"node_of\""
    )]
    Json { line: usize, column: usize, what: String },
    #[error("fit {number}: {what}")]
    Fit { number: usize, what: String },
    #[error("shared {number}: {what}")]
    Shared { number: usize, what: String },
    #[error("{0}")]
    Places(String),
}

impl Published {
    /// Reads either form.
    pub fn read(text: &str) -> Result<Self, PublishedError> {
        let told = |error: &serde_json::Error| PublishedError::Json {
            line: error.line(),
            column: error.column(),
            what: crate::units::plain(error.to_string().split(" at line ").next().unwrap_or_default()),
        };
        if text.trim_start().starts_with('[') {
            let fits = serde_json::from_str(text).map_err(|error| told(&error))?;
            Ok(Self { fits, ..Self::default() })
        } else {
            serde_json::from_str(text).map_err(|error| told(&error))
        }
    }

    /// A published class: pairs of a path.
    #[must_use]
    pub fn peer(mut self, path: PathClass, alpha_us: f64, gbps: f64, max_rel_error: f64) -> Self {
        let pattern = if path == PathClass::Local { Kind::Local } else { Kind::Peer };
        self.fits.push(Entry::of(pattern, EntryKey { path: Some(path), ..EntryKey::default() }, alpha_us, gbps, max_rel_error));
        self
    }

    /// A published fan: all bytes over the root's time, `Kind::Receive` or `Kind::Send`.
    #[must_use]
    pub fn fan(mut self, pattern: Kind, path: PathClass, width: usize, gbps: f64) -> Self {
        let key = EntryKey { path: Some(path), width: Some(width), ..EntryKey::default() };
        self.fits.push(Entry::of(pattern, key, 0.0, gbps, 0.0));
        self
    }

    /// Something that all units of a level have.
    #[must_use]
    pub fn shared(mut self, level: Level, side: Side, gbps: f64) -> Self {
        self.shared.push(SharedRate { level, side, path: None, gbps });
        self
    }

    /// The prices.
    pub fn prices(&self) -> Result<Calibrated, PublishedError> {
        let mut fits = Fits::default();
        for (number, entry) in self.fits.iter().enumerate() {
            let fit = entry.fit().map_err(|what| PublishedError::Fit { number, what })?;
            let class = matches!(fit.key, Key::Class { .. } | Key::FanClass { .. } | Key::Relay { .. });
            if class { fits.classes.push(fit) } else { fits.single.push(fit) }
        }
        let order = |a: &Fit, b: &Fit| (a.kind, &a.key).cmp(&(b.kind, &b.key));
        fits.classes.sort_by(order);
        fits.single.sort_by(order);
        let node_of = if self.node_of.is_empty() { places(&fits)? } else { self.node_of.clone() };
        if let Some(ranks) = [node_of.len(), self.ranks].into_iter().find(|&ranks| ranks > MOST_RANKS) {
            return Err(PublishedError::Places(format!("{ranks} ranks are more than {MOST_RANKS}")));
        }
        let place = |(rank, node): (usize, &usize)| Placement { rank, host: format!("node{node}"), ..Placement::default() };
        let units = Units::of(&Topology::of(node_of.iter().enumerate().map(place).collect()));
        let ranks = if self.ranks > 0 { self.ranks } else { node_of.len() };
        let mut prices = Calibrated::of_fits(units, &fits, Conditions { ranks, group: Vec::new(), mover: self.mover, memory: self.memory })
            .with_terms(self.terms);
        for (number, told) in self.shared.iter().enumerate() {
            if !(told.gbps > 0.0 && told.gbps.is_finite()) {
                return Err(PublishedError::Shared { number, what: format!("gbps: {} is not a rate above 0", told.gbps) });
            }
            let units = prices.units.clone();
            prices.shared.every(&units, told.level, told.side, told.path, &Capacities::Fixed(told.gbps * 1e9));
        }
        Ok(prices)
    }
}

impl Entry {
    fn of(pattern: Kind, key: EntryKey, alpha_us: f64, gbps: f64, max_rel_error: f64) -> Self {
        let line = EntryLine { alpha_us, gbps: Some(gbps), max_rel_error, smallest: None, largest: None };
        Self { pattern, path: key.path, key, line, segments: Vec::new() }
    }

    fn fit(&self) -> Result<Fit, String> {
        let segment = |line: &EntryLine| Ok(Segment { line: line.line()?, intervals: None });
        let segments = self.segments.iter().map(segment).collect::<Result<Vec<_>, String>>()?;
        let line = self.line.line()?;
        Ok(Fit { kind: self.pattern, key: self.key()?, path: self.path, line, intervals: None, n: 0, sizes: 0, segments, spread: None })
    }

    fn key(&self) -> Result<Key, String> {
        let key = &self.key;
        let told = [key.rank, key.from, key.to, key.root].into_iter().flatten().chain(key.peers.iter().flatten().copied());
        if let Some(rank) = told.into_iter().find(|&rank| rank >= MOST_RANKS) {
            return Err(format!("key: rank {rank}: expected below {MOST_RANKS}"));
        }
        let found = match key {
            EntryKey { rank: Some(rank), .. } => Key::Rank { rank: *rank },
            EntryKey { from: Some(from), to: Some(to), .. } => Key::Pair { from: *from, to: *to },
            EntryKey { root: Some(root), peers: Some(peers), .. } => {
                let mut peers = peers.clone();
                peers.sort_unstable();
                Key::Fan { root: *root, peers: peers.into() }
            }
            EntryKey { receive_path: Some(receive_path), send_path: Some(send_path), .. } => {
                Key::Relay { receive_path: *receive_path, send_path: *send_path }
            }
            EntryKey { path: Some(path), width: Some(width), .. } => Key::FanClass { path: *path, width: *width },
            EntryKey { path: Some(path), .. } => Key::Class { path: *path },
            _ => {
                return Err(
                    "key: expected {path}, {path, width}, {rank}, {from, to}, {root, peers} or {receive_path, send_path}".to_owned()
                );
            }
        };
        Ok(found)
    }
}

impl EntryLine {
    fn line(&self) -> Result<Line, String> {
        let alpha = self.alpha_us * 1e-6;
        if !(alpha >= 0.0 && alpha.is_finite()) {
            return Err(format!("alpha_us: {} is not a latency of 0 or more", self.alpha_us));
        }
        let bandwidth = self.gbps.map_or(f64::INFINITY, |gbps| gbps * 1e9);
        if bandwidth.is_nan() || bandwidth <= 0.0 {
            return Err(format!("gbps: {} is not a rate above 0", bandwidth / 1e9));
        }
        if bandwidth.is_infinite() && (alpha == 0.0 || self.largest.is_none()) {
            return Err("gbps: absent; expected a rate such as 53.6".to_owned());
        }
        if !(self.max_rel_error >= 0.0 && self.max_rel_error.is_finite()) {
            return Err(format!("max_rel_error: {} is not a share of 0 or more", self.max_rel_error));
        }
        let (smallest, largest) = (self.smallest.unwrap_or(0), self.largest.unwrap_or(u64::MAX));
        if smallest > largest {
            return Err(format!("smallest: {smallest} is more than largest, {largest}"));
        }
        Ok(Line { alpha, bandwidth, max_rel_error: self.max_rel_error, smallest, largest })
    }
}

/// Hosts of the ranks, from the paths of their pairs.
fn places(fits: &Fits) -> Result<Vec<usize>, PublishedError> {
    let pairs = || {
        fits.single.iter().filter_map(|fit| match (&fit.key, fit.path) {
            (Key::Pair { from, to }, Some(path)) => Some((*from, *to, path)),
            _ => None,
        })
    };
    let world = pairs().map(|(from, to, _)| from.max(to) + 1).max().unwrap_or(0);
    if world == 0 {
        let why = "no fit of a pair tells which ranks share a host";
        return Err(PublishedError::Places(format!("{why}: add \"node_of\": [0, 0, 1, 1], the host's number of each rank")));
    }
    // Everybody points to the least rank of its host.
    let mut host: Vec<usize> = (0..world).collect();
    let find = |host: &mut Vec<usize>, mut rank: usize| {
        while host[rank] != rank {
            host[rank] = host[host[rank]];
            rank = host[rank];
        }
        rank
    };
    for (from, to, path) in pairs() {
        if path == PathClass::IntraNode {
            let (a, b) = (find(&mut host, from), find(&mut host, to));
            host[a.max(b)] = a.min(b);
        }
    }
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    Ok((0..world)
        .map(|rank| {
            let root = find(&mut host, rank);
            let next = numbers.len();
            *numbers.entry(root).or_insert(next)
        })
        .collect())
}
