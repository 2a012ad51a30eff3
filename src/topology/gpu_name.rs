//! How a person names a GPU.

use std::fmt;
use std::str::FromStr;

use super::PciAddress;

/// A GPU as the driver numbers it, by its UUID, or by where it sits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GpuName {
    /// CUDA's number, among the devices that the process sees
    Number(usize),
    /// `GPU-8f2e...`, or `MIG-...` of an instance; the beginning is enough where only one has it
    Uuid(String),
    Address(PciAddress),
}

/// Length of `GPU-` and `MIG-`.
const WORD: usize = 4;

impl FromStr for GpuName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let upper = text.to_ascii_uppercase();
        if (upper.starts_with("GPU-") || upper.starts_with("MIG-")) && upper.len() > WORD {
            return Ok(Self::Uuid(text.to_owned()));
        }
        if text.contains(':')
            && let Ok(address) = text.parse()
        {
            return Ok(Self::Address(address));
        }
        let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok().map(Self::Number)).flatten().ok_or_else(|| {
            format!(
                "{text:?} is no GPU: expected CUDA's number such as 0, a UUID such as GPU-8f2e1c, or a PCI address such as 0000:3b:00.0"
            )
        })
    }
}

impl fmt::Display for GpuName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Uuid(uuid) => f.write_str(uuid),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl GpuName {
    /// True if this names the GPU with that number, UUID and address; letters may be small or large.
    pub fn means(&self, number: usize, uuid: Option<&str>, address: Option<PciAddress>) -> bool {
        match self {
            Self::Number(own) => *own == number,
            // CUDA gives an instance's bytes without the word before them.
            Self::Uuid(own) => uuid.is_some_and(|uuid| {
                let own = own.get(WORD..).unwrap_or_default();
                uuid.get(WORD..WORD + own.len()).is_some_and(|start| start.eq_ignore_ascii_case(own))
            }),
            Self::Address(own) => address == Some(*own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_uuids_and_addresses_are_told_apart_and_written_as_they_are_read() {
        let address = PciAddress { domain: 0, bus: 0x3b, device: 0, function: 0 };
        for (text, name) in [
            (" 7 ", GpuName::Number(7)),
            ("GPU-8f2e1c", GpuName::Uuid("GPU-8f2e1c".to_owned())),
            ("mig-12", GpuName::Uuid("mig-12".to_owned())),
            ("0000:3b:00.0", GpuName::Address(address)),
            ("00000000:3B:00.0", GpuName::Address(address)),
            ("3b:00.0", GpuName::Address(address)),
        ] {
            assert_eq!(text.parse(), Ok(name.clone()), "{text}");
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "x", "-1", "0,1", "3b", "GPU", "GPU-", "12345", "zz:00.0"] {
            assert!(text.parse::<GpuName>().unwrap_err().contains("expected"), "{text}");
        }
    }

    #[test]
    fn a_name_means_one_gpu_however_it_is_written() {
        let means = |text: &str| text.parse::<GpuName>().unwrap().means(1, Some("GPU-8f2e1c"), "0000:3b:00.0".parse().ok());
        assert!(means("1") && means("gpu-8F2E") && means("MIG-8f2e") && means("00000000:3B:00.0"));
        assert!(!means("0") && !means("GPU-8f2e1c0") && !means("0000:3c:00.0"));
        assert!(!"GPU-8".parse::<GpuName>().unwrap().means(1, None, None));
    }
}
