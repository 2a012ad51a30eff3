//! A library with the C interface of CUDA's driver over memory of the host, so that the tests go through cudarc without a GPU, in
//! several processes of one machine. Signatures and layouts are those of cudarc's driver; only what toposcope calls is here.
//!
//! `TOPOSCOPE_STAND_IN` names the box's file (`described`), which the stand-in for NVML serves too; `TOPOSCOPE_STAND_IN_ALSO` is TOML
//! on top of it, for failures; `TOPOSCOPE_STAND_IN_REPORT` names a folder for what was called and what was wrong (`ledger`).
//! Without any of them there are four GPUs that reach each other.
//!
//! What is as with the driver: streams are queues with a thread each (`stream`), events take their time when the stream gets to
//! them, a copy from pageable memory is staged at once and one to it waits, the default stream waits for the others; handles of
//! memory open in other processes alone. There are no kernels.
//!
//! Every pointer that is written through is checked for null and otherwise trusted to be what the driver's interface asks for.

#![allow(unsafe_code, reason = "a C interface is the purpose")]
#![allow(non_snake_case, reason = "the names are the driver's")]
#![allow(clippy::cast_possible_wrap, reason = "numbers of GPUs and ranks fit C's")]
#![allow(clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref, reason = "told once, above")]

mod api;
mod codes;
mod described;
mod driver;
mod ledger;
mod memory;
mod stream;
