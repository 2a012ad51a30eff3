//! Who looks at a live job: the screen, the socket, the signals.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};

use super::args::Global;
use super::live::House;
use super::recorder::Recorder;
use crate::launch::socket::{Pass, Server};
use crate::launch::{signals, terminal};
use crate::measure::Gate;
use crate::sample::{EngineKind, MoverKind};
use crate::session::{Command, Event, Header, Record};
use crate::sweep::SweepSettings;

/// Name of the calibration that every session leaves in its folder.
pub(super) const CALIBRATION: &str = "calibration.json";

/// How long a probe may keep those who are attached waiting for news.
const SOCKET_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// Write the session's calibration beside its events; a failure is a notice, the samples are safe in the session.
pub(super) fn leave_calibration(recorder: &mut Recorder) {
    let path = recorder.folder().join(CALIBRATION);
    if let Err(error) = crate::export::write_calibration(recorder.model(), &path) {
        recorder.record(Event::Notice { text: format!("the calibration was not written: {error}") });
    }
}

/// What the watchers are given.
pub(super) struct Watched<'a> {
    pub(super) header: &'a Header,
    pub(super) records: Vec<Record>,
    pub(super) settings: SweepSettings,
    pub(super) movers: Vec<MoverKind>,
    pub(super) commands: Sender<Command>,
    pub(super) gate: &'a Arc<Gate>,
    pub(super) resume: String,
}

/// The watchers of a running job; [`Self::end`] before the last word is printed.
pub(super) struct Watchers {
    #[cfg(feature = "tui")]
    screen: Option<screen::Running>,
    socket: Option<Rc<Server>>,
}

impl Watched<'_> {
    pub(super) fn begin(self, global: &Global, house: &mut House, recorder: &Rc<RefCell<Recorder>>) -> Result<Watchers> {
        let (socket, engine) = (self.serve(recorder), self.header.engine);
        let screen = house.terminal.take().map(|terminal| terminal.enter(house.guard.clone())).transpose()?;
        let handle = screen.as_ref().map(terminal::Screen::handle);
        let (on_signal, guard) = (handle.clone(), house.guard.clone());
        signals::watch(move |caught| {
            if let Some(screen) = &on_signal {
                screen.restore();
            }
            // The guard sees this process end and tells the rest; without one the shell says how it ended.
            if let Some(guard) = &guard {
                guard.signal(caught.name());
            }
        })
        .context("could not watch for signals")?;
        let resume = format!("what was measured is in the session; go on with: {}", self.resume);
        terminal::panic_hook(handle, house.stderr.try_clone().ok(), move || resume.clone());
        if engine == EngineKind::Mpi {
            // An exit code is not enough for every launcher to end the other ranks; a signal is.
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                told(info);
                std::process::abort();
            }));
        }
        #[cfg(feature = "tui")]
        let screen = screen.map(|screen| screen::begin(self, global, screen, recorder)).transpose()?;
        Ok(Watchers {
            #[cfg(feature = "tui")]
            screen,
            socket,
        })
    }

    /// Serve the session on a socket; a job without one still measures.
    fn serve(&self, recorder: &Rc<RefCell<Recorder>>) -> Option<Rc<Server>> {
        let gate = Arc::clone(self.gate);
        let pass: Pass = Arc::new(move |work: &mut dyn FnMut()| gate.pass(SOCKET_PATIENCE, work));
        let events = recorder.borrow().events();
        match Server::start(&self.header.name, self.header, &events, self.commands.clone(), pass) {
            Ok(server) => {
                let server = Rc::new(server);
                let grown = Rc::clone(&server);
                recorder.borrow_mut().tell(move || grown.notify());
                Some(server)
            }
            Err(error) => {
                let text = format!("this job cannot be attached to: {error}");
                recorder.borrow_mut().record(Event::Notice { text });
                None
            }
        }
    }
}

impl Watchers {
    /// Screen off, terminal back, socket gone.
    pub(super) fn end(self) {
        #[cfg(feature = "tui")]
        if let Some(screen) = self.screen {
            screen.end();
        }
        drop(self.socket);
    }
}

#[cfg(feature = "tui")]
pub(super) mod screen {
    use std::cell::RefCell;
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::mpsc::{self, Sender};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::JoinHandle;

    use anyhow::{Context, Result};

    use super::super::args::Global;
    use super::super::keep::Writer;
    use super::super::look;
    use super::super::recorder::{Inbox, Recorder};
    use super::super::shelf::Library;
    use super::Watched;
    use crate::config;
    use crate::launch::guard::{self, Guard};
    use crate::launch::terminal::{self, Screen};
    use crate::launch::{keys, signals};
    use crate::sample::MoverKind;
    use crate::session::{Command, Header, Model};
    use crate::sweep::SweepSettings;
    use crate::tui::{self, Drained, Feed, Mode};

    /// The screen's thread and terminal.
    pub(super) struct Running {
        thread: JoinHandle<()>,
        over: Inbox,
        ended: Arc<Mutex<bool>>,
        screen: Screen,
        writer: Writer,
    }

    struct Live {
        inbox: Inbox,
        commands: Sender<Command>,
        ended: Arc<Mutex<bool>>,
    }

    impl Feed for Live {
        fn drain(&mut self) -> Drained {
            let records = std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
            let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            Drained { records, ended: ended.then(|| "the job has ended".to_owned()), ..Drained::default() }
        }

        fn send(&mut self, command: Command) {
            // A conductor that is gone takes no commands; the screen ends with it.
            let _ = self.commands.send(command);
        }

