//! What is told of the paths that bytes took where the library that moved them says it: a way through the host's memory is never silent.

use std::collections::BTreeSet;

use crate::sample::{MoverKind, Sample, Status};
use crate::topology::{PathClass, Topology};

/// A way that people should know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detour {
    /// on one host, through its memory
    Shared,
    /// on one host, through its network devices
    Network,
    /// across hosts, through their memory
    Staged,
    /// the library was not asked, or did not say
    Untold,
}

impl Detour {
    fn of(via: &str, path: PathClass) -> Option<Self> {
        match path {
            PathClass::InterNode => (via.contains("NET/") && !via.contains("GDRDMA")).then_some(Self::Staged),
            _ if via.contains("SHM") => Some(Self::Shared),
            _ if via.contains("NET/") => Some(Self::Network),
            _ => None,
        }
    }

    fn tell(self, sample: &Sample, via: &str, topology: &Topology) -> String {
        let Sample { from, to, .. } = *sample;
        let host = topology.ranks.get(from).map_or("?", |placement| placement.host.as_str());
        match self {
            Self::Shared => format!(
                "{from}→{to}: NCCL goes through the memory of {host} ({via}), not from GPU to GPU; toposcope discover tells what lies between \
                 them, NCCL_P2P_LEVEL=SYS allows it at any distance"
            ),
            Self::Network => format!(
                "{from}→{to}: NCCL goes over the network ({via}), though both are on {host}; see NCCL_P2P_DISABLE, NCCL_SHM_DISABLE"
            ),
            Self::Staged => {
                format!(
                    "{from}→{to}: NCCL's network stages through the hosts' memory ({via}, no GPUDirect RDMA); see NCCL_NET_GDR_LEVEL and nvidia-peermem"
                )
            }
            Self::Untold => {
                "NCCL did not say which path it takes: it does where NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE are left unset"
                    .to_owned()
            }
        }
    }
}

/// What was told already: one pair stands for all of its kind.
#[derive(Debug, Default)]
pub(super) struct Ways(BTreeSet<Detour>);

impl Ways {
    /// What to tell of these samples that was not told before.
    pub(super) fn news(&mut self, mover: MoverKind, samples: &[Sample], topology: &Topology) -> Vec<String> {
        let mut told = Vec::new();
        for sample in samples.iter().filter(|sample| sample.from != sample.to && sample.status == Status::Ok) {
            let detour = match &sample.via {
                Some(via) => Detour::of(via, sample.path),
                None => (mover == MoverKind::Nccl).then_some(Detour::Untold),
            };
            if let Some(detour) = detour.filter(|&detour| self.0.insert(detour)) {
                told.push(detour.tell(sample, sample.via.as_deref().unwrap_or_default(), topology));
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;

    fn sample(from: usize, to: usize, path: PathClass, via: Option<&str>) -> Sample {
        Sample { via: via.map(str::to_owned), status: Status::Ok, ..Sample::blank(Pattern::Peer, from, to, 8, path) }
    }

    #[test]
    fn a_way_through_host_memory_is_told_once_and_a_direct_one_never() {
        use PathClass::{InterNode, IntraNode};
        let mut ways = Ways::default();
        let mut news = |from, to, path, via| ways.news(MoverKind::Nccl, &[sample(from, to, path, via)], &Topology::default());
        assert!(news(0, 1, IntraNode, Some("P2P/CUMEM")).is_empty());
        assert!(news(0, 4, InterNode, Some("NET/IB/0/GDRDMA + NET/IB/1/GDRDMA")).is_empty());
        assert!(news(1, 2, IntraNode, Some("SHM/direct/direct"))[0].starts_with("1→2: NCCL goes through the memory of"));
        assert!(news(2, 1, IntraNode, Some("SHM/direct/direct")).is_empty(), "told");
        assert!(news(2, 3, IntraNode, Some("NET/Socket/0"))[0].contains("over the network (NET/Socket/0)"));
        assert!(news(0, 5, InterNode, Some("NET/Socket/0"))[0].contains("no GPUDirect RDMA"));
        assert!(news(0, 5, InterNode, None)[0].contains("did not say"));
    }

    #[test]
    fn movers_that_never_tell_and_local_copies_are_left_alone() {
        let mut ways = Ways::default();
        let samples = [sample(0, 1, PathClass::IntraNode, None), sample(1, 1, PathClass::Local, None)];
        assert!(ways.news(MoverKind::NcclPut, &samples, &Topology::default()).is_empty());
        assert!(ways.news(MoverKind::Nccl, &samples[1..], &Topology::default()).is_empty());
    }
}
