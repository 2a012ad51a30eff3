//! Fits of a session or a calibration, for people and for programs.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::{FINE, files, print};
use crate::export;
use crate::fit::{Confidence, EXTRAPOLATION_LIMIT, Fit, Fits, Interval, Key};
use crate::session::{self, Model};
use crate::units::{format_ranks, format_size};

/// Ranks above which the table holds classes only unless all was asked for.
const MANY_ROWS: usize = 400;

/// Columns of names, where none is longer.
const NAMES: usize = 8;

/// Print every fit.
pub(super) fn fit(source: &Path, json: bool, all: bool) -> Result<u8> {
    let model = files::load(source)?;
    let fits = session::fits(&model, Some(&Confidence::new(0.95)));
    if json {
        let mut out = Vec::new();
        export::write_json(&fits, &mut out)?;
        print(&String::from_utf8_lossy(&out));
    } else {
        print(&text(&model, &fits, all));
    }
    Ok(FINE)
}

fn text(model: &Model, fits: &Fits, all: bool) -> String {
    if let Some(only) = model.only_together() {
        return format!("no fit: nothing of a pair, a fan or a ring was measured, but {only}\n");
    }
    if fits.classes.is_empty() && fits.single.is_empty() && model.header.engine == crate::sample::EngineKind::Imported {
        return "no fit: it takes good samples of two sizes or more, and the file has one\n".to_owned();
    }
    if fits.classes.is_empty() && fits.single.is_empty() {
        return "no fit: it takes good samples of two sizes or more (toposcope sweep --sizes 4KiB..64MiB)\n".to_owned();
    }
    let mut text = String::new();
    let _ = writeln!(text, "α + bytes/bandwidth by least squares of relative errors, 95 % intervals; {} samples", model.samples());
    let names = fits.classes.iter().chain(&fits.single).map(|fit| fit.kind.name().len()).max().unwrap_or(0).max(NAMES);
    let _ = writeln!(
        text,
        "\n{:names$} {:34} {:>9} {:>19} {:>9} {:>19} {:>7} {:>6}  breakpoints",
        "pattern", "of", "α, µs", "", "GB/s", "", "error", "n"
    );
    for fit in &fits.classes {
        line(&mut text, names, fit);
    }
    let shown = if all || fits.single.len() <= MANY_ROWS { fits.single.len() } else { 0 };
    for (at, fit) in fits.single[..shown].iter().enumerate() {
        if at == 0 || fits.single[at - 1].kind != fit.kind {
            text.push('\n');
        }
        line(&mut text, names, fit);
    }
    if shown < fits.single.len() {
        let _ = writeln!(text, "\nand {} of ranks, pairs and fans (--all, --json, or export --format fits)", fits.single.len());
    }
    let poor =
        fits.classes.iter().chain(&fits.single).filter(|fit| fit.line.max_rel_error > EXTRAPOLATION_LIMIT && fit.segments.is_empty());
    let poor = poor.count();
    if poor > 0 {
        let _ = writeln!(
            text,
            "\n{poor} of them miss a measured size by more than {:.0} %: no prediction outside the measured sizes is made from these",
            EXTRAPOLATION_LIMIT * 100.0
        );
    }
    text
}

fn line(text: &mut String, names: usize, fit: &Fit) {
    let of = |pick: fn(&crate::fit::LineIntervals) -> Interval, scale: f64| {
        fit.intervals.as_ref().map_or_else(String::new, |both| {
            let Interval { low, high } = pick(both).times(scale);
            format!("({}–{})", number(low), number(high))
        })
    };
    let breaks: Vec<String> = fit.breakpoints().map(format_size).collect();
    let _ = writeln!(
        text,
        "{:names$} {:34} {:>9} {:>19} {:>9} {:>19} {:>6.1}% {:>6}  {}",
        fit.kind.name(),
        key(&fit.key),
        number(fit.line.alpha * 1e6),
        of(|both| both.alpha, 1e6),
        number(fit.line.bandwidth / 1e9),
        of(|both| both.bandwidth, 1e-9),
        fit.line.max_rel_error * 100.0,
        fit.n,
        breaks.join(", ")
    );
    if let Some(spread) = fit.spread.as_ref().filter(|spread| spread.count > 1) {
        let gbps = |rate: f64| number(rate / 1e9);
        let _ = writeln!(
            text,
            "{:names$}   {} of them: {} ({}) to {} ({}), median {}",
            "",
            spread.count,
            gbps(spread.min),
            key(&spread.min_key),
            gbps(spread.max),
            key(&spread.max_key),
            gbps(spread.median)
        );
    }
    for (number_of, segment) in fit.segments.iter().enumerate().filter(|_| fit.segments.len() > 1) {
        let _ = writeln!(
            text,
            "{:names$}   segment {}: {} to {}: {} µs, {} GB/s, error {:.1} %",
            "",
            number_of + 1,
            format_size(segment.line.smallest),
            format_size(segment.line.largest),
            number(segment.line.alpha * 1e6),
            number(segment.line.bandwidth / 1e9),
            segment.line.max_rel_error * 100.0
        );
    }
}

/// Three digits or more.
fn number(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".to_owned(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn key(key: &Key) -> String {
    match key {
        Key::Class { path } => path.name().to_owned(),
        Key::FanClass { path, width } => format!("{} × {width}", path.name()),
        Key::Relay { receive_path, send_path } => format!("in {}, out {}", receive_path.name(), send_path.name()),
        Key::Rank { rank } => format!("rank {rank}"),
        Key::Pair { from, to } => format!("{from} → {to}"),
        Key::Fan { root, peers } => format!("root {root}, peers {}", format_ranks(peers)),
    }
}
