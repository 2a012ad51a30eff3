//! Sessions made up for tests: what they hold is known.

use std::collections::BTreeMap;

use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Event, Header, Model, Outcome, Record};
use toposcope::sweep::{Cell, Enough, Group, Probe, SweepSettings, Target};
use toposcope::topology::{Placement, Topology};

/// Ranks 0 and 1 on one host, rank 2 on another.
pub fn topology() -> Topology {
    let on = |rank, host: &str| Placement {
        rank,
        host: host.to_owned(),
        pid: 4000 + rank as u32,
        cores: vec![2 * rank, 2 * rank + 1],
        numa: (rank != 2).then_some(0),
        memory_available: 3 << 30,
        memory_total: 4 << 30,
        cache: 32 << 20,
        ..Placement::default()
    };
    Topology::of(vec![on(0, "alpha"), on(1, "alpha"), on(2, "beta")])
}

pub fn header() -> Header {
    Header {
        format: Header::current_format(),
        program: "0.1.0".to_owned(),
        name: "lab-2x3-20250101".to_owned(),
        started: "2025-01-01T10:00:00Z".to_owned(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: settings(),
        topology: topology(),
        software: BTreeMap::from([("mpi".to_owned(), "Open MPI 4.1.4".to_owned())]),
        environment: BTreeMap::from([("OMPI_MCA_btl".to_owned(), "self,tcp".to_owned())]),
    }
}

pub fn settings() -> SweepSettings {
    SweepSettings { sizes: vec![4096, 1 << 20], repeats: 7, mover: MoverKind::MpiSendrecv, ..SweepSettings::default() }
}

/// A repeat that went at `rate` bytes a second.
pub fn sample(probe: &Probe, repeat: u32, rate: f64) -> Sample {
    let messages = 4;
    let (from, to) = probe.flows()[0];
    Sample {
        repeat,
        take: probe.take,
        messages,
        seconds: Some((messages * probe.bytes) as f64 / rate),
        ack_seconds: Some(if from == to { 0.0 } else { 2e-6 }),
        status: Status::Ok,
        ..Sample::blank(probe.target.pattern(), from, to, probe.bytes, topology().path(from, to))
    }
}

/// A repeat that came to nothing.
pub fn failed(probe: &Probe, repeat: u32, status: Status, reason: &str) -> Sample {
    let reason = Some(reason.to_owned());
    Sample { messages: 0, seconds: None, ack_seconds: None, status, reason, ..sample(probe, repeat, 1.0) }
}

/// Bandwidth of a pair in [`records`], bytes a second: 10 GB/s within a host, 1 GB/s between, 2→0 a fifth of that.
pub fn rate(from: usize, to: usize) -> f64 {
    match (from, to) {
        (2, 0) => 0.2e9,
        (a, b) if (a == 2) != (b == 2) => 1e9,
        _ => 10e9,
    }
}

/// A whole sweep: every cell measured at rates around [`rate`], but 1→2 timed out at 1 MiB after two repeats, rank 2 is
/// then lost and its local copy waived at 1 MiB, and 0→1 was measured again at 1 MiB.
pub fn records() -> Vec<Record> {
    let settings = settings();
    let mut t = 0.0;
    let mut records = vec![Record { t, event: Event::SweepStarted { settings: settings.clone(), resumed: false } }];
    let mut say = |records: &mut Vec<Record>, event| {
        t += 0.125;
        records.push(Record { t, event });
    };
    let mut id = 0;
    for (pattern, take) in [(Pattern::Peer, 0), (Pattern::Local, 0), (Pattern::Peer, 1)] {
        for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))) {
            if (pattern == Pattern::Local) != (from == to) || (take == 1 && (from, to) != (0, 1)) {
                continue;
            }
            for &bytes in settings.sizes.iter().rev().filter(|&&bytes| take == 0 || bytes == 1 << 20) {
                let repeats = settings.repeats;
                let probe = Probe { take, ..Probe::pair(id, Cell { pattern, from, to }, bytes, repeats) };
                id += 1;
                say(&mut records, Event::ProbeStarted { probe: probe.clone() });
                let samples = (0..repeats).map(|repeat| match (pattern, from, to, bytes, repeat) {
                    (Pattern::Peer, 1, 2, 1_048_576, 2..) => failed(&probe, repeat, Status::Timeout, "no completion within 10 s"),
                    (Pattern::Local, 2, 2, 1_048_576, _) => failed(&probe, repeat, Status::Waived, "rank 2 is lost"),
                    // Spread 1 % a repeat around the rate, so that the median is the rate.
                    _ => sample(&probe, repeat, rate(from, to) * (1.0 + 0.01 * (f64::from(repeat) - 3.0))),
                });
                let samples = samples.collect();
                say(&mut records, Event::ProbeDone { probe: probe.id, samples, enough: None });
            }
        }
        if take == 0 && pattern == Pattern::Peer {
            say(&mut records, Event::RankLost { rank: 2, reason: "no answer since peer 1→2 1 MiB".to_owned() });
            say(&mut records, Event::Log { rank: 2, line: "btl_tcp: connection reset".to_owned() });
        }
        if pattern == Pattern::Local {
            say(&mut records, Event::Paused);
            say(&mut records, Event::Remeasure { cells: 1, repeats: 7 });
            say(&mut records, Event::Continued);
        }
    }
    say(&mut records, Event::SweepEnded { outcome: Outcome::Complete, reason: "rank 2 is lost".to_owned() });
    say(&mut records, Event::Notice { text: "left in order".to_owned() });
    say(&mut records, Event::Closed);
    records
}

