//! What the driver says of pairs of GPUs: peer access, and how near they are on PCIe.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus, TopologyLevel};

use super::Seen;
use super::failures::{Failures, Whom};
use crate::topology::hardware::{Device, LinkEnd, NoteKind, Told, ToldWhat};
use crate::topology::{Hardware, PathLabel};

/// Kinds of peer access, as `nvidia-smi topo -p2p` has them.
const ACCESS: [(P2pCapabilitiesIndex, &str); 5] = [
    (P2pCapabilitiesIndex::Read, "read"),
    (P2pCapabilitiesIndex::Write, "write"),
    (P2pCapabilitiesIndex::NvLink, "nvlink"),
    (P2pCapabilitiesIndex::Atomics, "atomics"),
    (P2pCapabilitiesIndex::Prop, "prop"),
];

/// Ask about every pair, in both directions for access. A label is told where no NVLink joins the two, as nvidia-smi does: what
/// else it prints there, `NV#`, is the number of links.
pub fn read(hardware: &mut Hardware, failures: &mut Failures, nvml: &Nvml, seen: &[Seen<'_>]) {
    let mut refused = Vec::new();
    for (at, from) in seen.iter().enumerate() {
        for (other, to) in seen.iter().enumerate().filter(|(other, _)| *other != at) {
            let whom = Whom::Pair(from.index, to.index);
            let joined = joined(hardware, from.gpu, to.gpu);
            for (capability, access) in ACCESS {
                let Some(status) = failures.ask("nvmlDeviceGetP2PStatus", whom, from.device.p2p_status(&to.device, capability)) else {
                    continue;
                };
                if access == "nvlink" && joined == Some(LinkEnd::Switch) && status != P2pStatus::Ok {
                    refused.push((from.index, to.index));
                }
                let what = ToldWhat::Peer { access: access.to_owned(), status: word(status).to_owned() };
                hardware.told.push(Told { from: Device::Gpu(from.gpu), to: Device::Gpu(to.gpu), what });
            }
            if other > at && joined.is_none() {
                let level = nvml.topology_common_ancestor(&from.device, &to.device);
                let Some(level) = failures.ask("nvmlDeviceGetTopologyCommonAncestor", whom, level) else { continue };
                for (from, to) in [(from.gpu, to.gpu), (to.gpu, from.gpu)] {
                    hardware.told.push(Told { from: Device::Gpu(from), to: Device::Gpu(to), what: ToldWhat::Label(label(level)) });
                }
            }
        }
    }
    // Divided GPUs have no peers, which is told of each.
    let whole =
        |index: &u32| seen.iter().any(|seen| seen.index == *index && hardware.gpus.get(seen.gpu).is_some_and(|gpu| gpu.mig.is_empty()));
    refused.retain(|(from, to)| whole(from) && whole(to));
    if let Some((from, to)) = refused.first() {
        let text = format!(
            "{} ordered pair(s) of GPUs, such as {from} and {to}, have NVLinks up to the same switches, but the driver lets them move nothing \
             there: the fabric manager is not running or has not configured them (systemctl status nvidia-fabricmanager)",
            refused.len()
        );
        hardware.note(NoteKind::Warning, "NVSwitch", text);
    }
}

/// How active NVLinks join two GPUs, if they do: directly or through switches.
fn joined(hardware: &Hardware, from: usize, to: usize) -> Option<LinkEnd> {
    let active = |gpu: usize, end: LinkEnd| hardware.gpu_links.iter().any(|link| link.active && link.gpu == gpu && link.end == end);
    if active(from, LinkEnd::Gpu(to)) || active(to, LinkEnd::Gpu(from)) {
        return Some(LinkEnd::Gpu(to));
    }
    (active(from, LinkEnd::Switch) && active(to, LinkEnd::Switch)).then_some(LinkEnd::Switch)
}

/// A status as nvidia-smi abbreviates it.
const fn word(status: P2pStatus) -> &'static str {
    match status {
        P2pStatus::Ok => "OK",
        P2pStatus::ChipsetNotSupported => "CNS",
        P2pStatus::GpuNotSupported => "GNS",
        P2pStatus::IohTopologyNotSupported => "TNS",
        P2pStatus::DisabledByRegkey => "DR",
        P2pStatus::NotSupported => "NS",
        P2pStatus::Unknown => "U",
    }
}

/// A level of NVML's as nvidia-smi labels it. GPUs of one board have a switch between them.
const fn label(level: TopologyLevel) -> PathLabel {
    match level {
        TopologyLevel::Internal | TopologyLevel::Single => PathLabel::Pix,
        TopologyLevel::Multiple => PathLabel::Pxb,
        TopologyLevel::HostBridge => PathLabel::Phb,
        TopologyLevel::Node => PathLabel::Node,
        TopologyLevel::System => PathLabel::Sys,
    }
}
