//! The Matrix tab: the matrix, what stands out in it, and the pair under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{put, span, typing};
use super::{HitMap, Scene, inspector, standout};
use crate::matrix::{Edge, Metric};
use crate::sample::{EngineKind, Pattern};
use crate::session::{Imported, Model};
use crate::tui::atlas::Order;
use crate::tui::findings::{FindingsSight, Lit};
use crate::tui::state::MatrixPanel;
use crate::tui::widgets::matrix::{self, MatrixView, Zoom};
use crate::units::{format_ranks, format_size};

/// No pair is there.
const NOWHERE: (usize, usize) = (usize::MAX, usize::MAX);

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let side = match area.width {
        160.. => 44,
        100.. => 38,
        76.. => 31,
        _ => 0,
    };
    // Where the pair cannot stand beside the matrix, it gets what digits for every rank would leave, but two lines at least.
    let digits = scene.model.world() as u16 + 6;
    let below = if side == 0 { area.height.saturating_sub(digits).clamp(2, 8) } else { 0 };
    let left = Rect { width: area.width - side, height: area.height - below, ..area };
    // Three lines or more in a frame where there is room, else one sentence.
    let words = match left.height {
        40.. => 7,
        20.. => 5,
        _ => 1,
    };
    let words_area = Rect { y: left.bottom() - words, height: words, ..left };
    if words > 1 {
        standout::draw(scene, buf, words_area, hits);
    } else {
        put(buf, words_area, 0, &standout::sentence(scene, usize::from(words_area.width)));
    }
    matrix(scene, buf, Rect { height: left.height - words, ..left }, hits);
    // After the matrix: it tells which block the cursor is on.
    if side > 0 {
        inspector::draw(scene, buf, Rect { x: left.right(), width: side, ..area }, hits);
    } else {
        inspector::draw(scene, buf, Rect { y: left.bottom(), height: below, ..area }, hits);
    }
}

/// The matrix alone, what is chosen on the Findings tab marked, without a cursor.
pub fn draw_marked(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let panel = MatrixPanel { cursor: NOWHERE, anchor: None, zoom: Zoom::Fit, depth: 0, ..scene.ui.matrix.clone() };
    let lit = if scene.ui.findings.sight == FindingsSight::Changes { Lit::Change } else { Lit::Finding };
    draw_with(scene, &panel, lit, buf, area, hits);
}

fn matrix(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    draw_with(scene, &scene.ui.matrix, scene.ui.findings.lit, buf, area, hits);
    if let Some(typed) = scene.ui.matrix.typing.as_ref().filter(|_| area.height > 2 && area.width > 20) {
        let room = area.width - 4;
        let mut spans = vec![span(" find ", scene.look.title())];
        spans.extend(typing(scene.look, typed, usize::from(room).saturating_sub(7)));
        put(buf, Rect { x: area.x + 2, y: area.bottom() - 1, width: room, height: 1 }, 0, &Line::from(spans));
    }
}

/// Of an imported session: which table the cells of this size are of, and what they mean.
fn source(model: &Model, pattern: Pattern, bytes: u64) -> Vec<String> {
    let own = |table: &&Imported| table.taken && table.sizes.contains(&bytes) && table.patterns.contains(&pattern);
    let table = model.imported.iter().find(own);
    table.map_or_else(Vec::new, |table| {
        let size = (!table.size_told).then(|| "size not told".to_owned());
        let unit = table.unit.split(" (").next().unwrap_or_default();
        let who = table.orientation.split([';', ',']).next().unwrap_or_default();
        std::iter::once(table.name()).chain(size).chain([format!("printed in {unit}, {who}")]).collect()
    })
}

fn draw_with(scene: &Scene<'_>, panel: &MatrixPanel, lit: Lit, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let key = scene.view.key;
    let bytes = if key.metric == Metric::SmallTime { key.small } else { key.bytes };
    let what = if let Some(other) = other(scene) {
        other
    } else if let Some(only) = scene.model.only_together() {
        only
    } else if bytes == 0 {
        "nothing measured yet".to_owned()
    } else {
        format_size(bytes)
    };
    let mut title = vec![what];
    title.extend(source(scene.model, key.pattern, bytes));
    let sweep = scene.model.sweep.as_ref().filter(|_| scene.model.header.engine != EngineKind::Imported);
    title.extend(sweep.map(|sweep| match sweep.settings.ci {
        ci if ci > 0.0 => format!("median within {:.0} %", ci * 100.0),
        _ => format!("median of {}", sweep.settings.repeats),
    }));
    let lost: Vec<usize> = scene.model.lost.keys().copied().collect();
    if !lost.is_empty() {
        title.push(format!("lost {}", format_ranks(&lost)));
    }
    if panel.order != Order::Rank {
        title.insert(1, panel.order.told().to_owned());
    }
    let axes = scene.view.grid.axes();
    let window = panel.window(axes);
    let crumbs = crumbs(scene, panel);
    let found = scene.view.insight.findings();
    let told = scene.desk.speaks(scene.model, key);
    let slow = told.map_or((&found.senders, &found.receivers), |told| (&told.slow.0, &told.slow.1));
    let marked = scene.ui.findings.marked(lit, scene.desk.told());
    let view = MatrixView {
        grid: &scene.view.grid,
        pattern: key.pattern,
        topology: &scene.model.header.topology,
        groups: scene.atlas.groups.names(panel.grouping),
        cursor: panel.cursor,
        selection: panel.anchor.map(|anchor| (anchor, panel.cursor)),
        transpose: panel.transpose,
        zoom: panel.zoom,
        window,
        crumbs: &crumbs,
        reduce: panel.reduce,
        title: &title,
        lost: &lost,
        slow: (slow.0, slow.1),
        lit: marked.as_ref().map(|marked| matrix::Lit { cells: marked.cells, mark: marked.mark, name: &marked.name }),
        focused: false,
        theme: &scene.look.theme,
    };
    hits.matrix = matrix::draw(&view, area, buf);
}

/// The way to what is looked at, from the whole: `all`, `rack 3 → rack 7`, `host012 → host031`.
fn crumbs(scene: &Scene<'_>, panel: &MatrixPanel) -> Vec<String> {
    let axes = scene.view.grid.axes();
    let stops = axes.stops();
    if stops.len() < 2 {
        return Vec::new();
    }
    let (row, column) = axes.places(panel.cursor);
    let name = |edge: Edge, level: usize, place: usize| scene.atlas.orders.name(axes, edge, level, axes.block_of(level, place));
    let pair = |&level: &usize| format!("{} → {}", name(Edge::Senders, level, row), name(Edge::Receivers, level, column));
    std::iter::once("all".to_owned()).chain(stops.iter().take(panel.depth + 1).skip(1).map(pair)).collect()
}

/// The session that is compared with, where that is what is shown.
fn other(scene: &Scene<'_>) -> Option<String> {
    let other = scene.desk.other().filter(|_| scene.view.key.metric == Metric::Change)?;
    Some(format!("since {}", other.name))
}
