//! The Matrix tab: the matrix, what stands out in it, and the pair under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::text::put;
use super::{HitMap, Scene, inspector, standout};
use crate::matrix::Metric;
use crate::tui::widgets::matrix::{self, MatrixView};
use crate::units::{format_ranks, format_size};

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
    if side > 0 {
        inspector::draw(scene, buf, Rect { x: left.right(), width: side, ..area }, hits);
    } else {
        inspector::draw(scene, buf, Rect { y: left.bottom(), height: below, ..area }, hits);
    }
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
}

fn matrix(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let panel = &scene.ui.matrix;
    let key = scene.view.key;
    let bytes = if key.metric == Metric::SmallTime { key.small } else { key.bytes };
    let what = if bytes == 0 { "nothing measured yet".to_owned() } else { format_size(bytes) };
    let mut title = vec![what];
    title.extend(scene.model.sweep.as_ref().map(|sweep| match sweep.settings.ci {
        ci if ci > 0.0 => format!("median within {:.0} %", ci * 100.0),
        _ => format!("median of {}", sweep.settings.repeats),
    }));
    let lost: Vec<usize> = scene.model.lost.keys().copied().collect();
    if !lost.is_empty() {
        title.push(format!("lost {}", format_ranks(&lost)));
    }
    let found = scene.view.insight.findings();
    let view = MatrixView {
        grid: &scene.view.grid,
        pattern: key.pattern,
        topology: &scene.model.header.topology,
        groups: scene.atlas.groups.names(panel.grouping),
        cursor: panel.cursor,
        selection: panel.anchor.map(|anchor| (anchor, panel.cursor)),
        transpose: panel.transpose,
        zoom: panel.zoom,
        title: &title,
        lost: &lost,
        slow: (&found.senders, &found.receivers),
        focused: false,
        theme: &scene.look.theme,
    };
    hits.matrix = matrix::draw(&view, area, buf);
}
