use std::io::Write;
use std::path::Path;

use super::file::{ExportError, write_whole};
use crate::fit::{median, median_interval};
use crate::sample::{Sample, Status};
use crate::session::{GroupSize, Model, Shot, SizeCell};
use crate::sweep::{Cell, Group};
use crate::topology::{Efficiency, Router};
use crate::units::{format_ranks, plain};

/// Number of [`HEADER`]'s columns.
const COLUMNS: usize = 32;

/// Columns, with their units. Times are of one message; `n`, states and summaries are of the newest take. The last ones say to
/// which fan, relay or set of a pattern file a transfer belongs; of a fan also the root's time for all its peers' messages. Then,
/// where a host told what it is made of, the path as nvidia-smi labels it, and what it should give to this pair alone; how the bytes
/// went, where the mover told it.
const HEADER: [&str; COLUMNS] = [
    "pattern",
    "from",
    "to",
    "from_host",
    "to_host",
    "path",
    "bytes",
    "take",
    "n",
    "messages",
    "median_s",
    "min_s",
    "bandwidth_median_GBps",
    "bandwidth_ci95_low_GBps",
    "bandwidth_ci95_high_GBps",
    "bandwidth_best_GBps",
    "asymmetry_ln_ratio",
    "status",
    "ok",
    "timeout",
    "waived",
    "corrupt",
    "reason",
    "set",
    "root",
    "peers",
    "width",
    "shift",
    "root_median_s",
    "path_class",
    "expected_bytes_per_second",
    "via",
];

/// One row for each pattern, sender, receiver and size that has a sample, and for each transfer of a fan, relay or set (RFC
/// 4180, decimal GB/s).
///
/// A value that does not exist is an empty field: no interval below 6 samples, no asymmetry without the reverse. Rows with a
/// `set` make the table a pattern file ([`crate::sweep::parse_pattern_file`]): the same transfers can be run again from it.
pub fn csv(model: &Model, efficiency: &Efficiency) -> String {
    let facts = Facts { model, router: Router::new(&model.header.topology, efficiency) };
    let mut cells: Vec<(Cell, &[SizeCell])> = model.cells.iter().collect();
    cells.sort_unstable_by_key(|&(cell, _)| cell);
    let mut text = String::new();
    push_row(&mut text, &HEADER.map(str::to_owned));
    for (cell, sizes) in cells {
        for size in sizes {
            push_row(&mut text, &row_of_pair(&facts, cell, size));
        }
    }
    for (group, sizes) in model.groups.iter() {
        for size in sizes {
            for (from, to) in size.flows() {
                push_row(&mut text, &row_of_transfer(&facts, group, size, from, to));
            }
        }
    }
    text
}

/// Write [`csv`] to a file, whole or not at all.
pub fn write_csv(model: &Model, efficiency: &Efficiency, path: &Path) -> Result<(), ExportError> {
    let text = csv(model, efficiency);
    write_whole(path, |out| out.write_all(text.as_bytes()))
}

/// What rows are made from.
struct Facts<'a> {
    model: &'a Model,
    router: Router,
}

fn row_of_pair(facts: &Facts<'_>, cell: Cell, size: &SizeCell) -> [String; COLUMNS] {
    let shots: Vec<&Shot> = size.shots.iter().filter(|shot| shot.take == size.take && !shot.warmup).collect();
    let path = facts.model.header.topology.path(cell.from, cell.to);
    let sample = Sample { take: size.take, status: size.status, ..Sample::blank(cell.pattern, cell.from, cell.to, size.bytes, path) };
    row(facts, &sample, &shots, asymmetry(facts.model, cell, size), f64::NAN)
}

fn row_of_transfer(facts: &Facts<'_>, group: &Group, size: &GroupSize, from: usize, to: usize) -> [String; COLUMNS] {
    let own = size.shots.iter().filter(|shot| (shot.from, shot.to) == (from, to));
    let shots: Vec<&Shot> = own.map(|shot| &shot.shot).filter(|shot| shot.take == size.take && !shot.warmup).collect();
    let sample = Sample {
        take: size.take,
        status: shots.iter().map(|shot| shot.status).max_by_key(|&status| severity(status)).unwrap_or(Status::Ok),
        root: group.root,
        peers: group.peers.clone(),
        width: group.root.map(|_| group.peers.len()),
        shift: group.shift,
        set: group.set,
        ..Sample::blank(group.pattern, from, to, size.bytes, facts.model.header.topology.path(from, to))
    };
    row(facts, &sample, &shots, f64::NAN, median(&mut size.root_times()))
}

