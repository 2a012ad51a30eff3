//! `toposcope discover --from FILE...`: topologies of other tools' files, told like discovered ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::discover::{self, Look};
use super::{FINE, print};
use crate::import::{self, Imported};
use crate::topology::hardware::{Device, ToldWhat};
use crate::topology::{self, Hardware, Topology};

/// What the files tell: several of one host as one, or each host of its own; what they lack and what was left out goes to
/// standard error.
pub(super) fn tell(files: &[PathBuf], json: bool) -> Result<u8> {
    let found = files.iter().map(|file| import::read(file)).collect::<Result<Vec<Imported>, _>>().context("--from")?;
    let mut said = String::new();
    for (file, imported) in files.iter().zip(&found) {
        for skipped in &imported.skipped {
            let _ = writeln!(said, "toposcope: {}:{}: left out: {}", file.display(), skipped.line, skipped.reason);
        }
    }
    let (hosts, lacks) = together(found);
    for lack in lacks {
        let _ = writeln!(said, "toposcope: not told: {lack}");
    }
    print(&text(hosts, json, Look::now()));
    super::say(&said);
    Ok(FINE)
}

/// Files that tell of one host each are tellings of the same host, unless they name different ones.
pub(super) fn together(found: Vec<Imported>) -> (Vec<Hardware>, Vec<String>) {
    let mut hosts: Vec<Vec<Hardware>> = Vec::new();
    let mut formats = Vec::new();
    for imported in found {
        let alone = imported.hosts.len() == 1;
        formats.extend(imported.formats);
        for host in imported.hosts {
            let same = |parts: &&mut Vec<Hardware>| {
                alone && parts.iter().all(|part| part.host.is_empty() || host.host.is_empty() || part.host == host.host)
            };
            match hosts.iter_mut().find(same) {
                Some(parts) => parts.push(host),
                None => hosts.push(vec![host]),
            }
        }
    }
    let hosts: Vec<Hardware> = hosts.into_iter().map(import::merge).collect();
    let lacks = import::lacks(&hosts, &formats);
    (hosts, lacks)
}

/// As discovered hosts are told, and for people also what files tell that no tree shows.
fn text(hosts: Vec<Hardware>, json: bool, look: Look) -> String {
    if json {
        return discover::text(&Topology { hardware: hosts, ..Topology::default() }, true, look);
    }
    let mut text = String::new();
    for host in hosts {
        let _ = writeln!(text, "{}{}", if text.is_empty() { "" } else { "\n" }, host.source);
        let more = beside(&host);
        text.push_str(&discover::text(&Topology { hardware: vec![host], ..Topology::default() }, false, look));
        text.push_str(&more);
    }
    text
}

/// GPUs that no PCI device stands for, peer access, and path classes where a table told them.
fn beside(host: &Hardware) -> String {
    let mut text = String::new();
    for gpu in host.gpus.iter().filter(|gpu| gpu.pci.is_none() && (!gpu.name.is_empty() || gpu.numa.is_some())) {
        let node = gpu.numa.map_or_else(String::new, |node| format!("  NUMA {node}"));
        let line = format!("  GPU {:<8} {}{node}", gpu.index, gpu.name);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let mut peers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for told in &host.told {
        if let ToldWhat::Peer { access, status } = &told.what {
            *peers.entry((access, status)).or_default() += 1;
        }
    }
    for ((access, status), pairs) in peers {
        let _ = writeln!(text, "  peer access ({access}): {status} for {pairs} pairs");
    }
    if host.told.iter().any(|told| matches!(told.what, ToldWhat::Label(_))) {
        paths(host, &mut text);
    }
    text
}

/// Path classes as nvidia-smi lays them out, worked out from trees and links where there are any.
fn paths(host: &Hardware, text: &mut String) {
    let gpus = host.gpus.iter().enumerate().map(|(at, gpu)| (Device::Gpu(at), format!("GPU{}", gpu.index)));
    let ports = host.nics.iter().enumerate().map(|(at, nic)| (Device::Nic(at), nic.name.clone()));
    let devices: Vec<(Device, String)> = gpus.chain(ports).collect();
    let wide = devices.iter().map(|(_, name)| name.chars().count()).max().unwrap_or_default();
    let cell = |text: &str| format!(" {text:>wide$}");
    let _ = writeln!(text, "  {:wide$}{}", "", devices.iter().map(|(_, name)| cell(name)).collect::<String>());
    for (from, name) in &devices {
        let row = devices
            .iter()
            .map(|(to, _)| cell(&topology::label(host, *from, *to).map_or_else(|| "-".to_owned(), |label| label.to_string())));
        let _ = writeln!(text, "  {name:wide$}{}", row.collect::<String>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Imported {
        import::hardware(text, "f").unwrap()
    }

    #[test]
    fn files_of_one_host_are_told_as_one_and_others_apart() {
        let table = "me@n1:~$ nvidia-smi topo -m\nGPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n";
        let links = "GPU 0: A (UUID: GPU-1)\n Link 0: 25 GB/s\n";
        let other = "me@n2:~$ nvidia-smi topo -m\nGPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n";
        let (hosts, lacks) = together(vec![told(table), told(links), told(other)]);
        assert_eq!(hosts.iter().map(|host| host.host.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
        assert_eq!(hosts[0].gpus[0].name, "A");
        assert!(lacks.iter().any(|lack| lack.starts_with("PCI tree")), "{lacks:?}");
        let text = text(hosts, false, Look::default());
        for line in ["n1", "n2", "  GPU 0        4 × NVLink to GPU 1, 100 GB/s", "  GPU 0        A", "  GPU0    X  NV4", "  GPU1  SYS    X"]
        {
            assert!(text.lines().any(|told| told == line), "{line:?} in\n{text}");
        }
    }
}
