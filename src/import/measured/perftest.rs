//! perftest (`ib_write_bw` and the like), as text and as JSON (`--out_json`). MB and MiB are both 2^20 bytes, Gb are 1e9 bits
//! (`src/perftest_parameters.c`: `format_factor`). The client sends, or reads from the server. A bidirectional rate is the sum of both.

use serde_json::{Map, Value};

use super::rows::{MIB, Step, block, both, end, misshapen, size, timed, value};
use super::{SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern};

/// Bytes of 1 Gb.
const GIGABIT: f64 = 1.25e8;

/// What a test does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kind {
    latency: bool,
    both: bool,
    reads: bool,
}

impl Kind {
    fn of(title: &str) -> Self {
        let lower = title.to_ascii_lowercase();
        Self {
            latency: lower.contains("latency"),
            both: lower.contains("bidirectional"),
            reads: lower.contains("read") || lower.contains("atomic"),
        }
    }
}

/// One side's report.
#[derive(Default)]
struct Report {
    line: usize,
    /// none where the title was lost
    title: Option<String>,
    device: Option<String>,
    memory: Memory,
    qps: Option<u64>,
    /// queue pair and packet number here and there
    local: Option<(String, String)>,
    remote: Option<(String, String)>,
    /// unit, and columns of the number that is read and of the sizes' words
    header: Option<Header>,
    rows: Vec<(u64, f64)>,
}

#[derive(Clone, Copy, PartialEq)]
struct Header {
    /// bytes/s of 1 of the unit; none for times in µs
    unit: Option<f64>,
    /// word of a row that is read
    column: usize,
    words: usize,
}

/// `RDMA_Write BW Test`, `Send Bidirectional Post List BW Test`, `RDMA_Read Latency Test`.
fn is_title(text: &str) -> bool {
    let starts = ["RDMA_Write", "RDMA_Read", "Send", "SEND", "Atomic", "Write", "Read"].iter().any(|start| text.starts_with(start));
    starts && text.len() < 80 && text.ends_with(" Test") && (text.contains("BW ") || text.contains("Latency "))
}

fn header(text: &str) -> Option<Header> {
    if !text.starts_with("#bytes") {
        return None;
    }
    let quality = usize::from(text.contains("#sl"));
    if text.contains("BW average[") {
        let unit = if text.contains("average[Gb/sec]") { GIGABIT } else { MIB };
        let ports = if text.contains("BW Port1") { 4 } else { 0 };
        let used = usize::from(text.contains("CPU_Util"));
        return Some(Header { unit: Some(unit), column: 3 + quality, words: 5 + quality + ports + used });
    }
    let used = usize::from(text.contains("CPU_Util"));
    if text.contains("t_typical[usec]") {
        // Percentiles came later.
        let more = text.matches("percentile[usec]").count()
            + usize::from(text.contains("t_avg[usec]"))
            + usize::from(text.contains("t_stdev[usec]"));
        return Some(Header { unit: None, column: 4, words: 5 + more + used });
    }
    text.contains("t_avg[usec]").then_some(Header { unit: None, column: 2, words: 4 + used })
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    if text.starts_with("\"test_info\"") {
        return Some(loose(lines, skips));
    }
    if !is_title(text) && header(text).is_none() {
        return None;
    }
    let mut reports: Vec<Report> = Vec::new();
    let used = block(lines, skips, |line, skips| step(&mut reports, line, skips));
    Some((tables(reports, skips), used))
}

fn step(reports: &mut Vec<Report>, line: Line<'_>, skips: &mut Skips) -> Step {
    let text = line.text.trim();
    let titled = is_title(text);
    let columns = header(text);
    if titled || columns.is_some() && reports.last().is_none_or(|report| report.header.is_some()) {
        reports.push(Report { line: line.number, title: titled.then(|| named(text)), ..Report::default() });
    }
    let Some(report) = reports.last_mut() else { return Step::Strange };
    if titled {
        return Step::Mine;
    }
    if columns.is_some() {
        report.header = columns;
        return Step::Mine;
    }
    if text.starts_with("---") || text.starts_with("***") || text.starts_with("* Waiting") {
        return Step::Mine;
    }
    let pair = |text: &str| Some((word(text, "QPN")?.to_owned(), word(text, "PSN")?.to_owned()));
    if text.starts_with("local address") {
        report.local = report.local.take().or_else(|| pair(text));
    } else if text.starts_with("remote address") {
        report.remote = report.remote.take().or_else(|| pair(text));
    } else if text.starts_with("Dual-port") {
        report.device = value(text, "Device").map(named);
    } else if text.starts_with("Number of qps") {
        report.qps = value(text, "Number of qps").and_then(size);
    } else if text.contains("CUDA memory") && text.contains(": ON")
        || text.contains("ROCm memory") && text.contains(": ON")
        || text.contains("GPU memory")
    {
        report.memory = Memory::Cuda;
    } else if report.header.is_none() && (text.contains(" : ") || text.contains(": ") || text.contains("\t :")) || text.starts_with("GID:")
    {
    } else if let (Some(bytes), Some(header)) = (text.split_whitespace().next().and_then(size), report.header) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = words.get(header.column).and_then(|word| amount(word)).filter(|_| words.len() == header.words);
        match number {
            Some(number) => report.rows.push((bytes, header.unit.map_or(number * 1e-6, |unit| number * unit))),
            None => skips.push(line.number, misshapen(text, header.words)),
        }
    } else {
        return Step::Strange;
    }
    Step::Mine
}

