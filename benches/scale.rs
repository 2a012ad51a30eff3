//! What the Matrix tab of very many ranks costs: `cargo bench --bench scale`; with `-- --quick` in a minute.
//!
//! Targets: a full draw at 200x56 below 4 ms for 1,024 ranks and 8 ms for 4,096, one new sample below 20 µs, from the start to the
//! first frame below 50 ms for a small session and 1 s for one of 1,024 ranks, the tables of 4,096 ranks below 1 GB.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use crossterm::event::{Event as Input, KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use toposcope::matrix::{Axes, Grid, Metric, Reduce, Value};
use toposcope::ramp::Level;
use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Event, Header, Model, Record, Tape, store};
use toposcope::sweep::SweepSettings;
use toposcope::topology::{Efficiency, PathClass, Placement, Topology};
use toposcope::tui::widgets::matrix::{self, MatrixView, Window, Zoom};
use toposcope::tui::{App, Look, Mode, Played, Tab, Ui};

const SIZE: u64 = 1 << 20;
/// Ranks on a host.
const HOST: usize = 8;
/// Partners that a rank of the sparse session has: what a sweep of a sample of pairs measures.
const PARTNERS: usize = 64;

fn header(world: usize) -> Header {
    let place = |rank| Placement {
        rank,
        host: format!("host{:03}", rank / HOST),
        rack: Some(rank / HOST / 16),
        memory_available: 1 << 36,
        memory_total: 1 << 37,
        ..Placement::default()
    };
    Header {
        format: Header::current_format(),
        program: "bench".to_owned(),
        name: "bench".to_owned(),
        started: String::new(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: SweepSettings::default(),
        topology: Topology::of((0..world).map(place).collect()),
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
    }
}

fn settings() -> SweepSettings {
    SweepSettings { sizes: vec![SIZE], repeats: 1, mover: MoverKind::MpiSendrecv, ..SweepSettings::default() }
}

/// Bytes per second of a pair: 50 GB/s within a host, 12 between, and one slow link.
fn rate(rng: &mut fastrand::Rng, world: usize, (from, to): (usize, usize)) -> f64 {
    let usual = if from / HOST == to / HOST { 50e9 } else { 12e9 };
    let slow = (from, to) == (world / 2 + 5, world - 9);
    usual * if slow { 0.3 } else { 0.98 + rng.f64() * 0.04 }
}

fn done(rng: &mut fastrand::Rng, world: usize, pair: (usize, usize), repeat: u32) -> Record {
    let path = if pair.0 / HOST == pair.1 / HOST { PathClass::IntraNode } else { PathClass::InterNode };
    let seconds = Some(SIZE as f64 / rate(rng, world, pair));
    let blank = Sample::blank(Pattern::Peer, pair.0, pair.1, SIZE, path);
    let sample = Sample { repeat, messages: 1, seconds, status: Status::Ok, ..blank };
    Record { t: 1.0, event: Event::ProbeDone { probe: 0, samples: vec![sample], enough: None } }
}

fn look() -> Look {
    let Ok((look, _)) = Look::new("dark", BTreeMap::new(), Level::TrueColor, None) else { unreachable!("the built-in theme") };
    look
}

/// What happened in a session where every rank was measured with so many partners.
fn records(rng: &mut fastrand::Rng, world: usize, partners: usize) -> Vec<Record> {
    let mut records = vec![Record { t: 0.0, event: Event::SweepStarted { settings: settings(), resumed: false } }];
    let stride = (world / (partners + 1)).max(1);
    for from in 0..world {
        records.extend((1..=partners).map(|step| done(rng, world, (from, (from + step * stride) % world), 0)));
    }
    records
}

fn app(model: Model) -> App {
    App::new(model, Ui::new(Tab::Matrix, &settings(), Vec::new()), look(), Mode::Live, &Efficiency::default())
}

/// What is resident of this process, bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(f64::NAN) * 1024.0
}

