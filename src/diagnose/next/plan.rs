//! Tests that could tell causes of a finding apart.

use super::super::Measured;
use super::focus::{FanFocus, Focus, PairFocus, class};
use super::{Test, TestKind};
use crate::fit::identify::Identified;
use crate::sample::{EngineKind, MPI_MOVERS, MoverKind};
use crate::topology::Level;
use crate::units::format_ranks;

/// Repeats of a set: enough for an interval.
const REPEATS: u32 = 8;
/// Repeats where it is asked whether something comes and goes.
const AGAIN: u32 = 24;
/// Longest time of a set's repeats, seconds; those of slow transfers are fewer, so that none takes longer than a probe may.
const LONGEST: f64 = 4.0;
/// Fewest repeats.
const LEAST: u32 = 3;
/// Messages outstanding at a time.
const WINDOWS: [u32; 3] = [1, 8, 64];
/// Largest message of which so many may be outstanding: each rank has a buffer for all of them.
const DEPTH_BYTES: u64 = 4 << 20;
/// Measured pairs of a rank from which on its others tell nothing new.
const KNOWN: usize = 3;
/// Transfers that a pair is measured beside, at most.
const BESIDE: usize = 7;

/// Seconds that a test takes besides its transfers: orders, buffers, warm-ups.
pub(super) const OVERHEAD: f64 = 0.05;

/// Every test that makes sense for it.
pub(super) fn candidates(measured: &Measured, identified: &Identified, focus: &Focus) -> Vec<Test> {
    match focus {
        Focus::Pair(focus) => pairs(measured, focus),
        Focus::Fan(focus) => fans(measured, identified, focus),
    }
}

fn pairs(measured: &Measured, focus: &PairFocus) -> Vec<Test> {
    let (from, to) = (focus.from, focus.to);
    let mut tests = Vec::new();
    let mut add = |kind, say: String, sets: Vec<Vec<(usize, usize)>>| {
        let slowest = sets.iter().map(Vec::len).max().unwrap_or(1) as f64 * focus.bytes as f64 / focus.rate.max(1.0);
        let most = if kind == TestKind::Again { AGAIN } else { REPEATS };
        let repeats = ((LONGEST / slowest) as u32).clamp(LEAST, most);
        tests.push(Test { kind, say, sets, bytes: focus.bytes, repeats, windows: Vec::new(), mover: None });
    };
    let swap = partners(measured, focus);
    if !swap.is_empty() {
        let words: Vec<String> = swap.iter().map(|(from, to)| format!("{from}→{to}")).collect();
        let say = format!("measure {}: each end of {from}→{to} with another partner", words.join(" and "));
        add(TestKind::SwapPartners, say, swap.into_iter().map(|pair| vec![pair]).collect());
    }
    if measured.rate(to, from).is_none() {
        add(TestKind::Reverse, format!("measure the other direction, {to}→{from}"), vec![vec![(to, from)]]);
    }
    if let Some(others) = beside(measured, focus) {
        let words: Vec<String> = others.iter().map(|(from, to)| format!("{from}→{to}")).collect();
        let say = format!("measure {from}→{to} alone, then at the same time as {}", words.join(", "));
        let together = std::iter::once((from, to)).chain(others).collect();
        add(TestKind::UnderLoad, say, vec![vec![(from, to)], together]);
    }
    add(TestKind::Again, format!("measure {from}→{to} again, {AGAIN} times"), vec![vec![(from, to)]]);
    if !measured.provenance.memory.is_host() {
        add(TestKind::OtherMemory, format!("measure {from}→{to} from host memory instead of device memory"), vec![vec![(from, to)]]);
    }
    if focus.bytes <= DEPTH_BYTES {
        let say = format!("measure {from}→{to} with 1, 8 and 64 messages outstanding");
        add(TestKind::Depth, say, vec![vec![(from, to)]; WINDOWS.len()]);
        if let Some(test) = tests.last_mut() {
            test.windows = WINDOWS.to_vec();
        }
    }
    let taken = &measured.provenance;
    let fits = |mover: &&MoverKind| mover.moves(taken.memory) && **mover != taken.mover;
    let other = MPI_MOVERS.iter().filter(|_| taken.engine == EngineKind::Mpi).find(fits);
    if let Some(&mover) = other {
        let sets = vec![vec![(from, to)]];
        let say = format!("measure {from}→{to} with {} instead of {}", mover.name(), measured.provenance.mover.name());
        tests.push(Test {
            kind: TestKind::OtherMover,
            say,
            sets,
            bytes: focus.bytes,
            repeats: REPEATS,
            windows: Vec::new(),
            mover: Some(mover),
        });
    }
    tests
}