/// The word behind another.
fn word<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.split_whitespace().skip_while(|word| *word != before).nth(1)
}

fn tables(reports: Vec<Report>, skips: &mut Skips) -> Vec<Table> {
    let mut found: Vec<(Report, Table)> = Vec::new();
    for report in reports {
        if report.rows.is_empty() {
            skips.push(report.line, "perftest printed no results here");
            continue;
        }
        // The server may print what the client tells it: the addresses are those of the other side, and so are the numbers.
        let twin = found.last().filter(|(other, _)| {
            report.local.is_some() && report.local == other.remote && report.remote == other.local && report.rows == other.rows
        });
        if let Some((other, _)) = twin {
            skips.push(report.line, format!("the other side's report of the test in line {}, with the same numbers", other.line));
            continue;
        }
        let table = table(&report, skips);
        if skips.takes(report.line, table.weight()) {
            found.push((report, table));
        }
    }
    found.into_iter().map(|(_, table)| table).collect()
}

fn table(report: &Report, skips: &mut Skips) -> Table {
    let times = report.header.is_some_and(|header| header.unit.is_none());
    let title = report.title.as_deref().unwrap_or(if times { "Latency Test" } else { "BW Test" });
    let kind = Kind { latency: times, ..Kind::of(title) };
    let unit = match report.header.and_then(|header| header.unit) {
        None => "µs",
        Some(GIGABIT) => "Gb/s (1e9 bits)",
        Some(_) => "MB/s (2^20 bytes)",
    };
    let mut notes = Vec::new();
    notes.extend(report.device.as_ref().map(|device| format!("device {device}")));
    notes.extend(report.qps.filter(|qps| *qps > 1).map(|qps| format!("{qps} queue pairs")));
    if report.title.is_none() {
        notes.push("the title is not there: which way bytes go is a guess".to_owned());
    }
    let mut table = blank(title, report.line, unit, kind, notes);
    table.memory = report.memory;
    for &(bytes, number) in &report.rows {
        put(&mut table, kind, (bytes, number), skips);
    }
    table
}

fn blank(test: &str, line: usize, unit: &'static str, kind: Kind, mut notes: Vec<String>) -> Table {
    if kind.latency {
        let half = "half of a round trip: the mean of both directions; the median of the repeats, or their mean where it alone is told";
        notes.push(if kind.reads { "from the request to the answer: the median of the repeats" } else { half }.to_owned());
    } else {
        notes.push("the mean rate; the peak, of the best part of the run, is left out".to_owned());
    }
    if kind.both {
        notes.push("the sum of both directions, half of it for each".to_owned());
    }
    Table {
        tool: Tool::Perftest,
        test: named(test),
        version: None,
        line,
        unit,
        orientation: match kind {
            Kind { both: true, latency: false, .. } => "both ways at the same time",
            Kind { reads: true, .. } => "the client reads from the server",
            Kind { latency: true, .. } => "there and back, between client and server",
            _ => "the client sends to the server",
        },
        size_from: SizeFrom::Told,
        memory: Memory::Host,
        ends: vec![end("client"), end("server")],
        samples: Vec::new(),
        collectives: Vec::new(),
        notes,
    }
}

/// A row: bytes, and seconds or bytes/s.
fn put(table: &mut Table, kind: Kind, (bytes, number): (u64, f64), skips: &mut Skips) {
    if bytes == 0 {
        return;
    }
    let seconds = if kind.latency { number } else { bytes as f64 / number };
    if kind.both && !kind.latency {
        both(table, bytes, seconds * 2.0, table.line, skips);
    } else {
        let sample = timed(&table.ends, Pattern::Peer, if kind.reads { (1, 0) } else { (0, 1) }, bytes, seconds);
        table.put(sample, table.line, skips);
    }
}

