//! What the library exports.

mod calls;
mod comms;
mod windows;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::comm::Comm;
use super::comm::Late;
use super::work::{Op, Task};
use super::{Answer, Code, IN_PROGRESS, INVALID_ARGUMENT, INVALID_USAGE, LEDGER, SUCCESS, comm, cuda};

thread_local! {
    /// how the call under way is to fail once its stream gets to it
    static LATE: Cell<Option<Late>> = const { Cell::new(None) };
    static GROUP: RefCell<Group> = const { RefCell::new(Group { depth: 0, error: None, work: Vec::new(), settling: Vec::new() }) };
}

/// What is put off until the outermost group ends.
struct Group {
    depth: u32,
    /// of a call in it, which the whole group fails with
    error: Option<Code>,
    work: Vec<(usize, Arc<Comm>, Op)>,
    settling: Vec<Arc<Comm>>,
}

/// Answer a call, which may be told to fail.
fn call(name: &'static str, answer: impl FnOnce() -> Answer<Code>) -> Code {
    LEDGER.called(name);
    LATE.set(None);
    let answer = || {
        match comm::failure(name) {
            Some(comm::Failure::Now(code)) => {
                comm::complain(0, &format!("{name} was told to fail"));
                return Err(code);
            }
            Some(comm::Failure::Late(late)) => LATE.set(Some(late)),
            None => {}
        }
        answer()
    };
    match answer() {
        Ok(code) => code,
        Err(code) => {
            LEDGER.failed(name);
            GROUP.with_borrow_mut(|group| {
                if group.depth > 0 {
                    group.error.get_or_insert(code);
                }
            });
            code
        }
    }
}

/// Put calls into the group, or do them now as a group of their own.
fn add(comm: &Arc<Comm>, stream: usize, ops: impl FnOnce() -> Answer<Vec<Op>>) -> Answer<Code> {
    comm.usable()?;
    let mut ops = ops()?;
    if let Some(late) = LATE.take() {
        ops = vec![Op::Hang { why: late.why }];
    }
    let alone = GROUP.with_borrow_mut(|group| {
        group.work.extend(ops.into_iter().map(|op| (stream, Arc::clone(comm), op)));
        group.depth == 0
    });
    if alone { launch() } else { Ok(SUCCESS) }
}

/// Give the streams what the group has.
fn launch() -> Answer<Code> {
    let (work, settling) = GROUP.with_borrow_mut(|group| (std::mem::take(&mut group.work), std::mem::take(&mut group.settling)));
    if let Some(code) = GROUP.with_borrow_mut(|group| group.error.take()) {
        return Err(code);
    }
    for comm in settling {
        comm.settle()?;
    }
    let mut tasks: BTreeMap<(usize, usize), (Arc<Comm>, Vec<Op>)> = BTreeMap::new();
    for (stream, comm, op) in work {
        tasks.entry((Arc::as_ptr(&comm).addr(), stream)).or_insert_with(|| (comm, Vec::new())).1.push(op);
    }
    let mut code = SUCCESS;
    for ((_, stream), (comm, ops)) in tasks {
        let task = Task::new(Arc::clone(&comm), ops);
        let pieces = task.pieces();
        comm.begin();
        let own = Arc::clone(&comm);
        let run = move || {
            task.run();
            own.done();
        };
        if cuda::enqueue(stream, &pieces, Box::new(run)).is_err() {
            comm.done();
            comm::complain(comm.ordinal, "memory of no device, or no such stream");
            return Err(INVALID_ARGUMENT);
        }
        code = code.max(comm.accepted());
    }
    Ok(code)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> Code {
    call("ncclGroupStart", || {
        GROUP.with_borrow_mut(|group| group.depth += 1);
        Ok(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> Code {
    call("ncclGroupEnd", || {
        let depth = GROUP.with_borrow_mut(|group| {
            group.depth = group.depth.checked_sub(1)?;
            Some(group.depth)
        });
        match depth {
            Some(0) => launch(),
            Some(_) => Ok(SUCCESS),
            None => {
                LEDGER.violation("ncclGroupEnd without ncclGroupStart".to_owned());
                Err(INVALID_USAGE)
            }
        }
    })
}

/// Have a new communicator meet its ranks: at the group's end, in a thread of its own if it does not block, or now.
fn meet(comm: &Arc<Comm>) -> Answer<Code> {
    if !comm.blocking {
        let comm = Arc::clone(comm);
        std::thread::spawn(move || {
            if let Err(code) = comm.settle() {
                comm.fail(code);
            }
        });
        return Ok(IN_PROGRESS);
    }
    let grouped = GROUP.with_borrow_mut(|group| {
        if group.depth > 0 {
            group.settling.push(Arc::clone(comm));
        }
        group.depth > 0
    });
    if !grouped {
        comm.settle()?;
    }
    Ok(SUCCESS)
}

/// Write where the caller wants it.
fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller of NCCL's interface owns it.
    unsafe { to.write(value) };
    Ok(())
}
