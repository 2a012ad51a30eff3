use std::collections::HashMap;

use super::{Group, SweepSettings, Work};
use crate::sample::{Memory, Pattern};
use crate::topology::hardware::Gpu;
use crate::topology::{PathClass, Topology};
use crate::units::format_size;

/// What a sweep will take, told before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// cells of the matrices, and transfers of groups
    pub cells: u64,
    /// timed repeats, at most
    pub samples: u64,
    /// seconds, guessed from `rate`
    pub seconds: f64,
    /// buffer memory of each rank, bytes
    pub memory_per_rank: u64,
    /// the host, or the GPU, that has least to spare, the memory that its ranks want and what is available there, bytes
    pub tightest: Option<(String, u64, u64)>,
    /// what would fit there, when this does not
    advice: String,
}

impl Estimate {
    /// The host whose memory does not hold this sweep's buffers, if one does not: host, wanted, available.
    pub fn does_not_fit(&self) -> Option<(&str, u64, u64)> {
        self.tightest
            .as_ref()
            .filter(|&&(_, wanted, available)| wanted > usable(available))
            .map(|(host, wanted, available)| (host.as_str(), *wanted, *available))
    }

    /// What to lower so that it fits, with the figure; empty if it does.
    pub fn advice(&self) -> &str {
        &self.advice
    }
}

/// Bytes per second guessed between a host's memory and a GPU's, of which classes of paths between ranks tell nothing: PCIe 4.0 x16.
const HOST_LINK: f64 = 25e9;

/// A fifth stays for MPI, the page cache and everybody else.
const fn usable(available: u64) -> u64 {
    available / 5 * 4
}

/// Estimate a sweep's time and memory. `rate` gives bytes per second for a path, measured or guessed.
pub fn estimate(settings: &SweepSettings, topology: &Topology, rate: impl Fn(PathClass) -> f64) -> Estimate {
    let work = Work::new(settings, topology);
    // Each probe costs about a control message and its untimed repeats; a repeat an acknowledgement besides its bytes.
    let (probe_cost, repeat_cost) = (2e-3, 5e-4);
    let passes = if settings.repeats > 1 { 2.0 } else { 1.0 };
    // Of a target over all sizes, with so many transfers through its busiest end.
    let one = |rate: f64, busiest: usize| -> f64 {
        let of = |&size: &u64| {
            let one = repeat_cost + size as f64 * f64::from(settings.window) * busiest as f64 / rate.max(1.0);
            passes * (probe_cost + one * f64::from(settings.warmup.max(1))) + one * f64::from(settings.batch(size, work.len()))
        };
        settings.sizes.iter().map(of).sum()
    };
    let mut seconds = 0.0;
    for (pattern, class, count) in work.classes() {
        // As many at the same time as hosts alone allow ([`super::Hosts`]).
        let together = match class {
            _ if settings.isolated => 1,
            PathClass::InterNode => work.hosts().min(work.ranks().len() as u64 / 2).max(1),
            PathClass::Local | PathClass::IntraNode => work.hosts().max(1),
        };
        let rate = if pattern.crosses() { HOST_LINK } else { rate(class) };
        seconds += count as f64 / together as f64 * one(rate, 1);
    }
    // Several transfers at once are guessed to share the slowest one's path.
    let mut kinds: HashMap<(PathClass, usize), u64> = HashMap::new();
    for group in work.groups() {
        *kinds.entry(kind(group, &work)).or_default() += 1;
    }
    seconds += kinds.into_iter().map(|((class, busiest), count)| count as f64 * one(rate(class), busiest)).sum::<f64>();
    let cells = work.transfers();
    let lanes = lanes_of(&work);
    let room = Room::new(settings, topology, &work);
    Estimate {
        cells,
        samples: cells * settings.sizes.len() as u64 * u64::from(settings.repeats),
        seconds,
        memory_per_rank: room.arena.saturating_mul(1 + lanes),
        advice: room.advice(settings, lanes),
        tightest: room.tightest(lanes),
    }
}

