//! Every file of the corpus (`TOPOSCOPE_CORPUS`) against counts that were verified by eye, or against why it is refused.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toposcope::import;
use toposcope::topology::hardware::PciKind;

/// Where the corpus lies, if it is there.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("TOPOSCOPE_CORPUS").map(PathBuf::from).filter(|folder| folder.is_dir())
}

/// The files of a folder in order of their names; none if there is no such folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Of all hosts of a file: GPUs, ports of network devices, PCI devices and bridges, GPU links seen from both ends, told labels and
/// statuses of peer access. `Err` has words of the refusal.
type Expected = Result<[usize; 6], &'static str>;

#[allow(clippy::unnecessary_wraps, reason = "the other entries are refusals")]
const fn read(hosts: usize, gpus: usize, nics: usize, pci: usize, links: usize, told: usize) -> Expected {
    Ok([hosts, gpus, nics, pci, links, told])
}

const TABLE: [(&str, Expected); 92] = [
    ("hwloc-xml/flux-sierra2.xml", read(1, 4, 6, 13, 0, 0)),
    ("hwloc-xml/hwloc-24em64t-2n6c2t-pci.xml", read(1, 3, 4, 15, 0, 0)),
    ("hwloc-xml/hwloc-32em64t-2n8c+dax+nvme+mic+dimms.xml", read(1, 0, 3, 136, 0, 0)),
    // Seventeen, two of them at one address.
    ("hwloc-xml/hwloc-32em64t-2n8c2t-pci-wholeio.xml", read(1, 4, 3, 17, 0, 0)),
    ("hwloc-xml/hwloc-40intel64-2g2n4c+pcilocality.xml", read(1, 0, 5, 37, 0, 0)),
    ("hwloc-xml/hwloc-64intel64-heteromem.xml", read(1, 0, 0, 0, 0, 0)),
    ("hwloc-xml/hwloc-96em64t-4n4d3ca2co-pci.xml", read(1, 0, 8, 26, 0, 0)),
    ("hwloc-xml/hwloc-cxlmem+dax.v2.xml", read(1, 0, 1, 17, 0, 0)),
    ("hwloc-xml/hwloc-irregulargroups-disallowed.xml", read(1, 2, 2, 17, 0, 0)),
    ("hwloc-xml/hwloc-nvidiaDGX2.xml", read(1, 16, 0, 84, 96, 0)),
    ("hwloc-xml/local-vm-hwloc2.9.xml", read(1, 0, 1, 2, 0, 0)),
    ("hwloc-xml/mpibind-arm64-ulna-hwloc1.xml", read(1, 2, 4, 18, 0, 0)),
    ("hwloc-xml/mpibind-coral-lassen.xml", read(1, 4, 6, 28, 0, 0)),
    ("hwloc-xml/mpibind-cts1-pascal.xml", read(1, 2, 3, 14, 0, 0)),
    ("hwloc-xml/mpibind-epyc-corona.xml", read(1, 4, 3, 30, 0, 0)),
    ("hwloc-xml/mpibind-g4dnmetal.xml", read(1, 8, 2, 31, 0, 0)),
    ("hwloc-xml/nixl-g6.48xl-topo.xml", read(1, 8, 2, 45, 0, 0)),
    ("hwloc-xml/nixl-p3dn.24xl-topo.xml", read(1, 8, 2, 15, 0, 0)),
    ("hwloc-xml/nixl-p5.48xl-topo.xml", read(1, 8, 64, 179, 0, 0)),
    ("hwloc-xml/nixl-p6-b200.48xl-topo.xml", read(1, 8, 18, 79, 0, 0)),
    ("ib/gpud-ibstat.47.0.a100.all.active.0.txt", read(1, 0, 9, 0, 0, 0)),
    ("ib/gpud-ibstat.47.0.h100.all.active.0.txt", read(1, 0, 12, 0, 0, 0)),
    ("ib/gpud-ibstat.47.0.h100.some.down.0.txt", read(1, 0, 12, 0, 0, 0)),
    ("ib/gpud-ibstat.47.0.h100.some.down.1.txt", read(1, 0, 12, 0, 0, 0)),
    ("ib/infiniband_exporter-perfquery.txt", Err("perfquery")),
    ("ib/s-nccl1591-ibstat-1port-400.txt", read(1, 0, 1, 0, 0, 0)),
    ("ib/s-nccltests191-ib_write_bw-gbits-bond.txt", Err("perftest")),
    ("ib/s-nccltests242-ibdev2netdev-4up.txt", read(1, 0, 4, 0, 0, 0)),
    ("ib/s-ompi6888-ib_read_bw-edr-1size.txt", Err("perftest")),
    ("ib/superbench-ib_loopback_8M.log", Err("perftest")),
    ("ib/superbench-ibnetdiscover.txt", Err("ibnetdiscover")),
    ("lspci/gcn-grep-speed-gpu.txt", read(1, 0, 0, 1, 0, 0)),
    ("lspci/gpud-lspci-nn-a10.txt", read(1, 1, 1, 20, 0, 0)),
    ("lspci/gpud-lspci-nn-a100.txt", read(1, 8, 9, 31, 0, 0)),
    ("lspci/gpud-lspci-vvv.txt", read(1, 8, 14, 517, 0, 0)),
    ("lspci/mi50-4gpu-lnksta-gen1-x8-grep.txt", read(1, 0, 0, 4, 0, 0)),
    ("lspci/s-nvbandwidth53-rlxdord-grep.txt", read(1, 3, 0, 4, 0, 0)),
    ("lspci/z690-rootport-gen3-x8-and-idle-gpu.txt", Err("the device's address above the state of its link")),
    ("nccl-topo-xml/aws-p4d-24xl-topo.xml", read(1, 8, 4, 16, 0, 0)),
    ("nccl-topo-xml/aws-p4de-24xl-topo.xml", read(1, 8, 4, 16, 0, 0)),
    ("nccl-topo-xml/azure-nc48v4-topo.xml", read(1, 2, 1, 2, 24, 0)),
    ("nccl-topo-xml/azure-ncv4-topo.xml", read(1, 4, 1, 4, 48, 0)),
    ("nccl-topo-xml/azure-ndv4-topo.xml", read(1, 8, 8, 20, 0, 0)),
    ("nccl-topo-xml/nccl-pr-ndv5-topo-new.xml", read(1, 8, 8, 24, 0, 0)),
    ("nccl-topo-xml/oci-H100-topology-kubernetes.xml", read(1, 8, 16, 40, 144, 0)),
    ("nccl-topo-xml/oci-H100-topology.xml", read(1, 8, 16, 40, 144, 0)),
    ("nccl-topo-xml/oci-topo-flattened.xml", read(1, 8, 8, 20, 0, 0)),
    ("nccl-topo-xml/panlichen-topo.xml", read(1, 8, 1, 11, 0, 0)),
    ("nccl-topo-xml/rccl-topo_16p1h.xml", read(1, 16, 8, 52, 112, 0)),
    ("nccl-topo-xml/rccl-topo_4p3l_ia.xml", read(1, 8, 1, 19, 24, 0)),
    ("nccl-topo-xml/rccl-topo_8p1h_5.xml", read(1, 8, 8, 38, 52, 0)),
    ("nccl-topo-xml/rccl-topo_8p6l_6nic.xml", read(1, 8, 6, 22, 48, 0)),
    ("nccl-topo-xml/rccl-topo_8p_90a_1.xml", read(1, 8, 1, 8, 24, 0)),
    ("nccl-topo-xml/rccl-topo_8p_940vm.xml", read(1, 8, 8, 16, 56, 0)),
    ("nccl-topo-xml/rccl-topo_8p_pcie_2nic.xml", read(1, 8, 2, 20, 0, 0)),
    ("nccl-topo-xml/rccl-topo_8p_rome_vm1.xml", read(1, 8, 1, 8, 24, 0)),
    ("nccl-topo-xml/rccl-topo_8p_ts1_n4_2.xml", read(1, 8, 3, 18, 16, 0)),
    ("nccl-topo-xml/rwkv-topo.xml", read(1, 2, 2, 3, 0, 0)),
    ("nccl-topo-xml/s-nccl1453-h100-vm-x0-width-2.5GT.xml", read(1, 1, 1, 3, 18, 0)),
    ("nccl-topo-xml/yccl-topo.xml", read(1, 4, 10, 6, 0, 0)),
    ("nccl-topo-xml/yccl-topo_l20.xml", read(1, 16, 8, 36, 0, 0)),
    ("nccl-topo-xml/yccl-topo_mod.xml", read(1, 2, 10, 4, 0, 0)),
    ("nvsmi-nvlink/a100-8gpu-12links-status.txt", read(1, 8, 0, 0, 96, 0)),
    ("nvsmi-nvlink/a100-pcie-2gpu-all-inactive-message.txt", read(1, 2, 0, 0, 0, 0)),
    ("nvsmi-nvlink/good-status.txt", read(1, 1, 0, 0, 12, 0)),
    ("nvsmi-nvlink/h800-8links-status.txt", read(1, 3, 0, 0, 24, 0)),
    ("nvsmi-nvlink/v100-bad-inactive.txt", read(1, 1, 0, 0, 0, 0)),
    ("nvsmi-topo-m/4gpu-4nic-pcie-2socket-prompt.txt", read(1, 4, 4, 0, 0, 28)),
    ("nvsmi-topo-m/a100-8gpu-nv12-narrow-columns.txt", read(1, 8, 0, 0, 96, 28)),
    ("nvsmi-topo-m/a100-pcie-2gpu-node-no-legend.txt", read(1, 2, 0, 0, 0, 1)),
    // The list of links is cut after five of the twelve that the table tells.
    ("nvsmi-topo-m/a100-sxm4-4gpu-section-markers-then-nvlink.txt", read(1, 4, 1, 0, 48, 10)),
    ("nvsmi-topo-m/aws-g5-12xl-4gpu-node.txt", read(1, 4, 0, 0, 0, 6)),
    ("nvsmi-topo-m/aws-p4d-8gpu-nv12-hash-prompt.txt", read(1, 8, 0, 0, 96, 28)),
    ("nvsmi-topo-m/desktop-2gpu-nv2-numa-na.txt", read(1, 2, 0, 0, 4, 1)),
    // A cube mesh: six links a GPU.
    ("nvsmi-topo-m/dgx1v-v100-mlx5-old-cpuaffinity.txt", read(1, 8, 4, 0, 48, 66)),
    ("nvsmi-topo-m/h100-1nic-mlx5_0-indented.txt", read(1, 8, 1, 0, 144, 36)),
    ("nvsmi-topo-m/h100-8gpu-nv18-smt.txt", read(1, 8, 0, 0, 144, 28)),
    ("nvsmi-topo-m/h100-pcie-1gpu-1nic-kvm.txt", read(1, 1, 1, 0, 0, 1)),
    ("nvsmi-topo-m/h200-bnxt-mlx5-10nic-ansi-underline.txt", read(1, 8, 10, 0, 144, 153)),
    ("nvsmi-topo-m/rtx4090d-2gpu-2nic-collect-script.txt", read(1, 2, 2, 0, 0, 6)),
    ("nvsmi-topo-m/s-club3090-1140-5090-2gpu-phb.txt", read(1, 2, 0, 0, 0, 1)),
    ("nvsmi-topo-m/s-k8stest371-gb200-4gpu.txt", read(1, 4, 0, 0, 72, 6)),
    ("nvsmi-topo-m/s-nccl1130-8gpu-hand-trimmed-NUMA-column.txt", read(1, 8, 0, 0, 0, 28)),
    ("nvsmi-topo-m/s-nccl1405-8gpu-8nic-all-pix-per-socket-shuffled-nics.txt", read(1, 8, 8, 0, 0, 120)),
    ("nvsmi-topo-m/s-nccl1435-a100-8gpu-6nic-gpu-rows-only.txt", read(1, 8, 6, 0, 96, 76)),
    ("nvsmi-topo-m/s-nccl1530-4090-8gpu-all-sys-4numa.txt", read(1, 8, 2, 0, 0, 45)),
    ("nvsmi-topo-m/s-nccl428-t4-4gpu-old-format.txt", read(1, 4, 0, 0, 0, 6)),
    // Seven rows of eighteen, without the header.
    ("nvsmi-topo-m/s-ucx10164-a100-glued-columns-tail-rows.txt", read(1, 8, 10, 0, 96, 98)),
    ("nvsmi-topo-m/two-hosts-8gpu-sys-then-nv18-fenced.txt", read(2, 16, 0, 0, 144, 56)),
    ("nvsmi-topo-m/v100-8gpu-2nic-mixed-tabs.txt", read(1, 8, 2, 0, 48, 45)),
    ("nvsmi-topo-p2p/h100-8gpu-p2p-r-ok.txt", read(1, 8, 0, 0, 0, 56)),
    ("nvsmi-topo-p2p/l4-2gpu-p2p-r-cns.txt", read(1, 2, 0, 0, 0, 2)),
];

