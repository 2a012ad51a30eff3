//! Other tools' measurements: the corpus, damaged files, hostile ones, and whether an imported matrix tells what the same one measured tells.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use toposcope::diagnose::{Diagnosis, diagnose};
use toposcope::fabric::Fabric;
use toposcope::import::measured::{self, Source, Table, build, tables};
use toposcope::sample::{MoverKind, Pattern, Status};
use toposcope::session::{Model, measured as looked_at};
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;

use super::corpus::{files, folder};
use super::damage::{damage, spent};
use crate::closed_loop::sweep;
use crate::place::Place;

/// Tables and samples, or words of the refusal.
type Expected = Result<(usize, usize), &'static str>;

const TABLE: [(&str, Expected); 29] = [
    ("gpcnet/superbench-gpcnet_network_load.log", Err("GPCNeT")),
    ("nccl-tests/awsbatch-tag-output.txt", Ok((1, 0))),
    ("nccl-tests/dcgm-output_fail_bw.txt", Ok((1, 0))),
    ("nccl-tests/dcgm-output_pass.txt", Ok((1, 0))),
    ("nccl-tests/gb200-nvl72-allreduce.txt", Ok((1, 0))),
    ("nccl-tests/gh200-alps-2node-allreduce.txt", Ok((1, 0))),
    ("nccl-tests/gh200-alps-2node-nohook-tcp.txt", Ok((1, 0))),
    ("nccl-tests/gh200-sarus-2rank.txt", Ok((1, 0))),
    ("nccl-tests/p5-2node-mpi-tag-output.txt", Ok((1, 0))),
    // Twenty-five runs of one size each.
    ("nccl-tests/panlichen-4hosts-allreduce0.txt", Ok((25, 0))),
    ("nccl-tests/s-nccl1435-a100-alltoall-step16M.txt", Ok((1, 0))),
    // Five sizes of a ring of two.
    ("nccl-tests/s-nccltests214-a40-sendrecv-2host.txt", Ok((1, 10))),
    ("nccl-tests/superbench-nccl_allgather.log", Ok((1, 0))),
    ("nccl-tests/superbench-nccl_allreduce.log", Ok((1, 0))),
    ("nccl-tests/superbench-nccl_reduce.log", Ok((1, 0))),
    // Of one GPU: fifteen tests passed, of one cell each.
    ("nvbandwidth/dcgm-nvbandwidth-json-verbose.json", Ok((15, 15))),
    ("nvbandwidth/dgx-h100-readme-d2d-write.txt", Ok((1, 56))),
    ("nvbandwidth/gb200-4gpu-grace-h2d.txt", Ok((4, 4))),
    ("nvbandwidth/readme-h2d-bidir.txt", Ok((2, 16))),
    ("nvbandwidth/s-nvbandwidth34-a100-assert-no-matrix.txt", Err("ASSERT")),
    ("nvbandwidth/s-nvbandwidth48-h20-local-copy-v0.8-hostname.txt", Ok((1, 8))),
    ("nvbandwidth/s-nvbandwidth50-a6000-6gpu-v0.8.txt", Ok((1, 30))),
    ("p2pbandwidthlatency/5090-2gpu-graphics-device-cannot-access.txt", Ok((6, 20))),
    ("p2pbandwidthlatency/a100-8gpu-uni-p2p-writes-only.txt", Ok((1, 64))),
    ("p2pbandwidthlatency/gb200-4gpu-uni-p2p-writes-only.txt", Ok((1, 16))),
    ("p2pbandwidthlatency/geforce-4gpu-no-p2p-full-from-connectivity.txt", Ok((6, 88))),
    ("p2pbandwidthlatency/h100-8gpu-uni-p2p-writes-only.txt", Ok((1, 64))),
    ("p2pbandwidthlatency/s-nccl1127-3090-8gpu-inverted-blocks.txt", Ok((1, 56))),
    ("p2pbandwidthlatency/s-nccl1264-h100-8gpu-bidir-healthy.txt", Ok((1, 56))),
];

