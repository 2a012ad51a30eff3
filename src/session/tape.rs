use std::borrow::Cow;

use super::{Event, Record};
use crate::sample::Sample;
use crate::sweep::Enough;

/// The records of a session in little room. Nearly all of a long session are samples of pairs, and nearly all that these tell is what
/// others told before them: a sample takes 64 bytes instead of 500.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    entries: Vec<Entry>,
    grains: Vec<Grain>,
    /// what samples have in common
    kinds: Vec<Sample>,
}

#[derive(Debug, Clone)]
enum Entry {
    /// the end of a probe of pairs
    Done {
        t: f64,
        probe: u64,
        /// index of its first grain
        first: u32,
        count: u32,
        enough: Option<Enough>,
    },
    Whole(Box<Record>),
}

/// What a sample has of its own.
#[derive(Debug, Clone, Copy)]
struct Grain {
    /// NaN for none
    seconds: f64,
    /// NaN for none
    ack_seconds: f64,
    from: u32,
    to: u32,
    repeat: u32,
    /// index of what it has in common with others
    kind: u32,
}

/// So many kinds are looked through for a sample's. A sweep has a few at a time: a size and a message count, in each class of path.
const LOOKED_AT: usize = 16;

impl Tape {
    /// Put a record behind the others.
    pub fn push(&mut self, record: Record) {
        let entry = self.done(&record).unwrap_or_else(|| Entry::Whole(Box::new(record)));
        self.entries.push(entry);
    }

    /// The end of a probe in few words; `None` if it needs more.
    fn done(&mut self, record: &Record) -> Option<Entry> {
        let Event::ProbeDone { probe, samples, enough } = &record.event else { return None };
        let first = u32::try_from(self.grains.len()).ok()?;
        let count = u32::try_from(samples.len()).ok()?;
        for sample in samples {
            let Some(grain) = self.grain(sample) else {
                self.grains.truncate(first as usize);
                return None;
            };
            self.grains.push(grain);
        }
        Some(Entry::Done { t: record.t, probe: *probe, first, count, enough: *enough })
    }

    fn grain(&mut self, sample: &Sample) -> Option<Grain> {
        let own = [sample.seconds, sample.ack_seconds];
        // What a fan's samples have in common no other fan's have; and a number that is none is not the lack of one.
        if !sample.pattern.is_pair() || own.into_iter().flatten().any(f64::is_nan) {
            return None;
        }
        let [seconds, ack_seconds] = own.map(|own| own.unwrap_or(f64::NAN));
        let (from, to) = (u32::try_from(sample.from).ok()?, u32::try_from(sample.to).ok()?);
        let kind = Sample { from: 0, to: 0, repeat: 0, seconds: None, ack_seconds: None, ..sample.clone() };
        let known = self.kinds.iter().rev().take(LOOKED_AT).position(|known| *known == kind);
        let kind = if let Some(back) = known {
            self.kinds.len() - 1 - back
        } else {
            self.kinds.push(kind);
            self.kinds.len() - 1
        };
        Some(Grain { seconds, ack_seconds, from, to, repeat: sample.repeat, kind: u32::try_from(kind).ok()? })
    }

    fn sample(&self, grain: &Grain) -> Option<Sample> {
        let told = |number: f64| Some(number).filter(|number| !number.is_nan());
        Some(Sample {
            from: grain.from as usize,
            to: grain.to as usize,
            repeat: grain.repeat,
            seconds: told(grain.seconds),
            ack_seconds: told(grain.ack_seconds),
            ..self.kinds.get(grain.kind as usize)?.clone()
        })
    }

    /// Records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without a record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The record at an index, as it was put there.
    pub fn get(&self, at: usize) -> Option<Cow<'_, Record>> {
        Some(match self.entries.get(at)? {
            Entry::Whole(record) => Cow::Borrowed(record),
            &Entry::Done { t, probe, first, count, enough } => {
                let grains = self.grains.get(first as usize..first as usize + count as usize)?;
                let samples = grains.iter().filter_map(|grain| self.sample(grain)).collect();
                Cow::Owned(Record { t, event: Event::ProbeDone { probe, samples, enough } })
            }
        })
    }

    /// When a record was made, seconds since the session began.
    pub fn time(&self, at: usize) -> Option<f64> {
        self.entries.get(at).map(Entry::time)
    }

    /// True for the end of a probe.
    pub fn ends_a_probe(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| match entry {
            Entry::Done { .. } => true,
            Entry::Whole(record) => matches!(record.event, Event::ProbeDone { .. }),
        })
    }

    /// How many records were made by then, if they are in order of time.
    pub fn until(&self, time: f64) -> usize {
        self.entries.partition_point(|entry| entry.time() <= time)
    }
}

