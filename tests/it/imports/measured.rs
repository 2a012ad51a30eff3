//! Other tools' measurements: the corpus, damaged files, hostile ones, and whether an imported matrix tells what the same one measured tells.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toposcope::diagnose::{Diagnosis, diagnose};
use toposcope::fabric::Fabric;
use toposcope::import::measured::{self, Source, Table, build, tables};
use toposcope::sample::{MoverKind, Pattern, Status};
use toposcope::session::{Model, measured as looked_at};
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;

use super::corpus::{files, folder};
use super::damage::spent;
use super::printed::SEEDS;
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
pub const FOLDERS: [&str; 10] = [
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
pub fn check(table: &Table, of: &str) {
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
            let begun = spent();
            let _ = tables(&text, "large");
            let took = spent().saturating_sub(begun);
            assert!(took < Duration::from_secs(2), "{kind}, line {at}: {took:?}");
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
