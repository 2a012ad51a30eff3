//! Small messages that take much longer than others' although large ones do not.

use super::cover::{Cell, Place, cover};
use super::usual::Usual;
use super::{FEW, LIT, NAMED, SLOW, words};
use crate::diagnose::{Finding, Measured, PairSeen, Rule, Severity, Shape, View};
use crate::topology::PathClass;
use crate::topology::hardware::LinkLayer;
use crate::units::{format_ranks, format_seconds, format_size};

pub const RULE: Rule = Rule {
    name: "latency",
    summary: "small messages take much longer than usual, while large ones go at their usual rate; or between hosts altogether",
    check,
};

/// So many times the usual latency is told; binding, interrupts and one more switch on the way make less.
const LONG: f64 = 2.0;

/// And this much is slow for every small message of a job.
const TOO_LONG: f64 = 3.0;

/// Between hosts a message takes a few times as long as within one (2 against 0.5 µs with RDMA and shared memory, 20 against 10 with
/// GPUs); TCP takes tens of times, and at least this long.
const APART: f64 = 15.0;
const TCP: f64 = 15e-6;

/// Within a host no mover needs so long without something in its way: it is ten times what GPU libraries take.
const HOST: f64 = 200e-6;

/// Messages up to this size show latency.
const SMALL: u64 = 64 << 10;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    if measured.small_bytes > SMALL || measured.small_bytes == measured.bytes {
        return Vec::new();
    }
    let mut findings = whole(measured);
    let rates = Usual::rates(measured);
    let speeds = Usual::classes(measured, |pair| pair.small.recip());
    let mut cells = Vec::new();
    for pair in measured.peer.iter().filter(|pair| pair.small > 0.0 && pair.from != pair.to) {
        let class = usize::from(pair.class);
        let speed = pair.small.recip() / speeds[class].value;
        let (from, to) = words::ends(pair);
        // What is slow at every size is told by other rules.
        let normal = pair.rate >= rates[class].value * SLOW && !bound_by_size(measured, pair);
        let slow = normal && speed < LONG.recip() && speeds[class].below(speed.ln(), 0.0);
        let slow = slow && !view.claims.explain(&measured.units, pair.class, from, to, pair.rate / rates[class].value);
        cells.push(Cell { from: pair.from, to: pair.to, class: pair.class, log: speed.ln() as f32, slow });
    }
    let parts = cover(&measured.units, &cells);
    let mut left: Vec<Cell> = cells.iter().copied().filter(|cell| cell.slow).collect();
    for part in parts {
        left.retain(|cell| !part.cells.contains(cell));
        let (name, ranks) = match part.place {
            Place::Unit { unit, .. } => (words::unit(measured, unit), measured.units.members(unit).to_vec()),
            Place::Between { from, to } => {
                let ranks = [measured.units.members(from), measured.units.members(to)].concat();
                (format!("{} to {}", words::unit(measured, from), words::unit(measured, to)), ranks)
            }
        };
        findings.push(of_cells(measured, &speeds, &name, ranks, &part.cells));
    }
    // Single pairs are told together: one that is late once is no news.
    left.retain(|cell| measured.peer.get(cell.from as usize, cell.to as usize).is_some_and(|pair| pair.n >= FEW));
    left.sort_by(|a, b| a.log.total_cmp(&b.log).then_with(|| a.ends().cmp(&b.ends())));
    if let Some(worst) = left.first() {
        let (from, to) = worst.ends();
        let name =
            if left.len() == 1 { words::arrow(from, to) } else { format!("{} single pairs, {} most", left.len(), words::arrow(from, to)) };
        findings.push(of_cells(measured, &speeds, &name, vec![from, to], &left));
    }
    findings
}

/// True if a message of the smallest size is so long on its way because of its bytes.
fn bound_by_size(measured: &Measured, pair: &PairSeen) -> bool {
    measured.small_bytes as f64 / pair.rate > pair.small / 2.0
}

