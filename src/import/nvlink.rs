//! `nvidia-smi nvlink -s` and `nvidia-smi -L`: GPUs with their names and UUIDs, each NVLink's rate or that it is down.

use super::Skips;
use super::links::MOST_LINKS;
use super::text::{Line, amount, named, number, shown};
use crate::topology::hardware::{Gpu, GpuLink, GpuLinkKind, Hardware, NoteKind};

/// `GPU 0: NVIDIA H100 (UUID: GPU-...)`: number, name and UUID, the latter where told.
fn gpu(text: &str) -> Option<Gpu> {
    let (index, name) = text.trim().strip_prefix("GPU ")?.split_once(": ")?;
    let (name, uuid) = name.split_once("(UUID: ").map_or((name, None), |(name, rest)| (name, rest.strip_suffix(')')));
    Some(Gpu { index: number(index)?, name: named(name), uuid: uuid.map(named), ..Gpu::default() })
}

/// What a line says of a link: its number, and its rate in GB/s or that it is down.
fn link(text: &str) -> Option<(u32, Option<f64>)> {
    let (at, state) = text.trim().strip_prefix("Link ")?.split_once(':')?;
    let at = u32::try_from(number(at)?).ok().filter(|at| *at < 2 * MOST_LINKS)?;
    let state = state.trim();
    if let Some(rate) = state.strip_suffix("GB/s") {
        return Some((at, Some(amount(rate)?)));
    }
    state.trim_matches(['<', '>']).eq_ignore_ascii_case("inactive").then_some((at, None))
}

/// A host, if a list of GPUs begins with the first line, and the number of lines that it takes.
pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Hardware, usize)> {
    gpu(lines.first()?.text)?;
    let mut host = Hardware::default();
    let mut used = 0;
    let mut down: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let own = host.gpus.len().saturating_sub(1);
        if let Some(gpu) = gpu(text) {
            if host.gpus.iter().any(|known| known.index == gpu.index) || host.gpus.len() == 1024 {
                break;
            }
            host.gpus.push(gpu);
        } else if let Some((number, rate)) = link(text) {
            if host.gpu_links.iter().rev().take_while(|link| link.gpu == own).any(|link| link.number == Some(number)) {
                skips.push(line.number, format!("link {number} of GPU {} told twice", host.gpus[own].index));
            } else {
                let rate = rate.map(|rate| rate * 1e9).filter(|rate| *rate > 0.0);
                let kind = GpuLinkKind::Nvlink;
                host.gpu_links.push(GpuLink { kind, gpu: own, number: Some(number), active: rate.is_some(), rate, ..GpuLink::default() });
            }
        } else if text.starts_with("NVML:") && text.to_ascii_lowercase().contains("inactive") {
            down.push(format!("GPU {}", host.gpus[own].index));
        } else if let Some(instance) = text.strip_prefix("MIG ") {
            host.gpus[own].mig.push(named(instance.split_whitespace().next().unwrap_or_default()));
        } else if text.starts_with("Link ") {
            skips.push(line.number, format!("{} tells no rate and no state", shown(text)));
        } else if text.starts_with("...") {
            skips.push(line.number, "left out by whoever wrote the file");
        } else if !text.is_empty() {
            break;
        }
        used = at + 1;
    }
    super::tree::note_all(&mut host, NoteKind::Unseen, &down, "all NVLinks are down, or no bridge is fitted");
    Some((host, used))
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    #[test]
    fn links_have_rates_or_are_down() {
        let text = "GPU 0: NVIDIA H800 (UUID: GPU-aa)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n\t Link 1: 25 GB/s\n...\n\
                    GPU 7: Tesla\nNVML: Unable to retrieve NVLink information as all links are inActive\n\nother\n";
        let mut skips = Skips::default();
        let (host, used) = read(&lines(text), &mut skips).unwrap();
        assert_eq!(used, 8);
        assert_eq!((host.gpus[0].name.as_str(), host.gpus[0].uuid.as_deref()), ("NVIDIA H800", Some("GPU-aa")));
        assert_eq!((host.gpus[1].index, host.gpus[1].name.as_str(), &host.gpus[1].uuid), (7, "Tesla", &None));
        let links: Vec<_> = host.gpu_links.iter().map(|link| (link.number, link.active, link.rate)).collect();
        assert_eq!(links, [(Some(0), true, Some(26.562e9)), (Some(1), false, None)]);
        assert_eq!(host.notes[0].about, "GPU 7");
        assert_eq!(skips.sorted().iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn lists_of_gpus_tell_names_and_instances() {
        let text =
            "GPU 0: A100 (UUID: GPU-1)\n  MIG 1g.5gb     Device  0: (UUID: MIG-2)\nGPU 1: A100 (UUID: GPU-3)\nGPU 0: A100 (UUID: GPU-4)\n";
        let (host, used) = read(&lines(text), &mut Skips::default()).unwrap();
        assert_eq!((host.gpus.len(), used), (2, 3));
        assert_eq!(host.gpus[0].mig, ["1g.5gb"]);
        for wrong in ["GPU x: A", "GPU 0", "Link 0: 25 GB/s", ""] {
            assert!(read(&lines(wrong), &mut Skips::default()).is_none(), "{wrong}");
        }
    }
}
