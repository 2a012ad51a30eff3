//! `--memory cuda` and `--gpus` from the command line to the files, under the stand-ins: whose each GPU is, and how it was doing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::place::{Place, Ran};
use super::stand_in;

const LONG: Duration = Duration::from_secs(120);

/// Two GPUs without NVLinks, near the cores of this machine; the second is hot and its link is trained down.
const BOX: &str = r#"
driver = "550.54.15"
[model]
name = "Stand-in"
id = 0x1234
clock = [1200, 1410]
pcie = [4, 16]
pcie_most = [4, 16]
[[gpu]]
address = "0000:16:00.0"
cpus = "0-1023"
[[gpu]]
address = "0000:17:00.0"
cpus = "0-1023"
throttled = 32
temperature = 91
pcie = [1, 16]
persistence = false
"#;

/// Give a command the box, by both of its libraries.
fn served<'a>(place: &Place, command: &'a mut Command) -> &'a mut Command {
    let (file, report) = (place.folder().join("box.toml"), place.folder().join("report"));
    fs::write(&file, BOX).unwrap();
    fs::create_dir_all(&report).unwrap();
    #[cfg(feature = "nvml")]
    command.env(super::super::nvml::boxes::LIBRARY, super::super::nvml::boxes::stand_in());
    stand_in::serve(command, &report).env("TOPOSCOPE_STAND_IN", file)
}

fn sweep(place: &Place, more: &[&str], with: bool) -> Ran {
    let session = place.session().display().to_string();
    let _ = fs::remove_dir_all(place.session());
    let words = [
        ["sweep", "--engine", "threads", "--memory", "cuda", "--patterns", "local,peer", "--sizes", "64KiB,1MiB", "--repeats", "3"],
        ["--arena", "4MiB", "--out", "cal.json", "--session", &session, "--timeout", "20s", "--seed", "1", "--isolated"],
    ];
    let words: Vec<&str> = words.concat().into_iter().chain(more.iter().copied()).collect();
    let mut command = place.toposcope(&words);
    if with {
        served(place, &mut command);
    }
    place.run(&mut command, LONG)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn ranks_are_bound_and_told_and_their_gpus_are_looked_at() {
    let place = Place::new();
    let ran = sweep(&place, &["--ranks", "2", "--gpus", "1,GPU-0000000"], true);
    assert!(!ran.status.success() && ran.stderr.contains("which GPU 0 ("), "{}{}", ran.stdout, ran.stderr);
    let ran = sweep(&place, &["--ranks", "2", "--gpus", "1,0000:16:00.0"], true);
    ran.ended_with(0);
    assert!(ran.stdout.contains("by memcpy on GPU memory"), "{}", ran.stdout);
    let told = json(&place.folder().join("cal.json"));
    assert_eq!((&told["memory"], &told["mover"]), (&"cuda".into(), &"memcpy".into()));
    assert!(told["software"]["CUDA driver"].as_str().unwrap().contains("2 x Stand-in"), "{}", told["software"]);
    let hardware = &told["topology"]["hardware"][0];
    let address = |rank: usize| {
        let gpu = &hardware["gpus"][told["placement"][rank]["gpu"].as_u64().unwrap() as usize];
        hardware["pci"][gpu["pci"].as_u64().unwrap() as usize]["address"].as_str().unwrap()
    };
    assert_eq!([address(0), address(1)], ["0000:17:00.0", "0000:16:00.0"]);
    #[cfg(feature = "nvml")]
    {
        assert_eq!(told["software"]["NVIDIA driver"], "550.54.15");
        assert_eq!(told["software"]["GPU persistence"], "off for GPU 1");
        let gpus = told["gpus"].as_array().unwrap();
        assert_eq!((gpus[0]["rank"].as_u64(), gpus[0]["temperature"][1].as_u64()), (Some(0), Some(91)), "{gpus:?}");
        assert_eq!((&gpus[0]["reasons"][0], gpus[0]["throttled"] == gpus[0]["looks"]), (&"heat".into(), true), "{gpus:?}");
        assert!(ran.stdout.contains("between probes"), "what it cost is told: {}", ran.stdout);
        let diagnosed = place.run(&mut place.toposcope(&["diagnose", "cal.json", "--json"]), LONG);
        let diagnosed: Value = serde_json::from_str(&diagnosed.stdout).unwrap();
        let titles: Vec<&str> = diagnosed["findings"].as_array().unwrap().iter().filter_map(|own| own["title"].as_str()).collect();
        assert!(titles.iter().any(|title| title.ends_with("(rank 0) were held down: heat")), "{titles:?}");
    }
}

#[test]
fn ranks_without_a_gpu_of_their_own_take_no_part_or_share_one_by_name() {
    let place = Place::new();
    let ran = sweep(&place, &["--ranks", "3"], true);
    ran.ended_with(1);
    assert!(
        ran.stdout.contains("takes no part") && ran.stdout.contains(": 3 ranks, 2 GPUs; start 2 at most there, or name"),
        "{}",
        ran.stdout
    );
    // As many as there are where nobody says how many.
    let ran = sweep(&place, &[], true);
    ran.ended_with(0);
    assert!(ran.stdout.contains(" on 2 ranks,"), "{}", ran.stdout);
    let ran = sweep(&place, &["--ranks", "3", "--gpus", "0,1,0"], true);
    ran.ended_with(0);
    assert!(ran.stdout.contains("ranks 0,2 share GPU 0 (Stand-in, 0000:16:00.0)"), "{}", ran.stdout);
}

#[test]
fn without_any_library_of_nvidia_it_is_said_what_is_absent() {
    let place = Place::new();
    let ran = sweep(&place, &["--ranks", "2"], false);
    assert!(!ran.status.success() && ran.stderr.contains("rank 0 sees no GPU: no CUDA driver here"), "{}{}", ran.stdout, ran.stderr);
    let doctor = place.run(&mut place.toposcope(&["doctor", "--json"]), LONG);
    let doctor: Value = serde_json::from_str(&doctor.stdout).unwrap();
    for check in doctor["checks"].as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        if ["cuda", "peers", "persistence", "nccl"].contains(&id) {
            assert!(check["state"] != "ok" && check["state"] != "warn" && check["fix"].is_string(), "{check}");
        }
    }
    let mut command = place.toposcope(&["doctor", "--json"]);
    let doctor = place.run(served(&place, &mut command), LONG);
    assert!(doctor.stdout.contains("2 x Stand-in") && doctor.stdout.contains("each of 2 GPUs reaches each other"), "{}", doctor.stdout);
    #[cfg(feature = "nvml")]
    assert!(doctor.stdout.contains("keeping GPUs awake is off for GPU 1"), "{}", doctor.stdout);
}
