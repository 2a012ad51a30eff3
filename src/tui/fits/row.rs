use std::hash::Hash;

use crate::fit::{Fit, Key, Kind};
use crate::topology::PathClass;

/// Which ranks or paths a row is of; small, since there may be a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    Class(PathClass),
    /// all fans of a width over one path class
    FanClass(PathClass, u32),
    /// received over, sent over
    Relay(PathClass, PathClass),
    Rank(u32),
    Pair(u32, u32),
    /// number of the fan in the book
    Fan(u32),
}

/// One fit as a line of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub kind: Kind,
    pub id: Id,
    pub path: Option<PathClass>,
    /// seconds
    pub alpha: f64,
    /// bytes per second
    pub bandwidth: f64,
    /// ends of the 95 % intervals of both; NaN without
    pub alpha_ci: [f32; 2],
    pub bandwidth_ci: [f32; 2],
    /// largest relative error
    pub error: f32,
    /// times behind it; 0 once there is no fit any more
    pub n: u32,
    /// first breakpoint, bytes; 0 without
    pub first_break: u64,
    pub breaks: u8,
}

impl Row {
    /// A fit's numbers.
    pub fn of(id: Id, fit: &Fit) -> Self {
        let ends = |pick: fn(&crate::fit::LineIntervals) -> crate::fit::Interval| {
            fit.intervals.as_ref().map_or([f32::NAN; 2], |intervals| {
                let interval = pick(intervals);
                [interval.low as f32, interval.high as f32]
            })
        };
        Self {
            kind: fit.kind,
            id,
            path: fit.path,
            alpha: fit.line.alpha,
            bandwidth: fit.line.bandwidth,
            alpha_ci: ends(|intervals| intervals.alpha),
            bandwidth_ci: ends(|intervals| intervals.bandwidth),
            error: fit.line.max_rel_error as f32,
            n: u32::try_from(fit.n).unwrap_or(u32::MAX),
            first_break: fit.breakpoints().next().unwrap_or(0),
            breaks: u8::try_from(fit.breakpoints().count()).unwrap_or(u8::MAX),
        }
    }
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Column {
    /// classes first, then by kind and key
    #[default]
    Kind,
    /// by rank, of all kinds
    Key,
    Alpha,
    Bandwidth,
    Error,
    N,
    Breaks,
}

impl Column {
    /// All, left to right.
    pub const ALL: [Self; 7] = [Self::Kind, Self::Key, Self::Alpha, Self::Bandwidth, Self::Error, Self::N, Self::Breaks];

    /// The column after this one, round and round.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// True if the largest comes first until a person turns it round: the slow and the poor ones are looked for.
    pub const fn largest_first(self) -> bool {
        matches!(self, Self::Alpha | Self::Error | Self::N | Self::Breaks)
    }
}

/// Path classes and widths as a key is written: `intra_node`, `intra_node ×4`, `inter_node → intra_node`, `3 → 7`.
pub fn key_text(key: &Key, kind: Kind) -> String {
    match key {
        Key::Class { path } => path.name().to_owned(),
        Key::FanClass { path, width } => format!("{} ×{width}", path.name()),
        Key::Relay { receive_path, send_path } if receive_path == send_path => receive_path.name().to_owned(),
        Key::Relay { receive_path, send_path } => format!("{} → {}", receive_path.name(), send_path.name()),
        Key::Rank { rank } => rank.to_string(),
        Key::Pair { from, to } => format!("{from} → {to}"),
        Key::Fan { root, peers } => {
            let arrow = if matches!(kind, Kind::FanIn | Kind::Receive) { '←' } else { '→' };
            format!("{root} {arrow} {}", crate::units::format_ranks(peers))
        }
    }
}
