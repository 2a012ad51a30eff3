//! The scripts for machines with GPUs, on one without: they run to their end, and say of every step why it was skipped (issue 7, 6).

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::place::{Place, TOPOSCOPE, skipped};

const LIMIT: Duration = Duration::from_secs(120);

/// Steps by their first words, from what a script prints.
fn run(script: &str, expected: &[(&str, &str)]) {
    if ["/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/dev/nvidiactl"].iter().any(|path| Path::new(path).exists()) {
        skipped("the scripts without a GPU need a machine that has none");
        return;
    }
    let place = Place::new();
    let folder = place.folder().join("home");
    let mut command = place.command("sh");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(script)).arg(&folder).env("TOPOSCOPE", TOPOSCOPE);
    let ran = place.run(&mut command, LIMIT);
    ran.ended_with(0);
    let steps: Vec<(&str, &str)> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_once(": ")?.0.split_once(' '))
        .filter(|(word, _)| word.chars().all(char::is_uppercase))
        .collect();
    assert_eq!(steps, expected, "{ran:?}");
    assert!(ran.stdout.contains("1 passed, 0 failed"), "{ran:?}");
    // All of it is in the folder, each step's command and output, too.
    assert!(fs::read_to_string(folder.join("steps.txt")).unwrap().lines().all(|line| ran.stdout.contains(line)));
    for file in ["doctor.txt", "discover.out", "environment.out", "host_scenarios.cmd", "host_scenarios.json"] {
        assert!(fs::metadata(folder.join(file)).is_ok_and(|file| file.len() > 0), "{file}");
    }
    assert!(fs::read_to_string(folder.join("host_scenarios.out")).unwrap().contains("pattern"));
    // A folder that is there is not written over.
    place.run(&mut command, LIMIT).ended_with(2);
}

#[test]
fn the_script_for_one_gpu_skips_what_needs_one() {
    let skip = ["environment", "doctor", "discovery", "local_copies", "host_to_device", "device_to_host", "cuda_ipc_pull", "cuda_ipc_push"];
    let mut expected: Vec<_> = skip.into_iter().chain(["nccl", "scenarios"]).map(|step| ("SKIP", step)).collect();
    expected.push(("PASS", "host_scenarios"));
    run("one_gpu.sh", &expected);
}

#[test]
fn the_script_for_a_node_skips_what_needs_gpus() {
    let skip = ["environment", "doctor", "discovery", "local_copies", "host_to_device", "device_to_host", "peer_copies"];
    let movers = ["cuda_ipc_pull", "cuda_ipc_push", "nccl", "nccl_put", "scenarios", "weight_sync"];
    let mut expected: Vec<_> = skip.into_iter().chain(movers).map(|step| ("SKIP", step)).collect();
    expected.push(("PASS", "host_scenarios"));
    run("gpu_node.sh", &expected);
}
