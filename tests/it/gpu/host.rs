//! Copies between the host's memory and GPUs, which each rank's GPU makes whatever moves bytes between ranks.

use std::collections::BTreeMap;

use toposcope::sample::{MoverKind, Pattern};
use toposcope::transport::{End, Engine};

use super::memory::{bytes_of, child, end_of, on_gpus, probe, tell_moved};
use super::stand_in::Told;
use crate::engine::measured;
use crate::engine::probes::pair;

const BOTH: [Pattern; 2] = [Pattern::HostToDevice, Pattern::DeviceToHost];
const ARENA: u64 = 1 << 20;

/// Run a scenario with the threads engine and in an MPI job, where this build has one.
fn everywhere(name: &str, also: impl Fn(&str) -> String, check: impl Fn(&str, Told, BTreeMap<String, u64>)) {
    for engine in ["threads", "rank"] {
        if engine == "rank" && cfg!(not(feature = "mpi")) {
            continue;
        }
        if let Some((told, moved)) = child(engine, name, &also(engine)) {
            check(engine, told, moved);
        }
    }
}

/// Both ways, one probe of each size with every mover of the engine that takes GPUs here: right bytes, by the GPU's clock.
pub fn across(mut engine: Box<dyn Engine>) {
    let (mut id, mut sums) = (0, BTreeMap::new());
    let movers = engine.movers().iter().copied().filter(|mover| !matches!(mover, MoverKind::MpiSendrecv | MoverKind::MpiPut));
    for mover in movers.collect::<Vec<_>>() {
        engine.prepare(&on_gpus(mover, ARENA)).unwrap();
        // The arenas that GPUs send from are filled.
        (0..4).for_each(|gpu| *sums.entry(format!("host->gpu{gpu}")).or_default() += ARENA);
        for bytes in [1, 4096, 300_000] {
            for (pattern, rank) in BOTH.into_iter().flat_map(|pattern| [(pattern, 0), (pattern, 3)]) {
                id += 1;
                let mut order = pair(pattern, rank, rank);
                (order.probe.id, order.probe.bytes) = (id, bytes);
                let report = measured(engine.as_mut(), &order);
                assert!(report.repeats.iter().all(|repeat| repeat.ack_seconds == 0.0), "by the host's clock: {report:?}");
                bytes_of(&order, &report, &mut sums);
                if pattern == Pattern::HostToDevice {
                    // The window that is checked is read back.
                    *sums.entry(format!("gpu{rank}->host")).or_default() += bytes * u64::from(order.window);
                }
            }
        }
    }
    engine.finish();
    tell_moved(&sums);
}

#[test]
fn copies_to_and_from_hosts_are_each_gpus_own_with_every_mover() {
    everywhere(
        "across",
        |_| String::new(),
        |engine, told, moved| {
            assert_eq!(told.violations, [""; 0], "{engine}");
            let all: BTreeMap<String, u64> = told.moved.iter().map(|(way, tally)| (way.clone(), tally.bytes)).collect();
            assert_eq!(all, moved, "{engine}: nothing else was moved");
            assert!(told.calls("cuMemcpyHtoDAsync_v2") > 0 && told.calls("cuMemcpyDtoHAsync_v2") > 0, "{engine}");
        },
    );
}

