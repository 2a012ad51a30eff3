//! What each cause predicts of each set of a test, as shares of what is usual there.

use super::super::{Cause, Measured};
use super::focus::{FanFocus, Focus, PairFocus, usual};
use super::traits::{At, Shared, Traits, of};
use super::{Test, TestKind};
use crate::topology::Level;

/// Least and greatest relative width of a prediction either way: pairs of a class are not all alike.
const SPREAD: (f64, f64) = (0.05, 0.25);
/// Pairs of a class that tell how alike they are.
const LOOKED_AT: usize = 4096;
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

/// All that a cause may predict.
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

    fn of(self, slow: Option<bool>) -> (f64, f64) {
        match slow {
            Some(true) => self.slow,
            Some(false) => self.usual,
            None => (self.slow.0.min(self.usual.0), self.usual.1.max(self.slow.1)),
        }
    }
}

/// What a cause predicts, from and to, of each set.
pub(super) fn shares(measured: &Measured, focus: &Focus, test: &Test, usuals: &[f64], cause: Cause) -> Vec<(f64, f64)> {
    let traits = of(cause);
    let sets = test.sets.iter().zip(usuals).enumerate();
    match focus {
        Focus::Pair(focus) => {
            let spread = spread(measured, focus);
            sets.map(|(at, (set, &usual))| pair(measured, focus, test, (at, set, usual), traits, spread)).collect()
        }
        Focus::Fan(focus) => sets.map(|(_, (set, &usual))| fan(measured, focus, set, usual, traits)).collect(),
    }
}

fn pair(
    measured: &Measured,
    focus: &PairFocus,
    test: &Test,
    (at, set, usual): (usize, &[(usize, usize)], f64),
    traits: Traits,
    spread: f64,
) -> (f64, f64) {
    // What is slow may give the same share of what is usual elsewhere, or the same rate.
    let each = usual / set.len() as f64;
    let (share, same) = (focus.share(), (focus.rate / each).max(1e-3));
    let range = Range::new((share.min(same), share.max(same).min(1.0)), spread);
    let passing = traits.passing == Some(true);
    let lasting = traits.passing == Some(false);
    // A cause that comes and goes may have gone; where that is open, slow is open, too.
    let when = |slow: Option<bool>| match slow {
        Some(true) if passing => Some(false),
        Some(true) if !lasting => None,
        other => other,
    };
    let itself = set == [(focus.from, focus.to)];
    match test.kind {
        TestKind::SwapPartners if !itself => {
            let (sends, receives) = (set.iter().any(|own| own.0 == focus.from), set.iter().any(|own| own.1 == focus.to));
            let slow = match traits.at {
                Some(At::Sender) => Some(sends),
                Some(At::Receiver) => Some(receives),
                Some(At::Way | At::Beside) => Some(false),
                Some(At::End) | None => None,
            };
            range.of(when(slow))
        }
        TestKind::Reverse => range.of(when(traits.both_ways)),
        TestKind::UnderLoad if itself => range.of(when(traits.at.map(|at| at != At::Beside))),
        TestKind::UnderLoad => {
            // Flows that divide a link also slow the others of the set, down to what the last one gets.
            let (low, high) = range.of(when(Some(true)));
            (low * if traits.at == Some(At::Beside) { 0.8 } else { 1.0 }, high)
        }
        TestKind::Depth => {
            let window = f64::from(test.windows.get(at).copied().unwrap_or(1));
            depth(measured, focus, window, traits, spread, when(Some(true)))
        }
        TestKind::OtherMover => {
            let (low, high) = range.of(when(traits.mover.map(|mover| !mover)));
            (low / (1.0 + OTHER_MOVER), high * (1.0 + OTHER_MOVER))
        }
        TestKind::OtherMemory => range.of(when(traits.device.map(|device| !device))),
        TestKind::SwapPartners | TestKind::OtherPeers | TestKind::Again => range.of(when(Some(true))),
    }
}

