//! What the library exports.

mod context;
mod copy;
mod device;
mod event;
mod hooks;
mod memory;
mod stream;
