//! The matrix: digits in coloured cells for few ranks, half-block pixels for many.

mod hit;

pub use hit::{Hit, HitMap};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::matrix::Grid;
use crate::topology::Topology;
use crate::tui::theme::Theme;

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
    pub const fn next(self) -> Self {
        match self {
            Self::Fit => Self::Pixels,
            Self::Pixels => Self::Digits,
            Self::Digits => Self::Fit,
        }
    }
}

/// What the matrix shows.
#[derive(Debug, Clone, Copy)]
pub struct MatrixView<'a> {
    /// values; its metric and domain decide on units and colours
    pub grid: &'a Grid,
    pub topology: &'a Topology,
    /// sender and receiver under the cursor
    pub cursor: (usize, usize),
    /// two opposite corners of a block, each (sender, receiver)
    pub selection: Option<((usize, usize), (usize, usize))>,
    /// rows are receivers instead of senders
    pub transpose: bool,
    pub zoom: Zoom,
    /// what follows the metric in the frame: `256 MiB · median of 8`
    pub title: &'a str,
    /// the frame has the focus
    pub focused: bool,
    /// styles; its level decides on colours
    pub theme: &'a Theme,
}

/// Draw the matrix with its frame, headers, summaries and legend. What lies where is told in return.
pub fn draw(view: &MatrixView<'_>, area: Rect, buffer: &mut Buffer) -> HitMap {
    let _ = (view, area, buffer);
    HitMap::default()
}
