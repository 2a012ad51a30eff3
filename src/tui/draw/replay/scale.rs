//! Time to the right: which column is which time, and what a column of a row looks like.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use crate::tui::draw::text::{put_at, span, width};
use crate::tui::look::Look;
use crate::tui::replay::Strip;
use crate::units::format_seconds;

/// Glyphs of an amount, 0 to 1, growing upwards and to the right.
/// A full one leaves a line free, so that rows stay apart.
const UP: [&str; 8] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇"];
const ALONG: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// The time in sight, and the columns that it has.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// columns on the screen, all rows
    pub area: Rect,
    /// seconds at its left and right end
    pub from: f64,
    pub to: f64,
    /// the play head, seconds
    pub head: f64,
}

impl Scale {
    fn column(&self) -> f64 {
        (self.to - self.from) / f64::from(self.area.width.max(1))
    }

    /// The times that a column stands for.
    fn times(&self, column: u16) -> (f64, f64) {
        let from = self.from + f64::from(column) * self.column();
        (from, from + self.column())
    }

    /// The column of a time; `None` out of sight.
    pub fn at(&self, time: f64) -> Option<u16> {
        let column = (time - self.from) / self.column();
        if self.area.width == 0 || !(0.0..=f64::from(self.area.width) + 1e-6).contains(&column) {
            return None;
        }
        Some((column as u16).min(self.area.width - 1))
    }

    /// Draw a row (its place on the screen) column by column.
    fn row(&self, buf: &mut Buffer, y: u16, glyph: impl Fn(f64, f64) -> (&'static str, Style)) {
        let area = self.area.intersection(buf.area);
        if y < area.top() || y >= area.bottom() {
            return;
        }
        for column in 0..area.width {
            let (from, to) = self.times(column);
            let (symbol, style) = glyph(from, to);
            if symbol != " " {
                buf[(area.x + column, y)].set_symbol(symbol).set_style(style);
            }
        }
    }

    /// How full something is over time, as heights.
    pub fn heights(&self, buf: &mut Buffer, y: u16, strip: &Strip, style: Style) {
        self.row(buf, y, |from, to| (UP[sevenths(strip.mean(from, to))], style));
    }

    /// When bytes pass (bold), and when they are on their way.
    pub fn bars(&self, buf: &mut Buffer, y: u16, passes: &Strip, runs: &Strip, style: Style, dim: Style) {
        self.row(buf, y, |from, to| match passes.mean(from, to) {
            share if share >= 0.75 => ("━", style),
            share if share >= 0.25 => ("╍", style),
            share if share > 0.0 => ("┅", style),
            _ if runs.mean(from, to) > 0.0 => ("┄", dim),
            _ => (" ", dim),
        });
    }

    /// From one time to another.
    pub fn line(&self, buf: &mut Buffer, y: u16, (from, to): (f64, f64), style: Style) {
        let half = self.column() / 2.0;
        self.row(buf, y, |left, right| {
            // What is shorter than a column is seen all the same.
            let inside = f64::midpoint(left, right) >= from && f64::midpoint(left, right) < to;
            let short = to - from < 2.0 * half && left <= from && from < right;
            (if inside || short { "━" } else { " " }, style)
        });
    }

    /// A mark at a time.
    pub fn mark(&self, buf: &mut Buffer, y: u16, time: f64, symbol: &str, style: Style) {
        let area = self.area.intersection(buf.area);
        if let Some(column) = self.at(time).filter(|column| *column < area.width && (area.top()..area.bottom()).contains(&y)) {
            buf[(area.x + column, y)].set_symbol(symbol).set_style(style);
        }
    }

    /// The play head through all rows.
    pub fn play_head(&self, buf: &mut Buffer, rows: std::ops::Range<u16>, style: Style) {
        rows.for_each(|y| self.mark(buf, y, self.head, "│", style));
    }

    /// Times along a row, the play head's among them.
    pub fn axis(&self, buf: &mut Buffer, y: u16, look: &Look) {
        let area = Rect { y, height: 1, ..self.area };
        let step = nice(self.column() * 14.0);
        let mut tick = (self.from / step).ceil() * step;
        let mut free = 0;
        let told = format_seconds(self.head);
        let head = self.at(self.head);
        let wide = width(&told) as u16 + 1;
        // The head's time stands at its right, or at its left at the end.
        let place = head.map(|at| if at + wide < area.width { at + 1 } else { at.saturating_sub(wide - 1) });
        while tick <= self.to && step > 0.0 {
            let text = if tick.abs() < step / 2.0 { "0".to_owned() } else { short(tick) };
            if let Some(column) = self.at(tick) {
                let wide_here = width(&text) as u16;
                let clear = place.is_none_or(|place| column + wide_here < place || column > place + wide);
                if column >= free && clear && column + wide_here <= area.width {
                    put_at(buf, area, column, 0, &Line::from(span(text, look.dim())));
                    free = column + wide_here + 1;
                }
            }
            tick += step;
        }
        if let (Some(at), Some(place)) = (head, place) {
            put_at(buf, area, place, 0, &Line::from(span(told, look.accent())));
            put_at(buf, area, at, 0, &Line::from(span("▼", look.accent())));
        }
    }
}

/// A share in sevenths; little is not nothing.
fn sevenths(share: f64) -> usize {
    if share <= 0.0 || !share.is_finite() { 0 } else { ((share * 7.0).round() as usize).clamp(1, 7) }
}

/// A bar of `columns`, filled by `share` (0 to 1) to an eighth of a column.
pub fn bar(share: f64, columns: usize) -> String {
    let all = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let text = format!("{}{}", ALONG[8].repeat(all / 8), ALONG[all % 8]);
    let rest = columns.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(rest))
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// A round time without digits that say nothing: `0.2 s`, `20 ms`.
fn short(seconds: f64) -> String {
    let text = format_seconds(seconds);
    let Some((number, unit)) = text.split_once(' ') else { return text };
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_bars_are_exact() {
        for (least, step) in [(0.013, 0.02), (0.2, 0.2), (3.1e-6, 5e-6), (7.0, 10.0), (0.0, 0.0)] {
            assert!((nice(least) - step).abs() < 1e-12, "{least}: {}", nice(least));
        }
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(0.98, 4), bar(1.0, 4), bar(2.0, 2)], ["    ", "██  ", "███▉", "████", "██"]);
        assert_eq!((short(0.2), short(0.02), short(20.0)), ("200 ms".to_owned(), "20 ms".to_owned(), "20 s".to_owned()));
        assert_eq!([0.0, 1e-9, 0.5, 1.0].map(sevenths), [0, 1, 4, 7]);
    }

    #[test]
    fn columns_and_times_belong_together() {
        let scale = Scale { area: Rect::new(10, 0, 50, 1), from: 1.0, to: 2.0, head: 1.5 };
        for column in 0..50 {
            let (from, to) = scale.times(column);
            assert_eq!(scale.at(f64::midpoint(from, to)), Some(column));
        }
        assert_eq!((scale.at(0.99), scale.at(2.0), scale.at(2.1)), (None, Some(49), None));
    }
}