fn of_cells(measured: &Measured, speeds: &[Usual], name: &str, mut ranks: Vec<usize>, cells: &[Cell]) -> Finding {
    ranks.sort_unstable();
    ranks.dedup();
    let middle = cells[cells.len() / 2];
    let ratio = f64::from(-middle.log).exp();
    let severity = if ratio >= TOO_LONG { Severity::Warning } else { Severity::Note };
    let id = format!("latency ranks {}", format_ranks(&ranks));
    let shape = Shape::HighLatency { ranks, class: middle.class, ratio, whole: false };
    let mut finding = words::finding(RULE.name, id, severity, shape);
    let usual = speeds[usize::from(middle.class)].value.recip();
    let size = format_size(measured.small_bytes);
    finding.title = format!("{name}: {size} take {}, {} is usual", format_seconds(usual * ratio), format_seconds(usual));
    finding.amount = words::times(ratio);
    finding.weight = cells.iter().map(|cell| -f64::from(cell.log)).sum();
    let pairs: Vec<(usize, usize)> = cells.iter().map(Cell::ends).collect();
    let say = format!("{} of {} pairs; large messages go at their usual rate there", words::times(ratio), pairs.len());
    finding.facts.push(words::fact(say, pairs.iter().copied().take(NAMED).collect()));
    finding.cells = pairs.into_iter().take(LIT).collect();
    finding
}

/// Classes whose latency is too long as a whole, so far as that can be said without a reference.
fn whole(measured: &Measured) -> Vec<Finding> {
    let small = |path| {
        let of = measured.classes.iter().enumerate().filter(move |(_, class)| class.path == path && class.usual_small > 0.0);
        of.min_by(|a, b| a.1.usual_small.total_cmp(&b.1.usual_small)).map(|(at, class)| (at, class.usual_small))
    };
    let size = format_size(measured.small_bytes);
    let mut findings = Vec::new();
    let inside = small(PathClass::IntraNode);
    let mut push = |class: usize, ratio: f64, severity, title: String, say: String| {
        let class = u16::try_from(class).unwrap_or(u16::MAX);
        let name = measured.classes[usize::from(class)].name();
        let shape = Shape::HighLatency { ranks: Vec::new(), class, ratio, whole: true };
        let mut finding = words::finding(RULE.name, format!("latency {name}"), severity, shape);
        let cells: Vec<(usize, usize)> = measured.peer.iter().filter(|pair| pair.class == class).map(words::ends).collect();
        finding.title = title;
        finding.amount = words::times(ratio);
        finding.weight = ratio.ln() * cells.len() as f64;
        finding.facts.push(words::fact(say, cells.iter().copied().take(NAMED).collect()));
        finding.cells = cells.into_iter().take(LIT).collect();
        findings.push(finding);
    };
    if let (Some((_, near)), Some((class, far))) = (inside, small(PathClass::InterNode))
        && far >= near * APART
        && far >= TCP
    {
        let title = format!("between hosts {size} take {}, within one {}", format_seconds(far), format_seconds(near));
        // Without ports for RDMA it is what TCP takes.
        let nics = measured.topology.hardware.iter().flat_map(|hardware| &hardware.nics);
        let rdma = nics.into_iter().any(|nic| nic.up() && (nic.layer == LinkLayer::InfiniBand || nic.interface.is_some()));
        let say = format!("{} what it takes within a host; with RDMA that is 2 to 5 ×", words::times(far / near));
        push(class, far / near, if rdma { Severity::Warning } else { Severity::Note }, title, say);
    }
    if let Some((class, near)) = inside.filter(|&(_, near)| near > HOST) {
        let title = format!("within a host {size} take {}", format_seconds(near));
        push(class, near / HOST, Severity::Note, title, format!("more than the {} that hosts stay below", format_seconds(HOST)));
    }
    findings
}
