//! `ibstat` and `ibdev2netdev`: ports of RDMA devices.

use super::Skips;
use super::text::{Line, amount, named, number, shown};
use super::tree::Tree;
use crate::topology::PciAddress;
use crate::topology::hardware::{Hardware, LinkLayer, Nic, PciDevice};

/// No device has more ports.
const MOST_PORTS: usize = 256;

/// The name in `CA 'mlx5_0'`.
fn adapter(text: &str) -> Option<&str> {
    text.trim().strip_prefix("CA '")?.strip_suffix('\'')
}

/// State as the system's own files say it: ibstat spells one of them out, and tells apart what is down for want of a cable.
fn state(logical: &str, physical: &str) -> String {
    match (logical, physical) {
        ("down", "polling" | "disabled") => physical.to_owned(),
        ("initializing", _) => "init".to_owned(),
        _ => logical.to_owned(),
    }
}

/// What `ibstat` tells, if it begins with the first line, and the number of lines that it takes.
pub(super) fn ibstat(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Hardware, usize)> {
    adapter(lines.first()?.text)?;
    let mut host = Hardware::default();
    let (mut used, mut name, mut ports) = (0, String::new(), 0);
    let (mut logical, mut physical) = (String::new(), String::new());
    for (at, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let (key, value) = text.split_once(':').map_or((text, ""), |(key, value)| (key, value.trim()));
        if let Some(found) = adapter(text) {
            (name, ports) = (named(found), 0);
        } else if let Some(port) = key.strip_prefix("Port ").and_then(number).filter(|_| value.is_empty() && text.ends_with(':')) {
            ports += 1;
            if ports > MOST_PORTS {
                break;
            }
            (logical, physical) = (String::new(), String::new());
            let port = u32::try_from(port).unwrap_or_default();
            host.nics.push(Nic { name: name.clone(), port, layer: LinkLayer::Other, ..Nic::default() });
        } else if let Some(nic) = host.nics.last_mut().filter(|_| ports > 0) {
            match key {
                "State" => logical = named(value).to_ascii_lowercase(),
                "Physical state" => physical = named(value).to_ascii_lowercase(),
                // Gb/s; 400, or 2.5 for the oldest.
                "Rate" => match amount(value.split_whitespace().next().unwrap_or_default()) {
                    Some(rate) => nic.rate = Some(rate * 1e9 / 8.0).filter(|rate| *rate > 0.0),
                    None => skips.push(line.number, format!("{} is no rate in Gb/s", shown(value))),
                },
                "Port GUID" => nic.guid = Some(named(value)),
                "Link layer" => nic.layer = layer(value),
                "Base lid" | "LMC" | "SM lid" | "Capability mask" | "" => {}
                _ if is_adapters(key) => {}
                _ => break,
            }
            nic.state = state(&logical, &physical);
        } else if !(text.is_empty() || is_adapters(key)) {
            break;
        }
        used = at + 1;
    }
    for nic in host.nics.iter_mut().filter(|nic| !nic.up()) {
        // The rate of a port without a link is a default of the driver.
        nic.rate = None;
    }
    Some((host, used))
}

/// True for what ibstat tells of a whole adapter.
fn is_adapters(key: &str) -> bool {
    matches!(key, "CA type" | "Number of ports" | "Firmware version" | "Hardware version" | "Node GUID" | "System image GUID")
}

fn layer(text: &str) -> LinkLayer {
    match text {
        "InfiniBand" | "IB" => LinkLayer::InfiniBand,
        "Ethernet" => LinkLayer::Ethernet,
        _ => LinkLayer::Other,
    }
}