/// No page-locked memory beyond what a sweep always needs: these probes are waived, and others are measured.
pub fn no_pinned(mut engine: Box<dyn Engine>) {
    let mover = engine.movers().iter().copied().find(|mover| matches!(mover, MoverKind::Memcpy | MoverKind::CudaIpcPull)).unwrap();
    engine.prepare(&on_gpus(mover, ARENA)).unwrap();
    for (id, pattern) in (0..).zip(BOTH) {
        let (end, _) = end_of(engine.as_mut(), &probe(id, pair(pattern, 1, 1)));
        let End::Waived(why) = &end else { panic!("{end:?}") };
        assert!(why.contains("no 1 MiB of page-locked memory") && why.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{why}");
        assert!(why.starts_with("rank 1: GPU 1") && why.contains("--arena"), "{why}");
    }
    measured(engine.as_mut(), &probe(8, pair(Pattern::Local, 1, 1)));
    measured(engine.as_mut(), &probe(9, pair(Pattern::Peer, 0, 1)));
    engine.finish();
}

#[test]
fn a_host_without_page_locked_memory_waives_these_copies_with_the_reason_and_the_rest_goes_on() {
    // A buffer for what is not measured and a gate's word are had, of each rank of the process.
    let also = |engine: &str| {
        let had = if engine == "threads" { 8 } else { 2 };
        format!("[[cuda.fail]]\ncall = \"cuMemHostAlloc\"\nerror = \"CUDA_ERROR_OUT_OF_MEMORY\"\nafter = {had}")
    };
    everywhere("no pinned memory", also, |engine, told, _| assert_eq!(told.violations, [""; 0], "{engine}"));
}

/// Copies that go well and move nothing: what is there is not what was sent.
pub fn lost(mut engine: Box<dyn Engine>) {
    let mover = engine.movers().iter().copied().find(|mover| matches!(mover, MoverKind::Memcpy | MoverKind::CudaIpcPull)).unwrap();
    engine.prepare(&on_gpus(mover, ARENA)).unwrap();
    let (end, _) = end_of(engine.as_mut(), &probe(1, pair(Pattern::DeviceToHost, 2, 2)));
    assert!(matches!(&end, End::Corrupt(why) if why.contains("of 100000 is not what the GPU of rank 2 held")), "{end:?}");
    measured(engine.as_mut(), &probe(2, pair(Pattern::DeviceToHost, 2, 2)));
    // Of these the one that is checked is copied, and lost, first.
    let (end, _) = end_of(engine.as_mut(), &probe(3, pair(Pattern::HostToDevice, 2, 2)));
    assert!(matches!(&end, End::Corrupt(why) if why.contains("is not what rank 2 sent")), "{end:?}");
    measured(engine.as_mut(), &probe(4, pair(Pattern::HostToDevice, 2, 2)));
    engine.finish();
}

#[test]
fn bytes_that_do_not_come_across_are_found_on_either_side() {
    // Filling a GPU's arena takes one copy, of each rank of the process.
    let also = |engine: &str| {
        let filled = if engine == "threads" { 4 } else { 1 };
        format!(
            "[[cuda.fail]]\ncall = \"cuMemcpyDtoHAsync_v2\"\nerror = \"lost\"\ntimes = 1\n\
             [[cuda.fail]]\ncall = \"cuMemcpyHtoDAsync_v2\"\nerror = \"lost\"\nafter = {filled}\ntimes = 1"
        )
    };
    everywhere("lost", also, |engine, told, _| assert_eq!(told.violations, [""; 0], "{engine}"));
}

/// A copy to the host that never ends: its memory is left to it, so others of the kind are waived, and the rest goes on.
pub fn hung(mut engine: Box<dyn Engine>) {
    let mover = engine.movers().iter().copied().find(|mover| matches!(mover, MoverKind::Memcpy | MoverKind::CudaIpcPull)).unwrap();
    engine.prepare(&on_gpus(mover, ARENA)).unwrap();
    let (end, _) = end_of(engine.as_mut(), &probe(1, pair(Pattern::DeviceToHost, 1, 1)));
    assert!(matches!(&end, End::Timeout(why) if why.contains("within 2 s")), "{end:?}");
    for (id, pattern) in (2..).zip(BOTH) {
        let (end, _) = end_of(engine.as_mut(), &probe(id, pair(pattern, 1, 1)));
        assert!(matches!(&end, End::Waived(why) if why.contains("given up may still use its memory of the host")), "{end:?}");
    }
    for (id, pattern) in (5..).zip(BOTH) {
        measured(engine.as_mut(), &probe(id, pair(pattern, 2, 2)));
    }
    engine.finish();
}

#[test]
fn memory_of_the_host_that_a_hung_copy_may_still_write_is_not_used_again() {
    let also = |engine: &str| {
        let who = if engine == "threads" { "" } else { "\nranks = \"1\"" };
        format!("[[cuda.fail]]\ncall = \"cuMemcpyDtoHAsync_v2\"\nerror = \"hang\"\ntimes = 1{who}")
    };
    everywhere("hung", also, |engine, told, _| assert_eq!(told.violations, [""; 0], "{engine}"));
}