pub(super) fn json(root: &Value, skips: &mut Skips) -> Option<Vec<Table>> {
    let (info, results) = (root.get("test_info")?.as_object()?, root.get("results")?.as_object()?);
    Some(told(info, results, 1, skips).into_iter().collect())
}

/// The file as perftest writes it, which is no JSON where a service level is in it (`sl: 3,`).
fn loose(lines: &[Line<'_>], skips: &mut Skips) -> (Vec<Table>, usize) {
    let (mut info, mut results) = (Map::new(), Map::new());
    let (mut inside, mut closed) = (false, false);
    let start = lines[0].number;
    let used = block(lines, skips, |line, _| {
        let text = line.text.trim().trim_end_matches(',');
        let (key, value) = text.split_once(':').unwrap_or((text, ""));
        let (key, value) = (key.trim().trim_matches('"'), value.trim());
        match text {
            _ if closed || key == "test_info" && line.number > start => return Step::End,
            "}" => closed = inside,
            "{" | "" => {}
            _ if key == "results" => inside = true,
            _ if value.is_empty() => return Step::Strange,
            _ => {
                let value = value.parse::<f64>().map_or_else(|_| Value::from(value.trim_matches('"')), Value::from);
                // Nothing that is read has a longer list.
                let part = if inside { &mut results } else { &mut info };
                if part.len() < 200 {
                    part.insert(key.to_owned(), value);
                }
            }
        }
        Step::Mine
    });
    (told(&info, &results, start, skips).into_iter().collect(), used)
}

fn told(info: &Map<String, Value>, results: &Map<String, Value>, line: usize, skips: &mut Skips) -> Option<Table> {
    let number = |key: &str| results.get(key).and_then(Value::as_f64).filter(|number| number.is_finite() && *number >= 0.0);
    let text = |key: &str| info.get(key).and_then(Value::as_str).map(named);
    let title = text("test").unwrap_or_default().replace('_', " ");
    let time = number("t_typical").or_else(|| number("t_avg"));
    let kind = Kind { latency: time.is_some(), ..Kind::of(&title) };
    let bytes = number("MsgSize").filter(|bytes| (1.0..1e15).contains(bytes)).map(|bytes| bytes as u64);
    let (Some(bytes), Some(found)) = (bytes, time.or_else(|| number("BW_average"))) else {
        let why = if bytes.is_none() { "no MsgSize: a rate without its size" } else { "neither BW_average nor t_typical" };
        skips
            .push(line, format!("perftest's results have {why}; found {}", shown(&results.keys().cloned().collect::<Vec<_>>().join(", "))));
        return None;
    };
    let mut notes = Vec::new();
    notes.extend(text("Device").map(|device| format!("device {device}")));
    let qps = info.get("Number_of_qps").and_then(Value::as_u64).filter(|qps| *qps > 1);
    notes.extend(qps.map(|qps| format!("{qps} queue pairs")));
    let unit = if kind.latency { Some(1e-6) } else { unit(bytes, found, number("MsgRate"), &mut notes) };
    let name = match unit {
        _ if kind.latency => "µs",
        Some(GIGABIT) => "Gb/s (1e9 bits)",
        _ => "MB/s (2^20 bytes)",
    };
    let mut table = blank(&title, line, name, kind, notes);
    if info.contains_key("cuda_device") || text("Use_ROCm_memory").as_deref() == Some("ON") {
        table.memory = Memory::Cuda;
    }
    put(&mut table, kind, (bytes, found * unit.unwrap_or(MIB)), skips);
    skips.takes(line, table.weight()).then_some(table)
}

/// Which unit a rate has, which the JSON does not say: the one by which bytes and messages (millions a second) agree.
fn unit(bytes: u64, rate: f64, messages: Option<f64>, notes: &mut Vec<String>) -> Option<f64> {
    let factor = messages.map(|messages| messages * 1e6 * bytes as f64 / rate);
    let near = |unit: f64| factor.is_some_and(|factor| (factor / unit - 1.0).abs() < 0.2);
    let found = [MIB, GIGABIT].into_iter().find(|unit| near(*unit));
    notes.push(
        if found.is_some() {
            "the unit is not told: it is the one by which rates of bytes and of messages agree"
        } else {
            "the unit is not told, nor can it be worked out: taken as MB of 2^20 bytes, which it is without --report_gbits"
        }
        .to_owned(),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;

    const BOTH_SIDES: &str = "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 2\t\tTransport type : IB\n\
        \x20TX depth        : 128\n---------------------------------------------------------------------------------------\n\
        \x20local address: LID 0x01 QPN 0x0a PSN 0x0b RKey 0x1 VAddr 0x2\n remote address: LID 0x01 QPN 0x0c PSN 0x0d RKey 0x1 VAddr 0x2\n\
        \x20#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 8388608    20000            24056.74            24000.00\t\t   0.003000\n\
        \x208388608    20000            24056.74            x\t\t   0.003000\n* Waiting for client to connect... *\n---\n                    RDMA_Write BW Test\n\
        \x20local address: LID 0x01 QPN 0x0c PSN 0x0d RKey 0x1 VAddr 0x2\n remote address: LID 0x01 QPN 0x0a PSN 0x0b RKey 0x1 VAddr 0x2\n\
        \x20#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 8388608    20000            24056.74            24000.00\t\t   0.003000\n";

    #[test]
    fn the_mean_rate_is_read_once_of_both_sides() {
        let (found, skipped) = tables(read, BOTH_SIDES);
        assert_eq!((found.len(), found[0].samples.len(), found[0].line), (1, 1, 1));
        near(rate(&found[0], 0, 1), 24_000.0 * 1_048_576.0);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [10, 13]);
        assert!(found[0].notes.iter().any(|note| note == "device mlx5_0") && found[0].notes.iter().any(|note| note == "2 queue pairs"));
        // Other numbers are another test's.
        let (found, _) = tables(read, &BOTH_SIDES.replacen("24000.00", "23999.00", 1));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn units_directions_and_times_are_told_by_titles() {
        let text = "Send Bidirectional BW Test\n#bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n65536 5000 0.00 400.00 0.7\n\
            RDMA_Read Latency Test\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n\
            2 1000 1.50 9.00 1.60 1.70 0.10 2.00 9.00\n\
            #bytes    #sl      #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n64 3 1000 1.00 2.00 0.03\n";
        let (found, skipped) = tables(read, text);
        assert_eq!((found.len(), skipped.len()), (3, 0), "{skipped:?}");
        near(rate(&found[0], 1, 0), 25e9);
        assert_eq!((found[0].samples.len(), found[0].samples[0].pattern, found[0].unit), (2, Pattern::Duplex, "Gb/s (1e9 bits)"));
        assert_eq!((found[1].samples[0].from, found[1].samples[0].seconds), (1, Some(1.6e-6)));
        near(rate(&found[2], 0, 1), 2.0 * 1_048_576.0);
    }

    const JSON: &str = "{\n\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\",\n\"Device\": \"mlx5_1\",\n\"Number_of_qps\": 4\n},\n\"results\": {\n\
        \"MsgSize\": 65536,\n\"n_iterations\": 5000,\n\"BW_peak\": 0.00,\n\"BW_average\": 184.94,\n\"MsgRate\": 0.352743\n}\n}\n";

    #[test]
    fn the_unit_of_the_json_follows_from_the_rate_of_messages() {
        let read_json = |text: &str| json(&serde_json::from_str(text).unwrap(), &mut Skips::default()).unwrap();
        let found = read_json(JSON);
        near(rate(&found[0], 0, 1), 184.94 * 1.25e8);
        assert_eq!((found[0].unit, found[0].test.as_str()), ("Gb/s (1e9 bits)", "RDMA Write BW Test"));
        let found = read_json(&JSON.replace("0.352743", "0.002959"));
        near(rate(&found[0], 0, 1), 184.94 * 1_048_576.0);
        let found = read_json(&JSON.replace("0.352743", "0.000000"));
        assert!(found[0].notes.iter().any(|note| note.contains("--report_gbits")), "{:?}", found[0].notes);
        let mut skips = Skips::default();
        let without: Value = serde_json::from_str(&JSON.replace("MsgSize", "Size")).unwrap();
        assert_eq!(json(&without, &mut skips), Some(vec![]));
        assert!(skips.sorted()[0].reason.contains("MsgSize"));
        assert_eq!(json(&Value::from(1), &mut Skips::default()), None);
    }

    #[test]
    fn what_is_no_json_is_read_all_the_same() {
        let text = JSON.replace("\"n_iterations\"", "sl: 3,\n\"n_iterations\"");
        assert!(serde_json::from_str::<Value>(&text).is_err());
        let (found, skipped) = tables(read, &text);
        assert_eq!((found.len(), skipped.len()), (1, 0), "{skipped:?}");
        near(rate(&found[0], 0, 1), 184.94 * 1.25e8);
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, BOTH_SIDES);
        damage(read, JSON);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("ib") {
            let (found, _) = tables(read, &text);
            let expected = usize::from(text.contains("BW average["));
            assert_eq!(found.len(), expected, "{name}");
            assert!(found.iter().all(|table| table.samples.iter().all(|sample| sample.seconds.is_some())), "{name}");
        }
    }
}
