//! Sweeps of eight hosts behind two bridges and a trunk (issue 3, e and f): rates, fans, pairs at the same time, and which
//! probes the planner lets run at the same time.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toposcope::export::read_calibration;
use toposcope::fabric::Fabric;
use toposcope::sample::{Pattern, Sample, Status};
use toposcope::session::{Event, store};
use toposcope::sweep::Target;
use toposcope::units::parse_ranks;

use super::lab::{Lab, payload_rate};
use super::settled;

const TOPOSCOPE: &str = env!("CARGO_BIN_EXE_toposcope");
/// Ranks, one on each host; the first half is behind bridge 0.
pub(super) const WORLD: usize = 8;
pub(super) const NEAR: usize = WORLD / 2;
/// What hosts send and receive, and what the trunk carries each way, Mbit/s: what two cores manage for four pairs at a time.
/// One port or the trunk alone may have [`FAST`] times as much.
pub(super) const RATE: u32 = 400;
const FAST: u32 = 2;
/// The exceptions: rank 1 receives, and rank 2 sends, no more than this.
const SLOW: u32 = 300;
const SLOW_RECEIVER: usize = 1;
const SLOW_SENDER: usize = 2;
/// Of every message. A full bucket makes one of them too fast by a sixteenth: the first after a pause, which no median minds.
pub(super) const SIZE: &str = "2MiB";
const LIMIT: Duration = Duration::from_secs(240);

/// The same machine as a fabric file.
const FABRIC: &str = r#"
[hosts]
names = ["node1", "node2", "node3", "node4", "node5", "node6", "node7", "node8"]
ranks = 1
memory = "1GiB"

[path.local]
alpha = "1us"
rate = "5GB/s"

[path.inter_node]
alpha = "100us"
rate = "47MB/s"

[[shared]]
name = "port"
per = "host"
direction = "each"
path = "inter_node"
rate = "47MB/s"

[[trunk]]
name = "trunk"
from = "0-3"
to = "4-7"
rate = "47MB/s"
"#;

fn crosses(from: usize, to: usize) -> bool {
    (from < NEAR) != (to < NEAR)
}

fn sends(rank: usize) -> u32 {
    if rank == SLOW_SENDER { SLOW } else { RATE }
}

fn receives(rank: usize) -> u32 {
    if rank == SLOW_RECEIVER { SLOW } else { RATE }
}

