//! Who sends, by what a machine's resources cost: the predicted time of the whole sync is made small.
//!
//! A sync takes as long as its busiest resource (method.md, "The resource model"). Requests are given out one after another, the
//! largest first, to the holder that leaves the busiest resource least busy; then each is taken back and given out again as long as that
//! helps. Large ones may come in parts: a part pays only if it takes longer to send than to begin, `bytes > α × bandwidth` of its path.
//! What comes of it is replayed, and kept only where it is faster than [`LocalFirst`].

mod given;
mod weights;

use given::{Given, Pieces};
use weights::Weights;

use super::LocalFirst;
use crate::fabric::Demand;
use crate::plan::build::fold::fold;
use crate::plan::build::{Answer, Budget, Policy, Request, answers};
use crate::plan::price::Prices;
use crate::plan::{At, Batch, Endpoints, Parameter, Plan, replay, schedule};

/// A part more must make a sync this much faster, as a share of its time.
const WORTH: f64 = 0.01;

/// Chooses by predicted time. Without processes (no endpoints) or prices for them it answers as [`LocalFirst`].
#[derive(Clone, Copy)]
pub struct Calibrated<'a> {
    pub prices: &'a dyn Prices,
    /// staging budget of each peer and direction, bytes: it makes the messages, each of which has its latency
    pub bytes_per_peer: u64,
    /// no smaller parts, however cheap their messages are; bytes
    pub min_split_bytes: u64,
}

impl Policy for Calibrated<'_> {
    fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        let plain = LocalFirst.answer(requests);
        self.faster(requests, &plain).unwrap_or(plain)
    }
}

impl Calibrated<'_> {
    /// Answers that take less time than these; `None` where none were found, or nothing can be priced.
    fn faster(&self, requests: &[Request], plain: &[Answer]) -> Option<Vec<Answer>> {
        let pairs = weights::pairs(requests)?;
        let together = Weights::together(self, &pairs)?;
        let alone = Weights::alone(self, &pairs)?;
        let whole = Pieces::whole(requests)?;
        let cut = Pieces::cut(requests, &together, self.min_split_bytes)?;
        let mut best: (f64, Option<Vec<Answer>>) = (self.seconds(requests, plain)?, None);
        for pieces in [&whole, &cut] {
            for weights in [&together, &alone] {
                // From nothing, and from what the plain rule says.
                for start in [None, Some(plain)] {
                    self.try_out(requests, pieces, weights, start, &mut best);
                }
            }
            // What shares with whom is known now.
            if let Some(own) = best.1.as_deref().and_then(|answers| Weights::of(self, &together, requests, answers)) {
                let start = best.1.clone();
                self.try_out(requests, pieces, &own, start.as_deref(), &mut best);
            }
            if std::ptr::eq(pieces, &raw const whole) && cut.len() == whole.len() {
                break;
            }
        }
        best.1
    }

    fn try_out(
        &self,
        requests: &[Request],
        pieces: &Pieces,
        weights: &Weights,
        start: Option<&[Answer]>,
        best: &mut (f64, Option<Vec<Answer>>),
    ) {
        let mut given = Given::new(pieces, weights, start);
        given.settle();
        let answers = given.answers(requests);
        let parts = |answers: &[Answer]| answers.iter().filter(|answer| matches!(answer, Answer::Parts(_))).count();
        let more_parts = parts(&answers) > best.1.as_deref().map_or(0, parts);
        let worth = if more_parts { 1.0 - WORTH } else { 1.0 - 1e-9 };
        if let Some(seconds) = self.seconds(requests, &answers).filter(|&seconds| seconds < best.0 * worth) {
            *best = (seconds, Some(answers));
        }
    }

    /// Whether requests can be answered by cost: what is missing.
    ///
    /// # Errors
    /// Requests without processes, and pairs without a price.
    pub fn check(&self, requests: &[Request]) -> Result<(), String> {
        let pairs = weights::pairs(requests).ok_or("what links cost is known of processes: give endpoints that name all locations")?;
        let demand = |&(from, to): &(usize, usize)| Demand { from, to, bytes: self.bytes_per_peer };
        self.prices.routes(&pairs.iter().map(demand).collect::<Vec<_>>()).map(drop).map_err(|error| error.to_string())
    }

    /// Predicted time of a sync that is answered so: scheduled and replayed.
    pub fn seconds(&self, requests: &[Request], answers: &[Answer]) -> Option<f64> {
        let traffic = {
            let batch = batch(requests, answers, self.bytes_per_peer)?;
            schedule::schedule(&batch, None).ok()?.traffic(&batch)
        };
        replay(&traffic, self.prices).ok().map(|told| told.seconds)
    }
}

/// The batch that the planner makes of answers.
fn batch(requests: &[Request], given: &[Answer], bytes_per_peer: u64) -> Option<Batch> {
    let mut batch = Batch { parameters: Vec::new(), endpoints: Endpoints::default(), bytes_per_peer };
    let both: Vec<(&Request, &Answer)> = requests.iter().zip(given).collect();
    for of in both.chunk_by(|a, b| a.0.parameter == b.0.parameter) {
        let mut segments = Vec::with_capacity(of.len());
        for &(request, answer) in of {
            batch.endpoints.target.insert(request.target, request.process?);
            for candidate in &request.candidates {
                batch.endpoints.source.insert(candidate.location, candidate.process?);
            }
            answers::segments(request.clone(), answer.clone(), &mut segments);
        }
        let segments = fold(segments, &Budget::unlimited(), &At::default()).ok()?;
        let request = of[0].0;
        batch.parameters.push(Parameter {
            name: request.parameter.to_string(),
            plan: Plan { logical_shape: Vec::new(), segments },
            element_size: request.element_size.unwrap_or(1),
        });
    }
    Some(batch)
}

/// Bytes of a region; elements where their size is not known.
fn bytes(request: &Request, shape: &[u64]) -> u64 {
    shape.iter().fold(request.element_size.unwrap_or(1), |bytes, &extent| bytes.saturating_mul(extent))
}

#[cfg(test)]
mod tests;
