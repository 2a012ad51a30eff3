//! A fit through its medians: bandwidth over message size, both logarithmic.
//!
//! ```text
//!  53.9 ⠀⠀⠀⠀⠀⠀⠀┊⠀⢀⡠●⠒⠒●   medians with their intervals, the fit's line through them
//!  GB/s ⠀⠀⠀⠀⠀⠀⠀●⠔⠁
//!  0.21 ●⠤⠒⠒●⠒⠉┊           a protocol ends, the next one begins
//!       4Ki    1Mi  256Mi
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::braille::Dots;
use super::curve::{Axes, LABELS, Point, axis_labels, size_labels};
use crate::fit::Interval;
use crate::matrix::Unit;
use crate::tui::theme::Theme;

/// One measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// size of one message, bytes
    pub bytes: u64,
    /// by the median time, bytes per second
    pub bandwidth: f64,
    /// interval of the median, bytes per second
    pub interval: Option<Interval>,
}

/// Sizes that one line serves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// first and last size, bytes
    pub from: u64,
    pub to: u64,
    /// seconds
    pub alpha: f64,
    /// bytes per second; may be infinite
    pub bandwidth: f64,
}

impl Stretch {
    /// What a message of a size gets, bytes per second.
    fn rate(&self, bytes: f64) -> f64 {
        bytes / (self.alpha + bytes / self.bandwidth)
    }
}

/// What the curve shows.
#[derive(Debug, Clone, Copy)]
pub struct FitCurve<'a> {
    /// by size ascending
    pub medians: &'a [Median],
    /// by size ascending
    pub stretches: &'a [Stretch],
    /// sizes at which a protocol begins
    pub breaks: &'a [u64],
    pub unit: Unit,
    pub theme: &'a Theme,
}

/// Draw it with its axes; nothing is drawn below 12 columns or 3 rows, or without medians.
pub fn draw(view: &FitCurve<'_>, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.width < LABELS + 5 || area.height < 3 {
        return;
    }
    let known = |rate: f64| rate.is_finite() && rate > 0.0;
    let points: Vec<Point> = view
        .medians
        .iter()
        .filter(|median| known(median.bandwidth))
        .map(|median| Point { bytes: median.bytes, bandwidth: median.bandwidth, interval: median.interval })
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let plot = Rect { x: area.x + LABELS, width: area.width - LABELS, height: area.height - 1, ..area };
    // The line's own ends must be in sight too.
    let ends = view.stretches.iter().flat_map(|s| [(s.from, s.rate(s.from as f64)), (s.to, s.rate(s.to as f64))]);
    let ends = ends.filter(|&(_, rate)| known(rate)).map(|(bytes, bandwidth)| Point { bytes, bandwidth, interval: None });
    let axes = Axes::of(&points.iter().copied().chain(ends).collect::<Vec<_>>(), plot);
    for &bytes in view.breaks {
        let x = plot.x + (axes.x(bytes) / 2) as u16;
        for y in plot.top()..plot.bottom() {
            buffer.set_stringn(x, y, "┊", 1, view.theme.style("curve.break"));
        }
    }
    let (mut bars, mut line) = (Dots::new(plot), Dots::new(plot));
    for point in &points {
        if let Some(interval) = point.interval.filter(|interval| interval.low > 0.0 && interval.high.is_finite()) {
            let x = axes.x(point.bytes);
            bars.line((x, axes.y(interval.low)), (x, axes.y(interval.high)));
        }
    }
    for stretch in view.stretches {
        let mut before = None;
        for x in axes.x(stretch.from)..=axes.x(stretch.to) {
            let rate = stretch.rate(axes.bytes(x).clamp(stretch.from.max(1) as f64, stretch.to.max(1) as f64));
            if known(rate) {
                let dot = (x, axes.y(rate));
                line.line(before.unwrap_or(dot), dot);
                before = Some(dot);
            }
        }
    }
    bars.draw(None, view.theme.style("curve.interval"), buffer);
    line.draw(Some(&bars), view.theme.style("curve.fit"), buffer);
    for point in &points {
        let (x, y) = (plot.x + (axes.x(point.bytes) / 2) as u16, plot.y + (axes.y(point.bandwidth) / 4) as u16);
        buffer.set_stringn(x, y, "●", 1, view.theme.style("curve"));
    }
    axis_labels(&axes, view.unit, view.theme, area, buffer);
    let marked = view.breaks.first().copied();
    size_labels(&points, (first.bytes, last.bytes), (marked, view.theme), &axes, plot, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Metric;
    use crate::ramp::Level;
    use crate::tui::theme::Themes;
    use crate::tui::widgets::styled;

    fn drawn(medians: &[Median], stretches: &[Stretch], breaks: &[u64], width: u16, height: u16) -> Buffer {
        let (theme, _) = Themes::default().load("dark", Level::TrueColor).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&FitCurve { medians, stretches, breaks, unit: Metric::Bandwidth.unit(1e9), theme: &theme }, buffer.area, &mut buffer);
        buffer
    }

    /// 2 µs and 2 GB/s below 1 MiB, 30 µs and 40 GB/s from there on.
    fn two() -> (Vec<Median>, [Stretch; 2]) {
        let stretches = [
            Stretch { from: 4096, to: 256 << 10, alpha: 2e-6, bandwidth: 2e9 },
            Stretch { from: 1 << 20, to: 256 << 20, alpha: 30e-6, bandwidth: 40e9 },
        ];
        let median = |k: u32| {
            let bytes = 4096_u64 << (2 * k);
            let bandwidth = stretches[usize::from(bytes >= 1 << 20)].rate(bytes as f64);
            Median { bytes, bandwidth, interval: Some(Interval { low: bandwidth * 0.7, high: bandwidth * 1.2 }) }
        };
        ((0..9).map(median).collect(), stretches)
    }

    #[test]
    fn the_line_goes_through_its_medians_and_breaks_where_told() {
        let (medians, stretches) = two();
        let buffer = drawn(&medians, &stretches, &[1 << 20], 48, 10);
        insta::assert_snapshot!("fit_curve_48x10", styled::both(&buffer));
        let text = styled::text(&buffer);
        assert_eq!(text.matches('●').count(), 9, "{text}");
        assert!(text.contains("1Mi"), "the breakpoint is named: {text}");
    }

    #[test]
    fn odd_input_is_drawn_or_left() {
        let (medians, stretches) = two();
        let nan = [Median { bytes: 4096, bandwidth: f64::NAN, interval: None }];
        assert_eq!(styled::text(&drawn(&nan, &stretches, &[], 40, 6)).trim(), "");
        let flat = [Stretch { from: 4096, to: 256 << 20, alpha: 1e-5, bandwidth: f64::INFINITY }];
        drawn(&medians, &flat, &[0, u64::MAX], 40, 6);
        for (width, height) in (0..30).flat_map(|width| (0..9).map(move |height| (width, height))) {
            drawn(&medians, &stretches, &[1 << 20], width, height);
        }
    }
}
