//! NVLinks as their generations have them.

use crate::topology::hardware::{GpuLink, GpuLinkKind, LinkEnd};

/// No GPU has more links; NVLink 4 and 5 have 18.
pub(super) const MOST_LINKS: u32 = 18;

/// Generation and bytes per second in one direction of one NVLink, by the GPU's compute capability (`90`): NVIDIA's
/// architecture papers of P100, V100, A100, H100, B200; the half-wide links of A6000 and RTX 3090 are 14.0625 GB/s.
pub(super) const fn of_sm(sm: usize) -> Option<(u32, f64)> {
    match sm {
        60 => Some((1, 20e9)),
        70 | 72 | 75 => Some((2, 25e9)),
        80 => Some((3, 25e9)),
        86 => Some((3, 14.0625e9)),
        90 => Some((4, 25e9)),
        100..=129 => Some((5, 50e9)),
        _ => None,
    }
}

/// So many equal links from a GPU to one end.
pub(super) fn bundle(count: u32, gpu: usize, end: LinkEnd) -> impl Iterator<Item = GpuLink> {
    let link = GpuLink { kind: GpuLinkKind::Nvlink, gpu, end, active: true, ..GpuLink::default() };
    std::iter::repeat_n(link, count as usize)
}