/// Folders of the corpus that hold measurements.
const FOLDERS: [&str; 10] = [
    "gpcnet",
    "ib",
    "mpigraph",
    "nccl-debug-log",
    "nccl-tests",
    "nvbandwidth",
    "osu",
    "p2pbandwidthlatency",
    "rocm-bandwidth-test",
    "transferbench",
];

fn numbers(tables: &[Table]) -> usize {
    tables.iter().flat_map(|table| &table.samples).filter(|sample| sample.status == Status::Ok).count()
}

#[test]
fn every_measurement_of_the_corpus_is_read_or_refused_rightly() {
    let Some(corpus) = folder() else { return };
    let mut said = String::new();
    let mut wrong = Vec::new();
    for path in FOLDERS.iter().flat_map(|name| files(&corpus.join(name))) {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let told = measured::read(&path);
        match &told {
            Ok(told) => {
                let tools: BTreeSet<&str> = told.tables.iter().map(|table| table.tool.name()).collect();
                let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
                writeln!(said, "{name:66} {tools:24} {:3} {:6}", told.tables.len(), numbers(&told.tables)).unwrap();
                told.tables.iter().for_each(|table| check(table, &name));
                let source = Source { file: name.clone(), tables: told.tables.clone() };
                let built = build("x", &[source], Vec::new(), &[], &[]).unwrap();
                assert!(!built.records.is_empty());
            }
            Err(error) => writeln!(said, "{name:66} {error}").unwrap(),
        }
        let Some((_, expected)) = TABLE.iter().find(|(own, _)| *own == name) else { continue };
        let right = match (expected, &told) {
            (Ok(expected), Ok(told)) => *expected == (told.tables.len(), numbers(&told.tables)),
            (Err(words), Err(error)) => error.to_string().contains(words),
            _ => false,
        };
        if !right {
            wrong.push(format!("{name}: expected {expected:?}, found {:?}", told.map(|told| (told.tables.len(), numbers(&told.tables)))));
        }
    }
    println!("{said}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a table says fits together.
fn check(table: &Table, of: &str) {
    let world = table.ends.len();
    for sample in &table.samples {
        let all = [sample.from, sample.to].into_iter().chain(sample.root).chain(sample.peers.iter().copied());
        assert!(all.into_iter().all(|end| end < world), "{of}: {sample:?} of {world}");
        if sample.status == Status::Ok {
            assert!(sample.seconds.is_some_and(|seconds| seconds.is_finite() && seconds > 0.0) && sample.messages > 0, "{of}: {sample:?}");
        } else {
            assert!(sample.reason.is_some(), "{of}: {sample:?}");
        }
        assert!(sample.bytes > 0, "{of}: {sample:?}");
        assert_eq!(sample.pattern.is_own(), sample.from == sample.to, "{of}: {sample:?}");
    }
    let words = table.ends.iter().flat_map(|end| [Some(&end.label), end.host.as_ref(), end.pci.as_ref(), end.model.as_ref()]).flatten();
    for word in words.chain(&table.notes).chain([&table.test]) {
        assert!(!word.chars().any(char::is_control), "{of}: {word:?}");
    }
}

/// Small outputs of every importer, with what makes trouble in them.
const SEEDS: [(&str, &str); 7] = [
    (
        "nvbandwidth",
        "nvbandwidth Version: v0.8\n\nnode1\nDevice 0: NVIDIA A100 (00000000:34:00)\nDevice 1: NVIDIA A100 (00000000:35:00)\n\n\
         Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n \
         0       N/A     20.00\n 1     10.00       N/A\n\nSUM device_to_device_memcpy_read_ce 30.00\n\nRunning all_to_one_write_ce.\n\
         memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n 0 5 6\n\nRunning device_to_device_latency_sm.\nWaived: \n",
    ),
    (
        "nvbandwidth",
        r#"{"nvbandwidth": {"GPU Device list": ["0: A (0:34:00): (n7)"], "testcases": [{"name": "device_to_device_memcpy_read_ce",
         "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", "bandwidth_matrix": [["N/A", "20"], ["10", "N/A"]]}]}}"#,
    ),
    (
        "p2pBandwidthLatencyTest",
        "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, L4, pciBusID: 3b, pciDeviceID: 0, pciDomainID:0\nP2P Connectivity Matrix\n\
         \x20    D\\D     0     1\n     0\t     1     1\n     1\t     1     1\nUnidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n\
         \x20  D\\D     0      1\n     0 200.00  11.00\n     1  22.00 400.00\nP2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1\n\
         \x20    0   1.50  12.00\n     1  13.00   1.60\n\n   CPU     0      1\n     0   2.00   5.00\n     1   5.00   2.00\n",
    ),
    (
        "nccl-tests",
        "# nccl-tests version 2.18.2 nccl-headers=23007\n# Collective test starting: sendrecv_perf\n# nThread 1 nGpus 1\n# Using devices\n\
         #  Rank  0 Group  0 Pid 1 on node1 device  0 [0009:01:00] NVIDIA GH200\n#  Rank  1 Group  0 Pid 2 on node2 device  1 [0x31] NVIDIA GH200\n#\n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
         \x201048576  262144  float  sum  -1  339.61  3.09  3.09  0  335.85  3.12  3.12  N/A\n# Out of bounds values : 0 OK\n",
    ),
    (
        "nccl-tests",
        r#"{"version": 1, "args": ["sendrecv_perf"], "config": {"nthreads": 1, "devices": [{"rank": 0, "hostname": "a", "device": 0, "device_hex": "0009:01:00"},
         {"rank": 1, "hostname": "b", "device": 0, "device_hex": "x"}]}, "results": [{"size": 1024, "out_of_place": {"time": 10.5, "nwrong": "0"}}]}"#,
    ),
    (
        "DeepSpeed",
        r#"{"format": 1, "world": 2, "node_of": [0, 1], "backend": "nccl", "device": "cuda", "samples": [
         {"pattern": "peer", "both_ways": false, "from_process": 0, "to_process": 1, "bytes": 4096, "repeat": 0, "seconds": 1e-5, "path": "inter_node"},
         {"pattern": "fan_in", "from_process": 1, "to_process": 0, "root": 0, "peers": [1], "width": 1, "bytes": 4096, "repeat": 0, "seconds": 1e-5, "root_seconds": 2e-5}]}"#,
    ),
    ("nothing", "me@host:~$ ./a.out\nhello 1 2 3\n"),
];

