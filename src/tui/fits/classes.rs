//! Fits of path classes, of fans of a width and of relays: the times of their members together.

use std::collections::BTreeMap;

use super::{Detail, Id, OWN, PAIRS, Row, path_of_group};
use crate::fit::{Confidence, Fit, Key, Kind, Spread, median};
use crate::sample::Pattern;
use crate::session::curves::{self, Curve};
use crate::session::{Model, SizeCell};
use crate::sweep::Cell;
use crate::topology::{PathClass, path_of};

/// Pairs of a class that are pooled at most; of more, as many evenly from all ranks.
const POOLED: usize = 4096;
/// Members whose bandwidths are sorted at most for their median; of more, as many evenly.
const SORTED: usize = 65_536;

/// A class's fit.
#[derive(Debug, Clone)]
pub struct ClassFit {
    pub row: Row,
    detail: Detail,
}

impl ClassFit {
    /// All of it.
    pub const fn detail(&self) -> &Detail {
        &self.detail
    }
}

/// The pairs of each path class between ranks, or an even part of them.
#[derive(Debug, Clone, Default)]
pub struct Members {
    node_of: Vec<usize>,
    classes: Vec<Class>,
}

/// A path class, the pairs that stand for it, and pairs in all.
type Class = (PathClass, Vec<(u32, u32)>, usize);

impl Members {
    /// Of ranks on these hosts: `node_of[rank]`.
    pub fn of(node_of: &[usize]) -> Self {
        let mut members = Self { node_of: node_of.to_vec(), classes: Vec::new() };
        let n = node_of.len();
        for class in [PathClass::IntraNode, PathClass::InterNode] {
            let pairs = || (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|&(from, to)| members.path(from, to) == class);
            let total = pairs().count();
            // A step that shares no factor with the length of a row meets every receiver.
            let row = (total / n.max(1)).max(1);
            let mut step = total.div_ceil(POOLED).max(1);
            while step > 1 && gcd(step, row) > 1 {
                step += 1;
            }
            let taken = pairs().step_by(step).map(|(from, to)| (from as u32, to as u32)).collect();
            members.classes.push((class, taken, total));
        }
        members
    }

