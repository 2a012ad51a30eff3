//! What described hosts are made of, and what narrow slots do to the truth.

use std::collections::BTreeMap;

use crate::fabric::Fabric;
use crate::topology::hardware::{Device, PciKind};
use crate::topology::{Efficiency, Flag, PathLabel, Router, label, links_between, nearest_port};

fn shipped(name: &str) -> Fabric {
    Fabric::shipped(name).unwrap().unwrap_or_else(|error| panic!("{error}"))
}

/// A shipped fabric with more text.
fn with(name: &str, more: &str) -> Fabric {
    Fabric::parse(&format!("{}\n{more}", Fabric::shipped_text(name).unwrap()), name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn cards_switches_and_sockets_are_where_the_hosts_table_puts_them() {
    let topology = shipped("b70-8").topology();
    assert_eq!(topology.hardware.len(), 1);
    let host = &topology.hardware[0];
    assert_eq!((host.gpus.len(), host.numa.len(), host.nics.len()), (8, 2, 0));
    assert_eq!(host.pci.iter().filter(|device| device.kind == PciKind::SwitchUp).count(), 4);
    let router = Router::new(&topology, &Efficiency::default());
    assert_eq!(router.label(0, 1), Some(PathLabel::Pix));
    assert_eq!(router.label(0, 2), Some(PathLabel::Node));
    assert_eq!(router.label(3, 4), Some(PathLabel::Sys));
    // Gen5 x16 at 86 %: what the published 53.9 GB/s of 2 → 0 should be.
    let expected = router.expected(2, 0).unwrap() / 1e9;
    assert!((expected - 54.19).abs() < 0.01, "{expected}");
}

#[test]
fn switches_of_nvlink_and_ports_of_hosts_are_there() {
    let topology = shipped("nvswitch-32x8").topology();
    assert_eq!(topology.hardware.len(), 32);
    let host = &topology.hardware[31];
    assert_eq!((host.gpus.len(), host.nics.len(), host.host.as_str()), (8, 8, "node31"));
    assert_eq!((links_between(host, 0, 7), label(host, Device::Gpu(0), Device::Gpu(7))), (18, Some(PathLabel::Nvl(18))));
    for gpu in 0..8 {
        assert_eq!(nearest_port(host, Device::Gpu(gpu)), Some(gpu), "each has its own below its switch");
        assert_eq!(label(host, Device::Gpu(gpu), Device::Nic(gpu)), Some(PathLabel::Pix));
    }
    let router = Router::new(&topology, &Efficiency::default());
    assert_eq!((router.label(0, 255), router.label(0, 1)), (Some(PathLabel::Net), Some(PathLabel::Nvl(18))));
    for (from, to, gbps) in [(0, 1, 396.0), (0, 255, 48.0)] {
        let expected = router.expected(from, to).unwrap() / 1e9;
        assert!((expected - gbps).abs() < 1e-9, "{from} {to} {expected}");
    }
}

#[test]
fn every_address_of_a_host_is_its_own_and_every_parent_comes_first() {
    for name in Fabric::names() {
        for host in shipped(name).hardware() {
            let mut seen = BTreeMap::new();
            for (at, device) in host.pci.iter().enumerate() {
                assert_eq!(seen.insert(device.address, at), None, "{name} {}", device.address);
                assert!(device.parent.is_none_or(|parent| parent < at), "{name} {}", device.address);
            }
        }
    }
}

#[test]
fn a_narrow_slot_halves_its_row_and_column_and_is_named() {
    let (good, fabric) = (shipped("l20-8"), with("l20-8", "[[fault]]\nkind = \"narrow\"\nrank = 3\nlanes = 8\n"));
    let topology = fabric.topology();
    let router = Router::new(&topology, &Efficiency::default());
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let part = fabric.truth(from, to).rate / good.truth(from, to).rate;
        let struck = from == 3 || to == 3;
        assert!((part - if struck { 0.5 } else { 1.0 }).abs() < 1e-9, "{from} {to} {part}");
        let narrow: Vec<_> = router.route(&topology, from, to).hops.into_iter().filter(|hop| hop.flag == Some(Flag::Narrow)).collect();
        assert_eq!(narrow.len(), usize::from(struck), "{from} {to}");
        assert!(narrow.iter().all(|hop| hop.name.contains("GPU 3") && hop.state == "Gen4 x8 of x16"), "{narrow:?}");
        assert!((router.expected(from, to).unwrap() / 27.097e9 - 1.0).abs() < 1e-3, "what it should give is as before");
    }
    assert_eq!(fabric.truth(3, 3), good.truth(3, 3), "a copy in place passes no slot");
    // Bytes that go by NVLink do not pass it; those to other hosts do.
    let linked = with("h20-2x8", "[[fault]]\nkind = \"narrow\"\nrank = 3\nlanes = 4\n");
    assert_eq!(linked.truth(3, 4), shipped("h20-2x8").truth(3, 4));
    assert!(linked.truth(3, 12).rate < 0.26 * shipped("h20-2x8").truth(3, 12).rate);
}
