//! NVLinks that are down, fewer than others of the model have, or not used.

use std::collections::BTreeMap;

use super::evidence::{BEYOND, Cells, claim_ranks, finding, percent, said};
use super::models::model;
use crate::diagnose::{Fact, Finding, Measured, Rule, Severity, Shape, Silenced, View};
use crate::topology::hardware::{Device, GpuLinkKind, Hardware, LinkEnd, NoteKind, ToldWhat};
use crate::topology::{PathLabel, label};
use crate::units::{format_gbps, format_ranks};

pub const MISSING: Rule =
    Rule { name: "missing-nvlinks", summary: "a GPU has fewer NVLinks up than others of its model, or than its model has", check: missing };

pub const UNUSED: Rule = Rule { name: "links-unused", summary: "GPUs that are made for NVLink reach each other over PCIe", check: unused };

/// The NVLinks of one GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Links {
    up: u32,
    down: u32,
    /// of one that is up, bytes per second
    rate: Option<f64>,
    switched: bool,
}

fn links(hardware: &Hardware) -> Vec<Links> {
    let mut links = vec![Links::default(); hardware.gpus.len()];
    for link in hardware.gpu_links.iter().filter(|link| link.kind == GpuLinkKind::Nvlink) {
        let Some(of) = links.get_mut(link.gpu) else { continue };
        if link.active {
            of.up += 1;
            of.rate = of.rate.or(link.rate);
            of.switched |= link.end == LinkEnd::Switch;
        } else {
            of.down += 1;
        }
    }
    links
}

/// Ranks by the GPU of this host that they move.
fn ranks_of(measured: &Measured, host: usize, gpus: &[usize]) -> Vec<usize> {
    let on = |rank: &usize| matches!(measured.router.end(*rank), Some((at, Device::Gpu(gpu))) if at == host && gpus.contains(&gpu));
    (0..measured.world()).filter(on).collect()
}

/// Ordered pairs of these ranks with all ranks of their host.
fn inside(measured: &Measured, host: usize, ranks: &[usize]) -> Vec<(usize, usize)> {
    let on = |rank: &usize| matches!(measured.router.end(*rank), Some((at, Device::Gpu(_))) if at == host);
    let all: Vec<usize> = (0..measured.world()).filter(on).collect();
    ranks
        .iter()
        .flat_map(|&rank| all.iter().filter(move |&&other| other != rank).flat_map(move |&other| [(rank, other), (other, rank)]))
        .collect()
}

fn missing(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let all: Vec<Vec<Links>> = measured.topology.hardware.iter().map(links).collect();
    // Modules of one name should be alike in the whole job.
    let mut most: BTreeMap<&str, u32> = BTreeMap::new();
    for (hardware, links) in measured.topology.hardware.iter().zip(&all) {
        for (gpu, links) in hardware.gpus.iter().zip(links) {
            let known = most.entry(gpu.name.as_str()).or_default();
            *known = (*known).max(links.up);
        }
    }
    let mut findings = Vec::new();
    for (host, (hardware, links)) in measured.topology.hardware.iter().zip(&all).enumerate() {
        if links.iter().all(|links| links.up == 0) {
            continue;
        }
        let should = |gpu: usize| {
            let (of, known) = (links[gpu], model(&hardware.gpus[gpu].name));
            // A bridge joins all of its links or is badly seated; one that is not there is no fault.
            if let Some(bridge) = known.and_then(|model| model.bridge) {
                return of.up.next_multiple_of(bridge);
            }
            let like = most.get(hardware.gpus[gpu].name.as_str()).copied().unwrap_or(0);
            let own = if of.switched { of.up + of.down } else { of.up };
            known.map_or(0, |model| model.links).max(like).max(own)
        };
        let short: Vec<(usize, u32, u32)> = (0..links.len())
            .filter(|&gpu| hardware.gpus[gpu].mig.is_empty())
            .map(|gpu| (gpu, links[gpu].up, should(gpu)))
            .filter(|(_, up, of)| up < of)
            .collect();
        findings.extend(of_host(view, host, &short, links));
    }
    findings
}

/// One host's: one matter, whichever ends of it are seen.
fn of_host(view: &mut View<'_>, host: usize, short: &[(usize, u32, u32)], links: &[Links]) -> Option<Finding> {
    let measured = view.measured;
    let hardware = &measured.topology.hardware[host];
    let &(gpu, up, of) = short.iter().max_by_key(|(gpu, up, of)| (of - up, std::cmp::Reverse(*gpu)))?;
    let gpus: Vec<usize> = short.iter().map(|(gpu, ..)| *gpu).collect();
    let ranks = ranks_of(measured, host, &gpus);
    let worst = ranks_of(measured, host, &[gpu]);
    let cells = Cells::of(measured, inside(measured, host, &worst));
    let index = |gpu: usize| hardware.gpus[gpu].index;
    let title = format!("GPU {} of {} has {up} of {of} NVLinks", index(gpu), hardware.host);
    let lets = links[gpu].rate.map_or(f64::INFINITY, |rate| rate * f64::from(up));
    if let Some(cells) = cells.as_ref().filter(|cells| cells.best > lets * BEYOND) {
        let why =
            format!("measured beats reported: it moved {} GB/s, {up} links let {} through", format_gbps(cells.best), format_gbps(lets));
        view.silenced.push(Silenced { rule: MISSING.name, say: title, why });
        return None;
    }
    let confirmed = cells.as_ref().filter(|cells| cells.slow());
    if let Some(cells) = confirmed {
        // Pairs with fewer links are a class of their own.
        cells.claim_classes(view);
        claim_ranks(view, &worst, cells.share());
    }
    let mut facts: Vec<Fact> = short.iter().map(|&(gpu, up, of)| said(format!("GPU {}: {up} of {of} links up", index(gpu)))).collect();
    facts.extend(cells.as_ref().map(|cells| cells.fact("of its within the host")));
    facts.extend(hardware.notes.iter().filter(|note| note.about == format!("GPU {}", index(gpu))).map(|note| said(note.text.clone())));
    if !ranks.is_empty() {
        facts.push(said(format!("there: rank {}", format_ranks(&ranks))));
    }
    let severity = if confirmed.is_some_and(|cells| cells.share() <= 0.6) || up == 0 { Severity::Problem } else { Severity::Warning };
    let shape = Shape::MissingLinks { host: hardware.host.clone(), gpu, up, of, ranks };
    Some(Finding {
        amount: confirmed.map_or_else(|| format!("{up} of {of}"), |cells| percent(cells.share())),
        weight: confirmed.map_or(0.0, Cells::weight),
        facts,
        cells: confirmed.map(Cells::cells).unwrap_or_default(),
        ..finding(MISSING.name, format!("missing-nvlinks {} GPU {}", hardware.host, index(gpu)), severity, title, shape)
    })
}

