//! The scripts for machines with GPUs (`contrib/one_gpu.sh`, `contrib/gpu_node.sh`) under the stand-ins, whole: each step's verdict, and
//! that a step fails with its reason where something fails (issue 7, build 6). Other tools are made up: their figures are the tests' own.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::nvml::boxes;
use super::super::place::{Place, Ran, TOPOSCOPE};
use super::stand_in;

const LIMIT: Duration = Duration::from_secs(600);

/// What the other tools on a made-up machine say.
struct Machine {
    gpus: usize,
    /// of GPU 0, by nvidia-smi
    link: &'static str,
    /// nvbandwidth's figure, GB/s; none: it does not run
    nvbandwidth: Option<&'static str>,
    /// `PyTorch`'s, GB/s; none: it is not there
    torch: Option<&'static str>,
    /// what goes wrong
    also: &'static str,
}

impl Machine {
    const fn of(gpus: usize) -> Self {
        Self { gpus, link: "4, 16", nvbandwidth: Some("0.01"), torch: None, also: "" }
    }
}

fn tool(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Write the box and the tools of a machine; the box's file, and the folder of the tools.
fn made(folder: &Path, machine: &Machine) -> (PathBuf, PathBuf) {
    let model = "[model]\nname = \"Stand-in\"\nid = 0x1234\nmemory_gib = 4\npcie = [4, 16]\npcie_most = [4, 16]\n";
    let (mut all, mut listed) = (format!("driver = \"550.54.15\"\n{model}"), String::new());
    let (mut head, mut matrix) = (String::new(), String::new());
    for gpu in 0..machine.gpus {
        let link = if gpu == 0 { machine.link } else { "4, 16" };
        write!(all, "[[gpu]]\naddress = \"0000:1{gpu}:00.0\"\ncpus = \"0-1023\"\n").unwrap();
        writeln!(listed, "{gpu}, 00000000:1{gpu}:00.0, GPU-0000000{gpu}-0000-0000-0000-000000000000, {link}, Stand-in").unwrap();
        write!(head, "\tGPU{gpu}").unwrap();
        let row: String = (0..machine.gpus).map(|other| if other == gpu { "\t X " } else { "\tSYS" }).collect();
        writeln!(matrix, "GPU{gpu}{row}\t0-15\t0\t\tN/A").unwrap();
    }
    write!(all, "[[pair]]\na = \"0-7\"\nb = \"0-7\"\nlevel = \"SYS\"\np2p = [\"OK\", \"OK\", \"OK\", \"OK\", \"OK\"]\n").unwrap();
    let (file, tools) = (folder.join("box.toml"), folder.join("tools"));
    fs::write(&file, all).unwrap();
    fs::create_dir(&tools).unwrap();
    let smi = format!(
        "case \"$*\" in\n--query-gpu=*) cat <<'END'\n{listed}END\n;;\n\"topo -m\") cat <<'END'\n{head}\tCPU Affinity\tNUMA Affinity\tGPU NUMA \
         ID\n{matrix}\nLegend:\n\n  X    = Self\nEND\n;;\n*) echo made up: $* ;;\nesac\n"
    );
    tool(&tools, "nvidia-smi", &smi);
    let mut columns = String::new();
    (0..machine.gpus).for_each(|gpu| write!(columns, "{gpu:>10}").unwrap());
    let figures = |figure: &str| vec![format!("{figure:>10}"); machine.gpus].concat();
    let bandwidth = machine.nvbandwidth.map_or_else(
        || "echo no CUDA here >&2\nexit 1\n".to_owned(),
        |figure| format!("cat <<END\nRunning $2.\nmade up bandwidth (GB/s)\n  {columns}\n 0{}\n\nSUM $2 1.00\nEND\n", figures(figure)),
    );
    tool(&tools, "nvbandwidth", &bandwidth);
    let torch = machine.torch.map_or_else(|| "exit 1\n".to_owned(), |figure| format!("echo {figure}\n"));
    tool(&tools, "python3", &torch);
    (file, tools)
}

/// Run a script on a made-up machine: how it went, and its verdicts.
fn run(script: &str, machine: &Machine, more: &[(&str, &str)]) -> (Ran, Vec<String>) {
    let place = Place::new();
    let (file, tools) = made(place.folder(), machine);
    let report = place.folder().join("report");
    fs::create_dir(&report).unwrap();
    let mut command = place.command("sh");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(script)).arg("home");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    stand_in::serve(&mut command, &report).env("TOPOSCOPE_STAND_IN", file).env(boxes::LIBRARY, boxes::stand_in());
    command
        .env("PATH", path)
        .env("TOPOSCOPE", TOPOSCOPE)
        .env("TOPOSCOPE_STEP_MIB", "16")
        .env("TOPOSCOPE_STEP_REPEATS", "1")
        .env(stand_in::ALSO, machine.also);
    command.envs(more.iter().copied());
    let ran = place.run(&mut command, LIMIT);
    let verdicts = fs::read_to_string(place.folder().join("home/steps.txt")).unwrap();
    assert!(verdicts.lines().all(|line| ran.stdout.contains(line)), "{ran:?}");
    if machine.also.is_empty() {
        for library in ["cuda", "nccl"] {
            assert_eq!(stand_in::told(&report, library).violations, [""; 0], "{library}");
        }
    }
    (ran, verdicts.lines().map(str::to_owned).collect())
}

