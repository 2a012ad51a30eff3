//! Aggregate against width: a curve for each root, the chosen one in front.
//!
//! ```text
//!  55.2 ⠀⠀⠀●⠤⠤⣀
//!  GB/s ⡠⠊⠀⠀⠀⠀⠉⠒●⠤⠤●   the chosen root; the others behind it, dim
//!     0 ○⠤⠤○⠤⠤⠤⠤⠤○⠤⠤○   the same root the other way
//!       1  2     4  7
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::braille::{Dots, place};
use crate::matrix::{Metric, Unit};
use crate::tui::theme::Theme;

/// Columns of the labels on the left, the space after them included.
const LABELS: u16 = 7;

/// Width and aggregate, bytes per second, by width.
pub type Points = Vec<(usize, f64)>;

/// What the chart shows.
#[derive(Debug, Clone)]
pub struct FanChart<'a> {
    /// the other roots the same way
    pub others: Vec<Points>,
    /// the chosen root
    pub chosen: Points,
    /// the chosen root the other way
    pub back: Points,
    /// the width looked at
    pub marked: Option<usize>,
    pub unit: Unit,
    pub theme: &'a Theme,
}

/// Draw it with its axes; nothing is drawn below 12 columns or 4 rows, or without points.
pub fn draw(chart: &FanChart<'_>, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let all = || chart.others.iter().chain([&chart.chosen, &chart.back]).flatten().filter(|(_, rate)| rate.is_finite());
    let widths = all().fold((usize::MAX, 0), |(low, high), &(width, _)| (low.min(width), high.max(width)));
    if area.width < LABELS + 5 || area.height < 4 || widths.1 == 0 {
        return;
    }
    let most = all().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let plot = Rect { x: area.x + LABELS, width: area.width - LABELS, height: area.height - 1, ..area };
    let axes = Axes { plot, widths: (widths.0 as f64, widths.1 as f64), most };
    let dim = chart.theme.style("ui.text.dim");
    let mut behind = Dots::new(plot);
    for points in &chart.others {
        axes.curve(points, &mut behind);
    }
    behind.draw(None, chart.theme.style("curve.other"), buffer);
    for (points, style, glyph) in [(&chart.back, chart.theme.style("curve.back"), "○"), (&chart.chosen, chart.theme.style("curve"), "●")]
    {
        let mut dots = Dots::new(plot);
        axes.curve(points, &mut dots);
        dots.draw(None, style, buffer);
        for &(width, rate) in points.iter().filter(|(_, rate)| rate.is_finite()) {
            let (x, y) = axes.cell(width, rate);
            buffer.set_string(x, y, glyph, style);
        }
    }
    let label = |y: u16, text: &str, style: Style, buffer: &mut Buffer| {
        let width = usize::from(LABELS - 1);
        buffer.set_stringn(area.x, y, format!("{text:>width$}"), width, style);
    };
    label(plot.y, &Metric::Bandwidth.format(most, chart.unit), dim, buffer);
    label(plot.y + 1, chart.unit.name, dim, buffer);
    label(plot.bottom() - 1, "0", dim, buffer);
    let mut told: Vec<usize> = all().map(|(width, _)| *width).collect();
    told.sort_unstable();
    told.dedup();
    width_labels(&told, chart, &axes, buffer);
}

/// Widths below the axis: the marked one, both ends, and others where room is left.
fn width_labels(widths: &[usize], chart: &FanChart<'_>, axes: &Axes, buffer: &mut Buffer) {
    let y = axes.plot.bottom();
    let mut taken: Vec<(u16, u16)> = Vec::new();
    let ends = [widths.first(), widths.last()].into_iter().flatten().copied();
    for width in chart.marked.into_iter().filter(|width| widths.contains(width)).chain(ends).chain(widths.iter().copied()) {
        let text = width.to_string();
        let length = text.len() as u16;
        let x = axes.cell(width, 0.0).0.saturating_sub(length / 2).min(axes.plot.right().saturating_sub(length)).max(axes.plot.x);
        if taken.iter().any(|&(start, end)| x < end + 1 && start < x + length + 1) {
            continue;
        }
        taken.push((x, x + length));
        let style = chart.theme.style(if chart.marked == Some(width) { "ui.crosshair" } else { "ui.text.dim" });
        buffer.set_stringn(x, y, text, usize::from(length), style);
    }
}

/// Widths logarithmic to the right, rates upwards from 0, in dots.
struct Axes {
    plot: Rect,
    widths: (f64, f64),
    most: f64,
}

impl Axes {
    fn dot(&self, width: usize, rate: f64) -> (usize, usize) {
        let (columns, rows) = (usize::from(self.plot.width) * 2, usize::from(self.plot.height) * 4);
        let up = if self.most > 0.0 { (rate / self.most).clamp(0.0, 1.0) } else { 0.0 };
        (place(width as f64, self.widths, columns), rows - 1 - (up * (rows - 1) as f64).round() as usize)
    }

    fn cell(&self, width: usize, rate: f64) -> (u16, u16) {
        let (x, y) = self.dot(width, rate);
        (self.plot.x + (x / 2) as u16, self.plot.y + (y / 4) as u16)
    }

    fn curve(&self, points: &Points, dots: &mut Dots) {
        let known: Vec<(usize, usize)> = points.iter().filter(|(_, rate)| rate.is_finite()).map(|&(w, rate)| self.dot(w, rate)).collect();
        for &dot in &known {
            dots.set(dot);
        }
        for pair in known.windows(2) {
            dots.line(pair[0], pair[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramp::Level;
    use crate::tui::theme::Themes;
    use crate::tui::widgets::styled;

    /// Other roots, the chosen one, and the chosen one the other way.
    type Curves = (Vec<Points>, Points, Points);

    fn drawn((others, chosen, back): Curves, width: u16, height: u16) -> Buffer {
        let (theme, _) = Themes::default().load("dark", Level::TrueColor).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let chart = FanChart { others, chosen, back, marked: Some(2), unit: Metric::Bandwidth.unit(54e9), theme: &theme };
        draw(&chart, buffer.area, &mut buffer);
        buffer
    }

    fn curves() -> Curves {
        (
            vec![vec![(1, 54e9), (2, 54e9), (4, 30e9)]],
            vec![(1, 6e9), (2, 12.6e9), (4, 18.7e9), (7, 16.4e9)],
            vec![(1, 8e9), (2, f64::NAN), (7, 14e9)],
        )
    }

    #[test]
    fn the_chosen_root_stands_in_front() {
        insta::assert_snapshot!("fan_chart_44x9", styled::both(&drawn(curves(), 44, 9)));
    }

    #[test]
    fn odd_input_is_drawn_or_left() {
        let nothing = (Vec::new(), Vec::new(), vec![(3, f64::NAN)]);
        assert_eq!(styled::text(&drawn(nothing, 40, 6)).trim(), "");
        let zero = (Vec::new(), vec![(7, 0.0)], Vec::new());
        assert!(styled::text(&drawn(zero, 40, 6)).contains('●'));
        for (width, height) in (0..30).flat_map(|width| (0..9).map(move |height| (width, height))) {
            drawn(curves(), width, height);
        }
    }
}
