//! The test that decides: what to measure, what each cause predicts, and what came of it.
//!
//! A cause says how its slowness behaves ([`traits`]): where it sits, whether it goes both ways, passes, is latency, and so on. From
//! that follows, for each set of transfers of a test, between which shares of the usual rate its outcome should lie ([`predict`]).
//! What came of a test re-weighs the causes by how likely each made it ([`weigh`], Bayes' rule).
//!
//! The next test is chosen thus: of all that make sense ([`plan`]) those count that would tell the leading causes apart, at least half
//! as well as the best one does; of these, the one that tells most for each second, where a second is added to each, since no person
//! minds one. Tests that can be run here go before those that cannot.

mod focus;
mod plan;
mod predict;
#[cfg(test)]
mod tests;
mod told;
mod traits;
mod weigh;

use serde::{Deserialize, Serialize};

use super::{Cause, Finding, Measured, Shape, Suspect, Ways};
use crate::fit::identify::Identified;
use crate::sample::{EngineKind, MoverKind, Sample};
use crate::topology::Level;
use crate::units::format_gbps;
use focus::Focus;
use predict::Scenarios;
use traits::{At, Traits};
use weigh::Outcome;

/// What kind of test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TestKind {
    /// each end with others
    SwapPartners,
    /// the other direction
    Reverse,
    /// alone against beside others
    UnderLoad,
    /// host memory against device memory
    OtherMemory,
    OtherMover,
    /// 1, 8 and 64 messages outstanding
    Depth,
    /// other peers of the same width
    OtherPeers,
    /// the same again
    Again,
}

/// Transfers to measure, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    pub kind: TestKind,
    /// what will be done, in a sentence
    pub say: String,
    /// each of these runs by itself, its transfers at the same time
    pub sets: Vec<Vec<(usize, usize)>>,
    /// of one message
    pub bytes: u64,
    pub repeats: u32,
    /// messages outstanding at a time, for each set; empty for the sweep's own
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<u32>,
    /// another mover than the sweep's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mover: Option<MoverKind>,
}

/// What a cause predicts of a test's outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub cause: Cause,
    /// of each set, aggregate over what is usual there: from, to
    pub shares: Vec<(f64, f64)>,
}

/// A test with what it would tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Next {
    pub test: Test,
    /// about how long it takes, seconds
    pub seconds: f64,
    /// bytes per second of each set that count as usual
    pub usual: Vec<f64>,
    pub predictions: Vec<Prediction>,
    /// why it cannot be run here; empty if it can
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cannot: String,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// [`Finding::id`]
    pub finding: String,
    pub test: Test,
    /// raw, `set` is the index in [`Test::sets`]
    pub samples: Vec<Sample>,
    /// what kept it from being whole; empty if nothing did
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Causes lead that weigh at least so much of the first one.
const LEADING: f64 = 0.1;
/// Most causes that a test is chosen to tell apart.
const MOST: usize = 4;
/// Least share of the doubt that a test must resolve to be proposed.
const TELLS: f64 = 0.2;
/// Share of all weight from which on a cause is beyond doubt.
const SURE: f64 = 0.9;
/// A cause is contradicted that made an outcome so much less likely than another did.
const CONTRADICTED: f64 = 0.05;
/// Noise of a repeat that is expected where nothing tells, relative.
const SCATTER: f64 = 0.03;
/// Seconds that nobody minds.
const MOMENT: f64 = 1.0;

/// Choose the test that tells a finding's leading causes apart, after taking in what came of earlier ones.
pub fn settle(measured: &Measured, identified: &Identified, finding: &mut Finding) {
    finding.next = None;
    let Some(focus) = Focus::of(measured, finding) else { return };
    suspect(finding);
    let own: Vec<&TestResult> = measured.tests.iter().filter(|result| result.finding == finding.id).collect();
    for result in &own {
        take_in(measured, &focus, result, finding);
    }
    let done: Vec<&Test> = own.iter().map(|result| &result.test).collect();
    // What another tool measured elsewhere cannot be measured again from here.
    if measured.provenance.engine == EngineKind::Imported {
        return;
    }
    finding.next = propose(measured, identified, &focus, &finding.suspects, &done);
}

/// Where it is not even known whose fault it is, that is the first question.
fn suspect(finding: &mut Finding) {
    let causes: &[(Cause, &str)] = match finding.shape {
        Shape::SlowUntold { .. } => &[
            (Cause::Sender, "all that was measured from it is slow"),
            (Cause::Receiver, "all that was measured to it is slow"),
            (Cause::Way, "nothing else was measured on this way"),
        ],
        _ => return,
    };
    let known = |cause: Cause| finding.suspects.iter().any(|suspect| suspect.cause == cause);
    let missing: Vec<(Cause, &str)> = causes.iter().copied().filter(|&(cause, _)| !known(cause)).collect();
    let weights = finding.suspects.iter().filter(|suspect| causes.iter().any(|&(cause, _)| cause == suspect.cause)).map(|own| own.weight);
    // As much as the least of those that are there, or as the first of all.
    let first = finding.suspects.first().map_or(1.0, |suspect| suspect.weight);
    let weight = weights.reduce(f64::min).unwrap_or(first);
    let add = |(cause, because): (Cause, &str)| Suspect { cause, weight, because: because.to_owned(), against: String::new() };
    finding.suspects.extend(missing.into_iter().map(add));
    sort(&mut finding.suspects);
}

