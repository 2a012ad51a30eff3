//! Runs the sweep: probes out, samples in, events to whoever listens.

mod conductor;
mod gate;
mod samples;

pub use conductor::{Conductor, Sink, Start};
pub use gate::Gate;