/// How a group moves: its longest path, and the most transfers that one rank sends or receives.
fn kind(group: &Group, work: &Work) -> (PathClass, usize) {
    if let Some(root) = group.root {
        let class = group.peers.iter().map(|&peer| work.path(root, peer)).find(|&class| class == PathClass::InterNode);
        return (class.unwrap_or(PathClass::IntraNode), group.peers.len());
    }
    let flows = work.flows_of(group);
    let class = flows.iter().map(|&(from, to)| work.path(from, to)).max().unwrap_or(PathClass::Local);
    (class, most(flows.iter().map(|flow| flow.0)).max(most(flows.iter().map(|flow| flow.1))))
}

/// How often the most frequent one comes.
fn most(ranks: impl Iterator<Item = usize>) -> usize {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for rank in ranks {
        *counts.entry(rank).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Receive arenas that each rank needs: the most transfers into one rank at the same time.
pub fn lanes(settings: &SweepSettings, topology: &Topology) -> usize {
    lanes_of(&Work::new(settings, topology)) as usize
}

fn lanes_of(work: &Work) -> u64 {
    let into = |group: &Group| match group.pattern {
        Pattern::FanIn => group.peers.len(),
        Pattern::Custom => most(work.flows_of(group).into_iter().map(|(_, to)| to)),
        _ => 1,
    };
    // Of pairs each rank receives from one at a time.
    work.groups().map(into).max().unwrap_or(1).max(1) as u64
}

/// GPUs of the ranks that are measured, in words, the ranks on each, and bytes. Before ranks are bound each has a GPU of its own, the
/// smallest of its host; of GPUs that tell no memory nothing is said.
fn gpus(topology: &Topology, work: &Work) -> Vec<Place> {
    let mut all: Vec<Place> = Vec::new();
    for placement in work.ranks().iter().filter_map(|&rank| topology.ranks.get(rank)) {
        let Some(hardware) = topology.hardware_of(&placement.host) else { continue };
        let known = |gpu: &&Gpu| gpu.memory > 0;
        let gpu = match placement.gpu {
            Some(at) => hardware.gpus.get(at).filter(known),
            None => hardware.gpus.iter().filter(known).min_by_key(|gpu| gpu.memory),
        };
        let Some(gpu) = gpu else { continue };
        let name = match placement.gpu {
            Some(_) => format!("GPU {} of {}", gpu.index, placement.host),
            None => format!("the GPU of rank {} on {}", placement.rank, placement.host),
        };
        match all.iter_mut().find(|place| place.name == name) {
            Some(place) => place.ranks += 1,
            None => all.push(Place { name, ranks: 1, arenas: None, available: gpu.memory }),
        }
    }
    all
}

/// Memory of the hosts, or of the GPUs: shared by their ranks.
struct Room {
    /// last-level cache, bytes
    cache: u64,
    /// bytes of one arena
    arena: u64,
    places: Vec<Place>,
}

/// Memory that ranks share.
struct Place {
    /// host or GPU
    name: String,
    /// that are measured there
    ranks: u64,
    /// arenas of each rank, where lanes do not tell: one to send from, and one a lane
    arenas: Option<u64>,
    /// bytes
    available: u64,
}

impl Place {
    fn wanted(&self, arena: u64, lanes: u64) -> u64 {
        arena.saturating_mul(self.arenas.unwrap_or(1 + lanes)).saturating_mul(self.ranks)
    }
}

impl Room {
    fn new(settings: &SweepSettings, topology: &Topology, work: &Work) -> Self {
        let node_of = topology.node_of();
        let names = topology.hosts();
        let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
        let arena = settings.arena_bytes(cache);
        let crossing = settings.patterns.iter().filter(|pattern| pattern.crosses()).count() as u64;
        let arenas = (settings.memory == Memory::Cuda).then_some(crossing);
        let place = |&name: &&str| Place { name: name.to_owned(), ranks: 0, arenas, available: u64::MAX };
        let mut places: Vec<Place> = names.iter().map(place).collect();
        for (placement, &node) in topology.ranks.iter().zip(&node_of) {
            places[node].available = places[node].available.min(placement.memory_available);
        }
        for &rank in work.ranks() {
            if let Some(&node) = node_of.get(rank) {
                places[node].ranks += 1;
            }
        }
        places.retain(|place| place.ranks > 0 && place.arenas != Some(0));
        if settings.memory == Memory::Cuda {
            places.extend(gpus(topology, work));
        }
        Self { cache, arena, places }
    }

    /// The host, or the GPU, with least to spare, what its ranks want and what it has.
    fn tightest(&self, lanes: u64) -> Option<(String, u64, u64)> {
        let all = self.places.iter().map(|place| (place.name.clone(), place.wanted(self.arena, lanes), place.available));
        all.max_by(|a, b| (a.1 as f64 / a.2.max(1) as f64).total_cmp(&(b.1 as f64 / b.2.max(1) as f64)))
    }

    fn advice(&self, settings: &SweepSettings, lanes: u64) -> String {
        let holds = |arena: u64, lanes: u64| self.places.iter().all(|place| place.wanted(arena, lanes) <= usable(place.available));
        if holds(self.arena, lanes) {
            return String::new();
        }
        let mut ways = Vec::new();
        if let Some(widest) = (1..lanes).rev().find(|&lanes| holds(self.arena, lanes)) {
            ways.push(format!("a width of {widest} would fit (--widths {widest})"));
        }
        let with = |size: u64, arena: u64| SweepSettings { sizes: vec![size], arena, ..settings.clone() }.arena_bytes(self.cache);
        let fits = |size: u64, arena: u64| holds(with(size, arena), lanes);
        if let Some(&size) = settings.sizes.iter().rev().find(|&&size| fits(size, 1)) {
            let arena = if fits(size, settings.arena) { "" } else { " with a smaller --arena" };
            ways.push(format!("sizes up to {} would fit{arena}", format_size(size)));
        }
        if ways.is_empty() {
            ways.push("lower --sizes, --window or --arena".to_owned());
        }
        ways.join(", or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Hardware, Placement};

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
            ..Placement::default()
        };
        Topology::of(vec![place(0, "a"), place(1, "a"), place(2, "b")])
    }

    #[test]
    fn counts_and_memory_are_exact_and_time_follows_the_slow_path() {
        let settings = SweepSettings { sizes: vec![1 << 20], repeats: 3, ..SweepSettings::default() };
        let fast = estimate(&settings, &two_hosts(), |_| 1e10);
        assert_eq!((fast.cells, fast.samples, fast.memory_per_rank), (9, 27, 128 << 20));
        assert_eq!(fast.does_not_fit(), None);
        let slow = estimate(&settings, &two_hosts(), |class| if class == PathClass::InterNode { 1e6 } else { 1e10 });
        // 4 cells between hosts, 3 timed + 2 warm-up messages of a second each
        assert!((slow.seconds - fast.seconds - 4.0 * 5.0 * 1.048).abs() < 0.5, "{} {}", slow.seconds, fast.seconds);
    }

    #[test]
    fn buffers_that_do_not_fit_name_the_host() {
        let settings = SweepSettings { sizes: vec![1 << 20, 1 << 28], ..SweepSettings::default() };
        let told = estimate(&settings, &two_hosts(), |_| 1e9);
        assert_eq!(told.does_not_fit(), Some(("a", 1 << 30, 1 << 30)));
        assert_eq!(told.advice(), "sizes up to 1 MiB would fit");
    }

    #[test]
    fn buffers_on_gpus_take_the_memory_of_gpus() {
        let mut topology = two_hosts();
        let gpu = |index, memory| Gpu { index, memory, ..Gpu::default() };
        let hardware = |host: &str, gpus| Hardware { host: host.to_owned(), gpus, ..Hardware::default() };
        topology.hardware = vec![hardware("a", vec![gpu(0, 8 << 30), gpu(3, 1 << 30)]), hardware("b", vec![gpu(0, 0)])];
        let settings = SweepSettings { sizes: vec![1 << 20, 1 << 29], memory: Memory::Cuda, ..SweepSettings::default() };
        let told = estimate(&settings, &topology, |_| 1e9);
        assert_eq!(told.does_not_fit(), Some(("the GPU of rank 1 on a", 1 << 30, 1 << 30)), "hosts have less, and it does not matter");
        (topology.ranks[0].gpu, topology.ranks[1].gpu) = (Some(0), Some(0));
        assert_eq!(estimate(&settings, &topology, |_| 1e9).tightest, Some(("GPU 0 of a".to_owned(), 2 << 30, 8 << 30)));
        (topology.ranks[0].gpu, topology.ranks[1].gpu) = (Some(1), Some(0));
        let told = estimate(&settings, &topology, |_| 1e9);
        assert_eq!(told.does_not_fit(), Some(("GPU 3 of a", 1 << 30, 1 << 30)));
        assert!(told.advice().contains("sizes up to 1 MiB would fit"), "{}", told.advice());
    }

    #[test]
    fn copies_between_hosts_and_gpus_take_memory_of_both() {
        let mut topology = two_hosts();
        let gpus = vec![Gpu { memory: 64 << 30, ..Gpu::default() }, Gpu { index: 1, memory: 64 << 30, ..Gpu::default() }];
        topology.hardware = vec![Hardware { host: "a".to_owned(), gpus, ..Hardware::default() }];
        let patterns = vec![Pattern::HostToDevice, Pattern::DeviceToHost];
        let settings = SweepSettings { sizes: vec![1 << 20, 1 << 28], memory: Memory::Cuda, patterns, ..SweepSettings::default() };
        let told = estimate(&settings, &topology, |_| f64::NAN);
        assert_eq!(told.does_not_fit(), Some(("a", 2 * 2 * (256 << 20), 1 << 30)), "an arena for each pattern, of two ranks");
        assert_eq!(told.advice(), "sizes up to 1 MiB would fit with a smaller --arena");
        let one = SweepSettings { patterns: vec![Pattern::DeviceToHost], ..settings.clone() };
        assert_eq!(estimate(&one, &topology, |_| f64::NAN).does_not_fit(), None);
        // What paths between ranks give does not tell how long they take.
        assert!(told.seconds.is_finite() && told.seconds > 1.5 * 2.0 * 8.0 * f64::from(1 << 28) / HOST_LINK, "{}", told.seconds);
    }

    #[test]
    fn a_fan_that_is_too_wide_is_told_the_width_that_would_fit() {
        // Two ranks of a host with 1 GiB, of which four fifths may be used: six arenas of 64 MiB each.
        let mut topology = two_hosts();
        for rank in 3..9 {
            topology.ranks.push(Placement { rank, host: format!("c{rank}"), ..topology.ranks[2].clone() });
        }
        let fan = |width| SweepSettings {
            patterns: vec![Pattern::FanIn],
            widths: vec![1, width],
            sizes: vec![1 << 20, 1 << 26],
            ..SweepSettings::default()
        };
        let told = estimate(&fan(8), &topology, |_| 1e9);
        assert_eq!(told.does_not_fit(), Some(("a", 2 * 9 * (64 << 20), 1 << 30)));
        assert!(told.advice().starts_with("a width of 5 would fit (--widths 5), or sizes up to 1 MiB would fit"), "{}", told.advice());
        let told = estimate(&fan(5), &topology, |_| 1e9);
        assert_eq!((told.does_not_fit(), told.advice()), (None, ""));
        assert!(estimate(&fan(6), &topology, |_| 1e9).does_not_fit().is_some(), "not one wider");
        // Sending to many takes no buffers but the receivers' own.
        let out = SweepSettings { patterns: vec![Pattern::FanOut], ..fan(8) };
        assert_eq!(estimate(&out, &topology, |_| 1e9).memory_per_rank, 128 << 20);
    }
}
