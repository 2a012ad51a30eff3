//! Ranks that meet in a communicator of NCCL: rank 0 makes the name that they meet by, and makes another one after a communicator was
//! given up, so that one transfer that hangs does not end the sweep.

use super::work::Work;
use super::{End, ProbeReport, Setup, TransportError};
use crate::sample::MoverKind;

/// Communicators in a row that came to nothing before there are no more.
const MOST: u32 = 3;

/// What an engine's ranks were told to prepare, and whether they must meet anew.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// of a sweep whose ranks meet
    setup: Option<Setup>,
    /// why the communicator may be gone
    doubt: Option<String>,
    /// in a row
    failures: u32,
    over: Option<String>,
}

impl Assembly {
    /// What to prepare for a sweep: where ranks meet, the name and the ranks are filled in.
    pub(crate) fn call(&mut self, setup: &Setup, ranks: Vec<usize>) -> Result<Setup, TransportError> {
        *self = Self::default();
        if !matches!(setup.mover, MoverKind::Nccl | MoverKind::NcclPut) || setup.memory.is_host() {
            return Ok(setup.clone());
        }
        self.setup = Some(setup.clone());
        named(setup, ranks)
    }

    /// A work as its ranks are told it: where they meet and in which steps they go on, where they move its bytes together.
    pub(crate) fn work(work: &Work, mover: MoverKind) -> Result<Work, TransportError> {
        let mut work = work.clone();
        if mover == MoverKind::Nccl && !work.lies().memory.is_host() {
            work.meeting(&name(false)?).map_err(TransportError::Work)?;
        }
        Ok(work)
    }

    /// Take note of what came of a probe.
    pub(crate) fn see(&mut self, report: &ProbeReport) {
        match &report.end {
            _ if self.setup.is_none() => {}
            End::Complete => self.failures = 0,
            // The ranks of the probe have given it up; the others do not know. What went wrong elsewhere is no matter here.
            End::Timeout(why) | End::Waived(why) | End::Corrupt(why) if report.parted => {
                self.doubt.get_or_insert_with(|| why.clone());
            }
            End::Timeout(_) | End::Waived(_) | End::Corrupt(_) => {}
        }
    }

    /// What to prepare before the next probe, and why, if anything; an error from the time on when there are no more communicators.
    pub(crate) fn again(&mut self, ranks: Vec<usize>) -> Result<Option<(Setup, String)>, TransportError> {
        if let Some(over) = &self.over {
            return Err(TransportError::Work(over.clone()));
        }
        let (Some(why), Some(setup)) = (self.doubt.take(), &self.setup) else { return Ok(None) };
        self.failures += 1;
        if self.failures > MOST {
            let over = format!("NCCL's communicator was given up, and {MOST} new ones in a row came to nothing, the last one since {why}");
            self.over = Some(over.clone());
            return Err(TransportError::Work(over));
        }
        let setup = named(setup, ranks);
        setup.map(|setup| Some((setup, why))).map_err(|error| self.end(&error))
    }

    /// The ranks could not meet anew.
    pub(crate) fn end(&mut self, error: &TransportError) -> TransportError {
        let over = format!("NCCL's communicator was given up, and the ranks could not meet in another one: {error}");
        self.over = Some(over.clone());
        TransportError::Work(over)
    }
}

/// A setup with a new name for these ranks to meet by.
fn named(setup: &Setup, ranks: Vec<usize>) -> Result<Setup, TransportError> {
    Ok(Setup { nccl: name(setup.mover == MoverKind::NcclPut)?, group: ranks, ..setup.clone() })
}

#[cfg(feature = "cuda")]
fn name(puts: bool) -> Result<Vec<u8>, TransportError> {
    super::cuda::nccl::name(puts).map_err(|reason| TransportError::Unready { rank: 0, reason })
}

/// This build has no such mover; the ranks say so.
#[cfg(not(feature = "cuda"))]
#[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
fn name(_: bool) -> Result<Vec<u8>, TransportError> {
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Memory;
    use crate::sweep::Buffers;

    fn seen(ends: &[End]) -> Assembly {
        let setup = Setup { memory: Memory::Cuda, ..Setup::host(MoverKind::Nccl, Buffers::Rotate, 64, 1, 1) };
        let mut assembly = Assembly { setup: Some(setup), ..Assembly::default() };
        for end in ends {
            assembly.see(&ProbeReport { parted: true, ..ProbeReport::nothing(1, end.clone()) });
        }
        assembly
    }

    #[test]
    fn what_has_ended_well_needs_no_new_meeting() {
        assert!(matches!(seen(&[End::Complete, End::Complete]).again(vec![0, 1]), Ok(None)));
    }

    #[test]
    fn probes_that_left_the_communicator_alone_need_no_new_meeting() {
        let mut assembly = seen(&[]);
        for end in [End::Timeout("2 hangs".to_owned()), End::Waived("rank 3 has no GPU".to_owned()), End::Corrupt("byte 0".to_owned())] {
            (0..=MOST).for_each(|_| assembly.see(&ProbeReport::nothing(1, end.clone())));
            assert!(matches!(assembly.again(vec![0, 1]), Ok(None)), "{end:?}");
        }
    }

    #[test]
    fn communicators_that_come_to_nothing_end_and_say_why() {
        let hung = End::Timeout("1→2 hangs".to_owned());
        let mut assembly = seen(std::slice::from_ref(&hung));
        assembly.failures = MOST;
        for _ in 0..2 {
            let told = assembly.again(vec![0, 1]).unwrap_err().to_string();
            assert!(told.contains("given up") && told.contains("1→2 hangs"), "{told}");
        }
        let mut assembly = seen(&[hung]);
        assembly.failures = MOST;
        assembly.see(&ProbeReport::nothing(2, End::Complete));
        assert_eq!(assembly.failures, 0, "one that went well between");
    }

    #[test]
    fn movers_without_a_communicator_are_left_alone() {
        let setup = Setup::host(MoverKind::MpiPut, Buffers::Rotate, 64, 1, 1);
        let mut assembly = Assembly::default();
        assert_eq!(assembly.call(&setup, vec![0]).unwrap(), setup);
        assembly.see(&ProbeReport::nothing(1, End::Timeout("x".to_owned())));
        assert!(matches!(assembly.again(vec![0]), Ok(None)));
    }
}
