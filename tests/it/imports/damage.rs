//! Damaged inputs: whatever a file was cut, doubled, flipped or blown up to, an importer reads or refuses it, soon, and without a
//! panic.
//!
//! The long run: `TOPOSCOPE_DAMAGED=10000000 cargo test --release --test it imports::damage -- --ignored --nocapture`, with
//! `TOPOSCOPE_CORPUS` to start from real files, too, `TOPOSCOPE_SEED` for other inputs, and `TOPOSCOPE_KIND="topo -m"` for one
//! importer's alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use fastrand::Rng;
use toposcope::import;

use super::seeds::SEEDS;

/// An input to start from.
struct Start {
    kind: String,
    bytes: Vec<u8>,
}

/// Real files larger than this are cut to a window of it, so that many inputs go through.
const WINDOW: usize = 6 << 10;

fn starts() -> Vec<Start> {
    let mut starts: Vec<Start> =
        SEEDS.iter().map(|(kind, text)| Start { kind: (*kind).to_owned(), bytes: text.as_bytes().to_vec() }).collect();
    let kinds = [
        ("nvsmi-topo-m", "topo -m"),
        ("nvsmi-topo-p2p", "topo -p2p"),
        ("nvsmi-nvlink", "nvlink -s"),
        ("nccl-topo-xml", "NCCL XML"),
        ("hwloc-xml", "hwloc XML"),
        ("lspci", "lspci"),
        ("ib", "ibstat"),
    ];
    if let Some(corpus) = super::corpus::folder() {
        for (folder, kind) in kinds {
            for file in super::corpus::files(&corpus.join(folder)) {
                starts.push(Start { kind: kind.to_owned(), bytes: std::fs::read(file).unwrap() });
            }
        }
    }
    starts
}

/// Values that break arithmetic, sizes, tables and terminals.
const NASTY: [&str; 27] = [
    "0",
    "-1",
    "18446744073709551616",
    "4294967295",
    "99999999",
    "1e308",
    "nan",
    "\u{1b}[4m",
    "\0",
    "\t\t",
    "é",
    "\u{202e}",
    "GPU1023",
    "NV999",
    "0-16383",
    "ffffffff,",
    "&amp;",
    "&a;",
    "<pci>",
    "</object>",
    "[ff-00]",
    "0000:ff:1f.7",
    "\u{feff}",
    "]]>",
    "N/A",
    "D\\D",
    " 0 1 2 3",
];

/// One change to the bytes; `others` is what pieces are spliced in from.
pub(super) fn damage(rng: &mut Rng, bytes: &mut Vec<u8>, others: &[&[u8]]) {
    let length = bytes.len();
    let at = rng.usize(..=length);
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    match rng.u8(..14) {
        0 if length > 0 => bytes[at.min(length - 1)] ^= 1 << rng.u8(..8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..rng.usize(at..=length))),
        3 => drop(bytes.splice(at..at, rng.choice(NASTY).unwrap().bytes())),
        4 => {
            // A number becomes another.
            if let Some(from) = (at..length).find(|&at| bytes[at].is_ascii_digit()) {
                let to = (from..length).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(length);
                drop(bytes.splice(from..to, rng.choice(NASTY).unwrap().bytes()));
            }
        }
        5 | 6 => {
            let mut lines = lines(bytes);
            let (a, b) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
            if rng.bool() {
                lines.swap(a, b);
            } else {
                let line = lines[a].clone();
                lines.insert(b, line);
            }
            *bytes = lines.join(&b'\n');
        }
        7 => {
            let mut lines = lines(bytes);
            lines.remove(rng.usize(..lines.len()));
            *bytes = lines.join(&b'\n');
        }
        8 => {
            // One line many times.
            let lines = lines(bytes);
            let mut line = rng.choice(&lines).unwrap().clone();
            line.push(b'\n');
            line.truncate(512);
            drop(bytes.splice(at..at, line.repeat(rng.usize(1..40))));
        }
        9 => {
            let tag = *rng
                .choice(&[
                    "<pci busid=\"0:1.0\">",
                    "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0:1.0\">",
                    "[",
                    "-+-",
                    "<a>",
                    "GPU0 ",
                ])
                .unwrap();
            drop(bytes.splice(at..at, tag.repeat(rng.usize(1..200)).into_bytes()));
        }
        10 => {
            let other = rng.choice(others).unwrap();
            let from = rng.usize(..=other.len());
            let to = rng.usize(from..=other.len().min(from + 400));
            drop(bytes.splice(at..at, other[from..to].iter().copied()));
        }
        11 => {
            let mut lines = lines(bytes);
            rng.shuffle(&mut lines);
            *bytes = lines.join(&b'\n');
        }
        12 => bytes.iter_mut().for_each(|byte| *byte = if *byte == b'\t' { b' ' } else { *byte }),
        _ => {
            let byte = rng.u8(..);
            let many = rng.usize(1..64);
            drop(bytes.splice(at..at, std::iter::repeat_n(byte, many)));
        }
    }
}