/// The verdict on a step, which must be this one and say this.
#[track_caller]
fn says(verdicts: &[String], verdict: &str, step: &str, words: &str) {
    let line = verdicts.iter().find(|line| line.split_once(": ").is_some_and(|(head, _)| head.ends_with(&format!(" {step}"))));
    let line = line.unwrap_or_else(|| panic!("no {step} in {verdicts:#?}"));
    assert!(line.starts_with(verdict) && line.contains(words), "{verdict} {step} {words:?}: {line}\n{verdicts:#?}");
}

/// True if this program, and a launcher here, start MPI jobs: what needs several processes is skipped otherwise.
fn has_mpi() -> bool {
    #[cfg(feature = "mpi")]
    return super::super::place::mpi::Mpi::open().is_some();
    #[cfg(not(feature = "mpi"))]
    false
}

/// Steps of copies between a GPU and the host, if the program has such patterns.
fn host_copies(verdicts: &[String], words: &str) {
    let place = std::process::Command::new(TOPOSCOPE).args(["sweep", "--help"]).output().unwrap();
    for step in ["host_to_device", "device_to_host"] {
        let has = String::from_utf8_lossy(&place.stdout).contains(step);
        let (verdict, words) = if has { ("PASS", words) } else { ("SKIP", "has no pattern") };
        says(verdicts, verdict, step, words);
    }
}

/// Steps that need processes.
fn of_processes(verdicts: &[String], steps: &[(&str, &str)]) {
    for (step, words) in steps {
        let (verdict, words) = if has_mpi() { ("PASS", *words) } else { ("SKIP", "built without MPI") };
        says(verdicts, verdict, step, words);
    }
}

#[test]
fn the_script_for_one_gpu_passes_whole_and_says_what_it_saw() {
    let (ran, verdicts) = run("one_gpu.sh", &Machine::of(1), &[]);
    ran.ended_with(0);
    says(&verdicts, "PASS", "environment", "1 GPU(s) by nvidia-smi: 0, 00000000:10:00.0");
    says(&verdicts, "PASS", "doctor", "CUDA 12.8, 1 x Stand-in; NCCL ok, NVML ok");
    says(&verdicts, "PASS", "discovery", "by name, PCI address, UUID and widest link");
    says(&verdicts, "PASS", "local_copies", "GB/s, nvbandwidth device_local_copy has 0.01");
    host_copies(&verdicts, "has 0.01");
    let words = "ranks: 2, peer: all of 6 cells right, peer of 16 MiB ";
    of_processes(&verdicts, &[("cuda_ipc_pull", words), ("cuda_ipc_push", words), ("nccl", "ranks: 1, local: all of 3 cells right")]);
    of_processes(&verdicts, &[("scenarios", "by cuda_ipc_pull,cuda_ipc_push: every row complete and every byte right")]);
    says(&verdicts, "PASS", "host_scenarios", "tables in");
    assert_eq!(verdicts.len(), 11, "{verdicts:#?}");
}

