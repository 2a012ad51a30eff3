//! The Fans tab: aggregates by root and width, how they lie over the roots, and the fan under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{cut, fit, left, panel, put, put_at, right, span, wrap};
use super::{HitMap, Scene, fan};
use crate::matrix::Metric;
use crate::sample::Pattern;
use crate::tui::fans::{Fan, Over, Root};
use crate::tui::keys::Action;
use crate::tui::view::Rates;
use crate::tui::widgets::fan_chart::{self, FanChart, Points};
use crate::tui::widgets::heat;
use crate::units::{format_size, plain};

/// Columns of a width's aggregates.
const fn cell_columns(columns: usize) -> usize {
    if columns < 34 { 6 } else { 7 }
}
/// Rows of the chart that are worth drawing, its frame included.
const CHART: u16 = 8;
/// Most other roots that the chart shows.
const CURVES: usize = 256;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if scene.fans.is_empty() {
        nothing(scene, buf, area);
        return;
    }
    let columns = match area.width {
        160.. => 76,
        100.. => 54,
        _ => area.width / 2,
    };
    let left = Rect { width: columns, ..area };
    let direction = scene.fans.direction(&scene.ui.fans);
    // All entries, the heading, three lines over all roots and the frame; the chart gets what is left.
    let wanted = scene.fans.entries(direction) as u16 + 7;
    let height = wanted.min(left.height.saturating_sub(CHART).max(9)).min(left.height);
    let chart_height = left.height - height;
    let (list_height, chart_height) = if chart_height < CHART { (left.height, 0) } else { (height, chart_height) };
    list(scene, buf, Rect { height: list_height, ..left }, direction, hits);
    if chart_height > 0 {
        chart(scene, buf, Rect { y: left.y + list_height, height: chart_height, ..left }, direction);
    }
    fan::draw(scene, buf, Rect { x: left.right(), width: area.width - columns, ..area }, direction, hits);
}

/// What to do, while nothing is measured.
fn nothing(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    let inner = panel(buf, area, look, &Line::from(span("fans", look.title())));
    let sweep = look.key_of(Action::Tab2);
    let asked = scene.model.sweep.as_ref().is_some_and(|sweep| sweep.settings.patterns.iter().any(|pattern| !pattern.is_pair()));
    let text = if asked && scene.running() {
        "no fan measured yet: the sweep that runs will come to them".to_owned()
    } else {
        format!("no fan measured yet: key {sweep}, switch on fan_in or fan_out (relay, custom)")
    };
    for (row, line) in (1_u16..).zip(wrap(&text, usize::from(inner.width).saturating_sub(2))) {
        put(buf, inner, row, &Line::from(span(format!(" {line}"), look.dim())));
    }
}

/// The unit of every number on this tab.
pub fn rates(scene: &Scene<'_>) -> Rates {
    Rates(Metric::Bandwidth.unit(scene.fans.largest()))
}

