//! NCCL as a mover: `ncclSend` and `ncclRecv` in groups, and one-sided puts with signals, in the job's group or a part of it.

mod api;
mod comm;
pub mod log;
mod put;

/// A name for ranks to meet by, made by rank 0, if NCCL is there and, for `puts`, has them; else why not.
pub fn name(puts: bool) -> Result<Vec<u8>, String> {
    let api = api().map_err(|missing| missing.to_string())?;
    if puts {
        api.one_sided()?;
    }
    unique_id(api)
}

pub use api::{Api, Missing, NAMED_BY, Stream, api, version};
pub use comm::{Communicator, ID_BYTES, Member, Message, unique_id};
pub use put::{Memory, Put};
