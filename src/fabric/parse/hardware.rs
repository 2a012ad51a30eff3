//! The hardware table.

use toml::Spanned;

use super::{Read, Reader};
use crate::fabric::layout::Layout;
use crate::fabric::machine::Parts;
use crate::fabric::text::{HardwareEntry, Text};
use crate::topology::Lanes;
use crate::units::plain;

/// Most NVLinks of a device.
const MOST_LINKS: u32 = 256;

impl Reader<'_> {
    pub(super) fn hardware(&self, told: &Spanned<HardwareEntry>, layout: &Layout) -> Read<Parts> {
        let (span, told) = (told.span(), told.get_ref());
        let pcie = self.lanes(&told.pcie)?;
        let uplink = told.uplink.as_ref().map(|uplink| self.lanes(uplink)).transpose()?;
        if let Some(uplink) = told.uplink.as_ref().filter(|_| layout.switches.is_none()) {
            return Err(self.source.error(&uplink.span(), "the hosts table has no `switches` whose uplink this could be"));
        }
        let nvlink = match (told.nvlinks.as_ref().map_or(0, |count| *count.get_ref()), &told.nvlink) {
            (0, None) => 0.0,
            (0, Some(rate)) => return Err(self.source.error(&rate.span(), "how many? `nvlinks` is missing")),
            (_, None) => return Err(self.source.error(&span, "`nvlink`, the rate of one of the `nvlinks`, is missing")),
            (_, Some(rate)) => self.rate(rate)?,
        };
        if let Some(count) = told.nvlinks.as_ref().filter(|count| *count.get_ref() > MOST_LINKS) {
            return Err(self.source.refuse(&count.span(), count.get_ref(), &format!("at most {MOST_LINKS} links of a device")));
        }
        let nic = match &told.nic {
            Some(nic) if layout.nics.is_none() => return Err(self.source.error(&nic.span(), "the hosts table has no `nics`")),
            Some(nic) => self.rate(nic)?,
            None => 0.0,
        };
        Ok(Parts {
            device: plain(&told.device),
            pcie,
            uplink: uplink.unwrap_or(pcie),
            nvlinks: told.nvlinks.as_ref().map_or(0, |count| *count.get_ref()),
            nvlink,
            nic,
        })
    }

    fn lanes(&self, text: &Text) -> Read<Lanes> {
        text.get_ref().parse().map_err(|error: String| self.source.error(&text.span(), error))
    }
}