/// Likeliest first; of equals as they were.
fn sort(suspects: &mut [Suspect]) {
    suspects.sort_by(|a, b| b.weight.total_cmp(&a.weight));
}

/// Weigh the causes again by what came of a test.
fn take_in(measured: &Measured, focus: &Focus, result: &TestResult, finding: &mut Finding) {
    let test = &result.test;
    let mut follows = String::new();
    let outcomes: Vec<Option<Outcome>> =
        (0_u32..).zip(&test.sets).map(|(at, set)| weigh::outcome(&result.samples, at, set.len(), test.bytes)).collect();
    if let Some(usuals) = predict::usuals(measured, test) {
        let foreseen: Vec<Scenarios> =
            finding.suspects.iter().map(|suspect| predict::scenarios(measured, focus, test, &usuals, suspect.cause)).collect();
        let likely: Vec<f64> = foreseen.iter().map(|own| weigh::likelihood(own, &outcomes, &usuals)).collect();
        let before: f64 = finding.suspects.iter().map(|suspect| suspect.weight).sum();
        let after: f64 = finding.suspects.iter().zip(&likely).map(|(suspect, likely)| suspect.weight * likely).sum();
        let best = likely.iter().copied().fold(0.0, f64::max);
        // Whatever the cause: what is so in nearly all that is still likely.
        let scenarios = finding.suspects.iter().zip(&foreseen).flat_map(|(suspect, own)| {
            let weight = suspect.weight / own.len().max(1) as f64 / after;
            own.iter().map(move |scenario| (weight, scenario))
        });
        let seen: Vec<(f64, Traits)> =
            scenarios.map(|(weight, own)| (weight * weigh::of_scenario(own, &outcomes, &usuals), own.traits)).collect();
        let foreseen_at_all = outcomes.iter().any(Option::is_some) && foreseen.iter().any(|own| fits(own, &outcomes, &usuals));
        if foreseen_at_all {
            follows =
                sure(seen.iter().map(|&(weight, traits)| (weight, told::conclusion(measured, focus, test, traits)))).unwrap_or_default();
            if test.kind == TestKind::SwapPartners
                && let Some(Some(at)) = sure(seen.iter().map(|&(weight, traits)| (weight, traits.at)))
            {
                sharpen(measured, focus, finding, at);
            }
        }
        for ((suspect, foreseen), likely) in finding.suspects.iter_mut().zip(&foreseen).zip(&likely) {
            suspect.weight *= likely * before / after;
            if *likely < CONTRADICTED * best
                && let Some(words) = contradiction(test, foreseen, &outcomes, &usuals)
            {
                suspect.against = if suspect.against.is_empty() { words } else { format!("{}; {words}", suspect.against) };
            }
        }
        sort(&mut finding.suspects);
    }
    finding.told.push(told::sentence(result, &outcomes, &follows));
}

/// What has nearly all of the weight, if one thing has.
fn sure<T: PartialEq>(all: impl Iterator<Item = (f64, T)>) -> Option<T> {
    let mut sums: Vec<(f64, T)> = Vec::new();
    for (weight, what) in all {
        match sums.iter_mut().find(|(_, known)| *known == what) {
            Some((sum, _)) => *sum += weight,
            None => sums.push((weight, what)),
        }
    }
    let whole: f64 = sums.iter().map(|(sum, _)| sum).sum();
    sums.into_iter().find(|(sum, _)| *sum >= SURE * whole).map(|(_, what)| what)
}

/// True if a scenario of a cause holds what was seen of every set, its noise allowed for.
fn fits(foreseen: &Scenarios, outcomes: &[Option<Outcome>], usuals: &[f64]) -> bool {
    let near = |at: usize, (low, high): (f64, f64)| {
        outcomes[at].is_none_or(|own| {
            let (share, wide) = (own.aggregate / usuals[at], (4.0 * own.noise).exp());
            share * wide >= low && share <= high * wide
        })
    };
    foreseen.iter().any(|scenario| scenario.sets.iter().enumerate().all(|(at, &range)| near(at, range)))
}

/// What a cause foresaw otherwise: the set that is farthest from all of its scenarios.
fn contradiction(test: &Test, foreseen: &Scenarios, outcomes: &[Option<Outcome>], usuals: &[f64]) -> Option<String> {
    let far = |at: usize, own: Outcome| {
        let share = own.aggregate / usuals[at];
        let of = |(low, high): (f64, f64)| (low / share).ln().max((share / high).ln()) / own.noise;
        foreseen.iter().map(|scenario| of(scenario.sets[at])).fold(f64::INFINITY, f64::min)
    };
    let seen = outcomes.iter().enumerate().filter_map(|(at, own)| own.map(|own| (at, own)));
    let (at, own) = seen.max_by(|&(a, one), &(b, other)| far(a, one).total_cmp(&far(b, other)))?;
    let (low, high) = predict::hull(foreseen, at);
    Some(told::against(test, at, own.aggregate, (low * usuals[at], high * usuals[at])))
}

