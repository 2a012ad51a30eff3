//! Memory of GPUs under every pattern: buffers on the device, copies by the device's own engines, times by the device's own clock.
//!
//! Words travel as they always do, by the engine's own endpoint ([`Control`]); [`Device`] stands around it and moves the bytes.

mod carry;
pub mod driver;
mod endpoint;
mod groups;
mod hold;
mod host;
mod joint;
mod joint_several;
mod lane;
mod loading;
mod meet;
pub mod nccl;
mod prepare;
mod several;
mod side;
mod word;

pub use endpoint::Device;

use super::{Setup, Together, TransportError};

/// What carries the words of ranks whose bytes lie on GPUs.
pub trait Control: Together {
    /// True if all ranks are one process: an address of one is an address of all.
    const ONE_PROCESS: bool;

    /// Whether its own movers move memory of GPUs, and why not.
    fn takes_gpus(&self) -> Result<(), String> {
        Err("this engine's own movers do not move memory of GPUs".to_owned())
    }

    /// Get ready with arenas on a GPU (address and bytes): what is sent from, and what is received into. Collective.
    fn prepare_far(&mut self, setup: &Setup, _arenas: [(u64, usize); 2]) -> Result<(), TransportError> {
        let rank = self.rank();
        self.takes_gpus()
            .and_then(|()| Err(format!("{} takes no such memory", setup.mover.name())))
            .map_err(|reason| TransportError::Unready { rank, reason })
    }
}