/// Ordered pairs of whole GPUs for which the driver refuses what their links could do.
fn refused(hardware: &Hardware) -> usize {
    let whole = |device: Device| matches!(device, Device::Gpu(gpu) if hardware.gpus.get(gpu).is_some_and(|gpu| gpu.mig.is_empty()));
    let told = hardware.told.iter().filter(|told| whole(told.from) && whole(told.to));
    told.filter(|told| matches!(&told.what, ToldWhat::Peer { access, status } if access == "nvlink" && status != "OK"))
        .filter(|told| matches!(label(hardware, told.from, told.to), Some(PathLabel::Nvl(_))))
        .count()
}

fn unused(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut findings: Vec<Finding> = Vec::new();
    for (host, hardware) in measured.topology.hardware.iter().enumerate() {
        let links = links(hardware);
        let whole: Vec<usize> = (0..hardware.gpus.len()).filter(|&gpu| hardware.gpus[gpu].mig.is_empty()).collect();
        if whole.len() < 2 {
            continue;
        }
        let modules = whole.iter().filter(|&&gpu| model(&hardware.gpus[gpu].name).is_some_and(|model| model.bridge.is_none())).count();
        let labels: Vec<Option<PathLabel>> =
            whole.windows(2).map(|pair| label(hardware, Device::Gpu(pair[0]), Device::Gpu(pair[1]))).collect();
        let linked = labels.iter().any(|label| matches!(label, Some(PathLabel::Nvl(_))));
        let refused = refused(hardware);
        if !linked && modules < 2 {
            if links.iter().any(|links| links.down > 0) {
                let say = format!("all NVLinks of the GPUs of {} are inactive", hardware.host);
                view.silenced.push(Silenced {
                    rule: UNUSED.name,
                    say,
                    why: "cards without a bridge have none; nothing is missing".to_owned(),
                });
            }
            continue;
        }
        if linked && refused == 0 {
            continue;
        }
        findings.extend(unused_on(view, host, labels.iter().flatten().min().copied(), refused));
    }
    findings
}

fn unused_on(view: &mut View<'_>, host: usize, label: Option<PathLabel>, refused: usize) -> Option<Finding> {
    let measured = view.measured;
    let hardware = &measured.topology.hardware[host];
    let name = hardware.gpus.first().map_or("", |gpu| gpu.name.as_str());
    let gpus: Vec<usize> = (0..hardware.gpus.len()).collect();
    let ranks = ranks_of(measured, host, &gpus);
    let cells = Cells::of(measured, inside(measured, host, &ranks));
    let path = label.map_or_else(|| "an unknown way".to_owned(), |label| label.to_string());
    let title = if refused > 0 {
        format!("the NVLinks of {} are up, but the driver lets {refused} pairs of GPUs not use them", hardware.host)
    } else {
        format!("the GPUs of {} have NVLink, and reach each other by {path}", hardware.host)
    };
    // More than PCIe could: then they are used, whoever says what.
    if let Some(cells) = cells.as_ref().filter(|cells| refused == 0 && cells.of_expected > 1.2) {
        let why = format!("measured beats reported: pairs give {} GB/s, more than {path} lets through", format_gbps(cells.best));
        view.silenced.push(Silenced { rule: UNUSED.name, say: title, why });
        return None;
    }
    let mut facts = vec![said(format!("{} × {name}", hardware.gpus.len()))];
    facts.extend(cells.as_ref().map(|cells| cells.fact("of GPUs there")));
    facts.extend(
        hardware
            .notes
            .iter()
            .filter(|note| note.kind != NoteKind::Lie && matches!(note.about.as_str(), "NVSwitch" | "NVML"))
            .map(|note| said(note.text.clone())),
    );
    if let Some(cells) = &cells {
        cells.claim(view);
    }
    Some(Finding {
        amount: path,
        weight: cells.as_ref().map_or(0.0, |cells| cells.pairs.len() as f64),
        facts,
        cells: cells.as_ref().map(Cells::cells).unwrap_or_default(),
        ..finding(
            UNUSED.name,
            format!("links-unused {}", hardware.host),
            Severity::Problem,
            title,
            Shape::LinksUnused { host: hardware.host.clone(), label },
        )
    })
}
