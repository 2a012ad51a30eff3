//! What a frame and an event cost: `cargo bench`.
//!
//! Targets: a full draw of any tab at 200x56 below 5 ms, one sample event below 10 µs, 20 frames a second of the Fits tab while the
//! 1.05 million pairs of 1,024 ranks stream in (issue 3, must show g), and of the Replay tab for 16 ranks and 1,000 rounds, with a step
//! of its play head within a frame (issue 6, must show g).

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use crossterm::event::{Event as Input, KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use toposcope::fabric::Fabric;
use toposcope::matrix::Metric;
use toposcope::plan::{Flow, Stage, Staged, Traffic};
use toposcope::ramp::Level;
use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Event, Header, Model, Record};
use toposcope::sweep::SweepSettings;
use toposcope::topology::{Efficiency, PathClass, Placement, Topology};
use toposcope::tui::{App, Look, Mode, Tab, Ui};

const SIZE: u64 = 1 << 20;

fn header(world: usize) -> Header {
    let ranks = (0..world).map(|rank| Placement {
        rank,
        host: format!("host{:03}", rank / 8),
        pid: 1,
        cores: vec![rank % 8],
        numa: Some(0),
        memory_available: 1 << 36,
        memory_total: 1 << 37,
        cache: 32 << 20,
        ..Placement::default()
    });
    Header {
        format: Header::current_format(),
        program: "bench".to_owned(),
        name: "bench".to_owned(),
        started: String::new(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: SweepSettings::default(),
        topology: Topology::of(ranks.collect()),
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
    }
}

fn sample(rng: &mut fastrand::Rng, (from, to): (usize, usize), bytes: u64, repeat: u32) -> Sample {
    let pattern = if from == to { Pattern::Local } else { Pattern::Peer };
    let path = if from / 8 == to / 8 { PathClass::IntraNode } else { PathClass::InterNode };
    Sample {
        repeat,
        messages: 1,
        seconds: Some(2e-5 + bytes as f64 / (1e9 + rng.f64() * 9e9)),
        status: Status::Ok,
        ..Sample::blank(pattern, from, to, bytes, path)
    }
}

fn done(rng: &mut fastrand::Rng, id: u64, pair: (usize, usize), bytes: u64, repeats: std::ops::Range<u32>) -> Record {
    let samples = repeats.map(|repeat| sample(rng, pair, bytes, repeat)).collect();
    Record { t: id as f64 * 1e-3, event: Event::ProbeDone { probe: id, samples, enough: None } }
}

/// Every pair of `world` ranks, in order.
fn pairs(world: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..world).flat_map(move |from| (0..world).map(move |to| (from, to)))
}

/// Repeats of a pair and size: the fewest that have an interval.
const REPEATS: u32 = 6;

/// A screen on a job of `world` ranks of which nothing has been measured.
fn fresh(world: usize, sizes: &[u64]) -> App {
    let settings = SweepSettings { sizes: sizes.to_vec(), repeats: 8, mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let Ok((look, _)) = Look::new("dark", BTreeMap::new(), Level::TrueColor, None) else { unreachable!("the built-in theme") };
    let mut app =
        App::new(Model::new(header(world)), Ui::new(Tab::Matrix, &settings, Vec::new()), look, Mode::Live, &Efficiency::default());
    app.apply(&Record { t: 0.0, event: Event::SweepStarted { settings, resumed: false } });
    app
}

/// The same with every pair measured.
fn app(world: usize, sizes: &[u64], rng: &mut fastrand::Rng) -> App {
    let mut app = fresh(world, sizes);
    for &bytes in sizes {
        for (from, to) in pairs(world) {
            app.apply(&done(rng, (from * world + to) as u64, (from, to), bytes, 0..REPEATS));
        }
    }
    app
}

/// Fans of every root at four widths.
fn fans(app: &mut App, world: usize) {
    for pattern in [Pattern::FanIn, Pattern::FanOut] {
        for (root, width) in (0..world).flat_map(|root| [1, 2, 4, 7].map(|width| (root, width))) {
            let peers: Vec<usize> = (1..=width).map(|step| (root + step) % world).collect();
            let one = |&peer: &usize| {
                let (from, to) = if pattern == Pattern::FanIn { (peer, root) } else { (root, peer) };
                let (peers, width) = (peers.clone(), Some(width));
                (0..REPEATS).map(move |repeat| Sample {
                    root: Some(root),
                    peers: peers.clone(),
                    width,
                    repeat,
                    messages: 1,
                    seconds: Some(1e-3 * f64::from(repeat + 1)),
                    root_seconds: Some(2e-3),
                    status: Status::Ok,
                    ..Sample::blank(pattern, from, to, SIZE, PathClass::IntraNode)
                })
            };
            let samples = peers.iter().flat_map(one).collect();
            app.apply(&Record { t: 1.0, event: Event::ProbeDone { probe: 0, samples, enough: None } });
        }
    }
}

fn screen(criterion: &mut Criterion) {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    let mut draw = |criterion: &mut Criterion, name: &str, app: &mut App| {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                buffer.reset();
                app.draw(black_box(&mut buffer));
            });
        });
    };
    for world in [8, 256] {
        let mut app = app(world, &[SIZE], &mut rng);
        draw(criterion, &format!("draw the Matrix tab, 200x56, {world} ranks"), &mut app);
        fans(&mut app, world);
        app.ui.tab = Tab::Fans;
        draw(criterion, &format!("draw the Fans tab, 200x56, {world} ranks"), &mut app);
    }
    let mut small = app(256, &[SIZE], &mut rng);
    let mut id = 1 << 20;
    criterion.bench_function("apply one sample event, 256 ranks", |bencher| {
        bencher.iter_batched_ref(
            || {
                id += 1;
                let pair = (rng.usize(..256), rng.usize(..256));
                done(&mut rng, id, pair, SIZE, 8..9)
            },
            |done| small.apply(done),
            BatchSize::SmallInput,
        );
    });
    drop(small);
    replay(criterion, &mut rng);
    tree(criterion);
    fits(criterion, &mut rng);
}

