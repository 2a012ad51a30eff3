//! The matrix: digits in coloured cells for few ranks, half-block pixels for many, blocks by their worst for more.
//!
//! ```text
//! ╭ bandwidth, GB/s · peer · 256 MiB ──────╮   frame    title
//! │             0     1  ┊   2     3  send │   layout   header, lines between hosts, summaries
//! │ cell0 0     ·  ▐8.3▌ ┊ 7.9   8.3   8.2 │   digits   (or pixels)
//! │  recv     6.0   5.5    7.1   3.6       │
//! │ · not measured  ! timeout  3.6 ▒▒▒ 8.3 │   legend
//! ╰────────────────────────────────────────╯
//! ```

mod digits;
mod frame;
mod hit;
mod layout;
mod legend;
mod minimap;
mod paint;
mod pixels;
mod placed;
#[cfg(test)]
mod tests;

pub use hit::{Hit, HitMap};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::matrix::{Grid, Reduce};
use crate::sample::Pattern;
use crate::topology::Topology;
use crate::tui::theme::Theme;

use layout::{Groups, Kind, Layout};
use paint::Painter;
pub(in crate::tui) use paint::color;
use placed::Placed;

/// How much of a matrix is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zoom {
    /// all of it: digits if they fit, else pixels, else blocks of pairs by their worst
    #[default]
    Fit,
    /// one pixel a pair, scrolling with the cursor
    Pixels,
    /// digits, scrolling with the cursor
    Digits,
}

impl Zoom {
    /// The zoom after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Fit => Self::Pixels,
            Self::Pixels => Self::Digits,
            Self::Digits => Self::Fit,
        }
    }
}

/// Pairs that are marked, each, and in the legend.
#[derive(Debug, Clone, Copy)]
pub struct Lit<'a> {
    /// (sender, receiver), ascending
    pub cells: &'a [(usize, usize)],
    /// one column
    pub mark: &'a str,
    /// what the mark stands for
    pub name: &'a str,
}

/// A block of the pyramid that is looked at instead of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub level: usize,
    /// block along the edge of the senders
    pub senders: usize,
    /// block along the edge of the receivers
    pub receivers: usize,
}

/// What the matrix shows.
#[derive(Debug, Clone, Copy)]
pub struct MatrixView<'a> {
    /// values; its metric and domain decide on units and colours
    pub grid: &'a Grid,
    /// whose cells these are, for the heading
    pub pattern: Pattern,
    pub topology: &'a Topology,
    /// the group that each rank is in; `None` for its host
    pub groups: Option<&'a [String]>,
    /// sender and receiver under the cursor
    pub cursor: (usize, usize),
    /// two opposite corners of a block, each (sender, receiver)
    pub selection: Option<((usize, usize), (usize, usize))>,
    /// rows are receivers instead of senders
    pub transpose: bool,
    pub zoom: Zoom,
    /// which part of it is looked at; `None` for the whole
    pub window: Option<Window>,
    /// the way to that part, from the whole; empty if there is no other part to look at
    pub crumbs: &'a [String],
    /// what stands for a block
    pub reduce: Reduce,
    /// what follows the metric in the frame, most important first; what does not fit is left out
    pub title: &'a [String],
    /// ranks that do not answer any more, ascending
    pub lost: &'a [usize],
    /// ranks that send slowly and that receive slowly, ascending
    pub slow: (&'a [usize], &'a [usize]),
    /// pairs to be marked, those of a finding
    pub lit: Option<Lit<'a>>,
    /// the frame has the focus
    pub focused: bool,
    /// styles; its level decides on colours
    pub theme: &'a Theme,
}

impl MatrixView<'_> {
    /// (row, column) as drawn -> (sender, receiver), and back; places as well as blocks.
    const fn turn(&self, pair: (usize, usize)) -> (usize, usize) {
        if self.transpose { (pair.1, pair.0) } else { pair }
    }

    /// True if a pair is marked.
    fn is_lit(&self, pair: (usize, usize)) -> bool {
        self.lit.is_some_and(|lit| lit.cells.binary_search(&pair).is_ok())
    }
}

/// What a header says of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Lost,
    Slow,
}

impl Mark {
    const fn glyph(self) -> &'static str {
        match self {
            Self::Lost => "✗",
            Self::Slow => "▲",
        }
    }

    fn style(self, theme: &Theme) -> Style {
        theme.style(match self {
            Self::Lost => "state.error",
            Self::Slow => "state.warning",
        })
    }
}

/// Draw the matrix with its frame, headers, summaries and legend, in O(cells of the screen). What lies where is told in
/// return; nothing does in an area too small for a matrix.
pub fn draw(view: &MatrixView<'_>, area: Rect, buffer: &mut Buffer) -> HitMap {
    let area = area.intersection(buffer.area);
    if area.width < 4 || area.height < 4 {
        return HitMap::default();
    }
    let painter = Painter::new(view);
    let placed = Placed::of(view);
    let groups = [Groups::of(view, &placed, true), Groups::of(view, &placed, false)];
    let inner = frame::draw_border(view, area, buffer);
    let (body, map) = minimap::place(view, inner);
    let Some(layout) = Layout::choose(view, &painter, &placed, &groups, body) else {
        frame::draw_title(view, &painter, 0, area, buffer);
        return HitMap::default();
    };
    let level = match layout.kind {
        Kind::Digits { .. } => {
            digits::draw(view, &painter, &placed, &layout, buffer);
            0
        }
        Kind::Pixels { level } => {
            pixels::draw(view, &painter, &placed, &groups, &layout, level, buffer);
            level
        }
    };
    frame::draw_title(view, &painter, level, area, buffer);
    frame::draw_crumbs(view, area, buffer);
    frame::draw_row_headers(view, &placed, &groups[0], &layout, buffer);
    if let Some(map) = map {
        minimap::draw(view, &painter, &placed, map, buffer);
    }
    if let Some(y) = layout.legend_y {
        legend::draw(view, &painter, Rect { y, height: 1, ..inner }, buffer);
    }
    HitMap { columns: layout.columns, rows: layout.rows, transpose: view.transpose, level }
}
