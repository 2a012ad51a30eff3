//! A PCI tree in the making: devices may be told twice, in any order, and below what is told later.

use std::collections::HashMap;

use crate::topology::hardware::{Hardware, NoteKind, PciDevice, PciKind};
use crate::topology::{Lanes, PciAddress, PcieLink};

/// No machine nests bridges deeper; what a file tells deeper is not counted further.
const DEEPEST: usize = 64;

/// Devices with parents, each once by its address, unless a file gives one address to devices that cannot be the same. Host bridges
/// have addresses of their own.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// their `parent` counts in this list
    devices: Vec<PciDevice>,
    at: HashMap<(bool, PciAddress), usize>,
}

impl Tree {
    /// A device below another; one that is there already learns what it did not know. Returns its place.
    pub(super) fn add(&mut self, mut device: PciDevice, parent: Option<usize>) -> usize {
        let key = (device.kind == PciKind::HostBridge, device.address);
        device.parent = parent;
        let Some(&at) = self.at.get(&key).filter(|&&at| !differ(&self.devices[at], &device)) else {
            self.at.entry(key).or_insert(self.devices.len());
            self.devices.push(device);
            return self.devices.len() - 1;
        };
        // Who tells more bridges above saw more: NCCL leaves out ports.
        let deeper =
            device.parent.is_some_and(|new| new != at && self.devices[at].parent.is_none_or(|old| self.depth(old) < self.depth(new)));
        let parent = if deeper { device.parent } else { self.devices[at].parent };
        learn(&mut self.devices[at], device);
        self.devices[at].parent = parent;
        at
    }

    /// True if a device at this address is there.
    pub(super) fn has(&self, address: PciAddress) -> bool {
        self.at.contains_key(&(false, address))
    }

    pub(super) fn devices(&self) -> &[PciDevice] {
        &self.devices
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut PciDevice> {
        self.devices.get_mut(at)
    }

    /// How many devices lie above one, itself included.
    fn depth(&self, device: usize) -> usize {
        std::iter::successors(Some(device), |&at| self.devices.get(at)?.parent).take(DEEPEST).count()
    }

    /// Put the devices into a host, parents first, and tell where each came to lie. A circle is cut, and told.
    pub(super) fn finish(mut self, hardware: &mut Hardware) -> Vec<usize> {
        let unplaced = usize::MAX;
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.devices.len()];
        for (at, device) in self.devices.iter().enumerate() {
            if let Some(below) = device.parent.and_then(|parent| children.get_mut(parent)) {
                below.push(at);
            }
        }
        let mut place = vec![unplaced; self.devices.len()];
        // Roots first; what they do not reach hangs below itself.
        let mut starts: Vec<usize> = (0..self.devices.len()).collect();
        starts.sort_by_key(|&at| self.devices[at].parent.is_some());
        for start in starts {
            if place[start] == unplaced && self.devices[start].parent.is_some() {
                let about = self.devices[start].address.to_string();
                hardware.note(NoteKind::Lie, about, "lies below itself, by what the file says; what it lies below is left out");
            }
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                if place[at] == unplaced {
                    place[at] = hardware.pci.len();
                    let mut device = std::mem::take(&mut self.devices[at]);
                    device.parent = device.parent.map(|parent| place[parent]).filter(|&parent| parent != unplaced);
                    hardware.pci.push(device);
                    open.extend(children[at].iter().rev());
                }
            }
        }
        place
    }
}

/// Put a tree into the host whose GPUs and ports lie in it, and tell which GPU is at which address.
pub(super) fn plant(tree: Tree, host: &mut Hardware) -> HashMap<PciAddress, usize> {
    let place = tree.finish(host);
    for at in host.gpus.iter_mut().map(|gpu| &mut gpu.pci).chain(host.nics.iter_mut().map(|nic| &mut nic.pci)) {
        *at = at.and_then(|at| place.get(at).copied());
    }
    host.gpus.iter().enumerate().filter_map(|(gpu, told)| Some((host.pci.get(told.pci?)?.address, gpu))).collect()
}

/// True if two tellings name different products.
const fn differ(known: &PciDevice, told: &PciDevice) -> bool {
    known.device != 0 && told.device != 0 && (known.device != told.device || known.vendor != told.vendor)
}

