//! The size curve: bandwidth over message size, both logarithmic, in braille dots.
//!
//! ```text
//!  53.9 ⠀⠀⠀⠀⢀⡠⠔⠒⠊⠉⠉   median, its interval as a bar
//!  GB/s ⠀⡠⠊
//!  0.21 ⠤⠒⠁
//!       4Ki    1Mi  256Mi
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::braille::{Dots, place};
use crate::fit::Interval;
use crate::matrix::{Metric, Unit};
use crate::tui::theme::Theme;
use crate::units::format_size;

/// Columns of the labels on the left, the space after them included.
pub(super) const LABELS: u16 = 7;

/// One measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// size of one message, bytes
    pub bytes: u64,
    /// median bandwidth, bytes per second; NaN if not known
    pub bandwidth: f64,
    /// interval of the median, bytes per second
    pub interval: Option<Interval>,
}

/// What the curve shows.
#[derive(Debug, Clone, Copy)]
pub struct CurveView<'a> {
    /// by size ascending
    pub points: &'a [Point],
    /// the size that the matrix shows, marked on the axis
    pub marked: Option<u64>,
    /// unit of the bandwidths
    pub unit: Unit,
    pub theme: &'a Theme,
}

/// Draw the curve with its axes into an area; nothing is drawn below 12 columns or 3 rows.
pub fn draw(view: &CurveView<'_>, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.width < LABELS + 5 || area.height < 3 {
        return;
    }
    let dim = view.theme.style("ui.text.dim");
    let points: Vec<Point> = view.points.iter().filter(|point| point.bandwidth.is_finite() && point.bandwidth > 0.0).copied().collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        buffer.set_stringn(area.x, area.y, "no sample yet", usize::from(area.width), dim);
        return;
    };
    let plot = Rect { x: area.x + LABELS, width: area.width - LABELS, height: area.height - 1, ..area };
    let axes = Axes::of(&points, plot);
    let (mut bars, mut line) = (Dots::new(plot), Dots::new(plot));
    for point in &points {
        if let Some(interval) = point.interval.filter(|interval| interval.low > 0.0 && interval.high.is_finite()) {
            let x = axes.x(point.bytes);
            bars.line((x, axes.y(interval.low)), (x, axes.y(interval.high)));
        }
    }
    for pair in points.windows(2) {
        line.line((axes.x(pair[0].bytes), axes.y(pair[0].bandwidth)), (axes.x(pair[1].bytes), axes.y(pair[1].bandwidth)));
    }
    for point in &points {
        line.set((axes.x(point.bytes), axes.y(point.bandwidth)));
    }
    bars.draw(None, view.theme.style("curve.interval"), buffer);
    line.draw(Some(&bars), view.theme.style("curve"), buffer);

    axis_labels(&axes, view.unit, view.theme, area, buffer);
    size_labels(&points, (first.bytes, last.bytes), (view.marked, view.theme), &axes, plot, buffer);
}

/// The ends of the bandwidths and their unit, on the left.
pub(super) fn axis_labels(axes: &Axes, unit: Unit, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let dim = theme.style("ui.text.dim");
    let bottom = area.bottom() - 1;
    let label = |y: u16, text: &str, buffer: &mut Buffer| {
        let width = usize::from(LABELS - 1);
        buffer.set_stringn(area.x, y, format!("{text:>width$}"), width, dim);
    };
    label(area.y, &Metric::Bandwidth.format(axes.high, unit), buffer);
    if area.height > 3 {
        label(area.y + 1, unit.name, buffer);
    }
    label(bottom - 1, &Metric::Bandwidth.format(axes.low, unit), buffer);
}

/// Sizes below the axis: both ends, the marked one, and others where room is left.
pub(super) fn size_labels(
    points: &[Point],
    (first, last): (u64, u64),
    (marked, theme): (Option<u64>, &Theme),
    axes: &Axes,
    plot: Rect,
    buffer: &mut Buffer,
) {
    let y = plot.bottom();
    let mut taken: Vec<(u16, u16)> = Vec::new();
    let wanted = marked.into_iter().chain([first, last]).chain(points.iter().map(|point| point.bytes));
    for bytes in wanted {
        if !points.iter().any(|point| point.bytes == bytes) {
            continue;
        }
        let text = short_size(bytes);
        let width = text.chars().count() as u16;
        let middle = plot.x + (axes.x(bytes) / 2) as u16;
        let x = middle.saturating_sub(width / 2).clamp(plot.x, plot.right().saturating_sub(width).max(plot.x));
        if taken.iter().any(|&(start, end)| x < end + 1 && start < x + width + 1) {
            continue;
        }
        taken.push((x, x + width));
        let style = theme.style(if marked == Some(bytes) { "ui.crosshair" } else { "ui.text.dim" });
        buffer.set_stringn(x, y, text, usize::from(plot.right().saturating_sub(x)), style);
    }
}

