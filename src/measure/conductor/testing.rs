//! Tests of findings: a small custom sweep of its own, set by set, that leaves the sweep's cells and groups alone.

use super::{Conductor, nothing, samples};
use crate::diagnose::next::Test;
use crate::sample::{Pattern, Sample, Status};
use crate::session::Event;
use crate::sweep::{Group, Probe, SweepSettings, Target, Transfer};
use crate::transport::{Order, Report};
use crate::units::plain;

/// A test under way.
pub(super) struct Testing {
    finding: String,
    test: Test,
    settings: SweepSettings,
    /// number of the set that comes next
    at: usize,
    samples: Vec<Sample>,
    /// the first thing that went wrong
    reason: String,
}

impl Conductor<'_> {
    /// Begin a test of a finding; [`Self::run`] goes on with it, before anything else. `like`: the sweep whose other settings it has.
    /// What comes of it is told as [`Event::TestDone`], a refusal, too.
    pub fn test(&mut self, finding: &str, test: &Test, like: &SweepSettings) {
        if self.testing.is_some() {
            self.notice("a test is running already; wait for its end or abort it");
            return;
        }
        let (finding, test) = (plain(finding), Test { say: plain(&test.say), ..test.clone() });
        self.tell(Event::TestStarted { finding: finding.clone(), test: test.clone() });
        let settings = settings(&test, like);
        let refused = alike(&test).and_then(|()| self.ready(&settings)).err();
        self.testing = Some(Testing { finding, test, settings, at: 0, samples: Vec::new(), reason: String::new() });
        if let Some(refusal) = refused {
            self.end_test(&refusal);
        }
    }

    /// One set of the test.
    pub(super) fn step_test(&mut self) {
        let id = self.reserve();
        let Some(testing) = &self.testing else { return };
        let (at, settings) = (testing.at, &testing.settings);
        let Some(flows) = testing.test.sets.get(at).cloned() else {
            self.end_test("");
            return;
        };
        let target = Target::Group(Group::custom(at as u32));
        let (bytes, repeats) = (testing.test.bytes, testing.test.repeats);
        let probe = Probe { id, target, flows, bytes, first_repeat: 0, repeats, take: 0, isolated: true, round: id };
        let window = testing.test.windows.get(at).copied().unwrap_or(settings.window);
        let order = Order { probe, window, warmup: settings.warmup, timeout: settings.timeout };
        let reports = match self.missing_of(&order.probe) {
            Some(end) => vec![Report::Probe(nothing(&order.probe, end))],
            None => self.ask(std::slice::from_ref(&order)),
        };
        let mut taken = Vec::new();
        for report in reports {
            match report {
                Report::Probe(report) if report.probe == id => {
                    taken.extend(samples::of_report(&order.probe, self.engine.topology(), &report));
                }
                other => self.take(other),
            }
        }
        self.tell_printed();
        if let Some(testing) = &mut self.testing {
            testing.at += 1;
            let failed = taken.iter().find(|sample| sample.status != Status::Ok);
            if let Some(failed) = failed.filter(|_| testing.reason.is_empty()) {
                let why = failed.reason.as_deref().unwrap_or_else(|| failed.status.name());
                testing.reason = format!("{}→{}: {why}", failed.from, failed.to);
            }
            testing.samples.append(&mut taken);
        }
    }

    /// The test is over, with a reason if it was kept from its end; ranks are made ready for the sweep again.
    pub(super) fn end_test(&mut self, reason: &str) {
        let Some(Testing { finding, test, samples, reason: failed, .. }) = self.testing.take() else { return };
        let reason = if reason.is_empty() { failed } else { reason.to_owned() };
        self.blemished |= !reason.is_empty();
        self.tell(Event::TestDone { finding, test, samples, reason });
        self.ready_again("after a test");
    }

    /// A number that no other probe of this job has.
    fn reserve(&mut self) -> u64 {
        if let Some(active) = self.sweep.as_mut().or(self.ended.as_mut()) {
            self.next_probe = active.planner.next_id() + 1;
            active.planner.reserve()
        } else {
            self.next_probe += 1;
            self.next_probe - 1
        }
    }
}

/// As a sweep: its sets as a pattern file would have them, the widest window, and all else as the sweep that the finding is of.
fn settings(test: &Test, like: &SweepSettings) -> SweepSettings {
    let transfers = (0_u32..).zip(&test.sets).flat_map(|(set, flows)| flows.iter().map(move |&(from, to)| Transfer { set, from, to }));
    SweepSettings {
        patterns: vec![Pattern::Custom],
        sizes: vec![test.bytes],
        ranks: Vec::new(),
        transfers: transfers.collect(),
        pairs: 0,
        isolated: true,
        repeats: test.repeats,
        ci: 0.0,
        budget: 0.0,
        window: test.windows.iter().copied().max().unwrap_or(like.window),
        mover: test.mover.unwrap_or(like.mover),
        ..like.clone()
    }
}

/// A command may come from another program's hand: what [`SweepSettings::check`] does not see.
fn alike(test: &Test) -> Result<(), String> {
    if test.sets.iter().any(Vec::is_empty) {
        return Err("the test has a set without transfers".to_owned());
    }
    if !(test.windows.is_empty() || test.windows.len() == test.sets.len()) || test.windows.contains(&0) {
        return Err(format!("the test has {} windows for {} sets: one above 0 for each, or none", test.windows.len(), test.sets.len()));
    }
    Ok(())
}
