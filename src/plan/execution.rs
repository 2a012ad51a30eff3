use serde::{Deserialize, Serialize};

use super::Replay;
use crate::fit::median;
use crate::sample::Memory;
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
    /// where they lay
    #[serde(default, skip_serializing_if = "Memory::is_host")]
    pub memory: Memory,
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

/// Resources that are told beside the one that binds.
const MOST_RESOURCES: usize = 8;

impl Foreseen {
    /// What a replay foresees, in short.
    pub fn of(replay: &Replay) -> Self {
        let resources = replay.resources.iter().take(MOST_RESOURCES);
        Self {
            seconds: replay.seconds,
            low: replay.interval.low,
            high: replay.interval.high,
            stages: replay.stages.iter().map(|stage| stage.end).collect(),
            bottleneck: replay.bottleneck.say.clone(),
            resources: resources.map(|load| (load.resource.name.clone(), load.busy, load.flows.clone())).collect(),
        }
    }
}

/// Measured against foreseen: medians of the timed runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Residual {
    pub seconds: f64,
    pub foreseen: f64,
    /// ends of the interval
    pub low: f64,
    pub high: f64,
    /// end of each stage, measured and foreseen, seconds from the start
    pub stages: Vec<(f64, f64)>,
    /// the busiest resources: name, seconds of load that were foreseen, and when the last of its flows was done
    pub resources: Vec<(String, f64, f64)>,
}

impl Residual {
    /// True if the measured time lies outside the interval by more than this share of its ends.
    pub fn is_beyond(&self, tolerance: f64) -> bool {
        self.seconds > self.high * (1.0 + tolerance) || self.seconds < self.low * (1.0 - tolerance)
    }
}

impl Execution {
    /// How its bytes went, in words.
    pub fn carried_by(&self) -> String {
        if self.memory.is_host() { self.mover.clone() } else { format!("{} on GPU memory", self.mover) }
    }

    /// Medians of its runs: seconds, of each stage, of each flow; `None` without a run.
    pub fn median(&self) -> Option<Run> {
        let first = self.runs.first()?;
        let of = |get: &dyn Fn(&Run) -> Option<f64>| median(&mut self.runs.iter().filter_map(get).collect::<Vec<_>>());
        let stages = (0..first.stages.len()).map(|stage| of(&|run| run.stages.get(stage).copied()));
        let flows = (0..first.flows.len()).map(|flow| of(&|run| run.flows.get(flow).copied()));
        Some(Run { seconds: of(&|run| Some(run.seconds)), stages: stages.collect(), flows: flows.collect() })
    }

    /// Measured against foreseen; `None` where the one or the other is missing.
    pub fn residual(&self) -> Option<Residual> {
        let (measured, foreseen) = (self.median()?, self.foreseen.as_ref()?);
        let last = |flows: &[usize]| flows.iter().filter_map(|&flow| measured.flows.get(flow)).copied().fold(0.0, f64::max);
        Some(Residual {
            seconds: measured.seconds,
            foreseen: foreseen.seconds,
            low: foreseen.low,
            high: foreseen.high,
            resources: foreseen.resources.iter().map(|(name, busy, flows)| (name.clone(), *busy, last(flows))).collect(),
            stages: measured.stages.into_iter().zip(foreseen.stages.iter().copied()).collect(),
        })
    }

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
    fn measured_and_foreseen_are_compared_by_stage_and_resource() {
        let run = |seconds: f64| Run { seconds, stages: vec![seconds / 2.0, seconds], flows: vec![seconds / 2.0, seconds] };
        let resources = vec![("trunk".to_owned(), 0.9, vec![0]), ("port".to_owned(), 0.5, vec![0, 1])];
        let foreseen = Foreseen { seconds: 1.0, low: 0.9, high: 1.1, stages: vec![0.5, 1.0], bottleneck: String::new(), resources };
        let runs = vec![run(3.0), run(1.2), run(1.0)];
        let execution = Execution { runs, foreseen: Some(foreseen), ..Execution::default() };
        let residual = execution.residual().unwrap();
        assert_eq!((residual.seconds, residual.stages.clone()), (1.2, vec![(0.6, 0.5), (1.2, 1.0)]));
        assert_eq!(residual.resources, [("trunk".to_owned(), 0.9, 0.6), ("port".to_owned(), 0.5, 1.2)]);
        assert!(residual.is_beyond(0.05) && !residual.is_beyond(0.15));
        let faster = Execution { runs: vec![run(0.7)], ..execution.clone() };
        assert!(faster.residual().unwrap().is_beyond(0.15));
        assert_eq!(Execution { foreseen: None, ..execution }.residual(), None);
    }

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
