use std::io::Write;
use std::path::Path;

use super::file::{ExportError, write_whole};
use crate::sample::{Pattern, Status};
use crate::session::{Model, SizeCell};
use crate::sweep::Cell;
use crate::units::plain;

/// Columns, with their units. Times are of one message; `n`, states and summaries are of the newest take.
const HEADER: [&str; 23] = [
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
];

/// One row for each pattern, sender, receiver and size that has a sample (RFC 4180, decimal GB/s).
///
/// A value that does not exist is an empty field: no interval below 6 samples, no asymmetry without the reverse.
pub fn csv(model: &Model) -> String {
    let mut cells: Vec<(Cell, &[SizeCell])> = model.cells.iter().collect();
    cells.sort_unstable_by_key(|&(cell, _)| cell);
    let mut text = String::new();
    push_row(&mut text, &HEADER.map(str::to_owned));
    for (cell, sizes) in cells {
        for size in sizes {
            push_row(&mut text, &row(model, cell, size));
        }
    }
    text
}

/// Write [`csv`] to a file, whole or not at all.
pub fn write_csv(model: &Model, path: &Path) -> Result<(), ExportError> {
    let text = csv(model);
    write_whole(path, |out| out.write_all(text.as_bytes()))
}

fn row(model: &Model, cell: Cell, size: &SizeCell) -> [String; 23] {
    let topology = &model.header.topology;
    let host = |rank: usize| topology.ranks.get(rank).map_or("", |placement| placement.host.as_str()).to_owned();
    let newest = || size.shots.iter().filter(|shot| shot.take == size.take && !shot.warmup);
    let count = |status| newest().filter(|shot| shot.status == status).count().to_string();
    let times = size.times();
    let least = times.iter().copied().fold(f64::NAN, f64::min);
    let interval = size.bandwidth_interval();
    let reasons: Vec<&str> = newest().filter_map(|shot| shot.reason.as_deref()).fold(Vec::new(), |mut all, reason| {
        if !all.contains(&reason) {
            all.push(reason);
        }
        all
    });
    [
        cell.pattern.name().to_owned(),
        cell.from.to_string(),
        cell.to.to_string(),
        host(cell.from),
        host(cell.to),
        topology.path(cell.from, cell.to).name().to_owned(),
        size.bytes.to_string(),
        size.take.to_string(),
        size.count.to_string(),
        newest().filter(|shot| shot.status == Status::Ok).map(|shot| u64::from(shot.messages)).sum::<u64>().to_string(),
        number(size.median),
        number(least),
        number(size.bandwidth() / 1e9),
        number(interval.map_or(f64::NAN, |rate| rate.low / 1e9)),
        number(interval.map_or(f64::NAN, |rate| rate.high / 1e9)),
        number(size.bytes as f64 / least / 1e9),
        number(asymmetry(model, cell, size)),
        size.status.name().to_owned(),
        count(Status::Ok),
        count(Status::Timeout),
        count(Status::Waived),
        count(Status::Corrupt),
        reasons.join("; "),
    ]
}

/// ln(B(i→j) / B(j→i)); NaN within one rank and where a direction is missing.
fn asymmetry(model: &Model, cell: Cell, size: &SizeCell) -> f64 {
    if cell.pattern == Pattern::Local {
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
fn push_row(text: &mut String, fields: &[String; 23]) {
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

    #[test]
    fn fields_are_quoted_as_the_rfc_says() {
        let mut fields: [String; 23] = std::array::from_fn(|_| String::new());
        fields[0] = "a,b".to_owned();
        fields[1] = "say \"hi\"".to_owned();
        fields[2] = "one\u{1b}[31m\ntwo".to_owned();
        let mut text = String::new();
        push_row(&mut text, &fields);
        assert!(text.starts_with("\"a,b\",\"say \"\"hi\"\"\",one[31mtwo,,"), "{text}");
        assert!(text.ends_with(",\r\n"));
    }
}
