//! Damaged outputs of the tools whose measurements are read: whatever was cut, doubled or blown up is read or refused, soon, and without a
//! panic.
//!
//! The long run: `TOPOSCOPE_DAMAGED=10000000 cargo test --release --test it imports::fed -- --ignored --nocapture` feeds so many inputs to
//! each tool's reader, on all processors; `TOPOSCOPE_KIND="nccl-tests"` to one alone, `TOPOSCOPE_CORPUS` starts from real files, too,
//! `TOPOSCOPE_SEED` makes other inputs. An input that is found is fed again alone by its kind, its number as the seed and one input.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use toposcope::import::measured::{Source, build, tables};

use super::corpus::{files, folder};
use super::damage::{damage, spent};
use super::measured::{FOLDERS, check};
use super::printed::SEEDS;

/// Bytes of most inputs at most: small ones break the same things as large ones, many times faster.
const SMALL: usize = 2 << 10;
const LARGE: usize = 8 << 10;
/// Processor time of an input above which it is a finding.
const SOON: Duration = Duration::from_millis(200);
/// So many findings end a kind's run.
const ENOUGH: usize = 10;

/// An input to start from.
struct Start {
    kind: &'static str,
    bytes: Vec<u8>,
}

/// Whose files a folder of the corpus has.
fn kind_of(folder: &'static str) -> &'static str {
    match folder {
        "mpigraph" => "mpiGraph",
        "osu" => "OSU",
        "ib" => "perftest",
        "transferbench" => "TransferBench",
        "rocm-bandwidth-test" => "rocm_bandwidth_test",
        "p2pbandwidthlatency" => "p2pBandwidthLatencyTest",
        other => other,
    }
}

fn starts() -> Vec<Start> {
    let mut starts: Vec<Start> = SEEDS.iter().map(|(kind, text)| Start { kind, bytes: text.as_bytes().to_vec() }).collect();
    if let Some(corpus) = folder() {
        for (name, path) in FOLDERS.iter().flat_map(|name| files(&corpus.join(name)).into_iter().map(move |path| (*name, path))) {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(LARGE);
            starts.push(Start { kind: kind_of(name), bytes });
        }
    }
    starts
}

/// What came of the inputs.
#[derive(Debug, Default)]
struct Count {
    inputs: u64,
    read: u64,
    longest: Duration,
    /// the input that took longest
    slowest: u64,
    findings: Vec<String>,
}

impl Count {
    fn add(&mut self, other: Self) {
        (self.inputs, self.read) = (self.inputs + other.inputs, self.read + other.read);
        if other.longest > self.longest {
            (self.longest, self.slowest) = (other.longest, other.slowest);
        }
        self.findings.extend(other.findings);
    }
}

/// The input of a number: it depends on nothing else but what there is to start from.
fn input(number: u64, own: &[&Start], others: &[&[u8]]) -> (&'static str, String) {
    let mut rng = Rng::with_seed(number);
    let start = rng.choice(own).expect("a known kind");
    let most = if rng.u8(..10) > 0 { SMALL } else { LARGE };
    let from = if start.bytes.len() > most && rng.bool() { rng.usize(..start.bytes.len() - most) } else { 0 };
    let mut bytes = start.bytes[from..start.bytes.len().min(from + most)].to_vec();
    let document = bytes.starts_with(b"{\"") && rng.bool();
    for _ in 0..rng.usize(1..5) {
        if document { renumber(&mut rng, &mut bytes) } else { damage(&mut rng, &mut bytes, others) }
    }
    (start.kind, String::from_utf8_lossy(&bytes).into_owned())
}

/// Another value for a number, so that JSON stays well-formed and its reader is reached.
fn renumber(rng: &mut Rng, bytes: &mut Vec<u8>) {
    const VALUES: [&str; 16] = [
        "0",
        "1",
        "2",
        "3",
        "7",
        "-1",
        "0.5",
        "1e-5",
        "1e300",
        "16383",
        "16384",
        "4294967295",
        "18446744073709551615",
        "null",
        "[]",
        "\"nan\"",
    ];
    let part = |byte: u8| byte.is_ascii_digit() || b".e-+".contains(&byte);
    let begins = |at: usize| bytes[at].is_ascii_digit() && at > 0 && matches!(bytes[at - 1], b' ' | b'[' | b':' | b',');
    let places: Vec<usize> = (0..bytes.len()).filter(|&at| begins(at)).collect();
    if let Some(&from) = rng.choice(&places) {
        let to = (from..bytes.len()).find(|&at| !part(bytes[at])).unwrap_or(bytes.len());
        // Thousands of processes take milliseconds: seldom.
        let value = rng.choice(VALUES).filter(|value| !value.starts_with("1638") || rng.u8(..8) == 0).unwrap_or("2");
        drop(bytes.splice(from..to, value.bytes()));
    }
}

/// True if it was read; panics, or says what is wrong.
fn taken(text: &str, of: &str) -> bool {
    let Ok(tables) = tables(text, "damaged") else { return false };
    for table in &tables {
        check(table, of);
    }
    let built = build("x", &[Source { file: "damaged".to_owned(), tables }], Vec::new(), &[], &[]);
    assert!(built.is_ok(), "{of}: {:?}", built.err());
    true
}

/// Feed so many damaged inputs, of one kind or of all, to the importers, on all processors.
fn feed(inputs: u64, seed: u64, kind: Option<&str>) -> Count {
    let starts = starts();
    let others: Vec<&[u8]> = starts.iter().map(|start| start.bytes.as_slice()).collect();
    let own: Vec<&Start> = starts.iter().filter(|start| kind.is_none_or(|kind| kind == start.kind)).collect();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let (done, found) = (AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    let part = |thread: u64| {
        let mut count = Count::default();
        let mut told = Instant::now();
        for at in (thread..inputs).step_by(usize::try_from(threads).unwrap()) {
            let number = seed.wrapping_add(at);
            let (kind, text) = input(number, &own, &others);
            let of = format!("input {number} ({kind})");
            let before = spent();
            let read = catch_unwind(AssertUnwindSafe(|| taken(&text, &of)));
            let took = spent().saturating_sub(before);
            count.inputs += 1;
            if took > count.longest {
                (count.longest, count.slowest) = (took, number);
            }
            match read {
                Ok(read) => count.read += u64::from(read),
                Err(_) => count.findings.push(format!("{of} panicked:\n{text}")),
            }
            if took > SOON {
                count.findings.push(format!("{of}, {} bytes, took {took:?}", text.len()));
            }
            found.fetch_max(count.findings.len() as u64, Ordering::Relaxed);
            if found.load(Ordering::Relaxed) >= ENOUGH as u64 {
                break;
            }
            if at % 256 == thread {
                let all = done.fetch_add(256 / threads, Ordering::Relaxed);
                if thread == 0 && told.elapsed() > Duration::from_secs(30) {
                    told = Instant::now();
                    let rate = all as f64 / begun.elapsed().as_secs_f64();
                    println!("{}: {all} inputs, {rate:.0}/s", of.split(['(', ')']).nth(1).unwrap_or_default());
                }
            }
        }
        count
    };
    let mut all = Count::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        for part in parts {
            all.add(part.join().unwrap());
        }
    });
    all
}

