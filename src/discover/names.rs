//! What PCI devices are called: by the list pci.ids where it is installed, else by their class and numbers.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::read;
use crate::units::plain;

const LISTS: [&str; 3] = ["usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids"];

/// Makers of what stands in such machines.
const VENDORS: [(u16, &str); 20] = [
    (0x1000, "Broadcom"),
    (0x1002, "AMD"),
    (0x1022, "AMD"),
    (0x102b, "Matrox"),
    (0x104c, "Texas Instruments"),
    (0x10b5, "PLX"),
    (0x10de, "NVIDIA"),
    (0x11f8, "Microchip"),
    (0x1414, "Microsoft"),
    (0x144d, "Samsung"),
    (0x14e4, "Broadcom"),
    (0x15ad, "VMware"),
    (0x15b3, "Mellanox"),
    (0x17db, "HPE"),
    (0x1a03, "ASPEED"),
    (0x1ae0, "Google"),
    (0x1af4, "virtio"),
    (0x1b36, "QEMU"),
    (0x1d0f, "Amazon"),
    (0x8086, "Intel"),
];

/// Classes with subclass (PCI Code and ID Assignment Specification 1.16), the plain ones of a class last.
const CLASSES: [(u16, &str); 44] = [
    (0x0100, "SCSI controller"),
    (0x0101, "IDE controller"),
    (0x0104, "RAID controller"),
    (0x0106, "SATA controller"),
    (0x0107, "SAS controller"),
    (0x0108, "NVMe controller"),
    (0x0200, "Ethernet controller"),
    (0x0207, "InfiniBand controller"),
    (0x0208, "fabric controller"),
    (0x0300, "VGA controller"),
    (0x0302, "3D controller"),
    (0x0380, "display controller"),
    (0x0403, "audio device"),
    (0x0500, "memory"),
    (0x0502, "CXL memory"),
    (0x0600, "host bridge"),
    (0x0601, "ISA bridge"),
    (0x0604, "PCI bridge"),
    (0x0609, "semi-transparent PCI bridge"),
    (0x0680, "bridge"),
    (0x0700, "serial controller"),
    (0x0806, "IOMMU"),
    (0x0807, "root complex event collector"),
    (0x0880, "system peripheral"),
    (0x0b40, "co-processor"),
    (0x0c03, "USB controller"),
    (0x0c05, "SMBus"),
    (0x1101, "performance counters"),
    (0x1180, "signal processing controller"),
    (0x1200, "accelerator"),
    (0x01ff, "storage controller"),
    (0x02ff, "network controller"),
    (0x03ff, "display controller"),
    (0x04ff, "multimedia controller"),
    (0x05ff, "memory controller"),
    (0x06ff, "bridge"),
    (0x07ff, "communication controller"),
    (0x08ff, "system peripheral"),
    (0x0bff, "processor"),
    (0x0cff, "serial bus controller"),
    (0x0dff, "wireless controller"),
    (0x10ff, "encryption controller"),
    (0x11ff, "signal processing controller"),
    (0x12ff, "accelerator"),
];

/// What a class code such as `0x030200` means; `device` if it is none of the known ones.
pub fn class_name(class: u32) -> &'static str {
    let with_subclass = u16::try_from(class >> 8).unwrap_or(u16::MAX);
    let find = |code: u16| CLASSES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
    find(with_subclass).or_else(|| find(with_subclass | 0xff)).unwrap_or("device")
}

/// Names of the devices of one machine.
#[derive(Debug, Default)]
pub(super) struct Names {
    vendors: HashMap<u16, String>,
    devices: HashMap<(u16, u16), String>,
}

impl Names {
    /// Look up what is needed in the list below `root`, if there is one.
    pub(super) fn look_up(root: &Path, wanted: &HashSet<(u16, u16)>) -> Self {
        let list = LISTS.iter().find_map(|list| read::text(&root.join(list)));
        list.map(|list| Self::parse(&list, wanted)).unwrap_or_default()
    }

    /// Lines `vvvv  Maker` and below them `<tab>dddd  Device`; the list ends where classes begin.
    fn parse(list: &str, wanted: &HashSet<(u16, u16)>) -> Self {
        let makers: HashSet<u16> = wanted.iter().map(|&(vendor, _)| vendor).collect();
        let mut names = Self::default();
        let mut vendor = None;
        for line in list.lines().take_while(|line| !line.starts_with("C ")) {
            if line.starts_with('#') || line.starts_with("\t\t") {
                continue;
            }
            let Some((code, name)) = line.trim_start().split_once("  ") else { continue };
            let Ok(code) = u16::from_str_radix(code, 16) else { continue };
            let name = || plain(name.trim());
            if line.starts_with('\t') {
                if let Some(key) = vendor.map(|vendor| (vendor, code)).filter(|key| wanted.contains(key)) {
                    names.devices.insert(key, name());
                }
            } else {
                vendor = makers.contains(&code).then_some(code);
                if vendor.is_some() {
                    names.vendors.insert(code, name());
                }
            }
        }
        names
    }

    /// What a person calls a device: `NVIDIA Corporation GH100 [H100 SXM5 80GB]`, or `NVIDIA 3D controller 10de:2330`.
    pub(super) fn name(&self, vendor: u16, device: u16, class: u32) -> String {
        if let (Some(maker), Some(name)) = (self.vendors.get(&vendor), self.devices.get(&(vendor, device))) {
            return format!("{maker} {name}");
        }
        if vendor == 0 {
            return if class == 0 { String::new() } else { class_name(class).to_owned() };
        }
        let known = VENDORS.iter().find(|(code, _)| *code == vendor).map(|(_, name)| (*name).to_owned());
        let maker = self.vendors.get(&vendor).cloned().or(known).map(|maker| maker + " ").unwrap_or_default();
        format!("{maker}{} {vendor:04x}:{device:04x}", class_name(class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_words() {
        for (class, name) in [
            (0x03_02_00, "3D controller"),
            (0x06_04_00, "PCI bridge"),
            (0x01_80_00, "storage controller"),
            (0xff_ff_00, "device"),
            (u32::MAX, "device"),
        ] {
            assert_eq!(class_name(class), name, "{class:06x}");
        }
    }

    #[test]
    fn names_come_from_the_list_or_from_numbers() {
        let list = "# comment\n10de  NVIDIA Corporation\n\t2330  GH100 [H100\u{1b} SXM5]\n\t\t10de 16c1  Board\n15b3  Mellanox Technologies\n\t1021  MT2910\nC 03  Display\n\t02  3D\n";
        let names = Names::parse(list, &HashSet::from([(0x10de, 0x2330), (0x15b3, 0xa2dc)]));
        assert_eq!(names.name(0x10de, 0x2330, 0x03_02_00), "NVIDIA Corporation GH100 [H100 SXM5]");
        assert_eq!(names.name(0x15b3, 0xa2dc, 0x02_00_00), "Mellanox Technologies Ethernet controller 15b3:a2dc");
        assert!(!names.devices.contains_key(&(0x15b3, 0x1021)), "nobody asked");
        assert_eq!(Names::default().name(0x1af4, 0x1041, 0x02_00_00), "virtio Ethernet controller 1af4:1041");
        assert_eq!(Names::default().name(0x4242, 1, 0), "device 4242:0001");
        assert_eq!(Names::default().name(0, 0, 0x03_00_00), "VGA controller");
    }
}
