//! What identification and all rules cost on a large world: `cargo bench --bench diagnose`.
//!
//! Target (issue 5, must show f): 1,024 simulated ranks, everything from the samples to the findings in under 5 s.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toposcope::diagnose::diagnose;
use toposcope::fabric::Fabric;
use toposcope::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use toposcope::session::{Event, Header, Model, Record, measured};
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;

const SIZES: [u64; 3] = [4 << 10, 1 << 20, 256 << 20];
/// The fewest that have an interval.
const REPEATS: u32 = 6;

/// 128 hosts of 8 GPUs, of which a rank, a host's receiving side and a few pairs are slow.
fn faulty() -> Fabric {
    let mut text = Fabric::shipped_text("nvswitch-128x8").unwrap_or_default().to_owned();
    text.push_str("\n[[fault]]\nkind = \"slow\"\nfrom = \"77\"\nfactor = 0.5\n");
    text.push_str("\n[[fault]]\nkind = \"slow\"\nto = \"400-407\"\nfactor = 0.6\n");
    for pair in 0..5 {
        let _ = write!(text, "\n[[fault]]\nkind = \"slow\"\nfrom = \"{}\"\nto = \"{}\"\nfactor = 0.4\n", 10 + 100 * pair, 900 - 30 * pair);
    }
    match Fabric::parse(&text, "faulty") {
        Ok(fabric) => fabric,
        Err(error) => unreachable!("{error}"),
    }
}

fn model(fabric: &Fabric) -> Model {
    let settings = SweepSettings { sizes: SIZES.to_vec(), repeats: REPEATS, mover: MoverKind::Simulated, ..SweepSettings::default() };
    let header = Header {
        format: Header::current_format(),
        program: "bench".to_owned(),
        name: "bench".to_owned(),
        started: String::new(),
        engine: EngineKind::Sim,
        group: Vec::new(),
        settings: settings.clone(),
        topology: fabric.topology(),
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
    };
    let mut random = fastrand::Rng::with_seed(1);
    let mut model = Model::new(header);
    model.apply(&Record { t: 0.0, event: Event::SweepStarted { settings, resumed: false } });
    let node_of = fabric.topology().node_of();
    for (from, to) in (0..fabric.world()).flat_map(|from| (0..fabric.world()).map(move |to| (from, to))) {
        let pattern = if from == to { Pattern::Local } else { Pattern::Peer };
        let path = toposcope::topology::path_of(&node_of, from, to);
        let truth = fabric.truth(from, to);
        for bytes in SIZES {
            let seconds = truth.seconds(bytes);
            let one = |repeat| Sample {
                repeat,
                messages: 1,
                seconds: Some(seconds * (0.95 + 0.1 * random.f64())),
                status: Status::Ok,
                ..Sample::blank(pattern, from, to, bytes, path)
            };
            let samples = (0..REPEATS).map(one).collect();
            model.apply(&Record { t: 1.0, event: Event::ProbeDone { probe: 0, samples, enough: None } });
        }
    }
    model
}

fn thousand_ranks(criterion: &mut Criterion) {
    let model = model(&faulty());
    let efficiency = Efficiency::default();
    let mut group = criterion.benchmark_group("1,024 ranks, 3 sizes, 6 repeats");
    group.sample_size(10);
    group.bench_function("samples to what rules see", |bencher| bencher.iter(|| black_box(measured(&model, &efficiency))));
    let seen = measured(&model, &efficiency);
    group.bench_function("identification and rules", |bencher| bencher.iter(|| black_box(diagnose(&seen))));
    group.finish();
    for finding in diagnose(&seen).findings {
        println!("{} {} {} {}", finding.severity.name(), finding.id, finding.title, finding.amount);
    }
}

criterion_group!(benches, thousand_ranks);
criterion_main!(benches);
