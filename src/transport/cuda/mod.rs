//! Memory of GPUs under every pattern: buffers on the device, copies by the device's own engines, times by the device's own clock.
//!
//! Words travel as they always do, by the engine's own endpoint ([`Control`]); [`Device`] stands around it and moves the bytes.

mod carry;
pub mod driver;
mod endpoint;
mod joint;
mod joint_several;
mod lane;
mod meet;
pub mod nccl;
mod prepare;
mod several;
mod side;
mod word;

pub use endpoint::Device;

use super::Together;

/// What carries the words of ranks whose bytes lie on GPUs.
pub trait Control: Together {
    /// True if all ranks are one process: an address of one is an address of all.
    const ONE_PROCESS: bool;
}
