//! Drawing: `&` in, a buffer and a hit map out.
//!
//! ```text
//! toposcope  NAME  8 ranks · 1 host · mpi            ● peer 0→1 64 MiB  ━━━╌╌╌  61 %   0:11 left   header::first_line
//!  1 Topology  2 Sweep ▸3 Matrix  4 Fits  5 Fans  6 Findings 3  7 Replay  8 Session                              ? help    header::tab_line
//! ╭ topology | sweep | matrix | fits | fans | session ──────────────╮╭ estimate | pair | fan | log ───────╮
//! │                                                      ││                                    │   one file a tab
//! ╰──────────────────────────────────────────────────────╯╰────────────────────────────────────╯
//!  m metric  s size  r re-measure ...                                                    q quit    header::last_line
//! ```

mod browser;
mod changes;
mod classes;
mod copied;
mod fan;
mod fans;
mod finding;
mod findings;
mod fit_detail;
mod fits;
mod footer;
mod form;
mod header;
mod inspector;
mod matrix;
mod palette;
mod popup;
mod replay;
mod route;
mod session;
mod standout;
mod sweep;
mod text;
mod topology;

pub use browser::draw as draw_sessions;
pub use copied::facts_text;
pub use sweep::guess;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::atlas::Atlas;
use super::expected::Expected;
use super::fans::Fans;
use super::feed::Mode;
use super::findings::Desk;
use super::fits::{Book, Column};
use super::form::Field;
use super::keys::Action;
use super::look::Look;
use super::player::Player;
use super::replay::{Lights, Replays};
use super::state::{Tab, Ui};
use super::view::View;
use super::widgets;
use crate::session::{Model, Running};

/// The smallest terminal that holds the screen: columns and rows.
pub const SMALLEST: (u16, u16) = (60, 18);

/// All that a frame is drawn from.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub model: &'a Model,
    pub view: &'a View,
    pub atlas: &'a Atlas,
    pub expected: &'a Expected,
    pub fans: &'a Fans,
    pub fits: &'a Book,
    pub desk: &'a Desk,
    pub replays: &'a Replays,
    /// links that bytes of the replay pass
    pub lights: &'a Lights,
    pub ui: &'a Ui,
    pub look: &'a Look,
    pub mode: Mode,
    /// the time of a recorded session
    pub player: Option<&'a Player>,
}

impl Scene<'_> {
    /// True while a sweep runs or pauses.
    pub fn running(&self) -> bool {
        running(self.model)
    }
}

/// True while a sweep runs or pauses.
pub fn running(model: &Model) -> bool {
    model.sweep.as_ref().is_some_and(|sweep| matches!(sweep.running, Running::Measuring | Running::Paused))
}

/// What lies where, for the mouse and for how far things scroll.
#[derive(Debug, Clone, Default)]
pub struct HitMap {
    pub tabs: Vec<(Rect, Tab)>,
    /// lines of the tree
    pub tree_rows: Vec<(Rect, usize)>,
    /// notes of a host, and their largest scroll
    pub notes: Option<(Rect, usize)>,
    pub fields: Vec<(Rect, Field)>,
    pub matrix: widgets::matrix::HitMap,
    /// lines that name a pair
    pub pairs: Vec<(Rect, (usize, usize))>,
    pub slider: Option<Rect>,
    /// headings of the table of fits, and its rows
    pub columns: Vec<(Rect, Column)>,
    pub fit_rows: Vec<(Rect, usize)>,
    /// list of a fit's residuals, and its largest scroll
    pub residuals: Option<(Rect, usize)>,
    /// roots, relays and sets of the Fans tab, and a root's fan where one lies
    pub entries: Vec<(Rect, (usize, Option<usize>))>,
    /// the fans of the chosen root
    pub fans: Vec<(Rect, usize)>,
    /// list of a fan's peers, and its largest scroll
    pub peers: Option<(Rect, usize)>,
    /// findings, or alarms held back
    pub findings: Vec<(Rect, usize)>,
    /// what is told of one, and its largest scroll
    pub detail: Option<(Rect, usize)>,
    /// the timeline of a replay, and the seconds at its ends
    pub timeline: Option<Rect>,
    pub times: Option<(f64, f64)>,
    /// resources of a replay
    pub resources: Vec<(Rect, usize)>,
    /// lines of the form of strategies, and the strategies after them
    pub strategies: Vec<(Rect, usize)>,
    /// who sends to whom, and the largest scroll
    pub lanes: Option<(Rect, usize)>,
    /// words that stand for a key
    pub actions: Vec<(Rect, Action)>,
    /// list of samples, and its largest scroll
    pub samples: Option<(Rect, usize)>,
    /// facts of the session, and their largest scroll
    pub facts: Option<(Rect, usize)>,
    /// the log, and its largest scroll
    pub log: Option<(Rect, usize)>,
    /// rows of the placement table
    pub placement_rows: usize,
    /// largest scroll of the help page
    pub help_scroll: usize,
}

/// Draw a frame.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) -> HitMap {
    let area = area.intersection(buf.area);
    let mut hits = HitMap::default();
    buf.set_style(area, scene.look.ground());
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(scene.look, buf, area);
        return hits;
    }
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    header::first_line(scene, buf, row(0));
    header::tab_line(scene, buf, row(1), &mut hits);
    let body = Rect { y: area.y + 2, height: area.height - 3, ..area };
    match scene.ui.tab {
        Tab::Topology => topology::draw(scene, buf, body, &mut hits),
        Tab::Sweep => sweep::draw(scene, buf, body, &mut hits),
        Tab::Matrix => matrix::draw(scene, buf, body, &mut hits),
        Tab::Fits => fits::draw(scene, buf, body, &mut hits),
        Tab::Fans => fans::draw(scene, buf, body, &mut hits),
        Tab::Findings => findings::draw(scene, buf, body, &mut hits),
        Tab::Replay => replay::draw(scene, buf, body, &mut hits),
        Tab::Session => session::draw(scene, buf, body, &mut hits),
    }
    header::last_line(scene, buf, row(area.height - 1));
    popup::draw(scene, buf, body, &mut hits);
    hits
}

/// A plain message instead of a broken picture.
fn too_small(look: &Look, buf: &mut Buffer, area: Rect) {
    let lines =
        ["toposcope".to_owned(), format!("needs {} × {}", SMALLEST.0, SMALLEST.1), format!("this is {} × {}", area.width, area.height)];
    let top = area.height.saturating_sub(lines.len() as u16) / 2;
    for (y, line) in (top..area.height).zip(lines) {
        let line = Line::from(text::span(text::cut(&line, usize::from(area.width)), look.text()));
        let x = area.width.saturating_sub(line.width() as u16) / 2;
        text::put_at(buf, area, x, y, &line);
    }
}
