//! Where an engine's ranks sit now, and where they were started.

use super::{Cores, Decided, Sight, decide};
use crate::topology::{Bound, CudaDevice, Topology};
use crate::transport::{Absent, Setup, TransportError};

/// Who is bound to what, as rank 0 keeps it for its engine.
#[derive(Debug, Default)]
pub struct Seats {
    /// as the ranks were started; empty while they have not moved
    home: Vec<Bound>,
    /// as they are bound to GPUs; empty while they are not
    now: Vec<Bound>,
    /// those that were to be bound and have no GPU
    absent: Vec<Absent>,
}

impl Seats {
    /// Bind ranks to GPUs, each with what it sees (see [`decide`]); the topology says it from then on.
    pub fn take(
        &mut self,
        topology: &mut Topology,
        seen: &[(usize, Sight)],
        gpus: &[String],
        cores: Cores,
    ) -> Result<Decided, TransportError> {
        self.leave(topology);
        let decided = decide(topology, seen, gpus, cores).map_err(TransportError::Gpus)?;
        let place = |bound: &Bound| {
            let own = topology.ranks.get(bound.rank)?;
            Some(Bound { rank: own.rank, gpu: None, cores: own.cores.clone(), numa: own.numa })
        };
        // Who has moved before and does not now goes home, too.
        let moves = |rank: usize| decided.bound.iter().any(|bound| bound.rank == rank);
        self.home.retain(|bound| !moves(bound.rank));
        self.home.extend(decided.bound.iter().filter_map(place));
        topology.bind(&decided.bound);
        self.now.clone_from(&decided.bound);
        self.absent.clone_from(&decided.absent);
        Ok(decided)
    }

    /// Back to where the ranks were started; who moved is told.
    pub fn leave(&mut self, topology: &mut Topology) -> Decided {
        self.now.clear();
        self.absent.clear();
        topology.bind(&self.home);
        Decided { bound: self.home.clone(), ..Decided::default() }
    }

    /// True while no rank is bound to a GPU.
    pub fn is_free(&self) -> bool {
        self.now.is_empty()
    }

    /// Ranks that were to be bound and have no GPU.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// True if this is one of those.
    pub fn is_absent(&self, rank: usize) -> bool {
        self.absent.iter().any(|absent| absent.rank == rank)
    }

    /// The GPU that a rank is bound to.
    pub fn gpu(&self, rank: usize) -> Option<&CudaDevice> {
        self.now.iter().find(|bound| bound.rank == rank)?.gpu.as_ref()
    }

    fn seat(&self, rank: usize) -> Option<&Bound> {
        self.now.iter().chain(&self.home).find(|bound| bound.rank == rank)
    }

    /// The cores that a rank goes to where it has moved; none where it stays.
    pub fn cores(&self, rank: usize) -> Vec<usize> {
        self.seat(rank).map_or_else(Vec::new, |bound| bound.cores.clone())
    }

    /// What a rank is told: its GPU, and those cores; of memory of GPUs, to take no part where it has none.
    pub fn setup(&self, rank: usize, setup: &Setup) -> Setup {
        let gpu = self.gpu(rank).cloned().or_else(|| setup.gpu.clone());
        let own = Setup { gpu, cores: self.cores(rank), ..setup.clone() };
        if !setup.memory.is_host() && self.is_absent(rank) { own.idle() } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::MoverKind;
    use crate::sweep::Buffers;
    use crate::topology::Placement;

    #[test]
    fn ranks_go_to_their_gpus_and_home_again() {
        let place = |rank| Placement { rank, host: "a".to_owned(), cores: vec![rank], ..Placement::default() };
        let mut topology = Topology::of((0..2).map(place).collect());
        let home = topology.ranks.clone();
        let device = CudaDevice { number: 0, address: "0000:3b:00.0".parse().ok(), ..CudaDevice::default() };
        let seen = [(1, Sight { devices: vec![device.clone()], cores: vec![0, 1], ..Sight::default() })];
        let setup = Setup::host(MoverKind::Memcpy, Buffers::Rotate, 64, 1, 1);
        let mut seats = Seats::default();
        assert_eq!(seats.setup(1, &setup), setup);
        assert_eq!(seats.leave(&mut topology), Decided::default());
        let decided = seats.take(&mut topology, &seen, &[], Cores::Near).unwrap();
        assert_eq!((decided.bound.len(), topology.ranks[1].gpu, topology.ranks[0].gpu), (1, Some(0), None));
        let own = seats.setup(1, &setup);
        assert_eq!((own.gpu, own.cores), (Some(device), vec![1]), "nobody told which cores are near");
        assert_eq!(seats.setup(0, &setup), setup);
        // A refusal leaves nobody bound.
        assert!(seats.take(&mut topology, &[(1, Sight::default())], &[], Cores::Near).is_err());
        assert_eq!(topology.ranks, home);
        let _ = seats.take(&mut topology, &seen, &[], Cores::Near).unwrap();
        assert_eq!(seats.leave(&mut topology).bound, [Bound { rank: 1, gpu: None, cores: vec![1], numa: None }]);
        assert_eq!((topology.ranks.clone(), seats.setup(1, &setup).gpu), (home, None));
    }
}
