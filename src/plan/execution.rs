use serde::{Deserialize, Serialize};

use crate::units::plain;

/// One run of a traffic on real ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// from the common start until the last rank is done, seconds
    pub seconds: f64,
    /// the same of each stage
    pub stages: Vec<f64>,
    /// of each flow from the common start until its bytes are there, as its receiver saw it; 0 where that is not known
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<f64>,
}

/// What was foreseen for a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreseen {
    pub seconds: f64,
    /// ends of the interval that the measured time should lie in
    pub low: f64,
    pub high: f64,
    pub stages: Vec<f64>,
    /// in words
    pub bottleneck: String,
    /// the busiest resources: name, seconds of load, and the flows that load each
    pub resources: Vec<(String, f64, Vec<usize>)>,
}

/// A plan that was run for real, with every target byte compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// of the traffic
    pub name: String,
    /// how the bytes went, such as `mpi_sendrecv`
    pub mover: String,
    /// timed runs, warm-ups not included
    pub runs: Vec<Run>,
    /// bytes that were compared on their targets, of all runs together
    pub verified: u64,
    /// absent where nothing was calibrated
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreseen: Option<Foreseen>,
    /// what kept it from being whole; empty if nothing did
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

impl Execution {
    /// The same with texts that are safe to show, or what makes no sense in it: recorded sessions are data.
    pub fn plain(&self) -> Result<Self, String> {
        let name = plain(&self.name);
        let sound = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        let times = self.runs.iter().flat_map(|run| run.stages.iter().chain(&run.flows).chain([&run.seconds]));
        let foreseen = self.foreseen.iter();
        let told =
            foreseen.flat_map(|told| told.stages.iter().chain([&told.seconds]).chain(told.resources.iter().map(|(_, busy, _)| busy)));
        if let Some(seconds) = times.chain(told).find(|seconds| !sound(seconds)) {
            return Err(format!("{name}: {seconds} s is no time"));
        }
        let mut own = Self { name, mover: plain(&self.mover), failed: plain(&self.failed), ..self.clone() };
        if let Some(told) = &mut own.foreseen {
            told.bottleneck = plain(&told.bottleneck);
            for (name, ..) in &mut told.resources {
                *name = plain(name);
            }
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_times_that_are_none_is_left_out_and_texts_are_made_safe() {
        let run = Run { seconds: 1.0, stages: vec![1.0], flows: Vec::new() };
        let good = Execution { name: "a\u{7}".to_owned(), runs: vec![run], ..Execution::default() };
        assert!(!good.plain().unwrap().name.contains('\u{7}'));
        let mut bad = good;
        bad.runs[0].stages[0] = f64::NAN;
        assert!(bad.plain().unwrap_err().contains("NaN"));
    }
}
