//! The Fits tab: a table of every fit, and the size curve of the one under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{fit, left, panel, put, put_at, right, span, typing, wrap};
use super::{HitMap, Scene, fit_detail};
use crate::fit::EXTRAPOLATION_LIMIT;
use crate::matrix::Metric;
use crate::tui::fits::{Column, Row, key_text};
use crate::tui::keys::Action;
use crate::tui::view::Rates;
use crate::units::{format_count, format_size};

/// Columns of an interval, a number, an error, a count, a size.
const INTERVAL: usize = 12;
const NUMBER: usize = 7;
const ERROR: usize = 6;
const COUNT: usize = 7;
const BREAKS: usize = 10;
/// Columns of a kind and the space after it.
const KIND: usize = 8;
/// Columns of keys, least, wanted and most.
const KEY: (usize, usize, usize) = (6, 14, 30);
/// Columns of a table with everything, its frame included.
const WIDEST: usize = 1 + KIND + KEY.2 + 2 * (NUMBER + INTERVAL) + ERROR + COUNT + BREAKS + 2;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if scene.fits.all() == 0 && !scene.fits.busy() {
        nothing(scene, buf, area);
        return;
    }
    let (table_area, detail) = match area.width {
        100.. => split(area, (area.width * 64 / 100).min(WIDEST as u16)),
        72.. => split(area, area.width * 60 / 100),
        // Below one another.
        _ => {
            let height = area.height.saturating_sub(7).max(area.height / 2);
            (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
        }
    };
    table(scene, buf, table_area, hits);
    fit_detail::draw(scene, buf, detail, hits);
}

fn split(area: Rect, columns: u16) -> (Rect, Rect) {
    (Rect { width: columns, ..area }, Rect { x: area.x + columns, width: area.width - columns, ..area })
}

/// What to do, while nothing can be fitted.
fn nothing(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    let inner = panel(buf, area, look, &Line::from(span("fits", look.title())));
    let sizes = scene.model.cells.sizes().len();
    let text = match (sizes, scene.running()) {
        (0, true) => "nothing to fit yet: the sweep has just begun".to_owned(),
        (1, true) => "nothing to fit yet: a line needs two sizes, and the sweep that runs will come to the second".to_owned(),
        (1, false) => {
            format!("a line needs two sizes, and one was measured: key {}, give sizes such as 4KiB..64MiB", look.key_of(Action::Tab2))
        }
        _ => format!("nothing measured yet: key {}, then {}", look.key_of(Action::Tab2), look.key_of(Action::StartSweep)),
    };
    for (row, line) in (1_u16..).zip(wrap(&text, usize::from(inner.width).saturating_sub(2))) {
        put(buf, inner, row, &Line::from(span(format!(" {line}"), look.dim())));
    }
}

/// The unit of every bandwidth on this tab.
pub fn rates(scene: &Scene<'_>) -> Rates {
    Rates(Metric::Bandwidth.unit(scene.fits.largest()))
}

/// Which columns there is room for.
struct Columns {
    kind: usize,
    key: usize,
    intervals: bool,
    count: bool,
    breaks: bool,
}

impl Columns {
    fn of(columns: usize, kind: usize) -> Self {
        // A mark stands first; what matters less is added while the keys keep their room.
        let mut used = 1 + kind + 2 * NUMBER + ERROR;
        let mut add = |more: usize| {
            let fits = columns >= used + more + KEY.1;
            used += if fits { more } else { 0 };
            fits
        };
        let (intervals, count, breaks) = (add(2 * INTERVAL), add(COUNT), add(BREAKS));
        Self { kind, key: columns.saturating_sub(used).clamp(KEY.0, KEY.2), intervals, count, breaks }
    }

    /// Each with its width, left to right; `None` for an interval.
    fn all(&self) -> Vec<(Option<Column>, usize)> {
        let mut all = vec![(Some(Column::Kind), 1 + self.kind), (Some(Column::Key), self.key), (Some(Column::Alpha), NUMBER)];
        let interval = self.intervals.then_some((None, INTERVAL));
        all.extend(interval);
        all.push((Some(Column::Bandwidth), NUMBER));
        all.extend(interval);
        all.push((Some(Column::Error), ERROR));
        all.extend(self.count.then_some((Some(Column::N), COUNT)));
        all.extend(self.breaks.then_some((Some(Column::Breaks), BREAKS)));
        all
    }
}

