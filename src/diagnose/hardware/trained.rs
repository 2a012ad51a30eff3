//! PCIe links with fewer lanes than both ends could use, and slots with less than their cards could.
//!
//! Speed alone accuses nobody: a link at rest is slow until there is work (janhq/jan#183, NVIDIA/nccl#1614), and bridges that a
//! hypervisor makes up say anything (NVIDIA/nccl#1453). What went over a link counts more than what the link says.

use std::collections::BTreeMap;

use super::evidence::{BEYOND, Cells, SLOWER, claim_ranks, finding, percent, said};
use super::links::{Link, links};
use crate::diagnose::{Fact, Finding, Measured, Rule, Severity, Shape, Silenced, View};
use crate::topology::{Doubt, Lanes};
use crate::units::{format_gbps, format_ranks};

pub const TRAINED: Rule = Rule {
    name: "trained-down",
    summary: "a PCIe link has fewer lanes than both of its ends could use, or a slot has less than its card could use",
    check,
};

/// A share at or below this decides what a job takes.
const GRAVE: f64 = 0.6;
/// A rate of this share of what a slot lets through is what the slot gives.
const FILLED: f64 = 0.6;
/// So many links that are alike are one matter.
const FLEET: usize = 4;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let links = links(measured);
    silence(view, &links);
    let mut findings = Vec::new();
    for group in alike(measured, links.iter().filter(|link| link.narrowed().is_some())) {
        findings.extend(narrow(view, &group));
    }
    for group in
        alike(measured, links.iter().filter(|link| link.narrowed().is_none() && is_end(measured, link) && link.slot_share().is_some()))
    {
        findings.extend(slot(view, &links, &group));
    }
    findings
}

fn is_end(measured: &Measured, link: &Link) -> bool {
    link.hardware(measured).pci[link.at].is_end()
}

/// Links that say the same, from so many on together; else each by itself.
fn alike<'a>(measured: &Measured, links: impl Iterator<Item = &'a Link>) -> Vec<Vec<&'a Link>> {
    let mut groups: BTreeMap<(String, bool), Vec<&Link>> = BTreeMap::new();
    for link in links {
        groups.entry((link.reading.words(), is_end(measured, link))).or_default().push(link);
    }
    groups
        .into_values()
        .flat_map(|group| if group.len() >= FLEET { vec![group] } else { group.into_iter().map(|link| vec![link]).collect() })
        .collect()
}

/// Readings that are not to be believed.
fn silence(view: &mut View<'_>, links: &[Link]) {
    let measured = view.measured;
    let mut doubts: BTreeMap<(usize, &str), Vec<&Link>> = BTreeMap::new();
    for link in links {
        let what = match link.reading.doubt {
            Some(Doubt::Emulated) => "emulated",
            Some(Doubt::NoWidth) => "no lanes",
            Some(Doubt::Resting) => "resting",
            None => continue,
        };
        doubts.entry((link.host, what)).or_default().push(link);
    }
    for ((_, what), links) in doubts {
        let first = links[0];
        let told = first.hardware(measured).pci[first.at].link.and_then(|link| link.now);
        let told = told.map_or_else(|| "nothing".to_owned(), |lanes| lanes.to_string());
        let more = if links.len() > 1 { format!(" and {} more", links.len() - 1) } else { String::new() };
        let say = format!("the link of {}{more} of {} says {told}", first.device(measured), first.hardware(measured).host);
        let why = match what {
            "emulated" => "the bridge above it is made up by a hypervisor; its speed and width mean nothing",
            "no lanes" => "a link without lanes moves nothing, and it does",
            _ => "it may have been at rest when it was read; read it again under load",
        };
        let best = links.iter().filter_map(|link| Cells::of(measured, link.pairs(measured))).map(|cells| cells.best).fold(0.0, f64::max);
        let why = if best > 0.0 { format!("{why}: {} GB/s went over it", format_gbps(best)) } else { why.to_owned() };
        view.silenced.push(Silenced { rule: TRAINED.name, say, why });
    }
}

/// What is the same of both findings here.
struct Seen {
    cells: Option<Cells>,
    ranks: Vec<usize>,
    /// the link, its host and, where there are several, how many more
    place: String,
}

