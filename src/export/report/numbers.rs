//! The numbers of a report as one JSON document: what its page draws matrices from, and what a program reads out of it.
//!
//! Bounded: a table holds what was measured of every pair in one pattern at one size, and so many tables are in it as a page can
//! hold. What was left out is said in words.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::diagnose::{Diagnosis, Finding, Measured, Severity};
use crate::fit::{Fits, median_interval};
use crate::matrix::{Domain, Metric, Scale, Value};
use crate::ramp::{Level, Map, Ramp, Rgb, State, state_rgb};
use crate::sample::{Pattern, Status};
use crate::session::{Model, SizeCell};
use crate::sweep::Cell;
use crate::units::{format_count, format_size, plain, plain_json};

/// Format of the document.
pub const FORMAT: &str = "toposcope.report/1";
/// Ranks up to which every sample and every fit is in it, and numbers are exact.
const EXACT: usize = 64;
/// Numbers of tables at most: two tables of 1,024 ranks.
const VALUES: usize = 2_200_000;
/// Samples of exact reports at most.
const SAMPLES: u64 = 400_000;
/// Pairs of a finding that are told at most, and of each piece of its evidence.
const CELLS: usize = 4096;
const EVIDENCE: usize = 256;
/// Steps of a colour map.
const STEPS: usize = 128;

/// One pattern at one size, row by row: the sender's row, the receiver's column. On the diagonal of `peer` are a rank's own copies.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    pub pattern: &'static str,
    /// of one message
    pub bytes: u64,
    /// median time of a message, µs; null without a good repeat
    pub us: Vec<f64>,
    /// half of its 95 % interval, percent of it; null below 6 repeats
    pub spread: Vec<f64>,
    /// good repeats behind it
    pub n: Vec<u32>,
    /// one letter a pair: `.` good, `-` not measured, `w` waived, `t` timeout, `c` corrupt
    pub state: String,
    /// by metric: the values between which its colours are spread, and how
    pub domains: Domains,
}

/// Least and most of each metric, and how colours are spread between them.
type Domains = BTreeMap<&'static str, (f64, f64, &'static str)>;

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Numbers {
    #[serde(flatten)]
    about: Json,
    /// index in `classes` of each pair, row by row; empty where nothing tells
    class_of: Vec<Option<u16>>,
    expected: Expected,
    pub tables: Vec<Table>,
}

/// What the hardware between two ranks should give: the rates that there are, and which of them a pair has.
#[derive(Debug, Clone, Serialize)]
struct Expected {
    bytes_per_second: Vec<f64>,
    of: Vec<Option<u32>>,
}

/// So many digits are enough where a million numbers stand.
fn short(value: f64, exact: bool) -> f64 {
    if exact || !value.is_finite() || value == 0.0 {
        return value;
    }
    let digits = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * digits).round() / digits
}

fn letter(size: Option<&SizeCell>) -> char {
    match size.map(|size| (size.status, size.count)) {
        None | Some((Status::Ok, 0)) => '-',
        Some((Status::Ok, _)) => '.',
        Some((Status::Waived, _)) => 'w',
        Some((Status::Timeout, _)) => 't',
        Some((Status::Corrupt, _)) => 'c',
    }
}