/// Another value between two quotes, so that XML stays well-formed and its reader is reached.
fn revalue(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let quotes: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'"').collect();
    let values = quotes.len() / 2;
    if values > 0 {
        let (at, other) = (rng.usize(..values), rng.usize(..values));
        let of = |at: usize| quotes[2 * at] + 1..quotes[2 * at + 1];
        let value = if rng.bool() { bytes[of(other)].to_vec() } else { rng.choice(NASTY).unwrap().bytes().collect() };
        let value: Vec<u8> = value.into_iter().filter(|byte| !matches!(byte, b'<' | b'&' | b'"' | 0..0x20)).collect();
        drop(bytes.splice(of(at), value));
    }
}

/// What came of the inputs of one kind.
#[derive(Debug, Default)]
struct Count {
    inputs: u64,
    read: u64,
    longest: Duration,
}

/// Processor time of this thread: on a busy machine a moment may be long.
pub(super) fn spent() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Feed so many damaged inputs to the importers, made from files of every kind or of one.
fn feed(inputs: u64, seed: u64, longest: Duration, kind: Option<&str>) -> BTreeMap<String, Count> {
    let starts = starts();
    let others: Vec<&[u8]> = starts.iter().map(|start| start.bytes.as_slice()).collect();
    let (own, real): (Vec<usize>, Vec<usize>) =
        (0..starts.len()).filter(|&at| kind.is_none_or(|kind| kind == starts[at].kind)).partition(|&at| at < SEEDS.len());
    let all: Vec<usize> = own.iter().chain(&real).copied().collect();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for at in 0..inputs {
        let mut rng = Rng::with_seed(seed.wrapping_add(at));
        // Small inputs break the same things as large ones, a hundred times faster.
        let from = if rng.u8(..4) > 0 { &own } else { &all };
        let start = &starts[*rng.choice(from).expect("a known kind")];
        let mut bytes = start.bytes.clone();
        let whole = start.kind.ends_with("XML") && rng.bool() && (bytes.len() <= WINDOW || rng.u8(..8) == 0);
        if !whole && bytes.len() > WINDOW {
            let from = rng.usize(..bytes.len() - WINDOW);
            bytes = bytes[from..from + WINDOW].to_vec();
        }
        for _ in 0..rng.usize(1..5) {
            if whole { revalue(&mut rng, &mut bytes) } else { damage(&mut rng, &mut bytes, &others) }
        }
        let text = String::from_utf8_lossy(&bytes);
        let begun = spent();
        let found = catch_unwind(|| import::hardware(&text, "damaged"));
        let took = spent().saturating_sub(begun);
        let Ok(found) = found else { panic!("input {at} of seed {seed} ({}) panicked:\n{text}", start.kind) };
        assert!(took < longest, "input {at} of seed {seed} ({}, {} bytes) took {took:?}", start.kind, bytes.len());
        let count = counts.entry(start.kind.clone()).or_default();
        count.inputs += 1;
        count.longest = count.longest.max(took);
        if let Ok(found) = found {
            count.read += 1;
            check(&found, text.len(), at);
        }
    }
    counts
}

/// What was read names only what is there, and is no larger than its text allows.
fn check(found: &import::Imported, bytes: usize, at: u64) {
    for host in &found.hosts {
        assert!(host.pci.iter().enumerate().all(|(own, device)| device.parent.is_none_or(|parent| parent < own)), "input {at}");
        let pci = |at: Option<usize>| at.is_none_or(|at| at < host.pci.len());
        assert!(host.gpus.iter().all(|gpu| pci(gpu.pci)) && host.nics.iter().all(|nic| pci(nic.pci)), "input {at}");
        let named = |device| match device {
            toposcope::topology::hardware::Device::Gpu(gpu) => gpu < host.gpus.len(),
            toposcope::topology::hardware::Device::Nic(nic) => nic < host.nics.len(),
            toposcope::topology::hardware::Device::Memory(_) => true,
        };
        assert!(host.told.iter().all(|told| named(told.from) && named(told.to)), "input {at}");
        assert!(host.gpu_links.iter().all(|link| link.gpu < host.gpus.len()), "input {at}");
        let things = host.pci.len() + host.gpus.len() + host.nics.len() + host.told.len() + host.numa.len() + host.caches.len();
        assert!(things <= bytes && host.gpu_links.len() <= 18 * bytes, "input {at}: {things} things from {bytes} bytes");
        let text = serde_json::to_string(&host.notes).unwrap();
        assert!(!text.contains("\\u00") && !text.contains('\u{1b}'), "input {at}: control characters in {text}");
    }
}