    /// Path class between two ranks, by the numbers of their hosts.
    pub fn path(&self, from: usize, to: usize) -> PathClass {
        path_of(&self.node_of, from, to)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Times of a class, and the pairs that they are of where not of all.
#[derive(Default)]
struct Pool {
    curve: Curve,
    pooled: Option<(usize, usize)>,
}

impl Pool {
    fn add_cell(&mut self, sizes: &[SizeCell]) {
        for size in sizes {
            let times = self.curve.entry(size.bytes).or_default();
            times.extend(size.shots.iter().filter(|shot| shot.take == size.take).filter_map(crate::session::Shot::seconds_per_message));
        }
    }

    fn add(&mut self, curve: Curve) {
        for (bytes, mut times) in curve {
            self.curve.entry(bytes).or_default().append(&mut times);
        }
    }
}

/// Every class that has two sizes. `rows` are the single fits, for how far a class's members lie apart.
/// `width` is a fan's, 0 of all else.
pub fn of(
    model: &Model,
    members: &Members,
    rows: &[Row],
    confidence: &Confidence,
    width: impl Fn(Id) -> usize,
    key: impl Fn(Id) -> Key,
) -> Vec<ClassFit> {
    let mut pools: BTreeMap<(Kind, Id), Pool> = BTreeMap::new();
    let sizes = |pattern, from: usize, to: usize| model.cells.sizes_of(Cell { pattern, from, to });
    for (pattern, kind) in &PAIRS[..OWN] {
        let pool = pools.entry((*kind, Id::Class(PathClass::Local))).or_default();
        (0..model.world()).for_each(|rank| pool.add_cell(sizes(*pattern, rank, rank)));
    }
    for &(pattern, kind) in &PAIRS[OWN..] {
        for (class, pairs, total) in &members.classes {
            let pool = pools.entry((kind, Id::Class(*class))).or_default();
            for &(from, to) in pairs {
                pool.add_cell(sizes(pattern, from as usize, to as usize));
            }
            pool.pooled = (pairs.len() < *total).then_some((pairs.len(), *total));
        }
    }
    groups(model, &mut pools);
    let mut spreads = spreads(rows, width);
    let mut classes: Vec<ClassFit> = Vec::new();
    for ((kind, id), mut pool) in pools {
        let path = match id {
            Id::Class(path) | Id::FanClass(path, _) => Some(path),
            _ => None,
        };
        pool.curve.retain(|_, times| !times.is_empty());
        let mut points = curves::points(&mut pool.curve);
        if let Ok(mut fit) = Fit::of(kind, key(id), path, &mut points, Some(confidence)) {
            let apart = spreads.iter().position(|(class, _)| *class == (kind, id));
            fit.spread = apart.map(|at| Box::new(spreads.swap_remove(at).1.spread(&key)));
            let row = Row::of(id, &fit);
            classes.push(ClassFit { row, detail: Detail { fit, points, curve: pool.curve, pooled: pool.pooled } });
        }
    }
    classes
}

/// The times of fans and relays.
fn groups(model: &Model, pools: &mut BTreeMap<(Kind, Id), Pool>) {
    for (group, sizes) in model.groups.iter() {
        let kinds = match group.pattern {
            Pattern::FanIn => [Kind::FanIn, Kind::Receive],
            Pattern::FanOut => [Kind::FanOut, Kind::Send],
            Pattern::Relay => {
                for size in sizes {
                    for shot in size.shots.iter().filter(|shot| shot.shot.take == size.take) {
                        let (Some(receive), Some(seconds)) = (shot.receive_path, shot.shot.seconds_per_message()) else { continue };
                        let pool = pools.entry((Kind::Relay, Id::Relay(receive, shot.path))).or_default();
                        pool.curve.entry(size.bytes).or_default().push(seconds);
                    }
                }
                continue;
            }
            _ => continue,
        };
        let Some(path) = path_of_group(sizes) else { continue };
        let id = Id::FanClass(path, group.peers.len() as u32);
        pools.entry((kinds[0], id)).or_default().add(curves::of_group(sizes));
        pools.entry((kinds[1], id)).or_default().add(curves::of_root(group, sizes));
    }
}

/// How far the bandwidths of a class's members lie apart.
struct Apart {
    count: usize,
    min: (f64, Id),
    max: (f64, Id),
    /// all of them, or an even part
    some: Vec<f64>,
}

impl Apart {
    fn add(&mut self, rate: f64, id: Id, every: usize) {
        let less = |a: (f64, Id), b: (f64, Id)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt();
        if less((rate, id), self.min) {
            self.min = (rate, id);
        }
        if less(self.max, (rate, id)) {
            self.max = (rate, id);
        }
        if self.count.is_multiple_of(every) {
            self.some.push(rate);
        }
        self.count += 1;
    }

    fn spread(mut self, key: &impl Fn(Id) -> Key) -> Spread {
        let middle = median(&mut self.some);
        Spread { count: self.count, min: self.min.0, min_key: key(self.min.1), median: middle, max: self.max.0, max_key: key(self.max.1) }
    }
}

/// Of every class that has members with a fit of their own.
fn spreads(rows: &[Row], width: impl Fn(Id) -> usize) -> Vec<((Kind, Id), Apart)> {
    let every = rows.len().div_ceil(SORTED).max(1);
    let mut spreads: Vec<((Kind, Id), Apart)> = Vec::new();
    let mut at = 0;
    for row in rows.iter().filter(|row| row.n > 0 && row.bandwidth.is_finite()) {
        let Some(path) = row.path else { continue };
        let class = (row.kind, if let Id::Fan(_) = row.id { Id::FanClass(path, width(row.id) as u32) } else { Id::Class(path) });
        // Neighbours are mostly of one class, and there are few classes.
        if spreads.get(at).is_none_or(|(known, _)| *known != class) {
            at = spreads.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
                let one = (row.bandwidth, row.id);
                spreads.push((class, Apart { count: 0, min: one, max: one, some: Vec::new() }));
                spreads.len() - 1
            });
        }
        spreads[at].1.add(row.bandwidth, row.id, every);
    }
    spreads
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_even_part_of_a_large_class_has_every_rank_both_ways() {
        let node_of: Vec<usize> = (0..1024).map(|rank| rank / 8).collect();
        let members = Members::of(&node_of);
        for (class, pairs, total) in &members.classes {
            let expected = if *class == PathClass::IntraNode { 1024 * 7 } else { 1024 * 1016 };
            assert!(*total == expected && pairs.len() <= POOLED && pairs.len() * 2 > POOLED.min(expected), "{class:?} {}", pairs.len());
            assert!(pairs.iter().all(|&(from, to)| members.path(from as usize, to as usize) == *class));
            let senders: BTreeSet<u32> = pairs.iter().map(|pair| pair.0).collect();
            let receivers: BTreeSet<u32> = pairs.iter().map(|pair| pair.1).collect();
            assert!(senders.len() > 1000 && receivers.len() > 1000, "{class:?} {} {}", senders.len(), receivers.len());
        }
        // Few pairs are all there.
        let few = Members::of(&[0, 0, 1]);
        assert_eq!(few.classes.iter().map(|(_, pairs, total)| (pairs.len(), *total)).collect::<Vec<_>>(), [(2, 2), (4, 4)]);
    }
}
