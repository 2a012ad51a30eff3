//! What a finding asks about: one slow transfer, or a fan.

use super::super::{Finding, Measured, PairClass, Shape, Ways};
use crate::fit::identify::Together;
use crate::sample::Pattern;
use crate::topology::Level;

/// What stands for all that a finding tells of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Focus {
    Pair(PairFocus),
    Fan(FanFocus),
}

/// One slow transfer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairFocus {
    pub from: usize,
    pub to: usize,
    /// size at which it was seen
    pub bytes: u64,
    /// bytes per second; 0 if nothing came through
    pub rate: f64,
    /// what it should give, bytes per second
    pub usual: f64,
    /// how much pairs of its class differ, relative
    pub spread: f64,
}

/// Least and greatest spread that is reckoned with, relative: pairs of a class are not all alike.
pub(super) const SPREAD: (f64, f64) = (0.05, 0.25);
/// Pairs of a class that tell how alike they are.
const LOOKED_AT: usize = 4096;

/// Twice the standard deviation that the middle half of a class tells; of few a guess.
fn spread(measured: &Measured, focus: &PairFocus) -> f64 {
    let Some(class) = class(measured, focus.from, focus.to) else { return SPREAD.1 / 2.0 };
    let step = (measured.peer.len() / LOOKED_AT).max(1);
    let of = measured.peer.iter().step_by(step).filter(|pair| measured.class(pair) == class && pair.rate.is_finite());
    let mut far: Vec<f64> = of.map(|pair| (pair.rate / class.usual).ln().abs()).collect();
    if far.len() < 4 {
        return SPREAD.1 / 2.0;
    }
    (2.0 * crate::fit::median(&mut far) / 0.6745).clamp(SPREAD.0, SPREAD.1)
}

impl PairFocus {
    /// What it gives of what it should, at least a thousandth: even what failed must be told apart by a test.
    pub fn share(&self) -> f64 {
        (self.rate / self.usual).max(1e-3)
    }
}

/// Several transfers at once into or out of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FanFocus {
    pub root: usize,
    /// into the root, or out of it
    pub into: bool,
    /// ascending
    pub peers: Vec<usize>,
    pub bytes: u64,
    /// bytes per second, all together
    pub aggregate: f64,
}

impl FanFocus {
    /// Its transfers with other peers.
    pub fn flows(&self, peers: &[usize]) -> Vec<(usize, usize)> {
        peers.iter().map(|&peer| if self.into { (peer, self.root) } else { (self.root, peer) }).collect()
    }

    /// The other end of a transfer of a fan of this root; `None` of another transfer.
    pub fn peer(&self, (from, to): (usize, usize)) -> Option<usize> {
        match self.into {
            true if to == self.root => Some(from),
            false if from == self.root => Some(to),
            _ => None,
        }
    }
}

impl Focus {
    /// `None` if no transfer stands for the finding.
    pub fn of(measured: &Measured, finding: &Finding) -> Option<Self> {
        let mut focus = Self::find(measured, finding)?;
        if let Self::Pair(pair) = &mut focus {
            pair.spread = spread(measured, pair);
        }
        Some(focus)
    }

    fn find(measured: &Measured, finding: &Finding) -> Option<Self> {
        let pair = |from, to| slow(measured, from, to).map(Self::Pair);
        match &finding.shape {
            &Shape::Asymmetry { from, to, rate, back } => {
                if rate <= back {
                    pair(from, to)
                } else {
                    pair(to, from)
                }
            }
            &(Shape::SlowPair { from, to, share } | Shape::SlowUntold { from, to, share }) => {
                pair(from, to).or_else(|| told(measured, from, to, share).map(Self::Pair))
            }
            Shape::SlowUnit { unit, ways, .. } => {
                let members = measured.units.members(*unit);
                let inside = |rank: usize| members.binary_search(&rank).is_ok();
                let own = |from, to| match ways {
                    Ways::Sends => inside(from) && !inside(to),
                    Ways::Receives => !inside(from) && inside(to),
                    Ways::Both => inside(from) != inside(to),
                };
                typical(measured, finding, own).map(Self::Pair)
            }
            Shape::SlowBetween { from, to, .. } => {
                let (near, far) = (measured.units.members(*from), measured.units.members(*to));
                let own = |from, to| near.binary_search(&from).is_ok() && far.binary_search(&to).is_ok();
                typical(measured, finding, own).map(Self::Pair)
            }
            &Shape::SlowClass { class, .. } => {
                let of = |from, to| measured.peer.get(from, to).is_some_and(|pair| pair.class == class);
                typical(measured, finding, of).map(Self::Pair)
            }
            Shape::HighLatency { ranks, class, .. } => late(measured, ranks, *class).map(Self::Pair),
            Shape::Unsteady { pairs, .. } | Shape::Failed { pairs, .. } => pairs.first().and_then(|&(from, to)| pair(from, to)),
            Shape::FanCollapse { root, peers, .. } => fan(measured, |own| own.root == Some(*root) && same(own, *root, peers), None),
            Shape::FanDoesNotScale { roots, width, into, .. } => {
                let one = |own: &Together| own.root.is_some_and(|root| roots.contains(&root)) && own.flows.len() == *width;
                fan(measured, one, Some(*into))
            }
            _ => None,
        }
    }
}

fn same(own: &Together, root: usize, peers: &[usize]) -> bool {
    own.flows.len() == peers.len() && own.flows.iter().all(|&(from, to)| peers.contains(&if from == root { to } else { from }))
}

