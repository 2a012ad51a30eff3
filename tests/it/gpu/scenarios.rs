//! Benchmark scenarios on device memory, under the stand-ins: every method, every byte compared (issue 7, must show c).

use std::fs;
use std::process::Command;
use std::time::Duration;

use toposcope::plan::scenario::Amounts;

use super::super::place::Place;
use super::super::scenarios::{all_compared, document, parsed_back};
use super::stand_in;

const LIMIT: Duration = Duration::from_secs(200);

/// Run with the stand-ins; the table's columns.
fn run(place: &Place, command: &mut Command, words: &str) -> Vec<String> {
    let report = place.folder().join("report");
    fs::create_dir_all(&report).unwrap();
    command.args(["scenarios", "run", "--memory", "cuda"]).args(words.split(' '));
    command.args("--hosts 0-1/2-3 --sizes 64KiB --bytes 512KiB --repeats 1 --warmup 1 --bytes-per-peer 50000".split(' '));
    command.arg("--session").arg(place.session()).arg("--out").arg(place.folder().join("scenarios.json"));
    let ran = place.run(stand_in::serve(command, &report), LIMIT);
    ran.ended_with(0);
    let document = document(place);
    assert_eq!((&document["memory"], &document["ranks"]), (&"cuda".into(), &4.into()));
    let heads = parsed_back(&ran.stdout, &document);
    all_compared(&document, &Amounts { sizes: vec![64 << 10], model: 512 << 10 });
    let told = stand_in::told(&report, "cuda");
    assert_eq!(told.violations, [""; 0]);
    // Device memory it was: what went from one GPU to another did so there.
    let between: u64 =
        told.moved.iter().filter(|(way, _)| way.starts_with("gpu") && !way.ends_with("host")).map(|(_, tally)| tally.bytes).sum();
    assert!(between > 0, "{:?}", told.moved);
    let told = stand_in::told(&report, "nccl");
    assert_eq!(told.violations, [""; 0]);
    let [sends, receives] = ["ncclSend", "ncclRecv"].map(|call| told.calls[call]);
    assert!(sends.count > 100 && (sends.count, sends.bytes) == (receives.count, receives.bytes), "every send has its receive: {sends:?}");
    heads[0].clone()
}

#[test]
fn scenarios_on_threads_are_copies_between_gpus_or_go_through_nccl() {
    let place = Place::new();
    let head = run(&place, &mut place.toposcope(&[]), "all --ranks 4");
    assert_eq!(head, ["pattern", "w", "MiB", "nccl", "memcpy", "best / first"]);
}

#[cfg(feature = "mpi")]
#[test]
fn scenarios_of_an_mpi_job_compare_nccl_with_mapped_windows() {
    let Some(mpi) = super::super::place::mpi::Mpi::open() else { return };
    let place = Place::new();
    let mut job = place.command(mpi.launcher);
    job.args(&mpi.words("4")[1..]);
    let head = run(&place, &mut job, "pairs xbipartite xstrided weight_sync incast staging");
    assert_eq!(head, ["pattern", "w", "MiB", "nccl", "cuda_ipc_pull", "cuda_ipc_push", "best / first"]);
}

/// Two hosts: the second half of the ranks has another host's name, and sees GPUs of its own.
#[cfg(feature = "mpi")]
#[test]
fn between_hosts_scenarios_go_through_nccl_and_mapped_windows_are_told_not_to_reach() {
    let Some(mpi) = super::super::place::mpi::Mpi::open() else { return };
    if !Command::new("unshare").args(["--uts", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: another host's name needs root (unshare --uts)");
        return;
    }
    let place = Place::new();
    let report = place.folder().join("report");
    fs::create_dir_all(&report).unwrap();
    let [launcher, number, ranks, program] = mpi.words("4");
    let other = "case $OMPI_COMM_WORLD_RANK in [01]) exec \"$0\" \"$@\";; \
                 *) exec unshare --uts sh -c 'hostname other; exec \"$0\" \"$@\"' \"$0\" \"$@\";; esac";
    let mut job = place.command(launcher);
    job.args([number, ranks, "sh", "-c", other, program, "scenarios", "run", "--memory", "cuda"]);
    job.args("pairs xpairs xring xstrided sync_plan incast staging --sizes 64KiB --bytes 512KiB --bytes-per-peer 50000".split(' '));
    job.args("--repeats 1 --warmup 1".split(' ')).arg("--session").arg(place.session());
    job.arg("--out").arg(place.folder().join("scenarios.json"));
    let ran = place.run(stand_in::serve(&mut job, &report), LIMIT);
    ran.ended_with(0);
    let document = document(&place);
    assert_eq!(document["hosts"], serde_json::json!([[0, 1], [2, 3]]));
    for row in document["rows"].as_array().unwrap() {
        for cell in row["cells"].as_array().unwrap() {
            let reaches = cell["method"] == "nccl" || row["pattern"] == "pairs";
            assert_eq!((&cell["ok"], cell["value"].is_f64()), (&reaches.into(), reaches), "{row:#}");
            let why = cell["failed"].as_str().unwrap_or_default();
            assert!(reaches || why.contains("works between ranks of one host, and "), "{why}");
        }
    }
    assert!(ran.stdout.contains("–  cuda_ipc_pull: not possible where a row crosses hosts"), "{ran:?}");
    let told = stand_in::told(&report, "nccl");
    assert_eq!(told.violations, [""; 0]);
    assert!(told.moved["0->2"].bytes > 0 && told.moved["3->1"].bytes > 0, "{:?}", told.moved);
}
