//! What each cause predicts of each set of a test, as shares of what is usual there.

use super::super::{Cause, Measured};
use super::focus::{FanFocus, Focus, PairFocus, class, usual};
use super::traits::{At, Shared, Traits, of as of_cause};
use super::{Test, TestKind};
use crate::topology::Level;

/// How much fans of equal flows differ, relative.
const FANS: f64 = 0.1;
/// How much less another mover may give by itself.
const OTHER_MOVER: f64 = 0.3;
/// Share of its usual time that a message may be latency, where no small messages tell.
const LATENCY: f64 = 0.7;

/// Bytes per second that count as usual for each set, all its transfers together until the last is through; `None` if nothing tells of one.
pub(super) fn usuals(measured: &Measured, test: &Test) -> Option<Vec<f64>> {
    let of_set = |set: &Vec<(usize, usize)>| Some(least(measured, set, test.bytes)? * set.len() as f64);
    test.sets.iter().map(of_set).collect()
}

/// What the slowest of these should give alone.
fn least(measured: &Measured, flows: &[(usize, usize)], bytes: u64) -> Option<f64> {
    flows.iter().map(|&(from, to)| alone(measured, from, to, bytes)).try_fold(f64::INFINITY, |least, rate| Some(least.min(rate?)))
}

/// What a pair gives alone: as it was measured, if it was and does well; otherwise what is usual.
fn alone(measured: &Measured, from: usize, to: usize, bytes: u64) -> Option<f64> {
    let own = measured.rate(from, to).filter(|_| bytes == measured.bytes);
    match (own, usual(measured, from, to, bytes)) {
        (Some(own), Some(usual)) if own > 0.8 * usual => Some(own),
        (own, usual) => usual.or(own),
    }
}

/// What a single transfer may do.
#[derive(Debug, Clone, Copy)]
struct Range {
    /// as slow as it was seen
    slow: (f64, f64),
    /// as all others
    usual: (f64, f64),
}

impl Range {
    /// `share` from, to; widened by how much pairs differ.
    fn new((low, high): (f64, f64), spread: f64) -> Self {
        let wide = 1.0 + spread;
        Self { slow: ((low / wide).max(1e-3), high * wide), usual: (1.0 / wide, wide) }
    }

    const fn of(self, slow: bool) -> (f64, f64) {
        if slow { self.slow } else { self.usual }
    }
}

/// How a test may come out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scenario {
    /// what would be so
    pub traits: Traits,
    /// of each set the shares from and to
    pub sets: Vec<(f64, f64)>,
}

/// All that a cause leaves open, each alike likely.
pub(super) type Scenarios = Vec<Scenario>;

/// What a cause foresees of a test.
pub(super) fn scenarios(measured: &Measured, focus: &Focus, test: &Test, usuals: &[f64], cause: Cause) -> Scenarios {
    let sets = || test.sets.iter().map(Vec::as_slice).zip(usuals.iter().copied()).enumerate();
    match focus {
        Focus::Pair(focus) => {
            let of = |traits: Traits| {
                let each = sets().map(|(at, (set, usual))| pair(measured, focus, test, (at, set, usual), traits));
                Scenario { traits, sets: each.collect() }
            };
            settled(of_cause(cause), test.kind).into_iter().map(of).collect()
        }
        Focus::Fan(focus) => {
            let traits = of_cause(cause);
            let of = |slow: bool| {
                let each = sets().map(|(_, (set, usual))| fan(measured, focus, set, usual, traits, slow));
                Scenario { traits, sets: each.collect() }
            };
            let (one, other) = (of(true), of(false));
            if one == other { vec![one] } else { vec![one, other] }
        }
    }
}

/// The least and the greatest of all scenarios.
pub(super) fn hull(scenarios: &Scenarios, at: usize) -> (f64, f64) {
    let all = scenarios.iter().map(|scenario| scenario.sets[at]);
    all.fold((f64::INFINITY, 0.0), |(low, high), own| (f64::min(low, own.0), f64::max(high, own.1)))
}

/// Every way in which the traits that a kind of test asks about can be, where a cause leaves them open.
fn settled(traits: Traits, kind: TestKind) -> Vec<Traits> {
    let both = |open: Option<bool>| open.map_or_else(|| vec![Some(true), Some(false)], |told| vec![Some(told)]);
    let places = match (kind, traits.at) {
        (TestKind::SwapPartners, None) => vec![At::Sender, At::Receiver, At::Way],
        (TestKind::SwapPartners, Some(At::End)) => vec![At::Sender, At::Receiver],
        (TestKind::UnderLoad, None) => vec![At::Way, At::Beside],
        (_, at) => vec![at.unwrap_or(At::Way)],
    };
    let all = places.into_iter().map(|at| Traits { at: Some(at), ..traits });
    let all = all.flat_map(|own| both(own.passing).into_iter().map(move |passing| Traits { passing, ..own }));
    match kind {
        TestKind::Reverse => {
            all.flat_map(|own| both(own.both_ways).into_iter().map(move |both_ways| Traits { both_ways, ..own })).collect()
        }
        TestKind::Depth => all.flat_map(|own| both(own.latency).into_iter().map(move |latency| Traits { latency, ..own })).collect(),
        TestKind::OtherMover => all.flat_map(|own| both(own.mover).into_iter().map(move |mover| Traits { mover, ..own })).collect(),
        TestKind::OtherMemory => all.flat_map(|own| both(own.device).into_iter().map(move |device| Traits { device, ..own })).collect(),
        _ => all.collect(),
    }
}

