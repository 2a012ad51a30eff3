//! What a PCI device is, by its class code, identifiers and the words that stand for them in `pci.ids`.

pub(super) const AMD: u16 = 0x1002;
pub(super) const NVIDIA: u16 = 0x10de;
pub(super) const INTEL: u16 = 0x8086;
pub(super) const AMAZON: u16 = 0x1d0f;

/// Class codes by the name that lspci prints without `-n`.
const CLASSES: [(&str, u32); 20] = [
    ("VGA compatible controller", 0x03_00_00),
    ("3D controller", 0x03_02_00),
    ("Display controller", 0x03_80_00),
    ("Processing accelerators", 0x12_00_00),
    ("Ethernet controller", 0x02_00_00),
    ("Infiniband controller", 0x02_07_00),
    ("InfiniBand controller", 0x02_07_00),
    ("Fabric controller", 0x02_08_00),
    ("Network controller", 0x02_80_00),
    ("Host bridge", 0x06_00_00),
    ("ISA bridge", 0x06_01_00),
    ("PCI bridge", 0x06_04_00),
    ("Bridge", 0x06_80_00),
    ("Non-Volatile memory controller", 0x01_08_00),
    ("SATA controller", 0x01_06_00),
    ("SCSI storage controller", 0x01_00_00),
    ("RAID bus controller", 0x01_04_00),
    ("USB controller", 0x0c_03_00),
    ("System peripheral", 0x08_80_00),
    ("Audio device", 0x04_03_00),
];

/// Vendors whose devices transfers begin, end or turn at, by the beginning of their name.
const VENDORS: [(&str, u16); 9] = [
    ("NVIDIA", NVIDIA),
    ("Advanced Micro Devices, Inc. [AMD/ATI]", AMD),
    ("Advanced Micro Devices", 0x1022),
    ("Intel", INTEL),
    ("Mellanox", 0x15b3),
    ("Broadcom", 0x14e4),
    ("Amazon", AMAZON),
    ("Red Hat", 0x1af4),
    ("Microsoft", 0x1414),
];

/// Class code of a class's name; 0 if it is none that matters here.
pub(super) fn class_of(name: &str) -> u32 {
    CLASSES.iter().find(|(known, _)| *known == name).map_or(0, |&(_, class)| class)
}

/// Vendor by the beginning of a device's name; 0 if it is none that matters here.
pub(super) fn vendor_of(name: &str) -> u16 {
    VENDORS.iter().find(|(known, _)| name.starts_with(known)).map_or(0, |&(_, vendor)| vendor)
}

/// True for a bridge that devices lie below.
pub(super) const fn is_bridge(class: u32) -> bool {
    class >> 8 == 0x06_04
}

/// True for what computes: no management controller's or desktop's display. Vendor 0 is unknown.
pub(super) const fn is_gpu(class: u32, vendor: u16, device: u16) -> bool {
    // Displays of AMD in servers' management: ES1000, RV100, Rage XL and XC.
    let console = vendor == AMD && matches!(device, 0x515e | 0x5159 | 0x4752 | 0x4758);
    match class >> 8 {
        0x03_00 => (vendor == NVIDIA || vendor == AMD) && !console,
        0x03_02 => true,
        0x03_80 => matches!(vendor, NVIDIA | AMD | INTEL | 0),
        0x12_00 => matches!(vendor, AMD | 0),
        _ => false,
    }
}

/// True for what sends to other hosts: Ethernet, InfiniBand and fabric controllers.
pub(super) const fn is_nic(class: u32) -> bool {
    matches!(class >> 8, 0x02_00 | 0x02_07 | 0x02_08 | 0x02_80)
}

/// True for the switch of NVLinks.
pub(super) const fn is_nvswitch(class: u32, vendor: u16) -> bool {
    class >> 8 == 0x06_80 && vendor == NVIDIA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_is_told_from_what_shows_a_console() {
        assert!(is_gpu(0x03_02_00, NVIDIA, 0x2330));
        assert!(is_gpu(0x03_00_00, NVIDIA, 0x2684));
        assert!(is_gpu(0x03_80_00, AMD, 0x738c));
        assert!(is_gpu(0x12_00_00, AMD, 0x74a1));
        assert!(!is_gpu(0x03_00_00, AMD, 0x515e));
        assert!(!is_gpu(0x03_00_00, 0x1a03, 0x2000));
        assert!(!is_gpu(0x06_80_00, NVIDIA, 0x22a3));
        assert!(is_nvswitch(0x06_80_00, NVIDIA));
    }

    #[test]
    fn names_of_lists_without_numbers_stand_for_codes() {
        assert_eq!(class_of("3D controller"), 0x03_02_00);
        assert_eq!(class_of("Serial controller"), 0);
        assert_eq!(vendor_of("NVIDIA Corporation GA100"), NVIDIA);
        assert_eq!(vendor_of("Advanced Micro Devices, Inc. [AMD] Milan Root Complex"), 0x1022);
    }
}