/// The document, and what it leaves out, in sentences.
pub fn numbers(model: &Model, measured: &Measured, diagnosis: &Diagnosis, fits: &Fits) -> (Numbers, Vec<String>) {
    let world = model.world();
    let exact = world <= EXACT;
    let mut left_out = Vec::new();
    let tables = tables(model, measured, exact, &mut left_out);
    let samples = if exact && model.samples() <= SAMPLES {
        samples(model)
    } else {
        left_out.push(format!(
            "{} single samples: of each pair its median, its interval and its number of repeats are here; the samples are in the session \
             (toposcope export SESSION --format calibration)",
            format_count(model.samples())
        ));
        Vec::new()
    };
    if !exact {
        left_out.push("digits after the fifth".to_owned());
    }
    if fits.classes.iter().any(|fit| fit.intervals.is_none()) && world > EXACT {
        left_out.push("intervals of fits (toposcope export SESSION --format fits)".to_owned());
    }
    let single = if exact { fits.single.len() } else { 0 };
    if single < fits.single.len() {
        let left = format_count(fits.single.len() as u64);
        left_out.push(format!("{left} fits of single pairs, ranks and fans (toposcope export SESSION --format fits)"));
    }
    if !exact && !fits.fans.is_empty() {
        left_out.push("rates of fans (toposcope export SESSION --format csv)".to_owned());
    }
    let findings = findings(&diagnosis.findings, &mut left_out);
    let header = &model.header;
    let classes: Vec<String> = measured.classes.iter().map(crate::diagnose::PairClass::name).collect();
    let mut about = json!({
        "format": FORMAT,
        "program": header.program,
        "name": header.name,
        "started": header.started,
        "engine": header.engine.name(),
        "settings": model.sweep.as_ref().map_or(&header.settings, |sweep| &sweep.settings),
        "software": header.software,
        "environment": header.environment,
        "group": header.group,
        "ranks": world,
        "hosts": header.topology.hosts(),
        "host_of": header.topology.node_of(),
        "lost": measured.lost,
        "bytes": measured.bytes,
        "sizes": measured.sizes,
        "classes": classes,
        "samples": samples,
        "fits": fits.classes.iter().chain(&fits.single[..single]).collect::<Vec<_>>(),
        "fans": fits.fans.iter().take(if exact { usize::MAX } else { 0 }).collect::<Vec<_>>(),
        "findings": findings,
        "silenced": diagnosis.silenced,
        "marks": marks(measured, &findings),
        "looks": looks(),
        "left_out": left_out,
    });
    plain_json(&mut about);
    let class_of = per_pair(world, |from, to| measured.peer.get(from, to).map(|pair| pair.class));
    (Numbers { about, class_of, expected: expected(measured), tables }, left_out)
}

/// Findings with as many of their pairs as a page can hold.
fn findings(all: &[Finding], left_out: &mut Vec<String>) -> Vec<Finding> {
    let mut cut = false;
    let mut shorten = |pairs: &mut Vec<(usize, usize)>, most| {
        cut |= pairs.len() > most;
        pairs.truncate(most);
    };
    let mut findings = all.to_vec();
    for finding in &mut findings {
        shorten(&mut finding.cells, CELLS);
        finding.facts.iter_mut().for_each(|fact| shorten(&mut fact.pairs, EVIDENCE));
    }
    if cut {
        left_out.push(format!(
            "pairs of findings after the {CELLS}th, and of their evidence after the {EVIDENCE}th (toposcope diagnose SESSION --json)"
        ));
    }
    findings
}

/// Which pairs are framed: of a finding, its pairs. Of one that is about a third of all or more, the first for all of them: a frame
/// around everything tells nothing. Notes only where nothing is graver.
fn marks(measured: &Measured, findings: &[Finding]) -> Vec<(usize, usize, usize)> {
    let grave = findings.iter().any(|finding| finding.severity > Severity::Note);
    let own = (0..).zip(findings).filter(|(_, finding)| !grave || finding.severity > Severity::Note);
    own.flat_map(|(number, finding)| {
        let whole = finding.cells.len() * 3 > measured.peer.len();
        let shown = if whole { 1 } else { finding.cells.len() };
        finding.cells.iter().take(shown).map(move |&(from, to)| (number, from, to))
    })
    .collect()
}

/// The document as a page's script element may hold it: no letter that could end the element or be taken for markup.
pub fn in_script(numbers: &Numbers) -> String {
    let text = serde_json::to_string(numbers).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            letter => out.push(letter),
        }
    }
    out
}