fn table(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, book, ui) = (scene.look, scene.fits, &scene.ui.fits);
    let inner = panel(buf, area, look, &title(scene, usize::from(area.width).saturating_sub(4)));
    let columns = Columns::of(usize::from(inner.width), book.longest_kind().max(KIND));
    let all = columns.all();
    let mut x = 0;
    for &(column, width) in &all {
        let name = match column {
            Some(Column::Kind) => "kind",
            Some(Column::Key) => "key",
            Some(Column::Alpha) => "α µs",
            Some(Column::Bandwidth) => rates(scene).name(),
            Some(Column::Error) => "err %",
            Some(Column::N) => "n",
            Some(Column::Breaks) => "breaks",
            None => "95 %",
        };
        let sorted = column == Some(ui.column);
        let mark = if ui.descending { "▾" } else { "▴" };
        let text = if sorted { format!("{name}{mark}") } else { name.to_owned() };
        let text = match column {
            Some(Column::Kind) => left(&format!(" {text}"), width),
            Some(Column::Key) => left(&text, width),
            // One column between numbers.
            _ => format!(" {}", right(&text, width - 1)),
        };
        let style = if sorted { look.accent() } else { look.dim() };
        put_at(buf, inner, x, 0, &Line::from(span(text, style)));
        if let Some(column) = column {
            hits.columns.push((Rect { x: inner.x + x, y: inner.y, width: width as u16, height: 1 }.intersection(inner), column));
        }
        x += width as u16;
    }
    let rows = usize::from(inner.height.saturating_sub(1));
    let first = ui.at.saturating_sub(rows / 2).min(book.shown().saturating_sub(rows));
    for (y, place) in (1_u16..).zip((first..book.shown()).take(rows)) {
        let Some(row) = book.at(place) else { break };
        put(buf, inner, y, &Line::from(line(scene, row, place == ui.at, &all)));
        hits.fit_rows.push((Rect { y: inner.y + y, height: 1, ..inner }, place));
    }
    if book.shown() == 0 && !book.busy() {
        put(buf, inner, 1, &Line::from(span(format!(" nothing fits the filter: {} drops it", look.key_of(Action::Cancel)), look.dim())));
    }
}

/// `fits · 12 of 77 · filter fan_in`, or the filter being typed.
fn title(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let (look, book, ui) = (scene.look, scene.fits, &scene.ui.fits);
    if let Some(typed) = &ui.typing {
        let mut spans = vec![span("filter ", look.title())];
        spans.extend(typing(look, typed, columns.saturating_sub(8)));
        return Line::from(spans);
    }
    let (shown, all) = (book.shown(), book.all());
    let count =
        if shown == all { format_count(all as u64) } else { format!("{} of {}", format_count(shown as u64), format_count(all as u64)) };
    let mut parts = vec!["fits".to_owned()];
    parts.push(format!(" · {count}"));
    if book.left() > 0 {
        parts.push(format!(" · {:.0} % looked at", (book.done() * 100.0).floor()));
    }
    if !ui.filter.is_empty() {
        parts.push(format!(" · filter {}", ui.filter));
    }
    Line::from(span(fit(&parts, columns), look.title()))
}

fn line(scene: &Scene<'_>, row: &Row, here: bool, all: &[(Option<Column>, usize)]) -> Vec<Span<'static>> {
    let (look, rates) = (scene.look, rates(scene));
    let plain = if here { look.strong() } else { look.text() };
    let mut spans = vec![span(if here { "▸" } else { " " }, look.accent())];
    // The first interval is that of α.
    let mut intervals =
        [row.alpha_ci.map(|end| micros(f64::from(end))), row.bandwidth_ci.map(|end| number(rates, f64::from(end)))].into_iter();
    for &(column, width) in all {
        let (text, style): (String, Style) = match column {
            Some(Column::Kind) => (left(row.kind.name(), width - 1), plain),
            Some(Column::Key) => (left(&key_text(&scene.fits.key(row.id), row.kind), width), plain),
            Some(Column::Alpha) => (right(&micros(row.alpha), width), plain),
            Some(Column::Bandwidth) => (right(&number(rates, row.bandwidth), width), plain),
            Some(Column::Error) => {
                let poor = f64::from(row.error) > EXTRAPOLATION_LIMIT;
                (right(&percent(f64::from(row.error)), width), if poor { look.warn() } else { plain })
            }
            Some(Column::N) => (right(&count(row.n), width), look.dim()),
            Some(Column::Breaks) => (right(&breaks(row), width), plain),
            None => {
                let [low, high] = intervals.next().unwrap_or_default();
                let text = if low.is_empty() { "–".to_owned() } else { format!("{low}–{high}") };
                (right(&text, width), look.dim())
            }
        };
        spans.push(span(text, style));
    }
    spans
}

/// Microseconds with about three digits; nothing for no number.
pub fn micros(seconds: f64) -> String {
    let value = seconds * 1e6;
    match value {
        v if v.is_nan() => String::new(),
        v if !v.is_finite() => "∞".to_owned(),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A bandwidth's digits; nothing for no number.
pub fn number(rates: Rates, rate: f64) -> String {
    match rate {
        rate if rate.is_nan() => String::new(),
        rate if !rate.is_finite() => "∞".to_owned(),
        rate => rates.number(rate),
    }
}

/// A share in percent, two digits or so.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        v if !v.is_finite() => "–".to_owned(),
        v if v >= 9.95 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

/// A number of samples in at most six columns.
fn count(n: u32) -> String {
    match f64::from(n) {
        v if v >= 1e7 => format!("{:.0}M", v / 1e6),
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        _ => n.to_string(),
    }
}

fn breaks(row: &Row) -> String {
    let first = format_size(row.first_break);
    match row.breaks {
        0 => "–".to_owned(),
        1 => first,
        n => format!("{first} +{}", n - 1),
    }
}
