//! Requests given out to holders, so that the busiest resource is least busy.

use super::bytes;
use super::weights::Weights;
use crate::plan::build::{Answer, Part, Request};

/// Most parts of a region.
const MOST_PARTS: u64 = 8;
/// The load of a resource counts to this power when a request is given out anew: the busiest decides, the others a little.
const POWER: i32 = 8;
/// Times that every piece is taken back, at most.
const PASSES: usize = 30;
/// Looks at a candidate in all of that, about.
const WORK: usize = 2_000_000;

/// Part of a request that one holder sends.
struct Piece {
    /// number of the request
    request: usize,
    bytes: u64,
}

/// `part` of `parts` equal shares of so many; the products of what files tell do not fit 64 bits.
fn share(all: u64, part: u64, parts: u64) -> u64 {
    u64::try_from(u128::from(all) * u128::from(part) / u128::from(parts.max(1))).unwrap_or(all)
}

/// Requests in pieces, and who could send each.
pub(super) struct Pieces {
    each: Vec<Piece>,
    /// by request: process of the target; processes that hold it, ascending by location, each once, with that location
    ends: Vec<(usize, Vec<(usize, i64)>)>,
    /// by request: axis that it is cut along, and into how many
    cuts: Vec<(usize, u64)>,
}

impl Pieces {
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Each request as it is.
    pub fn whole(requests: &[Request]) -> Option<Self> {
        Self::new(requests, |_, _| (0, 1))
    }

    /// Large ones in equal parts, none smaller than what pays on the path of each holder, nor than `least` bytes.
    pub fn cut(requests: &[Request], weights: &Weights, least: u64) -> Option<Self> {
        Self::new(requests, |request, (to, holders)| {
            let remote = holders.iter().filter(|(from, _)| from != to).map(|&(from, _)| weights.floor(from, *to).saturating_add(1));
            let floor = remote.chain([least]).max().unwrap_or(1).max(1);
            let most = (bytes(request, &request.shape) / floor).min(holders.len() as u64).min(MOST_PARTS);
            // The outermost axis that is long enough: parts of it lie in one piece.
            let axis = request.shape.iter().position(|&extent| extent >= most);
            match axis {
                // Parts differ by a row at most; the smallest must pay, too.
                Some(axis) if most > 1 => {
                    let rows = request.shape[axis];
                    let row = bytes(request, &request.shape) / rows.max(1);
                    let parts = (1..=most).rev().find(|parts| rows / parts * row >= floor).unwrap_or(1);
                    (axis, parts)
                }
                _ => (0, 1),
            }
        })
    }

    fn new(requests: &[Request], cut: impl Fn(&Request, &(usize, Vec<(usize, i64)>)) -> (usize, u64)) -> Option<Self> {
        let mut own = Self { each: Vec::new(), ends: Vec::new(), cuts: Vec::new() };
        for (number, request) in requests.iter().enumerate() {
            let mut holders: Vec<(usize, i64)> = Vec::new();
            for candidate in &request.candidates {
                let process = candidate.process?;
                if !holders.iter().any(|&(known, _)| known == process) {
                    holders.push((process, candidate.location));
                }
            }
            let ends = (request.process?, holders);
            // A copy in place needs no help.
            let local = ends.1.iter().any(|&(from, _)| from == ends.0);
            let (axis, parts) = if local { (0, 1) } else { cut(request, &ends) };
            let all = bytes(request, &request.shape);
            own.each.extend((0..parts).map(|part| Piece { request: number, bytes: share(all, part + 1, parts) - share(all, part, parts) }));
            own.ends.push(ends);
            own.cuts.push((axis, parts));
        }
        Some(own)
    }
}

/// Every piece with a holder.
pub(super) struct Given<'a> {
    pieces: &'a Pieces,
    weights: &'a Weights,
    /// by piece: number of its holder
    holder: Vec<usize>,
    /// seconds by resource
    loads: Vec<f64>,
    /// pieces, the largest first
    order: Vec<usize>,
}

impl<'a> Given<'a> {
    /// As answers say, else one after another, the largest first, those without a choice before all.
    pub fn new(pieces: &'a Pieces, weights: &'a Weights, start: Option<&[Answer]>) -> Self {
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        let choice = |piece: &Piece| pieces.ends[piece.request].1.len() > 1;
        order.sort_by_key(|&at| {
            let piece = &pieces.each[at];
            (choice(piece), std::cmp::Reverse(piece.bytes), at)
        });
        let mut given =
            Self { pieces, weights, holder: vec![0; pieces.len()], loads: vec![0.0; weights.resources()], order: order.clone() };
        for at in order {
            let told = start.and_then(|answers| given.told(at, answers));
            given.holder[at] = told.unwrap_or_else(|| given.least_busy(at));
            given.add(at, 1.0);
        }
        given.order.retain(|&at| choice(&pieces.each[at]));
        given
    }

