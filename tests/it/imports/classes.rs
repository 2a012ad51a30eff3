//! One machine told by several tools has one set of path classes: those that nvidia-smi prints are those that are worked out from
//! the trees of hwloc, NCCL and lspci.

use std::collections::BTreeMap;

use toposcope::import;
use toposcope::topology::hardware::{Device, ToldWhat};
use toposcope::topology::{Hardware, PathLabel, label};

/// A machine with two nodes: on the first two switches below one another with GPU, GPU and port, and one port of its own root; on
/// the second one GPU.
const HWLOC: &str = r#"<topology version="2.0"><object type="Machine" nodeset="0x3">
<object type="Package" os_index="0" nodeset="0x1"><object type="NUMANode" os_index="0" nodeset="0x1" cpuset="0xf"/>
 <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[10-19]"><object type="Bridge" bridge_type="1-1" pci_busid="0000:10:01.0" pci_type="0604 [8086:1]">
  <object type="Bridge" bridge_type="1-1" pci_busid="0000:11:00.0" pci_type="0604 [1000:c030]">
   <object type="Bridge" bridge_type="1-1" pci_busid="0000:12:00.0" pci_type="0604 [1000:c030]">
    <object type="PCIDev" pci_busid="0000:13:00.0" pci_type="0302 [10de:2330]"><object type="OSDev" name="nvml0" osdev_type="1"/></object></object>
   <object type="Bridge" bridge_type="1-1" pci_busid="0000:12:01.0" pci_type="0604 [1000:c030]">
    <object type="PCIDev" pci_busid="0000:14:00.0" pci_type="0302 [10de:2330]"><object type="OSDev" name="nvml1" osdev_type="1"/></object></object>
   <object type="Bridge" bridge_type="1-1" pci_busid="0000:12:02.0" pci_type="0604 [1000:c030]">
    <object type="Bridge" bridge_type="1-1" pci_busid="0000:15:00.0" pci_type="0604 [1000:c030]">
     <object type="Bridge" bridge_type="1-1" pci_busid="0000:16:00.0" pci_type="0604 [1000:c030]">
      <object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0207 [15b3:1021]"><object type="OSDev" name="mlx5_0" osdev_type="3"/></object></object>
    </object></object></object></object></object>
 <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[30-31]"><object type="Bridge" bridge_type="1-1" pci_busid="0000:30:01.0" pci_type="0604 [8086:1]">
  <object type="PCIDev" pci_busid="0000:31:00.0" pci_type="0207 [15b3:1021]"><object type="OSDev" name="mlx5_1" osdev_type="3"/></object></object></object></object>
<object type="Package" os_index="1" nodeset="0x2"><object type="NUMANode" os_index="1" nodeset="0x2" cpuset="0xf0"/>
 <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[90-91]"><object type="Bridge" bridge_type="1-1" pci_busid="0000:90:01.0" pci_type="0604 [8086:1]">
  <object type="PCIDev" pci_busid="0000:91:00.0" pci_type="0302 [10de:2330]"><object type="OSDev" name="nvml2" osdev_type="1"/></object></object></object></object>
</object></topology>"#;

const NCCL: &str = r#"<system version="1"><cpu numaid="0" affinity="f">
 <pci busid="0000:11:00.0" class="0x060400"><pci busid="0000:13:00.0" class="0x030200" vendor="0x10de"><gpu dev="0" sm="90"/></pci>
  <pci busid="0000:14:00.0" class="0x030200" vendor="0x10de"><gpu dev="1" sm="90"/></pci>
  <pci busid="0000:15:00.0" class="0x060400"><pci busid="0000:17:00.0" class="0x020700"><nic><net name="mlx5_0" port="1"/></nic></pci></pci></pci>
 <pci busid="0000:31:00.0" class="0x020700"><nic><net name="mlx5_1" port="1"/></nic></pci></cpu>
 <cpu numaid="1" affinity="f0"><pci busid="0000:91:00.0" class="0x030200" vendor="0x10de"><gpu dev="2" sm="90"/></pci></cpu></system>"#;

