//! Where events go: the session's file first, then everyone who looks at it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::launch::guard::{Guard, Status};
use crate::session::store::{Store, StoreError};
use crate::session::{Event, Header, Model, Record};

/// Records on their way to the screen. Taken whole, between probes.
pub(super) type Inbox = Arc<Mutex<Vec<Record>>>;

/// The one place through which every event of a live job passes.
pub(super) struct Recorder {
    store: Store,
    model: Model,
    clock: Instant,
    /// the last time that the engine's own clock told, if it has one
    stamp: Option<f64>,
    /// time of the session before this job took it up, seconds
    before: f64,
    inbox: Option<Inbox>,
    guard: Option<Guard>,
    status: Status,
    /// told after each append
    grown: Vec<Box<dyn Fn()>>,
    failed: Option<StoreError>,
}

impl Recorder {
    pub(super) fn new(store: Store, header: Header, records: &[Record], guard: Option<Guard>, resume: String) -> Self {
        let mut model = Model::new(header);
        for record in records {
            model.apply(record);
        }
        let status = Status {
            watching: false,
            session: Some(store.folder().to_owned()),
            samples: model.samples(),
            probe: None,
            resume: Some(resume),
        };
        if let Some(guard) = &guard {
            guard.status(&status);
        }
        let before = model.now;
        Self { store, model, clock: Instant::now(), stamp: None, before, inbox: None, guard, status, grown: Vec::new(), failed: None }
    }

    /// Also hand records to a screen.
    pub(super) fn show(&mut self, inbox: Inbox) {
        self.inbox = Some(inbox);
    }

    /// Also tell this one that the file has grown.
    pub(super) fn tell(&mut self, grown: impl Fn() + 'static) {
        self.grown.push(Box::new(grown));
    }

    /// Tell nobody any more.
    pub(super) fn alone(&mut self) {
        self.grown.clear();
        self.inbox = None;
    }

    /// What has happened so far.
    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// The session's folder.
    pub(super) fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// The file of events.
    pub(super) fn events(&self) -> PathBuf {
        self.store.events_path()
    }

    /// Take in an event of the engine's, which happened at this time of its own clock if it has one, seconds.
    pub(super) fn record_at(&mut self, stamp: Option<f64>, event: Event) {
        self.stamp = stamp.or(self.stamp);
        self.record(event);
    }

    /// Take in an event: on disk before anywhere else.
    pub(super) fn record(&mut self, event: Event) {
        // A clock that is not ours does not go on between its own events.
        let now = self.stamp.unwrap_or_else(|| self.clock.elapsed().as_secs_f64());
        let record = Record { t: self.before + now, event };
        self.write(&record);
        self.model.apply(&record);
        self.note(&record.event);
        for grown in &self.grown {
            grown();
        }
        if let Some(inbox) = &self.inbox {
            inbox.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        }
    }

    fn write(&mut self, record: &Record) {
        let Err(error) = self.store.append(record) else { return };
        // A full disk must not end a measurement: say so once, and go on in memory.
        if self.failed.is_none() {
            let text = format!("the session cannot be written any more: {error}; what follows is lost when this job ends");
            let notice = Record { t: record.t, event: Event::Notice { text } };
            self.model.apply(&notice);
            if let Some(inbox) = &self.inbox {
                inbox.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
            }
            self.failed = Some(error);
        }
    }

    /// Keep the guard's knowledge of what is going on up to date.
    fn note(&mut self, event: &Event) {
        match event {
            Event::ProbeStarted { probe } => self.status.probe = Some(probe.describe()),
            Event::TestStarted { test, .. } => self.status.probe = Some(format!("test: {}", test.say)),
            Event::ExecutionStarted { name } => self.status.probe = Some(format!("the run of {name}")),
            Event::ProbeDone { .. } | Event::SweepEnded { .. } | Event::TestDone { .. } | Event::ExecutionDone(_) => {
                self.status.probe = None;
                self.status.samples = self.model.samples();
            }
            _ => return,
        }
        if let Some(guard) = &self.guard {
            guard.status(&self.status);
        }
    }

    /// Remove the session if nothing was ever asked of it; true if it is gone. Only its own two files are touched.
    pub(super) fn discard_empty(&self) -> bool {
        let folder = self.store.folder();
        let files = ["events.ndjson", "header.json"].map(|name| folder.join(name));
        self.model.sweep.is_none()
            && self.model.executions.is_empty()
            && files.iter().all(|file| std::fs::remove_file(file).is_ok())
            && std::fs::remove_dir(folder).is_ok()
    }

    /// The error that ended writing, if one did.
    pub(super) fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }
}
