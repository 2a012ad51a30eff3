//! What a finding and what was identified say, part by part, for every kind of page.

use super::page::Block;
use crate::diagnose::next::Next;
use crate::diagnose::{Diagnosis, Finding, Severity, Suspect};
use crate::fit::identify::{Capacity, Identified, Stand, Undecided};
use crate::units::{format_gbps, format_seconds};

/// Capacities that a short page names.
const CAPACITIES: usize = 12;

/// The mark of a severity.
pub const fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "▲",
        Severity::Warning => "●",
        Severity::Note => "○",
    }
}

/// What is seen, why it may be so, what tests told and what to test next: a word and a sentence each.
pub fn parts(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut parts: Vec<(&'static str, String)> = finding.facts.iter().map(|fact| ("seen", fact.say.clone())).collect();
    for (at, suspect) in finding.suspects.iter().enumerate() {
        parts.push((if at == 0 { "likely" } else { "or" }, cause(suspect)));
    }
    parts.extend(finding.told.iter().map(|told| ("told", told.clone())));
    parts.extend(finding.next.as_ref().map(|next| ("next", next_test(next))));
    parts
}

/// `a link trained down: Gen5 x8 of x16; against it: the other direction is fast`.
fn cause(suspect: &Suspect) -> String {
    let mut text = suspect.cause.words().to_owned();
    if !suspect.because.is_empty() {
        text.push_str(": ");
        text.push_str(&suspect.because);
    }
    if !suspect.against.is_empty() {
        text.push_str("; against it: ");
        text.push_str(&suspect.against);
    }
    text
}

/// The test with its cost, or why it cannot run here.
fn next_test(next: &Next) -> String {
    if next.cannot.is_empty() {
        format!("{} (about {})", next.test.say, format_seconds(next.seconds))
    } else {
        format!("{}; not here: {}", next.test.say, next.cannot)
    }
}

/// What fans and other transfers at the same time tell of resources. `all`: every capacity.
pub fn identified(identified: &Identified, all: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(best) = identified.stands.first() {
        blocks.push(Block::Text(format!(
            "{} explains the {} measurements of transfers at the same time best: {} off on average, {} at worst.",
            best.explanation.words(),
            best.n,
            percent(best.mean),
            percent(best.worst)
        )));
        let rows = identified.stands.iter().map(stand).collect();
        blocks.push(Block::Table { head: vec!["explanation", "mean error", "worst", "fans of 3 or more", "of", "with"], rows });
    }
    blocks.extend(identified.undecided.iter().map(|open| Block::Items(vec![("open", undecided(open))])));
    let hidden = identified.hidden.iter().map(|hidden| {
        let interval = hidden.interval.map_or_else(String::new, |own| format!(" ({}–{})", format_gbps(own.low), format_gbps(own.high)));
        let seen = if hidden.n == 1 { "1 measurement".to_owned() } else { format!("{} measurements", hidden.n) };
        ("hidden", format!("{}: {}{interval} GB/s, not known to the topology, seen in {seen}", hidden.name, format_gbps(hidden.capacity)))
    });
    let hidden: Vec<_> = hidden.collect();
    if !hidden.is_empty() {
        blocks.push(Block::Items(hidden));
    }
    let shown = if all { identified.capacities.len() } else { identified.capacities.len().min(CAPACITIES) };
    if shown > 0 {
        let rows = identified.capacities[..shown].iter().map(capacity).collect();
        blocks.push(Block::Table { head: vec!["resource", "GB/s", "at a time", "at least, GB/s", "seen in"], rows });
    }
    if shown < identified.capacities.len() {
        blocks.push(Block::Text(format!("and {} more resources (--all, --json)", identified.capacities.len() - shown)));
    }
    blocks
}

fn stand(stand: &Stand) -> Vec<String> {
    let told = stand.parameters.iter().map(|(name, value)| match name.chars().next() {
        // Rates, by the letters that the method gives them.
        Some('R' | 'X') => format!("{name} {} GB/s", format_gbps(*value)),
        _ => format!("{name} {value:.2}"),
    });
    let told: Vec<String> = told.collect();
    vec![
        stand.explanation.words().to_owned(),
        percent(stand.mean),
        percent(stand.worst),
        percent(stand.wide),
        stand.n.to_string(),
        told.join(", "),
    ]
}

fn capacity(capacity: &Capacity) -> Vec<String> {
    let none = || "–".to_owned();
    let rate = capacity.rate.map_or_else(none, |rate| {
        let interval = capacity.interval.map_or_else(String::new, |own| format!(" ({}–{})", format_gbps(own.low), format_gbps(own.high)));
        format_gbps(rate) + &interval
    });
    vec![
        capacity.name.clone(),
        rate,
        capacity.concurrency.map_or_else(none, |own| format!("{own:.2}")),
        capacity.at_least.map_or_else(none, format_gbps),
        capacity.n.to_string(),
    ]
}

fn undecided(open: &Undecided) -> String {
    open.say.clone()
}

/// Alarms that were not raised.
pub fn silenced(diagnosis: &Diagnosis) -> Vec<(&'static str, String)> {
    diagnosis.silenced.iter().map(|own| ("silent", format!("{}: {}", own.say, own.why))).collect()
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "–".to_owned() }
}