const TABLE: &str = "\tGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\tSYS\tPXB\tNODE\t0-3\t0\nGPU1\tPIX\t X \tSYS\tPXB\tNODE\t0-3\t0\n\
                     GPU2\tSYS\tSYS\t X \tSYS\tSYS\t4-7\t1\nNIC0\tPXB\tPXB\tSYS\t X \tNODE\nNIC1\tNODE\tNODE\tSYS\tNODE\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

/// The machine as `lspci -nnvv` prints it: bridges with the bus below, kinds of ports, and the node.
fn list() -> String {
    let bridge = |address: &str, below: &str, kind: &str, node: u8| {
        format!(
            "{address} PCI bridge [0604]: X [1000:c030]\n\tNUMA node: {node}\n\tBus: primary=00, secondary={below}, subordinate=ff\n\tCapabilities: [40] Express (v2) {kind}, MSI 00\n\n"
        )
    };
    let end = |address: &str, class: &str, node: u8| format!("{address} {class} [10de:2330]\n\tNUMA node: {node}\n\n");
    let gpu = "3D controller [0302]: NVIDIA H100";
    let port = "Infiniband controller [0207]: Mellanox X";
    [
        bridge("10:01.0", "11", "Root Port (Slot+)", 0),
        bridge("11:00.0", "12", "Upstream Port", 0),
        bridge("12:00.0", "13", "Downstream Port (Slot+)", 0),
        bridge("12:01.0", "14", "Downstream Port (Slot+)", 0),
        bridge("12:02.0", "15", "Downstream Port (Slot+)", 0),
        bridge("15:00.0", "16", "Upstream Port", 0),
        bridge("16:00.0", "17", "Downstream Port (Slot+)", 0),
        bridge("30:01.0", "31", "Root Port (Slot+)", 0),
        bridge("90:01.0", "91", "Root Port (Slot+)", 1),
        end("13:00.0", gpu, 0),
        end("14:00.0", gpu, 0),
        end("17:00.0", port, 0),
        end("31:00.0", port, 0),
        end("91:00.0", gpu, 1),
    ]
    .concat()
}

/// Classes of all pairs by PCI address; ports of one address once.
fn classes(host: &Hardware) -> BTreeMap<(String, String), Option<PathLabel>> {
    let gpus = host.gpus.iter().enumerate().map(|(at, gpu)| (Device::Gpu(at), gpu.pci));
    let ports = host.nics.iter().enumerate().map(|(at, nic)| (Device::Nic(at), nic.pci));
    let ends: BTreeMap<String, Device> =
        gpus.chain(ports).filter_map(|(device, pci)| Some((host.pci[pci?].address.to_string(), device))).collect();
    let pairs = ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a.0 < b.0).map(|((a, from), (b, to))| ((a.clone(), b.clone()), label(host, *from, *to))).collect()
}

fn only(text: &str) -> Hardware {
    import::hardware(text, "f").unwrap().hosts.remove(0)
}

#[test]
fn hwloc_nccl_lspci_and_nvidia_smi_agree_on_one_machine() {
    let of_hwloc = classes(&only(HWLOC));
    assert_eq!(of_hwloc.len(), 10);
    assert!(of_hwloc.values().all(Option::is_some), "{of_hwloc:?}");
    assert_eq!(classes(&only(NCCL)), of_hwloc);
    assert_eq!(classes(&only(&list())), of_hwloc);
    // A table and a tree together: what was told is what is worked out.
    let both = import::merge(vec![only(HWLOC), only(TABLE)]);
    let labels: Vec<_> = both.told.iter().filter(|told| matches!(told.what, ToldWhat::Label(_))).collect();
    assert_eq!((both.gpus.len(), both.nics.len(), labels.len()), (3, 2, 10));
    for told in labels {
        assert_eq!(Some(&told.what), label(&both, told.from, told.to).map(ToldWhat::Label).as_ref(), "{told:?}");
    }
}

