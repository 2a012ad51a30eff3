//! Rules over the matrix of pairs.
//!
//! Two yardsticks: what the run's own pairs of a class give ([`usual`]), which shows what differs, and what the topology
//! expects, which shows a class that is slow as a whole. Which cells are slow is decided once ([`slow`]); [`cover`] finds the
//! fewest parts of the machine that explain them.

pub(super) mod asymmetry;
pub(super) mod class;
mod cover;
pub(super) mod failed;
pub(super) mod group;
pub(super) mod inverted;
pub(super) mod latency;
pub(super) mod line;
pub(super) mod nominal;
pub(super) mod pair;
mod slow;
pub(super) mod unsteady;
pub mod usual;
mod words;

#[cfg(test)]
mod tests;

pub use words::step;

use super::Severity;

/// Below this share of what is usual something is slow. Noise and the variety of healthy pairs stay above it (the published
/// 2x8 H20 box has pairs 16 % below the median), and the smallest step that is worth a person's time, 4 of 6 NVLinks, is below.
const SLOW: f64 = 0.8;

/// Below this it decides what a job takes: half of the lanes or links, a generation less, a port shared by two, and worse; with
/// room for what noise and α add to an exact half.
const BROKEN: f64 = 0.55;

/// A class as a whole is held against a table of efficiencies that is no better than about a quarter: NVLink of an 8-GPU box
/// measured 0.69 of it without a fault. So a warning begins where half is lost, and in between it is a note.
const CLASS_SLOW: f64 = 0.6;

/// Fewer repeats than this can be off by one accident.
const FEW: u32 = 3;

/// Most cells that a fact names.
const NAMED: usize = 8;

/// Most cells that a finding lights: two hosts' worth of a thousand ranks. A class of a million is named by its facts.
const LIT: usize = 1 << 14;

/// What losing this much of what is usual means.
fn severity(share: f64) -> Severity {
    if share < BROKEN {
        Severity::Problem
    } else if share < SLOW {
        Severity::Warning
    } else {
        Severity::Note
    }
}
