//! Fits of path classes, of fans of a width and of relays: the times of their members together.

use std::collections::BTreeMap;

use super::{Detail, Id, Row, path_of};
use crate::fit::{Confidence, Fit, Key, Kind, Spread, median};
use crate::sample::Pattern;
use crate::session::Model;
use crate::session::curves::{self, Curve};
use crate::sweep::Cell;
use crate::topology::PathClass;

/// Pairs of a class that are pooled at most; of more, as many evenly from all ranks.
const POOLED: usize = 8192;

/// A class's fit.
#[derive(Debug, Clone)]
pub struct ClassFit {
    pub row: Row,
    fit: Fit,
    curve: Curve,
    pooled: Option<(usize, usize)>,
}

impl ClassFit {
    /// All of it.
    pub fn detail(&self) -> Detail {
        let mut curve = self.curve.clone();
        let points = curves::points(&mut curve);
        Detail { fit: self.fit.clone(), points, curve, pooled: self.pooled }
    }
}

/// The pairs of each path class between ranks, or an even part of them.
#[derive(Debug, Clone, Default)]
pub struct Members {
    node_of: Vec<usize>,
    /// class, the pairs that stand for it, pairs in all
    classes: Vec<(PathClass, Vec<(u32, u32)>, usize)>,
}

impl Members {
    /// Of ranks on these hosts: `node_of[rank]`.
    pub fn of(node_of: &[usize]) -> Self {
        let mut members = Self { node_of: node_of.to_vec(), classes: Vec::new() };
        let n = node_of.len();
        for class in [PathClass::IntraNode, PathClass::InterNode] {
            let pairs = || (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|&(from, to)| members.path(from, to) == class);
            let total = pairs().count();
            // A step that shares no factor with the row's length meets every receiver.
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
        match (from == to, self.node_of.get(from), self.node_of.get(to)) {
            (true, ..) => PathClass::Local,
            (_, Some(a), Some(b)) if a == b => PathClass::IntraNode,
            _ => PathClass::InterNode,
        }
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
    fn add(&mut self, curve: Curve) {
        for (bytes, mut times) in curve {
            self.curve.entry(bytes).or_default().append(&mut times);
        }
    }
}

/// Every class that has two sizes. `rows` are the single fits, for how far a class's members lie apart.
pub fn of(model: &Model, members: &Members, rows: &[Row], confidence: &Confidence, key: impl Fn(Id) -> Key) -> Vec<ClassFit> {
    let mut pools: BTreeMap<(Kind, Id), Pool> = BTreeMap::new();
    let cell = |pattern, from: usize, to: usize| curves::of_cell(model.cells.sizes_of(Cell { pattern, from, to }));
    let local = (0..model.world()).map(|rank| cell(Pattern::Local, rank, rank));
    let pool = pools.entry((Kind::Local, Id::Class(PathClass::Local))).or_default();
    local.for_each(|curve| pool.add(curve));
    for (pattern, kind) in [(Pattern::Peer, Kind::Peer), (Pattern::Duplex, Kind::Duplex)] {
        for (class, pairs, total) in &members.classes {
            let pool = pools.entry((kind, Id::Class(*class))).or_default();
            pairs.iter().for_each(|&(from, to)| pool.add(cell(pattern, from as usize, to as usize)));
            pool.pooled = (pairs.len() < *total).then_some((pairs.len(), *total));
        }
    }
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
        let Some(path) = path_of(sizes) else { continue };
        let id = Id::FanClass(path, group.peers.len() as u32);
        pools.entry((kinds[0], id)).or_default().add(curves::of_group(sizes));
        pools.entry((kinds[1], id)).or_default().add(curves::of_root(group, sizes));
    }
    let mut classes: Vec<ClassFit> = Vec::new();
    for ((kind, id), mut pool) in pools {
        let path = match id {
            Id::Class(path) | Id::FanClass(path, _) => Some(path),
            _ => None,
        };
        let mut points = curves::points(&mut pool.curve);
        if let Ok(mut fit) = Fit::of(kind, key(id), path, &mut points, Some(confidence)) {
            fit.spread = spread(kind, id, path, rows, &key).map(Box::new);
            classes.push(ClassFit { row: Row::of(id, &fit), fit, curve: pool.curve, pooled: pool.pooled });
        }
    }
    classes
}

/// How far the bandwidths of a class's members lie apart.
fn spread(kind: Kind, id: Id, path: Option<PathClass>, rows: &[Row], key: &impl Fn(Id) -> Key) -> Option<Spread> {
    let width = |row: &Row| match key(row.id) {
        Key::Fan { peers, .. } => peers.len() as u32,
        _ => 0,
    };
    let within = |row: &&Row| {
        row.kind == kind
            && row.path == path
            && row.n > 0
            && row.bandwidth.is_finite()
            && if let Id::FanClass(_, of) = id { width(row) == of } else { path.is_some() }
    };
    let members = || rows.iter().filter(within);
    let order = |a: &&Row, b: &&Row| a.bandwidth.total_cmp(&b.bandwidth);
    let (min, max) = (members().min_by(order)?, members().max_by(order)?);
    let mut all: Vec<f64> = members().map(|row| row.bandwidth).collect();
    let count = all.len();
    // Of a million a sort would be felt; a part of them has the same middle.
    let middle = if count > POOLED { median(&mut all.into_iter().step_by(count / POOLED).collect::<Vec<_>>()) } else { median(&mut all) };
    Some(Spread { count, min: min.bandwidth, min_key: key(min.id), median: middle, max: max.bandwidth, max_key: key(max.id) })
}
