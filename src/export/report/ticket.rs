//! The report for a ticket, in Markdown: findings first, then few numbers, settings, and how to measure it again.

use std::fmt::Write;

use super::page::{Block, escape_markdown as text, fenced, markdown, titles};
use super::reproduce::reproduce;
use super::{about, mark, nothing, numbers, parts};
use crate::diagnose::{Diagnosis, Measured, PairSeen, Severity};
use crate::matrix::Metric;
use crate::ramp::State;
use crate::sample::Status;
use crate::session::Model;
use crate::units::{format_seconds, format_size};

/// Findings that are told at length; of the others one line each.
const LONG: usize = 5;
/// Findings that are told at all.
const FINDINGS: usize = 20;
/// Causes of a finding that are told; the page has all.
const CAUSES: usize = 3;
/// Letters of a setting, such as all variables, that are told.
const LETTERS: usize = 400;
/// Ranks up to which the matrix is a table.
const TABLE: usize = 16;
/// Pairs that are told otherwise.
const WORST: usize = 12;

/// All of it.
pub fn ticket(model: &Model, measured: &Measured, diagnosis: &Diagnosis) -> String {
    let mut out = format!("# {}\n\n{}\n\n", text(&numbers::title(model)), text(&verdict(model, diagnosis)));
    out.push_str("## Findings\n\n");
    for (finding, number) in diagnosis.findings.iter().take(FINDINGS).zip(1..) {
        let head = format!("{} {}: {}", mark(finding.severity), finding.severity.name(), finding.title);
        let _ = writeln!(out, "{number}. **{}** — {}", text(&head), text(&finding.amount));
        if number <= LONG {
            let mut causes = 0;
            for (word, told) in parts(finding) {
                causes += usize::from(matches!(word, "likely" | "or"));
                if word == "or" && causes > CAUSES {
                    continue;
                }
                let _ = writeln!(out, "   - *{word}*: {}", text(&told));
            }
        }
    }
    match diagnosis.findings.len() {
        0 => {
            let _ = writeln!(out, "{}", text(&nothing(model)));
        }
        all if all > FINDINGS => {
            let _ = writeln!(out, "\nand {} more.", all - FINDINGS);
        }
        _ => {}
    }
    out.push('\n');
    out.push_str(&markdown(&matrix(measured)));
    out.push_str("## Settings\n\n");
    let short =
        |text: String| if text.chars().count() > LETTERS { text.chars().take(LETTERS).chain(" …".chars()).collect() } else { text };
    let about = about(model, measured).into_iter().map(|(word, told)| (word, short(told))).collect();
    out.push_str(&markdown(&[Block::Items(about)]));
    out.push_str("## How to measure it again\n\n");
    let (command, beware) = reproduce(model);
    out.push_str(&fenced(&command));
    for word in beware {
        let _ = writeln!(out, "{}\n", text(&word));
    }
    out
}

/// `2 problems, 1 warning`.
pub fn verdict(model: &Model, diagnosis: &Diagnosis) -> String {
    let counted = [(Severity::Problem, "problem"), (Severity::Warning, "warning"), (Severity::Note, "note")].map(|(severity, name)| {
        let count = diagnosis.findings.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
    });
    let told: Vec<String> = counted.into_iter().flatten().collect();
    if told.is_empty() { nothing(model) } else { format!("{}.", told.join(", ")) }
}

/// A table of all pairs where they are few, or the slowest of their classes.
fn matrix(measured: &Measured) -> Vec<Block> {
    if measured.peer.is_empty() {
        return Vec::new();
    }
    let best = measured.peer.iter().map(|pair| pair.rate).fold(f64::NAN, f64::max);
    let unit = Metric::Bandwidth.unit(best);
    let size = format_size(measured.bytes);
    let rate = |rate: f64| if rate.is_finite() { Metric::Bandwidth.format(rate, unit) } else { "–".to_owned() };
    let world = measured.world();
    if world <= TABLE {
        let names: Vec<String> = (0..world).map(|rank| rank.to_string()).collect();
        let told = |pair: Option<&PairSeen>| match pair.map(|pair| (pair.rate.is_finite(), pair.status)) {
            Some((true, _)) => rate(pair.map_or(f64::NAN, |pair| pair.rate)),
            Some((_, Status::Timeout)) => State::Timeout.name().to_owned(),
            Some((_, Status::Corrupt)) => State::Corrupt.name().to_owned(),
            Some((_, Status::Waived)) => State::Waived.name().to_owned(),
            _ => State::Missing.glyph().to_string(),
        };
        let row = |from: usize| {
            let cells = (0..world).map(|to| if from == to { String::new() } else { told(measured.peer.get(from, to)) });
            std::iter::once(format!("{from} →")).chain(cells).collect::<Vec<_>>()
        };
        let head = std::iter::once(String::new()).chain(names).collect();
        return vec![
            Block::Heading(2, format!("Bandwidth, {} at {size}; row sends", unit.name)),
            Block::Table { head, rows: (0..world).map(row).collect() },
        ];
    }
    let mut pairs: Vec<&PairSeen> = measured.peer.iter().filter(|pair| pair.rate.is_finite()).collect();
    pairs.sort_by(|a, b| measured.share(a).total_cmp(&measured.share(b)));
    let rows = pairs.iter().take(WORST).map(|pair| {
        let class = measured.class(pair);
        vec![
            format!("{} → {}", pair.from, pair.to),
            class.name(),
            rate(pair.rate),
            rate(class.usual),
            format!("{:.0} %", measured.share(pair) * 100.0),
            format_seconds(pair.small),
        ]
    });
    let rows = rows.collect();
    let failed = measured.peer.iter().filter(|pair| matches!(pair.status, Status::Timeout | Status::Corrupt)).count();
    let mut blocks = vec![
        Block::Heading(2, format!("Slowest pairs of {}, {} at {size}", measured.peer.len(), unit.name)),
        Block::Table { head: titles(["pair", "path", "rate", "usual there", "share", "smallest message"]), rows },
    ];
    if failed > 0 {
        blocks.push(Block::Text(format!("Pairs that timed out or brought wrong bytes: {failed}.")));
    }
    blocks
}
