//! Runs the sweep: probes out, samples in, events to whoever listens.

mod conductor;
mod described;
mod gate;
mod planner;
mod samples;
#[cfg(test)]
mod tests;
mod ways;

pub use conductor::{Conductor, Foresee, LoadPlan, Sink, Start};
pub use described::Described;
pub use gate::Gate;
