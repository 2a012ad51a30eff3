//! Runs the sweep: probes out, samples in, events to whoever listens.

mod conductor;
mod gate;
mod planner;
mod samples;
#[cfg(test)]
mod tests;

pub use conductor::{Conductor, Sink, Start};
pub use gate::Gate;