/// The roots and, per width, the slowest of their fans; then relays and sets; then what is over all roots.
fn list(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, direction: Pattern, hits: &mut HitMap) {
    let (look, rates) = (scene.look, rates(scene));
    let way = scene.fans.way(direction);
    let title =
        [format!("{}, {}", direction.name(), rates.name()), format!(" · {}", format_size(scene.fans.bytes)), " · by width".to_owned()];
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let entries = scene.fans.entries(direction);
    let entry = scene.ui.fans.entry.min(entries.saturating_sub(1));
    let columns = usize::from(inner.width);
    let (names, pitch) = (names(scene, columns), cell_columns(columns));
    let across = columns.saturating_sub(names + 1) / pitch;
    let chosen = way.roots.get(entry).and_then(|root| chosen_fan(scene, root)).map(Fan::width);
    let at = way.over.iter().position(|over| Some(over.width) == chosen).unwrap_or(0);
    let from = at.saturating_sub(across / 2).min(way.over.len().saturating_sub(across));
    let shown: Vec<&Over> = way.over.iter().skip(from).take(across).collect();
    let mut heading = vec![span(left(" root", names), look.dim())];
    for over in &shown {
        let style = if Some(over.width) == chosen { look.strong() } else { look.dim() };
        heading.push(span(right(&over.width.to_string(), pitch), style));
    }
    put(buf, inner, 0, &Line::from(heading));
    let over_rows = if way.roots.len() > 1 { 3.min(inner.height.saturating_sub(3)) } else { 0 };
    let rows = usize::from(inner.height.saturating_sub(1 + over_rows));
    let first = entry.saturating_sub(rows / 2).min(entries.saturating_sub(rows));
    let domain = (way.over.iter().map(|over| over.least.0).fold(f64::NAN, f64::min), scene.fans.largest());
    for (row, number) in (1_u16..).zip((first..entries).take(rows)) {
        let line = Rect { y: inner.y + row, height: 1, ..inner };
        let here = number == entry;
        match way.roots.get(number) {
            Some(root) => {
                put(buf, line, 0, &Line::from(name(scene, root.rank, here, names)));
                for (column, over) in (0_u16..).zip(&shown) {
                    let cell = Rect { x: line.x + names as u16 + column * pitch as u16, width: pitch as u16, ..line };
                    let index = root.fans.iter().position(|fan| fan.width() == over.width);
                    aggregate(scene, buf, cell, root.worst(over.width), (here && Some(over.width) == chosen, domain));
                    hits.entries.push((cell, (number, index)));
                }
            }
            None => other(scene, buf, line, number - way.roots.len(), here),
        }
        hits.entries.push((line, (number, None)));
    }
    over_all(scene, buf, Rect { y: inner.bottom() - over_rows, height: over_rows, ..inner }, &shown, names);
}

/// Columns of the roots' names.
fn names(scene: &Scene<'_>, columns: usize) -> usize {
    let ranks = &scene.model.header.topology.ranks;
    let digits = ranks.len().saturating_sub(1).to_string().len().max(3);
    let host = ranks.iter().map(|p| super::text::width(&plain(&p.host))).max().unwrap_or(0);
    // The host only where the widths still fit.
    let widths = scene.fans.way(scene.fans.direction(&scene.ui.fans)).over.len().min(4);
    if digits + 2 + host + 2 + widths * cell_columns(columns) < columns { (digits + 2 + host + 1).max(8) } else { (digits + 2).max(8) }
}

