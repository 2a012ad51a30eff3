use std::collections::BTreeMap;

use super::lines::{Line, Way};
use super::{Insight, Skew, Slow};
use crate::topology::PathClass;

/// A rank is slow one way if even its best cell is below this share of what is typical. The best, not the mean: a slow
/// receiver makes one cell of every sender slow, but never all of them.
const SLOW_LINE: f64 = 0.75;
/// A pair below this share of what is typical stands out.
const SLOW_PAIR: f64 = 0.8;
/// Directions that differ by more than this factor stand out.
const SKEWED: f64 = 1.25;
/// Cells that a rank must have to itself before it is accused: of one, nobody knows whose fault it is.
const OWN: usize = 2;
/// Lines looked at, and told, at most: where more are slow, none stands out.
const CANDIDATES: usize = 256;
const TOLD: usize = 16;
/// Pairs and asymmetries told at most.
const PAIRS: usize = 8;

/// A rank, or all ranks of a host, that sends or receives slowly whomever it talks to.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowLine {
    pub way: Way,
    /// ascending; more than one if a whole host is slow
    pub ranks: Vec<usize>,
    /// over these paths; the slowest for its kind first
    pub classes: Vec<PathClass>,
    /// the best of its cells of the first path class, bytes per second
    pub best: f64,
    /// what is typical of that path class, bytes per second
    pub typical: f64,
    /// cells that are slow because of it, and its cells in all
    pub slow: usize,
    pub of: usize,
    /// one of the slow cells, for a closer look
    pub pair: (usize, usize),
}

impl SlowLine {
    /// Share of what is typical of its path class.
    pub fn share(&self) -> f64 {
        self.best / self.typical
    }
}

/// What stands out, most telling first: what a slow rank explains is not told again as pairs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    pub lines: Vec<SlowLine>,
    pub pairs: Vec<Slow>,
    pub skews: Vec<Skew>,
    /// slow senders and slow receivers, ascending
    pub senders: Vec<usize>,
    pub receivers: Vec<usize>,
    /// the slowest pair of which nothing is said
    pub rest: Option<Slow>,
    /// pairs that have a bandwidth, and their path classes
    pub compared: usize,
    pub classes: usize,
}

type Accused = BTreeMap<(Way, PathClass, usize), f64>;

impl Insight {
    pub(super) fn find(&self) -> Findings {
        let accused = self.accuse();
        let mut found = Findings { lines: self.tell(&accused), ..Findings::default() };
        for (ranks, way) in [(&mut found.senders, Way::Sends), (&mut found.receivers, Way::Receives)] {
            ranks.extend(accused.keys().filter(|key| key.0 == way).map(|key| key.2));
            ranks.sort_unstable();
            ranks.dedup();
        }
        let explained = |from, to, class, rate| {
            let by = |way, rank| accused.get(&(way, class, rank)).is_some_and(|&best| rate >= best * SLOW_LINE);
            by(Way::Sends, from) || by(Way::Receives, to)
        };
        // Only the cells of slow lines are passed over, which are told if they are more than this.
        let most = (TOLD + 1) * self.lines.world();
        for (&class, pairs) in self.classes.iter().filter(|(class, _)| **class != PathClass::Local) {
            let Some(typical) = pairs.typical() else { continue };
            found.classes += 1;
            found.compared += pairs.order.len();
            // Of two directions either could be the usual one.
            let few = pairs.order.len() < 3;
            let slow = pairs.order.iter().take(most).map(|&(bits, from, to)| (f64::from_bits(bits), from as usize, to as usize));
            let slow = slow.map(|(rate, from, to)| Slow { from, to, class, rate, typical });
            let slow = slow.filter(|slow| !explained(slow.from, slow.to, class, slow.rate)).take(PAIRS);
            for slow in slow {
                if slow.share() < SLOW_PAIR && !few {
                    found.pairs.push(slow);
                } else {
                    let rest = found.rest.filter(|rest| rest.share() <= slow.share());
                    found.rest = Some(rest.unwrap_or(slow));
                    break;
                }
            }
        }
        found.pairs.sort_by(|a, b| a.share().total_cmp(&b.share()).then(a.rate.total_cmp(&b.rate)));
        found.pairs.truncate(PAIRS);
        let skews = self.skews().take(most).take_while(|skew| skew.ratio() > SKEWED);
        let class = |from, to| self.known.get((from, to)).map_or(PathClass::Local, |(_, class)| class);
        found.skews = skews.filter(|skew| !explained(skew.from, skew.to, class(skew.from, skew.to), skew.rate)).take(PAIRS).collect();
        found
    }

