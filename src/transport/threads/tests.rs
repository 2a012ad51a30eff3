//! Probes of every pattern over agents in threads of their own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Threads;
use super::endpoint::{Shared, ThreadEndpoint};
use crate::sample::{MoverKind, Pattern};
use crate::sweep::{Buffers, Cell, Group, Probe, Target};
use crate::transport::{
    Agent, Collector, End, Endpoint, Engine, Flow, Grouped, News, Order, ProbeReport, Report, Setup, Stop, Together, TransportError, Window,
};

/// Nothing here takes this long.
const LIMIT: f64 = 60.0;

fn setup(arena: u64, lanes: usize) -> Setup {
    Setup::host(MoverKind::Memcpy, Buffers::Rotate, arena, lanes, 5)
}

fn pair(id: u64, pattern: Pattern, from: usize, to: usize) -> Order {
    let probe = Probe::pair(id, Cell { pattern, from, to }, 40_000, 4);
    Order { probe, window: 3, warmup: 2, timeout: LIMIT }
}

fn group(id: u64, group: Group, flows: &[(usize, usize)]) -> Order {
    let mut order = pair(id, Pattern::Peer, 0, 1);
    order.probe.target = Target::Group(group);
    order.probe.flows = flows.to_vec();
    order
}

fn fan_in(id: u64, root: usize, peers: &[usize]) -> Order {
    let flows: Vec<_> = peers.iter().map(|&peer| (peer, root)).collect();
    group(id, Group::fan(Pattern::FanIn, root, peers.to_vec()), &flows)
}

fn fan_out(id: u64, root: usize, peers: &[usize]) -> Order {
    let flows: Vec<_> = peers.iter().map(|&peer| (root, peer)).collect();
    group(id, Group::fan(Pattern::FanOut, root, peers.to_vec()), &flows)
}

fn relay(id: u64, ranks: usize, shift: usize) -> Order {
    let flows: Vec<_> = (0..ranks).map(|rank| (rank, (rank + shift) % ranks)).collect();
    group(id, Group::relay(shift), &flows)
}

/// A rank that may send later than it was told to, or nothing.
struct Late {
    own: ThreadEndpoint,
    by: Duration,
    /// it moves no bytes, and says that it did
    lies: bool,
    /// what it has to send, and when it does
    waiting: Option<(Instant, usize, Window)>,
}

/// Long beside everything else here.
const LATE: Duration = Duration::from_millis(200);

impl Late {
    fn moved(&self, window: Window) -> Window {
        if self.lies { Window { bytes: 0, ..window } } else { window }
    }
}

impl Endpoint for Late {
    fn rank(&self) -> usize {
        self.own.rank()
    }
    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError> {
        self.own.prepare(setup)
    }
    fn arena(&self) -> usize {
        self.own.arena()
    }
    fn begin(&mut self, probe: &Probe) -> Result<(), Stop> {
        self.own.begin(probe)
    }
    fn notify(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        self.own.notify(to, word, deadline)
    }
    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop> {
        self.own.await_notice(from, deadline)
    }
    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        self.own.send(to, self.moved(window), deadline)
    }
    fn receive(&mut self, from: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        self.own.receive(from, window, deadline)
    }
    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop> {
        self.own.copy(self.moved(window), deadline)
    }
    fn clear(&mut self, lane: usize, window: Window) {
        self.own.clear(lane, window);
    }
    fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String> {
        self.own.verify(from, lane, window)
    }
}

impl Together for Late {
    fn join(&mut self, flows: &[Flow], window: Window) -> Result<(), Stop> {
        self.own.join(flows, window)
    }
    fn post(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        self.own.post(flow, window)
    }
    fn launch(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        let window = self.moved(window);
        if self.by.is_zero() {
            return self.own.launch(flow, window);
        }
        self.waiting = Some((Instant::now() + self.by, flow, window));
        Ok(())
    }
    fn acknowledge(&mut self, flow: usize, deadline: Instant) -> Result<(), Stop> {
        self.own.acknowledge(flow, deadline)
    }
    fn news(&mut self, deadline: Instant) -> Result<Option<News>, Stop> {
        if let Some((_, flow, window)) = self.waiting.take_if(|(until, ..)| Instant::now() >= *until) {
            self.own.launch(flow, window)?;
        }
        self.own.news(deadline)
    }
    fn part(&mut self, deadline: Instant) {
        self.own.part(deadline);
    }
}

