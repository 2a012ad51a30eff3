//! What a large cluster's hardware costs: `cargo bench --bench topology`.
//!
//! Target: what 128 hosts of 8 GPUs tell is merged, and routes between their 1,024 ranks are ready, in under a second (issue 4, g).

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toposcope::fabric::Fabric;
use toposcope::topology::{Efficiency, Hardware, Router, Topology};

fn topology(criterion: &mut Criterion) {
    let Some(Ok(fabric)) = Fabric::shipped("nvswitch-128x8") else { unreachable!("a shipped fabric") };
    let whole = fabric.topology();
    // As each host's first rank sends it.
    let told: Vec<Vec<u8>> = whole.hardware.iter().map(|host| serde_json::to_vec(host).unwrap_or_default()).collect();
    println!("{} hosts tell {} KiB each", told.len(), told[0].len() >> 10);
    criterion.bench_function("merge what 128 hosts tell", |bencher| {
        bencher.iter(|| {
            let hardware: Vec<Hardware> = told.iter().filter_map(|bytes| serde_json::from_slice(black_box(bytes)).ok()).collect();
            assert_eq!(hardware.len(), 128);
            Topology { ranks: whole.ranks.clone(), hardware }
        });
    });
    let table = Efficiency::default();
    criterion.bench_function("routes of 1,024 ranks", |bencher| bencher.iter(|| Router::new(black_box(&whole), &table)));
    let router = Router::new(&whole, &table);
    criterion.bench_function("what each of 1.05 million pairs should give", |bencher| {
        bencher.iter(|| {
            let pairs = (0..1024).flat_map(|from| (0..1024).map(move |to| (from, to)));
            pairs.filter_map(|(from, to)| router.expected(from, to)).fold(f64::INFINITY, f64::min)
        });
    });
    criterion.bench_function("one route, hop by hop", |bencher| bencher.iter(|| router.route(&whole, black_box(3), black_box(1020))));
}

criterion_group!(benches, topology);
criterion_main!(benches);
