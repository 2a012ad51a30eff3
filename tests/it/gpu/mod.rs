//! Device memory without a GPU: stand-ins for CUDA's driver and NCCL, and what the program does with them.

#![allow(unsafe_code, reason = "the stand-ins are called as the driver and NCCL are")]
#![allow(clippy::cast_possible_wrap, reason = "numbers of ranks fit C's")]

mod binding;
mod cases;
mod driver;
#[cfg(feature = "mpi")]
mod failures;
mod host;
mod memory;
mod nccl;
mod ranks;
mod scenarios;
mod scripts;
pub mod stand_in;
mod whole;