impl Entry {
    fn time(&self) -> f64 {
        match self {
            Self::Done { t, .. } => *t,
            Self::Whole(record) => record.t,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Pattern, Status};
    use crate::session::store;
    use crate::topology::PathClass;
    use std::path::Path;

    fn kept(records: &[Record]) -> Tape {
        let mut tape = Tape::default();
        for record in records {
            tape.push(record.clone());
        }
        for (at, record) in records.iter().enumerate() {
            assert_eq!(*tape.get(at).unwrap(), *record, "{at}");
            assert_eq!(tape.time(at), Some(record.t));
            assert_eq!(tape.ends_a_probe(at), matches!(record.event, Event::ProbeDone { .. }), "{at}");
        }
        assert!(tape.len() == records.len() && tape.get(records.len()).is_none());
        tape
    }

    fn done(probe: u64, samples: Vec<Sample>) -> Record {
        Record { t: 0.5 + probe as f64, event: Event::ProbeDone { probe, samples, enough: Some(Enough::Budget) } }
    }

    #[test]
    fn a_recorded_session_comes_back_as_it_was() {
        let recorded = store::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/lab-4x4")).unwrap();
        let tape = kept(&recorded.records);
        assert!(tape.grains.len() > 50 && tape.kinds.len() < tape.grains.len() / 4, "{} {}", tape.kinds.len(), tape.grains.len());
        for time in [0.0, tape.time(tape.len() / 2).unwrap(), 1e9] {
            assert_eq!(tape.until(time), recorded.records.partition_point(|record| record.t <= time));
        }
    }

    #[test]
    fn whatever_a_sample_tells_it_tells_again() {
        let blank = |from, to| Sample::blank(Pattern::Peer, from, to, 4096, PathClass::InterNode);
        let timed = |from, to, seconds| Sample { seconds: Some(seconds), messages: 3, status: Status::Ok, ..blank(from, to) };
        let odd = [
            Sample { reason: Some("lost".to_owned()), status: Status::Timeout, ..blank(1, 2) },
            Sample { ack_seconds: Some(1e-6), via: Some("P2P".to_owned()), repeat: 7, take: 2, outlier: true, ..timed(2, 1, 0.25) },
            Sample { root_seconds: Some(0.5), isolated: true, warmup: true, ..timed(3, 3, 0.5) },
            Sample { root: Some(1), peers: vec![2, 3], width: Some(2), pattern: Pattern::FanOut, ..timed(1, 2, 0.5) },
            Sample { shift: Some(1), receive_path: Some(PathClass::Local), pattern: Pattern::Relay, ..timed(1, 2, 0.5) },
            Sample { seconds: Some(f64::INFINITY), ..blank(5_000_000_000, 0) },
        ];
        let mut records: Vec<Record> = (1..).zip(&odd).map(|(probe, sample)| done(probe, vec![sample.clone()])).collect();
        // Good ones beside one that cannot be told in few words.
        records.push(done(20, vec![timed(0, 1, 1.0), odd[3].clone()]));
        records.push(done(21, vec![timed(0, 1, 1.0), timed(1, 0, 2.0), odd[0].clone()]));
        records.push(done(22, Vec::new()));
        // More kinds than are looked through.
        records.extend((0..100).map(|at| done(30 + at, vec![Sample { bytes: 1 + at % 40, ..timed(0, 1, 1.0) }])));
        records.push(Record { t: 200.0, event: Event::Closed });
        let tape = kept(&records);
        assert_eq!(tape.grains.len(), 3 + 3 + 100);
        // No number is told as none.
        let odd = Sample { seconds: Some(f64::NAN), ..blank(0, 1) };
        let mut tape = Tape::default();
        tape.push(done(1, vec![odd]));
        let told = tape.get(0).unwrap();
        assert!(matches!(&told.event, Event::ProbeDone { samples, .. } if samples[0].seconds.is_some_and(f64::is_nan)));
    }
}