/// What a pair gets alone, Mbit/s.
fn alone(from: usize, to: usize) -> u32 {
    // The trunk is as wide as the widest port.
    sends(from).min(receives(to))
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..WORLD).flat_map(|from| (0..WORLD).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

/// A lab with `times` these rates of its hosts, and a trunk that carries whatever comes.
pub(super) fn wide(times: u32) -> Option<Lab> {
    let lab = Lab::with_trunk(NEAR, WORLD - NEAR)?;
    for rank in 0..WORLD {
        lab.shape_out(rank + 1, times * sends(rank));
        lab.shape_in(rank + 1, times * receives(rank));
    }
    Some(lab)
}

/// A lab with `times` these rates.
pub(super) fn shaped(times: u32) -> Option<Lab> {
    let lab = wide(times)?;
    lab.shape_trunk(0, times * RATE);
    lab.shape_trunk(1, times * RATE);
    Some(lab)
}

/// A sweep that has ended well.
pub(super) struct Swept {
    samples: Vec<Sample>,
    pub(super) session: PathBuf,
    wall: Duration,
}

/// `toposcope sweep` with `args` on all hosts, named so that a lab may have several.
pub(super) fn sweep(lab: &Lab, name: &str, args: &[&str]) -> Swept {
    let (session, out) = (lab.folder().join(name), lab.folder().join(format!("{name}.json")));
    let mut job = lab.mpirun(1, WORLD, [TOPOSCOPE, "sweep", "--engine", "mpi"]);
    // The network is far slower than any memory: a small arena is as good, and filled sooner.
    job.args(["--arena", "8MiB"]).args(args).arg("--session").arg(&session).arg("--out").arg(&out);
    let start = Instant::now();
    let ran = lab.run(&mut job, LIMIT);
    let wall = start.elapsed();
    assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");
    let samples = read_calibration(&out).unwrap().samples;
    assert!(samples.iter().all(|sample| sample.status == Status::Ok), "{samples:?}");
    Swept { samples, session, wall }
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

impl Swept {
    /// The median rate of a pair, bytes per second, of its newest measurement.
    fn rate(&self, from: usize, to: usize) -> f64 {
        let own = || self.samples.iter().filter(|s| s.pattern == Pattern::Peer && (s.from, s.to) == (from, to));
        let take = own().map(|sample| sample.take).max().unwrap();
        let rates = own().filter(|sample| sample.take == take);
        median(rates.filter_map(|sample| Some(sample.bytes as f64 / sample.seconds_per_message()?)).collect())
    }

    /// Shares of the truth of all pairs in a lab of `times` the rates: the largest error, and all of them told.
    fn errors(&self, times: u32) -> (f64, String) {
        let mut told = String::new();
        let mut worst = 0.0_f64;
        for (from, to) in pairs() {
            let share = self.rate(from, to) / payload_rate(times * alone(from, to));
            writeln!(told, "{from}→{to}: {share:.3} of what was set").unwrap();
            worst = worst.max((share - 1.0).abs());
        }
        (worst, told)
    }

    /// Pairs that were measured at the same time, round by round, in their order, each with the notices told before it.
    fn rounds(&self) -> Vec<Round> {
        let mut rounds: Vec<(u64, Round)> = Vec::new();
        let mut told = Vec::new();
        for record in store::read(&self.session).unwrap().records {
            match record.event {
                Event::Notice { text } => told.push(text),
                Event::ProbeStarted { probe } => {
                    let Target::Pair(cell) = probe.target else { panic!("{probe:?}") };
                    if rounds.last().is_none_or(|(number, _)| *number != probe.round) {
                        rounds.push((probe.round, Round { pairs: Vec::new(), told: std::mem::take(&mut told) }));
                    }
                    rounds.last_mut().unwrap().1.pairs.push((cell.from, cell.to));
                }
                _ => {}
            }
        }
        rounds.into_iter().map(|(_, round)| round).collect()
    }
}

#[derive(Debug)]
struct Round {
    pairs: Vec<(usize, usize)>,
    told: Vec<String>,
}

/// True if two of these share the trunk in one direction, or a host's port.
fn collide(round: &Round) -> bool {
    let mut taken = std::collections::HashSet::new();
    round.pairs.iter().any(|&(from, to)| {
        let trunk = crosses(from, to).then_some(("trunk", usize::from(from < NEAR)));
        [Some(("out", from)), Some(("in", to)), trunk].into_iter().flatten().any(|resource| !taken.insert(resource))
    })
}

#[test]
fn pairs_alone_get_what_was_set() {
    settled(|| {
        let Some(lab) = shaped(FAST) else { return };
        let swept = sweep(&lab, "alone", &["--patterns", "peer", "--sizes", SIZE, "--repeats", "6", "--isolated"]);
        assert!(swept.samples.iter().all(|sample| sample.isolated));
        assert!(swept.rounds().iter().all(|round| round.pairs.len() == 1));
        let (worst, told) = swept.errors(FAST);
        assert!(worst < 0.05, "\n{told}");
    });
}

/// Fans of three among the hosts of one bridge: nothing binds but the root's own port.
#[test]
fn fans_are_bound_by_their_roots() {
    settled(|| {
        let Some(lab) = shaped(FAST) else { return };
        let args =
            ["--patterns", "fan_in,fan_out", "--widths", "3", "--peers", "next", "--ranks", "0-3", "--sizes", SIZE, "--repeats", "6"];
        let swept = sweep(&lab, "fans", &args);
        let mut told = String::new();
        let mut worst = 0.0_f64;
        for (pattern, root) in [Pattern::FanIn, Pattern::FanOut].into_iter().flat_map(|pattern| (0..NEAR).map(move |root| (pattern, root)))
        {
            let rates: Vec<f64> = swept
                .samples
                .iter()
                .filter(|sample| sample.pattern == pattern && sample.root == Some(root) && !sample.warmup)
                .map(|sample| {
                    assert_eq!(sample.width, Some(3), "{sample:?}");
                    (3 * sample.bytes * sample.messages) as f64 / sample.root_seconds.unwrap()
                })
                .collect();
            assert_eq!(rates.len(), 3 * 6, "{} {root}", pattern.name());
            let set = if pattern == Pattern::FanIn { receives(root) } else { sends(root) };
            let share = median(rates) / payload_rate(FAST * set);
            writeln!(told, "{} {root}: {share:.3} of what its root can do", pattern.name()).unwrap();
            worst = worst.max((share - 1.0).abs());
        }
        assert!(worst < 0.05, "\n{told}");
    });
}

/// Sets of a pattern file: two and four pairs across, three back, and two that go opposite ways.
#[test]
fn pairs_across_at_the_same_time_are_bound_by_the_trunk() {
    settled(|| {
        let Some(lab) = shaped(FAST) else { return };
        let sets: [(&[(usize, usize)], u32); 4] = [
            (&[(0, 4), (3, 7)], RATE),
            (&[(0, 4), (1, 5), (2, 6), (3, 7)], RATE),
            (&[(4, 0), (6, 2), (7, 3)], RATE),
            (&[(0, 4), (5, 3)], 2 * RATE),
        ];
        let mut text = String::from("set,from,to\n");
        for (set, (transfers, _)) in sets.iter().enumerate() {
            for (from, to) in *transfers {
                writeln!(text, "{set},{from},{to}").unwrap();
            }
        }
        let file = lab.folder().join("sets.csv");
        fs::write(&file, text).unwrap();
        let args = ["--patterns", "custom", "--pattern-file", file.to_str().unwrap(), "--sizes", SIZE, "--repeats", "6"];
        let swept = sweep(&lab, "sets", &args);
        for (set, (transfers, mbit)) in sets.iter().enumerate() {
            // All of a repeat's bytes, in the time of its slowest transfer.
            let mut repeats: BTreeMap<u32, (u64, f64, usize)> = BTreeMap::new();
            for sample in swept.samples.iter().filter(|sample| sample.set == u32::try_from(set).ok() && !sample.warmup) {
                let (bytes, seconds, count) = repeats.entry(sample.repeat).or_default();
                *bytes += sample.bytes * sample.messages;
                *seconds = seconds.max(sample.seconds.unwrap());
                *count += 1;
            }
            assert_eq!(repeats.len(), 6, "set {set}");
            assert!(repeats.values().all(|&(.., count)| count == transfers.len()), "set {set}: {repeats:?}");
            let share = median(repeats.values().map(|&(bytes, seconds, _)| bytes as f64 / seconds).collect()) / payload_rate(FAST * mbit);
            assert!((share - 1.0).abs() < 0.05, "set {set}: {share:.3} of what the trunk carries");
        }
    });
}

#[test]
fn a_known_trunk_never_carries_two_probes_at_once() {
    settled(|| {
        let Some(lab) = shaped(1) else { return };
        Fabric::parse(FABRIC, "lab").unwrap();
        let file = lab.folder().join("lab.toml");
        fs::write(&file, FABRIC).unwrap();
        let args = ["--patterns", "peer", "--sizes", SIZE, "--repeats", "6", "--fabric", file.to_str().unwrap()];
        let swept = sweep(&lab, "told", &args);
        let rounds = swept.rounds();
        assert!(rounds.iter().any(|round| round.pairs.len() > 2), "nothing ran at the same time: {rounds:?}");
        assert!(!rounds.iter().any(collide), "{rounds:?}");
        let (worst, told) = swept.errors(1);
        assert!(worst < 0.05, "\n{told}");
    });
}

/// The hosts, from 1, that a notice says to share something: those that send, and those that receive.
fn shared(notice: &str) -> Option<(Vec<usize>, Vec<usize>)> {
    let (_, rest) = notice.split_once("they share something between ")?;
    let (hosts, _) = rest.split_once(';')?;
    let (from, to) = hosts.split_once(" and ")?;
    let numbers = |hosts: &str| parse_ranks(hosts.strip_prefix("node").unwrap(), WORLD + 1).unwrap();
    Some((numbers(from), numbers(to)))
}

/// At first the planner takes the network for one switch. What runs at the same time then comes out slow, is measured again
/// alone, and is kept apart from then on.
#[test]
fn an_unknown_trunk_is_found() {
    settled(|| {
        let Some(lab) = shaped(1) else { return };
        let swept = sweep(&lab, "untold", &["--patterns", "peer", "--sizes", SIZE, "--repeats", "6"]);
        let rounds = swept.rounds();
        assert!(rounds.iter().any(|round| round.pairs.len() > 2), "nothing ran at the same time: {rounds:?}");
        assert!(rounds.iter().any(collide), "there was nothing to find: {rounds:?}");
        let found = |round: &Round| round.told.iter().filter_map(|text| shared(text)).collect::<Vec<_>>();
        let last = rounds.iter().rposition(|round| !found(round).is_empty()).expect("nothing was found");
        assert!(!rounds[last..].iter().any(collide), "{rounds:?}");
        // Of both directions, perhaps piece by piece, and of nothing else.
        let [mut there, mut back] = [false, false];
        for (from, to) in rounds.iter().flat_map(found) {
            let near = |hosts: &[usize]| hosts.iter().all(|&host| host <= NEAR);
            let far = |hosts: &[usize]| hosts.iter().all(|&host| host > NEAR);
            assert!(near(&from) && far(&to) || far(&from) && near(&to), "{from:?} {to:?}");
            there |= near(&from);
            back |= far(&from);
        }
        assert!(there && back);
        let (worst, told) = swept.errors(1);
        assert!(worst < 0.05, "\n{told}");
    });
}

/// mpiGraph's receive matrix, bytes per second, `[sender][receiver]`: its rows are receivers, its MB are 2^20 bytes.
fn mpigraph_matrix(text: &str) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; WORLD]; WORLD];
    let rows = text.lines().skip_while(|line| !line.starts_with("Recv\t")).skip(1).take(WORLD);
    for (to, row) in rows.enumerate() {
        for (from, cell) in row.split('\t').skip(1).take(WORLD).enumerate() {
            matrix[from][to] = cell.trim().parse::<f64>().unwrap() * f64::from(1 << 20);
        }
    }
    matrix
}

