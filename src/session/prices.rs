//! What a session's samples say that transfers cost.

use super::{Model, fits, measured};
use crate::fit::Confidence;
use crate::plan::price::{Calibrated, Conditions};
use crate::topology::Efficiency;

/// Confidence of the intervals of rates.
const CONFIDENCE: f64 = 0.95;

/// Prices from all samples of a session: fits of pairs and ranks, and what was identified of what they share.
pub fn prices(model: &Model) -> Calibrated {
    let fits = fits(model, Some(&Confidence::new(CONFIDENCE)));
    // What the hardware should give says nothing of what it gave: any table of efficiencies does.
    let seen = measured(model, &Efficiency::default());
    let taken = &seen.provenance;
    let conditions = Conditions { ranks: seen.world(), group: taken.group.clone(), mover: Some(taken.mover), memory: Some(taken.memory) };
    Calibrated::new(seen.units.clone(), &fits, &seen.identified(), conditions)
}