fn name(scene: &Scene<'_>, rank: usize, here: bool, columns: usize) -> Vec<Span<'static>> {
    let look = scene.look;
    let ranks = &scene.model.header.topology.ranks;
    let digits = ranks.len().saturating_sub(1).to_string().len().max(3);
    let host = ranks.get(rank).map(|p| plain(&p.host)).unwrap_or_default();
    let room = columns.saturating_sub(digits + 2);
    let host = if room >= 3 { cut(&host, room) } else { String::new() };
    vec![
        span(if here { "▸" } else { " " }, look.accent()),
        span(format!("{} ", right(&rank.to_string(), digits)), if here { look.strong() } else { look.text() }),
        span(host, look.dim()),
    ]
}

/// One aggregate, its ground by how much it is.
fn aggregate(scene: &Scene<'_>, buf: &mut Buffer, cell: Rect, fan: Option<&Fan>, (here, domain): (bool, (f64, f64))) {
    let (look, pitch) = (scene.look, usize::from(cell.width));
    let (text, style) = match fan {
        None => ("·".to_owned(), look.dim()),
        Some(fan) if fan.aggregate.is_finite() => {
            (rates(scene).number(fan.aggregate), heat::style(&look.theme, fan.aggregate, domain).unwrap_or_else(|| look.text()))
        }
        Some(fan) => (cut(fan.status.name(), pitch - 1), look.error()),
    };
    let style = if here { style.add_modifier(ratatui::style::Modifier::BOLD) } else { style };
    put_at(buf, cell, 1, 0, &Line::from(span(right(&text, pitch - 1), style)));
    if here {
        // Brackets in the gaps on both sides, as in the matrix.
        let cursor = Style { bg: None, ..look.theme.style("ui.cursor") };
        let x = cell.x + (pitch - 1 - super::text::width(&text).min(pitch - 1)) as u16;
        for (x, mark) in [(x, "["), (cell.x + pitch as u16, "]")] {
            buf.set_stringn(x, cell.y, mark, 1, cursor);
        }
    }
}

/// A relay or a set: the slowest and the median of its transfers.
fn other(scene: &Scene<'_>, buf: &mut Buffer, line: Rect, number: usize, here: bool) {
    let (look, rates) = (scene.look, rates(scene));
    let Some(other) = scene.fans.others.get(number) else { return };
    let mut parts = vec![other.group.describe()];
    if let (Some(slowest), Some(middle)) = (other.moved.first(), other.moved.get(other.moved.len() / 2)) {
        parts.push(format!("  slowest {}", rates.number(slowest.rate)));
        parts.push(format!("  median {}", rates.number(middle.rate)));
    }
    let text = fit(&parts, usize::from(line.width).saturating_sub(2));
    let style = if here { look.strong() } else { look.text() };
    put(buf, line, 0, &Line::from(vec![span(if here { "▸ " } else { "  " }, look.accent()), span(text, style)]));
}

/// Least, median and most over the roots, each with whose it is.
fn over_all(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, shown: &[&Over], names: usize) {
    let (look, rates, pitch) = (scene.look, rates(scene), cell_columns(usize::from(area.width)));
    for (row, what) in (0..area.height).zip(["least", "median", "most"]) {
        let pick = |over: &Over| match what {
            "least" => (over.least.0, Some(over.least.1)),
            "most" => (over.most.0, Some(over.most.1)),
            _ => (over.median, None),
        };
        let mut spans = vec![span(left(&format!(" {what}"), names), look.dim())];
        for over in shown {
            spans.push(span(right(&rates.number(pick(over).0), pitch), look.text()));
        }
        // Whose they are, where there is room for all.
        let whose: Vec<String> = shown.iter().filter_map(|over| pick(over).1).map(|root| root.to_string()).collect();
        if !whose.is_empty() {
            let text = format!("  of {}", whose.join(", "));
            let used = names + shown.len() * pitch;
            if used + super::text::width(&text) < usize::from(area.width) {
                spans.push(span(text, look.dim()));
            }
        }
        put(buf, area, row, &Line::from(spans));
    }
}

/// The fan of a root that is looked at.
pub fn chosen_fan<'a>(scene: &Scene<'_>, root: &'a Root) -> Option<&'a Fan> {
    root.fans.get(scene.ui.fans.fan.min(root.fans.len().saturating_sub(1)))
}

fn points(root: &Root) -> Points {
    let mut points: Points = Vec::new();
    for fan in &root.fans {
        match points.last_mut() {
            Some((width, rate)) if *width == fan.width() => *rate = rate.min(fan.aggregate),
            _ => points.push((fan.width(), fan.aggregate)),
        }
    }
    points
}

/// Aggregate against width, the chosen root in front of the others.
fn chart(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, direction: Pattern) {
    let look = scene.look;
    let way = scene.fans.way(direction);
    let back = if direction == Pattern::FanIn { Pattern::FanOut } else { Pattern::FanIn };
    let root = way.roots.get(scene.ui.fans.entry);
    let behind = root.and_then(|root| {
        let roots = &scene.fans.way(back).roots;
        roots.binary_search_by_key(&root.rank, |known| known.rank).ok().map(|at| points(&roots[at]))
    });
    let mut title = vec!["aggregate by width".to_owned()];
    let word = |pattern| if pattern == Pattern::FanIn { "in" } else { "out" };
    if let Some(root) = root {
        title.push(format!(" · ● root {} {}", root.rank, word(direction)));
        title.extend(behind.as_ref().map(|_| format!(" · ○ {}", word(back))));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let apart = way.roots.len().div_ceil(CURVES).max(1);
    let others = way.roots.iter().filter(|other| Some(other.rank) != root.map(|root| root.rank)).step_by(apart).map(points);
    let chart = FanChart {
        others: others.collect(),
        chosen: root.map(points).unwrap_or_default(),
        back: behind.unwrap_or_default(),
        marked: root.and_then(|root| chosen_fan(scene, root)).map(Fan::width),
        unit: rates(scene).0,
        theme: &look.theme,
    };
    fan_chart::draw(&chart, Rect { width: inner.width.saturating_sub(1), ..inner }, buf);
}
