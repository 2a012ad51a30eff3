//! A recorded session as the screen shows it; one of very many events is read beside the screen, which is there at once.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use anyhow::{Context, Result};

use super::{files, plans};
use crate::session::store::{self, Recorded};
use crate::session::{Command, Event, Record};
use crate::topology::Topology;
use crate::tui::{Drained, Feed, Mode};
use crate::units::{format_size, plain};

/// Bytes of events from which on they are read beside the screen: a tenth of a second's.
const LARGE: u64 = 32 << 20;

/// Where the events are.
enum Events {
    /// read, and not taken yet
    Here(Vec<Record>),
    /// being read: so many bytes
    Coming(Receiver<Result<Recorded>>, u64),
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
        let mut records = match &mut self.events {
            Events::Here(records) => std::mem::take(records),
            Events::Coming(recorded, bytes) => match recorded.try_recv() {
                Ok(Ok(recorded)) => {
                    self.events = Events::Here(Vec::new());
                    self.end = end(&recorded.records);
                    recorded.records
                }
                Ok(Err(error)) => return Drained { ended: Some(super::told(&error)), ..Drained::default() },
                Err(TryRecvError::Empty) => {
                    return Drained { waits: Some(format!("reading {} of events …", format_size(*bytes))), ..Drained::default() };
                }
                Err(TryRecvError::Disconnected) => {
                    return Drained { ended: Some("the session could not be read to its end".to_owned()), ..Drained::default() };
                }
            },
        };
        records.extend(self.later.drain(..).map(|event| Record { t: self.end, event }));
        Drained { records, ..Drained::default() }
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

fn end(records: &[Record]) -> f64 {
    records.last().map_or(0.0, |record| record.t)
}

/// A recorded session, beside another one if asked, with these plans.
pub(super) fn showing(session: &Path, against: Option<&Path>, plans: &[PathBuf]) -> Result<super::watch::screen::Showing> {
    let bytes = if session.is_dir() { store::size(session) } else { 0 };
    let (header, events, end) = if bytes > LARGE {
        let header = store::read_header(session)?;
        let (tell, told) = channel();
        let folder = session.to_owned();
        let read = move || drop(tell.send(store::read(&folder).map_err(anyhow::Error::from)));
        std::thread::Builder::new().name("reading".to_owned()).spawn(read).context("could not start the reader's thread")?;
        (header, Events::Coming(told, bytes), 0.0)
    } else {
        let Recorded { header, records, .. } = files::recorded(session)?;
        let end = end(&records);
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
