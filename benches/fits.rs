//! What fitting a large world costs: `cargo bench --bench fits`.
//!
//! Target (issue 3, must show g): 1,024 ranks, that is 1.05 million ordered pairs, with 3 sizes in under 3 s and 1.5 GB. The
//! peak of the process is printed after the fits of each number of repeats, its input included.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use toposcope::fit::{Confidence, Flow, Observation, Observations};
use toposcope::topology::PathClass;

const WORLD: usize = 1024;
const SIZES: [u64; 3] = [1 << 16, 1 << 22, 1 << 28];

fn observations(repeats: usize) -> Observations {
    let mut random = fastrand::Rng::with_seed(1);
    let mut observations = Observations::with_capacity(WORLD * WORLD * SIZES.len() * repeats);
    // In the order of a sweep: everyone's first message, then everyone's next one.
    for _ in 0..repeats {
        for bytes in SIZES {
            for shift in 0..WORLD {
                for from in 0..WORLD {
                    let to = (from + shift) % WORLD;
                    let (path, alpha, rate) = match (from == to, from / 8 == to / 8) {
                        (true, _) => (PathClass::Local, 2e-6, 1.5e12),
                        (_, true) => (PathClass::IntraNode, 57e-6, 53.8e9),
                        _ => (PathClass::InterNode, 97e-6, 16.6e9),
                    };
                    let seconds = (alpha + bytes as f64 / rate) * (0.97 + 0.06 * random.f64());
                    let flow = if from == to { Flow::Local { rank: from } } else { Flow::Peer { from, to, path } };
                    observations.push(Observation { flow, bytes, seconds });
                }
            }
        }
    }
    observations
}

/// Largest resident set of this process so far, in words; empty where the system does not say.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}

fn large_world(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fits of 1,024 ranks, 3 sizes");
    group.sample_size(10);
    // Intervals need 6 repeats. The peak rises with the repeats, so the smaller case comes first.
    for (repeats, confidence) in [(1, None), (6, Some(Confidence::usual()))] {
        group.bench_function(format!("{repeats} repeats"), |bencher| {
            bencher.iter_batched(|| observations(repeats), |heap| black_box(heap.fit(confidence)), BatchSize::PerIteration);
        });
        println!("{repeats} repeats: {}", peak());
    }
    group.finish();
}

criterion_group!(benches, large_world);
criterion_main!(benches);
