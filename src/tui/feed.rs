//! What the screen is given: a terminal, and someone who emits the events.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use crossterm::event::Event as Input;

use super::keys::KeyError;
use super::state::Tab;
use super::theme::ThemeError;
use crate::export::svg::Canvas;
use crate::measure::Gate;
use crate::ramp::Level;
use crate::sample::MoverKind;
use crate::session::store::shelf::Entry;
use crate::session::{Command, Model, Record, Tape};
use crate::sweep::SweepSettings;
use crate::topology::Efficiency;

/// Where the events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// a job that ends with this screen
    Live,
    /// a job that goes on without this screen: leaving it sends nothing
    Attached,
    /// a session that was recorded: played back, nothing can be measured
    Recorded,
}

/// A recorded session that was read beside the screen, and what it comes to at its end.
#[derive(Debug)]
pub struct Played {
    pub records: Tape,
    pub model: Model,
}

/// What a feed had to tell.
#[derive(Debug, Default)]
pub struct Drained {
    /// all that a recorded session held, before `records`
    pub played: Option<Box<Played>>,
    /// new records, in order
    pub records: Vec<Record>,
    /// why nothing more will come, when the source has ended
    pub ended: Option<String>,
    /// what is waited for, in words, as long as it is
    pub waits: Option<String>,
}

/// Who emits the events and takes the commands.
pub trait Feed: Send {
    /// New records since the last call; never waits.
    fn drain(&mut self) -> Drained;
    /// Say what the person wants. Never waits; a refusal comes back as a notice event.
    fn send(&mut self, command: Command);
    /// Where the events come from; the same for the whole run.
    fn mode(&self) -> Mode;
}

/// What the person wants to keep.
#[derive(Debug, Clone)]
pub enum Keep {
    /// the screen as it is
    Picture {
        /// name of the session
        session: String,
        /// the tab, in small letters
        of: String,
        canvas: Canvas,
    },
    /// all that is known, for the report
    Report { model: Arc<Model> },
}

/// Who writes it: the screen itself touches no files.
pub trait Keeper: Send {
    /// Write this beside what else is done. Never waits.
    fn keep(&mut self, what: Keep);
    /// What has become of it, once each: where it lies, or why it does not.
    fn told(&mut self) -> Option<Result<String, String>>;
}

/// What is wanted of the recorded sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    List,
    Rename {
        folder: PathBuf,
        name: String,
    },
    Note {
        folder: PathBuf,
        text: String,
    },
    Delete {
        folder: PathBuf,
    },
    /// what it holds, to be compared with
    Load {
        folder: PathBuf,
    },
}

/// What became of a wish.
#[derive(Debug)]
pub enum ShelfTold {
    Listed(Vec<Entry>),
    /// done; with where the session lay and where it lies now, if that has changed
    Done {
        say: String,
        moved: Option<(PathBuf, PathBuf)>,
    },
    Refused(String),
    Loaded {
        name: String,
        model: Box<Model>,
    },
}

/// Who keeps the recorded sessions. Neither call waits.
pub trait Shelf: Send {
    /// Say what is wanted.
    fn ask(&mut self, wish: Wish);
    /// What became of earlier wishes.
    fn drain(&mut self) -> Vec<ShelfTold>;
}

/// This person's own theme files, as they are now; `None` if nothing has changed since the last call.
pub type Themes = Box<dyn FnMut() -> Option<BTreeMap<String, String>> + Send>;

/// The terminal, already in raw mode and on its alternate screen.
pub struct Tty {
    /// takes one write a frame
    pub output: Box<dyn Write + Send>,
    /// columns and rows, asked a few times a second
    pub size: Box<dyn Fn() -> (u16, u16) + Send>,
    /// keys, mouse, paste and resizes
    pub input: Arc<Mutex<Receiver<Input>>>,
}

/// All that a run of the screen needs.
pub struct Setup {
    pub feed: Box<dyn Feed>,
    pub keeper: Box<dyn Keeper>,
    pub tty: Tty,
    /// keeps drawing out of timed regions, where a rank of this process measures
    pub gate: Option<Arc<Gate>>,
    /// name of the first theme
    pub theme: String,
    /// texts of the person's own theme files, by name, read before the built-in ones
    pub themes: BTreeMap<String, String>,
    /// colours that the terminal can show; `None` to find out
    pub color: Option<Level>,
    /// text of the person's own key file
    pub keys: Option<String>,
    /// first filling of the Sweep tab
    pub settings: SweepSettings,
    /// movers that the engine has
    pub movers: Vec<MoverKind>,
    /// what links give of their nominal rate
    pub efficiency: Efficiency,
    /// another session, to be compared with
    pub against: Option<Model>,
    /// tab to open with; `None` for the one that fits
    pub start_tab: Option<Tab>,
    /// the mouse is the screen's from the beginning
    pub mouse: bool,
    /// frames a second, at most
    pub frames: u32,
    /// the recorded sessions
    pub shelf: Option<Box<dyn Shelf>>,
    /// asked at every look at the news whether theme files have changed
    pub changed_themes: Option<Themes>,
}

/// How a run of the screen ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// the person left
    Quit,
    /// the person left and did not want to wait for the probe that was running
    AtOnce,
    /// the source of events ended, for the reason given
    Feed(String),
    /// the terminal went away: its input closed
    Hangup,
    /// the person wants to see another session here, beside yet another if there is one to compare with
    Open { folder: PathBuf, against: Option<PathBuf> },
}

/// A screen that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// the terminal takes no more
    #[error("writing to the terminal: {0}")]
    Output(#[from] std::io::Error),
    /// a theme that cannot be used
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// keys that cannot be used
    #[error(transparent)]
    Keys(#[from] KeyError),
}