/// A number of each pair, row by row; null where there is none. Empty where there is none at all.
fn per_pair<T>(world: usize, of: impl Fn(usize, usize) -> Option<T>) -> Vec<Option<T>> {
    let all: Vec<Option<T>> = (0..world).flat_map(|from| (0..world).map(move |to| (from, to))).map(|(from, to)| of(from, to)).collect();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

fn expected(measured: &Measured) -> Expected {
    let mut rates: Vec<f64> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for pair in measured.peer.iter().filter(|pair| pair.expected.is_finite()) {
        known.entry(pair.expected.to_bits()).or_insert_with(|| {
            rates.push(pair.expected);
            rates.len() as u32 - 1
        });
    }
    let of = |from, to| measured.peer.get(from, to).and_then(|pair| known.get(&pair.expected.to_bits()).copied());
    let of = per_pair(measured.world(), of);
    Expected { bytes_per_second: rates, of }
}

/// Which patterns and sizes have a table, the most telling first.
fn tables(model: &Model, measured: &Measured, exact: bool, left_out: &mut Vec<String>) -> Vec<Table> {
    let world = model.world();
    let mut wanted: Vec<(Pattern, u64)> = Vec::new();
    let has = |pattern: Pattern| model.cells.iter().any(|(cell, _)| cell.pattern == pattern);
    let patterns: Vec<Pattern> = [Pattern::Peer, Pattern::Duplex]
        .into_iter()
        .filter(|&pattern| has(pattern) || pattern == Pattern::Peer && has(Pattern::Local))
        .collect();
    let mut add = |pattern, bytes| {
        if patterns.contains(&pattern) && !wanted.contains(&(pattern, bytes)) && measured.sizes.contains(&bytes) {
            wanted.push((pattern, bytes));
        }
    };
    add(Pattern::Peer, measured.bytes);
    add(Pattern::Peer, measured.small_bytes);
    add(Pattern::Duplex, measured.bytes);
    for &bytes in measured.sizes.iter().rev() {
        add(Pattern::Peer, bytes);
        add(Pattern::Duplex, bytes);
    }
    let most = (VALUES / (world * world).max(1)).max(1);
    if wanted.len() > most {
        let left: Vec<String> =
            wanted[most..].iter().map(|(pattern, bytes)| format!("{} {}", pattern.name(), format_size(*bytes))).collect();
        left_out.push(format!("tables of {} (toposcope export SESSION --format csv)", left.join(", ")));
        wanted.truncate(most);
    }
    wanted.sort_by_key(|&(pattern, bytes)| (pattern != Pattern::Peer, bytes));
    let mut made: Vec<Table> = wanted.iter().map(|&(pattern, bytes)| table(model, pattern, bytes, exact)).collect();
    for at in 0..made.len() {
        let peer = made.iter().position(|other| other.pattern == "peer" && other.bytes == made[at].bytes);
        let duplex = made.iter().position(|other| other.pattern == "duplex" && other.bytes == made[at].bytes);
        let domains = domains(&made[at], peer.zip(duplex).map(|(peer, duplex)| (&made[peer], &made[duplex])), measured);
        made[at].domains = domains;
    }
    made
}

fn table(model: &Model, pattern: Pattern, bytes: u64, exact: bool) -> Table {
    let world = model.world();
    let (us, spread, n, state) = (Vec::new(), Vec::new(), Vec::new(), String::new());
    let mut table = Table { pattern: pattern.name(), bytes, us, spread, n, state, domains: Domains::new() };
    for from in 0..world {
        for to in 0..world {
            let own = if from == to && pattern == Pattern::Peer { Pattern::Local } else { pattern };
            let size = model.cells.get(Cell { pattern: own, from, to }, bytes);
            let times = size.map(SizeCell::times).unwrap_or_default();
            let median = size.filter(|size| size.count > 0).map_or(f64::NAN, |size| size.median);
            let half = median_interval(&times, 0.95).map_or(f64::NAN, |own| (own.high - own.low) / 2.0 / median * 100.0);
            table.us.push(short(median * 1e6, exact));
            table.spread.push(if exact { half } else { (half * 10.0).round() / 10.0 });
            table.n.push(times.len() as u32);
            table.state.push(letter(size));
        }
    }
    table
}

/// Between which values a metric's colours are spread, as on the screen.
fn domains(own: &Table, both: Option<(&Table, &Table)>, measured: &Measured) -> Domains {
    let world = measured.world();
    let rate = |table: &Table, at: usize| {
        if table.state.as_bytes().get(at) == Some(&b'.') { table.bytes as f64 / table.us[at] * 1e6 } else { f64::NAN }
    };
    let pairs = || (0..world).flat_map(|from| (0..world).filter(move |&to| to != from).map(move |to| (from, to)));
    let value = |metric: Metric, from: usize, to: usize| {
        let at = from * world + to;
        match metric {
            Metric::Bandwidth => rate(own, at),
            Metric::SmallTime => own.us[at] / 1e6,
            Metric::Spread => own.spread[at] / 100.0,
            Metric::ShareOfExpected => rate(own, at) / measured.peer.get(from, to).map_or(f64::NAN, |pair| pair.expected),
            Metric::Asymmetry => {
                let known = |rate: f64| if rate.is_finite() { Value::Known(rate) } else { Value::Missing };
                Value::asymmetry(known(rate(own, at)), known(rate(own, to * world + from))).known().unwrap_or(f64::NAN)
            }
            Metric::DuplexRatio => both.map_or(f64::NAN, |(peer, duplex)| rate(duplex, at) / rate(peer, at)),
            Metric::Change => f64::NAN,
        }
    };
    let mut all = Domains::new();
    for metric in Metric::ALL {
        let mut values: Vec<f64> = pairs().map(|(from, to)| value(metric, from, to)).filter(|&value| metric.accepts(value)).collect();
        if let Some(domain) = Domain::robust(metric, &mut values) {
            let scale = match domain.scale {
                Scale::Linear => "linear",
                Scale::Log => "log",
                Scale::Symmetric => "symmetric",
            };
            all.insert(key(metric), (domain.lo, domain.hi, scale));
        }
    }
    all
}

/// The name of a metric in the document.
const fn key(metric: Metric) -> &'static str {
    match metric {
        Metric::Bandwidth => "bandwidth",
        Metric::ShareOfExpected => "share",
        Metric::SmallTime => "time",
        Metric::Asymmetry => "asymmetry",
        Metric::DuplexRatio => "duplex",
        Metric::Spread => "spread",
        Metric::Change => "change",
    }
}

