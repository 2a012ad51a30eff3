//! GPUs whose clocks were held down while they were measured on, and PCIe links that stayed below what they could be under load.

use super::evidence::{finding, percent, said};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, View};
use crate::topology::GpuRange;

pub const HELD: Rule = Rule {
    name: "held-down",
    summary: "samples were taken while a GPU's clocks were held down, or over a PCIe link that stayed below what it could be under load",
    check,
};

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    measured.gpus.iter().flat_map(|range| [throttled(measured, range), narrow(measured, range)]).flatten().collect()
}

/// More often than not it is how the GPU runs; now and then it may be no sample's fault.
fn severity(part: u64, of: u64) -> Severity {
    if 2 * part > of { Severity::Warning } else { Severity::Note }
}

/// `rank 3's GPU 3 of node1`
fn whose(measured: &Measured, rank: usize) -> String {
    let place = measured.topology.ranks.get(rank);
    let gpu = place.and_then(|place| measured.topology.hardware_of(&place.host)?.gpus.get(place.gpu?));
    match (place, gpu) {
        (Some(place), Some(gpu)) => format!("GPU {} of {} (rank {rank})", gpu.index, place.host),
        _ => format!("the GPU of rank {rank}"),
    }
}

fn throttled(measured: &Measured, range: &GpuRange) -> Option<Finding> {
    let (part, of) = (range.throttled, range.looks);
    if part == 0 {
        return None;
    }
    let title = format!("the clocks of {} were held down: {}", whose(measured, range.rank), range.reasons.join(", "));
    let say = title.clone();
    let mut facts = vec![said(format!("in {part} of {of} looks, each right after a probe of rank {}", range.rank))];
    facts.extend(range.sm_clock.map(|(low, high)| said(format!("SM clock {low} to {high} MHz"))));
    facts.extend(range.temperature.map(|(_, high)| said(format!("{high} °C at most"))));
    facts.extend(range.power.map(|(_, high)| said(format!("{high:.0} W at most"))));
    let id = format!("held-down clocks rank {}", range.rank);
    Some(Finding {
        amount: percent(part as f64 / of as f64),
        facts,
        ..finding(HELD.name, id, severity(part, of), title, Shape::Other { say })
    })
}

fn narrow(measured: &Measured, range: &GpuRange) -> Option<Finding> {
    let (now, most) = range.pcie.filter(|_| range.narrow > 0)?;
    let title = format!("the PCIe link of {} was {now} while bytes went over it, and could be {most}", whose(measured, range.rank));
    let say = title.clone();
    let facts = vec![said(format!("in {} of {} looks, the others of which may have found it at rest", range.narrow, range.looks))];
    let id = format!("held-down link rank {}", range.rank);
    let severity = severity(range.narrow, range.looks);
    Some(Finding { amount: percent(now.rate() / most.rate()), facts, ..finding(HELD.name, id, severity, title, Shape::Other { say }) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{diagnose, fixture};
    use crate::topology::{GpuState, Lanes};

    fn state(reasons: &[&str], generation: u32) -> GpuState {
        let throttled = reasons.iter().map(|&reason| reason.to_owned()).collect();
        let (pcie, pcie_most) = (Lanes::of_generation(generation, 16), Lanes::of_generation(5, 16));
        GpuState { sm_clock: Some(1200), throttled, pcie, pcie_most, ..GpuState::default() }
    }

    fn found(states: &[(GpuState, bool)]) -> Vec<(String, Severity, String)> {
        let mut measured = fixture::measured(1, 2, 1, |_, _| None);
        let mut range = GpuRange::of(1);
        for (state, loaded) in states {
            range.add(state, *loaded);
        }
        measured.gpus = vec![range];
        let told = diagnose(&measured).findings.into_iter().filter(|finding| finding.rule == HELD.name);
        told.map(|finding| (finding.title, finding.severity, finding.amount)).collect()
    }

    #[test]
    fn clocks_that_were_held_down_and_links_below_what_they_could_be_are_told() {
        let healthy = [(state(&[], 5), true), (state(&[], 1), false)];
        assert_eq!(found(&healthy), [], "a link at rest is no fault");
        let hot = [(state(&["heat"], 5), true), (state(&["heat"], 5), true), (state(&[], 5), true)];
        let [(title, severity, amount)] = &found(&hot)[..] else { panic!() };
        assert_eq!(
            (title.as_str(), *severity, amount.as_str()),
            ("the clocks of the GPU of rank 1 were held down: heat", Severity::Warning, "67 %")
        );
        let [(_, severity, _)] = &found(&[hot[0].clone(), healthy[0].clone(), healthy[0].clone()])[..] else { panic!() };
        assert_eq!(*severity, Severity::Note, "now and then");
        let [(title, severity, _)] = &found(&[(state(&[], 3), true)])[..] else { panic!() };
        assert!(
            title.contains("was Gen3 x16 while bytes went over it, and could be Gen5 x16") && *severity == Severity::Warning,
            "{title}"
        );
    }
}
