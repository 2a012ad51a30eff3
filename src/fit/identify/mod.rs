//! Which resources bind: capacities, concurrency and hidden sharing from what ran at the same time, with the routes as prior
//! (method.md, "The resource model"). No I/O.
//!
//! Evidence are the rates of pairs alone and the times of transfers that ran together: fans, relays, duplex pairs, sets. Every
//! fan is explained by every [`Explanation`]; the one with the smallest error is preferred, all errors are kept, and where the
//! data cannot tell two of them apart that is said, with the fan that could ([`stands`], [`undecided`]). What passed each side of
//! a rank, switch, socket or host, and where that was all it could, is [`capacities`]; what slows flows that pass nothing known
//! in common is [`hidden`].

mod capacities;
mod duplex;
mod evidence;
mod fan;
mod fitted;
mod hidden;
mod resources;
mod stands;
#[cfg(test)]
mod tests;
mod types;
mod undecided;
mod words;

pub use evidence::{Evidence, Told};
pub use resources::passes;
pub use types::{
    Capacity, DuplexRatio, Explained, Explanation, Extreme, ExtremeExplained, Hidden, Identified, Owner, PairRates, Side, Stand, Together,
    Undecided,
};
pub use words::resource as name;

use crate::topology::Units;

/// Everything that pairs and what ran together tell.
///
/// `rate(from, to)` is what a pair gives alone, bytes per second at about the size of the evidence; `None` where it was not measured.
pub fn identify(units: &Units, rate: &PairRates<'_>, together: &[Together], extremes: &[Extreme]) -> Identified {
    identify_all(&Evidence { together, extremes, ..Evidence::new(units, rate) })
}

/// Everything that the evidence tells.
pub fn identify_all(evidence: &Evidence<'_>) -> Identified {
    let ran = evidence.ran();
    let (alike, open) = stands::alike(evidence, &ran);
    let passed: Vec<_> = ran.iter().map(|ran| resources::passed_in(evidence, ran)).collect();
    let carried = resources::Carried::of(evidence, &ran, &passed);
    let (hidden, explained) = hidden::hidden(evidence, &ran, &passed, &carried);
    let capacities = capacities::capacities(evidence, &ran, &passed, &carried, &alike, (&hidden, &explained));
    Identified {
        stands: alike.iter().flat_map(|alike| alike.standings.iter().map(|standing| standing.stand.clone())).collect(),
        fans: alike.iter().flat_map(stands::Alike::explained).chain(open).collect(),
        extremes: alike.iter().flat_map(stands::Alike::extremes).collect(),
        undecided: alike.iter().flat_map(|alike| undecided::undecided(evidence, alike)).collect(),
        capacities,
        duplex: duplex::ratios(evidence),
        hidden,
    }
}
