//! Path classes as nvidia-smi labels them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How two devices reach each other; nearer ones first. The words are those of `nvidia-smi topo -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PathLabel {
    /// a device to itself
    Local,
    /// over so many NVLinks at once
    Nvl(u32),
    /// over one PCIe switch at most
    Pix,
    /// over several PCIe switches, without the processor
    Pxb,
    /// over one host bridge of a processor
    Phb,
    /// over several host bridges of one NUMA node
    Node,
    /// between NUMA nodes
    Sys,
    /// between hosts
    Net,
}

impl fmt::Display for PathLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "X",
            Self::Nvl(links) => return write!(f, "NV{links}"),
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
            Self::Net => "NET",
        })
    }
}

impl FromStr for PathLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "X" => Self::Local,
            "PIX" => Self::Pix,
            "PXB" => Self::Pxb,
            "PHB" => Self::Phb,
            "NODE" => Self::Node,
            // Before CUDA 9 the path between sockets was named after Intel's link.
            "SYS" | "SOC" => Self::Sys,
            "NET" => Self::Net,
            _ => {
                let links = text.strip_prefix("NV").filter(|digits| !digits.is_empty() && digits.len() <= 3);
                let links = links.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())).and_then(|digits| digits.parse().ok());
                return links
                    .map(Self::Nvl)
                    .ok_or_else(|| format!("{text:?} is no path class: expected X, NV#, PIX, PXB, PHB, NODE, SYS or NET"));
            }
        })
    }
}

impl TryFrom<String> for PathLabel {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PathLabel> for String {
    fn from(label: PathLabel) -> Self {
        label.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        use PathLabel::{Local, Net, Node, Nvl, Phb, Pix, Pxb, Sys};
        for label in [Local, Nvl(18), Pix, Pxb, Phb, Node, Sys, Net] {
            assert_eq!(label.to_string().parse(), Ok(label));
        }
        assert_eq!("SOC".parse(), Ok(Sys));
        for text in ["", "NV", "NV+1", "NV1234", "pix", "SYSSYS"] {
            assert!(text.parse::<PathLabel>().is_err(), "{text}");
        }
    }
}