/// Feed so many damaged inputs to the importers; how many were read.
fn feed(inputs: u64, seed: u64, kind: Option<&str>) -> u64 {
    let mut starts: Vec<(String, Vec<u8>)> = SEEDS.iter().map(|(kind, text)| ((*kind).to_owned(), text.as_bytes().to_vec())).collect();
    if let Some(corpus) = folder() {
        for (name, path) in FOLDERS.iter().flat_map(|name| files(&corpus.join(name)).into_iter().map(move |path| (*name, path))) {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(8 << 10);
            starts.push((name.to_owned(), bytes));
        }
    }
    let others: Vec<&[u8]> = starts.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    let own: Vec<&(String, Vec<u8>)> = starts.iter().filter(|(own, _)| kind.is_none_or(|kind| kind == own)).collect();
    let mut read = 0;
    for at in 0..inputs {
        let mut rng = Rng::with_seed(seed.wrapping_add(at));
        let (kind, start) = rng.choice(&own).expect("a known kind");
        let mut bytes = start.clone();
        (0..rng.usize(1..5)).for_each(|_| damage(&mut rng, &mut bytes, &others));
        let text = String::from_utf8_lossy(&bytes);
        let begun = spent();
        let found = catch_unwind(|| tables(&text, "damaged"));
        let took = spent().saturating_sub(begun);
        let Ok(found) = found else { panic!("input {at} of seed {seed} ({kind}) panicked:\n{text}") };
        assert!(took < Duration::from_secs(10), "input {at} of seed {seed} ({kind}) took {took:?}");
        if let Ok(found) = found {
            read += 1;
            for table in &found {
                check(table, &format!("input {at} of seed {seed}"));
            }
            let source = Source { file: "damaged".to_owned(), tables: found };
            let built = catch_unwind(|| build("x", &[source], Vec::new(), &[], &[]));
            let Ok(built) = built else { panic!("input {at} of seed {seed} ({kind}) panicked as a session:\n{text}") };
            assert!(built.is_ok(), "input {at} of seed {seed}");
        }
    }
    read
}

