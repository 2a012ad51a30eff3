//! Sizes, rates, times and text as people write and read them. No I/O.
//!
//! Bandwidth is bytes per second, decimal: 1 GB/s = 1e9 B/s. Sizes are binary: 1 KiB = 1024 B.

mod rank_set;
mod rate;
mod size;
mod text;

pub use rank_set::parse_ranks;
pub use rate::{parse_rate, parse_seconds};
pub use size::{format_size, parse_size, parse_sizes};
pub use text::{format_count, format_duration, format_gbps, format_ranks, format_seconds, plain, plain_json};

/// What was wrong with a value a person typed, and what would have been right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not {expected}")]
pub struct UnitError {
    /// the text as typed
    pub value: String,
    /// what was expected, with an example
    pub expected: String,
}

impl UnitError {
    pub(crate) fn new(value: &str, expected: impl Into<String>) -> Self {
        Self { value: plain(value), expected: expected.into() }
    }
}