/// What a file gives, as it stands in the table, and in words.
fn found(path: &Path) -> (Result<[usize; 6], String>, String) {
    match import::read(path) {
        Ok(found) => {
            let sum = |of: fn(&toposcope::topology::Hardware) -> usize| found.hosts.iter().map(of).sum::<usize>();
            let bridges =
                |host: &toposcope::topology::Hardware| host.pci.iter().filter(|device| device.kind != PciKind::HostBridge).count();
            let counts = [
                found.hosts.len(),
                sum(|host| host.gpus.len()),
                sum(|host| host.nics.len()),
                found.hosts.iter().map(bridges).sum(),
                sum(|host| host.gpu_links.len()),
                sum(|host| host.told.len()),
            ];
            let [hosts, gpus, nics, pci, links, told] = counts;
            let mut words = format!("{hosts} | {gpus} | {nics} | {pci} | {links} | {told} |");
            let remarks = sum(|host| host.notes.len());
            write!(words, " {remarks} remarked, {} left out, {} lacking", found.skipped.len(), found.lacks.len()).unwrap();
            (Ok(counts), words)
        }
        Err(error) => {
            let words = format!("refused | | | | | | {}: {}", error.value, error.advice);
            (Err(error.to_string()), words)
        }
    }
}

#[test]
fn every_file_of_these_kinds_is_read_or_refused_as_a_person_would() {
    let Some(corpus) = folder() else { return };
    let mut wrong = Vec::new();
    let mut table = String::from("| file | hosts | GPUs | ports | PCI | GPU links | told | |\n|---|---|---|---|---|---|---|---|\n");
    let kinds = ["hwloc-xml", "ib", "lspci", "nccl-topo-xml", "nvsmi-nvlink", "nvsmi-topo-m", "nvsmi-topo-p2p"];
    for path in kinds.iter().flat_map(|kind| files(&corpus.join(kind))) {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let (counts, words) = found(&path);
        writeln!(table, "| {name} | {words} |").unwrap();
        match (TABLE.iter().find(|(known, _)| *known == name).map(|(_, expected)| expected), &counts) {
            (Some(Ok(expected)), Ok(counts)) if expected == counts => {}
            (Some(Err(reason)), Err(error)) if error.contains(reason) => {}
            (None, _) => {}
            (Some(expected), counts) => wrong.push(format!("{name}: {counts:?}, expected {expected:?}")),
        }
    }
    for (name, _) in TABLE {
        let there = corpus.join(name).is_file();
        if !there {
            wrong.push(format!("{name} is not there"));
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What a log's ranks print of the topology, where it was asked for.
#[test]
fn logs_with_a_topology_are_read_and_others_refused() {
    let Some(corpus) = folder() else { return };
    for path in files(&corpus.join("nccl-debug-log")) {
        let name = path.display().to_string();
        match import::read(&path) {
            // A tree that is cut: three switches, and the first GPU.
            Ok(found) if name.contains("maxWidth") => {
                let host = &found.hosts[0];
                assert_eq!(
                    (found.hosts.len(), host.host.as_str(), host.pci.len(), host.gpus.len(), host.numa.len()),
                    (1, "node2", 4, 1, 1)
                );
            }
            Ok(_) => panic!("{name} is read"),
            Err(error) => assert!(error.to_string().contains("NCCL_DEBUG=INFO") && !name.contains("maxWidth"), "{name}: {error}"),
        }
    }
}

#[test]
fn everything_else_is_refused_with_what_it_is() {
    let Some(corpus) = folder() else { return };
    let kinds = [
        ("gpcnet", "GPCNeT"),
        ("mpigraph", "mpiGraph"),
        ("nccl-graph-xml", "NCCL graph XML"),
        ("nccl-tests", "nccl-tests"),
        ("nvbandwidth", "nvbandwidth"),
        ("osu", "OSU"),
        ("p2pbandwidthlatency", "p2pBandwidthLatencyTest"),
        ("rocm-bandwidth-test", "rocm_bandwidth_test"),
        ("rocm-smi-topo", "amd-smi"),
        ("sysfs-tree", "--sysfs-root"),
        ("transferbench", "TransferBench"),
    ];
    for (kind, who) in kinds {
        for path in files(&corpus.join(kind)) {
            let told = import::read(&path).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(who), "{}: {told}", path.display());
        }
    }
}