#[test]
fn damaged_measurements_are_read_or_refused() {
    let number = std::env::var("TOPOSCOPE_DAMAGED").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000).min(1_000_000);
    let read = feed(number, 1, None);
    assert!(read > number / 4, "{read} of {number}: the importers themselves are reached");
}

/// `TOPOSCOPE_KIND="nccl-tests"` feeds one importer alone.
#[test]
#[ignore = "minutes to hours"]
fn very_many_damaged_measurements_are_read_or_refused() {
    let number = |name: &str, other: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(other);
    let begun = Instant::now();
    let kind = std::env::var("TOPOSCOPE_KIND").ok();
    let inputs = number("TOPOSCOPE_DAMAGED", 10_000_000);
    let read = feed(inputs, number("TOPOSCOPE_SEED", 1), kind.as_deref());
    println!("{inputs} inputs, {read} read, {:?}", begun.elapsed());
}

/// Each line of each seed thousands of times, whole seeds thousands of times.
#[test]
fn measurements_take_time_in_proportion() {
    for (kind, text) in SEEDS {
        let many = |line: &str| format!("{line}\n").repeat(200_000 / (line.len() + 1));
        let each = text.lines().enumerate().map(|(at, line)| {
            let before: Vec<&str> = text.lines().take(at).collect();
            format!("{}\n{}{}", before.join("\n"), many(line), text.lines().skip(at).collect::<Vec<_>>().join("\n"))
        });
        for (at, text) in each.chain([text.repeat(200_000 / text.len())]).enumerate() {
            let begun = Instant::now();
            let _ = tables(&text, "large");
            assert!(begun.elapsed() < Duration::from_secs(8), "{kind}, line {at}: {:?}", begun.elapsed());
        }
    }
}

/// "Pair bandwidth, GB/s (row = sender, column = receiver)" of 8 B70.
const B70: [[f64; 8]; 8] = [
    [0.0, 8.3, 7.9, 8.3, 27.3, 27.5, 27.6, 27.8],
    [6.0, 0.0, 5.5, 3.6, 27.4, 27.5, 27.4, 27.5],
    [53.9, 53.7, 0.0, 53.6, 14.5, 14.6, 14.6, 14.6],
    [53.6, 53.5, 53.8, 0.0, 14.6, 14.6, 14.6, 14.6],
    [27.4, 27.3, 27.4, 27.3, 0.0, 14.4, 14.3, 14.4],
    [27.3, 27.3, 27.4, 27.4, 25.2, 0.0, 25.3, 25.3],
    [27.6, 27.7, 27.0, 27.3, 8.8, 8.7, 0.0, 8.6],
    [27.5, 27.8, 27.3, 27.4, 42.8, 42.9, 43.0, 0.0],
];

fn imported(text: &str) -> Model {
    let source = Source { file: "f".to_owned(), tables: tables(text, "f").unwrap() };
    let built = build("x", &[source], Vec::new(), &[], &[]).unwrap();
    let mut model = Model::new(built.header);
    built.records.iter().for_each(|record| _ = model.apply(record));
    model
}

fn told(model: &Model) -> Diagnosis {
    diagnose(&looked_at(model, &Efficiency::default()))
}

/// Rule and place of each finding.
fn kinds(diagnosis: &Diagnosis) -> Vec<(String, Vec<(usize, usize)>)> {
    let mut all: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|finding| {
            let mut cells = finding.cells.clone();
            cells.sort_unstable();
            (finding.id.clone(), cells)
        })
        .collect();
    all.sort();
    all
}

