//! NCCL as a mover: `ncclSend` and `ncclRecv` in groups, and one-sided puts with signals, in the job's group or a part of it.

mod api;
mod comm;
pub mod log;
mod put;

pub use api::{Api, Missing, NAMED_BY, api, version};
pub use comm::{Communicator, ID_BYTES, Message, unique_id};
pub use put::{Memory, Put};