    /// The lines whose best is slow, and that have slow cells which no other such line explains.
    fn accuse(&self) -> Accused {
        let typical: BTreeMap<PathClass, f64> = self.classes.iter().filter_map(|(&class, pairs)| Some((class, pairs.typical()?))).collect();
        let share = |class: PathClass, line: Line| line.best / typical.get(&class).copied().unwrap_or(f64::NAN);
        let slow = |&(class, _, _, line): &(PathClass, Way, usize, Line)| line.count >= OWN && share(class, line) < SLOW_LINE;
        let mut candidates: Vec<_> = self.lines.iter().filter(slow).collect();
        // Those with most evidence first, then the slowest.
        candidates.sort_by(|a, b| b.3.count.cmp(&a.3.count).then(share(a.0, a.3).total_cmp(&share(b.0, b.3))));
        let mut accused = Accused::new();
        for (class, way, rank, line) in candidates.into_iter().take(CANDIDATES) {
            let own = self.cells(class, way, rank).filter(|(other, _)| !accused.contains_key(&(way.other(), class, *other)));
            if own.take(OWN).count() == OWN {
                accused.insert((way, class, rank), line.best);
            }
        }
        accused
    }

    /// The known cells of a line: the other rank, and the bandwidth.
    fn cells(&self, class: PathClass, way: Way, rank: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..self.lines.world()).filter(move |&other| other != rank).filter_map(move |other| {
            let (rate, of) = self.known.get(way.pair(rank, other))?;
            (of == class).then_some((other, rate))
        })
    }

    /// Slow lines, the slowest first; those of all ranks of a host in one.
    fn tell(&self, accused: &Accused) -> Vec<SlowLine> {
        let mut hosts: BTreeMap<(Way, PathClass, usize), Vec<usize>> = BTreeMap::new();
        let host = |rank: usize| self.node_of.get(rank).copied();
        for &(way, class, rank) in accused.keys() {
            if let Some(host) = host(rank) {
                hosts.entry((way, class, host)).or_default().push(rank);
            }
        }
        let mut size = BTreeMap::new();
        for host in &self.node_of {
            *size.entry(*host).or_insert(0_usize) += 1;
        }
        hosts.retain(|(_, _, host), ranks| ranks.len() > 1 && size.get(host) == Some(&ranks.len()));
        let mut groups: Vec<(Way, PathClass, Vec<usize>, f64)> = Vec::new();
        for (&(way, class, rank), &best) in accused {
            match host(rank).and_then(|host| hosts.get(&(way, class, host))) {
                Some(ranks) if ranks.first() == Some(&rank) => {
                    let bests = ranks.iter().filter_map(|&rank| accused.get(&(way, class, rank)).copied());
                    groups.push((way, class, ranks.clone(), bests.fold(best, f64::max)));
                }
                Some(_) => {}
                None => groups.push((way, class, vec![rank], best)),
            }
        }
        let typical = |class| self.typical(class).unwrap_or(f64::NAN);
        groups.sort_by(|a, b| (a.3 / typical(a.1)).total_cmp(&(b.3 / typical(b.1))));
        groups.truncate(TOLD);
        let mut told: Vec<SlowLine> = Vec::new();
        for (way, class, ranks, best) in groups {
            let line = self.describe(accused, (way, class, ranks, best));
            // A rank that is slow over all paths is one finding.
            match told.iter_mut().find(|known| known.way == way && known.ranks.len() == 1 && known.ranks == line.ranks) {
                Some(known) => {
                    known.classes.push(class);
                    (known.slow, known.of) = (known.slow + line.slow, known.of + line.of);
                }
                None => told.push(line),
            }
        }
        told
    }

    fn describe(&self, accused: &Accused, (way, class, ranks, best): (Way, PathClass, Vec<usize>, f64)) -> SlowLine {
        let (mut slow, mut of) = (0, 0);
        let mut slowest: Option<(f64, (usize, usize))> = None;
        for &rank in &ranks {
            let own = accused.get(&(way, class, rank)).copied().unwrap_or(best);
            for (other, rate) in self.cells(class, way, rank) {
                of += 1;
                // Where two slow lines cross, the slower one is the cause.
                if accused.get(&(way.other(), class, other)).is_some_and(|&crossing| crossing < own) {
                    continue;
                }
                slow += 1;
                if slowest.is_none_or(|(least, _)| rate < least) {
                    slowest = Some((rate, way.pair(rank, other)));
                }
            }
        }
        let first = ranks.first().copied().unwrap_or(0);
        let pair = slowest.map_or((first, first), |(_, pair)| pair);
        SlowLine { way, ranks, classes: vec![class], best, typical: self.typical(class).unwrap_or(f64::NAN), slow, of, pair }
    }
}
