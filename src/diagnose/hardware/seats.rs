//! Ranks whose cores are not where their device is.

use super::evidence::{Cells, SLOWER, finding, percent, said};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, View};
use crate::fit::median;
use crate::topology::hardware::Device;
use crate::units::{format_ranks, format_seconds};

pub const SEATS: Rule =
    Rule { name: "misbound", summary: "a rank runs on cores that are not near the device whose memory it moves", check };

/// Small messages that take so much longer than those of other ranks show it.
const LONGER: f64 = 1.25;

/// NUMA nodes of a rank's device and of its cores, as far as known.
pub type Nodes = (Option<usize>, Option<usize>);

/// The NUMA node of a rank's GPU and that of its cores, where both are known and differ; `None` for a place that only cores tell.
pub fn misbound(measured: &Measured, rank: usize) -> Option<Nodes> {
    let (host, device) = measured.router.end(rank)?;
    let Device::Gpu(gpu) = device else { return None };
    let hardware = measured.topology.hardware.get(host)?;
    let (gpu, placement) = (hardware.gpus.get(gpu)?, measured.topology.ranks.get(rank)?);
    let tree = || gpu.pci.and_then(|pci| hardware.above(pci).find_map(|at| hardware.pci[at].numa));
    match (gpu.numa.or_else(tree), placement.numa) {
        (Some(device), Some(cores)) => (device != cores).then_some((Some(device), Some(cores))),
        (device, cores) if cores.is_none() && !gpu.cpus.is_empty() && !placement.cores.is_empty() => {
            let near = placement.cores.iter().any(|core| gpu.cpus.binary_search(core).is_ok());
            (!near).then_some((device, cores))
        }
        _ => None,
    }
}

/// How much longer small messages of these ranks take than those of others, class by class; NaN where nothing compares.
fn longer(measured: &Measured, away: &[bool]) -> f64 {
    let mut times: Vec<[Vec<f64>; 2]> = vec![Default::default(); measured.classes.len()];
    for pair in measured.peer.iter().filter(|pair| pair.small.is_finite()) {
        let struck = away[pair.from as usize] || away[pair.to as usize];
        times[usize::from(pair.class)][usize::from(struck)].push(pair.small);
    }
    let ratios = times.iter_mut().map(|[others, own]| median(own) / median(others));
    median(&mut ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
}

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let world = measured.world();
    let found: Vec<(usize, Nodes)> = (0..world).filter_map(|rank| Some((rank, misbound(measured, rank)?))).collect();
    let Some(&(first, (device, cores))) = found.first() else { return Vec::new() };
    let ranks: Vec<usize> = found.iter().map(|(rank, _)| *rank).collect();
    let mut away = vec![false; world];
    for &rank in &ranks {
        away[rank] = true;
    }
    let pairs = measured.peer.iter().filter(|pair| away[pair.from as usize] || away[pair.to as usize]);
    let cells = Cells::of(measured, pairs.map(|pair| (pair.from as usize, pair.to as usize)));
    let longer = longer(measured, &away);
    let slow = cells.as_ref().is_some_and(|cells| cells.of_others < SLOWER);
    // Others are there to compare with, and do no better: it costs nothing here.
    let harmless = !slow && (longer.is_nan() || longer < LONGER) && cells.as_ref().is_some_and(|cells| cells.of_others.is_finite());
    let node = |node: Option<usize>| node.map_or_else(|| "another node".to_owned(), |node| format!("NUMA {node}"));
    let say = format!("rank {first} of {}: device at {}, cores at {}", measured.topology.ranks[first].host, node(device), node(cores));
    let mut facts = vec![said(say)];
    facts.extend(cells.as_ref().map(|cells| cells.fact("of theirs")));
    if longer.is_finite() {
        facts.push(said(format!(
            "small messages take {longer:.2} times as long as those of others (usual {})",
            format_seconds(measured.classes.iter().map(|class| class.usual_small).fold(f64::NAN, f64::min))
        )));
    }
    let severity = if harmless { Severity::Note } else { Severity::Warning };
    if let Some(cells) = cells.as_ref().filter(|_| slow) {
        super::evidence::claim_ranks(view, &ranks, cells.of_others);
    }
    let count = ranks.len();
    let title = format!(
        "rank{} {} run{} away from {} device",
        if count == 1 { "" } else { "s" },
        format_ranks(&ranks),
        if count == 1 { "s" } else { "" },
        if count == 1 { "its" } else { "their" }
    );
    vec![Finding {
        amount: cells.as_ref().filter(|_| slow).map(|cells| percent(cells.of_others)).unwrap_or_default(),
        weight: cells.as_ref().filter(|_| slow).map_or(0.0, Cells::weight),
        facts,
        cells: cells.as_ref().filter(|_| slow).map(Cells::cells).unwrap_or_default(),
        ..finding(SEATS.name, format!("misbound rank {}", format_ranks(&ranks)), severity, title, Shape::Misbound { ranks })
    }]
}
