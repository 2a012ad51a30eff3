//! Memory of GPUs: buffers on the device, copies by the device's own engines, times by the device's own clock.

pub mod driver;