/// One set of a test of a slow transfer, under traits that leave nothing open.
fn pair(
    measured: &Measured,
    focus: &PairFocus,
    test: &Test,
    (at, set, usual): (usize, &[(usize, usize)], f64),
    traits: Traits,
) -> (f64, f64) {
    // What is slow may give the same share of what is usual elsewhere, or the same rate.
    let each = usual / set.len() as f64;
    let (share, same) = (focus.share(), (focus.rate / each).max(1e-3));
    let range = Range::new((share.min(same), share.max(same).min(1.0)), focus.spread);
    let (lasts, told) = (traits.passing != Some(true), |open: Option<bool>| open == Some(true));
    let itself = set == [(focus.from, focus.to)];
    match test.kind {
        TestKind::SwapPartners if !itself => range.of(lasts
            && match traits.at {
                Some(At::Sender) => set.iter().any(|own| own.0 == focus.from),
                Some(At::Receiver) => set.iter().any(|own| own.1 == focus.to),
                _ => false,
            }),
        TestKind::Reverse => range.of(lasts && told(traits.both_ways)),
        TestKind::UnderLoad if itself => range.of(lasts && traits.at != Some(At::Beside)),
        TestKind::UnderLoad => {
            // Flows that divide a link also slow the others of the set, down to what the last one gets.
            let (low, high) = range.of(lasts);
            (low * if traits.at == Some(At::Beside) { 0.8 } else { 1.0 }, high)
        }
        TestKind::Depth => {
            let window = f64::from(test.windows.get(at).copied().unwrap_or(1));
            depth(measured, focus, window, lasts.then(|| told(traits.latency)))
        }
        TestKind::OtherMover => {
            let (low, high) = range.of(lasts && !told(traits.mover));
            (low / (1.0 + OTHER_MOVER), high * (1.0 + OTHER_MOVER))
        }
        TestKind::OtherMemory => range.of(lasts && !told(traits.device)),
        TestKind::SwapPartners | TestKind::OtherPeers | TestKind::Again => range.of(lasts),
    }
}

/// So many messages at a time: latency is paid once, whatever takes longer for every message is paid for each. `slow`: by latency, or
/// by what each takes; `None` if it is slow no more.
fn depth(measured: &Measured, focus: &PairFocus, window: f64, slow: Option<bool>) -> (f64, f64) {
    let late = 1.0 / focus.share();
    // In units of the usual time of a message: what its bytes take at least, and its latency at most.
    let bytes_alone = class(measured, focus.from, focus.to).map_or(f64::NAN, |class| {
        if focus.bytes == measured.bytes { 1.0 - class.usual_small * focus.usual / focus.bytes as f64 } else { focus.usual / class.usual }
    });
    let told = measured.bytes > measured.small_bytes && bytes_alone > 0.0 && bytes_alone < 1.0;
    let (least, latency) = if told { (bytes_alone, 1.0 - bytes_alone) } else { (1.0 - LATENCY, LATENCY) };
    let (low, high) = match slow {
        Some(true) => (window / (late + window - 1.0), window / (late + (window - 1.0) * least)),
        Some(false) => (1.0 / late, window / (latency + window * (late - latency))),
        None => (1.0, window / (1.0 + (window - 1.0) * least)),
    };
    let wide = 1.0 + focus.spread;
    (low / wide, high * wide)
}

/// One set of a test of a fan. `slow`: what it is where a cause leaves that open.
fn fan(measured: &Measured, focus: &FanFocus, set: &[(usize, usize)], usual: f64, traits: Traits, slow: bool) -> (f64, f64) {
    let n = set.len() as f64;
    let seen = (focus.aggregate / usual).min(1.0);
    let open = Range::new((seen, seen), FANS).of(slow);
    let about = |low: f64, high: f64| Range::new((low, high), FANS).slow;
    let beyond = |root: usize, peer: usize, level: Level| !measured.units.together(level, root, peer);
    let crossing = |flows: &[(usize, usize)], level| {
        flows.iter().filter_map(|&flow| focus.peer(flow)).filter(|&peer| beyond(focus.root, peer, level)).count() as f64
    };
    let own = focus.flows(&focus.peers);
    match traits.shared {
        Some(Shared::Root) => about(seen, seen),
        Some(Shared::Turns) => {
            let turns = |flows: &[(usize, usize)]| {
                let each = flows.iter().map(|&(from, to)| alone(measured, from, to, focus.bytes).map(|rate| 1.0 / rate));
                each.sum::<Option<f64>>().map(|seconds| flows.len() as f64 / seconds)
            };
            turns(set).zip(turns(&own)).map_or(open, |(here, there)| {
                let share = (focus.aggregate * here / there / usual).min(1.0);
                about(share, share)
            })
        }
        Some(Shared::Border(level)) => {
            let (before, now) = (crossing(&own, level), crossing(set, level));
            if before == 0.0 {
                return open;
            }
            // As much crosses it as did; where fewer cross, others fill up, until the root takes no more: how much that is, is open.
            let most = if now == 0.0 { 1.0 } else { (focus.aggregate * before / own.len() as f64 * n / now / usual).min(1.0) };
            about(if most > seen { (seen * most).sqrt() } else { most }, most)
        }
        Some(Shared::Member) => match set.iter().filter(|flow| own.contains(flow)).count() {
            0 => about(1.0, 1.0),
            // All wait for the slow one, as they did.
            kept if kept == own.len() => {
                let share = (focus.aggregate * n / own.len() as f64 / usual).min(1.0);
                about(share, share)
            }
            _ => open,
        },
        None => open,
    }
}