/// Seconds that this thread has computed: other programs on the machine do not count.
fn cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// What frames take.
#[derive(Default)]
struct Frames {
    /// seconds of each, computing only
    times: Vec<f64>,
}

impl Frames {
    /// A frame as the screen's loop makes it, 20 a second.
    fn one(&mut self, app: &mut App, buffer: &mut Buffer, news: Vec<Record>) {
        let begun = cpu();
        app.take(news);
        app.tick(0.05);
        buffer.reset();
        app.draw(buffer);
        self.times.push(cpu() - begun);
    }

    fn tell(mut self, what: &str) {
        self.times.sort_by(f64::total_cmp);
        let at = |share: f64| self.times.get((share * (self.times.len() - 1) as f64) as usize).copied().unwrap_or(0.0) * 1e3;
        let late = self.times.iter().filter(|&&time| time > 0.05).count();
        println!(
            "{what}: {} frames, median {:.1} ms, 99 % within {:.1}, longest {:.1}, {late} over 50",
            self.times.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// The Replay tab: 16 ranks, each sending to one other in 1,000 rounds, priced with what was measured.
fn replay(criterion: &mut Criterion, rng: &mut fastrand::Rng) {
    const RANKS: usize = 16;
    const ROUNDS: usize = 1000;
    let mut app = app(RANKS, &[SIZE, 16 << 20], rng);
    app.ui.tab = Tab::Replay;
    let flow = |number: usize| {
        let (stage, from) = (number / RANKS, number % RANKS);
        let to = (from + 1 + stage % (RANKS - 1)) % RANKS;
        Flow { stage, from, to, bytes: 8 << 20, messages: 1, after: Vec::new(), offset: None, staged: Staged::default() }
    };
    let traffic = Traffic {
        name: "rounds".to_owned(),
        ranks: RANKS,
        stages: (0..ROUNDS).map(|round| Stage { name: format!("round {round}"), waits: true }).collect(),
        flows: (0..RANKS * ROUNDS).map(flow).collect(),
        ..Traffic::default()
    };
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    let begun = std::time::Instant::now();
    app.apply(&Record { t: 1e6, event: Event::PlanLoaded { traffic } });
    let mut longest: f64 = 0.0;
    loop {
        let frame = cpu();
        app.tick(0.05);
        buffer.reset();
        app.draw(&mut buffer);
        longest = longest.max(cpu() - frame);
        if !app.pricing() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    println!("16,000 flows priced in {:.0} ms, the longest frame meanwhile {:.1} ms", begun.elapsed().as_secs_f64() * 1e3, longest * 1e3);
    criterion.bench_function("draw the Replay tab, 200x56, 16 ranks, 1,000 rounds", |bencher| {
        bencher.iter(|| {
            buffer.reset();
            app.draw(black_box(&mut buffer));
        });
    });
    let mut forward = true;
    criterion.bench_function("scrub the Replay tab by a column, and draw it", |bencher| {
        bencher.iter(|| {
            // Back and forth, so that it is never at an end.
            let code = if forward { KeyCode::Left } else { KeyCode::Right };
            forward = !forward;
            app.input(&Input::Key(KeyEvent::from(code)));
            buffer.reset();
            app.draw(black_box(&mut buffer));
        });
    });
}

/// The Topology tab of 128 hosts with 8 GPUs and 8 NICs each, all unfolded (issue 4, must show g).
fn tree(criterion: &mut Criterion) {
    let Some(Ok(fabric)) = Fabric::shipped("nvswitch-128x8") else { unreachable!("a shipped fabric") };
    let mut header = header(1024);
    header.topology = fabric.topology();
    let Ok((look, _)) = Look::new("dark", BTreeMap::new(), Level::TrueColor, None) else { unreachable!("the built-in theme") };
    let begun = cpu();
    let ui = Ui::new(Tab::Topology, &SweepSettings::default(), Vec::new());
    let mut app = App::new(Model::new(header), ui, look, Mode::Live, &Efficiency::default());
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    app.draw(&mut buffer);
    println!("a screen on 128 hosts, and its first frame: {:.0} ms", (cpu() - begun) * 1e3);
    let mut press = |app: &mut App, code: KeyCode| {
        app.input(&Input::Key(KeyEvent::from(code)));
        buffer.reset();
        app.draw(&mut buffer);
    };
    // The line of hosts alike, then from the last host upwards.
    press(&mut app, KeyCode::Home);
    press(&mut app, KeyCode::Right);
    press(&mut app, KeyCode::End);
    for _ in 0..128 {
        press(&mut app, KeyCode::Right);
        press(&mut app, KeyCode::Up);
    }
    press(&mut app, KeyCode::End);
    println!("lines in all: {}", app.ui.topology.at + 1);
    criterion.bench_function("scroll the Topology tab by a page, 200x56, 128 hosts unfolded", |bencher| {
        let mut up = false;
        bencher.iter(|| {
            if app.ui.topology.at == 0 {
                up = false;
            }
            let before = app.ui.topology.at;
            press(&mut app, if up { KeyCode::PageUp } else { KeyCode::PageDown });
            up |= app.ui.topology.at == before;
        });
    });
    criterion.bench_function("fold a host and unfold it", |bencher| {
        press(&mut app, KeyCode::Home);
        press(&mut app, KeyCode::Down);
        bencher.iter(|| press(&mut app, KeyCode::Enter));
    });
}

/// The Fits tab of 1,024 ranks: 1.05 million ordered pairs, 3 sizes.
fn fits(criterion: &mut Criterion, rng: &mut fastrand::Rng) {
    const WORLD: usize = 1024;
    const SIZES: [u64; 3] = [4096, SIZE, 64 << 20];
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    let mut app = fresh(WORLD, &SIZES);
    app.ui.tab = Tab::Fits;
    // As a job would: all pairs of the largest size first; much faster than any job, so that all frames are full.
    let mut coming = SIZES.iter().rev().flat_map(|&bytes| pairs(WORLD).map(move |pair| (pair, bytes)));
    let mut frames = Frames::default();
    loop {
        let news: Vec<Record> = coming.by_ref().take(2_500).map(|(pair, bytes)| done(rng, 0, pair, bytes, 0..REPEATS)).collect();
        if news.is_empty() {
            break;
        }
        frames.one(&mut app, &mut buffer, news);
    }
    frames.tell("3.1 million results of 1,024 ranks stream in");
    let mut frames = Frames::default();
    while app.fitting() {
        frames.one(&mut app, &mut buffer, Vec::new());
    }
    frames.tell("the rest of the table");
    app.ui.tab = Tab::Matrix;
    let mut frames = Frames::default();
    for pairs in pairs(WORLD).take(250_000).collect::<Vec<_>>().chunks(2_500) {
        let news = pairs.iter().map(|&pair| done(rng, 0, pair, SIZE, REPEATS..REPEATS + 1)).collect();
        frames.one(&mut app, &mut buffer, news);
    }
    frames.tell("more results while the Matrix tab is shown");
    app.ui.matrix.metric = Metric::Asymmetry;
    let begun = cpu();
    app.input(&Input::Key(KeyEvent::from(KeyCode::Char('m'))));
    println!("another metric of the matrix of 1,024 ranks: {:.0} ms", (cpu() - begun) * 1e3);
    app.ui.tab = Tab::Fits;
    while app.fitting() {
        Frames::default().one(&mut app, &mut buffer, Vec::new());
    }
    criterion.bench_function("draw the Fits tab, 200x56, 1,024 ranks", |bencher| {
        bencher.iter(|| {
            buffer.reset();
            app.draw(black_box(&mut buffer));
        });
    });
    criterion.bench_function("apply one sample event while the Fits tab is shown, 1,024 ranks", |bencher| {
        bencher.iter_batched_ref(
            || {
                let pair = (rng.usize(..WORLD), rng.usize(..WORLD));
                done(rng, 0, pair, SIZE, 8..9)
            },
            |done| app.apply(done),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, screen);
criterion_main!(benches);