type Agents = Vec<Agent<Late>>;

fn agents(world: usize, setup: &Setup) -> Agents {
    let shared = Arc::new(Shared::new(world));
    let mut agents: Agents = (0..world)
        .map(|rank| {
            Agent::new(Late { own: ThreadEndpoint::new(rank, Arc::clone(&shared)), by: Duration::ZERO, lies: false, waiting: None })
        })
        .collect();
    for agent in &mut agents {
        assert_eq!(agent.prepare(setup), None);
    }
    agents
}

/// What comes of an order when these ranks obey it, each in a thread, and what of that each says.
fn obeyed(agents: &mut Agents, ranks: &[usize], order: &Order) -> (Option<ProbeReport>, Vec<ProbeReport>) {
    let reports: Vec<(usize, ProbeReport)> = std::thread::scope(|scope| {
        let of = |(rank, agent): (usize, _)| ranks.contains(&rank).then_some((rank, agent));
        let obey = |(rank, agent): (usize, &mut Agent<Late>)| (rank, agent.obey(order));
        let threads: Vec<_> = agents.iter_mut().enumerate().filter_map(of).map(|own| scope.spawn(move || obey(own))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut collector = Collector::default();
    collector.begin(order);
    let each = reports.iter().map(|(_, report)| report.clone()).collect();
    let whole = reports.into_iter().find_map(|(rank, report)| collector.report(rank, report));
    (whole.map(|report| if let Report::Probe(report) = report { report } else { panic!("{report:?}") }), each)
}

/// The report of a probe that all of its ranks obey.
fn measured(agents: &mut Agents, order: &Order) -> ProbeReport {
    obeyed(agents, &order.probe.ranks(), order).0.unwrap()
}

/// Every transfer has every repeat once, warm-ups apart, with times and whole windows.
#[track_caller]
fn whole(order: &Order, report: &ProbeReport) {
    assert_eq!(report.end, End::Complete, "{}", order.probe.describe());
    let flows = order.probe.flows().len();
    for flow in 0..flows {
        for (warmup, count) in [(true, order.warmup), (false, order.probe.repeats)] {
            let of = |repeat: &&crate::transport::Repeat| repeat.flow as usize == flow && repeat.warmup == warmup;
            let mut repeats: Vec<_> = report.repeats.iter().filter(of).collect();
            repeats.sort_by_key(|repeat| repeat.repeat);
            let numbers: Vec<u32> = repeats.iter().map(|repeat| repeat.repeat).collect();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "transfer {flow} of {}", order.probe.describe());
            for repeat in repeats {
                let windows = repeat.messages / u64::from(order.window);
                assert!(windows > 0 && repeat.messages.is_multiple_of(u64::from(order.window)) && (!warmup || windows == 1), "{repeat:?}");
                assert!(repeat.seconds > 0.0 && repeat.ack_seconds >= 0.0, "{repeat:?}");
            }
        }
    }
    assert_eq!(report.repeats.len(), flows * (order.warmup + order.probe.repeats) as usize);
    let roots = if order.probe.target.pattern().is_fan() { order.probe.repeats as usize } else { 0 };
    assert_eq!(report.root_seconds.len(), roots);
    assert!(report.root_seconds.iter().all(|&seconds| seconds > 0.0), "{report:?}");
}

#[test]
fn one_transfer_brings_its_repeats_its_warm_ups_and_a_checked_payload() {
    let mut agents = agents(2, &setup(1 << 20, 1));
    for order in [pair(3, Pattern::Peer, 0, 1), pair(4, Pattern::Local, 1, 1)] {
        let report = measured(&mut agents, &order);
        whole(&order, &report);
    }
}

#[test]
fn every_pattern_brings_every_repeat_of_every_transfer() {
    let mut agents = agents(4, &setup(1 << 20, 4));
    let orders = [
        pair(1, Pattern::Duplex, 2, 1),
        fan_in(2, 1, &[0, 2, 3]),
        fan_in(3, 3, &[0]),
        fan_out(4, 2, &[0, 1, 3]),
        relay(5, 4, 1),
        relay(6, 4, 3),
        relay(7, 3, 2),
        // Several from one rank and into one, the same pair twice, both ways, and a copy beside them.
        group(8, Group::custom(1), &[(1, 0), (2, 0), (1, 0), (0, 0), (0, 1), (3, 3)]),
        group(9, Group::custom(2), &[(2, 2)]),
    ];
    for mut order in orders {
        for bytes in [8, 40_000, 300_000] {
            order.probe.bytes = bytes;
            // Numbers are unique, in no order.
            order.probe.id = order.probe.id.wrapping_mul(7919) % 104_729;
            let report = measured(&mut agents, &order);
            whole(&order, &report);
        }
    }
}

#[test]
fn all_transfers_of_a_repeat_have_as_many_windows() {
    let mut agents = agents(2, &setup(1 << 20, 1));
    let mut order = pair(1, Pattern::Duplex, 0, 1);
    (order.probe.bytes, order.window) = (64, 1);
    let report = measured(&mut agents, &order);
    whole(&order, &report);
    let windows: BTreeSet<u64> = report.repeats.iter().filter(|repeat| !repeat.warmup).map(|repeat| repeat.messages).collect();
    assert_eq!(windows.len(), 1, "{report:?}");
}

#[test]
fn a_root_that_sends_tells_no_less_than_its_slowest_transfer() {
    let mut agents = agents(4, &setup(8 << 20, 3));
    let mut out = fan_out(1, 0, &[1, 2, 3]);
    (out.probe.bytes, out.window) = (2 << 20, 1);
    let report = measured(&mut agents, &out);
    whole(&out, &report);
    for repeat in report.repeats.iter().filter(|repeat| !repeat.warmup) {
        assert!(report.root_seconds[repeat.repeat as usize] >= repeat.seconds, "{report:?}");
    }
}

#[test]
fn a_relay_is_told_when_a_rank_has_both_sent_and_received() {
    let mut agents = agents(4, &setup(1 << 20, 1));
    agents[0].endpoint().by = LATE;
    let order = relay(1, 4, 1);
    let report = measured(&mut agents, &order);
    whole(&order, &report);
    // Rank 0 sends late, so rank 1 receives late: their samples tell, the other ranks' do not.
    let least = |flow: u32| report.repeats.iter().filter(|r| r.flow == flow).map(|r| r.seconds).fold(f64::MAX, f64::min);
    assert!(least(0) > LATE.as_secs_f64() / 2.0 && least(1) > LATE.as_secs_f64() / 2.0, "{report:?}");
    assert!(least(2) < LATE.as_secs_f64() / 2.0 && least(3) < LATE.as_secs_f64() / 2.0, "{report:?}");
}

#[test]
fn a_root_waits_for_the_last_of_its_peers_and_the_others_do_not() {
    let mut agents = agents(4, &setup(1 << 20, 3));
    agents[2].endpoint().by = LATE;
    let order = fan_in(1, 0, &[1, 2, 3]);
    let report = measured(&mut agents, &order);
    whole(&order, &report);
    assert!(report.root_seconds.iter().all(|&seconds| seconds > LATE.as_secs_f64() / 2.0), "{report:?}");
    let least = |flow: u32| report.repeats.iter().filter(|r| r.flow == flow).map(|r| r.seconds).fold(f64::MAX, f64::min);
    assert!(least(0) < LATE.as_secs_f64() / 2.0 && least(1) > LATE.as_secs_f64() / 2.0, "{report:?}");
}

#[test]
fn a_missing_partner_is_a_timeout_and_the_next_probe_works() {
    let mut agents = agents(4, &setup(1 << 20, 3));
    for (id, order, there) in [
        (10, pair(0, Pattern::Peer, 0, 1), vec![0]),
        (20, pair(0, Pattern::Duplex, 0, 1), vec![1]),
        (30, fan_in(0, 0, &[1, 2, 3]), vec![0, 1, 3]),
        (40, fan_out(0, 0, &[1, 2, 3]), vec![0, 1, 2]),
        (50, fan_in(0, 0, &[1, 2, 3]), vec![1, 2, 3]),
        (60, relay(0, 4, 1), vec![0, 2, 3]),
    ] {
        let mut order = order;
        (order.probe.id, order.timeout) = (id, 0.05);
        let (_, each) = obeyed(&mut agents, &there, &order);
        assert!(each.iter().all(|report| matches!(report.end, End::Timeout(_)) && report.repeats.is_empty()), "{each:?}");
        (order.probe.id, order.timeout) = (id + 1, LIMIT);
        let report = measured(&mut agents, &order);
        whole(&order, &report);
    }
}

#[test]
fn a_fan_that_waits_names_whom_it_waits_for() {
    let mut agents = agents(4, &setup(1 << 20, 3));
    let mut order = fan_in(1, 0, &[1, 2, 3]);
    order.timeout = 1.0;
    let (_, each) = obeyed(&mut agents, &[0, 1, 3], &order);
    let End::Timeout(reason) = &each[0].end else { panic!("{each:?}") };
    assert!(reason.ends_with("0 of 4 repeats done; missing: rank 2"), "{reason}");
}

#[test]
fn a_wrong_payload_is_found_in_whatever_transfer_it_is() {
    for (order, wrong, told) in [
        (pair(1, Pattern::Peer, 0, 1), 0, "rank 1: byte 0 of 40000 is not what rank 0 sent"),
        (pair(1, Pattern::Local, 1, 1), 1, "rank 1: byte 0"),
        (pair(1, Pattern::Duplex, 0, 1), 1, "rank 0: 1→0: byte 0 of 40000 is not what rank 1 sent"),
        (fan_in(1, 0, &[1, 2, 3]), 2, "rank 0: 2→0: byte 0"),
        (fan_out(1, 1, &[0, 2]), 1, "1→2: byte 0"),
        (relay(1, 4, 1), 3, "rank 0: 3→0: byte 0"),
        (group(1, Group::custom(1), &[(1, 0), (2, 2), (1, 0)]), 2, "rank 2: 2→2: byte 0"),
    ] {
        let mut agents = agents(4, &setup(1 << 20, 3));
        agents[wrong].endpoint().own.outgoing.fill(0);
        let (_, each) = obeyed(&mut agents, &order.probe.ranks(), &order);
        let corrupt = |report: &ProbeReport| matches!(&report.end, End::Corrupt(reason) if reason.contains(told));
        assert!(each.iter().any(corrupt), "{}: {each:?}", order.probe.describe());
        let hit: BTreeSet<usize> = order.probe.flows().into_iter().filter(|&(from, _)| from == wrong).map(|(_, to)| to).collect();
        let good = each.iter().filter(|report| report.end == End::Complete).count();
        assert_eq!(good, order.probe.ranks().len() - hit.len(), "{each:?}");
    }
}

#[test]
fn bytes_of_an_earlier_probe_are_not_taken_for_those_of_this_one() {
    let setup = Setup { buffers: Buffers::Reuse, ..setup(1 << 20, 2) };
    let mut agents = agents(3, &setup);
    let orders = [
        (fan_in(1, 0, &[1, 2]), "1→0: byte 0"),
        (group(2, Group::custom(1), &[(1, 1), (1, 2)]), "1→1: byte 0"),
        (pair(3, Pattern::Peer, 1, 0), "rank 0: byte 0"),
        (pair(4, Pattern::Local, 1, 1), "rank 1: byte 0"),
    ];
    for (mut order, told) in orders {
        agents[1].endpoint().lies = false;
        whole(&order, &measured(&mut agents, &order));
        agents[1].endpoint().lies = true;
        order.probe.id += 10;
        let (_, each) = obeyed(&mut agents, &order.probe.ranks(), &order);
        let corrupt = |report: &ProbeReport| matches!(&report.end, End::Corrupt(reason) if reason.contains(told));
        assert!(each.iter().any(corrupt), "{each:?}");
    }
}

#[test]
fn ranks_that_take_no_part_have_no_buffers() {
    let mut engine = Threads::start(3).unwrap();
    engine.restrict(&[2, 0]);
    engine.prepare(&setup(1 << 20, 1)).unwrap();
    let (good, wrong) = (pair(1, Pattern::Duplex, 0, 2), pair(2, Pattern::Duplex, 0, 1));
    engine.start(std::slice::from_ref(&good)).unwrap();
    whole(&good, report_of(&told(&mut engine, 1), 1));
    engine.start(std::slice::from_ref(&wrong)).unwrap();
    let reports = told(&mut engine, 1);
    assert!(matches!(&report_of(&reports, 2).end, End::Waived(reason) if reason.contains("rank 1 has no arena")), "{reports:?}");
    engine.finish();
}

#[test]
fn more_transfers_into_a_rank_than_it_has_arenas_are_waived() {
    let mut agents = agents(3, &setup(1 << 20, 1));
    let mut order = fan_in(1, 0, &[1, 2]);
    order.timeout = 2.0;
    let (_, each) = obeyed(&mut agents, &[0, 1, 2], &order);
    assert!(each.iter().any(|report| matches!(&report.end, End::Waived(reason) if reason.contains("no arena for 2"))), "{each:?}");
}

/// Poll until this many probes are told.
fn told(engine: &mut dyn Engine, probes: usize) -> Vec<Report> {
    let end = Instant::now() + Duration::from_secs_f64(LIMIT);
    let mut reports = Vec::new();
    while reports.iter().filter(|report| matches!(report, Report::Probe(_))).count() < probes {
        assert!(Instant::now() < end, "{reports:?}");
        reports.extend(engine.poll(Duration::from_millis(50)));
    }
    reports
}

fn report_of(reports: &[Report], id: u64) -> &ProbeReport {
    let of = |report: &&Report| matches!(report, Report::Probe(report) if report.probe == id);
    if let Some(Report::Probe(report)) = reports.iter().find(of) { report } else { panic!("{id}: {reports:?}") }
}

#[test]
fn probes_of_a_round_run_at_the_same_time_and_are_told_each_by_itself() {
    let mut engine = Threads::start(4).unwrap();
    engine.prepare(&setup(1 << 20, 2)).unwrap();
    let (one, other) = (pair(1, Pattern::Peer, 0, 1), pair(2, Pattern::Duplex, 3, 2));
    engine.start(&[one.clone(), other.clone()]).unwrap();
    let reports = told(&mut engine, 2);
    whole(&one, report_of(&reports, 1));
    whole(&other, report_of(&reports, 2));
    // One of them has no time.
    let mut hung = group(3, Group::custom(1), &[(1, 0); 2]);
    hung.timeout = 0.0;
    let other = pair(4, Pattern::Peer, 2, 3);
    engine.start(&[hung.clone(), other.clone()]).unwrap();
    let reports = told(&mut engine, 2);
    whole(&other, report_of(&reports, 4));
    assert!(matches!(report_of(&reports, 3).end, End::Timeout(_)), "{reports:?}");
    engine.finish();
}

#[test]
fn a_group_has_its_own_numbers_and_the_others_have_no_buffers() {
    let mut engine = Grouped::new(Box::new(Threads::start(4).unwrap()), vec![3, 1]).unwrap();
    assert_eq!((engine.topology().world(), engine.group()), (2, &[3, 1][..]));
    assert_eq!(engine.topology().ranks.iter().map(|placement| placement.rank).collect::<Vec<_>>(), [0, 1]);
    engine.prepare(&setup(1 << 20, 2)).unwrap();
    for order in [pair(1, Pattern::Peer, 1, 0), fan_in(2, 0, &[1]), relay(3, 2, 1)] {
        engine.start(std::slice::from_ref(&order)).unwrap();
        let reports = told(&mut engine, 1);
        whole(&order, report_of(&reports, order.probe.id));
    }
    engine.finish();
    for wrong in [vec![0, 4], vec![1, 1]] {
        let refused = Grouped::new(Box::new(Threads::start(2).unwrap()), wrong);
        assert!(matches!(refused, Err(TransportError::Group { rank: 4 | 1, world: 2 })));
    }
}

#[test]
fn buffers_that_cannot_be_had_are_refused_with_all_their_bytes() {
    let mut engine = Threads::start(2).unwrap();
    let refused = engine.prepare(&setup(1 << 60, 7)).unwrap_err().to_string();
    assert!(refused.contains("could not allocate 9223372036854775808 bytes for its buffers: "), "{refused}");
    assert_eq!(refused.matches("could not allocate").count(), 1, "{refused}");
    engine.prepare(&setup(1 << 20, 1)).unwrap();
    let order = pair(1, Pattern::Peer, 0, 1);
    engine.start(std::slice::from_ref(&order)).unwrap();
    whole(&order, report_of(&told(&mut engine, 1), 1));
    engine.finish();
}
