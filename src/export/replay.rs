use super::Calibration;
use crate::sample::Sample;
use crate::session::{Event, Header, Model, Outcome, Record};
use crate::sweep::{Group, SweepSettings};

impl Calibration {
    /// The session that this calibration could have come from: the same samples as events, in its order.
    ///
    /// Log, pauses and lost ranks are not in a calibration. Times of events are sums of the samples' seconds.
    pub fn to_model(&self) -> Model {
        let (header, records) = self.to_records();
        let mut model = Model::new(header);
        for record in &records {
            model.apply(record);
        }
        model
    }

    /// The session that it would be: header and events.
    pub fn to_records(&self) -> (Header, Vec<Record>) {
        let mut software = self.software.clone();
        let program = software.remove("toposcope").unwrap_or_default();
        let settings = SweepSettings {
            patterns: self.samples.iter().map(|sample| sample.pattern).fold(Vec::new(), |mut all, pattern| {
                if !all.contains(&pattern) {
                    all.push(pattern);
                }
                all
            }),
            sizes: self.sizes.clone(),
            ranks: if self.group.len() == self.world { Vec::new() } else { self.group.clone() },
            repeats: self.repeats,
            warmup: self.warmup,
            window: self.window,
            seed: self.seed,
            timeout: self.timeout,
            mover: self.mover,
            memory: self.memory,
            buffers: self.buffers,
            arena: self.arena,
            ci: self.ci,
            budget: self.budget,
            isolated: self.isolated,
            pairs: self.pairs,
            widths: self.widths.clone(),
            shifts: self.shifts.clone(),
            ..SweepSettings::default()
        };
        let header = Header {
            format: Header::current_format(),
            program,
            name: "calibration".to_owned(),
            started: self.started.clone(),
            engine: self.engine,
            group: if self.group.iter().copied().eq(0..self.world) || self.group.len() < self.world {
                Vec::new()
            } else {
                self.group.clone()
            },
            settings: settings.clone(),
            topology: self.placed(),
            software,
            environment: self.environment.clone(),
        };
        let mut t = 0.0;
        let mut records = vec![Record { t, event: Event::SweepStarted { settings, resumed: false } }];
        let same = |a: &Sample, b: &Sample| {
            let pair = (a.from, a.to) == (b.from, b.to);
            (a.pattern, a.bytes, a.take) == (b.pattern, b.bytes, b.take)
                && if a.pattern.is_pair() { pair } else { Group::of(a) == Group::of(b) }
        };
        let parts = self.samples.chunk_by(same);
        for (probe, samples) in (0_u64..).zip(parts) {
            t += samples.iter().filter_map(|sample| sample.seconds).sum::<f64>();
            records.push(Record { t, event: Event::ProbeDone { probe, samples: samples.to_vec(), enough: None } });
        }
        if !self.gpus.is_empty() {
            records.push(Record { t, event: Event::GpusSeen { ranges: self.gpus.clone() } });
        }
        let (outcome, reason) = (Outcome::Complete, String::new());
        records.push(Record { t, event: Event::SweepEnded { outcome, reason } });
        (header, records)
    }
}