/// So many messages at a time: latency is paid once, whatever takes longer for every message is paid for each.
fn depth(measured: &Measured, focus: &PairFocus, window: f64, traits: Traits, spread: f64, slow: Option<bool>) -> (f64, f64) {
    let wide = 1.0 + spread;
    let (one, late) = (1.0, 1.0 / focus.share());
    // In units of the usual time of a message: what its bytes take at least, and its latency at most.
    let bytes_alone = super::focus::class(measured, focus.from, focus.to).map_or(f64::NAN, |class| match focus.bytes == measured.bytes {
        true => 1.0 - class.usual_small * focus.usual / focus.bytes as f64,
        false => focus.usual / class.usual,
    });
    let told = measured.bytes > measured.small_bytes && bytes_alone > 0.0 && bytes_alone < 1.0;
    let (least_gap, most_latency) = if told { (bytes_alone, one - bytes_alone) } else { (one - LATENCY, LATENCY) };
    let latency = (window / (late + (window - 1.0) * one), window / (late + (window - 1.0) * least_gap));
    let each = (window / (window * late), window / (most_latency + window * (late - most_latency).max(least_gap)));
    let usual = (1.0, window / (one + (window - 1.0) * least_gap));
    let of = |slow: Option<bool>| match slow {
        Some(true) => latency,
        Some(false) => each,
        None => (each.0.min(latency.0), latency.1.max(each.1)),
    };
    let (low, high) = match slow {
        Some(true) => of(traits.latency),
        Some(false) => usual,
        None => (of(traits.latency).0, usual.1.max(of(traits.latency).1)),
    };
    (low / wide, high * wide)
}

fn fan(measured: &Measured, focus: &FanFocus, set: &[(usize, usize)], usual: f64, traits: Traits) -> (f64, f64) {
    let spread = SPREAD.0 + 0.05;
    let n = set.len() as f64;
    let seen = (focus.aggregate / usual).min(1.0);
    let range = Range::new((seen, seen), spread);
    let beyond = |root: usize, peer: usize, level: Level| !measured.units.together(level, root, peer);
    let crossing = |flows: &[(usize, usize)], level| {
        flows.iter().filter_map(|&flow| focus.peer(flow)).filter(|&peer| beyond(focus.root, peer, level)).count() as f64
    };
    let own = focus.flows(&focus.peers);
    match traits.shared {
        Some(Shared::Root) => range.slow,
        Some(Shared::Turns) => {
            let turns = |flows: &[(usize, usize)]| {
                let each = flows.iter().map(|&(from, to)| alone(measured, from, to, focus.bytes).map(|rate| 1.0 / rate));
                each.sum::<Option<f64>>().map(|seconds| flows.len() as f64 / seconds)
            };
            match (turns(set), turns(&own)) {
                (Some(here), Some(there)) => {
                    let share = (focus.aggregate * here / there / usual).min(1.0);
                    Range::new((share, share), spread).slow
                }
                _ => range.of(None),
            }
        }
        Some(Shared::Border(level)) => {
            let (before, now) = (crossing(&own, level), crossing(set, level));
            if before == 0.0 {
                range.of(None)
            } else if now == 0.0 {
                // Nothing crosses it any more: the root takes more than was seen, how much more is open.
                (seen.sqrt(), range.usual.1)
            } else {
                let share = (focus.aggregate * before / own.len() as f64 * n / now / usual).min(1.0);
                Range::new((share, share), spread).slow
            }
        }
        Some(Shared::Member) => {
            let known = |flow: &&(usize, usize)| own.contains(flow);
            let kept = set.iter().filter(known).count();
            if kept == 0 {
                range.usual
            } else if kept == own.len() {
                // All wait for the slow one, as they did.
                let share = (focus.aggregate * n / own.len() as f64 / usual).min(1.0);
                Range::new((share, share), spread).slow
            } else {
                range.of(None)
            }
        }
        None => range.of(None),
    }
}

/// How much pairs of the focus' class differ, relative: twice the standard deviation that their middle half tells.
fn spread(measured: &Measured, focus: &PairFocus) -> f64 {
    let Some(class) = measured.peer.get(focus.from, focus.to).map(|pair| pair.class) else { return SPREAD.1 / 2.0 };
    let usual = measured.classes[usize::from(class)].usual;
    let step = (measured.peer.len() / LOOKED_AT).max(1);
    let of = measured.peer.iter().step_by(step).filter(|pair| pair.class == class && pair.rate.is_finite());
    let mut far: Vec<f64> = of.map(|pair| (pair.rate / usual).ln().abs()).collect();
    if far.len() < 4 {
        return SPREAD.1 / 2.0;
    }
    (2.0 * crate::fit::median(&mut far) / 0.6745).clamp(SPREAD.0, SPREAD.1)
}
