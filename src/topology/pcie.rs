//! PCI addresses and the speeds of PCI Express links (PCI Express Base Specification 6.0, chapter 4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `domain:bus:device.function`. Written with as many digits as it takes, at least `0000:00:00.0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    /// 16 bits on most machines; virtual functions behind Hyper-V and VMD have 32
    pub domain: u32,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl FromStr for PciAddress {
    type Err = String;

    /// `0000:3b:00.0`, `3b:00.0`, `00000000:3B:00.0`; the function may be left out.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no PCI address: expected one such as 0000:3b:00.0");
        let text = text.trim();
        let (rest, function) = text.split_once('.').unwrap_or((text, "0"));
        let mut parts = rest.rsplit(':');
        let (device, bus, domain) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(wrong());
        }
        let hex = |part: Option<&str>, most: u32| {
            let part = part.filter(|part| !part.is_empty() && part.len() <= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
            part.and_then(|part| u32::from_str_radix(part, 16).ok()).filter(|&number| number <= most)
        };
        let byte = |part, most| hex(part, most).and_then(|number| u8::try_from(number).ok()).ok_or_else(wrong);
        Ok(Self {
            domain: if domain.is_some() { hex(domain, u32::MAX).ok_or_else(wrong)? } else { 0 },
            bus: byte(bus, 0xff)?,
            device: byte(device, 0x1f)?,
            function: byte(Some(function), 7)?,
        })
    }
}

impl TryFrom<String> for PciAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

/// Signalling rate and lanes of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    /// gigatransfers per second and lane: 2.5, 5, 8, 16, 32, 64
    pub speed: f64,
    /// lanes: 1, 2, 4, 8, 16
    pub width: u32,
}

impl Lanes {
    /// Of a generation, from 1 to 6.
    pub fn of_generation(generation: u32, width: u32) -> Option<Self> {
        let speed = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].get(generation.checked_sub(1)? as usize).copied()?;
        Some(Self { speed, width })
    }

    /// 1 to 6; `None` for a speed that no generation has.
    pub fn generation(self) -> Option<u32> {
        let speeds = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
        speeds.iter().position(|&speed: &f64| (speed - self.speed).abs() < 0.05).and_then(|at| u32::try_from(at + 1).ok())
    }

    /// Bytes per second in one direction after the line code (8b/10b, 128b/130b, 236 of 256 bytes of a flit), before packet
    /// headers. 0 for a link without lanes.
    pub fn rate(self) -> f64 {
        let code = if self.speed < 6.0 {
            0.8
        } else if self.speed < 60.0 {
            128.0 / 130.0
        } else {
            236.0 / 256.0
        };
        self.speed * 1e9 * code / 8.0 * f64::from(self.width)
    }
}

impl FromStr for Lanes {
    type Err = String;

    /// `Gen4 x16`, or `16 GT/s x8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no PCIe link: expected one such as \"Gen4 x16\"");
        let (speed, width) = text.trim().rsplit_once('x').ok_or_else(wrong)?;
        let width = width.parse::<u32>().ok().filter(|width| (1..=32).contains(width)).ok_or_else(wrong)?;
        let speed = speed.trim();
        if let Some(generation) = speed.strip_prefix("Gen") {
            return generation.parse().ok().and_then(|generation| Self::of_generation(generation, width)).ok_or_else(wrong);
        }
        let speed: f64 = speed.strip_suffix("GT/s").and_then(|speed| speed.trim().parse().ok()).ok_or_else(wrong)?;
        Some(Self { speed, width }).filter(|lanes| lanes.generation().is_some()).ok_or_else(wrong)
    }
}

impl fmt::Display for Lanes {
    /// `Gen4 x16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation() {
            Some(generation) => write!(f, "Gen{generation} x{}", self.width),
            None => write!(f, "{} GT/s x{}", self.speed, self.width),
        }
    }
}

/// A link as it is trained now, and as both of its ends could at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PcieLink {
    /// `None` when not told
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Lanes>,
    /// what this end can do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<Lanes>,
    /// what the port above can do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Lanes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_tools_write_them() {
        let address = |text: &str| text.parse::<PciAddress>();
        let plain = PciAddress { domain: 0, bus: 0x3b, device: 0, function: 1 };
        for text in ["0000:3b:00.1", "3b:00.1", "00000000:3B:00.1", " 3b:0.1 "] {
            assert_eq!(address(text), Ok(plain), "{text}");
        }
        assert_eq!(address("10000:e1:00").map(|address| address.to_string()), Ok("10000:e1:00.0".to_owned()));
        for text in ["", "3b", "0000:3b:20.0", "0000:3b:00.8", "0000:1:3b:00.0", "000000000:3b:00.0", "zz:00.0", "0000:+3b:00.0", ":00.0"] {
            assert!(address(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rates_are_those_of_the_standard() {
        let gbs = |generation, width| Lanes::of_generation(generation, width).unwrap().rate() / 1e9;
        assert!((gbs(1, 1) - 0.25).abs() < 1e-9);
        assert!((gbs(3, 16) - 15.754).abs() < 1e-3);
        assert!((gbs(4, 16) - 31.508).abs() < 1e-3);
        assert!((gbs(5, 16) - 63.015).abs() < 1e-3);
        assert!((gbs(6, 16) - 118.0).abs() < 1e-3);
        assert_eq!(Lanes { speed: 16.0, width: 8 }.to_string(), "Gen4 x8");
        assert_eq!(Lanes::of_generation(0, 1), None);
        for text in ["Gen4 x8", "16 GT/s x8", "16GT/s x8", " Gen4  x8"] {
            assert_eq!(text.parse(), Ok(Lanes { speed: 16.0, width: 8 }), "{text}");
        }
        for text in ["", "Gen4", "Gen7 x8", "Gen4 x0", "17 GT/s x8", "x8", "Gen4 x99", "NaN GT/s x1"] {
            assert!(text.parse::<Lanes>().is_err(), "{text}");
        }
    }
}