#[test]
fn labels_that_nvidia_smi_printed_are_those_that_its_links_give() {
    let Some(corpus) = super::corpus::folder() else { return };
    let mut compared = 0;
    for path in super::corpus::files(&corpus.join("nvsmi-topo-m")) {
        let Ok(found) = import::read(&path) else { continue };
        for host in &found.hosts {
            for told in &host.told {
                let ToldWhat::Label(said) = told.what else { continue };
                assert_eq!(label(host, told.from, told.to), Some(said), "{}: {told:?}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 800, "{compared}");
}

#[test]
fn files_of_one_machine_type_agree() {
    let Some(corpus) = super::corpus::folder() else { return };
    // By eye: the same model with the same addresses. (NCCL outside and inside a container; one file shortened by hand; one type
    // with two sizes of memory.)
    let pairs = [
        ("nccl-topo-xml/oci-H100-topology.xml", "nccl-topo-xml/oci-H100-topology-kubernetes.xml", 120),
        ("nccl-topo-xml/yccl-topo_mod.xml", "nccl-topo-xml/yccl-topo.xml", 6),
        ("nccl-topo-xml/aws-p4d-24xl-topo.xml", "nccl-topo-xml/aws-p4de-24xl-topo.xml", 66),
    ];
    for (one, other, expected) in pairs {
        let classes = |name: &str| classes(&import::read(&corpus.join(name)).unwrap().hosts[0]);
        let (one_has, other_has) = (classes(one), classes(other));
        let mut compared = 0;
        for (pair, label) in &one_has {
            if let Some(theirs) = other_has.get(pair) {
                assert_eq!(label, theirs, "{pair:?} in {one} and {other}");
                compared += 1;
            }
        }
        assert_eq!(compared, expected, "{one} and {other}");
    }
    // hwloc 1 and hwloc 2 of POWER9 nodes with four V100: the first was written without bridges, so only nodes can be compared.
    let sierra = import::read(&corpus.join("hwloc-xml/flux-sierra2.xml")).unwrap().hosts.remove(0);
    let lassen = import::read(&corpus.join("hwloc-xml/mpibind-coral-lassen.xml")).unwrap().hosts.remove(0);
    assert!(sierra.notes.iter().any(|note| note.text.contains("filtered out")), "{:?}", sierra.notes);
    let across =
        |host: &Hardware| classes(host).into_iter().map(|(pair, label)| (pair, label == Some(PathLabel::Sys))).collect::<BTreeMap<_, _>>();
    assert_eq!((across(&sierra).len(), across(&sierra)), (45, across(&lassen)));
    // Azure's ND A100 v4: what the list has is what the topology has, device by device.
    let list = import::read(&corpus.join("lspci/gpud-lspci-nn-a100.txt")).unwrap().hosts.remove(0);
    let tree = import::read(&corpus.join("nccl-topo-xml/azure-ndv4-topo.xml")).unwrap().hosts.remove(0);
    let both = import::merge(vec![tree, list]);
    assert_eq!((both.gpus.len(), both.nics.len()), (8, 9));
    // AWS's p4d: nvidia-smi's processors and nodes are those of the topology.
    let table = import::read(&corpus.join("nvsmi-topo-m/aws-p4d-8gpu-nv12-hash-prompt.txt")).unwrap().hosts.remove(0);
    let tree = import::read(&corpus.join("nccl-topo-xml/aws-p4d-24xl-topo.xml")).unwrap().hosts.remove(0);
    let near = |host: &Hardware| host.gpus.iter().map(|gpu| (gpu.index, gpu.numa)).collect::<Vec<_>>();
    assert_eq!(near(&table), near(&tree));
    assert_eq!(table.numa, tree.numa);
}