#[test]
fn damaged_inputs_are_read_or_refused() {
    let counts = feed(4_000, 1, Duration::from_secs(5), None);
    assert_eq!(counts.values().map(|count| count.inputs).sum::<u64>(), 4_000);
    // Not all is refused: the importers themselves are reached.
    assert!(counts.values().map(|count| count.read).sum::<u64>() > 1_000, "{counts:?}");
}

/// Inputs of a size that only a fault or ill will makes: each line of a seed many times, whole seeds many times, deep nests.
fn large(bytes: usize) -> Vec<String> {
    let mut inputs: Vec<String> = SEEDS.iter().map(|(_, text)| text.repeat(bytes / text.len())).collect();
    for (_, text) in SEEDS {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        for (at, line) in lines.iter().enumerate() {
            let many = format!("{line}\n").repeat(bytes / (line.len() + 1));
            inputs.push([&lines[..at].join("\n"), "\n", &many, "\n", &lines[at..].join("\n")].concat());
        }
    }
    let pci = "<pci busid=\"0000:01:00.0\" class=\"0x060400\">";
    inputs.push(format!("<system><cpu numaid=\"0\">{}</cpu></system>", pci.repeat(bytes / pci.len())));
    inputs.push(format!("<system><cpu numaid=\"0\">{}{}</cpu></system>", pci.repeat(bytes / 60), "</pci>".repeat(bytes / 60)));
    let object = "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:01:00.0\">";
    inputs.push(format!("<topology>{}{}</topology>", object.repeat(bytes / 80), "</object>".repeat(bytes / 80)));
    inputs.push("<".repeat(bytes));
    inputs.push("<system ".repeat(bytes / 8));
    inputs.push("GPU0\t".repeat(bytes / 5));
    inputs.push("X".repeat(bytes));
    inputs.push(format!("GPU0 GPU1\nGPU0 {}\n", "SYS".repeat(bytes / 3)));
    let mut circle = String::new();
    for at in 0..bytes / 40 {
        let (bus, device, below) = (at / 32 % 256, at % 32, (at / 32 + 1) % 256);
        writeln!(circle, "{bus:02x}:{device:02x}.0 PCI bridge: x\n\tBus: primary=00, secondary={below:02x}").unwrap();
    }
    inputs.push(circle);
    inputs
}

#[test]
fn large_inputs_take_time_in_proportion() {
    for (at, text) in large(60_000).into_iter().enumerate() {
        let begun = spent();
        if let Ok(found) = import::hardware(&text, "large") {
            check(&found, text.len(), at as u64);
        }
        let took = spent().saturating_sub(begun);
        assert!(took < Duration::from_secs(8), "input {at}, {:?}..., took {took:?}", text.chars().take(60).collect::<String>());
    }
}

#[test]
#[ignore = "a minute in a release build"]
fn megabytes_take_seconds() {
    for (at, text) in large(4_000_000).into_iter().enumerate() {
        let begun = spent();
        let read = import::hardware(&text, "large").is_ok();
        let took = spent().saturating_sub(begun);
        let start: String = text.chars().take(50).collect();
        println!("{at}: {took:?}, {} bytes, read {read}, {start:?}", text.len());
        assert!(took < Duration::from_secs(20));
    }
}

#[test]
#[ignore = "minutes to hours"]
fn very_many_damaged_inputs_are_read_or_refused() {
    let number = |name: &str, other: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(other);
    let begun = Instant::now();
    let kind = std::env::var("TOPOSCOPE_KIND").ok();
    let counts = feed(number("TOPOSCOPE_DAMAGED", 10_000_000), number("TOPOSCOPE_SEED", 1), Duration::from_secs(2), kind.as_deref());
    for (kind, Count { inputs, read, longest }) in &counts {
        println!("{kind}: {inputs} inputs, {read} read, longest {longest:?}");
    }
    let most = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = most.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!("{:?} in all; {most}", begun.elapsed());
    let kib: u64 = most.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default();
    assert!(kib < 1 << 20, "{most}");
}
