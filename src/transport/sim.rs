//! Ranks of a described fabric: nothing moves, times come from the fabric's fair shares, on a clock of their own.
//!
//! A round costs virtual time as the real engines spend it: the order, empty round trips, untimed windows, an acknowledgement for
//! each window, and a handshake before what is timed, or before each repeat of several transfers. Probes of a round load the
//! fabric together for all of their time, a probe's own transfers until each is complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::timed::{batch, pings, untimed};
use super::work::{self, Carried, Carry, Work};
use super::{Absent, Collector, End, Engine, Order, ProbeReport, Repeat, Report, Setup, TransportError};
use crate::fabric::{Demand, Fabric, Route, Transfer, completions, shares};
use crate::sample::{EngineKind, MoverKind, Pattern};
use crate::sweep::Probe;
use crate::topology::Topology;

/// How bytes travel in a described fabric.
pub const MOVERS: &[MoverKind] = &[MoverKind::Simulated];
/// From rank 0's decision to the ranks' first step, and from their last one back, seconds.
const DISPATCH: f64 = 50e-6;

/// A job whose ranks are those of a fabric.
#[derive(Debug)]
pub struct Sim {
    fabric: Arc<Fabric>,
    topology: Topology,
    /// seconds since the start
    clock: f64,
    rng: fastrand::Rng,
    reports: VecDeque<Report>,
    /// probes in which each rank has taken part
    probes: Vec<u64>,
    lost: BTreeSet<usize>,
    work: Option<Work>,
}

impl Sim {
    /// The ranks of a fabric; its seed decides the noise.
    pub fn new(fabric: Arc<Fabric>) -> Self {
        let topology = fabric.topology();
        Self {
            clock: 0.0,
            rng: fastrand::Rng::with_seed(fabric.seed()),
            reports: VecDeque::new(),
            probes: vec![0; topology.world()],
            lost: BTreeSet::new(),
            work: None,
            topology,
            fabric,
        }
    }

    /// The fabric.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// One probe of a round: its report, and how long it takes, seconds. `others` are the ways of the round's other transfers.
    fn run(&mut self, order: &Order, own: &[Way], others: &[&Way]) -> (ProbeReport, f64) {
        let probe = &order.probe;
        let mut report = ProbeReport::nothing(probe.id, End::Complete);
        if probe.target.pattern().crosses() {
            report.end = End::Waived("a described fabric tells no rates between a host's memory and its GPUs".to_owned());
            return (report, DISPATCH);
        }
        if let Some(hanging) = self.hanging(probe) {
            report.end = End::Timeout(format!("no answer from rank {hanging} within {} s", order.timeout));
            self.lost.insert(hanging);
            let reason = format!("no answer since {}", probe.describe());
            self.reports.push_back(Report::Lost { rank: hanging, reason });
            return (report, order.timeout + Collector::GRACE.as_secs_f64());
        }
        let one = window_times(order, own, others);
        let longest = one.iter().copied().fold(0.0, f64::max);
        let step = own.iter().map(|way| way.step).fold(0.0, f64::max);
        // Of one transfer the first untimed window is announced, the others, and the timed ones; several start together each time,
        // agree on the windows, and leave together.
        let alone = matches!(probe.target.pattern(), Pattern::Peer) || probe.target.pattern().is_own();
        let starts = if alone { 2 + u32::from(untimed(order) > 1) } else { untimed(order) + probe.repeats + 2 };
        let mut time = DISPATCH + round_trips(own, pings(order)) + 2.0 * step * f64::from(starts);
        // A sender sees its window's acknowledgement, too.
        let shortest = own.iter().zip(&one).map(|(way, one)| one + way.step).fold(f64::INFINITY, f64::min);
        let windows = if longest.is_finite() { batch(Duration::from_secs_f64(shortest)) } else { 1 };
        let rounds = (0..untimed(order)).map(|_| (1, false)).chain((0..order.probe.repeats).map(|_| (windows, true)));
        let (mut warmups, mut timed) = (0, 0);
        for (windows, counts) in rounds {
            let factor = self.fabric.noise().map_or(1.0, |noise| noise.factor(&mut self.rng));
            let seconds: Vec<f64> = own.iter().zip(&one).map(|(way, &one)| self.slowed(way, one) * factor * windows as f64).collect();
            let last = seconds.iter().copied().fold(0.0, f64::max);
            time += last + step * windows as f64;
            if time > order.timeout || !last.is_finite() {
                let silent = own.iter().zip(&one).find(|(_, one)| !one.is_finite()).map_or(own[0].from, |(way, _)| way.from);
                report.end = End::Timeout(format!(
                    "rank {silent} saw no completion within {} s, {timed} of {} repeats done",
                    order.timeout, probe.repeats
                ));
                return (report, order.timeout);
            }
            let number = if counts { timed } else { warmups };
            if counts || warmups < order.warmup {
                report.repeats.extend(own.iter().enumerate().map(|(flow, way)| Repeat {
                    flow: flow as u32,
                    repeat: number,
                    warmup: !counts,
                    messages: windows * u64::from(order.window),
                    seconds: whole(probe.target.pattern(), own, &seconds, flow).max(1e-9),
                    ack_seconds: if way.from == way.to { 0.0 } else { way.step * windows as f64 },
                }));
            }
            if counts {
                timed += 1;
                if probe.target.pattern().is_fan() {
                    report.root_seconds.push(last);
                }
            } else {
                warmups += 1;
            }
        }
        (report, time)
    }