/// The whole tab.
fn tab(criterion: &mut Criterion, rng: &mut fastrand::Rng, world: usize, partners: usize) {
    let before = resident();
    let mut model = Model::new(header(world));
    for record in records(rng, world, partners) {
        model.apply(&record);
    }
    let cells = (resident() - before) / 1e9;
    let begun = Instant::now();
    let mut app = app(model);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    app.draw(&mut buffer);
    let screen = begun.elapsed().as_secs_f64() * 1e3;
    let all = (resident() - before) / 1e9;
    println!("{world} ranks, {partners} partners each: cells {cells:.2} GB, with the screen {all:.2} GB; first frame after {screen:.0} ms");
    for (name, depth) in [("all", 0), ("a pair of racks", 1), ("a pair of hosts", 2)] {
        app.ui.matrix.depth = depth;
        criterion.bench_function(&format!("draw the Matrix tab, 200x56, {world} ranks, {name}"), |bencher| {
            bencher.iter(|| {
                buffer.reset();
                app.draw(black_box(&mut buffer));
            });
        });
    }
    app.ui.matrix.depth = 0;
    for (name, key) in [("another metric", 'm'), ("another order", 'O')] {
        let begun = Instant::now();
        app.input(&Input::Key(KeyEvent::from(KeyCode::Char(key))));
        println!("{name} of the matrix of {world} ranks: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    }
    app.ui.matrix.metric = Metric::Bandwidth;
    app.ui.matrix.order = toposcope::tui::Order::Rank;
    app.input(&Input::Resize(200, 56));
    let stride = (world / (partners + 1)).max(1);
    criterion.bench_function(&format!("apply one sample event, {world} ranks"), |bencher| {
        bencher.iter_batched_ref(
            || {
                let (from, step) = (rng.usize(..world), rng.usize(1..=partners));
                done(rng, world, (from, (from + step * stride) % world), 1)
            },
            |done| app.apply(done),
            BatchSize::SmallInput,
        );
    });
}

/// The table alone, every pair of it known.
fn table(criterion: &mut Criterion, rng: &mut fastrand::Rng, world: usize) {
    let topology = header(world).topology;
    let before = resident();
    let (host_of, order) = (topology.node_of(), (0..world).collect::<Vec<_>>());
    let rack_of: Vec<usize> = topology.ranks.iter().map(|place| place.rack.unwrap_or(0)).collect();
    let axes = Arc::new(Axes::snapped(&order, &host_of, Some(&rack_of)));
    let begun = Instant::now();
    let mut grid =
        Grid::arranged(
            Metric::Bandwidth,
            axes,
            |from, to| {
                if from == to { Value::Missing } else { Value::Known(rate(rng, world, (from, to))) }
            },
        );
    let (seconds, memory) = (begun.elapsed().as_secs_f64(), (resident() - before) / 1e9);
    println!("a table of {world} ranks, every pair known: built in {:.0} ms, {memory:.2} GB", seconds * 1e3);
    let begun = Instant::now();
    grid.arrange(Arc::new(Axes::apart(order.iter().rev().copied().collect(), order.clone())));
    println!("the same in another order: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    grid.arrange(Arc::new(Axes::snapped(&order, &host_of, Some(&rack_of))));
    let look = look();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    let stops = grid.axes().stops();
    for (&level, whole) in stops.iter().zip([true, false, false]) {
        let window = (!whole).then_some(Window { level, senders: 1, receivers: 2 });
        criterion.bench_function(&format!("draw the matrix alone, 200x56, {world} ranks all known, level {level}"), |bencher| {
            bencher.iter(|| {
                let view = MatrixView {
                    grid: &grid,
                    pattern: Pattern::Peer,
                    topology: &topology,
                    groups: None,
                    cursor: (0, 1),
                    selection: None,
                    transpose: false,
                    zoom: Zoom::Fit,
                    window,
                    crumbs: &[],
                    reduce: Reduce::Worst,
                    title: &[],
                    lost: &[],
                    slow: (&[], &[]),
                    lit: None,
                    focused: false,
                    theme: &look.theme,
                };
                matrix::draw(&view, Rect::new(0, 0, 200, 56), black_box(&mut buffer))
            });
        });
    }
    criterion.bench_function(&format!("put one value into a table of {world} ranks"), |bencher| {
        bencher.iter(|| {
            let (from, to) = (rng.usize(..world), rng.usize(..world));
            grid.set(from, to, Value::Known(11e9 + rng.f64() * 2e9));
        });
    });
}

/// From a session's folder to its first frame, and to the one with all of it: as a session of very many events is read, beside the screen.
fn start(what: &str, folder: &Path) {
    let begun = Instant::now();
    let Ok(header) = store::read_header(folder) else {
        println!("{what}: {} cannot be read", folder.display());
        return;
    };
    let ui = Ui::new(Tab::Matrix, &header.settings, Vec::new());
    let mut app = App::new(Model::new(header.clone()), ui, look(), Mode::Recorded, &Efficiency::default());
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
    app.draw(&mut buffer);
    let first = begun.elapsed();
    let (mut records, mut model) = (Tape::default(), Model::new(header.clone()));
    let read = store::each(folder, &header, |record, _| {
        model.apply(&record);
        records.push(record);
    });
    if read.is_err() {
        println!("{what}: {} cannot be read", folder.display());
        return;
    }
    app.begin(Played { records, model });
    app.draw(&mut buffer);
    println!(
        "{what}: first frame after {:.0} ms, all of it after {:.0} ms",
        first.as_secs_f64() * 1e3,
        begun.elapsed().as_secs_f64() * 1e3
    );
}

fn starts(rng: &mut fastrand::Rng) {
    start("a session of 4 ranks", &Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/lab-4x4"));
    for (what, partners) in [("1,024 ranks, 64 partners each", PARTNERS), ("1,024 ranks, every pair", 1023)] {
        let folder = std::env::temp_dir().join(format!("toposcope-bench-{}-{partners}", std::process::id()));
        let Ok(mut store) = store::Store::create(&folder, &header(1024)) else {
            println!("{what}: {} cannot be written", folder.display());
            continue;
        };
        let written = records(rng, 1024, partners).iter().all(|record| store.append(record).is_ok());
        drop(store);
        if written {
            start(&format!("a session of {what}"), &folder);
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn scale(criterion: &mut Criterion) {
    let mut rng = fastrand::Rng::with_seed(11);
    // Memory is told by what the process grows: the largest first.
    table(criterion, &mut rng, 4096);
    tab(criterion, &mut rng, 4096, PARTNERS);
    table(criterion, &mut rng, 1024);
    tab(criterion, &mut rng, 1024, 1023);
    starts(&mut rng);
}

criterion_group!(benches, scale);
criterion_main!(benches);