/// Each text once, in order.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    texts.fold(Vec::new(), |mut all, text| {
        if !all.contains(&text) {
            all.push(text);
        }
        all
    })
}

/// Which of two states to tell.
const fn severity(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::Waived => 1,
        Status::Timeout => 2,
        Status::Corrupt => 3,
    }
}

/// A row of the samples of one transfer at one size; `sample` says where they belong.
fn row(facts: &Facts<'_>, sample: &Sample, shots: &[&Shot], asymmetry: f64, root: f64) -> [String; COLUMNS] {
    let topology = &facts.model.header.topology;
    let (label, expected) = if facts.router.knows() {
        let between = || facts.router.expected(sample.from, sample.to);
        let expected = if sample.pattern.crosses() { facts.router.host_link(sample.from) } else { between() };
        (facts.router.label(sample.from, sample.to), expected)
    } else {
        (None, None)
    };
    let host = |rank: usize| topology.ranks.get(rank).map_or("", |placement| placement.host.as_str()).to_owned();
    let count = |status| shots.iter().filter(|shot| shot.status == status).count().to_string();
    let mut times: Vec<f64> = shots.iter().filter_map(|shot| shot.seconds_per_message()).collect();
    let interval = median_interval(&times, 0.95);
    let least = times.iter().copied().fold(f64::NAN, f64::min);
    let middle = median(&mut times);
    let bytes = sample.bytes as f64;
    let reasons: Vec<&str> = distinct(shots.iter().filter_map(|shot| shot.reason()));
    let ways = distinct(shots.iter().filter_map(|shot| shot.via()));
    let optional = |value: Option<usize>| value.map_or_else(String::new, |value| value.to_string());
    [
        sample.pattern.name().to_owned(),
        sample.from.to_string(),
        sample.to.to_string(),
        host(sample.from),
        host(sample.to),
        sample.path.name().to_owned(),
        sample.bytes.to_string(),
        sample.take.to_string(),
        times.len().to_string(),
        shots.iter().filter(|shot| shot.status == Status::Ok).map(|shot| u64::from(shot.messages)).sum::<u64>().to_string(),
        number(middle),
        number(least),
        number(bytes / middle / 1e9),
        number(interval.map_or(f64::NAN, |time| bytes / time.high / 1e9)),
        number(interval.map_or(f64::NAN, |time| bytes / time.low / 1e9)),
        number(bytes / least / 1e9),
        number(asymmetry),
        sample.status.name().to_owned(),
        count(Status::Ok),
        count(Status::Timeout),
        count(Status::Waived),
        count(Status::Corrupt),
        reasons.join("; "),
        sample.set.map_or_else(String::new, |set| set.to_string()),
        optional(sample.root),
        format_ranks(&sample.peers),
        optional(sample.width),
        optional(sample.shift),
        number(root),
        label.map_or_else(String::new, |label| label.to_string()),
        number(expected.unwrap_or(f64::NAN)),
        ways.join("; "),
    ]
}

/// ln(B(i→j) / B(j→i)); NaN within one rank and where a direction is missing.
fn asymmetry(model: &Model, cell: Cell, size: &SizeCell) -> f64 {
    if cell.pattern.is_own() {
        return f64::NAN;
    }
    let reverse = Cell { pattern: cell.pattern, from: cell.to, to: cell.from };
    let back = model.cells.get(reverse, size.bytes).map_or(f64::NAN, SizeCell::bandwidth);
    (size.bandwidth() / back).ln()
}

/// Six significant digits, more than any clock gives; empty if there is no value.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() || value.abs() > 1e300 {
        return String::new();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (5 - value.abs().log10().floor() as i32).max(0) as usize;
    if digits > 12 { format!("{value:.5e}") } else { format!("{value:.digits$}") }
}

