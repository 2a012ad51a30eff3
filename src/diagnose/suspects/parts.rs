//! Findings that begin with a fact of the hardware.

use super::case::Case;
use super::facts::host;
use crate::diagnose::Cause;
use crate::diagnose::hardware::models::model;
use crate::topology::hardware::{GpuLinkKind, NoteKind};
use crate::units::format_ranks;

pub fn trained_down(case: &mut Case<'_>, of: &str, hop: &str, state: &str) {
    let slot = state.contains("card");
    let low = hop.split(" → ").next().unwrap_or(hop);
    let made_up = host(case.measured(), of).and_then(|hardware| hardware.hypervisor.as_deref());
    if slot {
        case.add(Cause::NarrowSlot, 3.0, format!("{low} sits in a slot with less than it could use: {state}"), "");
        case.add(Cause::TrainedDown, 1.0, "a link may be trained down", "it has all that its slot has");
        case.add(Cause::PowerSaving, 0.4, "links at rest are slow", "it is what the slot can do, not what it does now");
    } else {
        case.add(Cause::TrainedDown, 3.2, format!("the link of {low} is {state}"), "");
        case.add(Cause::BadCable, 1.8, "a riser, a dirty contact or a card that is not fully seated leaves lanes out", "");
        case.add(Cause::NarrowSlot, 1.4, "lanes may be split with another slot by the firmware", "both ends say that they could");
        case.add(Cause::PowerSaving, 0.6, "links at rest are slow", "rest lowers speed, not width");
    }
    if let Some(hypervisor) = made_up {
        case.add(Cause::EmulatedBridge, 1.2, format!("{of} runs under {hypervisor}, which may make links up"), "");
    }
}

pub fn missing_links(case: &mut Case<'_>, of: &str, gpu: usize, up: u32, all: u32) {
    let measured = case.measured();
    let hardware = host(measured, of);
    let name = hardware.and_then(|hardware| hardware.gpus.get(gpu)).map_or("", |gpu| gpu.name.as_str());
    let known = model(name);
    let from = if known.is_some() { format!("{name} has {all}") } else { format!("others have {all}") };
    case.add(Cause::MissingNvlinks, 3.0, format!("{up} links are up, {from}"), "");
    if known.is_some_and(|model| model.bridge.is_some()) {
        case.add(Cause::BadCable, 2.4, "a bridge that is not fully seated leaves links out", "");
    } else {
        case.add(Cause::BadCable, 1.0, "a bad contact of the module or a bad cable to the switches", "");
    }
    // Of many GPUs at once it is no single link.
    let short = hardware.map_or(0, |hardware| {
        let up_of = |gpu: usize| {
            hardware.gpu_links.iter().filter(|link| link.kind == GpuLinkKind::Nvlink && link.gpu == gpu && link.active).count()
        };
        (0..hardware.gpus.len()).filter(|&gpu| up_of(gpu) < all as usize).count()
    });
    let many = hardware.is_some_and(|hardware| short > 1 && short == hardware.gpus.len());
    let against = if many { "" } else { "other GPUs of the host have theirs" };
    case.add(Cause::FabricManager, if many { 2.0 } else { 1.0 }, "a switch may be down or not configured", against);
    let errs = hardware
        .is_some_and(|hardware| hardware.notes.iter().any(|note| note.kind == NoteKind::Warning && note.about == format!("GPU {gpu}")));
    if errs {
        case.add(Cause::FlappingLink, 1.8, "its links had errors", "");
    }
}

pub fn links_unused(case: &mut Case<'_>, of: &str) {
    let hardware = host(case.measured(), of);
    let told = hardware.and_then(|hardware| hardware.notes.iter().find(|note| note.about == "NVSwitch"));
    let because = told
        .map_or_else(|| "NVLinks through switches need it (systemctl status nvidia-fabricmanager)".to_owned(), |note| note.text.clone());
    case.add(Cause::FabricManager, if told.is_some() { 3.2 } else { 2.4 }, because, "");
    if let Some(container) = hardware.and_then(|hardware| hardware.container.as_deref()) {
        case.add(Cause::EmulatedBridge, 2.2, format!("{of} is seen from within {container}, which may hide links"), "");
    }
    if let Some(hypervisor) = hardware.and_then(|hardware| hardware.hypervisor.as_deref()) {
        case.add(Cause::EmulatedBridge, 2.0, format!("{of} runs under {hypervisor}, which may hide links"), "");
    }
    let down = hardware.map_or(0, |hardware| hardware.gpu_links.iter().filter(|link| !link.active).count());
    case.add(Cause::MissingNvlinks, 1.6, if down > 0 { format!("{down} links are down") } else { "no link is up".to_owned() }, "");
}

pub fn unequal_ports(case: &mut Case<'_>, say: &str) {
    if say.contains("other names") {
        case.add(Cause::WrongPort, 2.6, "a list of names chooses other ports on each host", "");
        case.add(Cause::RouteCollision, 0.5, "ports of unlike numbers may not reach each other", "");
    } else {
        case.add(Cause::WrongPort, 2.2, "transfers may use a port that the others do not have", "");
        case.add(Cause::PortDown, 1.8, "a port may be missing or down", "");
        case.add(Cause::ByDesign, 0.8, "the hosts may be built so", "");
    }
}

pub fn shared_port(case: &mut Case<'_>, of: &str, port: &str, ranks: &[usize], idle: &[String]) {
    let because = format!("ranks {} of {of} share one port, such as {port}, where there are {}, too", format_ranks(ranks), idle.join(", "));
    case.add(Cause::SharedPort, 3.0, because, "");
    case.add(Cause::EmulatedBridge, 1.6, "virtual bridges of a switch may put devices in another order than they are wired", "");
    case.add(Cause::WrongPort, 1.4, "a variable or a file may choose ports", "");
    case.add(Cause::ByDesign, 0.5, "some ports may be for storage", "");
}

pub fn misbound(case: &mut Case<'_>, ranks: &[usize]) {
    case.seats(ranks, 1.8);
    case.add(Cause::ByDesign, 0.4, "a launcher that binds by slot, not by device", "");
}

pub fn bad_port(case: &mut Case<'_>, port: &str, state: &str) {
    case.add(Cause::PortDown, 3.0, format!("{port} is {state}"), "");
    case.add(Cause::BadCable, 2.0, "a cable or module that is out or broken", "");
    let training = matches!(state, "init" | "initialize" | "polling");
    case.add(Cause::FlappingLink, if training { 1.4 } else { 0.8 }, "a link that comes and goes", "");
}

pub fn redirected(case: &mut Case<'_>, of: &str, bridges: &[String]) {
    let hardware = host(case.measured(), of);
    let iommu = hardware.and_then(|hardware| hardware.iommu.as_deref()).unwrap_or("not told");
    let because =
        format!("{} switch ports redirect (such as {}), IOMMU {iommu}", bridges.len(), bridges.first().map_or("", String::as_str));
    let (weight, against) = if iommu == "translated" { (3.5, "") } else { (2.6, "") };
    case.add(Cause::AcsRedirect, weight, because, against);
    let ranks: Vec<usize> = case.measured().topology.ranks.iter().filter(|rank| rank.host == of).map(|rank| rank.rank).collect();
    case.direct(&ranks, 1.4, "without it bytes go by way of host memory");
    case.peers(&ranks, 0.9);
    case.add(Cause::Protocol, 1.1, "few messages outstanding on one connection make it worse", "");
}
