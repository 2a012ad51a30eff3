//! NVIDIA's CUDA driver as far as measuring needs it, with safe calls. The library is found at run time; that it, or a call of it, is
//! absent is an error like any other ([`CudaError::Missing`]) and never a panic.
//!
//! All `unsafe` of this room stands in this folder. The rule that makes it sound: what work on a stream refers to (memory, events,
//! flags) is kept by whoever enqueued that work until the stream was seen to be done with it; of a stream that was given up
//! ([`Stream::give_up`]) everything on its GPU is leaked, never freed, while it is still pending.

#![allow(unsafe_code, reason = "CUDA's driver is a C library; each block says why it is sound")]

mod api;
mod error;
mod gate;
mod gpu;
mod memory;
mod stream;

pub use error::{CudaError, Missing};
pub use gate::Gate;
pub use gpu::{Device, Gpu, devices, reaches, version};
pub use memory::{Buffer, Handle, Pinned};
pub use stream::{Mark, Stream, Timer};
