//! Ranks that take no part, while the others are measured.

use super::{Setup, TransportError, Unready};
use crate::units::format_count;

/// A rank that takes no part in a sweep or a plan on memory of GPUs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    pub rank: usize,
    pub reason: String,
}

/// What becomes of a sweep for which these ranks are not ready. On memory of GPUs they are absent, beside those that are `known` to have
/// none, and it is refused where none of `part`, who were to be measured, is ready; on the hosts' memory it is refused.
pub(super) fn absent(
    setup: &Setup,
    known: &[Absent],
    unready: Vec<(usize, Unready)>,
    part: &[usize],
) -> Result<Vec<Absent>, TransportError> {
    let bytes = setup.memory();
    if setup.memory.is_host() {
        return unready.into_iter().next().map_or(Ok(Vec::new()), |(rank, why)| Err(why.of(rank, bytes)));
    }
    let is_known = |rank: usize| known.iter().any(|absent| absent.rank == rank);
    let ready = |rank: &usize| !is_known(*rank) && unready.iter().all(|(other, _)| other != rank);
    if !part.iter().any(ready)
        && let Some((rank, why)) = unready.iter().find(|(rank, _)| part.contains(rank))
    {
        return Err(why.clone().of(*rank, bytes));
    }
    let told = |(rank, Unready { reason, memory }): (usize, Unready)| {
        let bytes = format_count(bytes);
        let reason = if memory { format!("its buffers of {bytes} bytes could not be had: {reason}") } else { reason };
        Absent { rank, reason }
    };
    let more = unready.into_iter().filter(|(rank, _)| !is_known(*rank)).map(told);
    let mut all: Vec<Absent> = known.iter().cloned().chain(more).collect();
    all.sort_by_key(|absent| absent.rank);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Memory, MoverKind};
    use crate::sweep::Buffers;

    fn unready(rank: usize, reason: &str, memory: bool) -> (usize, Unready) {
        (rank, Unready { reason: reason.to_owned(), memory })
    }

    #[test]
    fn who_is_not_ready_is_absent_while_another_is_and_refused_else() {
        let known = [Absent { rank: 3, reason: "no GPU".to_owned() }];
        let full = || vec![unready(2, "GPU 2 has 3 of 8 free", true), unready(0, "its driver failed", false)];
        let host = Setup::host(MoverKind::Nccl, Buffers::Rotate, 1 << 19, 1, 1);
        let setup = Setup { memory: Memory::Cuda, ..host.clone() };
        let told = absent(&setup, &known, full(), &[0, 1, 2, 3]).unwrap();
        let told: Vec<(usize, &str)> = told.iter().map(|absent| (absent.rank, absent.reason.as_str())).collect();
        let memory = "its buffers of 1,048,576 bytes could not be had: GPU 2 has 3 of 8 free";
        assert_eq!(told, [(0, "its driver failed"), (2, memory), (3, "no GPU")]);
        let refused = absent(&setup, &known, full(), &[0, 2, 3]).unwrap_err();
        assert!(matches!(refused, TransportError::Memory { rank: 2, bytes: 1_048_576, .. }), "{refused}");
        assert_eq!(absent(&setup, &[], Vec::new(), &[0]).unwrap(), []);
        let refused = absent(&host, &[], full(), &[0, 1, 2, 3]).unwrap_err();
        assert!(
            matches!(refused, TransportError::Memory { rank: 2, bytes: 1_048_576, .. }),
            "each is needed on the hosts' memory: {refused}"
        );
    }
}
