//! Where the person is: tab, cursor, what is typed, what lies on top. No facts of the session.

use super::atlas::{Atlas, Grouping, Order, TopologyPanel};
use super::browser::Browser;
use super::findings::{FindingsPanel, FindingsSight};
use super::fits::Column;
use super::form::Form;
use super::keys::Context;
use super::palette::Palette;
use super::replay::ReplayPanel;
use super::typing::Typing;
use super::update::Effect;
use super::widgets::matrix::{Window, Zoom};
use crate::matrix::{Axes, Edge, Metric, Reduce};
use crate::sample::{MoverKind, Pattern};
use crate::sweep::SweepSettings;

/// A tab that exists; its number is the same in every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Topology,
    Sweep,
    Matrix,
    Fits,
    Fans,
    Findings,
    Replay,
    Session,
}

impl Tab {
    /// All tabs, left to right.
    pub const ALL: [Self; 8] =
        [Self::Topology, Self::Sweep, Self::Matrix, Self::Fits, Self::Fans, Self::Findings, Self::Replay, Self::Session];

    /// The digit that opens it.
    pub const fn number(self) -> u8 {
        match self {
            Self::Topology => 1,
            Self::Sweep => 2,
            Self::Matrix => 3,
            Self::Fits => 4,
            Self::Fans => 5,
            Self::Findings => 6,
            Self::Replay => 7,
            Self::Session => 8,
        }
    }

    /// The name on the tab line.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Topology => "Topology",
            Self::Sweep => "Sweep",
            Self::Matrix => "Matrix",
            Self::Fits => "Fits",
            Self::Fans => "Fans",
            Self::Findings => "Findings",
            Self::Replay => "Replay",
            Self::Session => "Session",
        }
    }

    /// The same where the line is short.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Topology => "Topo",
            Self::Findings => "Find",
            Self::Replay => "Play",
            Self::Session => "Log",
            other => other.title(),
        }
    }

    /// Where its own keys count.
    pub const fn context(self) -> Option<Context> {
        match self {
            Self::Topology => Some(Context::Topology),
            Self::Sweep => Some(Context::Sweep),
            Self::Matrix => Some(Context::Matrix),
            Self::Fits => Some(Context::Fits),
            Self::Fans => Some(Context::Fans),
            Self::Findings => Some(Context::Findings),
            Self::Replay => Some(Context::Replay),
            Self::Session => None,
        }
    }

    /// The tab beside this one, round the end.
    #[must_use]
    pub fn beside(self, next: bool) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        let step = if next { 1 } else { Self::ALL.len() - 1 };
        Self::ALL[(at + step) % Self::ALL.len()]
    }
}

/// A question before something that cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// leave, although a sweep runs
    Quit,
    /// stop the sweep for good
    Abort,
    /// run a plan on the ranks
    Execute,
}

/// What lies on top of the tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popup {
    /// all keys; first line shown
    Help {
        scroll: usize,
    },
    Confirm(Ask),
    /// all actions by name
    Palette,
    /// recorded sessions
    Sessions,
}

/// The Matrix tab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixPanel {
    /// sender and receiver under the cursor
    pub cursor: (usize, usize),
    /// the other corner of the block, if one is being chosen
    pub anchor: Option<(usize, usize)>,
    pub metric: Metric,
    /// peer or duplex; `None` for the one that is measured
    pub pattern: Option<Pattern>,
    /// message size; `None` for the one that fits
    pub size: Option<u64>,
    /// first sample shown in the inspector
    pub scroll: usize,
    pub zoom: Zoom,
    /// how far into the whole one looks, along [`Axes::stops`]
    pub depth: usize,
    /// in which order ranks stand along the edges
    pub order: Order,
    /// what stands for a block
    pub reduce: Reduce,
    /// what is looked for, if it is being typed
    pub typing: Option<Typing>,
    /// what was looked for last
    pub wanted: String,
    /// by what ranks are ruled off from each other
    pub grouping: Grouping,
    /// rows are receivers instead of senders
    pub transpose: bool,
    /// a click holds the cursor where it is while the pointer moves
    pub pinned: bool,
    /// which of the suspects was visited last
    pub suspect: Option<usize>,
}