pub fn model(records: &[Record]) -> Model {
    let mut model = Model::new(header());
    for record in records {
        model.apply(record);
    }
    model
}

/// Probes of every pattern with several transfers, one size, after [`records`]: duplex 0↔1, fan-in 0 ← 1,2 (the root takes
/// twice the time of a peer), relay +1 over three ranks, and a custom set of 0→1 and 2→1.
pub fn grouped() -> Vec<Record> {
    let mut records = vec![Record {
        t: 0.0,
        event: Event::SweepStarted { settings: SweepSettings { patterns: Pattern::ALL.to_vec(), ..settings() }, resumed: false },
    }];
    let pair = Target::Pair(Cell { pattern: Pattern::Duplex, from: 0, to: 1 });
    let targets = [
        (pair, vec![]),
        (Target::Group(Group::fan(Pattern::FanIn, 0, vec![1, 2])), vec![(1, 0), (2, 0)]),
        (Target::Group(Group::relay(1)), vec![(0, 1), (1, 2), (2, 0)]),
        (Target::Group(Group::custom(4)), vec![(0, 1), (2, 1)]),
    ];
    for (id, (target, flows)) in (0..).zip(targets) {
        let probe = Probe { target, flows, ..Probe::pair(id, Cell { pattern: Pattern::Peer, from: 0, to: 1 }, 1 << 20, 3) };
        let mut samples = Vec::new();
        for (from, to) in probe.flows() {
            for repeat in 0..4 {
                let mut sample = sample(&probe, repeat, 1e9);
                (sample.from, sample.to, sample.path) = (from, to, topology().path(from, to));
                (sample.warmup, sample.repeat) = (repeat == 0, repeat.saturating_sub(1));
                if let Target::Group(group) = &probe.target {
                    (sample.root, sample.shift, sample.set) = (group.root, group.shift, group.set);
                    sample.peers.clone_from(&group.peers);
                    sample.width = group.root.map(|_| group.peers.len());
                    sample.root_seconds = group.root.and(sample.seconds).map(|seconds| 2.0 * seconds);
                    if group.pattern == Pattern::Relay {
                        sample.receive_path = Some(topology().path((from + 2) % 3, from));
                        sample.send_path = Some(sample.path);
                    }
                }
                samples.push(sample);
            }
        }
        records.push(Record { t: 1.0 + id as f64, event: Event::ProbeStarted { probe: probe.clone() } });
        records.push(Record { t: 1.5 + id as f64, event: Event::ProbeDone { probe: id, samples, enough: Some(Enough::Repeats) } });
    }
    records
}