#[test]
fn damaged_measurements_are_read_or_refused() {
    for kind in kinds() {
        let count = feed(300, 1, Some(kind));
        assert!(count.findings.is_empty(), "{}", count.findings.join("\n"));
        // Not all is refused: each importer itself is reached.
        assert!(count.inputs == 300 && (kind == "nothing" || count.read > 60), "{kind}: {} of {} read", count.read, count.inputs);
    }
}

fn kinds() -> BTreeSet<&'static str> {
    SEEDS.iter().map(|(kind, _)| *kind).collect()
}

#[test]
fn every_tool_has_an_input_to_start_from() {
    let mut read = BTreeSet::new();
    for (kind, text) in SEEDS {
        if let Ok(found) = tables(text, kind) {
            read.extend(found.into_iter().map(|table| table.tool));
        }
    }
    assert_eq!(read.len(), toposcope::import::measured::Tool::ALL.len(), "{read:?}");
}

/// Peak of this process' memory since it was last asked, as the kernel tells it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim().to_owned();
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    most
}

#[test]
#[ignore = "minutes to hours"]
fn very_many_damaged_measurements_are_read_or_refused() {
    let number = |name: &str, other: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(other);
    let only = std::env::var("TOPOSCOPE_KIND").ok();
    let mut findings = Vec::new();
    for kind in kinds().into_iter().filter(|kind| only.as_deref().is_none_or(|only| only == *kind)) {
        let begun = Instant::now();
        let count = feed(number("TOPOSCOPE_DAMAGED", 10_000_000), number("TOPOSCOPE_SEED", 1), Some(kind));
        let Count { inputs, read, longest, slowest, .. } = count;
        println!(
            "{kind}: {inputs} inputs, {read} read, {} refused, longest {longest:?} (input {slowest}), peak {}, {:.0}/s in {:.0?}, {} findings",
            inputs - read,
            peak(),
            inputs as f64 / begun.elapsed().as_secs_f64(),
            begun.elapsed(),
            count.findings.len()
        );
        count.findings.iter().for_each(|finding| println!("{kind}: {finding}"));
        findings.extend(count.findings);
    }
    assert!(findings.is_empty(), "{} findings", findings.len());
}
