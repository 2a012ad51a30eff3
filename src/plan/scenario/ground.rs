use crate::topology::Topology;

/// The ranks that scenarios are made for, by host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// ranks of the job, those that take no part included
    pub world: usize,
    /// of each host that takes part, ascending
    pub hosts: Vec<Vec<usize>>,
}

impl Ground {
    /// Hosts as a job has them.
    pub fn of(topology: &Topology) -> Self {
        let mut hosts: Vec<Vec<usize>> = Vec::new();
        for (rank, host) in topology.node_of().into_iter().enumerate() {
            if hosts.len() <= host {
                hosts.resize(host + 1, Vec::new());
            }
            hosts[host].push(rank);
        }
        Self { world: topology.world(), hosts }
    }

    /// These ranks, each set as if it were a host: for what goes across hosts inside one.
    ///
    /// # Errors
    /// A rank that is not there, one in two sets, or an empty set.
    pub fn given(world: usize, hosts: Vec<Vec<usize>>) -> Result<Self, String> {
        let mut all: Vec<usize> = hosts.iter().flatten().copied().collect();
        all.sort_unstable();
        if let Some(rank) = all.iter().find(|&&rank| rank >= world) {
            return Err(format!("rank {rank} is not one of the {world} ranks, 0 to {}", world.saturating_sub(1)));
        }
        if let Some((twice, _)) = all.iter().zip(all.iter().skip(1)).find(|(rank, next)| rank == next) {
            return Err(format!("rank {twice} is in two sets"));
        }
        if hosts.is_empty() || hosts.iter().any(Vec::is_empty) {
            return Err("a set without a rank".to_owned());
        }
        Ok(Self { world, hosts })
    }

    /// The host with the most ranks, the first of them.
    pub(super) fn one(&self) -> &[usize] {
        let most = self.hosts.iter().map(Vec::len).max().unwrap_or(0);
        self.hosts.iter().find(|host| host.len() == most).map_or(&[], Vec::as_slice)
    }

    /// The two hosts with the most ranks, in their order; `None` with one host.
    pub(super) fn two(&self) -> Option<(&[usize], &[usize])> {
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        order.sort_by_key(|&host| (std::cmp::Reverse(self.hosts[host].len()), host));
        order.truncate(2);
        order.sort_unstable();
        match order[..] {
            [first, second] => Some((&self.hosts[first], &self.hosts[second])),
            _ => None,
        }
    }

    /// Number of the host of each rank of the job; ranks that take no part have one each of their own.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.world).map(|rank| self.hosts.len() + rank).collect();
        for (number, host) in self.hosts.iter().enumerate() {
            for &rank in host {
                numbers[rank] = number;
            }
        }
        numbers
    }
}
