//! Sends, receives and what is made of them.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::super::board::Slot;
use super::super::comm::{self, Comm};
use super::super::work::{Op, turn, width};
use super::super::{Answer, Code, INVALID_ARGUMENT, INVALID_USAGE, LEDGER, cuda};
use super::{add, call};

/// The calls that bytes can belong to: what is sent by one is received by the same.
#[derive(Clone, Copy)]
enum Of {
    P2p,
    AllGather,
    AllReduce,
    Broadcast,
}

/// A number of elements as bytes.
fn bytes_of(name: &'static str, count: usize, kind: u32) -> Answer<u64> {
    let bytes = width(kind).and_then(|width| width.checked_mul(count as u64)).ok_or(INVALID_ARGUMENT)?;
    LEDGER.bytes(name, bytes);
    Ok(bytes)
}

fn peer_of(comm: &Comm, peer: c_int) -> Answer<usize> {
    usize::try_from(peer).ok().filter(|&peer| peer < comm.board.ranks).ok_or(INVALID_ARGUMENT)
}

fn send(comm: &Comm, to: usize, at: usize, bytes: u64, kind: u32, of: Of) -> Answer<Op> {
    comm.way(comm.rank, to);
    let (handle, offset) = if bytes == 0 { (cuda::Handle([0; 64]), 0) } else { cuda::share(at)? };
    let slot = Slot { handle, offset: offset as u64, bytes, kind, of: of as u32 };
    Ok(Op::Send { to, turn: turn(comm, to, true), at, slot, posted: false })
}

fn receive(comm: &Comm, from: usize, at: usize, (bytes, kind): (u64, u32), of: Of, fold: bool) -> Op {
    comm.way(from, comm.rank);
    Op::Receive { from, turn: turn(comm, from, false), at, bytes, kind, of: of as u32, fold }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSend(from: *const c_void, count: usize, kind: u32, peer: c_int, of: usize, stream: *mut c_void) -> Code {
    call("ncclSend", || {
        let comm = comm::get(of)?;
        let bytes = bytes_of("ncclSend", count, kind)?;
        let peer = peer_of(&comm, peer)?;
        add(&comm, stream.addr(), || Ok(vec![send(&comm, peer, from.addr(), bytes, kind, Of::P2p)?]))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRecv(to: *mut c_void, count: usize, kind: u32, peer: c_int, of: usize, stream: *mut c_void) -> Code {
    call("ncclRecv", || {
        let comm = comm::get(of)?;
        let bytes = bytes_of("ncclRecv", count, kind)?;
        let peer = peer_of(&comm, peer)?;
        add(&comm, stream.addr(), || Ok(vec![receive(&comm, peer, to.expose_provenance(), (bytes, kind), Of::P2p, false)]))
    })
}

fn others(comm: &Arc<Comm>) -> impl Iterator<Item = usize> + use<> {
    let own = comm.rank;
    (0..comm.board.ranks).filter(move |&rank| rank != own)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclAllGather(from: *const c_void, to: *mut c_void, count: usize, kind: u32, of: usize, stream: *mut c_void) -> Code {
    call("ncclAllGather", || {
        let comm = comm::get(of)?;
        let bytes = bytes_of("ncclAllGather", count, kind)?;
        let part = |rank: usize| to.expose_provenance() + rank * bytes as usize;
        add(&comm, stream.addr(), || {
            let mut ops = Vec::new();
            for peer in others(&comm) {
                ops.push(send(&comm, peer, from.addr(), bytes, kind, Of::AllGather)?);
                ops.push(receive(&comm, peer, part(peer), (bytes, kind), Of::AllGather, false));
            }
            ops.push(Op::Copy { from: from.expose_provenance(), to: part(comm.rank), bytes });
            Ok(ops)
        })
    })
}

/// Sums alone: the number of `ncclSum` is 0.
#[unsafe(no_mangle)]
pub extern "C" fn ncclAllReduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    kind: u32,
    how: c_int,
    of: usize,
    stream: *mut c_void,
) -> Code {
    call("ncclAllReduce", || {
        let comm = comm::get(of)?;
        let bytes = bytes_of("ncclAllReduce", count, kind)?;
        if how != 0 {
            return Err(INVALID_USAGE);
        }
        add(&comm, stream.addr(), || {
            let mut ops = Vec::new();
            for peer in others(&comm) {
                ops.push(send(&comm, peer, from.addr(), bytes, kind, Of::AllReduce)?);
                ops.push(receive(&comm, peer, 0, (bytes, kind), Of::AllReduce, true));
            }
            ops.push(Op::Folded { to: to.expose_provenance(), from: from.expose_provenance(), bytes, kind });
            Ok(ops)
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclBroadcast(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    kind: u32,
    root: c_int,
    of: usize,
    stream: *mut c_void,
) -> Code {
    call("ncclBroadcast", || {
        let comm = comm::get(of)?;
        let bytes = bytes_of("ncclBroadcast", count, kind)?;
        let root = peer_of(&comm, root)?;
        add(&comm, stream.addr(), || {
            if comm.rank != root {
                return Ok(vec![receive(&comm, root, to.expose_provenance(), (bytes, kind), Of::Broadcast, false)]);
            }
            let mut ops = vec![Op::Copy { from: from.expose_provenance(), to: to.expose_provenance(), bytes }];
            for peer in others(&comm) {
                ops.push(send(&comm, peer, from.addr(), bytes, kind, Of::Broadcast)?);
            }
            Ok(ops)
        })
    })
}
