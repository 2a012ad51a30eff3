use super::*;
use crate::diagnose::{AtSize, PairClass, PairSeen, Pairs, Provenance};
use crate::fit::identify::Together;
use crate::sample::{EngineKind, Memory, MoverKind, Pattern, Status};
use crate::topology::{Efficiency, PathClass, Placement, Router, Topology, Units};

const LARGE: u64 = 256 << 20;

/// Of sender and receiver.
type Factor = fn(usize, usize) -> f64;

/// Ranks on hosts of four, every pair at 10 GB/s with 20 µs before the first byte; noise of 3 % by a seed.
struct Made {
    hosts: Vec<&'static str>,
    seed: u64,
    /// factor on the rate, and on the latency
    rate: Factor,
    wait: Factor,
    n: u32,
}

impl Default for Made {
    fn default() -> Self {
        Self { hosts: vec!["a", "a", "a", "a", "b", "b", "b", "b"], seed: 1, rate: |_, _| 1.0, wait: |_, _| 1.0, n: 7 }
    }
}

fn normal(rng: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

impl Made {
    fn measured(&self) -> Measured {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let place = |(rank, host): (usize, &&str)| Placement { rank, host: (*host).to_owned(), ..Placement::default() };
        let topology = Topology::of(self.hosts.iter().enumerate().map(place).collect());
        let world = topology.world();
        let sizes = [4096, 1 << 20, 16 << 20, 64 << 20, LARGE];
        let (mut told, mut all) = (Vec::new(), Vec::new());
        for (from, to) in (0..world).flat_map(|from| (0..world).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let begin = all.len();
            for bytes in sizes {
                let truth = 20e-6 * (self.wait)(from, to) + bytes as f64 / 10e9 / (self.rate)(from, to);
                let mut times: Vec<f64> = (0..self.n).map(|_| truth * (0.03 * normal(&mut rng)).exp()).collect();
                times.sort_unstable_by(f64::total_cmp);
                let seconds = crate::fit::median(&mut times);
                let scatter = (times[times.len() * 3 / 4] - times[times.len() / 4]) / 2.0 / seconds;
                let scatter = if self.n < 4 { f32::NAN } else { scatter as f32 };
                all.push(AtSize { bytes, seconds, n: self.n, scatter });
            }
            let rate = LARGE as f64 / all[all.len() - 1].seconds;
            let class = u16::from(topology.path(from, to) == PathClass::InterNode);
            told.push((
                PairSeen {
                    from: from as u32,
                    to: to as u32,
                    class,
                    status: Status::Ok,
                    n: self.n,
                    rate,
                    interval: None,
                    expected: f64::NAN,
                    small: all[begin].seconds,
                    fit_error: f32::NAN,
                    scatter: all[all.len() - 1].scatter,
                    drift: f32::NAN,
                },
                begin..all.len(),
            ));
        }
        let class = |path| PairClass { path, label: None, same_socket: None, usual: 10e9, usual_small: 20e-6, count: world };
        Measured {
            units: Units::of(&topology),
            efficiency: Efficiency::default(),
            router: Router::new(&topology, &Efficiency::default()),
            provenance: Provenance {
                engine: EngineKind::Sim,
                mover: MoverKind::Simulated,
                memory: Memory::Host,
                window: 1,
                group: Vec::new(),
                software: Vec::new(),
                environment: Vec::new(),
            },
            bytes: LARGE,
            small_bytes: 4096,
            sizes: sizes.to_vec(),
            classes: vec![class(PathClass::IntraNode), class(PathClass::InterNode)],
            peer: Pairs::with_sizes(world, told, &all),
            duplex: Pairs::default(),
            local: Pairs::default(),
            together: Vec::new(),
            lost: Vec::new(),
            tests: Vec::new(),
            executed: Vec::new(),
            gpus: Vec::new(),
            topology,
        }
    }
}

/// What is said of a change of this machine.
#[track_caller]
fn said(after: Made) -> Vec<String> {
    let changes = compare(&Made::default().measured(), &Made { seed: 99, ..after }.measured()).unwrap();
    assert!(changes.conditions.is_empty(), "{:?}", changes.conditions);
    changes.changes.into_iter().map(|change| change.say).collect()
}

#[test]
fn nothing_changed_is_said_in_at_least_199_of_200_runs() {
    let alarms = (0..200).filter(|&seed| {
        let changes = compare(&Made { seed, ..Made::default() }.measured(), &Made { seed: seed + 1000, ..Made::default() }.measured());
        changes.unwrap().any()
    });
    assert!(alarms.count() <= 1);
}

#[test]
fn one_link_slower_by_a_tenth_is_named_alone_in_at_least_98_of_100_runs() {
    let mut right = 0;
    for seed in 0..100 {
        let after = Made { seed: seed + 1000, rate: |from, to| if (from, to) == (5, 2) { 0.9 } else { 1.0 }, ..Made::default() };
        let changes = compare(&Made { seed, ..Made::default() }.measured(), &after.measured()).unwrap();
        let named = [Place::Pair { from: 5, to: 2 }] == changes.changes.iter().map(|change| change.place).collect::<Vec<_>>()[..];
        right += usize::from(named && changes.beyond(5, 2) && !changes.beyond(2, 5));
    }
    assert!(right >= 98, "{right}");
}

#[test]
fn what_moved_alike_is_one_line_and_names_its_cause() {
    let cases: [(&str, Factor); 6] = [
        ("rank 3 sends: 20 % slower", |from, _| if from == 3 { 0.8 } else { 1.0 }),
        ("rank 6 receives: ", |_, to| if to == 6 { 0.7 } else { 1.0 }),
        ("rank 1 sends and receives: ", |from, to| if from == 1 || to == 1 { 0.8 } else { 1.0 }),
        ("a → b: ", |from, to| if from < 4 && to >= 4 { 0.8 } else { 1.0 }),
        ("all inter_node pairs: ", |from, to| if (from < 4) == (to < 4) { 1.0 } else { 0.8 }),
        ("all pairs: 25 % faster", |_, _| 1.25),
    ];
    for (words, rate) in cases {
        let said = said(Made { rate, ..Made::default() });
        assert!(said.len() == 1 && said[0].starts_with(words), "{words}: {said:?}");
    }
}

#[test]
fn two_causes_at_once_are_two_lines_the_graver_first() {
    let said = said(Made {
        rate: |from, to| match (from, to) {
            (3, _) => 0.4,
            (5, 6) => 0.8,
            (6, 5) => 1.3,
            _ => 1.0,
        },
        ..Made::default()
    });
    let starts = ["rank 3 sends: 2.5 × slower", "5→6: ", "6→5: "];
    assert!(said.len() == 3 && said.iter().zip(starts).all(|(said, start)| said.starts_with(start)), "{said:?}");
    assert!(said[2].contains("faster"), "{said:?}");
}

#[test]
fn a_link_that_slowed_within_a_class_that_slowed_is_a_line_of_its_own() {
    let said = said(Made {
        rate: |from, to| {
            if (from, to) == (0, 4) {
                0.4
            } else if (from < 4) == (to < 4) {
                1.0
            } else {
                0.85
            }
        },
        ..Made::default()
    });
    assert!(said.len() == 2 && said[0].starts_with("all inter_node pairs") && said[1].starts_with("0→4: "), "{said:?}");
}

#[test]
fn latency_and_rate_are_told_apart() {
    let said = said(Made { wait: |from, to| if (from, to) == (2, 1) { 2.0 } else { 1.0 }, ..Made::default() });
    assert!(said.len() == 1 && said[0].starts_with("2→1, small messages: ") && said[0].contains("longer"), "{said:?}");
}

#[test]
fn pairs_that_scatter_from_run_to_run_more_than_their_repeats_do_are_no_change() {
    // 8 % from run to run by pair, 3 % from repeat to repeat.
    let rate = |from: usize, to: usize| (0.08 * normal(&mut fastrand::Rng::with_seed((from * 8 + to) as u64))).exp();
    let said = said(Made { rate, ..Made::default() });
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn sizes_that_changed_each_its_own_way_are_seldom_a_change_of_the_rate() {
    // 8 % from run to run by size, as caches do it; two pairs are too few to show it by themselves.
    let alarms = (0..50).filter(|&seed| {
        let made = |seed| Made { hosts: vec!["a", "a"], seed, ..Made::default() }.measured();
        let (before, mut after) = (made(seed), made(seed + 1000));
        let mut rng = fastrand::Rng::with_seed(seed + 2000);
        let mut all = Vec::new();
        let seen: Vec<PairSeen> = after.peer.iter().copied().collect();
        let told = seen.into_iter().map(|pair| {
            let begin = all.len();
            let sizes = after.peer.sizes(pair.from as usize, pair.to as usize);
            all.extend(sizes.iter().map(|size| AtSize { seconds: size.seconds * (0.08 * normal(&mut rng)).exp(), ..*size }));
            (pair, begin..all.len())
        });
        let told = told.collect();
        after.peer = Pairs::with_sizes(2, told, &all);
        compare(&before, &after).unwrap().changes.iter().any(|change| change.what == What::Rate)
    });
    let alarms = alarms.count();
    assert!(alarms <= 3, "{alarms}");
}

#[test]
fn what_differs_in_how_it_was_measured_is_told_first() {
    let before = Made::default().measured();
    let mut after = Made { seed: 99, ..Made::default() }.measured();
    after.provenance.mover = MoverKind::MpiPut;
    after.provenance.memory = Memory::Cuda;
    after.provenance.window = 8;
    after.provenance.environment.push(("UCX_TLS".to_owned(), "tcp".to_owned()));
    after.topology.ranks[3].numa = Some(1);
    let changes = compare(&before, &after).unwrap();
    let told = [
        "mover: simulated before, mpi_put now",
        "memory: host before, cuda now",
        "messages outstanding: 1 before, 8 now",
        "UCX_TLS: not set before, tcp now",
        "rank 3: NUMA node none before, 1 now",
    ];
    assert_eq!(changes.conditions, told);
    assert!(!changes.any());
}

#[test]
fn a_link_of_the_hardware_that_trained_down_is_told() {
    use crate::topology::hardware::{Hardware, PciDevice, PciKind};
    use crate::topology::{Lanes, PcieLink};
    let with = |width: u32| {
        let mut measured = Made::default().measured();
        let link = Some(PcieLink { now: Lanes::of_generation(5, width), most: None, port: None });
        let card = PciDevice { class: 0x03_02_00, kind: PciKind::Endpoint, link, ..PciDevice::default() };
        measured.topology.hardware = vec![Hardware { host: "a".to_owned(), pci: vec![card], ..Hardware::default() }];
        measured
    };
    assert_eq!(compare(&with(16), &with(8)).unwrap().conditions, ["a: lanes of 0000:00:00.0 16 before, 8 now"]);
}

#[test]
fn ranks_that_are_numbered_otherwise_are_found_by_host_and_place() {
    let before = Made { rate: |from, to| if (from, to) == (0, 5) { 0.5 } else { 1.0 }, ..Made::default() };
    let hosts = vec!["b", "b", "b", "b", "a", "a", "a", "a"];
    let after = Made { hosts, seed: 99, rate: |from, to| if (from, to) == (4, 1) { 0.5 } else { 1.0 }, ..Made::default() };
    let changes = compare(&before.measured(), &after.measured()).unwrap();
    assert_eq!(changes.ranks, [4, 5, 6, 7, 0, 1, 2, 3].map(Some));
    assert!(changes.changes.is_empty() && changes.conditions[0].contains("numbered otherwise"), "{changes:?}");
}

#[test]
fn a_group_is_compared_with_the_job_that_it_is_of() {
    let mut group = Made { hosts: vec!["b"; 4], ..Made::default() }.measured();
    group.provenance.group = vec![4, 5, 6, 7];
    let changes = compare(&Made::default().measured(), &group).unwrap();
    assert_eq!((changes.ranks.clone(), changes.compared), ([4, 5, 6, 7].map(Some).to_vec(), 12));
    assert!(changes.conditions.iter().any(|say| say == "only before: rank 0-3 on a"), "{:?}", changes.conditions);
    assert!(changes.conditions.iter().any(|say| say.starts_with("group: all ranks of the job before, rank 4-7 now")));
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let made = |hosts: Vec<&'static str>, n| Made { hosts, n, ..Made::default() }.measured();
    let other = compare(&made(vec!["a", "a"], 7), &made(vec!["x", "y"], 7)).unwrap_err().to_string();
    assert!(other.contains("no rank is in both: one ran on a, the other on x, y"), "{other}");
    let few = compare(&made(vec!["a", "a"], 3), &made(vec!["a", "a"], 3));
    assert_eq!(few, Err(CompareError::TooFewRepeats));
    let mut sizes = made(vec!["a", "a"], 7);
    sizes.peer = Pairs::default();
    assert_eq!(compare(&made(vec!["a", "a"], 7), &sizes), Err(CompareError::NothingCommon));
}

#[test]
fn a_pair_that_does_not_answer_any_more_is_told_first() {
    let before = Made::default().measured();
    let mut after = Made { seed: 99, rate: |from, _| if from == 3 { 0.5 } else { 1.0 }, ..Made::default() }.measured();
    let seen = after.peer.iter().map(|pair| {
        let dead = (pair.from, pair.to) == (1, 6);
        (PairSeen { status: if dead { Status::Timeout } else { pair.status }, ..*pair }, dead)
    });
    let mut all = Vec::new();
    let told = seen.map(|(pair, dead)| {
        let begin = all.len();
        if !dead {
            all.extend_from_slice(after.peer.sizes(pair.from as usize, pair.to as usize));
        }
        (pair, begin..all.len())
    });
    let told = told.collect();
    after.peer = Pairs::with_sizes(8, told, &all);
    let changes = compare(&before, &after).unwrap();
    let said: Vec<&str> = changes.changes.iter().map(|change| change.say.as_str()).collect();
    assert!(said.len() == 2 && said[0] == "1→6: timeout, gave a rate before" && said[1].starts_with("rank 3 sends"), "{said:?}");
}

#[test]
fn a_fan_is_compared_with_itself_and_a_slow_pair_in_it_is_not_told_twice() {
    let fan = |root: usize, peers: &[usize], seconds: f64| Together {
        pattern: Pattern::FanIn,
        root: Some(root),
        flows: peers.iter().map(|&peer| (peer, root)).collect(),
        bytes: LARGE,
        seconds,
        interval: Some(crate::fit::Interval { low: seconds * 0.98, high: seconds * 1.02 }),
        own: Vec::new(),
        alone: Vec::new(),
        n: 8,
    };
    let mut before = Made::default().measured();
    let mut after = Made { seed: 99, rate: |from, to| if (from, to) == (1, 0) { 0.5 } else { 1.0 }, ..Made::default() }.measured();
    before.together = vec![fan(0, &[1, 2], 0.05), fan(5, &[6, 7], 0.05), fan(3, &[1, 2], 0.05)];
    after.together = vec![fan(0, &[1, 2], 0.08), fan(5, &[6, 7], 0.08), fan(3, &[1, 2], 0.05)];
    let changes = compare(&before, &after).unwrap();
    let said: Vec<&str> = changes.changes.iter().map(|change| change.say.as_str()).collect();
    assert!(said.len() == 2 && said[0].starts_with("1→0: 2.0 × slower"), "{said:?}");
    assert_eq!(said[1].split(" (").next().unwrap(), "6-7 into 5 at once: 38 % slower", "{said:?}");
    assert!(said[1].ends_with(": 10.7 → 6.71 GB/s"), "{said:?}");
}
