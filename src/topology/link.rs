//! What a PCIe link is worth, given what it says of itself: some say nothing, some are emulated, many rest at the lowest speed
//! until there is work (NVIDIA/nccl#1453, #1614).

use super::hardware::{Hardware, PciDevice, PciKind};
use super::pcie::Lanes;

/// Why a link's own words are not to be taken as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// a switch that a hypervisor makes up
    Emulated,
    /// it says that it has no lanes
    NoWidth,
    /// it may rest at a low speed until there is work: to be read again under load
    Resting,
}

/// A link's lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// what both ends can do, as far as they say
    pub most: Option<Lanes>,
    /// as trained; `None` when not told or not believed
    pub now: Option<Lanes>,
    pub doubt: Option<Doubt>,
}

impl Reading {
    /// True if it has fewer lanes than both ends could use: a slot, a riser, a bad contact. Speed is no sign: it may be at rest.
    pub fn narrow(&self) -> bool {
        matches!((self.now, self.most), (Some(now), Some(most)) if now.width < most.width)
    }

    /// What a person is told: `Gen4 x8 of x16`.
    pub fn words(&self) -> String {
        match (self.now, self.most, self.doubt) {
            (_, _, Some(Doubt::Emulated)) => "emulated".to_owned(),
            (_, Some(most), Some(Doubt::NoWidth)) => format!("up to {most}, says x0"),
            (_, None, Some(Doubt::NoWidth)) => "says x0".to_owned(),
            (Some(now), Some(most), _) if now == most => now.to_string(),
            (Some(now), Some(most), _) if now.generation() == most.generation() => format!("{now} of x{}", most.width),
            (Some(now), Some(most), _) if now.width == most.width => format!("{most}, now Gen{}", now.generation().unwrap_or(0)),
            (Some(now), Some(most), _) => format!("{now} of {most}"),
            (Some(now), None, _) => now.to_string(),
            (None, Some(most), _) => format!("up to {most}"),
            (None, None, _) => "not told".to_owned(),
        }
    }
}

/// Bridges that hypervisors make up: Red Hat (QEMU), the TI switch of several clouds, `VMware`, Hyper-V, virtio.
fn emulated(device: &PciDevice) -> bool {
    matches!((device.vendor, device.device), (0x1b36 | 0x15ad | 0x1414 | 0x1af4, _) | (0x104c, 0x8232 | 0x8233))
}

fn smaller(a: Option<Lanes>, b: Option<Lanes>) -> Option<Lanes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Lanes { speed: a.speed.min(b.speed), width: a.width.min(b.width) }),
        (a, b) => a.or(b),
    }
}

/// The link above a device; `None` for one that has no link of its own: a port that looks down, and the host bridge.
pub fn reading(hardware: &Hardware, device: usize) -> Option<Reading> {
    let device = hardware.pci.get(device)?;
    if matches!(device.kind, PciKind::HostBridge | PciKind::RootPort | PciKind::SwitchDown) {
        return None;
    }
    // A switch's port says what the link below it can do.
    let above = device.parent.and_then(|parent| hardware.pci.get(parent));
    let port = above.filter(|above| matches!(above.kind, PciKind::RootPort | PciKind::SwitchDown));
    if emulated(device) || above.is_some_and(emulated) {
        return Some(Reading { doubt: Some(Doubt::Emulated), ..Reading::default() });
    }
    let Some(link) = device.link else { return Some(Reading::default()) };
    let believed = |lanes: Option<Lanes>| lanes.filter(|lanes| lanes.width > 0 && lanes.speed > 0.0);
    let port = believed(link.port).or_else(|| believed(port?.link?.most));
    let (now, most) = (believed(link.now), smaller(believed(link.most), port));
    if link.now.is_some() && now.is_none() {
        return Some(Reading { most, now, doubt: Some(Doubt::NoWidth) });
    }
    let slower = |now: Lanes| most.map_or(now.speed < 3.0, |most| now.speed < most.speed);
    Some(Reading { most, now, doubt: now.is_some_and(slower).then_some(Doubt::Resting) })
}

#[cfg(test)]
mod tests {
    use super::super::pcie::PcieLink;
    use super::*;

    fn lanes(generation: u32, width: u32) -> Option<Lanes> {
        Lanes::of_generation(generation, width)
    }

    fn below(vendor: u16, device: u16, link: PcieLink) -> Reading {
        let port = PciDevice { kind: PciKind::RootPort, vendor, device, ..PciDevice::default() };
        let card = PciDevice { parent: Some(0), vendor: 0x10de, link: Some(link), ..PciDevice::default() };
        reading(&Hardware { pci: vec![port, card], ..Hardware::default() }, 1).unwrap()
    }

    #[test]
    fn a_link_can_do_what_both_ends_can() {
        let read = below(0x8086, 1, PcieLink { now: lanes(4, 8), most: lanes(5, 16), port: lanes(4, 16) });
        assert_eq!((read.most, read.narrow(), read.doubt), (lanes(4, 16), true, None));
        assert_eq!(read.words(), "Gen4 x8 of x16");
        // A slot that has but eight lanes is no fault.
        let read = below(0x8086, 1, PcieLink { now: lanes(3, 8), most: lanes(5, 16), port: lanes(3, 8) });
        assert_eq!((read.narrow(), read.words().as_str()), (false, "Gen3 x8"));
    }

    #[test]
    fn a_link_at_rest_is_not_accused() {
        let read = below(0x8086, 1, PcieLink { now: lanes(1, 16), most: lanes(4, 16), port: None });
        assert_eq!((read.doubt, read.narrow()), (Some(Doubt::Resting), false));
        assert_eq!(read.words(), "Gen4 x16, now Gen1");
        assert_eq!(below(0x8086, 1, PcieLink { now: lanes(1, 16), most: None, port: None }).doubt, Some(Doubt::Resting));
    }

    #[test]
    fn made_up_switches_and_links_without_lanes_are_not_believed() {
        let told = PcieLink { now: lanes(1, 1), most: lanes(1, 1), port: None };
        for (vendor, device) in [(0x104c, 0x8232), (0x1b36, 0x000c)] {
            assert_eq!(below(vendor, device, told), Reading { doubt: Some(Doubt::Emulated), ..Reading::default() });
        }
        let read = below(0x8086, 1, PcieLink { now: Some(Lanes { speed: 2.5, width: 0 }), most: lanes(5, 16), port: None });
        assert_eq!((read.now, read.doubt, read.words().as_str()), (None, Some(Doubt::NoWidth), "up to Gen5 x16, says x0"));
    }

    #[test]
    fn ports_that_look_down_have_no_link_of_their_own() {
        let port = PciDevice { kind: PciKind::SwitchDown, link: Some(PcieLink::default()), ..PciDevice::default() };
        assert_eq!(reading(&Hardware { pci: vec![port], ..Hardware::default() }, 0), None);
    }
}
