//! Fans: several at once against one by one.
//!
//! c = Σ bytes / rate alone over the time together (method.md, "The resource model"): as many as there are peers where nothing is
//! shared, 1 for one after another, below 1 where they hinder each other.

use std::collections::BTreeMap;

use crate::diagnose::hardware::evidence::{finding, said};
use crate::diagnose::{Fact, Finding, Measured, Rule, Severity, Shape, Silenced, View};
use crate::fit::{effective_concurrency, median};
use crate::sample::Pattern;
use crate::units::{format_gbps, format_ranks};

pub const COLLAPSE: Rule = Rule { name: "fan-collapse", summary: "several transfers at once take longer than one by one", check: collapse };
pub const SCALING: Rule = Rule { name: "fan-scaling", summary: "several transfers at once bring no more than one", check: scaling };

/// Below this it is a collapse, not noise.
const COLLAPSED: f64 = 0.9;
/// Half of what one by one gives.
const GRAVE: f64 = 0.5;
/// Up to this, one more peer brings nothing.
const SERIAL: f64 = 1.25;
/// A pair that gives this share of what the hardware should fills its root's link alone.
const FULL: f64 = 0.7;

/// One fan.
#[derive(Debug, Clone, PartialEq)]
struct Fan {
    root: usize,
    peers: Vec<usize>,
    into: bool,
    concurrency: f64,
    /// bytes per second
    aggregate: f64,
    /// index in [`Measured::together`]
    at: usize,
}

impl Fan {
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> {
        self.peers.iter().map(|&peer| if self.into { (peer, self.root) } else { (self.root, peer) })
    }

    fn say(&self) -> String {
        let (peers, way) = (format_ranks(&self.peers), if self.into { "from" } else { "to" });
        format!("rank {} {way} {peers}: {} GB/s, c = {:.2}", self.root, format_gbps(self.aggregate), self.concurrency)
    }
}

/// All fans of two peers and more whose pairs are known, at the size nearest to that of the pairs.
fn fans(measured: &Measured) -> Vec<Fan> {
    let mut best: BTreeMap<(bool, usize, Vec<usize>), (u64, Fan)> = BTreeMap::new();
    for (at, together) in measured.together.iter().enumerate() {
        let into = match together.pattern {
            Pattern::FanIn => true,
            Pattern::FanOut => false,
            _ => continue,
        };
        let (Some(root), true) = (together.root, together.flows.len() > 1) else { continue };
        // Rates at another size hold other shares of latency: a factor of four is near enough.
        let away = together.bytes.max(measured.bytes) / together.bytes.min(measured.bytes).max(1);
        if away > 4 || together.seconds.is_nan() {
            continue;
        }
        let alone: Option<Vec<(u64, f64)>> =
            together.flows.iter().map(|&(from, to)| Some((together.bytes, measured.rate(from, to)?))).collect();
        let Some(alone) = alone else { continue };
        let mut peers: Vec<usize> = together.flows.iter().map(|&(from, to)| if into { from } else { to }).collect();
        peers.sort_unstable();
        let concurrency = effective_concurrency(alone, together.seconds);
        let fan = Fan { root, peers: peers.clone(), into, concurrency, aggregate: together.aggregate(), at };
        let key = (into, root, peers);
        if best.get(&key).is_none_or(|(known, _)| away < *known) {
            best.insert(key, (away, fan));
        }
    }
    best.into_values().map(|(_, fan)| fan).collect()
}

fn evidence(say: String, fans: &[&Fan]) -> Fact {
    let pairs = fans.iter().take(64).flat_map(|fan| fan.cells()).collect();
    Fact { say, pairs, together: fans.iter().take(64).map(|fan| fan.at).collect() }
}

fn roots(fans: &[&Fan]) -> Vec<usize> {
    let mut roots: Vec<usize> = fans.iter().map(|fan| fan.root).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

fn way(into: bool) -> &'static str {
    if into { "into" } else { "out of" }
}

fn collapse(view: &mut View<'_>) -> Vec<Finding> {
    let fans = fans(view.measured);
    let mut findings = Vec::new();
    for into in [true, false] {
        // One matter, whichever roots and widths show it.
        let mut fallen: Vec<&Fan> = fans.iter().filter(|fan| fan.into == into && fan.concurrency < COLLAPSED).collect();
        fallen.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        let Some(worst) = fallen.first() else { continue };
        let roots = roots(&fallen);
        let who = if roots.len() == 1 { format!("rank {}", worst.root) } else { format!("{} ranks, such as {},", roots.len(), worst.root) };
        let title =
            format!("{} at once {} {who} take {:.1} × as long as one by one", worst.peers.len(), way(into), worst.concurrency.recip());
        let mut facts: Vec<Fact> = fallen.iter().take(4).map(|fan| evidence(fan.say(), &[fan])).collect();
        let width = |fan: &&Fan| fan.peers.len();
        let narrowest = fallen.iter().map(width).min().unwrap_or(0);
        if let Some(fine) = fans
            .iter()
            .filter(|fan| fan.into == into && fan.concurrency >= COLLAPSED && fan.root == worst.root)
            .max_by_key(|fan| fan.peers.len())
        {
            facts.push(evidence(format!("it begins at {narrowest}; {} still go well: {}", fine.peers.len(), fine.say()), &[fine]));
        }
        let severity = if worst.concurrency < GRAVE { Severity::Problem } else { Severity::Warning };
        let id = if roots.len() == 1 {
            format!("fan-collapse {} rank {}", way(into), worst.root)
        } else {
            format!("fan-collapse {}", way(into))
        };
        let shape = Shape::FanCollapse { root: worst.root, peers: worst.peers.clone(), concurrency: worst.concurrency };
        findings.push(Finding {
            amount: format!("c = {:.2}", worst.concurrency),
            weight: fallen.iter().map(|fan| fan.peers.len() as f64 * (1.0 - fan.concurrency)).sum(),
            facts,
            cells: fallen.iter().take(64).flat_map(|fan| fan.cells()).collect(),
            ..finding(COLLAPSE.name, id, severity, title, shape)
        });
    }
    findings
}