#[allow(clippy::needless_range_loop, reason = "a transposition")]
/// A read test prints what flows from the column to the row: a matrix that was turned over somewhere would blame others.
#[test]
fn an_imported_matrix_tells_what_the_same_matrix_measured_tells() {
    let mut text = "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n".to_owned();
    let head: Vec<String> = (0..8).map(|at| format!("{at:>10}")).collect();
    writeln!(text, "  {}", head.concat()).unwrap();
    for reader in 0..B70.len() {
        let cells =
            (0..B70.len()).map(|sender| if sender == reader { "       N/A".to_owned() } else { format!("{:>10.2}", B70[sender][reader]) });
        writeln!(text, "{reader:>2}{}", cells.collect::<String>()).unwrap();
    }
    let rows: Vec<String> = B70.iter().map(|row| format!("{row:?}")).collect();
    let fabric = format!(
        "about = \"a published matrix\"\n[hosts]\ncount = 1\nranks = 8\nmemory = \"96GiB\"\n[path.local]\nalpha = \"5us\"\nrate = \"1500GB/s\"\n[path.intra_node]\nalpha = \"5us\"\nrate = \"27GB/s\"\n[matrix]\nunit = \"GB/s\"\nat = \"512MiB\"\nrows = [{}]\n",
        rows.join(", ")
    );
    let fabric = Arc::new(Fabric::parse(&fabric, "published").unwrap());
    let settings = SweepSettings {
        patterns: vec![Pattern::Peer],
        sizes: vec![512 << 20],
        repeats: 1,
        warmup: 0,
        mover: MoverKind::Simulated,
        isolated: true,
        ..SweepSettings::default()
    };
    let (measured, read) = (told(&sweep(&fabric, &settings, true).model), told(&imported(&text)));
    assert!(!measured.findings.is_empty());
    assert_eq!(kinds(&read), kinds(&measured));
    // Nothing can be measured again.
    assert!(read.findings.iter().all(|finding| finding.next.is_none()));
    let says = serde_json::to_string(&read.findings).unwrap();
    assert!(!says.contains("measure it again"), "{says}");
    // The same matrix turned over tells something else.
    assert_ne!(kinds(&told(&imported(&text.replace("read", "write")))), kinds(&measured));
}

fn run(place: &Place, words: &[&str]) -> crate::place::Ran {
    place.run(&mut place.toposcope(words), Duration::from_secs(120))
}