impl MatrixPanel {
    /// The part of the whole that is looked at: the block with the cursor at the level of the depth. `None` for the whole.
    pub fn window(&self, axes: &Axes) -> Option<Window> {
        let level = *axes.stops().get(self.depth).filter(|_| self.depth > 0)?;
        let (row, column) = axes.places(self.cursor);
        Some(Window { level, senders: axes.block_of(level, row), receivers: axes.block_of(level, column) })
    }

    /// Put the cursor on a pair.
    pub fn put(&mut self, (from, to): (usize, usize), world: usize) {
        let last = world.saturating_sub(1);
        let cursor = (from.min(last), to.min(last));
        if cursor != self.cursor {
            self.cursor = cursor;
            self.scroll = 0;
        }
    }

    /// Senders and receivers of the block that is being chosen, each ascending: of all pairs of the blocks of `level` that it
    /// reaches, as they are drawn.
    pub fn block(&self, axes: &Axes, level: usize) -> (Vec<usize>, Vec<usize>) {
        let (a, b) = (axes.places(self.cursor), axes.places(self.anchor.unwrap_or(self.cursor)));
        let ranks = |edge: Edge, a: usize, b: usize| {
            let (first, last) = (axes.block_of(level, a.min(b)), axes.block_of(level, a.max(b)));
            let places = axes.span(level, first).start..axes.span(level, last).end;
            let mut ranks: Vec<usize> = places.map(|place| axes.rank(edge, place)).collect();
            ranks.sort_unstable();
            ranks
        };
        (ranks(Edge::Senders, a.0, b.0), ranks(Edge::Receivers, a.1, b.1))
    }
}

/// The Fits tab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FitsPanel {
    pub column: Column,
    /// largest first
    pub descending: bool,
    /// words that a row must have; empty for all rows
    pub filter: String,
    /// the filter being typed, if it is
    pub typing: Option<Typing>,
    /// the row with the cursor
    pub at: usize,
    /// first residual shown
    pub scroll: usize,
}

/// The Fans tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FansPanel {
    /// `fan_in` or `fan_out`; `None` for the one that is measured
    pub direction: Option<Pattern>,
    /// message size; `None` for the one that fits
    pub size: Option<u64>,
    /// the chosen root, or the relay or set after them
    pub entry: usize,
    /// which of the root's fans is looked at, by width and peers; beyond them for the last
    pub fan: usize,
    /// first peer or transfer shown
    pub scroll: usize,
}

impl Default for FansPanel {
    /// The first root's widest fan.
    fn default() -> Self {
        Self { direction: None, size: None, entry: 0, fan: usize::MAX, scroll: 0 }
    }
}

/// Whose lines the log shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whose {
    #[default]
    All,
    /// the program's own notices
    Program,
    Rank(usize),
}

/// The Session tab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPanel {
    /// lines between the end of the log and the last one shown; 0 follows
    pub scroll: usize,
    /// first line of the facts shown
    pub facts: usize,
    pub whose: Whose,
}

/// A word to the person that goes by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub text: String,
    /// seconds left to show it
    pub left: f64,
    /// true for refusals
    pub refusal: bool,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Ui {
    pub tab: Tab,
    pub topology: TopologyPanel,
    pub matrix: MatrixPanel,
    pub form: Form,
    pub fits: FitsPanel,
    pub fans: FansPanel,
    pub findings: FindingsPanel,
    pub replay: ReplayPanel,
    pub session: SessionPanel,
    pub palette: Palette,
    pub browser: Browser,
    /// the last one is on top
    pub popups: Vec<Popup>,
    pub notice: Option<Notice>,
    /// where the left button went down, if on a cell of the matrix
    pub pressed: Option<(usize, usize)>,
    /// the mouse was given back to the terminal
    pub mouse_released: bool,
}

