//! What a frame and an event cost: `cargo bench`.
//!
//! Targets: a full draw of the Matrix tab at 200x56 below 5 ms, one sample event with 256 ranks below 10 µs.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use toposcope::ramp::Level;
use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Event, Header, Model, Record};
use toposcope::sweep::SweepSettings;
use toposcope::topology::{PathClass, Placement, Topology};
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
    });
    Header {
        format: Header::current_format(),
        program: "bench".to_owned(),
        name: "bench".to_owned(),
        started: String::new(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: SweepSettings::default(),
        topology: Topology { ranks: ranks.collect() },
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
    }
}

fn sample(rng: &mut fastrand::Rng, from: usize, to: usize, repeat: u32) -> Sample {
    let pattern = if from == to { Pattern::Local } else { Pattern::Peer };
    let path = if from / 8 == to / 8 { PathClass::IntraNode } else { PathClass::InterNode };
    Sample {
        repeat,
        messages: 1,
        seconds: Some(SIZE as f64 / (1e9 + rng.f64() * 9e9)),
        status: Status::Ok,
        ..Sample::blank(pattern, from, to, SIZE, path)
    }
}

fn done(rng: &mut fastrand::Rng, id: u64, from: usize, to: usize, repeats: std::ops::Range<u32>) -> Record {
    let samples = repeats.map(|repeat| sample(rng, from, to, repeat)).collect();
    Record { t: id as f64 * 1e-3, event: Event::ProbeDone { probe: id, samples, enough: None } }
}

/// A screen on a job of `world` ranks of which every pair has been measured.
fn app(world: usize, rng: &mut fastrand::Rng) -> App {
    let settings = SweepSettings { sizes: vec![SIZE], repeats: 8, mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut records = vec![Record { t: 0.0, event: Event::SweepStarted { settings: settings.clone(), resumed: false } }];
    for from in 0..world {
        for to in 0..world {
            records.push(done(rng, (from * world + to) as u64, from, to, 0..8));
        }
    }
    let Ok((look, _)) = Look::new("dark", BTreeMap::new(), Level::TrueColor, None) else { unreachable!("the built-in theme") };
    let mut app = App::new(Model::new(header(world)), Ui::new(Tab::Matrix, &settings, Vec::new()), look, Mode::Live);
    app.take(records);
    app
}

fn screen(criterion: &mut Criterion) {
    let mut rng = fastrand::Rng::with_seed(7);
    for world in [8, 256] {
        let mut app = app(world, &mut rng);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 56));
        criterion.bench_function(&format!("draw the Matrix tab, 200x56, {world} ranks"), |bencher| {
            bencher.iter(|| {
                buffer.reset();
                app.draw(black_box(&mut buffer));
            });
        });
    }
    let mut app = app(256, &mut rng);
    let mut id = 1 << 20;
    criterion.bench_function("apply one sample event, 256 ranks", |bencher| {
        bencher.iter_batched_ref(
            || {
                id += 1;
                let (from, to) = (rng.usize(..256), rng.usize(..256));
                done(&mut rng, id, from, to, 8..9)
            },
            |done| app.apply(done),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, screen);
criterion_main!(benches);