fn write(place: &Place, name: &str, text: &str) -> String {
    let path = place.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn files_become_sessions_that_every_command_reads_and_so_it_does_the_files() {
    let place = Place::new();
    let file = write(&place, "nv.txt", SEEDS[0].1);
    let topology = write(&place, "topo.txt", "me@node1:~$ nvidia-smi topo -m\nGPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n");
    let session = place.folder().join("s").display().to_string();
    let ran = run(&place, &["import", &file, &topology, "--out", &session, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.ended_with(0).stdout).unwrap();
    assert_eq!((document["samples"].as_u64(), document["hosts"][0].as_str()), (Some(4), Some("node1")), "{document}");
    assert_eq!(document["tables"][0]["orientation"], "column sends, row receives; the heading's arrow points the other way");
    let events = std::fs::read_to_string(Path::new(&session).join("events.ndjson")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(toposcope::session::EVENT_SCHEMA).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for line in events.lines() {
        let event = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&event), "{line}: {:?}", schema.iter_errors(&event).map(|error| error.to_string()).collect::<Vec<_>>());
    }
    let header: serde_json::Value = serde_json::from_slice(&std::fs::read(Path::new(&session).join("header.json")).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(toposcope::session::HEADER_SCHEMA).unwrap();
    assert!(jsonschema::is_valid(&schema, &header), "{header}");
    // Of the file alone the same numbers are told.
    let alone = place.folder().join("alone").display().to_string();
    run(&place, &["import", &file, "--out", &alone]).ended_with(0);
    for (format, name) in [("csv", "x.csv"), ("calibration", "x.json")] {
        let (a, b) = (place.folder().join(format!("a-{name}")), place.folder().join(format!("b-{name}")));
        run(&place, &["export", &file, "--format", format, "--out", &a.display().to_string()]).ended_with(0);
        run(&place, &["export", &alone, "--format", format, "--out", &b.display().to_string()]).ended_with(0);
        assert_eq!(std::fs::read_to_string(a).unwrap(), std::fs::read_to_string(b).unwrap(), "{format}");
    }
    let of = |source: &str, words: &[&str]| run(&place, &[words, &[source]].concat()).stdout;
    assert_eq!(of(&file, &["diagnose"]).lines().skip(1).collect::<Vec<_>>(), of(&alone, &["diagnose"]).lines().skip(1).collect::<Vec<_>>());
    assert_eq!(of(&file, &["fit"]), of(&alone, &["fit"]));
    assert!(run(&place, &["diff", &file, &alone]).stdout.contains("no change"));
    let refused = run(&place, &["diagnose", &session, "--run-tests"]);
    assert!(refused.ended_with(2).stderr.contains("imported from another tool's output"), "{refused:?}");
}

#[test]
fn hostile_files_reach_no_terminal_and_no_page() {
    let place = Place::new();
    let text = "nvbandwidth Version: <script>alert(1)</script>\u{1b}]0;x\u{7}\nhost1\nDevice 0: <script>alert(2)</script>\u{1b}[31m (00000000:34:00)\n\
                Device 1: B (00000000:35:00)\nRunning device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n \
                0 1\n0 N/A 5\n1 50 N/A\n";
    let file = write(&place, "\u{1b}[31mevil<script>.txt", text);
    let report = place.folder().join("r.html").display().to_string();
    let ran = run(&place, &["import", &file]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    let ran = run(&place, &["diagnose", &file, "--report", &report]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    let page = std::fs::read_to_string(report).unwrap();
    // Its own two are the numbers and what draws them; within the numbers no tag is a tag.
    assert!(page.contains("&lt;script&gt;") && page.matches("<script").count() == 2 && !page.contains("<script>alert"), "{page}");
}

#[test]
fn collectives_alone_say_what_they_have() {
    let place = Place::new();
    let text = "# Collective test starting: all_reduce_perf\n#  Rank  0 Group  0 Pid 1 on a device  0 [0009:01:00] X\n\
                #  Rank  1 Group  0 Pid 1 on b device  0 [0009:01:00] X\n\
                #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
                 1048576 262144 float sum -1 339.61 3.09 3.09 0 335.85 3.12 3.12 0\n";
    let file = write(&place, "ar.txt", text);
    let words = "nccl-tests all_reduce: 1 size of all 2 ranks together";
    for command in ["diagnose", "fit"] {
        let ran = run(&place, &[command, &file]);
        assert!(ran.ended_with(0).stdout.replace('\n', " ").contains(words), "{command}: {}", ran.stdout);
        assert!(!ran.stdout.contains("0 samples"), "{command}: {}", ran.stdout);
    }
    let ran = run(&place, &["import", &file]);
    assert!(ran.stdout.contains("1 MiB     340 µs, 336 µs in place, bus bandwidth 3.09 GB/s"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("0 samples"), "{}", ran.stdout);
}

#[test]
fn pairs_of_nameless_files_are_told_or_asked_for() {
    let place = Place::new();
    let file = write(&place, "x.txt", "hello\n");
    let ran = run(&place, &["import", &file]);
    assert!(ran.ended_with(2).stderr.contains("nvbandwidth, p2pBandwidthLatencyTest"), "{ran:?}");
    let ran = run(&place, &["import", &file, "--pair", "1,1"]);
    assert!(ran.ended_with(2).stderr.contains("two different ranks"), "{ran:?}");
}

#[test]
fn a_file_that_got_slower_differs_from_the_one_before() {
    let place = Place::new();
    let of = |slow: f64| {
        let rows: Vec<String> = (0..6)
            .map(|row| {
                let cells = (0..6).map(|column| match (row == column, row) {
                    (true, _) => "N/A".to_owned(),
                    (_, 4) => format!("{:.2}", slow + f64::from(column) * 0.1),
                    _ => format!("{:.2}", 50.0 + f64::from(row * column % 5) * 0.1),
                });
                format!("{row} {}", cells.collect::<Vec<_>>().join(" "))
            })
            .collect();
        format!(
            "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n0 1 2 3 4 5\n{}\n",
            rows.join("\n")
        )
    };
    let (before, after) = (write(&place, "a.txt", &of(50.0)), write(&place, "b.txt", &of(25.0)));
    let ran = run(&place, &["diff", &before, &after]);
    assert!(ran.ended_with(1).stdout.contains("rank 4 sends"), "{}", ran.stdout);
    assert!(ran.stdout.contains("3 % is assumed"), "{}", ran.stdout);
    assert!(run(&place, &["diff", &before, &before]).ended_with(0).stdout.contains("no change"));
}