    /// The first rank of a probe that stops answering in it.
    fn hanging(&mut self, probe: &Probe) -> Option<usize> {
        self.first_hanging(probe.ranks().into_iter())
    }

    fn first_hanging(&mut self, ranks: impl Iterator<Item = usize>) -> Option<usize> {
        let mut hanging = None;
        for rank in ranks {
            let done = self.probes[rank];
            self.probes[rank] += 1;
            if self.lost.contains(&rank) || self.fabric.hangs(rank).is_some_and(|after| done >= after) {
                hanging = hanging.or(Some(rank));
            }
        }
        hanging
    }

    /// A window's time over a link that is slow now and then.
    fn slowed(&mut self, way: &Way, seconds: f64) -> f64 {
        match way.flaky {
            Some((probability, factor)) if self.rng.f64() < probability => way.route.alpha + (seconds - way.route.alpha) / factor,
            _ => seconds,
        }
    }
}

/// One transfer of a round.
struct Way {
    from: usize,
    to: usize,
    route: Route,
    /// an empty message's way, seconds
    step: f64,
    flaky: Option<(f64, f64)>,
}

/// Seconds of the empty round trips of a probe's transfers, one after another wherever they have a rank in common.
fn round_trips(own: &[Way], pings: usize) -> f64 {
    let mut free: BTreeMap<usize, f64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for way in own.iter().filter(|way| way.from != way.to && seen.insert((way.from, way.to))) {
        let at = [way.from, way.to].iter().filter_map(|rank| free.get(rank)).copied().fold(0.0, f64::max);
        free.extend([way.from, way.to].map(|rank| (rank, at + 2.0 * way.step * pings as f64)));
    }
    free.into_values().fold(0.0, f64::max)
}

/// Seconds of one window of each transfer of a probe, while the others of its round flow all the time.
fn window_times(order: &Order, own: &[Way], others: &[&Way]) -> Vec<f64> {
    let bytes = order.probe.bytes as f64 * f64::from(order.window);
    let transfer = |way: &Way, bytes| Transfer { flow: way.route.flow.clone(), start: 0.0, alpha: way.route.alpha, bytes };
    let mut transfers: Vec<Transfer> = own.iter().map(|way| transfer(way, bytes)).collect();
    transfers.extend(others.iter().map(|way| Transfer { alpha: 0.0, ..transfer(way, f64::MAX) }));
    let mut ends = completions(&transfers);
    ends.truncate(own.len());
    ends
}

