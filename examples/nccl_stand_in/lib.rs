//! A library with NCCL's C interface over the stand-in for CUDA's driver (`examples/cuda_stand_in`, whose box's file and variables it
//! shares), so that the tests run NCCL's paths without a GPU, in several processes of one machine. Signatures are those of NCCL
//! 2.29's public header; only what toposcope calls is here.
//!
//! What is as with NCCL: work runs on streams, a send ends when its receive has it, ranks meet when a communicator is made, what
//! hangs hangs until the communicator is aborted, windows are of memory from `ncclMemAlloc` alone, signals have number 0 and context
//! 0, and ways between ranks are logged when two first meet. Ranks on other hosts have another name of the host or another
//! `NCCL_HOSTID`. A communicator with `blocking = 0` answers `ncclInProgress` first.
//!
//! What is not: work of one group on several streams runs on each of them by itself, and reductions are sums, of numbers only.
//!
//! Every pointer that is written through is checked for null and otherwise trusted to be what NCCL's interface asks for.

#![allow(unsafe_code, reason = "a C interface is the purpose")]
#![allow(non_snake_case, reason = "the names are NCCL's")]
#![allow(clippy::cast_possible_wrap, reason = "numbers of GPUs and ranks fit C's")]
#![allow(clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref, reason = "told once, above")]

mod api;
mod board;
mod comm;
mod cuda;
#[path = "../cuda_stand_in/described.rs"]
mod described;
#[path = "../cuda_stand_in/ledger.rs"]
mod ledger;
mod log;
mod split;
mod work;

/// `ncclResult_t`.
pub type Code = u32;
pub type Answer<T = ()> = Result<T, Code>;

pub const SUCCESS: Code = 0;
pub const CUDA_ERROR: Code = 1;
pub const SYSTEM_ERROR: Code = 2;
pub const INTERNAL_ERROR: Code = 3;
pub const INVALID_ARGUMENT: Code = 4;
pub const INVALID_USAGE: Code = 5;
pub const REMOTE_ERROR: Code = 6;
pub const IN_PROGRESS: Code = 7;

/// What the header calls each, and what NCCL says of it in words of ours.
pub const NAMES: [(&str, &std::ffi::CStr); 8] = [
    ("ncclSuccess", c"no error"),
    ("ncclUnhandledCudaError", c"a call to CUDA failed"),
    ("ncclSystemError", c"a call to the system failed"),
    ("ncclInternalError", c"internal error"),
    ("ncclInvalidArgument", c"invalid argument"),
    ("ncclInvalidUsage", c"invalid usage"),
    ("ncclRemoteError", c"another rank failed, or left"),
    ("ncclInProgress", c"in progress"),
];

pub static LEDGER: ledger::Ledger = ledger::Ledger::new("nccl");

/// What is left when the process ends.
extern "C" fn end() {
    let (left, work) = comm::left();
    if left > 0 {
        LEDGER.violation(format!("leak: {left} communicator(s) at the end of the process, with {work} piece(s) of work under way"));
    }
    LEDGER.close();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