/// RFC 4180, section 2: fields with a quote, a comma or a line break are quoted, quotes doubled.
fn push_row(text: &mut String, fields: &[String; COLUMNS]) {
    for (column, field) in fields.iter().enumerate() {
        if column > 0 {
            text.push(',');
        }
        let field = plain(field);
        if field.contains(['"', ',', '\n', '\r']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&field);
        }
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;

    #[test]
    fn numbers_keep_six_digits() {
        for (value, text) in [
            (0.098_304_12, "0.0983041"),
            (12.345_678_9, "12.3457"),
            (123_456_789.0, "123456789"),
            (1.234_567_8e-9, "1.23457e-9"),
            (1.234_567_8e-6, "0.00000123457"),
            (-0.5, "-0.500000"),
            (f64::NAN, ""),
            (f64::INFINITY, ""),
        ] {
            assert_eq!(number(value), text);
        }
    }

    /// A fan and a set of transfers at two sizes, and a pair.
    fn measured() -> Model {
        use crate::session::{Event, Header, Record};
        use crate::sweep::SweepSettings;
        let settings = SweepSettings { sizes: vec![1000, 4000], ..SweepSettings::default() };
        let topology = crate::sweep::made::on(&[2, 2]);
        let mut model = Model::new(Header {
            format: Header::current_format(),
            program: String::new(),
            name: String::new(),
            started: String::new(),
            engine: crate::sample::EngineKind::Threads,
            settings: settings.clone(),
            topology: topology.clone(),
            software: std::collections::BTreeMap::new(),
            environment: std::collections::BTreeMap::new(),
            group: Vec::new(),
        });
        let mut apply = |event| drop(model.apply(&Record { t: 0.0, event }));
        apply(Event::SweepStarted { settings, resumed: false });
        let fan = Group::fan(Pattern::FanIn, 3, vec![0, 1]);
        let set = Group::custom(5);
        for bytes in [1000, 4000] {
            let sample = |pattern, from, to, seconds| Sample {
                messages: 1,
                seconds: Some(seconds),
                status: Status::Ok,
                ..Sample::blank(pattern, from, to, bytes, topology.path(from, to))
            };
            let in_fan = |from, repeat| Sample {
                root: fan.root,
                peers: fan.peers.clone(),
                width: Some(2),
                root_seconds: Some(4e-6),
                repeat,
                ..sample(Pattern::FanIn, from, 3, 2e-6)
            };
            let in_set = |from, to| Sample { set: set.set, ..sample(Pattern::Custom, from, to, 1e-6) };
            for samples in [
                (0..6).flat_map(|repeat| [in_fan(0, repeat), in_fan(1, repeat)]).collect(),
                vec![in_set(0, 1), in_set(2, 3)],
                vec![sample(Pattern::Peer, 0, 1, 1e-6)],
            ] {
                apply(Event::ProbeDone { probe: 0, samples, enough: None });
            }
        }
        model
    }

    #[test]
    fn transfers_of_groups_have_rows_and_the_table_is_a_pattern_file() {
        let table = csv(&measured(), &Efficiency::default());
        let names: Vec<&str> = HEADER.to_vec();
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 2 + 2 * 2 + 2 * 2);
        let field = |row: &[&str], name: &str| row[names.iter().position(|&other| other == name).unwrap()].to_owned();
        let fan = rows.iter().find(|row| row[..3] == ["fan_in", "1", "3"] && field(row, "bytes") == "4000").unwrap();
        let told = [
            "n",
            "median_s",
            "bandwidth_median_GBps",
            "bandwidth_ci95_low_GBps",
            "set",
            "root",
            "peers",
            "width",
            "shift",
            "root_median_s",
        ];
        assert_eq!(
            told.map(|name| field(fan, name)),
            ["6", "0.00000200000", "2.00000", "2.00000", "", "3", "0-1", "2", "", "0.00000400000"]
        );
        let transfers = crate::sweep::parse_pattern_file(&table, 4).unwrap();
        let found: Vec<(u32, usize, usize)> = transfers.iter().map(|transfer| (transfer.set, transfer.from, transfer.to)).collect();
        assert_eq!(found, [(5, 0, 1), (5, 2, 3)], "each once, whatever its sizes");
    }

    #[test]
    fn fields_are_quoted_as_the_rfc_says() {
        let mut fields: [String; COLUMNS] = std::array::from_fn(|_| String::new());
        fields[0] = "a,b".to_owned();
        fields[1] = "say \"hi\"".to_owned();
        fields[2] = "one\u{1b}[31m\ntwo".to_owned();
        let mut text = String::new();
        push_row(&mut text, &fields);
        assert!(text.starts_with("\"a,b\",\"say \"\"hi\"\"\",one[31mtwo,,"), "{text}");
        assert!(text.ends_with(",\r\n"));
    }
}
