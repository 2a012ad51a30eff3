//! Sessions made up for tests: what they hold is known.

use std::collections::BTreeMap;

use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Conflict, Event, Header, Model, Outcome, Record};
use toposcope::sweep::{Cell, Enough, Group, Probe, SweepSettings, Target};
use toposcope::topology::{Hardware, Placement, Topology};

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

/// A box with eight GPUs, as large as they come: two sockets of 64 cores with two threads, four switches, ten network devices,
/// and the many small devices of its processors.
pub fn hardware(host: &str) -> Hardware {
    use toposcope::topology::hardware::{
        Acs, Cache, CacheKind, Device, Gpu, GpuLink, LinkEnd, Nic, NoteKind, NumaNode, Package, PciDevice, PciKind, Told, ToldWhat,
    };
    use toposcope::topology::{Lanes, PathLabel, PciAddress, PcieLink};
    let cpus = |socket: usize| (64 * socket..64 * socket + 64).chain(128 + 64 * socket..192 + 64 * socket).collect::<Vec<_>>();
    let mut hardware =
        Hardware { host: host.to_owned(), source: "this system".to_owned(), product: "Acme X8".to_owned(), ..Hardware::default() };
    hardware.iommu = Some("passthrough".to_owned());
    for socket in 0..2 {
        hardware.packages.push(Package { id: socket, model: "Xeon".to_owned(), cores: 64, cpus: cpus(socket) });
        let distances = if socket == 0 { vec![10, 21] } else { vec![21, 10] };
        hardware.numa.push(NumaNode { id: socket, cpus: cpus(socket), memory: 1 << 40, distances });
    }
    for (level, kind) in [(1, CacheKind::Data), (1, CacheKind::Instruction), (2, CacheKind::Unified)] {
        hardware.caches.extend((0..128).map(|core| Cache { level, kind, bytes: 1 << 20, cpus: vec![core, 128 + core] }));
    }
    hardware.caches.extend((0..2).map(|socket| Cache { level: 3, kind: CacheKind::Unified, bytes: 300 << 20, cpus: cpus(socket) }));
    let gen5 = Some(Lanes { speed: 32.0, width: 16 });
    let link = Some(PcieLink { now: gen5, most: gen5, port: gen5 });
    for tree in 0..4_u8 {
        let (bus, numa) = (0x10 + 0x30 * tree, Some(usize::from(tree / 2)));
        let add = |hardware: &mut Hardware, (bus, device), parent, kind, class, name: &str| {
            let address = PciAddress { domain: 0, bus, device, function: 0 };
            let link = link.filter(|_| matches!(kind, PciKind::Endpoint | PciKind::SwitchUp) && class != 0x08_80_00);
            let acs = (kind == PciKind::SwitchDown).then(Acs::default);
            let driver = (kind != PciKind::HostBridge && class != 0x08_80_00).then(|| "driver".to_owned());
            let name = name.to_owned();
            hardware.pci.push(PciDevice { address, parent, kind, class, vendor: 0x8086, device: 0x3456, name, link, numa, acs, driver });
            hardware.pci.len() - 1
        };
        let root = add(&mut hardware, (bus, 0), None, PciKind::HostBridge, 0, "host bridge");
        for device in 8..0x1f {
            add(&mut hardware, (bus, device), Some(root), PciKind::Endpoint, 0x08_80_00, "Intel system peripheral 8086:3456");
        }
        let port = add(&mut hardware, (bus, 1), Some(root), PciKind::RootPort, 0x06_04_00, "Intel PCI bridge 8086:352a");
        let up = add(&mut hardware, (bus + 1, 0), Some(port), PciKind::SwitchUp, 0x06_04_00, "Broadcom PCI bridge 1000:c030");
        for slot in 0..4 {
            let down = add(&mut hardware, (bus + 2, slot), Some(up), PciKind::SwitchDown, 0x06_04_00, "Broadcom PCI bridge 1000:c030");
            let (class, name) =
                if slot < 2 { (0x03_02_00, "NVIDIA 3D controller") } else { (0x02_07_00, "Mellanox InfiniBand controller") };
            let pci = Some(add(&mut hardware, (bus + 3 + slot, 0), Some(down), PciKind::Endpoint, class, name));
            let index = hardware.gpus.len();
            if slot < 2 {
                let cpus = cpus(usize::from(tree / 2));
                let uuid = Some(format!("GPU-{index}"));
                hardware.gpus.push(Gpu {
                    index,
                    name: "H100".to_owned(),
                    uuid,
                    pci,
                    numa,
                    cpus,
                    clock: Some((345, 1980)),
                    ..Gpu::default()
                });
                hardware.gpu_links.extend((0..18).map(|number| GpuLink {
                    gpu: index,
                    number: Some(number),
                    end: LinkEnd::Switch,
                    active: true,
                    version: Some(4),
                    rate: Some(25e9),
                    ..GpuLink::default()
                }));
            } else {
                let name = format!("mlx5_{}", hardware.nics.len());
                hardware.nics.push(Nic {
                    name,
                    port: 1,
                    pci,
                    numa,
                    state: "active".to_owned(),
                    rate: Some(50e9),
                    gids: Some(3),
                    ..Nic::default()
                });
            }
        }
    }
    hardware.told.push(Told { from: Device::Gpu(0), to: Device::Nic(1), what: ToldWhat::Label(PathLabel::Pix) });
    let what = ToldWhat::Peer { access: "read".to_owned(), status: "OK".to_owned() };
    hardware.told.push(Told { from: Device::Gpu(0), to: Device::Memory(1), what });
    hardware.note(NoteKind::Warning, "ACS", "switch ports send transfers between devices up");
    hardware
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
            let conflict = Conflict {
                pattern: Pattern::Peer,
                bytes: 1 << 20,
                repeats: 3,
                flows: vec![(0, 2), (1, 2)],
                together: vec![2e-3, 2.1e-3],
                alone: vec![1e-3, 1e-3],
            };
            say(&mut records, Event::Shared(conflict));
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
        event: Event::SweepStarted {
            settings: SweepSettings { patterns: Pattern::ALL.into_iter().filter(|pattern| !pattern.crosses()).collect(), ..settings() },
            resumed: false,
        },
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