/// What a transfer's sender says: of a relay, until it has also received.
fn whole(pattern: Pattern, own: &[Way], seconds: &[f64], flow: usize) -> f64 {
    if pattern != Pattern::Relay {
        return seconds[flow];
    }
    let received = own.iter().zip(seconds).filter(|(way, _)| way.to == own[flow].from).map(|(_, &seconds)| seconds);
    received.fold(seconds[flow], f64::max)
}

impl Engine for Sim {
    fn kind(&self) -> EngineKind {
        EngineKind::Sim
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn movers(&self) -> &'static [MoverKind] {
        MOVERS
    }

    fn software(&self) -> String {
        format!("toposcope {} simulating {}: {}", env!("CARGO_PKG_VERSION"), self.fabric.name(), self.fabric.about())
    }

    fn prepare(&mut self, _: &Setup) -> Result<Vec<Absent>, TransportError> {
        Ok(Vec::new())
    }

    fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
        let flows: Vec<Vec<(usize, usize)>> = round.iter().map(|order| order.probe.flows()).collect();
        let demands: Vec<Demand> = round
            .iter()
            .zip(&flows)
            .flat_map(|(order, flows)| flows.iter().map(|&(from, to)| Demand { from, to, bytes: order.probe.bytes }))
            .collect();
        let mut routes = self.fabric.routes(&demands).into_iter();
        let mut ways: Vec<Vec<Way>> = Vec::with_capacity(round.len());
        for flows in &flows {
            let way = |(&(from, to), route): (&(usize, usize), Route)| Way {
                from,
                to,
                route,
                step: if from == to { 0.0 } else { self.fabric.route(from, to, 1).alpha },
                flaky: self.fabric.link_fault(from, to).flaky,
            };
            ways.push(flows.iter().zip(routes.by_ref()).map(way).collect());
        }
        // Rounds are made so that probes do not hinder each other; only where they do, each sees the others.
        let all: Vec<&Way> = ways.iter().flatten().collect();
        let alone = |way: &Way| way.route.flow.alone().rate;
        let given: Vec<_> = all.iter().map(|way| way.route.flow.clone()).collect();
        let hindered = round.len() > 1 && all.iter().zip(shares(&given)).any(|(way, share)| share.rate < alone(way) * (1.0 - 1e-9));
        let mut longest = 0.0_f64;
        for (at, order) in round.iter().enumerate() {
            let others: Vec<&Way> = if hindered {
                ways.iter().enumerate().filter(|&(other, _)| other != at).flat_map(|(_, ways)| ways).collect()
            } else {
                Vec::new()
            };
            let (report, time) = self.run(order, &ways[at], &others);
            longest = longest.max(time);
            self.reports.push_back(Report::Probe(report));
        }
        self.clock += longest + DISPATCH;
        Ok(())
    }

    fn load(&mut self, work: &Work, _mover: MoverKind) -> Result<(), TransportError> {
        work.check(self.topology.world()).map_err(TransportError::Work)?;
        self.work = Some(work.clone());
        Ok(())
    }

    fn carry(&mut self, order: &Carry) -> Result<(), TransportError> {
        let work = self.work.take().ok_or_else(|| TransportError::Work("nothing was loaded".to_owned()))?;
        let mut carried = Carried { id: order.id, runs: Vec::new(), verified: 0, wrong: None, ways: Vec::new(), end: End::Complete };
        if let Some(hanging) = self.first_hanging(work.ranks()) {
            carried.end = End::Timeout(format!("no answer from rank {hanging} within {} s", order.timeout));
            self.lost.insert(hanging);
            let reason = "no answer while a plan was run".to_owned();
            self.reports.push_back(Report::Lost { rank: hanging, reason });
            self.clock += order.timeout;
        } else {
            let ends = work::ends(&work, &self.fabric);
            for _ in 0..order.warmup.saturating_add(order.runs) {
                let factor = self.fabric.noise().map_or(1.0, |noise| noise.factor(&mut self.rng));
                let run: Vec<(usize, f64)> = ends.iter().map(|end| end * factor).enumerate().collect();
                let last = run.iter().map(|&(_, end)| end).fold(0.0, f64::max);
                if last > order.timeout {
                    let late = run.iter().find(|&&(_, end)| end > order.timeout).map_or(0, |&(flow, _)| flow);
                    let (from, to) = (work.flows[late].from, work.flows[late].to);
                    carried.end = End::Timeout(format!("flow {late} ({from}→{to}) was not done within {} s", order.timeout));
                    self.clock += order.timeout;
                    break;
                }
                self.clock += last + 2.0 * DISPATCH;
                carried.runs.push(run);
            }
            carried.runs.drain(..carried.runs.len().min(order.warmup as usize));
        }
        self.reports.push_back(Report::Carried(carried));
        Ok(())
    }

    fn poll(&mut self, wait: Duration) -> Vec<Report> {
        if self.reports.is_empty() {
            // Nothing can come any more, and whoever polls must not spin.
            std::thread::sleep(wait);
        }
        self.reports.drain(..).collect()
    }

    fn finish(&mut self) {}

    fn clock(&self) -> Option<f64> {
        Some(self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Cell, Group, Target};

    const HOSTS: &str = "
about = \"two hosts\"
[hosts]
count = 2
ranks = 2
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.intra_node]
alpha = \"10us\"
rate = \"10GB/s\"
duplex = 0.8
[path.inter_node]
alpha = \"20us\"
rate = \"5GB/s\"
[[shared]]
name = \"adapter\"
per = \"host\"
direction = \"in\"
rate = \"6GB/s\"
";

    fn sim(more: &str) -> Sim {
        Sim::new(Arc::new(Fabric::parse(&format!("{HOSTS}{more}"), "test").unwrap()))
    }

    fn peer(from: usize, to: usize) -> Probe {
        Probe::pair((from * 8 + to) as u64, Cell { pattern: Pattern::Peer, from, to }, 1 << 20, 3)
    }

    fn group(group: Group, flows: Vec<(usize, usize)>) -> Probe {
        Probe { target: Target::Group(group), flows, ..peer(0, 1) }
    }

    /// Reports of a round, by probe number, and what else was told.
    fn round(sim: &mut Sim, probes: &[Probe]) -> (Vec<ProbeReport>, Vec<Report>) {
        let order = |probe: &Probe| Order { probe: probe.clone(), window: 1, warmup: 1, timeout: 10.0 };
        sim.start(&probes.iter().map(order).collect::<Vec<_>>()).unwrap();
        let (mut reports, mut others) = (Vec::new(), Vec::new());
        for report in sim.poll(Duration::ZERO) {
            match report {
                Report::Probe(report) => reports.push(report),
                other => others.push(other),
            }
        }
        reports.sort_by_key(|report| report.probe);
        (reports, others)
    }

    /// Seconds of the first timed repeat of a transfer, for one message.
    fn first(report: &ProbeReport, flow: u32) -> f64 {
        let repeat = report.repeats.iter().find(|repeat| !repeat.warmup && repeat.flow == flow).unwrap();
        repeat.seconds / repeat.messages as f64
    }

    fn close(found: f64, alpha: f64, rate: f64) {
        let expected = alpha + f64::from(1 << 20) / rate;
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn alone_a_pair_takes_what_the_fabric_says_and_the_clock_goes_on() {
        let mut sim = sim("");
        let (reports, _) = round(&mut sim, &[peer(0, 2)]);
        close(first(&reports[0], 0), 20e-6, 5e9);
        assert_eq!((reports[0].repeats.len(), reports[0].repeats.iter().filter(|repeat| repeat.warmup).count()), (4, 1));
        let clock = sim.clock().unwrap();
        assert!(clock > 5.0 * first(&reports[0], 0) && clock < 0.02, "{clock}");
    }

    #[test]
    fn a_probe_takes_the_steps_of_the_real_engines() {
        let mut sim = sim("");
        let (one, step) = (20e-6 + f64::from(1 << 20) / 5e9, 20e-6);
        round(&mut sim, &[peer(0, 2)]);
        // Order and report; 8 empty round trips; the handshakes before the first window and the timed ones; 1 + 3 windows.
        let expected = 2.0 * DISPATCH + 2.0 * step * (8.0 + 2.0) + 4.0 * (one + step);
        assert!((sim.clock().unwrap() / expected - 1.0).abs() < 1e-9, "{:?} {expected}", sim.clock());
        // Of short messages more round trips, and 4 windows before the timed ones, two of them in front of a handshake. A window and its
        // acknowledgement take 20.4 µs, so that 5 make 100 µs.
        let before = sim.clock().unwrap();
        let short = Probe { bytes: 4096, ..peer(0, 1) };
        let (reports, _) = round(&mut sim, &[short]);
        let (one, step) = (10e-6 + 4096.0 / 10e9, 10e-6);
        assert!(reports[0].repeats.iter().filter(|repeat| !repeat.warmup).all(|repeat| repeat.messages == 5), "{reports:?}");
        let expected = 2.0 * DISPATCH + 2.0 * step * (16.0 + 3.0) + (4.0 + 3.0 * 5.0) * (one + step);
        assert!(((sim.clock().unwrap() - before) / expected - 1.0).abs() < 1e-9, "{} {expected}", sim.clock().unwrap() - before);
    }

    #[test]
    fn probes_of_a_round_share_what_their_routes_share() {
        let (together, _) = round(&mut sim(""), &[peer(0, 2), peer(1, 3)]);
        for report in &together {
            close(first(report, 0), 20e-6, 3e9);
        }
        let (apart, _) = round(&mut sim(""), &[peer(0, 2), peer(3, 1)]);
        for report in &apart {
            close(first(report, 0), 20e-6, 5e9);
        }
    }

    #[test]
    fn fans_relays_and_both_ways_have_their_own_times() {
        let fan = group(Group::fan(Pattern::FanIn, 2, vec![0, 1]), vec![(0, 2), (1, 2)]);
        let (reports, _) = round(&mut sim(""), &[fan]);
        close(first(&reports[0], 0), 20e-6, 3e9);
        assert_eq!(reports[0].root_seconds.len(), 3);
        let duplex = Probe::pair(0, Cell { pattern: Pattern::Duplex, from: 0, to: 1 }, 1 << 20, 1);
        let (reports, _) = round(&mut sim(""), &[duplex]);
        for flow in 0..2 {
            close(first(&reports[0], flow), 10e-6, 8e9);
        }
        // Rank 0 is done sending to its neighbour long before it has received from the other host.
        let relay = group(Group::relay(1), vec![(0, 1), (1, 2), (2, 3), (3, 0)]);
        let (reports, _) = round(&mut sim(""), &[relay]);
        assert!(first(&reports[0], 0) >= 20e-6 + f64::from(1 << 20) / 5e9, "{}", first(&reports[0], 0));
    }

    #[test]
    fn faults_are_timeouts_and_lost_ranks() {
        let mut dead = sim("[[fault]]\nkind = \"dead\"\nfrom = \"0\"\nto = \"1\"\n");
        let (reports, _) = round(&mut dead, &[peer(0, 1)]);
        assert!(matches!(reports[0].end, End::Timeout(_)) && dead.clock().unwrap() >= 10.0);
        close(first(&round(&mut dead, &[peer(1, 0)]).0[0], 0), 10e-6, 10e9);
        let mut hang = sim("[[fault]]\nkind = \"hang\"\nrank = 3\nafter = 1\n");
        assert!(round(&mut hang, &[peer(3, 0)]).1.is_empty());
        let (reports, others) = round(&mut hang, &[peer(0, 3)]);
        assert!(matches!(reports[0].end, End::Timeout(_)));
        assert!(matches!(others[0], Report::Lost { rank: 3, .. }), "{others:?}");
    }

    #[test]
    fn noise_differs_from_repeat_to_repeat_and_the_seed_decides_it() {
        let times = |seed: u32| {
            let mut sim = sim("[noise]\nkind = \"normal\"\ncv = 0.05\n");
            sim.rng = fastrand::Rng::with_seed(u64::from(seed));
            round(&mut sim, &[peer(0, 1)]).0[0].repeats.iter().map(|repeat| repeat.seconds.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        assert!(times(1).windows(2).all(|two| two[0] != two[1]));
    }
}
