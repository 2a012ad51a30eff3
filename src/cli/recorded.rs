//! A recorded session as the screen shows it; one of very many events is read beside the screen, which is there at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use anyhow::{Context, Result};

use super::{files, plans};
use crate::session::store::{self, Recorded};
use crate::session::{Command, Event, Header, Model, Record, Tape};
use crate::topology::Topology;
use crate::tui::{Drained, Feed, Mode, Played};
use crate::units::{format_size, plain};

/// Bytes of events from which on they are read beside the screen: a tenth of a second's.
const LARGE: u64 = 32 << 20;

/// Where the events are.
enum Events {
    /// read, and not taken yet
    Here(Vec<Record>),
    Coming(Coming),
}

/// A session that is being read.
struct Coming {
    played: Receiver<Result<Played>>,
    /// in all
    bytes: u64,
    /// so far
    read: Arc<AtomicU64>,
}

impl Coming {
    /// Begin.
    fn start(folder: &Path, header: &Header, bytes: u64) -> Result<Self> {
        let (tell, played) = channel();
        let read = Arc::new(AtomicU64::new(0));
        let (folder, header, told) = (folder.to_owned(), header.clone(), Arc::clone(&read));
        let whole = move || -> Result<Played> {
            let (mut records, mut model) = (Tape::default(), Model::new(header.clone()));
            store::each(&folder, &header, |record, bytes| {
                model.apply(&record);
                records.push(record);
                told.store(bytes, Ordering::Relaxed);
            })?;
            Ok(Played { records, model })
        };
        let reader = std::thread::Builder::new().name("reading".to_owned());
        // A screen that has gone wants nothing any more.
        reader.spawn(move || drop(tell.send(whole()))).context("could not start the reader's thread")?;
        Ok(Self { played, bytes, read })
    }

    fn told(&self) -> String {
        let share = self.read.load(Ordering::Relaxed) as f64 / self.bytes.max(1) as f64;
        format!("reading {} of events: {:.0} %", format_size(self.bytes), share.min(1.0) * 100.0)
    }
}

struct Replay {
    events: Events,
    /// what was asked meanwhile, and what was given along; behind all of the session
    later: Vec<Event>,
    /// of the last event, seconds
    end: f64,
    topology: Topology,
}

impl Feed for Replay {
    fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        match &mut self.events {
            Events::Here(records) => drained.records = std::mem::take(records),
            Events::Coming(coming) => match coming.played.try_recv() {
                Ok(Ok(played)) => {
                    self.end = played.records.len().checked_sub(1).and_then(|last| played.records.time(last)).unwrap_or(0.0);
                    self.events = Events::Here(Vec::new());
                    drained.played = Some(Box::new(played));
                }
                Ok(Err(error)) => return Drained { ended: Some(super::told(&error)), ..drained },
                Err(TryRecvError::Empty) => return Drained { waits: Some(coming.told()), ..drained },
                Err(TryRecvError::Disconnected) => {
                    return Drained { ended: Some("the session could not be read to its end".to_owned()), ..drained };
                }
            },
        }
        let (end, later) = (self.end, self.later.drain(..));
        drained.records.extend(later.map(|event| Record { t: end, event }));
        drained
    }

    fn send(&mut self, command: Command) {
        // A recorded session can still be asked what a plan would cost.
        let Command::LoadPlan { path } = command else { return };
        self.later.push(match plans::load(&path, &self.topology) {
            Ok(traffic) => Event::PlanLoaded { traffic },
            Err(why) => Event::Notice { text: plain(&why) },
        });
    }

    fn mode(&self) -> Mode {
        Mode::Recorded
    }
}

/// A recorded session, beside another one if asked, with these plans.
pub(super) fn showing(session: &Path, against: Option<&Path>, plans: &[PathBuf]) -> Result<super::watch::screen::Showing> {
    let bytes = if session.is_dir() { store::size(session) } else { 0 };
    let (header, events, end) = if bytes > LARGE {
        let header = store::read_header(session)?;
        let coming = Coming::start(session, &header, bytes)?;
        (header, Events::Coming(coming), 0.0)
    } else {
        let Recorded { header, records, .. } = files::recorded(session)?;
        let end = records.last().map_or(0.0, |record| record.t);
        (header, Events::Here(records), end)
    };
    let topology = header.topology.clone();
    let load = |path: &PathBuf| plans::load(path, &topology).map(|traffic| Event::PlanLoaded { traffic }).map_err(anyhow::Error::msg);
    let later = plans.iter().map(load).collect::<Result<Vec<Event>>>().context("--plan")?;
    let against = against.map(files::load).transpose().context("--against")?.map(Box::new);
    let settings = Box::new(header.settings.clone());
    let movers = vec![settings.mover];
    let feed = Box::new(Replay { events, later, end, topology });
    Ok(super::watch::screen::Showing::Session { header: Box::new(header), feed, settings, movers, against })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sessions/lab-4x4");

    /// What a feed that reads this folder tells, once it does not wait any more.
    fn drained(folder: &Path) -> Drained {
        let header = store::read_header(folder).unwrap();
        let coming = Coming::start(folder, &header, store::size(folder)).unwrap();
        let later = vec![Event::Notice { text: "later".to_owned() }];
        let mut replay = Replay { events: Events::Coming(coming), later, end: 0.0, topology: header.topology };
        let begun = Instant::now();
        loop {
            let drained = replay.drain();
            let Some(waits) = &drained.waits else { return drained };
            assert!(waits.starts_with("reading ") && waits.ends_with(" %") && drained.records.is_empty(), "{waits}");
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_session_read_beside_the_screen_is_the_same_session() {
        let recorded = store::read(Path::new(LAB)).unwrap();
        let told = drained(Path::new(LAB));
        let played = told.played.unwrap();
        assert_eq!((played.records.len(), played.model.samples()), (recorded.records.len(), files::fold(&recorded).samples()));
        // What was asked for meanwhile stands behind all of it.
        let last = recorded.records.last().unwrap().t;
        assert!(last > 0.0);
        assert_eq!(told.records, [Record { t: last, event: Event::Notice { text: "later".to_owned() } }]);
    }

    #[test]
    fn what_is_wrong_with_it_ends_the_screen_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(Path::new(LAB).join("header.json"), folder.path().join("header.json")).unwrap();
        std::fs::write(folder.path().join("events.ndjson"), "{\"t\":1,\"event\":\"paused\"}\nnothing\n").unwrap();
        let told = drained(folder.path());
        assert!(told.played.is_none() && told.ended.as_deref().is_some_and(|why| why.contains("events.ndjson:2:")), "{:?}", told.ended);
    }
}
