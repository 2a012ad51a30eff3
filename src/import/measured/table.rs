//! What a tool's output tells: tables of samples, each with what its numbers mean.

use crate::import::Skips;
use crate::sample::{Memory, Sample};
use crate::session::Collective;

/// A tool whose measurements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    Nvbandwidth,
    P2pBandwidthLatencyTest,
    NcclTests,
    /// raw samples of `DeepSpeed`'s affine-transfer calibration
    DeepSpeed,
    MpiGraph,
    Osu,
    Imb,
    Perftest,
    UcxPerftest,
    TransferBench,
    RocmBandwidthTest,
    Nvloom,
    /// a calibration or a session of this program
    Toposcope,
}

impl Tool {
    /// Of others: what is read besides this program's own files.
    pub const ALL: [Self; 12] = [
        Self::Nvbandwidth,
        Self::P2pBandwidthLatencyTest,
        Self::NcclTests,
        Self::DeepSpeed,
        Self::MpiGraph,
        Self::Osu,
        Self::Imb,
        Self::Perftest,
        Self::UcxPerftest,
        Self::TransferBench,
        Self::RocmBandwidthTest,
        Self::Nvloom,
    ];

    /// What a person calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvbandwidth => "nvbandwidth",
            Self::P2pBandwidthLatencyTest => "p2pBandwidthLatencyTest",
            Self::NcclTests => "nccl-tests",
            Self::DeepSpeed => "DeepSpeed raw samples",
            Self::MpiGraph => "mpiGraph",
            Self::Osu => "OSU micro-benchmarks",
            Self::Imb => "Intel MPI benchmarks",
            Self::Perftest => "perftest",
            Self::UcxPerftest => "ucx_perftest",
            Self::TransferBench => "TransferBench",
            Self::RocmBandwidthTest => "rocm_bandwidth_test",
            Self::Nvloom => "nvloom",
            Self::Toposcope => "toposcope",
        }
    }
}

/// Where the sizes of a table's samples are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeFrom {
    /// the output says it
    Told,
    /// the output does not say it: the tool's default, or what only stands for one
    Default,
}

/// Who sends or receives: a rank of the session that a table becomes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct End {
    /// as the tool names it, cleaned: `GPU0`, `node3:1`, `CPU 0`
    pub label: String,
    /// its host, where the output tells it
    pub host: Option<String>,
    /// number of its GPU on its host, if it is one
    pub gpu: Option<u32>,
    /// PCI address of that GPU as the output has it, if it does
    pub pci: Option<String>,
    /// model of that GPU as the output has it, if it does
    pub model: Option<String>,
}

/// One test of a tool: a matrix, or the sizes of one pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub tool: Tool,
    /// as the tool calls the test: `device_to_device_memcpy_write_ce`, `Bidirectional P2P=Enabled`, `osu_bw`
    pub test: String,
    /// of the tool, where the output tells it
    pub version: Option<String>,
    /// of the file, from 1; where it begins
    pub line: usize,
    /// of the numbers as printed: `GB/s (1e9 bytes)`, `MB/s (2^20 bytes)`, `µs`
    pub unit: &'static str,
    /// who sends, as it was understood: `row sends`, `column sends; the heading's arrow points the other way`
    pub orientation: &'static str,
    pub size_from: SizeFrom,
    pub memory: Memory,
    /// who takes part; `from`, `to`, `root` and `peers` of the samples count in it
    pub ends: Vec<End>,
    /// one of each number: one message of `bytes` in `seconds`, so that `bytes / seconds` is the printed rate of that direction; what the
    /// tool left out or could not measure is waived with the reason
    pub samples: Vec<Sample>,
    /// what many ranks did together, which is of no pair and in no sample
    pub collectives: Vec<Collective>,
    /// what a reader of the numbers should know: `mean of both directions`, `bus bandwidth is not that of a link`; may be empty
    pub notes: Vec<String>,
}

impl End {
    /// Bytes of memory, about.
    pub(super) fn weight(&self) -> usize {
        let words = [Some(&self.label), self.host.as_ref(), self.pci.as_ref(), self.model.as_ref()];
        size_of::<Self>() + words.into_iter().flatten().map(|word| word.len() + 16).sum::<usize>()
    }
}

impl Table {
    /// Bytes of memory of a table and its ends, about, without its samples.
    pub(super) fn weight(&self) -> usize {
        let notes = self.notes.iter().map(|note| note.len() + 32).sum::<usize>();
        size_of::<Self>() + self.test.len() + notes + self.ends.iter().map(End::weight).sum::<usize>()
    }

    /// Add the table to those of its file, if there is room.
    pub(super) fn keep(self, tables: &mut Vec<Self>, skips: &mut Skips) {
        if skips.takes(self.line, self.weight()) {
            tables.push(self);
        }
    }

    /// Add a sample that stands in a line, if there is room.
    pub(super) fn put(&mut self, sample: Sample, line: usize, skips: &mut Skips) {
        if skips.takes(line, weight(&sample)) {
            self.samples.push(sample);
        }
    }
}

/// Bytes of memory of a sample, about.
pub(super) fn weight(sample: &Sample) -> usize {
    fan(sample.peers.len()) + sample.reason.as_ref().map_or(0, |reason| reason.len() + 16)
}

/// The same of a sample with so many peers.
pub(super) const fn fan(peers: usize) -> usize {
    size_of::<Sample>().saturating_add(peers.saturating_mul(size_of::<usize>()))
}