/// Take what is not known yet from another telling of the same device.
fn learn(known: &mut PciDevice, told: PciDevice) {
    if matches!(known.kind, PciKind::Endpoint | PciKind::Bridge) && told.kind.is_bridge() {
        known.kind = told.kind;
    }
    if known.class == 0 {
        known.class = told.class;
    }
    if (known.vendor, known.device) == (0, 0) {
        (known.vendor, known.device) = (told.vendor, told.device);
    }
    if known.name.is_empty() {
        known.name = told.name;
    }
    known.link = match (known.link, told.link) {
        (Some(known), Some(told)) => {
            Some(PcieLink { now: known.now.or(told.now), most: known.most.or(told.most), port: known.port.or(told.port) })
        }
        (known, told) => known.or(told),
    };
    known.numa = known.numa.or(told.numa);
    known.acs = known.acs.or(told.acs);
    known.driver = known.driver.take().or(told.driver);
}

/// `16 GT/s`, `32.0 GT/s PCIe`, `2.5GT/s`, and a width such as `x16` or `16`; `None` if either is missing or 0.
pub(super) fn lanes(speed: &str, width: &str) -> Option<Lanes> {
    let speed = speed.trim();
    let digits = speed.find(|char: char| !char.is_ascii_digit() && char != '.').map_or(speed, |end| &speed[..end]);
    let speed = super::text::amount(digits).filter(|&speed| speed > 0.0 && speed < 1000.0)?;
    let width = super::text::number(width.trim().trim_start_matches('x')).filter(|&width| (1..=64).contains(&width))?;
    Some(Lanes { speed, width: u32::try_from(width).ok()? })
}

/// Remark the same of many devices, once.
pub(super) fn note_all(hardware: &mut Hardware, kind: NoteKind, about: &[String], text: &str) {
    let more = about.len().saturating_sub(4);
    let named = about[..about.len() - more].join(", ");
    if !about.is_empty() {
        hardware.note(kind, if more > 0 { format!("{named} and {more} more") } else { named }, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> PciDevice {
        PciDevice { address: text.parse().unwrap(), ..PciDevice::default() }
    }

    #[test]
    fn parents_come_first_and_circles_are_cut() {
        let mut tree = Tree::default();
        let leaf = tree.add(device("0:3.0"), None);
        let top = tree.add(device("0:1.0"), None);
        let middle = tree.add(device("0:2.0"), Some(top));
        tree.get_mut(leaf).unwrap().parent = Some(middle);
        let (a, b) = (tree.add(device("0:4.0"), None), tree.add(device("0:5.0"), None));
        tree.get_mut(a).unwrap().parent = Some(b);
        tree.get_mut(b).unwrap().parent = Some(a);
        let mut hardware = Hardware::default();
        let place = tree.finish(&mut hardware);
        assert!(hardware.pci.iter().enumerate().all(|(at, device)| device.parent.is_none_or(|parent| parent < at)));
        assert_eq!(hardware.above(place[leaf]).count(), 3);
        assert_eq!(hardware.pci.len(), 5);
        assert_eq!(hardware.notes.len(), 1);
    }

    #[test]
    fn a_device_told_twice_is_one_below_the_deeper_parent() {
        let mut tree = Tree::default();
        let switch = tree.add(device("0:1.0"), None);
        let gpu = tree.add(PciDevice { numa: Some(1), ..device("0:3.0") }, Some(switch));
        let port = tree.add(device("0:2.0"), Some(switch));
        assert_eq!(tree.add(PciDevice { vendor: 7, numa: Some(0), ..device("0:3.0") }, Some(port)), gpu);
        assert_eq!(tree.add(device("0:3.0"), Some(switch)), gpu);
        let known = &tree.devices()[gpu];
        assert!(tree.has(known.address));
        assert_eq!((known.parent, known.vendor, known.numa), (Some(port), 7, Some(1)));
    }

    #[test]
    fn different_products_at_one_address_are_two() {
        let mut tree = Tree::default();
        let of = |vendor, id| PciDevice { vendor, device: id, ..device("0:3.0") };
        assert_eq!((tree.add(of(1, 2), None), tree.add(of(1, 3), None), tree.add(of(1, 0), None)), (0, 1, 0));
    }

    #[test]
    fn speeds_and_widths_are_read_as_tools_write_them() {
        let found = lanes("32.0 GT/s PCIe", "16").unwrap();
        assert_eq!((found.speed.to_bits(), found.width), (32.0_f64.to_bits(), 16));
        assert_eq!(lanes("2.5GT/s", "x8").unwrap().width, 8);
        for (speed, width) in [("", "16"), ("16 GT/s", "0"), ("16 GT/s", ""), ("Unknown", "x16"), ("unknown", "63"), ("1e9", "x")] {
            assert!(lanes(speed, width).is_none(), "{speed} {width}");
        }
    }
}
