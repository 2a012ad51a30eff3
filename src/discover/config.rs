//! The configuration space of a PCI device, as the file `config` holds it (PCI Express Base Specification 6.0, chapter 7).

use std::path::Path;

use super::read;
use crate::topology::Lanes;
use crate::topology::hardware::Acs;

/// Identity of the PCI Express capability.
const EXPRESS: u8 = 0x10;
/// Identity of the extended capability Access Control Services.
const ACS: u32 = 0x000d;
/// Where extended capabilities begin.
const EXTENDED: usize = 0x100;

/// What may be read of it: 64 bytes for anyone, the rest for root.
#[derive(Debug, Default)]
pub(super) struct Config(Vec<u8>);

/// What is known of a port's Access Control Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcsRead {
    /// that part of the space may not be read
    Hidden,
    /// it has none
    Absent,
    Control(Acs),
}

impl Config {
    /// The first `most` bytes, as far as they may be read.
    pub(super) fn of(folder: &Path, most: u64) -> Self {
        Self(read::bytes(&folder.join("config"), most).unwrap_or_default())
    }

    /// True if more than the 64 bytes for anyone could be read.
    pub(super) fn open(&self) -> bool {
        self.0.len() > 64
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at + 2)?.try_into().ok()?))
    }

    fn long(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    /// Where the PCI Express capability begins.
    fn express(&self) -> Option<usize> {
        // Bit 4 of the status: there is a list.
        if self.word(0x06)? & 0x10 == 0 {
            return None;
        }
        let mut at = usize::from(self.byte(0x34)? & 0xfc);
        // 48 of them fill the space: a longer list is a circle.
        for _ in 0..48 {
            if at < 0x40 {
                return None;
            }
            if self.byte(at)? == EXPRESS {
                return Some(at);
            }
            at = usize::from(self.byte(at + 1)? & 0xfc);
        }
        None
    }

    /// Device or port type: 0 and 1 endpoint, 4 root port, 5 a switch's upstream and 6 its downstream port, 7 and 8 bridges
    /// between PCI and PCI Express, 9 endpoint within the root complex.
    pub(super) fn port_type(&self) -> Option<u8> {
        let flags = self.word(self.express()? + 2)?;
        u8::try_from(flags >> 4 & 0xf).ok()
    }

    /// Bus below a bridge.
    pub(super) fn secondary(&self) -> Option<u8> {
        if self.byte(0x0e)? & 0x7f != 1 {
            return None;
        }
        self.byte(0x19).filter(|&bus| bus > 0)
    }

    /// Link as it is now, and at most.
    pub(super) fn link(&self) -> Option<(Option<Lanes>, Option<Lanes>)> {
        let at = self.express()?;
        let lanes = |code: u32| Lanes::of_generation(code & 0xf, code >> 4 & 0x3f).filter(|lanes| super::link::sane_width(lanes.width));
        Some((lanes(u32::from(self.word(at + 0x12)?)), lanes(self.long(at + 0x0c)?)))
    }

    /// Access Control Services: what the control register says.
    pub(super) fn acs(&self) -> AcsRead {
        let mut at = EXTENDED;
        // Each takes at least two words of 4 bytes.
        for _ in 0..(4096 - EXTENDED) / 8 {
            let Some(head) = self.long(at) else { return AcsRead::Hidden };
            if head == 0 || head == u32::MAX {
                return AcsRead::Absent;
            }
            if head & 0xffff == ACS {
                let Some(control) = self.word(at + 6) else { return AcsRead::Hidden };
                let bit = |number: u32| control >> number & 1 == 1;
                return AcsRead::Control(Acs {
                    source_validation: bit(0),
                    request_redirect: bit(2),
                    completion_redirect: bit(3),
                    upstream_forwarding: bit(4),
                    direct_translated: bit(6),
                });
            }
            at = (head >> 20 & 0xffc) as usize;
            if at < EXTENDED {
                return AcsRead::Absent;
            }
        }
        AcsRead::Absent
    }
}

#[cfg(test)]
pub(super) mod made {
    /// A configuration space with a PCI Express capability of this port type and a link, and with these ACS control bits.
    pub(in crate::discover) fn config(port_type: u8, secondary: u8, link: (u8, u8), acs: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[0x06] = 0x10;
        bytes[0x0e] = u8::from(secondary > 0);
        bytes[0x19] = secondary;
        // Power management first, as most devices have it.
        bytes[0x34] = 0x40;
        bytes[0x40..0x42].copy_from_slice(&[0x01, 0x50]);
        bytes[0x50..0x54].copy_from_slice(&[0x10, 0, port_type << 4 | 2, 0]);
        bytes[0x5c..0x5e].copy_from_slice(&(u16::from(link.1) << 4 | u16::from(link.0)).to_le_bytes());
        bytes[0x62..0x64].copy_from_slice(&(u16::from(link.1) << 4 | u16::from(link.0)).to_le_bytes());
        // Error reporting at 0x100, ACS at 0x150.
        bytes[0x100..0x104].copy_from_slice(&0x1502_0001_u32.to_le_bytes());
        if let Some(control) = acs {
            bytes[0x150..0x154].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
            bytes[0x156..0x158].copy_from_slice(&control.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capabilities_are_found() {
        let config = Config(made::config(6, 0x1a, (4, 16), Some(0x001d)));
        assert_eq!((config.port_type(), config.secondary()), (Some(6), Some(0x1a)));
        let lanes = Some(Lanes { speed: 16.0, width: 16 });
        assert_eq!(config.link(), Some((lanes, lanes)));
        // 0x1d is what the box of nccl #2409 had.
        let expected =
            Acs { source_validation: true, request_redirect: true, completion_redirect: true, upstream_forwarding: true, ..Acs::default() };
        assert_eq!(config.acs(), AcsRead::Control(expected));
        assert_eq!(Config(made::config(6, 1, (4, 16), None)).acs(), AcsRead::Absent);
    }

    #[test]
    fn what_may_not_be_read_is_told_apart_from_what_is_not_there() {
        let whole = made::config(4, 1, (5, 16), Some(0));
        for (length, port_type, hidden) in [(4096, Some(4), false), (256, Some(4), true), (64, None, true), (0, None, true)] {
            let config = Config(whole[..length].to_vec());
            assert_eq!((config.port_type(), config.acs() == AcsRead::Hidden), (port_type, hidden), "{length}");
        }
    }

    #[test]
    fn circles_and_noise_end() {
        let mut bytes = made::config(4, 1, (5, 16), None);
        bytes[0x41] = 0x40;
        bytes[0x100..0x104].copy_from_slice(&0x1002_0001_u32.to_le_bytes());
        let config = Config(bytes);
        assert_eq!((config.port_type(), config.acs()), (None, AcsRead::Absent));
        for seed in 0..2000 {
            let mut noise = fastrand::Rng::with_seed(seed);
            let mut bytes = vec![0; noise.usize(..5000)];
            noise.fill(&mut bytes);
            let config = Config(bytes);
            let _ = (config.port_type(), config.secondary(), config.link(), config.acs());
        }
    }
}
