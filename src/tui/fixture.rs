//! Sessions for tests, built from events as a job would emit them.

mod found;
mod machine;
mod replayed;

use std::collections::BTreeMap;

use crossterm::event::{Event as Input, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use found::{found, narrow};
pub use machine::{boxed, boxes, switched};
pub use replayed::{plans, ranking, rounds, told_plans, two_hosts};

use super::keys::Key;
use super::{App, Effect, Look, Mode, Tab, Ui};
use crate::ramp::Level;
use crate::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use crate::session::{Event, Header, Model, Outcome, Record};
use crate::sweep::{Cell, Enough, Group, Peers, Probe, SweepSettings, Target, Transfer};
use crate::topology::{PathClass, Placement, Topology};

/// The published pair matrix of an eight-GPU box whose directions differ, GB/s; rows send.
const B70: [[f64; 8]; 8] = [
    [415.0, 8.3, 7.9, 8.3, 27.3, 27.5, 27.6, 27.8],
    [6.0, 415.0, 5.5, 3.6, 27.4, 27.5, 27.4, 27.5],
    [53.9, 53.7, 415.0, 53.6, 14.5, 14.6, 14.6, 14.6],
    [53.6, 53.5, 53.8, 415.0, 14.6, 14.6, 14.6, 14.6],
    [27.4, 27.3, 27.4, 27.3, 415.0, 14.4, 14.3, 14.4],
    [27.3, 27.3, 27.4, 27.4, 25.2, 415.0, 25.3, 25.3],
    [27.6, 27.7, 27.0, 27.3, 8.8, 8.7, 415.0, 8.6],
    [27.5, 27.8, 27.3, 27.4, 42.8, 42.9, 43.0, 415.0],
];

pub fn header(name: &str, hosts: &[&str]) -> Header {
    let ranks = hosts.iter().enumerate().map(|(rank, host)| Placement {
        rank,
        host: (*host).to_owned(),
        pid: 4000 + rank as u32,
        cores: vec![2 * rank, 2 * rank + 1],
        numa: Some(rank % 2),
        memory_available: 48 << 30,
        memory_total: 64 << 30,
        cache: 32 << 20,
        ..Placement::default()
    });
    Header {
        format: Header::current_format(),
        program: "0.1.0".to_owned(),
        name: name.to_owned(),
        started: "2026-11-29T12:00:00Z".to_owned(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: SweepSettings::default(),
        topology: Topology::of(ranks.collect()),
        software: BTreeMap::from([("mpi".to_owned(), "Open MPI 4.1.4".to_owned()), ("system".to_owned(), "Linux 6.1".to_owned())]),
        environment: BTreeMap::from([("UCX_TLS".to_owned(), "tcp,self".to_owned())]),
    }
}

/// Events with their times, one after another.
pub struct Story {
    pub records: Vec<Record>,
    now: f64,
    next: u64,
    /// seconds that a message below 64 MiB takes more
    start_up: f64,
}

impl Story {
    pub fn new(settings: &SweepSettings) -> Self {
        let event = Event::SweepStarted { settings: settings.clone(), resumed: false };
        Self { records: vec![Record { t: 0.5, event }], now: 0.5, next: 0, start_up: 20e-6 }
    }

    pub fn then(&mut self, event: Event) {
        self.now += 0.01;
        self.records.push(Record { t: self.now, event });
    }

    /// A probe of a pair, its eight repeats around `gbps` (with a start-up time of 20 µs when small), or two timeouts.
    pub fn probe(&mut self, topology: &Topology, (from, to): (usize, usize), bytes: u64, gbps: Option<f64>) {
        let (status, repeats, take) = if gbps.is_some() { (Status::Ok, 8, 0) } else { (Status::Timeout, 2, 0) };
        let pattern = if from == to { Pattern::Local } else { Pattern::Peer };
        let probe = Probe { take, ..Probe::pair(self.next, Cell { pattern, from, to }, bytes, repeats) };
        self.next += 1;
        self.then(Event::ProbeStarted { probe: probe.clone() });
        let sample = |repeat: u32| Sample {
            repeat,
            take,
            messages: 4,
            seconds: gbps.map(|gbps| {
                // A spread of about 1 % around the published value, the same in every run.
                let spread = 1.0 + (f64::from((repeat * 7 + from as u32 * 3 + to as u32) % 8) - 3.5) / 415.0;
                let start_up = if bytes < 64 << 20 { self.start_up } else { 0.0 };
                4.0 * (start_up + bytes as f64 / (gbps * 1e9)) * spread
            }),
            status,
            reason: (status == Status::Timeout).then(|| "no acknowledgement within 10 s".to_owned()),
            ..Sample::blank(pattern, from, to, bytes, topology.path(from, to))
        };
        let samples = (0..repeats).map(sample).collect();
        self.then(Event::ProbeDone { probe: probe.id, samples, enough: None });
    }
}

impl Story {
    /// A probe of several transfers at once, each (from, to, GB/s), and the root's own time if they have one; eight repeats after a
    /// warm-up, the fourth far from the others.
    pub fn at_once(&mut self, target: &Target, flows: &[(usize, usize, f64)], bytes: u64, root_seconds: Option<f64>) {
        let id = self.next;
        self.next += 1;
        let own: Vec<(usize, usize)> = flows.iter().map(|&(from, to, _)| (from, to)).collect();
        let pair = Probe::pair(id, Cell { pattern: target.pattern(), from: 0, to: 0 }, bytes, 8);
        let flows_told = if matches!(target, Target::Pair(_)) { Vec::new() } else { own };
        self.then(Event::ProbeStarted { probe: Probe { target: target.clone(), flows: flows_told, ..pair } });
        let mut samples = Vec::new();
        let start_up = if bytes < 64 << 20 { 20e-6 } else { 0.0 };
        for &(from, to, gbps) in flows {
            for repeat in 0..9_u32 {
                let late = if repeat == 4 { 1.4 } else { 1.0 };
                let spread = late * (1.0 + (f64::from((repeat * 5 + to as u32) % 8) - 3.5) / 300.0);
                let path = if from == to { PathClass::Local } else { PathClass::IntraNode };
                let mut sample = Sample {
                    repeat: repeat.saturating_sub(1),
                    warmup: repeat == 0,
                    outlier: repeat == 4,
                    messages: 1,
                    seconds: Some((start_up + bytes as f64 / (gbps * 1e9)) * spread),
                    root_seconds: root_seconds.map(|seconds| (start_up + seconds) * late * (1.0 + (f64::from(repeat) - 4.5) / 400.0)),
                    isolated: repeat % 2 == 0,
                    status: Status::Ok,
                    ..Sample::blank(target.pattern(), from, to, bytes, path)
                };
                if let Target::Group(group) = target {
                    (sample.root, sample.shift, sample.set) = (group.root, group.shift, group.set);
                    sample.width = group.root.map(|_| group.peers.len());
                    sample.peers.clone_from(&group.peers);
                    sample.receive_path = group.shift.map(|_| path);
                    sample.send_path = group.shift.map(|_| path);
                }
                samples.push(sample);
            }
        }
        self.then(Event::ProbeDone { probe: id, samples, enough: Some(Enough::Repeats) });
    }
}

/// Eight ranks of one host, completely measured.
pub fn b70() -> (Header, Vec<Record>) {
    let header = header("b70-8", &["b70"; 8]);
    let settings = SweepSettings { sizes: vec![4096, 1 << 20, 256 << 20], mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut story = Story::new(&settings);
    for &bytes in &settings.sizes {
        for (from, row) in B70.iter().enumerate() {
            for (to, &gbps) in row.iter().enumerate() {
                story.probe(&header.topology, (from, to), bytes, Some(gbps));
            }
        }
    }
    story.then(Event::Log { rank: 3, line: "NCCL INFO \u{1b}[31mred\u{1b}[0m".to_owned() });
    story.then(Event::SweepEnded { outcome: Outcome::Complete, reason: String::new() });
    (header, story.records)
}

/// Published fan-in aggregates of that box at 256 MiB, GB/s: width, least, most over the roots.
const FANS: [(usize, f64, f64); 4] = [(1, 7.0, 53.9), (2, 12.6, 55.2), (4, 18.7, 37.3), (7, 16.4, 23.6)];

/// The published cases: root, width, GB/s.
const CASES: [(usize, usize, f64); 3] = [(0, 2, 12.6), (1, 2, 55.2), (3, 4, 27.9)];

/// What a fan gives, GB/s: the published cases and ends of each width; else what serving its pairs in turn gives, within them.
fn fan_rate(pattern: Pattern, root: usize, peers: &[usize]) -> f64 {
    let pair = |&peer: &usize| if pattern == Pattern::FanIn { B70[peer][root] } else { B70[root][peer] };
    let in_turn = |root_peers: &[usize]| root_peers.len() as f64 / root_peers.iter().map(|peer| pair(peer).recip()).sum::<f64>();
    let made = in_turn(peers);
    if pattern == Pattern::FanOut {
        return made;
    }
    let published = CASES.iter().find(|&&(of, width, _)| (of, width) == (root, peers.len())).map(|case| case.2);
    let ends = FANS.iter().find(|fan| fan.0 == peers.len());
    published.unwrap_or_else(|| ends.map_or(made, |&(_, least, most)| made.clamp(least, most)))
}

/// The same box with every pattern: fans of the next 1, 2, 4 and 7 ranks, both ways at once, a relay and a set.
pub fn fans() -> (Header, Vec<Record>) {
    let (header, mut records) = b70();
    let settings = SweepSettings {
        patterns: Pattern::ALL.into_iter().filter(|pattern| !pattern.crosses()).collect(),
        sizes: vec![4096, 1 << 20, 256 << 20],
        widths: FANS.map(|fan| fan.0).to_vec(),
        peers: Peers::Next,
        transfers: [(0, 4), (1, 5), (2, 6)].map(|(from, to)| Transfer { set: 3, from, to }).to_vec(),
        mover: MoverKind::MpiSendrecv,
        ..SweepSettings::default()
    };
    records[0].event = Event::SweepStarted { settings: settings.clone(), resumed: false };
    let mut story = Story::new(&settings);
    (story.now, story.next) = (records.last().map_or(0.0, |record| record.t), 1000);
    story.records.clear();
    for bytes in settings.sizes.clone() {
        for (from, to) in (0..8).flat_map(|from| (0..from).map(move |to| (to, from))) {
            // Both directions of a switch's link share it a little.
            let half = |from: usize, to: usize| B70[from][to] * if from / 4 == to / 4 { 0.84 } else { 0.97 };
            story.at_once(
                &Target::Pair(Cell { pattern: Pattern::Duplex, from, to }),
                &[(from, to, half(from, to)), (to, from, half(to, from))],
                bytes,
                None,
            );
        }
        for pattern in [Pattern::FanIn, Pattern::FanOut] {
            for (root, (width, ..)) in (0..8).flat_map(|root| FANS.map(|fan| (root, fan))) {
                let peers: Vec<usize> = (1..=width).map(|step| (root + step) % 8).collect();
                let aggregate = fan_rate(pattern, root, &peers);
                let pair = |peer: usize| if pattern == Pattern::FanIn { (peer, root) } else { (root, peer) };
                let mut flows: Vec<_> = peers.iter().map(|&peer| pair(peer)).collect();
                // One after another, the fast ones first: each is done when those before it are.
                flows.sort_by(|a, b| B70[b.0][b.1].total_cmp(&B70[a.0][a.1]));
                let turn = |&(from, to): &(usize, usize)| B70[from][to].recip();
                let all: f64 = flows.iter().map(turn).sum();
                let done = |at: usize| flows[..=at].iter().map(turn).sum::<f64>() / all;
                let flows: Vec<_> =
                    flows.iter().enumerate().map(|(at, &(from, to))| (from, to, aggregate / width as f64 / done(at))).collect();
                let root_seconds = bytes as f64 * width as f64 / (aggregate * 1e9);
                story.at_once(&Target::Group(Group::fan(pattern, root, peers)), &flows, bytes, Some(root_seconds));
            }
        }
        let relay: Vec<_> =
            (0..8).map(|from| (from, (from + 1) % 8, B70[from][(from + 1) % 8].min(B70[(from + 7) % 8][from]) * 0.8)).collect();
        story.at_once(&Target::Group(Group::relay(1)), &relay, bytes, None);
        let set = [(0, 4), (1, 5), (2, 6)].map(|(from, to)| (from, to, B70[from][to] / 2.0));
        story.at_once(&Target::Group(Group::custom(3)), &set, bytes, None);
    }
    story.then(Event::SweepEnded { outcome: Outcome::Complete, reason: String::new() });
    records.extend(story.records);
    (header, records)
}

/// Two ranks on one host and one on another, at eight sizes: what goes between the hosts changes its protocol at 256 KiB, and
/// copies inside a rank come from cache or not, as it happens, so that no line serves them.
pub fn protocols() -> (Header, Vec<Record>) {
    let header = header("protocols", &["node1", "node1", "node2"]);
    let settings = SweepSettings { mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut story = Story { start_up: 0.0, ..Story::new(&settings) };
    for &bytes in &settings.sizes {
        for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))) {
            let (alpha, gbps) = match (from == to, (from == 2) == (to == 2), bytes >= 256 << 10) {
                (true, ..) => (2e-7, if bytes.ilog2() % 4 == 0 { 90.0 } else { 30.0 }),
                (_, true, _) => (3e-6, 9.5),
                (.., false) => (8e-6, 1.4),
                (.., true) => (60e-6, 11.8),
            };
            let seconds = alpha + bytes as f64 / (gbps * 1e9);
            story.probe(&header.topology, (from, to), bytes, Some(bytes as f64 / seconds / 1e9));
        }
    }
    story.then(Event::SweepEnded { outcome: Outcome::Complete, reason: String::new() });
    (header, story.records)
}

/// Three ranks of two hosts, one named with escape codes, in the middle of a sweep: one pair times out, one is not yet
/// measured, one rank is lost.
pub fn three() -> (Header, Vec<Record>) {
    let header = header("netlab-3", &["gpu07", "gpu07", "gpu\u{1b}[2J\u{1b}]0;x\u{7}08"]);
    let settings = SweepSettings { sizes: vec![4096, 16 << 20], mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut story = Story::new(&settings);
    for (from, to, gbps) in [(0, 0, 11.0), (1, 1, 10.5), (2, 2, 10.8), (0, 1, 6.1), (1, 0, 6.0), (0, 2, 0.024), (2, 0, 0.098)] {
        story.probe(&header.topology, (from, to), 16 << 20, Some(gbps));
    }
    story.probe(&header.topology, (2, 1), 16 << 20, None);
    story.then(Event::Log { rank: 2, line: "UCX WARN \u{1b}[1mno device\u{1b}[0m".to_owned() });
    story.then(Event::RankLost { rank: 2, reason: "no answer for 10 s".to_owned() });
    story.then(Event::Notice { text: "rank 2 is lost: the sweep goes on without it".to_owned() });
    let probe = Probe::pair(99, Cell { pattern: Pattern::Peer, from: 0, to: 1 }, 4096, 8);
    story.then(Event::ProbeStarted { probe });
    (header, story.records)
}

/// `n` ranks, `per_host` a host, measured at one size: rank 1 receives slowly, the last but one sends slowly, one pair is slow.
pub fn spread(n: usize, per_host: usize) -> (Header, Vec<Record>) {
    let hosts: Vec<String> = (0..n).map(|rank| format!("cell{:02}", rank / per_host)).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let header = header("spread", &hosts);
    let settings = SweepSettings { sizes: vec![16 << 20], mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut story = Story::new(&settings);
    for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
        let usual = match (from == to, from / per_host == to / per_host) {
            (true, _) => 90.0,
            (_, true) => 50.0,
            _ => 12.0,
        };
        let slow = match (from, to) {
            (from, to) if from == to => 1.0,
            (from, _) if n > 2 && from == n - 2 => 0.3,
            (_, 1) => 0.5,
            (0, to) if to == n / 2 + 1 => 0.4,
            _ => 1.0,
        };
        let noise = 1.0 + ((from * 7 + to * 3) % 8) as f64 / 100.0;
        story.probe(&header.topology, (from, to), 16 << 20, Some(usual * slow * noise));
    }
    story.then(Event::SweepEnded { outcome: Outcome::Complete, reason: String::new() });
    (header, story.records)
}

/// The session that was measured in the laboratory: node4 (rank 3) sends at 200 Mbit/s, node2 (rank 1) receives at 300, all
/// else at 800.
pub fn lab() -> (Header, Vec<Record>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/lab-4x4");
    let recorded = crate::session::store::read(&folder).unwrap();
    (recorded.header, recorded.records)
}

/// A header and what happened.
pub type Session = (Header, Vec<Record>);

/// A screen on a job, that has drawn: keys come after a first frame.
pub fn live(session: Session, tab: Tab) -> App {
    let mut app = app(session, tab, Level::TrueColor, Mode::Live);
    frame(&mut app, 120, 40);
    app
}

/// The screen at 120x40, as text.
pub fn shown(app: &mut App) -> String {
    text(&frame(app, 120, 40))
}

/// A screen on a session.
pub fn app((header, records): Session, tab: Tab, level: Level, mode: Mode) -> App {
    let mut app = screen_on(Model::new(header), tab, level, mode);
    app.take(records);
    app.ui.notice = None;
    app
}

/// A screen on a model.
pub fn screen_on(model: Model, tab: Tab, level: Level, mode: Mode) -> App {
    let (look, warnings) = Look::new("dark", BTreeMap::new(), level, None).unwrap();
    assert_eq!(warnings, [""; 0]);
    let ui = Ui::new(
        tab,
        &SweepSettings { mover: MoverKind::MpiSendrecv, ..SweepSettings::default() },
        vec![MoverKind::MpiSendrecv, MoverKind::MpiPut],
    );
    let mut app = App::new(model, ui, look, mode, &crate::topology::Efficiency::default());
    // Tests do not race the clock, and find nothing unless they say what.
    app.desk.hold(None);
    app.replays.hold(Vec::new());
    app.share = None;
    app
}

/// Draw as on a terminal of this size.
pub fn frame(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    app.draw(&mut buffer);
    buffer
}

/// The text of a frame, a line each.
pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let lines = buffer.content.chunks(width).map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Press keys, written as in the key file and separated by spaces; what the last one asked for comes back.
pub fn press(app: &mut App, keys: &str) -> Effect {
    let mut effect = Effect::Nothing;
    for key in keys.split_whitespace() {
        let key: Key = key.parse().unwrap();
        effect = app.input(&Input::Key(KeyEvent::from(key))).effect;
        frame(app, 120, 40);
    }
    effect
}