/// The peer's shift pattern loads the trunk with up to four pairs at once and calls that the rate of a pair. Its binary is
/// whatever `TOPOSCOPE_MPIGRAPH` names.
#[test]
fn closer_to_the_truth_than_mpigraph_and_no_slower() {
    settled(|| {
        let Some(peer) = std::env::var_os("TOPOSCOPE_MPIGRAPH") else {
            eprintln!("SKIPPED: TOPOSCOPE_MPIGRAPH names no mpiGraph");
            return;
        };
        assert!(Path::new(&peer).is_file(), "{}", peer.display());
        let Some(lab) = shaped(1) else { return };
        let ours = sweep(&lab, "ours", &["--patterns", "peer", "--sizes", SIZE, "--repeats", "6"]);
        let (our_worst, told) = ours.errors(1);

        // Message size, iterations and window as its own instructions have them.
        let mut job = lab.mpirun(1, WORLD, [&peer]);
        job.args(["1048576", "10", "10"]);
        let start = Instant::now();
        let ran = lab.run(&mut job, LIMIT);
        let wall = start.elapsed();
        assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");
        let matrix = mpigraph_matrix(&ran.stdout);
        let peer_worst = pairs().map(|(from, to)| (matrix[from][to] / payload_rate(alone(from, to)) - 1.0).abs()).fold(0.0, f64::max);
        eprintln!("largest error {our_worst:.3} in {:.1?}; mpiGraph {peer_worst:.3} in {wall:.1?}", ours.wall);
        assert!(our_worst < 0.05 && our_worst < peer_worst, "{peer_worst}\n{told}");
        assert!(ours.wall <= wall, "{:?} against {wall:?}", ours.wall);
    });
}
