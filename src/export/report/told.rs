//! What a finding and what was identified say, part by part, for every kind of page.

use super::page::{Block, titles};
use crate::diagnose::next::Next;
use crate::diagnose::{Diagnosis, Finding, Severity, Suspect};
use crate::fit::identify::{Capacity, DuplexRatio, Identified, Stand};
use crate::sample::Pattern;
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
    for stands in identified.stands.chunk_by(|a, b| (a.pattern, a.path) == (b.pattern, b.path)) {
        let best = &stands[0];
        let path = best.path.map_or("mixed", |path| path.name());
        blocks.push(Block::Text(format!(
            "{} {} ({path}): {} fits best, {} off on average, {} at worst.",
            best.n,
            if best.pattern == Pattern::FanOut { "fans out" } else { "fans in" },
            best.words(),
            percent(best.mean),
            percent(best.worst)
        )));
        blocks.push(Block::Table {
            head: titles(["explanation", "mean error", "worst", "of 3 peers or more", "with"]),
            rows: stands.iter().map(stand).collect(),
        });
    }
    let mut items: Vec<(&'static str, String)> = identified.undecided.iter().map(|open| ("open", open.say.clone())).collect();
    items.extend(identified.duplex.iter().map(duplex));
    if !items.is_empty() {
        blocks.push(Block::Items(items));
    }
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
        blocks.push(Block::Table { head: titles(["resource", "GB/s", "at a time", "at least, GB/s", "seen in"]), rows });
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
    vec![stand.words(), percent(stand.mean), percent(stand.worst), percent(stand.wide), told.join(", ")]
}

fn capacity(capacity: &Capacity) -> Vec<String> {
    let none = || "–".to_owned();
    let rate = capacity.rate.map_or_else(none, |rate| {
        let interval = capacity.interval.map_or_else(String::new, |own| format!(" ({}–{})", format_gbps(own.low), format_gbps(own.high)));
        format_gbps(rate) + &interval
    });
    vec![capacity.name.clone(), rate, concurrency(capacity), capacity.at_least.map_or_else(none, format_gbps), capacity.n.to_string()]
}

/// `1.02`, or by number of peers `2: 2.00, 4: 1.37`.
fn concurrency(capacity: &Capacity) -> String {
    if capacity.by_width.len() > 1 {
        let own: Vec<String> = capacity.by_width.iter().map(|(width, own)| format!("{width}: {own:.2}")).collect();
        return own.join(", ");
    }
    capacity.concurrency.map_or_else(|| "–".to_owned(), |own| format!("{own:.2}"))
}

fn duplex(own: &DuplexRatio) -> (&'static str, String) {
    let place = match own.same_socket {
        Some(true) => " within a socket",
        Some(false) => " across sockets",
        None => "",
    };
    let interval = own.interval.map_or_else(String::new, |own| format!(" ({:.2}–{:.2})", own.low, own.high));
    ("duplex", format!("{}{place}: both ways at once leave {:.2}{interval} of each, over {} directions", own.path.name(), own.ratio, own.n))
}

/// Alarms that were not raised.
pub fn silenced(diagnosis: &Diagnosis) -> Vec<(&'static str, String)> {
    diagnosis.silenced.iter().map(|own| ("silent", format!("{}: {}", own.say, own.why))).collect()
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "–".to_owned() }
}
