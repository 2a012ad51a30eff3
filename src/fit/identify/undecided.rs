//! Explanations that the data do not tell apart, and the cheapest fan that would.

use super::evidence::Evidence;
use super::fan::{Fan, Parameters};
use super::stands::{Alike, RESOLVED, Standing};
use super::types::{Explanation, Undecided};
use super::words;

/// Roots and peers of each that are looked through for a fan.
const ROOTS: usize = 16;
const PEERS: usize = 24;
/// Widest fan that is looked for.
const WIDEST: usize = 8;
/// Predictions that differ by this factor are told apart by a few repeats.
const CLEAR: f64 = 1.1;
/// Told for fans of one kind.
const MOST: usize = 3;

/// What kind of sharing an explanation stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Nothing,
    Fixed,
    InTurns,
    InTurnsBySocket,
    InTurnsOnLink,
    Between,
}

impl Family {
    pub const fn of(by: Explanation) -> Self {
        match by {
            Explanation::SlowestPair => Self::Nothing,
            Explanation::Busiest | Explanation::BusiestByWidth => Self::Fixed,
            Explanation::TimeShared | Explanation::TimeSharedBy => Self::InTurns,
            Explanation::TimeSharedBySocket => Self::InTurnsBySocket,
            Explanation::TimeSharedLink => Self::InTurnsOnLink,
            Explanation::Mixture | Explanation::MixtureBusiest => Self::Between,
        }
    }
}

/// True if one explanation is another with a parameter set: without a better score it says nothing of its own.
const fn contains(general: Explanation, special: Explanation) -> bool {
    use Explanation::{Busiest, BusiestByWidth, Mixture, MixtureBusiest, SlowestPair, TimeShared, TimeSharedBy};
    matches!(
        (general, special),
        (Busiest | BusiestByWidth | Mixture, SlowestPair)
            | (BusiestByWidth, Busiest)
            | (TimeSharedBy | Mixture, TimeShared)
            | (MixtureBusiest, SlowestPair | TimeShared | Mixture | Busiest)
    )
}

/// The best of each other kind that is not told from the preferred explanation; best by the fans whose peers are known first.
pub(super) fn rivals(alike: &Alike) -> Vec<&Standing> {
    let Some(best) = alike.standings.first() else { return Vec::new() };
    let mut seen = vec![Family::of(best.stand.explanation)];
    let mut rivals: Vec<&Standing> = Vec::new();
    for standing in alike.standings.iter().filter(|standing| alike.undecided(standing)) {
        let family = Family::of(standing.stand.explanation);
        if contains(standing.stand.explanation, best.stand.explanation) {
            continue;
        }
        if !seen.contains(&family) {
            seen.push(family);
            rivals.push(standing);
        }
    }
    let by_known = |standing: &Standing| if standing.known.is_nan() { standing.stand.score } else { standing.known };
    rivals.sort_by(|a, b| by_known(a).total_cmp(&by_known(b)));
    rivals.truncate(MOST);
    rivals
}

/// All that is open among fans that are alike.
pub(super) fn undecided(evidence: &Evidence<'_>, alike: &Alike) -> Vec<Undecided> {
    let Some(best) = alike.standings.first() else { return Vec::new() };
    let one = |rival: &Standing| {
        let (one, other) = (best.stand.explanation, rival.stand.explanation);
        let telling = telling(evidence, alike, (one, &best.parameters), (other, &rival.parameters));
        let say = words::undecided(alike, one, other, telling.as_ref());
        let (root, peers, predicted) = telling.unwrap_or((0, Vec::new(), (f64::NAN, f64::NAN)));
        Undecided { one, other, pattern: alike.pattern, say, root, peers, predicted }
    };
    rivals(alike).into_iter().map(one).collect()
}

/// Root and peers of a fan, and what two explanations would give there, bytes per second.
pub(super) type Telling = (usize, Vec<usize>, (f64, f64));

/// The cheapest fan that would tell two explanations apart: of fewest peers; of those where they differ most.
fn telling(evidence: &Evidence<'_>, alike: &Alike, one: (Explanation, &Parameters), other: (Explanation, &Parameters)) -> Option<Telling> {
    let measured: Vec<(usize, &[usize])> = alike.known().map(|(fan, _)| (fan.root, fan.peers.as_slice())).collect();
    let bytes = evidence.usual_bytes();
    let mut roots: Vec<usize> = alike.points.iter().flat_map(|point| &point.fans).map(|fan| fan.root).collect();
    roots.sort_unstable();
    roots.dedup();
    let step = roots.len().div_ceil(ROOTS).max(1);
    let clear = CLEAR.max(1.0 + 3.0 * alike.floor);
    let mut best: Option<(f64, Telling)> = None;
    for width in 2..=WIDEST {
        for &root in roots.iter().step_by(step) {
            let peers = peers(evidence, alike, root);
            for set in sets(evidence, root, &peers, width) {
                let Some(fan) = Fan::of(evidence, alike.pattern, root, &set, bytes) else { continue };
                if fan.path != alike.path || measured.contains(&(root, &fan.peers)) {
                    continue;
                }
                let predicted = (fan.predict(one.0, one.1), fan.predict(other.0, other.1));
                let ratio = (predicted.0 / predicted.1).max(predicted.1 / predicted.0);
                if best.as_ref().is_none_or(|best| ratio > best.0 * (1.0 + 1e-9)) {
                    best = Some((ratio, (root, fan.peers, predicted)));
                }
            }
        }
        if best.as_ref().is_some_and(|best| best.0 >= clear) {
            break;
        }
    }
    best.filter(|best| best.0 > 1.0 + RESOLVED).map(|best| best.1)
}

/// Ranks that may be peers of a root: of the same kind of paths, spread evenly where there are very many.
fn peers(evidence: &Evidence<'_>, alike: &Alike, root: usize) -> Vec<usize> {
    let world = evidence.units.world();
    let fits = |&peer: &usize| peer != root && alike.path.is_none_or(|path| evidence.path(peer, root) == path);
    let all: Vec<usize> = (0..world).filter(fits).collect();
    let step = all.len().div_ceil(PEERS).max(1);
    all.into_iter().step_by(step).collect()
}

/// Sets of peers worth looking at: all of two; of more the fastest, the slowest, and every second one of both, with each start.
fn sets(evidence: &Evidence<'_>, root: usize, peers: &[usize], width: usize) -> Vec<Vec<usize>> {
    if width == 2 {
        return (0..peers.len()).flat_map(|a| (a + 1..peers.len()).map(move |b| vec![peers[a], peers[b]])).collect();
    }
    let mut sorted = peers.to_vec();
    let rate = |&peer: &usize| (evidence.rate)(peer, root).unwrap_or(0.0);
    sorted.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let windows = sorted.windows(width).map(<[usize]>::to_vec);
    let mixed = (1..width).map(|slow| {
        let fast = sorted.iter().take(width - slow);
        fast.chain(sorted.iter().rev().take(slow)).copied().collect::<Vec<_>>()
    });
    windows.chain(mixed).filter(|set| set.len() == width && set.iter().enumerate().all(|(at, peer)| !set[..at].contains(peer))).collect()
}