/// What a root's fans say together.
struct Root<'a> {
    rank: usize,
    /// the widest fan, of several the one that scales best
    widest: &'a Fan,
    /// all of its peers fill its link alone: there is nothing to gain
    full: bool,
}

fn scaling(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let fans = fans(measured);
    let mut findings = Vec::new();
    for into in [true, false] {
        let mut by_root: BTreeMap<usize, Vec<&Fan>> = BTreeMap::new();
        fans.iter().filter(|fan| fan.into == into).for_each(|fan| by_root.entry(fan.root).or_default().push(fan));
        let of_root = |(root, fans): (usize, Vec<&'_ Fan>)| -> Option<(usize, usize)> {
            let widest = fans.iter().max_by(|a, b| a.peers.len().cmp(&b.peers.len()).then(a.concurrency.total_cmp(&b.concurrency)))?;
            Some((root, widest.at))
        };
        let widest: Vec<(usize, usize)> = by_root.into_iter().filter_map(of_root).collect();
        let roots: Vec<Root<'_>> = widest
            .iter()
            .filter_map(|&(root, at)| {
                let widest = fans.iter().find(|fan| fan.at == at)?;
                let of_expected = widest.cells().filter_map(|(from, to)| measured.peer.get(from, to)).map(|pair| pair.rate / pair.expected);
                let full = median(&mut of_expected.filter(|share| share.is_finite()).collect::<Vec<_>>()) >= FULL;
                Some(Root { rank: root, widest, full })
            })
            .collect();
        let (serial, scaled): (Vec<&Root<'_>>, Vec<&Root<'_>>) =
            roots.iter().filter(|root| root.widest.concurrency >= COLLAPSED).partition(|root| root.widest.concurrency < SERIAL);
        if serial.is_empty() {
            continue;
        }
        let all: Vec<usize> = serial.iter().map(|root| root.rank).collect();
        let concurrency = median(&mut serial.iter().map(|root| root.widest.concurrency).collect::<Vec<_>>());
        let width = serial.iter().map(|root| root.widest.peers.len()).max().unwrap_or(0);
        let who = if scaled.is_empty() { "each rank".to_owned() } else { format!("rank {}", format_ranks(&all)) };
        let title = format!("{width} at once {} {who} bring no more than one after another", way(into));
        if serial.iter().all(|root| root.full) && scaled.is_empty() {
            let why = "each peer alone fills the way; there is nothing left to share".to_owned();
            view.silenced.push(Silenced { rule: SCALING.name, say: format!("{title} (c = {concurrency:.2})"), why });
            continue;
        }
        // That some do not while others do is worth a look; that none does is how the library works.
        let some = !scaled.is_empty() && serial.len() * 2 <= scaled.len() && !serial.iter().all(|root| root.full);
        let shown: Vec<&Fan> = serial.iter().map(|root| root.widest).collect();
        let mut facts: Vec<Fact> = shown.iter().take(4).map(|fan| evidence(fan.say(), &[fan])).collect();
        if let Some(best) = scaled.iter().max_by(|a, b| a.widest.concurrency.total_cmp(&b.widest.concurrency)) {
            facts.push(evidence(format!("others scale: {}", best.widest.say()), &[best.widest]));
        }
        if let Some(stand) = view.identified.stands.first() {
            facts.push(said(format!(
                "of the explanations of all fans, {} fits best: {:.1} % off on average",
                stand.words(),
                100.0 * stand.mean
            )));
        }
        let severity = if some { Severity::Warning } else { Severity::Note };
        let id = if some { format!("fan-scaling {} rank {}", way(into), format_ranks(&all)) } else { format!("fan-scaling {}", way(into)) };
        findings.push(Finding {
            amount: format!("c = {concurrency:.2}"),
            weight: serial.len() as f64,
            facts,
            cells: shown.iter().take(64).flat_map(|fan| fan.cells()).collect(),
            ..finding(SCALING.name, id, severity, title, Shape::FanDoesNotScale { roots: all, width, concurrency, into })
        });
    }
    findings
}
