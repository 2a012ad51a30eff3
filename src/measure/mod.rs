//! Runs the sweep: probes out, samples in, events to whoever listens.

mod gate;

pub use gate::Gate;