#[test]
#[ignore = "minutes of two cores, and its steps are those of one GPU's script: cargo test --features mpi gpu::scripts -- --ignored"]
fn the_script_for_a_node_passes_whole_on_four_gpus() {
    let (ran, verdicts) = run("gpu_node.sh", &Machine::of(4), &[]);
    ran.ended_with(0);
    for (step, words) in [
        ("environment", "4 GPU(s)"),
        ("doctor", "CUDA 12.8, 4 x Stand-in"),
        ("discovery", "every GPU"),
        ("local_copies", "device_local_copy has 0.01"),
        ("peer_copies", "device_to_device_memcpy_write_ce has 0.01"),
        ("host_scenarios", "tables in"),
    ] {
        says(&verdicts, "PASS", step, words);
    }
    host_copies(&verdicts, "has 0.01");
    let words = "ranks: 4, peer,duplex,fan_in,fan_out,relay: all of ";
    of_processes(&verdicts, &["cuda_ipc_pull", "cuda_ipc_push", "nccl", "nccl_put"].map(|step| (step, words)));
    of_processes(&verdicts, &["scenarios", "weight_sync"].map(|step| (step, "cuda_ipc_pull,cuda_ipc_push")));
    assert_eq!(verdicts.len(), 14, "{verdicts:#?}");
}

#[test]
fn a_figure_below_that_of_another_tool_fails_and_pytorch_stands_in_for_nvbandwidth() {
    let slow = Machine { nvbandwidth: Some("99999.5"), link: "5, 16", ..Machine::of(1) };
    let (ran, verdicts) = run("one_gpu.sh", &slow, &[("TOPOSCOPE_MPIRUN", "no-such-launcher")]);
    ran.ended_with(1);
    says(&verdicts, "FAIL", "local_copies", "nvbandwidth device_local_copy has 99999.5: below 0.95 of it");
    says(&verdicts, "FAIL", "discovery", "GPU 0: link Gen5 x16, here Gen4 x16");
    says(&verdicts, "SKIP", "cuda_ipc_pull", if has_mpi() { "no mpirun" } else { "built without MPI" });
    says(&verdicts, "PASS", "host_scenarios", "tables in");
    let torch = Machine { nvbandwidth: None, torch: Some("0.02"), ..Machine::of(1) };
    let (ran, verdicts) = run("one_gpu.sh", &torch, &[("TOPOSCOPE_MPIRUN", "no-such-launcher")]);
    ran.ended_with(0);
    says(&verdicts, "PASS", "local_copies", "GB/s, PyTorch's copy has 0.02");
}

#[test]
fn a_call_that_fails_fails_its_steps_with_its_reason_and_the_others_go_on() {
    let also = "[[cuda.fail]]\ncall = \"cuMemcpyDtoDAsync_v2\"\nerror = \"CUDA_ERROR_ILLEGAL_ADDRESS\"\nafter = 1\n\
                [[cuda.fail]]\ncall = \"cuIpcOpenMemHandle_v2\"\nerror = \"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED\"\n";
    let (ran, verdicts) = run("one_gpu.sh", &Machine { also, ..Machine::of(1) }, &[]);
    ran.ended_with(1);
    says(&verdicts, "PASS", "discovery", "");
    says(&verdicts, "FAIL", "local_copies", "waived: rank 0: GPU 0 (Stand-in, 0000:10:00.0): cuMemcpyDtoDAsync says");
    if has_mpi() {
        says(&verdicts, "FAIL", "cuda_ipc_pull", "waived: rank 0: cuda_ipc_pull 0→1: rank 1 cannot reach the memory of rank 0");
        says(
            &verdicts,
            "FAIL",
            "cuda_ipc_push",
            "cannot map the memory of rank 1: cuIpcOpenMemHandle says CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        );
        says(&verdicts, "FAIL", "scenarios", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED");
    }
    says(&verdicts, "PASS", "host_scenarios", "tables in");
    let last = ran.stdout.lines().last().unwrap();
    let failed = verdicts.iter().filter(|line| line.starts_with("FAIL")).count();
    assert!(failed > 0 && last.contains(&format!(" {failed} failed, ")), "{last}");
}

#[test]
fn time_that_is_up_fails_what_was_not_done() {
    let more = [("TOPOSCOPE_MPIRUN", "no-such-launcher"), ("TOPOSCOPE_CHECK_LIMIT", "0")];
    let (ran, verdicts) = run("one_gpu.sh", &Machine::of(1), &more);
    ran.ended_with(1);
    says(&verdicts, "FAIL", "host_scenarios", "not started: the 0 s for all of it are over");
}
