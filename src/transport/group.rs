//! Some of a job's ranks as if they were all of it: `--group`.

use std::time::Duration;

use super::binding::Decided;
use super::work::{Carry, Work};
use super::{Absent, End, Engine, Order, Report, Setup, TransportError};
use crate::sample::{EngineKind, Memory, MoverKind};
use crate::sweep::Target;
use crate::topology::{Bound, GpuState, Topology};

/// An engine whose ranks are those of a group, numbered from 0 in the group's order. The job's other ranks sleep and have
/// no buffers.
#[allow(missing_debug_implementations, reason = "engines have none")]
pub struct Grouped {
    engine: Box<dyn Engine>,
    /// ranks of the job, by their numbers in the group
    group: Vec<usize>,
    topology: Topology,
}

impl Grouped {
    /// Only these ranks of the engine's job, each named once.
    pub fn new(mut engine: Box<dyn Engine>, group: Vec<usize>) -> Result<Self, TransportError> {
        let world = engine.topology().world();
        let wrong = group.iter().enumerate().find(|&(at, &rank)| rank >= world || group[..at].contains(&rank));
        if let Some((_, &rank)) = wrong {
            return Err(TransportError::Group { rank, world });
        }
        let mut topology = engine.topology().clone();
        topology.ranks = group.iter().map(|&rank| engine.topology().ranks[rank].clone()).collect();
        for (number, placement) in topology.ranks.iter_mut().enumerate() {
            placement.rank = number;
        }
        let hosts: Vec<String> = topology.hosts().into_iter().map(str::to_owned).collect();
        topology.hardware.retain(|hardware| hosts.contains(&hardware.host));
        engine.restrict(&group);
        Ok(Self { engine, group, topology })
    }

    /// A rank of the job, given its number in the group.
    fn of_job(&self, number: usize) -> usize {
        // A number that the group has not is no rank of the job, either.
        self.group.get(number).copied().unwrap_or(usize::MAX)
    }

    fn order(&self, order: &Order) -> Order {
        let mut order = order.clone();
        match &mut order.probe.target {
            Target::Pair(cell) => (cell.from, cell.to) = (self.of_job(cell.from), self.of_job(cell.to)),
            Target::Group(group) => {
                group.root = group.root.map(|root| self.of_job(root));
                group.peers.iter_mut().for_each(|peer| *peer = self.of_job(*peer));
            }
        }
        for (from, to) in &mut order.probe.flows {
            (*from, *to) = (self.of_job(*from), self.of_job(*to));
        }
        order
    }

    /// Ranks tell of each other by the job's numbers: say so.
    fn reason(&self, reason: String) -> String {
        let same = self.group.iter().enumerate().all(|(number, &rank)| number == rank);
        if same { reason } else { format!("by the job's numbers of ranks: {reason}") }
    }

    /// Those of the group, by their numbers in it.
    fn absent(&self, absent: Vec<Absent>) -> Vec<Absent> {
        let own =
            |Absent { rank, reason }| Some(Absent { rank: self.group.iter().position(|&own| own == rank)?, reason: self.reason(reason) });
        absent.into_iter().filter_map(own).collect()
    }

    fn end(&self, end: End) -> End {
        match end {
            End::Complete => End::Complete,
            End::Timeout(reason) => End::Timeout(self.reason(reason)),
            End::Corrupt(reason) => End::Corrupt(self.reason(reason)),
            End::Waived(reason) => End::Waived(self.reason(reason)),
        }
    }

    fn report(&self, report: Report) -> Report {
        let number = |rank: usize| self.group.iter().position(|&own| own == rank);
        match report {
            Report::Probe(mut report) => {
                report.end = self.end(report.end);
                Report::Probe(report)
            }
            Report::Carried(mut carried) => {
                carried.end = self.end(carried.end);
                Report::Carried(carried)
            }
            Report::Lost { rank, reason } => match number(rank) {
                Some(number) => Report::Lost { rank: number, reason: self.reason(reason) },
                None => Report::Log { rank: 0, line: format!("rank {rank} of the job, outside the group, is lost: {reason}") },
            },
            Report::Log { rank, line } => match number(rank) {
                Some(number) => Report::Log { rank: number, line },
                None => Report::Log { rank: 0, line: format!("rank {rank} of the job, outside the group: {line}") },
            },
        }
    }
}

impl Engine for Grouped {
    fn kind(&self) -> EngineKind {
        self.engine.kind()
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn movers(&self) -> &'static [MoverKind] {
        self.engine.movers()
    }

    fn software(&self) -> String {
        self.engine.software()
    }

    fn group(&self) -> &[usize] {
        &self.group
    }

    fn bind(&mut self, memory: Memory, gpus: &[String]) -> Result<Decided, TransportError> {
        let mut decided = self.engine.bind(memory, gpus)?;
        let own = |bound: Bound| Some(Bound { rank: self.group.iter().position(|&rank| rank == bound.rank)?, ..bound });
        decided.bound = decided.bound.into_iter().filter_map(own).collect();
        decided.absent = self.absent(decided.absent);
        decided.told = decided.told.into_iter().map(|told| self.reason(told)).collect();
        self.topology.bind(&decided.bound);
        Ok(decided)
    }

    fn gpu_states(&mut self, ranks: &[usize]) -> Vec<(usize, GpuState)> {
        let of_job: Vec<usize> = ranks.iter().map(|&rank| self.of_job(rank)).collect();
        let number = |rank: usize| self.group.iter().position(|&own| own == rank);
        self.engine.gpu_states(&of_job).into_iter().filter_map(|(rank, state)| Some((number(rank)?, state))).collect()
    }

    fn prepare(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        self.engine.prepare(setup).map(|absent| self.absent(absent))
    }

    fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
        let orders: Vec<Order> = round.iter().map(|order| self.order(order)).collect();
        self.engine.start(&orders)
    }

    fn load(&mut self, work: &Work, mover: MoverKind) -> Result<(), TransportError> {
        work.check(self.group.len()).map_err(TransportError::Work)?;
        let world = self.engine.topology().world();
        self.engine.load(&work.clone().renumbered(&self.group, world), mover)
    }

    fn carry(&mut self, order: &Carry) -> Result<(), TransportError> {
        self.engine.carry(order)
    }

    fn poll(&mut self, wait: Duration) -> Vec<Report> {
        self.engine.poll(wait).into_iter().map(|report| self.report(report)).collect()
    }

    fn finish(&mut self) {
        self.engine.finish();
    }

    fn clock(&self) -> Option<f64> {
        self.engine.clock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::{Cell, Group, Probe};
    use crate::topology::{Hardware, Placement};
    use crate::transport::ProbeReport;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Keeps what it is told, and says what it is asked to.
    #[derive(Default)]
    struct Told {
        topology: Topology,
        heard: Rc<RefCell<(Vec<usize>, Vec<Order>)>>,
        reports: Vec<Report>,
    }

    impl Engine for Told {
        fn kind(&self) -> EngineKind {
            EngineKind::Threads
        }
        fn topology(&self) -> &Topology {
            &self.topology
        }
        fn movers(&self) -> &'static [MoverKind] {
            &[]
        }
        fn software(&self) -> String {
            String::new()
        }
        fn restrict(&mut self, ranks: &[usize]) {
            self.heard.borrow_mut().0 = ranks.to_vec();
        }
        fn prepare(&mut self, _: &Setup) -> Result<Vec<Absent>, TransportError> {
            Ok([4, 2].into_iter().map(|rank| Absent { rank, reason: "no GPU".to_owned() }).collect())
        }
        fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
            self.heard.borrow_mut().1.extend_from_slice(round);
            Ok(())
        }
        fn poll(&mut self, _: Duration) -> Vec<Report> {
            self.reports.drain(..).collect()
        }
        fn finish(&mut self) {}
    }

    fn place(rank: usize) -> Placement {
        let host = format!("h{rank}");
        Placement { rank, host, pid: 1, cores: vec![0], numa: None, memory_available: 0, memory_total: 0, ..Placement::default() }
    }

    #[test]
    fn orders_go_out_in_the_jobs_numbers_and_reports_come_back_in_the_groups() {
        let end = |end| Report::Probe(ProbeReport::nothing(4, end));
        let lost = |rank| Report::Lost { rank, reason: "no answer".to_owned() };
        let log = |rank| Report::Log { rank, line: "a line".to_owned() };
        let hardware = (0..6).map(|rank| Hardware { host: format!("h{rank}"), ..Hardware::default() });
        let engine = Told {
            topology: Topology { ranks: (0..6).map(place).collect(), hardware: hardware.collect() },
            reports: vec![end(End::Timeout("rank 5 waits".to_owned())), end(End::Complete), lost(5), lost(2), log(1), log(0)],
            ..Told::default()
        };
        let heard = Rc::clone(&engine.heard);
        let mut grouped = Grouped::new(Box::new(engine), vec![5, 1, 4]).unwrap();
        assert_eq!((grouped.group(), &heard.borrow().0[..]), (&[5, 1, 4][..], &[5, 1, 4][..]));
        let hosts: Vec<(usize, &str)> = grouped.topology().ranks.iter().map(|place| (place.rank, place.host.as_str())).collect();
        assert_eq!(hosts, [(0, "h5"), (1, "h1"), (2, "h4")]);
        let made: Vec<&str> = grouped.topology().hardware.iter().map(|hardware| hardware.host.as_str()).collect();
        assert_eq!(made, ["h1", "h4", "h5"], "of its own hosts alone");

        let absent = Absent { rank: 2, reason: "by the job's numbers of ranks: no GPU".to_owned() };
        let setup = Setup::host(MoverKind::Memcpy, crate::sweep::Buffers::Rotate, 64, 1, 1);
        assert_eq!(grouped.prepare(&setup).unwrap(), [absent], "rank 2 of the job is outside");

        let duplex = Probe::pair(4, Cell { pattern: Pattern::Duplex, from: 0, to: 1 }, 8, 1);
        let fan = Target::Group(Group::fan(Pattern::FanIn, 2, vec![0, 1]));
        let fan = Probe { target: fan, flows: vec![(0, 2), (1, 2)], ..duplex.clone() };
        let orders: Vec<Order> = [duplex, fan].into_iter().map(|probe| Order { probe, window: 1, warmup: 0, timeout: 1.0 }).collect();
        grouped.start(&orders).unwrap();
        let heard = heard.borrow();
        assert_eq!(heard.1[0].probe.flows(), [(5, 1), (1, 5)]);
        assert_eq!(heard.1[1].probe.flows(), [(5, 4), (1, 4)]);
        assert!(matches!(&heard.1[1].probe.target, Target::Group(group) if group.root == Some(4)));

        let outside = |rank, rest: &str| Report::Log { rank: 0, line: format!("rank {rank} of the job, outside the group{rest}") };
        let wanted = [
            end(End::Timeout("by the job's numbers of ranks: rank 5 waits".to_owned())),
            end(End::Complete),
            Report::Lost { rank: 0, reason: "by the job's numbers of ranks: no answer".to_owned() },
            outside(2, ", is lost: no answer"),
            log(1),
            outside(0, ": a line"),
        ];
        assert_eq!(grouped.poll(Duration::ZERO), wanted);
    }
}