/// One line of `ibdev2netdev`, or of `ibdev2netdev -v`, which has the PCI address in front.
fn netdev(text: &str) -> Option<(Option<PciAddress>, Nic)> {
    let (device, interface) = text.trim().split_once("==>")?;
    let mut words = device.split_whitespace();
    let first = words.next()?;
    let address = first.parse::<PciAddress>().ok().filter(|_| first.contains('.'));
    let name = if address.is_some() { words.next()? } else { first };
    let mut after = words.skip_while(|word| *word != "port").skip(1);
    let port = u32::try_from(number(after.next()?)?).ok()?;
    let (interface, state) = interface.trim().split_once('(').unwrap_or((interface, ""));
    let interface = named(interface);
    let nic = Nic {
        name: named(name),
        layer: if interface.starts_with("ib") { LinkLayer::InfiniBand } else { LinkLayer::Other },
        interface: Some(interface).filter(|interface| !interface.is_empty()),
        port,
        // The interface's state: `Up` is the word for what the ports call active.
        state: match named(state.trim_end_matches(')')).to_ascii_lowercase().as_str() {
            "up" => "active".to_owned(),
            other => other.to_owned(),
        },
        ..Nic::default()
    };
    Some((address, nic))
}

/// What `ibdev2netdev` tells, if it begins with the first line, and the number of lines that it takes.
pub(super) fn ibdev2netdev(lines: &[Line<'_>]) -> Option<(Hardware, usize)> {
    let found: Vec<_> = lines.iter().take(16 * MOST_PORTS).map_while(|line| netdev(line.text)).collect();
    let mut host = Hardware::default();
    let mut tree = Tree::default();
    let mut places = Vec::new();
    for (address, nic) in found {
        places.push(address.map(|address| tree.add(PciDevice { address, class: 0x02_00_00, ..PciDevice::default() }, None)));
        host.nics.push(nic);
    }
    let place = tree.finish(&mut host);
    for (nic, at) in host.nics.iter_mut().zip(&places) {
        nic.pci = at.map(|at| place[at]);
    }
    let used = places.len();
    (used > 0).then_some((host, used))
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    #[test]
    fn ports_of_adapters_are_read() {
        let text = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 2\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\
                    \t\tPort GUID: 0x1\n\t\tLink layer: InfiniBand\n\tPort 2:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: x\n\
                    CA 'mlx5_1'\n\tPort 1:\n\t\tState: Initializing\n\t\tLink layer: Ethernet\nother: text\n";
        let mut skips = Skips::default();
        let (host, used) = ibstat(&lines(text), &mut skips).unwrap();
        assert_eq!(used, 17);
        let ports: Vec<_> = host.nics.iter().map(|nic| (nic.name.as_str(), nic.port, nic.state.as_str(), nic.rate)).collect();
        assert_eq!(ports, [("mlx5_0", 1, "active", Some(50e9)), ("mlx5_0", 2, "polling", None), ("mlx5_1", 1, "init", None)]);
        assert_eq!(
            (host.nics[0].layer, host.nics[1].layer, host.nics[2].layer),
            (LinkLayer::InfiniBand, LinkLayer::Other, LinkLayer::Ethernet)
        );
        assert_eq!(skips.sorted()[0].line, 13);
    }

    #[test]
    fn interfaces_of_devices_are_read_with_and_without_addresses() {
        let text =
            "mlx5_0 port 1 ==> eth2 (Up)\n0000:3b:00.0 mlx5_1 (MT4123 - X) CX653106A fw 20.1 port 2 (DOWN  ) ==> ib0 (Down)\nx ==> y\n";
        let (host, used) = ibdev2netdev(&lines(text)).unwrap();
        assert_eq!(used, 2);
        assert_eq!((host.nics[0].interface.as_deref(), host.nics[0].state.as_str(), host.nics[0].pci), (Some("eth2"), "active", None));
        assert_eq!((host.nics[1].name.as_str(), host.nics[1].port, host.nics[1].layer), ("mlx5_1", 2, LinkLayer::InfiniBand));
        assert_eq!(host.pci[host.nics[1].pci.unwrap()].address.bus, 0x3b);
        assert!(ibdev2netdev(&lines("a port 1 b")).is_none());
    }
}