impl Ui {
    /// Seconds that a notice stays.
    const NOTICE: f64 = 6.0;

    /// A fresh state, with the Sweep tab filled in.
    pub fn new(tab: Tab, settings: &SweepSettings, movers: Vec<MoverKind>) -> Self {
        Self {
            tab,
            topology: TopologyPanel::default(),
            // The first pair; `fit` keeps it within the ranks.
            matrix: MatrixPanel { cursor: (0, 1), ..MatrixPanel::default() },
            form: Form::new(settings, movers),
            fits: FitsPanel::default(),
            fans: FansPanel::default(),
            findings: FindingsPanel::default(),
            replay: ReplayPanel::default(),
            session: SessionPanel::default(),
            palette: Palette::default(),
            browser: Browser::default(),
            popups: Vec::new(),
            notice: None,
            pressed: None,
            mouse_released: false,
        }
    }

    /// Show first what changed since the session that is compared with.
    pub fn compare(&mut self) {
        self.findings.sight = FindingsSight::Changes;
        self.matrix.metric = Metric::Change;
    }

    /// Keep the cursor within `world` ranks.
    pub fn fit(&mut self, world: usize) {
        self.matrix.put(self.matrix.cursor, world);
    }

    /// The line being typed on the tab in sight, if one is.
    pub fn typing(&mut self) -> Option<&mut Typing> {
        match self.popups.last() {
            Some(Popup::Palette) => return Some(&mut self.palette.typing),
            Some(Popup::Sessions) => return self.browser.typing.as_mut().map(|(.., typing)| typing),
            Some(Popup::Help { .. } | Popup::Confirm(_)) => return None,
            None => {}
        }
        match self.tab {
            Tab::Sweep => self.form.typing.as_mut(),
            Tab::Fits => self.fits.typing.as_mut(),
            Tab::Topology => self.topology.typing.as_mut(),
            Tab::Replay if self.replay.typing.is_some() => self.replay.typing.as_mut(),
            Tab::Replay => self.replay.form.typing.as_mut(),
            Tab::Matrix => self.matrix.typing.as_mut(),
            Tab::Fans | Tab::Findings | Tab::Session => None,
        }
    }

    /// Take what was typed.
    pub fn accept(&mut self, atlas: &Atlas) -> Effect {
        match self.tab {
            Tab::Replay => return self.load_typed(),
            Tab::Fits => self.fits.typing = None,
            Tab::Topology => {
                if let Some(word) = self.topology.accept(atlas) {
                    self.say(word, true);
                }
            }
            Tab::Matrix => {
                if let Some(word) = self.matrix.accept(atlas) {
                    self.say(word, true);
                }
            }
            _ => self.form.accept(),
        }
        Effect::Nothing
    }

    /// Drop what was typed.
    pub fn cancel_typing(&mut self) {
        match self.tab {
            Tab::Fits => {
                self.fits.typing = None;
                self.fits.filter.clear();
            }
            Tab::Topology => self.topology.typing = None,
            Tab::Matrix => self.matrix.typing = None,
            Tab::Replay => (self.replay.typing, self.replay.form.typing) = (None, None),
            _ => self.form.cancel(),
        }
    }

    /// Tell something in one line.
    pub fn say(&mut self, text: impl Into<String>, refusal: bool) {
        self.notice = Some(Notice { text: text.into(), left: Self::NOTICE, refusal });
    }

    /// Let time go by; true if something changed on the screen.
    pub fn tick(&mut self, seconds: f64) -> bool {
        let Some(notice) = &mut self.notice else { return false };
        notice.left -= seconds;
        let gone = notice.left <= 0.0;
        if gone {
            self.notice = None;
        }
        gone
    }
}
