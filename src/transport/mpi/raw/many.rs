//! Requests of several transfers, tested with one call.

use std::os::raw::c_int;

use mpi::ffi::{MPI_Request, MPI_Testsome};

use super::{Arena, Comm, Refused, checked, int, withdrawn};

/// Which of a rank's arenas a request refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transport::mpi) enum Side {
    /// the one that it sends from
    Out,
    /// the one that it receives into
    In,
}

/// Requests with the transfer that each belongs to. All memory is made in `reserve`.
#[derive(Debug, Default)]
pub(in crate::transport::mpi) struct Many {
    requests: Vec<MPI_Request>,
    of: Vec<(usize, Side)>,
    done: Vec<c_int>,
}

impl Many {
    /// Make room for so many requests at a time.
    pub(in crate::transport::mpi) fn reserve(&mut self, count: usize) {
        self.requests.reserve(count);
        self.of.reserve(count);
        self.done.reserve(count);
    }

    pub(in crate::transport::mpi) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Start sending a part of `arena` for a transfer.
    #[allow(clippy::too_many_arguments, reason = "those of MPI_Isend")]
    pub(in crate::transport::mpi) fn send(
        &mut self,
        arena: &mut Arena,
        comm: &Comm,
        flow: usize,
        at: usize,
        length: usize,
        to: usize,
        tag: i32,
    ) -> Result<(), Refused> {
        let request = arena.isend(comm, at, length, to, tag)?;
        arena.lent += 1;
        self.requests.push(request);
        self.of.push((flow, Side::Out));
        Ok(())
    }

    /// Start receiving into a part of `arena` for a transfer.
    #[allow(clippy::too_many_arguments, reason = "those of MPI_Irecv")]
    pub(in crate::transport::mpi) fn receive(
        &mut self,
        arena: &mut Arena,
        comm: &Comm,
        flow: usize,
        at: usize,
        length: usize,
        from: usize,
        tag: i32,
    ) -> Result<(), Refused> {
        let request = arena.irecv(comm, at, length, from, tag)?;
        arena.lent += 1;
        self.requests.push(request);
        self.of.push((flow, Side::In));
        Ok(())
    }

    /// Look at all requests; `each` gets the transfer and side of each that is complete.
    pub(in crate::transport::mpi) fn test(
        &mut self,
        outgoing: &mut Arena,
        landing: &mut Arena,
        mut each: impl FnMut(usize, Side),
    ) -> Result<(), Refused> {
        self.found(|flow, side| {
            let arena = if side == Side::Out { &mut *outgoing } else { &mut *landing };
            arena.lent -= 1;
            each(flow, side);
        })
    }

    /// The same where all refer to one arena.
    pub(in crate::transport::mpi) fn test_one(&mut self, arena: &mut Arena, mut each: impl FnMut(usize, Side)) -> Result<(), Refused> {
        self.found(|flow, side| {
            arena.lent -= 1;
            each(flow, side);
        })
    }

    fn found(&mut self, mut each: impl FnMut(usize, Side)) -> Result<(), Refused> {
        if self.requests.is_empty() {
            return Ok(());
        }
        let count = self.requests.len();
        self.done.resize(count, 0);
        let mut found: c_int = 0;
        // SAFETY: `count` pending requests of ours and room for as many indices; null statuses as MPI allows.
        let code = unsafe {
            let statuses = mpi::ffi::RSMPI_STATUSES_IGNORE;
            MPI_Testsome(int(count), self.requests.as_mut_ptr(), &raw mut found, self.done.as_mut_ptr(), statuses)
        };
        checked(code, "MPI_Testsome")?;
        // MPI_UNDEFINED, where no request was active, is negative.
        let Ok(found @ 1..) = usize::try_from(found) else { return Ok(()) };
        let Some(done) = self.done.get_mut(..found) else { return Ok(()) };
        // From the last one, so that what takes a removed one's place is one that was kept.
        done.sort_unstable();
        for at in done.iter().rev().filter_map(|&at| usize::try_from(at).ok()).filter(|&at| at < count) {
            self.requests.swap_remove(at);
            let (flow, side) = self.of.swap_remove(at);
            each(flow, side);
        }
        Ok(())
    }

    /// Give up what is pending: receives are cancelled where the library can; the arenas count as disturbed until all is done.
    pub(in crate::transport::mpi) fn give_up(&mut self, outgoing: &mut Arena, landing: &mut Arena) {
        for (request, (_, side)) in self.requests.drain(..).zip(self.of.drain(..)) {
            let arena = if side == Side::Out { &mut *outgoing } else { &mut *landing };
            arena.stale.extend(withdrawn(request, side == Side::In));
            arena.lent -= 1;
        }
    }

    /// The same where all refer to one arena.
    pub(in crate::transport::mpi) fn give_up_one(&mut self, arena: &mut Arena) {
        for (request, (_, side)) in self.requests.drain(..).zip(self.of.drain(..)) {
            arena.stale.extend(withdrawn(request, side == Side::In));
            arena.lent -= 1;
        }
    }
}
