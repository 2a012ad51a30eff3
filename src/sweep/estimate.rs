use super::SweepSettings;
use crate::sample::Pattern;
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
    let n = ranks.len() as u64;
    let within: u64 = per_host.iter().map(|&k| k * k.saturating_sub(1)).sum();
    let mut classes = Vec::new();
    for pattern in &settings.patterns {
        match pattern {
            Pattern::Local => classes.push((PathClass::Local, n)),
            Pattern::Peer => {
                classes.push((PathClass::IntraNode, within));
                classes.push((PathClass::InterNode, n * n.saturating_sub(1) - within));
            }
        }
    }
    // Each probe costs about a control message, its warm-up, one verified window and a ready handshake a repeat.
    let (probe_cost, repeat_cost) = (2e-3, 5e-4);
    let passes = if settings.repeats > 1 { 2.0 } else { 1.0 };
    let mut seconds = 0.0;
    for &(class, cells) in &classes {
        for &size in &settings.sizes {
            let one = repeat_cost + size as f64 * f64::from(settings.window) / rate(class).max(1.0);
            let untimed = passes * (probe_cost + one * (f64::from(settings.warmup) + 1.0));
            seconds += cells as f64 * (untimed + one * f64::from(settings.repeats));
        }
    }
    let cells = classes.iter().map(|&(_, cells)| cells).sum::<u64>();
    let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
    let memory_per_rank = settings.arena_bytes(cache).saturating_mul(2);
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