/// For each end of which too little is known: its transfer with another partner, of the same class and one that does well where
/// there is one, elsewhere than the present partner where that can be.
fn partners(measured: &Measured, focus: &PairFocus) -> Vec<(usize, usize)> {
    let (from, to, world) = (focus.from, focus.to, measured.world());
    let (mut sends, mut receives) = (vec![(0_usize, 0.0_f64); world], vec![(0_usize, 0.0_f64); world]);
    for pair in measured.peer.iter().filter(|pair| pair.rate.is_finite()) {
        let share = measured.share(pair);
        if (pair.from as usize, pair.to as usize) != (from, to) {
            for (ends, rank) in [(&mut sends, pair.from), (&mut receives, pair.to)] {
                let own = &mut ends[rank as usize];
                *own = (own.0 + 1, own.1.max(share));
            }
        }
    }
    let mine = class(measured, from, to).map(|class| (class.path, class.label, class.same_socket));
    let units = &measured.units;
    let apart = |a, b| [Level::Host, Level::Socket, Level::Switch].iter().filter(|&&level| !units.together(level, a, b)).count();
    let alike = |a, b| class(measured, a, b).is_some_and(|class| Some((class.path, class.label, class.same_socket)) == mine);
    // Of equally good ones the first above, around: neighbours are not all asked of the same rank.
    let best = |end: usize, score: &dyn Fn(usize) -> (bool, bool, usize)| {
        let others = (1..world).map(|step| (end + step) % world).filter(|&rank| rank != from && rank != to);
        others.map(|rank| (score(rank), rank)).reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, rank)| rank)
    };
    let new = |a, b| super::focus::usual(measured, a, b, focus.bytes).is_some();
    let mut swap = Vec::new();
    if sends[from].0 < KNOWN {
        let other = best(to, &|rank| (alike(from, rank), receives[rank].1 > 0.9, apart(rank, to)));
        swap.extend(other.map(|rank| (from, rank)));
    }
    if receives[to].0 < KNOWN {
        let other = best(from, &|rank| (alike(rank, to), sends[rank].1 > 0.9, apart(rank, from)));
        swap.extend(other.map(|rank| (rank, to)));
    }
    swap.retain(|&(a, b)| new(a, b));
    swap
}

/// What it ran beside when it was slow; without such a measurement other pairs of the same two groups.
fn beside(measured: &Measured, focus: &PairFocus) -> Option<Vec<(usize, usize)>> {
    let own = (focus.from, focus.to);
    let ran = measured.together.iter().filter(|ran| ran.flows.len() > 1 && ran.flows.contains(&own)).min_by_key(|ran| ran.flows.len());
    if let Some(ran) = ran {
        let others: Vec<(usize, usize)> = ran.flows.iter().copied().filter(|&flow| flow != own).collect();
        return (others.len() <= 4 * BESIDE).then_some(others);
    }
    let units = &measured.units;
    let level = [Level::Host, Level::Socket, Level::Switch]
        .into_iter()
        .find(|&level| units.unit(level, own.0).is_some() && units.unit(level, own.1).is_some() && !units.together(level, own.0, own.1))?;
    let members = |rank| units.unit(level, rank).map_or(&[][..], |unit| units.members(unit)).iter().filter(move |&&other| other != rank);
    let others: Vec<(usize, usize)> = members(own.0).zip(members(own.1)).map(|(&a, &b)| (a, b)).take(BESIDE).collect();
    (!others.is_empty()).then_some(others)
}

/// Fans of the same root with other peers, as wide as the one that is asked about or as there are peers.
fn fans(measured: &Measured, identified: &Identified, focus: &FanFocus) -> Vec<Test> {
    let (root, width) = (focus.root, focus.peers.len());
    let mut choices: Vec<Vec<usize>> = Vec::new();
    for level in [Level::Switch, Level::Socket, Level::Host] {
        if measured.units.unit(level, root).is_none() {
            continue;
        }
        for inside in [true, false] {
            let here = |rank: &usize| *rank != root && measured.units.together(level, root, *rank) == inside;
            // Others first: a slow one among those that took part is then left out.
            let (old, new): (Vec<usize>, Vec<usize>) = (0..measured.world()).filter(here).partition(|rank| focus.peers.contains(rank));
            choices.push(new.into_iter().chain(old).take(width).collect());
        }
    }
    let others = (0..measured.world()).filter(|rank| *rank != root && !focus.peers.contains(rank));
    choices.push(others.take(width).collect());
    let open = identified.undecided.iter().filter(|open| focus.into && open.root == root);
    choices.extend(open.map(|open| open.peers.clone()));
    for peers in &mut choices {
        peers.sort_unstable();
    }
    choices.sort();
    choices.dedup();
    let known = |peers: &Vec<usize>| {
        let mut flows = focus.flows(peers);
        flows.sort_unstable();
        measured.together.iter().any(|ran| {
            let mut own = ran.flows.clone();
            own.sort_unstable();
            own == flows
        })
    };
    choices.retain(|peers| peers.len() > 1 && !known(peers));
    let test = |peers: Vec<usize>| {
        let arrow = if focus.into { "into" } else { "out of" };
        let say = format!("measure {} transfers {arrow} {root} at the same time with other peers: {}", peers.len(), format_ranks(&peers));
        let slowest = focus.bytes as f64 * peers.len() as f64 / focus.aggregate.max(1.0);
        let repeats = ((LONGEST / slowest) as u32).clamp(LEAST, REPEATS);
        let sets = vec![focus.flows(&peers)];
        Test { kind: TestKind::OtherPeers, say, sets, bytes: focus.bytes, repeats, windows: Vec::new(), mover: None }
    };
    choices.into_iter().map(test).collect()
}

/// About how long a test takes, seconds: as long as if all of it were as slow as what it asks about.
pub(super) fn seconds(test: &Test, usuals: &[f64], predicted: &[f64]) -> f64 {
    let messages = f64::from(test.repeats) + 2.0;
    let each = test.sets.iter().enumerate().map(|(at, set)| {
        let window = test.windows.get(at).map_or(1.0, |&window| f64::from(window));
        let rate = usuals[at] * predicted[at].max(1e-3);
        OVERHEAD + messages * window * set.len() as f64 * test.bytes as f64 / rate
    });
    each.sum()
}