fn seen(measured: &Measured, group: &[&Link]) -> Seen {
    let first = group[0];
    let mut ranks: Vec<usize> = group.iter().flat_map(|link| link.ranks.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let more = if group.len() > 1 { format!(" and {} more", group.len() - 1) } else { String::new() };
    Seen {
        cells: Cells::of(measured, group.iter().flat_map(|link| link.pairs(measured))),
        ranks,
        place: format!("{} of {}{more}", first.device(measured), first.hardware(measured).host),
    }
}

fn narrow(view: &mut View<'_>, group: &[&Link]) -> Option<Finding> {
    let measured = view.measured;
    let first = group[0];
    let (left, words) = (first.narrowed()?, first.reading.words());
    let Seen { cells, ranks, place } = seen(measured, group);
    let now = first.reading.now.map_or(f64::NAN, Lanes::rate);
    let title = format!("the link of {place} is {words}");
    if let Some(cells) = cells.as_ref().filter(|cells| cells.best > now * BEYOND) {
        let why = format!("measured beats reported: {} GB/s went over it, it says {}", format_gbps(cells.best), format_gbps(now));
        view.silenced.push(Silenced { rule: TRAINED.name, say: title, why });
        return None;
    }
    // Seen by what others of the class give; where all have it, by what they should give.
    let confirmed = cells.as_ref().filter(|cells| cells.slow());
    let severity = match (&cells, confirmed) {
        (_, Some(cells)) if cells.share() <= GRAVE => Severity::Problem,
        (_, Some(_)) | (None, None) => Severity::Warning,
        (Some(_), None) => Severity::Note,
    };
    if let Some(cells) = confirmed {
        // What is lost beyond the lanes is another matter.
        let share = cells.share();
        claim_ranks(view, &ranks, if share >= 0.8 * left { share } else { left });
    }
    let mut facts = vec![said(format!("{} of {} lanes", lanes(first.reading.now), lanes(first.reading.most)))];
    facts.extend(cells.as_ref().map(|cells| cells.fact("over it")));
    if severity == Severity::Note {
        facts.push(said("what was measured is not slower for it"));
    }
    let amount = confirmed.map_or_else(|| percent(left), |cells| percent(cells.share()));
    Some(told(measured, first, (severity, title, words), ranks, amount, facts, cells.as_ref()))
}

fn lanes(lanes: Option<Lanes>) -> u32 {
    lanes.map_or(0, |lanes| lanes.width)
}

fn slot(view: &mut View<'_>, all: &[Link], group: &[&Link]) -> Option<Finding> {
    let measured = view.measured;
    let first = group[0];
    let (slot, card) = (first.reading.most?, first.card?);
    let Seen { cells, ranks, place } = seen(measured, group);
    // The best slot that a card of the same kind has.
    let kind = first.hardware(measured).pci[first.at].class >> 16;
    let like = |link: &&Link| is_end(measured, link) && link.hardware(measured).pci[link.at].class >> 16 == kind;
    let best = all.iter().filter(like).filter_map(|link| link.reading.most).map(Lanes::rate).fold(0.0, f64::max);
    let unequal = slot.rate() < 0.6 * best;
    // By others of the class; without any by the slot itself, where what went over it fills it.
    let filled = |cells: &&Cells| cells.of_others.is_nan() && cells.rate >= FILLED * slot.rate();
    let confirmed = cells.as_ref().filter(|cells| unequal && (cells.of_others < SLOWER || filled(cells)));
    if let Some(cells) = confirmed {
        claim_ranks(view, &ranks, if cells.of_others.is_nan() { 1.0 } else { cells.of_others });
    }
    let severity = if confirmed.is_some() || (unequal && cells.is_none()) { Severity::Warning } else { Severity::Note };
    let others = if unequal { format!("others have up to {} GB/s", format_gbps(best)) } else { "all slots are alike".to_owned() };
    let say = format!(
        "the slot has {slot}, {} GB/s, the card could use {card}, {}; {others}",
        format_gbps(slot.rate()),
        format_gbps(card.rate())
    );
    let mut facts = vec![said(say)];
    facts.extend(cells.as_ref().map(|cells| cells.fact("over it")));
    let title = format!("the slot of {place} has {slot}, its card could use {card}");
    let amount = percent(slot.rate() / if unequal { best } else { card.rate() });
    Some(told(measured, first, (severity, title, format!("{slot}, card {card}")), ranks, amount, facts, confirmed))
}

fn told(
    measured: &Measured,
    link: &Link,
    (severity, title, state): (Severity, String, String),
    ranks: Vec<usize>,
    amount: String,
    mut facts: Vec<Fact>,
    cells: Option<&Cells>,
) -> Finding {
    let (host, hop) = (link.hardware(measured).host.clone(), link.hop(measured));
    facts.push(said(format!("behind it: rank {}", format_ranks(&ranks))));
    let id = format!("trained-down {host} {}", link.device(measured));
    let shape = Shape::TrainedDown { host: host.clone(), hop: hop.clone(), state, ranks };
    Finding {
        amount,
        weight: cells.map_or(0.0, Cells::weight),
        facts,
        cells: cells.map(Cells::cells).unwrap_or_default(),
        hop: Some((host, hop)),
        ..finding(TRAINED.name, id, severity, title, shape)
    }
}
