//! What imported hosts do not tell, seen from what they do tell.

use super::Format;
use crate::topology::Hardware;
use crate::topology::hardware::{LinkEnd, PciKind};

/// What is missing in any of the hosts, and what its formats cannot tell.
pub fn of(hosts: &[Hardware], formats: &[Format]) -> Vec<String> {
    let any = |test: fn(&Hardware) -> bool| hosts.iter().any(test);
    let all = [
        (any(|host| host.gpus.is_empty()), "GPUs"),
        (any(|host| host.nics.is_empty()), "network devices"),
        (any(|host| host.pci.is_empty()), "PCI tree: paths are known only as far as they are labelled"),
        (any(|host| host.pci.len() > 1 && host.pci.iter().all(|device| device.parent.is_none())), "what the PCI devices lie below"),
        (any(no_speed), "PCI link speeds of some devices"),
        (any(|host| speeds(host, false) && !speeds(host, true)), "PCI links as they are trained now: only what they can do at most"),
        (any(|host| !host.pci.is_empty() && host.pci.iter().all(|device| device.acs.is_none())), "Access Control Services (ACS)"),
        (any(|host| host.numa.is_empty()), "NUMA nodes"),
        (any(|host| !host.numa.is_empty() && host.numa.iter().all(|node| node.distances.is_empty())), "NUMA distances"),
        (any(|host| host.packages.is_empty()), "processor packages and caches"),
        (any(|host| host.gpus.iter().any(|gpu| gpu.name.is_empty())), "names of some GPUs"),
        (any(|host| host.gpu_links.iter().any(|link| link.rate.is_none() && link.active)), "rates of GPU links"),
        (any(|host| host.gpu_links.iter().any(|link| link.end == LinkEnd::Unknown && link.active)), "where GPU links lead"),
        (any(|host| !host.gpus.is_empty() && host.gpu_links.is_empty()), "links between GPUs, if there are any"),
        (any(|host| host.nics.iter().any(|nic| nic.rate.is_none() && nic.up())), "rates of some network ports"),
        (any(|host| host.nics.iter().any(|nic| nic.state.is_empty())), "states of some network ports"),
    ];
    let found = all.into_iter().filter(|(missing, _)| *missing).map(|(_, what)| what.to_owned());
    found.chain(formats.iter().filter_map(|format| limits(*format)).map(str::to_owned)).collect()
}

/// What a format leaves in doubt by the way it is written.
const fn limits(format: Format) -> Option<&'static str> {
    match format {
        Format::NcclTopology => {
            Some("root ports, host bridges and switches' own ports, which NCCL leaves out: PHB and NODE cannot be told apart")
        }
        Format::NcclLog => Some(
            "links as they are: the rates are those that NCCL reckons with, read as the widest PCI link and as so many NVLinks; root ports and \
             host bridges are left out, and what no rank uses may be",
        ),
        Format::Hwloc => {
            Some("generation and width of PCI links apart: hwloc tells their product, which is read as the widest link with that rate")
        }
        Format::LspciTree => Some("classes of PCI devices: GPUs and network devices are told by their names"),
        _ => None,
    }
}

/// True if an endpoint's link is not told at all.
fn no_speed(host: &Hardware) -> bool {
    let ends = host.gpus.iter().filter_map(|gpu| gpu.pci).chain(host.nics.iter().filter_map(|nic| nic.pci));
    ends.filter_map(|at| host.pci.get(at)).any(|device| device.kind == PciKind::Endpoint && device.link.is_none())
}

/// True if some link is told, as it is trained now or at most.
fn speeds(host: &Hardware, now: bool) -> bool {
    host.pci.iter().filter_map(|device| device.link).any(|link| if now { link.now.is_some() } else { link.most.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::hardware::Gpu;

    #[test]
    fn what_is_there_is_not_missed() {
        let host = Hardware { gpus: vec![Gpu { name: "A100".to_owned(), ..Gpu::default() }], ..Hardware::default() };
        let lacks = of(&[host], &[Format::NcclTopology]);
        assert!(lacks.iter().any(|lack| lack.starts_with("PCI tree")), "{lacks:?}");
        assert!(lacks.iter().any(|lack| lack.contains("PHB")), "{lacks:?}");
        assert!(!lacks.iter().any(|lack| lack.contains("names of some GPUs") || lack == "GPUs"), "{lacks:?}");
    }
}
