//! `toposcope discover --from FILE...`: topologies of other tools' files, told like discovered ones.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::discover::{self, Look};
use super::{FINE, print};
use crate::import::{self, Imported};
use crate::topology::{Hardware, Topology};

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
    let topology = Topology { hardware: hosts, ..Topology::default() };
    print(&discover::text(&topology, json, Look::now()));
    super::say(&said);
    Ok(FINE)
}

/// Files that tell of one host each are tellings of the same host, unless they name different ones.
fn together(found: Vec<Imported>) -> (Vec<Hardware>, Vec<String>) {
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
        let text = discover::text(&Topology { hardware: hosts, ..Topology::default() }, false, Look::default());
        assert!(text.contains("n1") && text.contains("n2"), "{text}");
    }
}