/// Good samples of the newest take: seconds of a message, in the order in which they came; those of pairs, then those of fans, relays and
/// sets of a pattern file.
fn samples(model: &Model) -> Vec<Json> {
    let mut cells: Vec<(Cell, &[SizeCell])> = model.cells.iter().collect();
    cells.sort_by_key(|(cell, _)| (cell.pattern.name(), cell.from, cell.to));
    let one = |cell: Cell, size: &SizeCell| json!({"pattern": cell.pattern.name(), "from": cell.from, "to": cell.to, "bytes": size.bytes, "seconds": size.times()});
    let mut all: Vec<Json> = cells.into_iter().flat_map(|(cell, sizes)| sizes.iter().map(move |size| one(cell, size))).collect();
    for (group, sizes) in model.groups.iter() {
        for size in sizes {
            for (from, to) in size.flows() {
                let own =
                    size.shots.iter().filter(|own| (own.from, own.to) == (from, to) && own.shot.take == size.take && !own.shot.warmup);
                let seconds: Vec<f64> = own.filter_map(|own| own.shot.seconds_per_message()).collect();
                all.push(json!({
                    "pattern": group.pattern.name(), "from": from, "to": to, "bytes": size.bytes, "root": group.root, "peers": group.peers,
                    "shift": group.shift, "set": group.set, "seconds": seconds,
                }));
            }
        }
    }
    all
}

/// Colours of both maps and of the states, on a light and on a dark ground.
fn looks() -> Json {
    let hex = |Rgb(r, g, b): Rgb| format!("#{r:02x}{g:02x}{b:02x}");
    let map = |map| Ramp::new(map, Level::TrueColor).legend(STEPS).iter().filter_map(crate::ramp::Shade::rgb).map(hex).collect::<Vec<_>>();
    let states: Vec<Json> = [('-', State::Missing), ('w', State::Waived), ('t', State::Timeout), ('c', State::Corrupt)]
        .into_iter()
        .map(|(letter, state)| {
            json!({
                "letter": letter,
                "glyph": state.glyph(),
                "name": state.name(),
                "light": hex(state_rgb(state, false)),
                "dark": hex(state_rgb(state, true)),
            })
        })
        .collect();
    json!({"sequential": map(Map::Sequential), "diverging": map(Map::Diverging), "states": states})
}

/// What the page is called.
pub fn title(model: &Model) -> String {
    format!("toposcope: {}", plain(&model.header.name))
}