/// The fan of the largest messages of those that fit.
fn fan(measured: &Measured, fits: impl Fn(&Together) -> bool, into: Option<bool>) -> Option<Focus> {
    let wanted = |own: &&Together| own.pattern.is_fan() && into.is_none_or(|into| into == (own.pattern == Pattern::FanIn)) && fits(own);
    let own = measured.together.iter().filter(wanted).max_by_key(|own| own.bytes)?;
    let (root, into) = (own.root?, own.pattern == Pattern::FanIn);
    let mut peers: Vec<usize> = own.flows.iter().map(|&(from, to)| if into { from } else { to }).collect();
    peers.sort_unstable();
    Some(Focus::Fan(FanFocus { root, into, peers, bytes: own.bytes, aggregate: own.aggregate() }))
}

/// A measured pair against what its class gives; against what the hardware should give where that is more, since a whole class
/// may be slow.
fn slow(measured: &Measured, from: usize, to: usize) -> Option<PairFocus> {
    let pair = measured.peer.get(from, to)?;
    let usual = measured.class(pair).usual;
    let usual = if pair.expected.is_finite() && (usual.is_nan() || pair.rate > 0.8 * usual) { pair.expected } else { usual };
    let rate = if pair.rate.is_finite() { pair.rate } else { 0.0 };
    (usual > 0.0).then_some(PairFocus { from, to, bytes: measured.bytes, rate, usual, spread: SPREAD.1 })
}

/// A pair that was measured only beside others, by what is told of it.
fn told(measured: &Measured, from: usize, to: usize, share: f64) -> Option<PairFocus> {
    let usual = usual(measured, from, to, measured.bytes)?;
    Some(PairFocus { from, to, bytes: measured.bytes, rate: share * usual, usual, spread: SPREAD.1 })
}

/// The middle one of all slow pairs that belong to a finding; of those that it lights, if it does.
fn typical(measured: &Measured, finding: &Finding, own: impl Fn(usize, usize) -> bool) -> Option<PairFocus> {
    let lit = finding.cells.iter().filter(|&&(from, to)| own(from, to));
    let mut all: Vec<PairFocus> = lit.filter_map(|&(from, to)| slow(measured, from, to)).collect();
    if all.is_empty() {
        let of = measured.peer.iter().filter(|pair| own(pair.from as usize, pair.to as usize));
        all = of.filter_map(|pair| slow(measured, pair.from as usize, pair.to as usize)).collect();
    }
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| all.select_nth_unstable_by(middle, |a, b| a.share().total_cmp(&b.share())).1.clone())
}

/// The pair of these ranks whose small messages take longest, as rates of the smallest size.
fn late(measured: &Measured, ranks: &[usize], class: u16) -> Option<PairFocus> {
    let of = ranks.iter().flat_map(|&rank| measured.peer.row(rank)).filter(|pair| pair.class == class && pair.small.is_finite());
    let inside = |pair: &&super::super::PairSeen| ranks.len() < 2 || ranks.contains(&(pair.to as usize));
    let pair = of.filter(inside).max_by(|a, b| a.small.total_cmp(&b.small))?;
    let (bytes, usual) = (measured.small_bytes as f64, measured.class(pair).usual_small);
    // Where all of a class are late, what other classes' latency is tells what is usual.
    let least = measured.classes.iter().map(|class| class.usual_small).filter(|&small| small > 0.0).fold(f64::INFINITY, f64::min);
    let usual = if usual.is_finite() && pair.small > 1.2 * usual { usual } else { least };
    (usual.is_finite() && pair.small > 0.0).then(|| PairFocus {
        from: pair.from as usize,
        to: pair.to as usize,
        bytes: measured.small_bytes,
        rate: bytes / pair.small,
        usual: bytes / usual,
        spread: SPREAD.1,
    })
}

/// The class that a pair belongs to, measured or not.
pub(super) fn class(measured: &Measured, from: usize, to: usize) -> Option<&PairClass> {
    if let Some(pair) = measured.peer.get(from, to) {
        return Some(measured.class(pair));
    }
    let units = &measured.units;
    let host = units.together(Level::Host, from, to);
    let path = if host { crate::topology::PathClass::IntraNode } else { crate::topology::PathClass::InterNode };
    let known = host && units.unit(Level::Socket, from).is_some() && units.unit(Level::Socket, to).is_some();
    let same_socket = known.then(|| units.together(Level::Socket, from, to));
    let label = measured.router.label(from, to);
    measured.classes.iter().find(|class| (class.path, class.label, class.same_socket) == (path, label, same_socket))
}

/// What a pair should give alone at a size, bytes per second: what pairs of its class give; what its hardware should give if none of
/// them was measured. Between the sizes at which classes are known it goes by a line through both.
pub(super) fn usual(measured: &Measured, from: usize, to: usize, bytes: u64) -> Option<f64> {
    let class = class(measured, from, to);
    let large = class.map(|class| class.usual).filter(|&usual| usual > 0.0).or_else(|| measured.router.expected(from, to))?;
    let (x, most, least) = (bytes as f64, measured.bytes as f64, measured.small_bytes as f64);
    let small = class.map_or(f64::NAN, |class| class.usual_small);
    if bytes == measured.bytes || !(small > 0.0 && most > least) {
        return Some(large);
    }
    let slope = (most / large - small).max(0.0) / (most - least);
    let seconds = small + slope * (x - least);
    (seconds > 0.0).then(|| x / seconds)
}