        fn mode(&self) -> Mode {
            Mode::Live
        }
    }

    pub(super) fn begin(watched: Watched<'_>, global: &Global, screen: Screen, recorder: &Rc<RefCell<Recorder>>) -> Result<Running> {
        let inbox: Inbox = Arc::new(Mutex::new(watched.records));
        recorder.borrow_mut().show(Arc::clone(&inbox));
        let ended = Arc::new(Mutex::new(false));
        let feed = Live { inbox: Arc::clone(&inbox), commands: watched.commands.clone(), ended: Arc::clone(&ended) };
        let (sender, input) = mpsc::channel();
        keys::prepare(&screen)?;
        keys::events(screen.handle(), sender)?;
        let handle = screen.handle();
        let tty = tui::Tty { output: Box::new(screen.writer()), size: Box::new(move || handle.size()), input: Arc::new(Mutex::new(input)) };
        let gate = Some(Arc::clone(watched.gate));
        let writer = look::writer(global, gate.clone())?;
        let setup = look::setup(global, Box::new(feed), writer.keeper(), tty, gate, watched.settings, watched.movers)?;
        let (header, commands) = (watched.header.clone(), watched.commands);
        let handle = screen.handle();
        let thread = std::thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || {
                match tui::run(setup, header) {
                    Err(error) => {
                        handle.restore();
                        handle.say(&format!("toposcope: the screen ended: {error}\n"));
                    }
                    // As if asked to end from outside: terminal back, and the guard tells the rest.
                    Ok(tui::Ended::AtOnce) => drop(signal_hook::low_level::raise(signal_hook::consts::SIGTERM)),
                    Ok(_) => {}
                }
                // Whatever ended the screen ends the job in order; after a person's own quit this changes nothing.
                let _ = commands.send(Command::Quit);
            })
            .context("could not start the screen's thread")?;
        Ok(Running { thread, over: inbox, ended, screen, writer })
    }

    /// What a screen of its own shows.
    pub(in crate::cli) enum Showing {
        Session {
            header: Box<Header>,
            feed: Box<dyn Feed>,
            settings: Box<SweepSettings>,
            movers: Vec<MoverKind>,
            /// another session, to be compared with
            against: Option<Box<Model>>,
        },
        /// the list of sessions, and why one of them is not shown
        List(Option<String>),
    }

    /// A screen of its own on this process's terminal: for recorded sessions, beside others if asked, and for other processes' jobs. `open`
    /// gets the session that the person chooses next.
    pub(in crate::cli) fn alone(
        global: &Global,
        first: Showing,
        mut open: impl FnMut(&Path, Option<&Path>) -> Result<Showing>,
    ) -> Result<u8> {
        let found = terminal::find(None, None).context("a recorded session can also be read with toposcope export")?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).map(std::fs::File::from)?;
        let guard = Guard::start(Some(&found), &stderr)?;
        guard.status(&guard::Status { watching: true, ..guard::Status::default() });
        let screen = found.enter(Some(guard.clone()))?;
        let handle = screen.handle();
        signals::watch(move |_| handle.restore()).context("could not watch for signals")?;
        terminal::panic_hook(Some(screen.handle()), Some(stderr), String::new);
        let (sender, input) = mpsc::channel();
        keys::prepare(&screen)?;
        keys::events(screen.handle(), sender)?;
        let input = Arc::new(Mutex::new(input));
        let writer = look::writer(global, None)?;
        let mut showing = first;
        let mut plays;
        let ended = loop {
            let handle = screen.handle();
            plays = matches!(&showing, Showing::Session { feed, .. } if feed.mode() == tui::Mode::Recorded);
            let tty = tui::Tty { output: Box::new(screen.writer()), size: Box::new(move || handle.size()), input: Arc::clone(&input) };
            match show(global, showing, &writer, tty) {
                Ok(tui::Ended::Open { folder, against }) => {
                    showing = open(&folder, against.as_deref()).unwrap_or_else(|error| Showing::List(Some(super::super::told(&error))));
                }
                ended => break ended,
            }
        };
        screen.restore();
        guard.dismiss();
        let handle = screen.handle();
        writer.end(|line| handle.say(&format!("toposcope: {line}\n")));
        if let tui::Ended::Feed(reason) = ended? {
            // A job ends; a recorded session only where it cannot be read.
            anyhow::ensure!(!plays, "{reason}");
            super::super::print(&format!("{reason}\n"));
        }
        Ok(super::super::FINE)
    }

    fn show(global: &Global, showing: Showing, writer: &Writer, tty: tui::Tty) -> Result<tui::Ended> {
        match showing {
            Showing::Session { header, feed, settings, movers, against } => {
                let against = against.map(|model| *model);
                let setup = look::setup(global, feed, writer.keeper(), tty, None, *settings, movers)?;
                let start_tab = if against.is_some() { Some(tui::Tab::Findings) } else { setup.start_tab };
                Ok(tui::run(tui::Setup { against, start_tab, ..setup }, *header)?)
            }
            Showing::List(why) => {
                let library = Library::new(config::sessions(&global.config));
                let level = tui::level(global.color.and_then(look::level));
                Ok(tui::browse(Box::new(library), tty, &look::look(global, level)?, why)?)
            }
        }
    }

    impl Running {
        pub(super) fn end(self) {
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
            drop(self.over);
            let _ = self.thread.join();
            self.screen.restore();
            let handle = self.screen.handle();
            self.writer.end(|line| handle.say(&format!("toposcope: {line}\n")));
        }
    }
}
