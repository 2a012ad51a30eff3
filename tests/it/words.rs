//! Commands that tell or write something: exit codes, what is said of wrong input, and pipes that nobody reads.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use toposcope::session::store::Store;

use crate::made;
use crate::place::{Place, Ran};

const MOMENT: Duration = Duration::from_secs(60);

fn run(place: &Place, words: &str) -> Ran {
    place.run(&mut place.toposcope(&words.split_whitespace().collect::<Vec<_>>()), MOMENT)
}

fn recorded(place: &Place) -> String {
    let mut session = Store::create(&place.session(), &made::header()).unwrap();
    for record in made::records() {
        session.append(&record).unwrap();
    }
    place.session().display().to_string()
}

/// One message on standard error, and nothing on standard output.
#[track_caller]
fn refused(ran: &Ran, parts: &[&str]) {
    ran.ended_with(2);
    assert_eq!(ran.stdout, "", "{ran:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is not in: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn what_only_tells_tells_and_ends_well() {
    let place = Place::new();
    for (words, expected) in [
        ("--version", "toposcope 0.1"),
        ("--help", "attach"),
        ("themes", "dark\n"),
        ("keys", "quit"),
        ("--ranks 2 discover", "rank  host"),
        ("doctor", "cores"),
    ] {
        if !cfg!(feature = "tui") && matches!(words, "themes" | "keys") {
            refused(&run(&place, words), &["without the screen"]);
            continue;
        }
        let ran = run(&place, words);
        assert!(ran.ended_with(0).stdout.contains(expected), "{words}: {}", ran.stdout);
        assert_eq!(ran.stderr, "", "{words}");
    }
    let placement: Value = serde_json::from_str(&run(&place, "--ranks 3 discover --json").ended_with(0).stdout).unwrap();
    let ranks = placement["ranks"].as_array().unwrap();
    assert_eq!(ranks.iter().map(|rank| rank["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(ranks.iter().all(|rank| !rank["host"].as_str().unwrap().is_empty()), "{placement}");
    assert_eq!(placement["hardware"].as_array().unwrap().len(), 1, "{placement}");
    assert_eq!(placement["hardware"][0]["host"], ranks[0]["host"]);
    serde_json::from_str::<Value>(&run(&place, "doctor --json").ended_with(0).stdout).unwrap();
    for of in ["calibration", "diagnosis", "header", "event"] {
        let schema: Value = serde_json::from_str(&run(&place, &format!("schema {of}")).ended_with(0).stdout).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{of}");
    }
    place.nothing_runs();
}

/// The whole way: a tree written as the kernel would, told as text and as JSON, without any rank.
#[test]
fn a_recorded_tree_is_told_without_ranks() {
    let place = Place::new();
    let write = |path: &str, text: &str| {
        let path = place.folder().join("box").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let gpu = "sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0";
    for (device, class) in [("sys/devices/pci0000:16/0000:16:01.0", "0x060400"), (gpu, "0x030200")] {
        let link = [
            ("current_link_speed", "16.0 GT/s PCIe"),
            ("current_link_width", "8"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ];
        for (file, text) in [("class", class), ("vendor", "0x10de"), ("device", "0x20b0"), ("numa_node", "0")].into_iter().chain(link) {
            write(&format!("{device}/{file}"), text);
        }
    }
    write("proc/sys/kernel/hostname", "gpu\u{1b}[31m07\n");
    let ran = run(&place, "discover --sysfs-root box");
    let told = &ran.ended_with(0).stdout;
    assert!(
        told.starts_with("gpu[31m07") && told.contains("0000:17:00.0  Gen4 x8 of Gen4 x16  GPU 0 NVIDIA 3D controller 10de:20b0"),
        "{told}"
    );
    assert!(!told.contains("rank") && !told.contains('\u{1b}'), "{told}");
    let json: Value = serde_json::from_str(&run(&place, "discover --json --sysfs-root box").ended_with(0).stdout).unwrap();
    assert_eq!((json["ranks"].as_array().unwrap().len(), json["hardware"][0]["gpus"].as_array().unwrap().len()), (0, 1), "{json}");
    refused(&run(&place, "discover --sysfs-root /no/such"), &["--sysfs-root /no/such", "sys and proc"]);
    place.nothing_runs();
}

#[test]
fn wrong_words_are_refused_with_what_was_expected() {
    let place = Place::new();
    let session = recorded(&place);
    for (words, parts) in [
        ("--frobnicate", &["--frobnicate", "error:"] as &[&str]),
        ("measure", &["error:", "measure"]),
        ("sweep --sizes 4q", &["--sizes", "4q"]),
        ("sweep --patterns pear", &["--patterns", "\"pear\" is not one of local, host_to_device, device_to_host, peer"]),
        ("sweep --ranks 0-3", &["--ranks", "number of threads"]),
        ("sweep --ranks 2 --repeats 0", &["repeats = 0", "at least one"]),
        ("sweep --ranks 2 --timeout soon", &["--timeout", "10s, 500ms or 2m"]),
        ("sweep --ranks 2 --mover ncll", &["--mover", "memcpy, mpi_sendrecv, mpi_put, cuda_ipc_pull"]),
        ("sweep --ranks 2 --mover nccl", &["memory = host", "mover nccl moves the memory of GPUs"]),
        ("sweep --ranks 2 --gpus 0,1", &["gpus = 0,1", "memory cuda"]),
        ("sweep --ranks 2 --mover mpi_put --sizes 4KiB --arena 1M", &["mover = mpi_put", "memcpy"]),
        ("sweep --ranks 2 --mover mpi_put --sizes 4KiB --arena 1M --out /dev/null", &["mover = mpi_put", "memcpy"]),
        ("sweep --ranks 2 --resume /no/such", &["/no/such", "header.json"]),
        ("open /no/such", &["/no/such", "header.json and events.ndjson"]),
        ("--efficiency /no/such.toml sweep --ranks 2", &["--efficiency", "there is no /no/such.toml"]),
        ("diagnose /no/such", &["/no/such"]),
        ("diagnose /no/such --report r.txt", &["--report", ".html or .md"]),
        ("diff /no/such /no/such", &["/no/such"]),
        ("schema weather", &["weather", "calibration, fits, diagnosis, header, event"]),
        ("attach /no/such.sock", &["/no/such.sock"]),
        ("attach", &["toposcope"]),
    ] {
        if !cfg!(feature = "tui") && words.starts_with(['o', 'a']) {
            continue;
        }
        refused(&run(&place, words), parts);
    }
    if cfg!(feature = "tui") {
        for (words, parts) in [
            ("--metric speed", ["--metric", "bandwidth, time, asymmetry"]),
            ("--cells 10x10", ["--cells", "60x18"]),
            ("--size 8KiB", ["--size", "4 KiB, 1 MiB"]),
            ("--theme mud", ["no theme \"mud\"", "did you mean"]),
        ] {
            refused(&run(&place, &format!("export {session} --format svg --out /dev/null {words}")), &parts);
        }
    }
    refused(&run(&place, &format!("export {session} --format csv --out /no/such/table.csv")), &["/no/such/table.csv", "No such file"]);
    refused(&run(&place, &format!("sweep --ranks 2 --session {session}")), &["already holds a session", "--resume"]);
    place.nothing_runs();
}

#[test]
fn broken_sessions_are_refused_with_file_line_and_expectation() {
    let place = Place::new();
    let session = recorded(&place);
    let (events, header) = (place.session().join("events.ndjson"), place.session().join("header.json"));
    let whole = fs::read_to_string(&events).unwrap();
    let export = || run(&place, &format!("export {session} --format csv --out {}", place.folder().join("t.csv").display()));
    export().ended_with(0);

    let broken: Vec<String> =
        (1..).zip(whole.lines()).map(|(n, line)| if n == 3 { line.replace(':', ";") } else { line.to_owned() }).collect();
    fs::write(&events, broken.join("\n") + "\n").unwrap();
    refused(&export(), &["events.ndjson:3:", "not an event"]);

    // What a cut leaves is no fault.
    fs::write(&events, &whole[..whole.len() - 20]).unwrap();
    export().ended_with(0);

    fs::write(&events, &whole).unwrap();
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, text.replace("toposcope.session/1.6", "toposcope.session/2.0")).unwrap();
    refused(&export(), &["toposcope.session/2.0", "this program reads toposcope.session/1.6"]);
    fs::write(&header, text.replace("\"engine\": \"mpi\"", "\"engine\": \"steam\"")).unwrap();
    refused(&export(), &["header.json:", "steam", "expected"]);
    fs::remove_file(&header).unwrap();
    refused(&export(), &["it has no header.json"]);
}

#[test]
fn broken_keys_and_themes_are_refused_by_name() {
    if !cfg!(feature = "tui") {
        return;
    }
    let place = Place::new();
    let config = place.folder().join("config/toposcope");
    fs::create_dir_all(config.join("themes")).unwrap();
    fs::write(config.join("keys.toml"), "qiut = ['q']\n").unwrap();
    refused(&run(&place, "keys"), &["qiut", "did you mean \"quit\""]);
    fs::remove_file(config.join("keys.toml")).unwrap();
    fs::write(config.join("themes/mine.toml"), "inherits = 'dark'\n").unwrap();
    assert!(run(&place, "themes").ended_with(0).stdout.lines().any(|line| line.starts_with("mine")));
}

/// Start with standard output going to a pipe that is closed before anything is written.
fn unread(place: &Place, words: &str) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.toposcope(&words.split_whitespace().collect::<Vec<_>>());
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_pipe_that_nobody_reads_is_no_fault() {
    let place = Place::new();
    let session = recorded(&place);
    let table = place.folder().join("t.csv");
    let swept = place.folder().join("swept");
    let export = format!("export {session} --format csv --out {}", table.display());
    let sweep = format!("sweep --ranks 2 --sizes 4KiB --repeats 2 --arena 1M --session {}", swept.display());
    for words in ["--help", "--version", "themes", "keys", "doctor", "doctor --json", "schema event", "--ranks 2 discover", &export, &sweep]
    {
        if !cfg!(feature = "tui") && matches!(words, "themes" | "keys") {
            continue;
        }
        let (code, stderr) = unread(&place, words);
        assert!(!stderr.contains("panicked"), "{words}: {stderr}");
        assert_eq!(code, Some(0), "{words}: {stderr}");
    }
    assert!(table.exists() && Path::new(&swept).join("calibration.json").exists());
}

#[test]
fn a_disk_that_fills_up_leaves_whole_records_and_says_so() {
    let place = Place::new();
    // A limit on file sizes does to writes what a full disk does: some bytes of a record, then no more.
    let mut shell = place.command("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"]).arg(env!("CARGO_BIN_EXE_toposcope"));
    let session = place.session().display().to_string();
    // The header of a large machine is larger than the limit: the session begins without one.
    run(&place, &format!("sweep --ranks 2 --sizes 4K --repeats 1 --session {session}")).ended_with(0);
    shell.args(["sweep", "--ranks", "2", "--sizes", "4K,64K", "--repeats", "40", "--resume", &session]);
    let ran = place.run(&mut shell, MOMENT);
    assert!(ran.ended_with(2).stderr.contains("lacks its end") && ran.stderr.contains("events.ndjson"), "{ran:?}");
    let events = fs::read(place.session().join("events.ndjson")).unwrap();
    assert!(events.len() > 1000 && events.ends_with(b"\n"), "{} bytes", events.len());
}

#[test]
fn a_calibration_that_cannot_be_written_is_known_before_or_leaves_the_session() {
    let place = Place::new();
    refused(&run(&place, "sweep --ranks 2 --sizes 4K --repeats 1 --out /nonexistent/cal.json"), &["--out", "folder that exists"]);
    refused(&run(&place, "run -n 0"), &["at least 1"]);
    let session = place.session().display().to_string();
    let ran = run(&place, &format!("sweep --ranks 2 --sizes 4K --repeats 1 --session {session} --out /dev/full"));
    refused(&ran, &["--out", "export", &session]);
    let mut full = place.command("sh");
    full.args(["-c", "exec \"$@\" > /dev/full", "sh", env!("CARGO_BIN_EXE_toposcope"), "schema", "event"]);
    refused(&place.run(&mut full, MOMENT), &["standard output"]);
    assert!(run(&place, &format!("export {session} --format csv --out {}/t.csv", place.folder().display())).status.success());
}
