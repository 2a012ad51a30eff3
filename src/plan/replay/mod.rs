//! Traffic over prices: when each flow runs, how full each resource is, and which one binds.
//!
//! A flow begins when its stage's turn has come and the flows that it waits for are complete. Then come packing (one copy after
//! another within a rank) and the latency of its messages, then its bytes at their fair share of every resource, which changes
//! whenever a flow begins or ends ([`crate::fabric::shares`]), then unpacking.

mod loads;
mod run;
mod say;
#[cfg(test)]
mod tests;
mod types;

pub use types::{Bottleneck, Epoch, FlowTime, Replay, ResourceLoad, StageTime, Warning};

use super::Traffic;
use super::price::{PriceError, Prices};
use crate::fit::Interval;
use run::Outcome;

/// Most that an interval widens a rate either way: beyond that a rate says nothing.
const WIDEST: f64 = 0.9;

/// What a traffic takes, and why.
///
/// n flows of which a run at once cost about n·a; where that is out of reach (a hundred thousand flows that hinder each other) several
/// ends are looked at as one, and a warning says so.
///
/// # Errors
/// Traffic that makes no sense, ranks and pairs without a price, and bytes that would have to pass where nothing does.
pub fn replay(traffic: &Traffic, prices: &dyn Prices) -> Result<Replay, PriceError> {
    traffic.check().map_err(PriceError::Traffic)?;
    let outcome = run::run(traffic, prices, &[], true)?;
    let interval = interval(traffic, prices, &outcome)?;
    let mut warnings = prices.warnings(traffic);
    warnings.extend(outcome.warnings());
    let (resources, epochs) = outcome.loads.told(prices, outcome.epochs, traffic.stages.len());
    let told = say::Told { traffic, flows: &outcome.flows, latent: &outcome.latent, causes: &outcome.causes, resources: &resources };
    let stages = told.stages();
    let bottleneck = told.bottleneck(&stages, outcome.seconds);
    Ok(Replay {
        seconds: outcome.seconds,
        interval,
        prepare: traffic.chunks as f64 * prices.terms().chunk,
        stages,
        flows: outcome.flows,
        epochs,
        resources,
        bottleneck,
        warnings,
    })
}

/// The same traffic with every rate at the one and the other end of its interval.
fn interval(traffic: &Traffic, prices: &dyn Prices, outcome: &Outcome) -> Result<Interval, PriceError> {
    let seconds = outcome.seconds;
    let half = |flow: &super::Flow| {
        let half = prices.uncertainty(flow.from, flow.to, flow.bytes / u64::from(flow.messages));
        if half.is_finite() { half.clamp(0.0, WIDEST) } else { WIDEST }
    };
    let halves: Vec<f64> = traffic.flows.iter().map(half).collect();
    if halves.iter().all(|half| *half == 0.0) {
        return Ok(Interval { low: seconds, high: seconds });
    }
    let end = |sign: f64| {
        let factors: Vec<f64> = halves.iter().map(|half| 1.0 + sign * half).collect();
        Ok(run::run(traffic, prices, &factors, false)?.seconds)
    };
    Ok(Interval { low: end(1.0)?, high: end(-1.0)? }.with(seconds))
}