/// `4Ki`, `256Mi`: a size as an axis says it.
fn short_size(bytes: u64) -> String {
    format_size(bytes).replace(' ', "").replace("iB", "i")
}

/// Logarithmic axes onto dots.
pub(super) struct Axes {
    sizes: (f64, f64),
    low: f64,
    high: f64,
    dots: (usize, usize),
}

impl Axes {
    pub fn of(points: &[Point], plot: Rect) -> Self {
        let mut range = (f64::INFINITY, 0.0_f64);
        for point in points {
            let interval = point.interval.filter(|interval| interval.low > 0.0 && interval.high.is_finite());
            let (low, high) = interval.map_or((point.bandwidth, point.bandwidth), |interval| (interval.low, interval.high));
            range = (range.0.min(low).min(point.bandwidth), range.1.max(high).max(point.bandwidth));
        }
        // A flat curve is drawn flat, not as its noise.
        if range.1 < range.0 * 1.5 {
            let middle = (range.0 * range.1).sqrt();
            range = (middle / 1.5_f64.sqrt(), middle * 1.5_f64.sqrt());
        }
        let sizes = points.iter().fold((u64::MAX, 0), |(low, high), point| (low.min(point.bytes), high.max(point.bytes)));
        let dots = (usize::from(plot.width) * 2, usize::from(plot.height) * 4);
        Self { sizes: (sizes.0.max(1) as f64, sizes.1.max(1) as f64), low: range.0, high: range.1, dots }
    }

    pub fn x(&self, bytes: u64) -> usize {
        place(bytes.max(1) as f64, self.sizes, self.dots.0)
    }

    /// The size at a column of dots.
    pub fn bytes(&self, x: usize) -> f64 {
        let share = x as f64 / (self.dots.0 - 1).max(1) as f64;
        self.sizes.0 * (self.sizes.1 / self.sizes.0).powf(share)
    }

    /// From the top.
    pub fn y(&self, bandwidth: f64) -> usize {
        self.dots.1 - 1 - place(bandwidth, (self.low, self.high), self.dots.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramp::Level;
    use crate::tui::theme::Themes;
    use crate::tui::widgets::styled;

    fn drawn(points: &[Point], marked: Option<u64>, width: u16, height: u16) -> Buffer {
        let (theme, _) = Themes::default().load("dark", Level::TrueColor).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&CurveView { points, marked, unit: Metric::Bandwidth.unit(1e9), theme: &theme }, buffer.area, &mut buffer);
        buffer
    }

    /// α 10 µs and 50 GB/s, with an interval of 20 %.
    fn points() -> Vec<Point> {
        (6..15)
            .map(|k| {
                let bytes = 1_u64 << (2 * k);
                let bandwidth = bytes as f64 / (1e-5 + bytes as f64 / 50e9);
                Point { bytes, bandwidth, interval: Some(Interval { low: bandwidth * 0.7, high: bandwidth * 1.2 }) }
            })
            .collect()
    }

    #[test]
    fn a_saturating_curve() {
        insta::assert_snapshot!("curve_40x8", styled::both(&drawn(&points(), Some(1 << 20), 40, 8)));
        insta::assert_snapshot!("curve_20x4", styled::text(&drawn(&points(), None, 20, 4)));
    }

    #[test]
    fn more_is_higher_and_to_the_right() {
        let mut flat = points();
        for point in &mut flat {
            point.interval = None;
        }
        let buffer = drawn(&flat, None, 40, 10);
        let dotted = |x: u16, y: u16| ('\u{2801}'..='\u{28ff}').contains(&buffer[(x, y)].symbol().chars().next().unwrap());
        let top = |x: u16| (0..9).find(|&y| dotted(x, y)).unwrap();
        assert_eq!((top(LABELS), top(39)), (8, 0));
        assert!((LABELS..39).all(|x| top(x + 1) <= top(x)));
    }

    #[test]
    fn odd_input_is_drawn_or_left() {
        let nan = Point { bytes: 4096, bandwidth: f64::NAN, interval: None };
        assert!(styled::text(&drawn(&[nan], None, 40, 6)).contains("no sample yet"));
        let one = Point { bytes: 0, bandwidth: 1e9, interval: Some(Interval { low: 0.0, high: f64::INFINITY }) };
        let text = styled::text(&drawn(&[one, nan], Some(0), 40, 6));
        assert_eq!(text.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count(), 1, "{text}");
        for (width, height) in (0..30).flat_map(|width| (0..9).map(move |height| (width, height))) {
            drawn(&points(), Some(1 << 20), width, height);
        }
    }
}
