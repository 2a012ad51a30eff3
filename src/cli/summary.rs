//! What a sweep came to, in a few lines or as JSON.

use std::fmt::Write;
use std::path::Path;

use crate::sample::{Pattern, Status};
use crate::session::Model;
use crate::units::{format_gbps, format_ranks, format_size, plain};

/// Notices that are told in full.
const NOTICES: usize = 12;
/// Reasons of what was not measured, likewise.
const REASONS: usize = 6;

/// Samples by state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    ok: u64,
    timeout: u64,
    waived: u64,
    corrupt: u64,
}

fn counts(model: &Model) -> Counts {
    let mut counts = Counts::default();
    let groups = model.groups.iter().flat_map(|(_, sizes)| sizes).flat_map(|size| size.shots.iter().map(|shot| &shot.shot));
    let pairs = model.cells.iter().flat_map(|(_, sizes)| sizes).flat_map(|size| &size.shots);
    for shot in pairs.chain(groups).filter(|shot| !shot.warmup) {
        match shot.status {
            Status::Ok => counts.ok += 1,
            Status::Timeout => counts.timeout += 1,
            Status::Waived => counts.waived += 1,
            Status::Corrupt => counts.corrupt += 1,
        }
    }
    counts
}

/// Reasons of what was not measured, with how and how often; those of the most samples first.
fn reasons(model: &Model) -> Vec<(String, usize)> {
    let groups = model.groups.iter().flat_map(|(_, sizes)| sizes).flat_map(|size| size.shots.iter().map(|shot| &shot.shot));
    let pairs = model.cells.iter().flat_map(|(_, sizes)| sizes).flat_map(|size| &size.shots);
    let mut reasons: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for shot in pairs.chain(groups).filter(|shot| !shot.warmup && shot.status != Status::Ok) {
        let reason = plain(shot.reason().unwrap_or("no reason was told"));
        *reasons.entry(format!("{}: {reason}", shot.status.name())).or_default() += 1;
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

/// Sender, receiver, bytes per second.
type Rated = (usize, usize, f64);

/// The slowest and fastest pair of a pattern at the largest size that has a good sample.
fn extremes(model: &Model, pattern: Pattern) -> Option<(u64, [Rated; 2])> {
    let pairs = |bytes: u64| {
        let peers = model.cells.iter().filter(|(cell, _)| cell.pattern == pattern);
        peers.filter_map(move |(cell, sizes)| {
            let rate = sizes.iter().find(|size| size.bytes == bytes)?.bandwidth();
            rate.is_finite().then_some((cell.from, cell.to, rate))
        })
    };
    let bytes = model.cells.sizes().iter().rev().copied().find(|&bytes| pairs(bytes).next().is_some())?;
    let slowest = pairs(bytes).min_by(|a, b| a.2.total_cmp(&b.2))?;
    let fastest = pairs(bytes).max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some((bytes, [slowest, fastest]))
}

/// How much of all pairs was measured, where it was not all.
fn coverage(model: &Model) -> Vec<String> {
    model.sweep.as_ref().map_or_else(Vec::new, |sweep| crate::sweep::coverage(&sweep.settings, &model.header.topology))
}

/// What the program found besides the numbers, and how much it measured where that is not all; each once.
fn notices(model: &Model) -> Vec<&str> {
    let all = model.log.iter().filter(|line| line.rank.is_none()).map(|line| line.text.as_str());
    all.fold(Vec::new(), |mut told, text| {
        if !told.contains(&text) {
            told.push(text);
        }
        told
    })
}

/// For a person.
pub(super) fn text(model: &Model, session: &Path, calibration: Option<&Path>) -> String {
    let counts = counts(model);
    let mut text = String::new();
    let topology = &model.header.topology;
    let _ = write!(text, "{} samples on {} ranks, {} host(s)", model.samples(), topology.world(), topology.hosts().len());
    for (count, name) in [(counts.timeout, "timed out"), (counts.waived, "waived"), (counts.corrupt, "with a wrong payload")] {
        if count > 0 {
            let _ = write!(text, ", {count} {name}");
        }
    }
    if let Some(settings) = model.sweep.as_ref().map(|sweep| &sweep.settings).filter(|settings| !settings.memory.is_host()) {
        let _ = write!(text, ", by {}", settings.mover.told(settings.memory));
    }
    text.push('\n');
    if let Some((bytes, [slow, fast])) = extremes(model, Pattern::Peer) {
        let told = |(from, to, rate): (usize, usize, f64)| format!("{from}→{to} {} GB/s", format_gbps(rate));
        let _ = writeln!(text, "at {}: slowest {}, fastest {}", format_size(bytes), told(slow), told(fast));
    }
    for pattern in Pattern::ALL.into_iter().filter(|pattern| pattern.crosses()) {
        let Some((bytes, [slow, fast])) = extremes(model, pattern) else { continue };
        let told = |(rank, _, rate): Rated| format!("rank {rank} {} GB/s", format_gbps(rate));
        let _ = writeln!(text, "{} at {}: slowest {}, fastest {}", pattern.name(), format_size(bytes), told(slow), told(fast));
    }
    if let Some(reason) = model.sweep.as_ref().map(|sweep| &sweep.reason).filter(|reason| !reason.is_empty()) {
        let _ = writeln!(text, "{reason}");
    }
    let reasons = reasons(model);
    for (reason, count) in reasons.iter().take(REASONS) {
        let _ = writeln!(text, "{count} {reason}");
    }
    if let Some((_, count)) = reasons.get(REASONS..).and_then(|rest| rest.iter().cloned().reduce(|a, b| (a.0, a.1 + b.1))) {
        let _ = writeln!(text, "{count} more, for other reasons: they are in the session");
    }
    let notices = notices(model);
    for notice in notices.iter().take(NOTICES) {
        let _ = writeln!(text, "note: {notice}");
    }
    if notices.len() > NOTICES {
        let _ = writeln!(text, "note: {} more in the session's log", notices.len() - NOTICES);
    }
    if !model.lost.is_empty() {
        let ranks: Vec<usize> = model.lost.keys().copied().collect();
        let _ = writeln!(text, "lost: rank {}", format_ranks(&ranks));
        for (rank, reason) in &model.lost {
            let _ = writeln!(text, "  rank {rank}: {reason}");
        }
    }
    let _ = writeln!(text, "session      {}", session.display());
    if let Some(calibration) = calibration {
        let _ = writeln!(text, "calibration  {}", calibration.display());
    }
    text
}

/// For a program.
pub(super) fn json(model: &Model, session: &Path, calibration: Option<&Path>) -> String {
    let counts = counts(model);
    let pair = |(from, to, rate): (usize, usize, f64)| serde_json::json!({"from": from, "to": to, "gbps": rate / 1e9});
    let crossing = Pattern::ALL.into_iter().filter(|pattern| pattern.crosses()).filter_map(|pattern| {
        let (bytes, [slow, fast]) = extremes(model, pattern)?;
        let rank = |(rank, _, rate): Rated| serde_json::json!({"rank": rank, "gbps": rate / 1e9});
        Some((pattern.name().to_owned(), serde_json::json!({"at_bytes": bytes, "slowest": rank(slow), "fastest": rank(fast)})))
    });
    let crossing: serde_json::Map<String, serde_json::Value> = crossing.collect();
    let extremes = extremes(model, Pattern::Peer);
    let mut value = serde_json::json!({
        "session": session,
        "calibration": calibration,
        "ranks": model.world(),
        "mover": model.sweep.as_ref().map(|sweep| sweep.settings.mover),
        "memory": model.sweep.as_ref().map(|sweep| sweep.settings.memory),
        "samples": model.samples(),
        "ok": counts.ok,
        "timeout": counts.timeout,
        "waived": counts.waived,
        "corrupt": counts.corrupt,
        "coverage": coverage(model),
        "reason": model.sweep.as_ref().map(|sweep| &sweep.reason),
        "notices": notices(model),
        "lost": model.lost.keys().collect::<Vec<_>>(),
        "at_bytes": extremes.map(|(bytes, _)| bytes),
        "slowest": extremes.map(|(_, [slow, _])| pair(slow)),
        "fastest": extremes.map(|(_, [_, fast])| pair(fast)),
        "seconds": model.now,
    });
    if let Some(fields) = value.as_object_mut() {
        fields.extend(crossing);
    }
    format!("{value:#}\n")
}
