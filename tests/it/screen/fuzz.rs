//! Random keys, mouse, pastes and resizes against a live simulated session: nothing ends it, nothing leaks, the terminal is whole after it.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use super::{drawing, start, started_sweep};
use crate::place::{Place, until};

/// Bursts of inputs, each with a resize and a frame after it. `TOPOSCOPE_FUZZ_BURSTS=12000` is about ten minutes of the debug build.
const BURSTS: usize = 24;
/// Inputs of a burst.
const INPUTS: usize = 40;
/// From so many bursts on the program has seen all that it keeps, so that more memory would be a leak.
const LONG: usize = 600;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Reports that were asked for are written to their end before the program is gone.
const LEAVING: Duration = Duration::from_secs(300);

/// Memory of a process that is in use, KiB (proc(5): `VmRSS`).
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Value that this share of them is below.
fn quantile(values: &[u64], share: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() as f64 * share) as usize]
}

/// One input as a terminal sends it; none of those that leave.
fn input(rng: &mut fastrand::Rng, (columns, rows): (u16, u16)) -> String {
    const NAMED: [&str; 22] = [
        "\x1b[A",
        "\x1b[B",
        "\x1b[C",
        "\x1b[D",
        "\x1b[H",
        "\x1b[F",
        "\x1b[5~",
        "\x1b[6~",
        "\x1b[3~",
        "\x1b[15~",
        "\x1bOP",
        "\x1b[Z",
        "\t",
        "\r",
        "\x1b",
        "\x7f",
        "\x1b[1;5A",
        "\x1b[1;2D",
        "\x1b[I",
        "\x1b[O",
        "\x1b[999;999;999;999z",
        "\x1b[?",
    ];
    match rng.u8(0..100) {
        // A whole report is megabytes: now and then is enough.
        0..50 => match rng.char(' '..='~') {
            'q' => "3".to_owned(),
            'W' if rng.u8(0..40) > 0 => "m".to_owned(),
            key => key.to_string(),
        },
        50..55 => char::from(rng.u8(1..27)).to_string().replace('\x03', "\t"),
        55..72 => rng.choice(NAMED).unwrap().to_string(),
        72..94 => {
            // Somewhat beyond the edges, too.
            let at = (rng.u16(1..=columns + 3), rng.u16(1..=rows + 3));
            let button = *rng.choice(&[0, 0, 0, 1, 2, 32, 35, 35, 64, 65, 66, 68, 80, 255]).unwrap();
            format!("\x1b[<{button};{};{}{}", at.0, at.1, if rng.bool() { 'M' } else { 'm' })
        }
        94..97 => {
            let mut pasted = "\x1b[200~".to_owned();
            (0..rng.usize(0..200)).for_each(|_| pasted.push(rng.char('\u{1}'..'\u{2fff}')));
            pasted.replace(['q', '\x03', '\x1b'], "x").replacen('x', "\x1b", 1) + "\x1b[201~"
        }
        _ => rng.char('\u{a0}'..).to_string(),
    }
}

#[test]
fn random_keys_mouse_and_resizes_end_nothing_and_leak_nothing() {
    let (bursts, seed) = (number("TOPOSCOPE_FUZZ_BURSTS", BURSTS), number("TOPOSCOPE_FUZZ_SEED", 8) as u64);
    let mut rng = fastrand::Rng::with_seed(seed);
    let place = Place::new();
    let arguments = ["--engine", "sim", "--fabric", "nvswitch-32x8", "--ranks", "128", "--sizes", "1MiB", "--repeats", "6"];
    // What the allocator keeps of freed memory grows with the mix of sizes and is no leak: it gives it back (mallopt(3)).
    let gives_back = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")];
    let variables = [&[("COLORTERM", "truecolor")], &gives_back[..]].concat();
    let mut term = start(&place, &arguments, &variables);
    let pid = drawing(&place);
    started_sweep(&mut term);
    term.see("✓ complete");
    let mut size = (120, 40);
    let mut memory = Vec::with_capacity(bursts);
    let mut last = String::new();
    for burst in 0..bursts {
        let keys: String = (0..INPUTS).map(|_| input(&mut rng, size)).collect();
        let before = term.sent();
        term.press(&keys);
        size = match rng.u8(0..10) {
            0 => (rng.u16(1..30), rng.u16(1..8)),
            1 => (rng.u16(200..300), rng.u16(60..90)),
            _ => (rng.u16(20..200), rng.u16(5..60)),
        };
        term.resize(size);
        last.clear();
        let _ = write!(last, "seed {seed}, burst {burst}: {keys:?}, then {size:?}");
        // The program has left if it is neither drawing nor there.
        until(super::term::SOON, "a frame, or the end", || last.clone(), || term.sent() > before || resident(pid) == 0);
        assert!(resident(pid) > 0, "it has ended: {last}\n{}", term.text());
        memory.push(resident(pid));
    }
    let each = |share: f64| memory.chunks(bursts.div_ceil(4)).map(|part| quantile(part, share)).collect::<Vec<u64>>();
    let (lowest, middle) = (each(0.1), each(0.5));
    println!(
        "{bursts} bursts, seed {seed}: resident, KiB, of each quarter the least tenth is below {lowest:?}, half of it below {middle:?}"
    );
    // A sequence that the last burst left open ends, for crossterm not before a `u` or a `c`. Whatever lies on top goes, and the question
    // whether to leave is answered; an escape and a key at once would be another key.
    for (at, keys) in ["u", "c", "\x1b", "\x1b", "\x1b", "\x1b", "q", "y"].iter().cycle().take(60).enumerate() {
        if resident(pid) == 0 {
            break;
        }
        let before = term.sent();
        term.press(keys);
        term.resize((120, 40 + u16::from(at % 2 == 0)));
        until(LEAVING, "a frame, or the end", || last.clone(), || term.sent() > before || resident(pid) == 0);
    }
    assert!(!String::from_utf8_lossy(&term.bytes()).contains("panicked"), "{last}");
    term.left_whole(0);
    place.nothing_runs();
    // What is looked at takes more or less; what leaks is held whatever is looked at. The first quarter fills what is kept.
    assert!(bursts < LONG || lowest[3] * 100 <= lowest[1] * 105, "{lowest:?}, {middle:?}");
}
