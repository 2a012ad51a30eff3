use std::collections::HashMap;

use super::targets::{Flows, targets};
use super::{SweepSettings, Target};
use crate::topology::{PathClass, Topology};

/// What a sweep will take, told before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// cells of the matrices
    pub cells: u64,
    /// timed repeats
    pub samples: u64,
    /// seconds, guessed from `rate`
    pub seconds: f64,
    /// buffer memory of each rank, bytes
    pub memory_per_rank: u64,
    /// the host that has least to spare, the memory that its ranks want and what is available there, bytes
    pub tightest: Option<(String, u64, u64)>,
}

impl Estimate {
    /// The host whose memory does not hold this sweep's buffers, if one does not: host, wanted, available.
    pub fn does_not_fit(&self) -> Option<(&str, u64, u64)> {
        // A fifth stays for MPI, the page cache and everybody else.
        self.tightest
            .as_ref()
            .filter(|(_, wanted, available)| *wanted > available / 5 * 4)
            .map(|(host, wanted, available)| (host.as_str(), *wanted, *available))
    }
}

/// Estimate a sweep's time and memory. `rate` gives bytes per second for a path, measured or guessed.
pub fn estimate(settings: &SweepSettings, topology: &Topology, rate: impl Fn(PathClass) -> f64) -> Estimate {
    let ranks = settings.ranks_of(topology.world());
    let node_of = topology.node_of();
    let hosts = topology.hosts();
    let mut per_host = vec![0_u64; hosts.len()];
    for &rank in &ranks {
        if let Some(&node) = node_of.get(rank) {
            per_host[node] += 1;
        }
    }
    let targets = targets(settings, topology);
    // Targets by how they move: several transfers at once are guessed to share the slowest one's path.
    let mut kinds: HashMap<(PathClass, usize), u64> = HashMap::new();
    let lanes = lanes(settings, topology);
    let mut cells = 0;
    for (target, flows) in &targets {
        let ends: Vec<(usize, usize)> = match target {
            Target::Pair(_) => target.cells().into_iter().map(|cell| (cell.from, cell.to)).collect(),
            Target::Group(_) => flows.clone(),
        };
        let class = ends.iter().map(|&(from, to)| path(&node_of, from, to)).max().unwrap_or(PathClass::Local);
        let busiest = busiest(&ends);
        cells += ends.len() as u64;
        *kinds.entry((class, busiest)).or_default() += 1;
    }
    // Each probe costs about a control message, its warm-up, one verified window and a ready handshake a repeat.
    let (probe_cost, repeat_cost) = (2e-3, 5e-4);
    let passes = if settings.repeats > 1 { 2.0 } else { 1.0 };
    let mut seconds = 0.0;
    for (&(class, busiest), &count) in &kinds {
        for &size in &settings.sizes {
            let one = repeat_cost + size as f64 * f64::from(settings.window) * busiest as f64 / rate(class).max(1.0);
            let untimed = passes * (probe_cost + one * (f64::from(settings.warmup) + 1.0));
            seconds += count as f64 * (untimed + one * f64::from(settings.repeats));
        }
    }
    let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
    let memory_per_rank = settings.arena_bytes(cache).saturating_mul(1 + lanes as u64);
    let tightest = per_host
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count > 0)
        .map(|(node, &count)| {
            let available = topology.ranks.iter().zip(&node_of).filter(|&(_, &of)| of == node).map(|(p, _)| p.memory_available).min();
            (hosts[node].to_owned(), memory_per_rank.saturating_mul(count), available.unwrap_or(0))
        })
        .max_by(|a, b| (a.1 as f64 / a.2.max(1) as f64).total_cmp(&(b.1 as f64 / b.2.max(1) as f64)));
    Estimate { cells, samples: cells * settings.sizes.len() as u64 * u64::from(settings.repeats), seconds, memory_per_rank, tightest }
}

/// Path class between two ranks, by the hosts' numbers: [`Topology::path`] compares names.
fn path(node_of: &[usize], from: usize, to: usize) -> PathClass {
    match (from == to, node_of.get(from), node_of.get(to)) {
        (true, ..) => PathClass::Local,
        (_, Some(a), Some(b)) if a == b => PathClass::IntraNode,
        _ => PathClass::InterNode,
    }
}

/// Most transfers that one rank receives, or sends, at the same time.
fn busiest(flows: &[(usize, usize)]) -> usize {
    match flows {
        [] | [_] => flows.len(),
        _ => {
            let mut counts: HashMap<(bool, usize), usize> = HashMap::new();
            for &(from, to) in flows {
                *counts.entry((true, from)).or_default() += 1;
                *counts.entry((false, to)).or_default() += 1;
            }
            counts.into_values().max().unwrap_or(1)
        }
    }
}

/// Receive arenas that each rank needs: the most transfers into one rank at the same time.
pub fn lanes(settings: &SweepSettings, topology: &Topology) -> usize {
    let into = |flows: &Flows| {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for &(_, to) in flows {
            *counts.entry(to).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(1)
    };
    // Of pairs each rank receives from one at a time.
    let groups =
        SweepSettings { patterns: settings.patterns.iter().copied().filter(|pattern| !pattern.is_pair()).collect(), ..settings.clone() };
    targets(&groups, topology).iter().map(|(_, flows)| into(flows)).max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    fn two_hosts() -> Topology {
        let place = |rank: usize, host: &str| Placement {
            rank,
            host: host.to_owned(),
            pid: 1,
            cores: vec![rank],
            numa: None,
            memory_available: 1 << 30,
            memory_total: 4 << 30,
            cache: 0,
        };
        Topology { ranks: vec![place(0, "a"), place(1, "a"), place(2, "b")] }
    }

    #[test]
    fn counts_and_memory_are_exact_and_time_follows_the_slow_path() {
        let settings = SweepSettings { sizes: vec![1 << 20], repeats: 3, ..SweepSettings::default() };
        let fast = estimate(&settings, &two_hosts(), |_| 1e10);
        assert_eq!((fast.cells, fast.samples, fast.memory_per_rank), (9, 27, 128 << 20));
        assert_eq!(fast.does_not_fit(), None);
        let slow = estimate(&settings, &two_hosts(), |class| if class == PathClass::InterNode { 1e6 } else { 1e10 });
        // 4 cells between hosts, 3 timed + 2 warm-up + 2 verified messages of a second each
        assert!((slow.seconds - fast.seconds - 4.0 * 7.0 * 1.048).abs() < 0.5, "{} {}", slow.seconds, fast.seconds);
    }

    #[test]
    fn buffers_that_do_not_fit_name_the_host() {
        let settings = SweepSettings { sizes: vec![1 << 28], ..SweepSettings::default() };
        assert_eq!(estimate(&settings, &two_hosts(), |_| 1e9).does_not_fit(), Some(("a", 1 << 30, 1 << 30)));
    }
}
