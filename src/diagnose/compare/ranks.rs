//! Which rank of one measurement is which of the other.

use std::collections::HashMap;

use super::CompareError;
use crate::diagnose::Measured;

/// Of each rank of the later measurement its number in the earlier one.
///
/// By the job's own numbers where the hosts agree; else by host and GPU, or host and order on it.
pub(super) fn common(old: &Measured, new: &Measured) -> Result<Vec<Option<usize>>, CompareError> {
    let host = |measured: &Measured, rank: usize| measured.topology.ranks[rank].host.clone();
    let numbers: HashMap<usize, usize> = (0..old.world()).map(|rank| (number(old, rank), rank)).collect();
    let by_number: Vec<Option<usize>> = (0..new.world()).map(|rank| numbers.get(&number(new, rank)).copied()).collect();
    let agree = |(rank, before): (usize, &Option<usize>)| before.is_none_or(|before| host(old, before) == host(new, rank));
    if by_number.iter().any(Option::is_some) && by_number.iter().enumerate().all(agree) {
        return Ok(by_number);
    }
    let (seats, wanted) = (seats(old), seats(new));
    let (before, after) = match (seats.1, wanted.1) {
        (Some(before), Some(after)) => (before, after),
        _ => (seats.0, wanted.0),
    };
    let places: HashMap<_, usize> = before.into_iter().enumerate().map(|(rank, seat)| (seat, rank)).collect();
    let by_seat: Vec<Option<usize>> = after.iter().map(|seat| places.get(seat).copied()).collect();
    if by_seat.iter().any(Option::is_some) {
        return Ok(by_seat);
    }
    let names = |measured: &Measured| {
        let hosts = measured.topology.hosts();
        match hosts.as_slice() {
            [first, second, .., last] if hosts.len() > 3 => format!("{first}, {second} … {last} ({} hosts)", hosts.len()),
            _ => hosts.join(", "),
        }
    };
    Err(CompareError::NoCommonRank { before: names(old), after: names(new) })
}

/// A rank's number in its job.
fn number(measured: &Measured, rank: usize) -> usize {
    measured.provenance.group.get(rank).copied().unwrap_or(rank)
}

/// Host and place on it, one a rank.
type Seats = Vec<(String, usize)>;

/// By the order on the host; and by GPU, where each rank has one of its own.
fn seats(measured: &Measured) -> (Seats, Option<Seats>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut order = Seats::new();
    for placement in &measured.topology.ranks {
        let count = counts.entry(&placement.host).or_default();
        order.push((placement.host.clone(), *count));
        *count += 1;
    }
    let gpus: Option<Seats> = measured.topology.ranks.iter().map(|placement| Some((placement.host.clone(), placement.gpu?))).collect();
    let gpus = gpus.filter(|gpus| gpus.iter().collect::<std::collections::HashSet<_>>().len() == gpus.len());
    (order, gpus)
}