    /// The holder that answers name for a piece: of parts, that of the most.
    fn told(&self, at: usize, answers: &[Answer]) -> Option<usize> {
        let request = self.pieces.each[at].request;
        let source = match &answers[request] {
            Answer::Whole(source) => *source,
            Answer::Parts(parts) => {
                // The pieces of a request follow each other; each takes the part that lies as far along.
                let first = self.pieces.each.partition_point(|piece| piece.request < request);
                let count = self.pieces.cuts[request].1 as usize;
                parts.get((at - first) * parts.len() / count.max(1))?.source
            }
        };
        self.pieces.ends[request].1.iter().position(|&(_, location)| location == source)
    }

    fn costs(&self, at: usize, holder: usize) -> &'a [(usize, f64)] {
        let (to, holders) = &self.pieces.ends[self.pieces.each[at].request];
        self.weights.of_pair(holders[holder].0, *to)
    }

    fn add(&mut self, at: usize, sign: f64) {
        let bytes = self.pieces.each[at].bytes as f64;
        for &(resource, weight) in self.costs(at, self.holder[at]) {
            // Rounding leaves no debt.
            self.loads[resource] = (self.loads[resource] + sign * bytes * weight).max(0.0);
        }
    }

    /// The holder whose resources would be least busy; of equal ones the lowest location.
    fn least_busy(&self, at: usize) -> usize {
        let bytes = self.pieces.each[at].bytes as f64;
        let busy = |holder: usize| {
            let after = self.costs(at, holder).iter().map(|&(resource, weight)| (self.loads[resource] + bytes * weight, bytes * weight));
            after.fold((0.0_f64, 0.0), |(most, sum), (load, own)| (most.max(load), sum + own))
        };
        self.best(at, |holder| {
            let (most, sum) = busy(holder);
            // Among equally busy ones the cheapest.
            most + 1e-6 * sum
        })
    }

    fn best(&self, at: usize, cost: impl Fn(usize) -> f64) -> usize {
        let holders = self.pieces.ends[self.pieces.each[at].request].1.len();
        let each = (0..holders).map(|holder| (holder, cost(holder)));
        each.reduce(|best, one| if one.1 < best.1 * (1.0 - 1e-12) { one } else { best }).map_or(0, |(holder, _)| holder)
    }

    /// Take each piece back and give it out anew, until nothing changes.
    pub fn settle(&mut self) {
        let looks: usize = self.order.iter().map(|&at| self.pieces.ends[self.pieces.each[at].request].1.len()).sum();
        let passes = (WORK / looks.max(1)).clamp(1, PASSES);
        for _ in 0..passes {
            // Relative to the busiest: a power of seconds would vanish.
            let scale = self.loads.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let mut changed = false;
            for number in 0..self.order.len() {
                let at = self.order[number];
                let before = self.holder[at];
                self.add(at, -1.0);
                let bytes = self.pieces.each[at].bytes as f64;
                let worse = |holder: usize| -> f64 {
                    let costs = self.costs(at, holder).iter();
                    let power = |load: f64| (load / scale).powi(POWER);
                    costs.map(|&(resource, weight)| power(self.loads[resource] + bytes * weight) - power(self.loads[resource])).sum()
                };
                let best = self.best(at, worse);
                if worse(best) < worse(before) * (1.0 - 1e-9) {
                    self.holder[at] = best;
                    changed = true;
                }
                self.add(at, 1.0);
            }
            if !changed {
                break;
            }
        }
    }

    /// As answers: what one holder sends of a request is one part.
    pub fn answers(&self, requests: &[Request]) -> Vec<Answer> {
        let mut first = 0;
        let each = requests.iter().enumerate().map(|(number, request)| {
            let (axis, count) = self.pieces.cuts[number];
            let holders = &self.pieces.ends[number].1;
            let mut chosen: Vec<usize> = self.holder[first..first + count as usize].to_vec();
            first += count as usize;
            chosen.sort_unstable();
            let location = |holder: usize| holders[holder].1;
            if chosen.first() == chosen.last() {
                return Answer::Whole(chosen.first().map_or(0, |&holder| location(holder)));
            }
            let rows = request.shape[axis];
            let mut parts: Vec<Part> = Vec::new();
            for (at, &holder) in chosen.iter().enumerate() {
                let cut = |at: usize| share(rows, at as u64, count);
                let (start, end) = (cut(at), cut(at + 1));
                match parts.last_mut() {
                    Some(last) if last.source == location(holder) => last.shape[axis] += end - start,
                    _ => {
                        let mut part = Part { origin: request.origin.clone(), shape: request.shape.clone(), source: location(holder) };
                        part.origin[axis] += start;
                        part.shape[axis] = end - start;
                        parts.push(part);
                    }
                }
            }
            Answer::Parts(parts)
        });
        each.collect()
    }
}
