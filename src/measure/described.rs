use std::sync::Arc;

use crate::fabric::{self, Fabric};
use crate::sweep::{Knowledge, Load};

/// A described fabric as knowledge of who disturbs whom: probes share a round when their routes have no resource in common that
/// they could saturate together.
#[derive(Debug, Clone)]
pub struct Described {
    fabric: Arc<Fabric>,
    /// ranks of the fabric by their numbers in the group that is measured; empty for the same
    group: Vec<usize>,
}

impl Described {
    /// What this fabric tells of a job whose ranks are its own, or a group of them.
    pub const fn new(fabric: Arc<Fabric>, group: Vec<usize>) -> Self {
        Self { fabric, group }
    }

    fn rank(&self, number: usize) -> Option<usize> {
        let rank = if self.group.is_empty() { number } else { *self.group.get(number)? };
        (rank < self.fabric.world()).then_some(rank)
    }
}

impl Knowledge for Described {
    fn begin(&self) -> Box<dyn Load + '_> {
        Box::new(DescribedLoad { of: self, load: self.fabric.load() })
    }

    fn expected(&self, from: usize, to: usize, bytes: u64) -> Option<f64> {
        Some(self.fabric.truth(self.rank(from)?, self.rank(to)?).seconds(bytes))
    }
}

struct DescribedLoad<'a> {
    of: &'a Described,
    load: fabric::Load<'a>,
}

impl Load for DescribedLoad<'_> {
    fn add(&mut self, flows: &[(usize, usize)]) -> bool {
        let known: Option<Vec<(usize, usize)>> = flows.iter().map(|&(from, to)| Some((self.of.rank(from)?, self.of.rank(to)?))).collect();
        known.is_some_and(|flows| self.load.add_together(&flows).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts of two ranks with an adapter each, full duplex, and 0.8 of the rate within a host while both ways are used.
    const HOSTS: &str = "
about = \"two hosts\"
[hosts]
count = 2
ranks = 2
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.intra_node]
alpha = \"10us\"
rate = \"10GB/s\"
duplex = 0.8
[path.inter_node]
alpha = \"20us\"
rate = \"5GB/s\"
[[shared]]
name = \"adapter\"
per = \"host\"
direction = \"each\"
rate = \"6GB/s\"
";

    #[test]
    fn routes_decide_and_a_pair_may_hinder_itself() {
        let fabric = Arc::new(Fabric::parse(HOSTS, "test").unwrap());
        let taken = |group: &[usize], probes: &[&[(usize, usize)]]| -> Vec<bool> {
            let described = Described::new(Arc::clone(&fabric), group.to_vec());
            let mut load = described.begin();
            probes.iter().map(|flows| load.add(flows)).collect()
        };
        assert_eq!(taken(&[], &[&[(0, 1)], &[(2, 3)]]), [true, true]);
        assert_eq!(taken(&[], &[&[(0, 2)], &[(1, 3)], &[(3, 1)]]), [true, false, true], "the adapter, one way");
        assert_eq!(taken(&[], &[&[(0, 2), (2, 0)], &[(1, 3)], &[(3, 1)]]), [true, false, false], "both ways");
        assert_eq!(taken(&[], &[&[(1, 3)], &[(0, 2), (2, 0)]]), [true, false]);
        assert_eq!(taken(&[], &[&[(0, 1), (1, 0)], &[(2, 3), (3, 2)]]), [true, true], "a duplex pair and its own ratio");
        assert_eq!(taken(&[2, 0], &[&[(0, 1)], &[(1, 0)]]), [true, true], "numbers of the group");
        assert_eq!(taken(&[2, 0], &[&[(0, 2)]]), [false], "nobody the fabric knows");
    }
}
