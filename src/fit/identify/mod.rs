//! Which resources bind: capacities, concurrency and hidden sharing from what ran at the same time, with the routes as prior
//! (method.md, "The resource model"). No I/O.
//!
//! Evidence are the rates of pairs alone and the times of transfers that ran together: fans, relays, duplex pairs, sets. Every
//! fan is explained by every [`Explanation`]; the one with the smallest error is preferred, all errors are kept, and where the
//! data cannot tell two of them apart that is said, with the fan that could.

mod types;

pub use types::{Capacity, Explained, Explanation, Extreme, Hidden, Identified, Owner, PairRates, Side, Stand, Together, Undecided};

use crate::topology::Units;

/// Everything that the evidence tells.
///
/// `rate(from, to)` is what a pair gives alone, bytes per second at about the size of the evidence; `None` where it was not measured.
pub fn identify(units: &Units, rate: &PairRates<'_>, together: &[Together], extremes: &[Extreme]) -> Identified {
    let _ = (units, rate, together, extremes);
    Identified::default()
}