/// What was open is said as what it is, once it is known whose fault it is.
fn sharpen(measured: &Measured, focus: &Focus, finding: &mut Finding, at: At) {
    let (&Shape::SlowUntold { from, to, share }, Focus::Pair(pair)) = (&finding.shape, focus) else { return };
    let of = format!("{} of {} GB/s", format_gbps(pair.rate), format_gbps(pair.usual));
    let mut one = |rank: usize, ways: Ways, does: &str| {
        if let Some(unit) = measured.units.unit(Level::Rank, rank) {
            finding.shape = Shape::SlowUnit { unit, ways, share, own_slow: false };
            finding.title = format!("what rank {rank} {does} is slow: {of}");
        }
    };
    match at {
        At::Sender => one(from, Ways::Sends, "sends"),
        At::Receiver => one(to, Ways::Receives, "receives"),
        At::Way => finding.shape = Shape::SlowPair { from, to, share },
        At::End | At::Beside => {}
    }
}

/// The test that tells most for its time; `None` where nothing is open, or nothing would tell.
fn propose(measured: &Measured, identified: &Identified, focus: &Focus, suspects: &[Suspect], done: &[&Test]) -> Option<Next> {
    let most = suspects.first()?.weight;
    let leading: Vec<&Suspect> = suspects.iter().filter(|suspect| suspect.weight >= LEADING * most).take(MOST).collect();
    if leading.len() < 2 {
        return None;
    }
    let scatter = match focus {
        Focus::Pair(pair) => measured.peer.get(pair.from, pair.to).map(|pair| f64::from(pair.scatter) / 0.6745),
        Focus::Fan(_) => None,
    };
    let scatter = scatter.filter(|scatter| scatter.is_finite()).unwrap_or(SCATTER);
    // The same transfers, asked the same, would tell the same.
    let same = |a: &Test, b: &Test| (a.kind, &a.sets, &a.windows, a.mover, a.bytes) == (b.kind, &b.sets, &b.windows, b.mover, b.bytes);
    let tests = plan::candidates(measured, identified, focus).into_iter().filter(|test| !done.iter().any(|own| same(own, test)));
    let mut all: Vec<(f64, Next)> = tests.filter_map(|test| weighed(measured, focus, &leading, test, scatter)).collect();
    all.retain(|(tells, _)| *tells >= TELLS);
    if all.iter().any(|(_, next)| next.cannot.is_empty()) {
        all.retain(|(_, next)| next.cannot.is_empty());
    }
    let best = all.iter().map(|(tells, _)| *tells).fold(0.0, f64::max);
    all.retain(|(tells, _)| *tells >= best / 2.0);
    let worth = |(tells, next): &(f64, Next)| tells / (MOMENT + next.seconds);
    all.into_iter().reduce(|first, next| if worth(&next) > worth(&first) { next } else { first }).map(|(_, next)| next)
}

/// How much of the doubt between the leading causes a test would resolve, 0 to 1, and the test.
fn weighed(measured: &Measured, focus: &Focus, leading: &[&Suspect], test: Test, scatter: f64) -> Option<(f64, Next)> {
    let usual = predict::usuals(measured, &test)?;
    let foreseen: Vec<Scenarios> =
        leading.iter().map(|suspect| predict::scenarios(measured, focus, &test, &usual, suspect.cause)).collect();
    let noise = weigh::noise(scatter, test.repeats as usize);
    let (mut told, mut doubt) = (0.0, 0.0);
    for (at, one) in foreseen.iter().enumerate() {
        for (other, another) in foreseen.iter().enumerate().skip(at + 1) {
            let both = leading[at].weight * leading[other].weight;
            told += both * (1.0 - weigh::common(one, another, noise));
            doubt += both;
        }
    }
    let shares = |own: &Scenarios| (0..usual.len()).map(|at| predict::hull(own, at)).collect::<Vec<_>>();
    let predictions = leading.iter().zip(&foreseen).map(|(suspect, own)| Prediction { cause: suspect.cause, shares: shares(own) });
    let predictions: Vec<Prediction> = predictions.collect();
    let slowest: Vec<f64> =
        (0..usual.len()).map(|at| predictions.iter().map(|own| own.shares[at].0).fold(f64::INFINITY, f64::min)).collect();
    let seconds = plan::seconds(&test, &usual, &slowest);
    let cannot = match test.kind {
        TestKind::OtherMemory => "ranks have the memory of their sweep: sweep these pairs again with --memory host".to_owned(),
        _ => String::new(),
    };
    Some((told / doubt, Next { test, seconds, usual, predictions, cannot }))
}
