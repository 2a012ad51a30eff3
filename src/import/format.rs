//! The formats that are read, and those that are recognised only to say what they are.

/// A tool's output that tells a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    TopoMatrix,
    PeerMatrix,
    Nvlink,
    NcclTopology,
    NcclLog,
    Hwloc,
    Lspci,
    LspciTree,
    Ibstat,
    Ibdev2netdev,
}

impl Format {
    /// All, as help and refusals list them.
    pub const ALL: [Self; 10] = [
        Self::TopoMatrix,
        Self::PeerMatrix,
        Self::Nvlink,
        Self::NcclTopology,
        Self::NcclLog,
        Self::Hwloc,
        Self::Lspci,
        Self::LspciTree,
        Self::Ibstat,
        Self::Ibdev2netdev,
    ];

    /// What a person calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TopoMatrix => "nvidia-smi topo -m",
            Self::PeerMatrix => "nvidia-smi topo -p2p",
            Self::Nvlink => "nvidia-smi nvlink -s",
            Self::NcclTopology => "NCCL topology XML",
            Self::NcclLog => "NCCL_DEBUG=INFO log",
            Self::Hwloc => "hwloc XML",
            Self::Lspci => "lspci -nnvv",
            Self::LspciTree => "lspci -tv",
            Self::Ibstat => "ibstat",
            Self::Ibdev2netdev => "ibdev2netdev",
        }
    }
}

/// `nvidia-smi topo -m, ... and ibdev2netdev`.
pub(super) fn known() -> String {
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
    names.join(", ")
}

pub(super) const MEASUREMENT: &str = "a measurement, not a topology: `toposcope open` and `import` read it";
/// Of a tool whose numbers belong to no pair.
const TOGETHER: &str = "a measurement of many transfers at the same time, by percentiles: it tells no pair of ranks";

/// What else there is: marks of a line, all of which it has, and what wrote it and what that is.
const OTHERS: [(&[&str], &str, &str); 37] = [
    (&["\"nvbandwidth\""], "nvbandwidth", MEASUREMENT),
    (&["nvbandwidth Version"], "nvbandwidth", MEASUREMENT),
    (&["memcpy", "GPU(row)"], "nvbandwidth", MEASUREMENT),
    (&["memcpy", "CPU(row)"], "nvbandwidth", MEASUREMENT),
    (&["Running ", "memcpy"], "nvbandwidth", MEASUREMENT),
    (&["P2P Connectivity Matrix"], "p2pBandwidthLatencyTest", MEASUREMENT),
    (&["D\\D"], "p2pBandwidthLatencyTest", MEASUREMENT),
    (&["# nThread"], "nccl-tests", MEASUREMENT),
    (&["busbw"], "nccl-tests", MEASUREMENT),
    (&["# OSU "], "OSU micro-benchmarks", MEASUREMENT),
    (&["# Benchmarking "], "Intel MPI benchmarks", MEASUREMENT),
    (&["mpiGraph"], "mpiGraph", MEASUREMENT),
    (&["BW average["], "perftest", MEASUREMENT),
    (&["t_avg[usec]"], "perftest", MEASUREMENT),
    (&["\"test_info\""], "perftest", MEASUREMENT),
    (&["_percentile_lat,", "overall_bw"], "ucx_perftest", MEASUREMENT),
    (&["(usec)", "bandwidth (MB/s)", "message rate"], "ucx_perftest", MEASUREMENT),
    (&["TransferBench v"], "TransferBench", MEASUREMENT),
    (&["p2p", "GB/s", "Benchmark"], "TransferBench", MEASUREMENT),
    (&["Bytes Per Direct"], "TransferBench", MEASUREMENT),
    (&["copy peak bandwidth"], "rocm_bandwidth_test", MEASUREMENT),
    (&["RocmBandwidthTest"], "rocm_bandwidth_test", MEASUREMENT),
    (&["Network Tests v"], "GPCNeT", TOGETHER),
    (&["NetworkLoad Tests"], "GPCNeT", TOGETHER),
    (&["extended counters"], "perfquery", "error and traffic counters, not a topology"),
    (&["Port counters:"], "perfquery", "error and traffic counters, not a topology"),
    (&["switchguid="], "ibnetdiscover", "a fabric's switches and cables, not a host's topology"),
    (
        &["NCCL INFO"],
        "NCCL_DEBUG=INFO",
        "a log without a topology: NCCL_DEBUG_SUBSYS=INIT,GRAPH prints it, and NCCL_TOPO_DUMP_FILE=topo.xml writes more of it to a file",
    ),
    (&["ROCm System Management Interface"], "rocm-smi", "read from hwloc's or RCCL's XML instead"),
    (&["ACCESS TABLE"], "amd-smi topology", "read from hwloc's or RCCL's XML instead"),
    (&["LINK METRIC TABLE"], "amd-smi xgmi", "read from hwloc's or RCCL's XML instead"),
    (&["NVIDIA-SMI", "Driver Version"], "nvidia-smi", "a list of GPUs and processes; `nvidia-smi topo -m` tells the topology"),
    (&["Package L#"], "lstopo's drawing", "for eyes; `lstopo --of xml FILE` writes what is read"),
    (&["Infiniband device '"], "ibstatus", "told by `ibstat`, which is read"),
    (&["hca_id:"], "ibv_devinfo", "told by `ibstat`, which is read"),
    (&["CPU op-mode(s)"], "lscpu", "processors alone; `lstopo --of xml` tells all of the machine"),
    (&["bandwidth", "latency", "measurement_id"], "nvloom", MEASUREMENT),
];

/// What a text that tells no topology is: who wrote it, and what it is.
pub(super) fn other(text: &str) -> Option<(&'static str, &'static str)> {
    let mut lines = text.lines();
    lines.find_map(|line| OTHERS.iter().find(|(marks, ..)| marks.iter().all(|mark| line.contains(mark)))).map(|&(_, who, what)| (who, what))
}

/// The same of XML, by the name of its root.
pub(super) fn other_xml(root: &str) -> Option<(&'static str, &'static str)> {
    match root {
        "graphs" => Some(("NCCL graph XML", "the rings and trees that NCCL chose; NCCL_TOPO_DUMP_FILE=topo.xml writes the topology")),
        "nvidia_smi_log" => Some(("nvidia-smi -q -x", "a list of GPUs; `nvidia-smi topo -m` tells the topology")),
        "html" | "!DOCTYPE" => Some(("a web page", "save the text that it shows")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tools_are_told_by_their_marks() {
        for (text, who) in [
            ("nvbandwidth Version: v0.8\n", "nvbandwidth"),
            ("a\n# nThread 1 nGpus 1", "nccl-tests"),
            ("node:1:2 [0] NCCL INFO Bootstrap", "NCCL_DEBUG=INFO"),
            ("switchguid=0x1(1)", "ibnetdiscover"),
        ] {
            assert_eq!(other(text).map(|other| other.0), Some(who), "{text}");
        }
        assert_eq!(other("GPU0 GPU1"), None);
        assert_eq!(other_xml("graphs").map(|other| other.0), Some("NCCL graph XML"));
    }
}
