//! The Sweep tab: what to measure, what that will take, how far it is, and who the ranks are.

use std::collections::BTreeSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{bar, count, cut, fit, left, panel, put, right, span, width, window, wrap};
use super::{HitMap, Scene, form};
use crate::sample::Pattern;
use crate::sweep::SweepSettings;
use crate::topology::{PathClass, Placement};
use crate::tui::feed::Mode;
use crate::tui::form::FormError;
use crate::units::{format_duration, format_ranks, format_seconds, format_size, plain};

/// Columns of the estimate's names, the space after them included.
const EXPECTED: usize = 11;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let settings = &scene.expected.settings;
    let wide = area.width >= 100;
    let (form_area, side) = split_at(area, if wide { 46 } else { area.width * 54 / 100 });
    form::draw(scene, buf, form_area, settings, hits);
    let height = if wide {
        let sizes = scene.model.sweep.as_ref().map_or(0, |sweep| sweep.progress.len() as u16 + 3);
        (sizes + 11).min(side.height.saturating_sub(5))
    } else if side.height >= 20 {
        side.height - 6
    } else {
        side.height
    };
    facts(scene, buf, Rect { height, ..side }, settings);
    placement(scene, buf, Rect { y: side.y + height, height: side.height - height, ..side }, hits);
}

fn split_at(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    (Rect { width: columns, ..area }, Rect { x: area.x + columns, width: area.width - columns, ..area })
}

/// What the sweep will take, and how far the one under way is.
fn facts(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, settings: &Result<SweepSettings, FormError>) {
    let running = scene.running();
    let blocks = if running {
        [progress(scene, area), expected(scene, area, settings)]
    } else {
        [expected(scene, area, settings), progress(scene, area)]
    };
    let title = if running { "progress" } else { "estimate" };
    let inner = panel(buf, area, scene.look, &Line::from(span(title, scene.look.title())));
    let lines = blocks.iter().filter(|lines| !lines.is_empty()).flat_map(|lines| lines.iter().cloned().chain([Line::default()]));
    for (row, line) in (0..inner.height).zip(lines) {
        put(buf, inner, row, &line);
    }
}

fn expected(scene: &Scene<'_>, area: Rect, settings: &Result<SweepSettings, FormError>) -> Vec<Line<'static>> {
    let look = scene.look;
    if scene.mode == Mode::Recorded {
        return Vec::new();
    }
    let Ok(settings) = settings else {
        return vec![Line::from(span(" no estimate: see the marked line", look.warn()))];
    };
    let Some(estimate) = &scene.expected.estimate else { return Vec::new() };
    let room = usize::from(area.width.saturating_sub(2));
    let row = |name: &str, text: String| {
        Line::from(vec![
            span(format!(" {}", left(name, EXPECTED)), look.dim()),
            span(cut(&text, room.saturating_sub(EXPECTED + 1)), look.text()),
        ])
    };
    let mut lines = vec![
        row("cells", estimate.cells.to_string()),
        row("samples", estimate.samples.to_string()),
        row("time", format!("about {}", format_duration(estimate.seconds))),
        row("memory", fit(&[size_of(estimate.memory_per_rank), " a rank".to_owned()], room.saturating_sub(EXPECTED + 1))),
    ];
    // A rank needs one buffer to send from, and one for each rank that sends to it at the same time.
    let buffers = estimate.memory_per_rank / scene.expected.arena.max(1);
    if buffers > 2 {
        lines.push(row("buffers", format!("{buffers} × {}", size_of(scene.expected.arena))));
    }
    if let Some((host, wanted, available)) = estimate.does_not_fit() {
        let text = format!(
            "does not fit: {} needs {} for its ranks and has {}; {}",
            plain(host),
            size_of(wanted),
            size_of(available),
            estimate.advice()
        );
        lines.extend(wrap(&text, room.saturating_sub(2)).into_iter().map(|line| Line::from(span(format!(" {line}"), look.error()))));
    } else if let Some((host, wanted, available)) = &estimate.tightest {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let parts = [format!("{:.1} of {:.1}", gib(*wanted), gib(*available)), format!(" on {}", plain(host))];
        lines.push(row("of GiB", fit(&parts, room.saturating_sub(EXPECTED + 1))));
    }
    for class in classes(scene, settings) {
        let (source, rate) = scene.view.typical(class).map_or((" guessed", guess(class)), |rate| (" measured", rate));
        let parts = [scene.view.rates().text(rate), source.to_owned()];
        lines.push(row(class.name(), fit(&parts, room.saturating_sub(EXPECTED + 1))));
    }
    lines
}

/// A size to read, not to type: at most one digit after the point.
fn size_of(bytes: u64) -> String {
    let steps = [(40, "TiB"), (30, "GiB"), (20, "MiB")];
    let step = steps.into_iter().find(|(shift, _)| bytes >= 1 << shift);
    step.map_or_else(
        || format_size(bytes),
        |(shift, unit)| format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64).replace(".0 ", " "),
    )
}

/// Bytes per second assumed of a path that has not been measured.
pub const fn guess(class: PathClass) -> f64 {
    match class {
        PathClass::Local => 8e9,
        PathClass::IntraNode => 5e9,
        PathClass::InterNode => 1e9,
    }
}

/// Path classes that a sweep goes over.
fn classes(scene: &Scene<'_>, settings: &SweepSettings) -> Vec<PathClass> {
    let ranks = settings.ranks_of(scene.model.world());
    let topology = &scene.model.header.topology;
    let hosts: BTreeSet<&str> = ranks.iter().filter_map(|&rank| topology.ranks.get(rank)).map(|p| p.host.as_str()).collect();
    let local = settings.patterns.contains(&Pattern::Local);
    let peer = settings.patterns.iter().any(|pattern| !pattern.is_own());
    let all = [
        (local, PathClass::Local),
        (peer && ranks.len() > hosts.len(), PathClass::IntraNode),
        (peer && hosts.len() > 1, PathClass::InterNode),
    ];
    all.into_iter().filter(|(there, _)| *there).map(|(_, class)| class).collect()
}

fn progress(scene: &Scene<'_>, area: Rect) -> Vec<Line<'static>> {
    let look = scene.look;
    let Some(sweep) = &scene.model.sweep else { return Vec::new() };
    let room = usize::from(area.width.saturating_sub(2));
    let counts = sweep.progress.iter().map(|p| width(&p.wanted.to_string())).max().unwrap_or(1);
    let numbers = 2 * counts + 3;
    // size, bar, done/wanted and, where there is room, seconds a repeat
    let each_columns = if room >= 10 + numbers + 10 + 4 { 10 } else { 0 };
    let columns = room.saturating_sub(10 + numbers + each_columns).min(40);
    let mut lines = vec![Line::from(vec![
        span(format!(" {}", right("size", 8)), look.dim()),
        span(format!("{}{}", " ".repeat(columns + 1), right("repeats", numbers)), look.dim()),
        span(right("each", each_columns), look.dim()),
    ])];
    for p in sweep.progress.iter().rev() {
        let share = if p.wanted == 0 { 1.0 } else { p.done as f64 / p.wanted as f64 };
        let mut spans = vec![span(format!(" {} ", right(&format_size(p.bytes), 8)), look.text())];
        spans.extend(bar(look, share, columns));
        spans.push(span(right(&format!("{}/{}", p.done, p.wanted), numbers), look.text()));
        let each = if p.done > 0 { format_seconds(p.spent / p.done as f64) } else { "–".to_owned() };
        spans.push(span(right(&each, each_columns), look.dim()));
        lines.push(Line::from(spans));
    }
    let left = sweep.seconds_left().filter(|_| scene.running()).map(|left| format!("{} left", format_duration(left)));
    let reason = Some(sweep.reason.clone()).filter(|reason| !reason.is_empty());
    let parts = [Some(format!(" {}", count(scene.model.samples() as usize, "sample"))), left, reason];
    let last = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    lines.push(Line::from(span(cut(&last, room), look.text())));
    lines
}

/// The ranks: where each sits, and whether it still answers.
fn placement(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if area.height < 4 {
        return;
    }
    let look = scene.look;
    let header = &scene.model.header;
    let mut title = vec!["ranks".to_owned(), format!(" · {}", header.engine.name())];
    title.extend(header.software.values().map(|text| format!(" · {}", plain(text))));
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let ranks = &header.topology.ranks;
    let narrow = inner.width < 52;
    let most = if narrow { usize::from(inner.width).saturating_sub(24) } else { 24 };
    let host_columns = ranks.iter().map(|p| width(&plain(&p.host))).max().unwrap_or(4).clamp(4, most.max(4));
    let heading = columns_of(["rank", "host", "pid", "cores", "NUMA", "free GiB", "of GiB"], host_columns, narrow);
    put(buf, inner, 0, &Line::from(span(heading, look.dim())));
    let rows = usize::from(inner.height.saturating_sub(1));
    hits.placement_rows = rows;
    for (row, p) in (1_u16..).zip(ranks.get(window(scene.ui.form.scroll, ranks.len(), rows)).unwrap_or(&[])) {
        let mut spans = vec![span(rank_line(p, host_columns, narrow), look.text())];
        if let Some(reason) = scene.model.lost.get(&p.rank) {
            let text = format!("{}  lost: {reason}", rank_line(p, host_columns, narrow));
            spans = vec![span(cut(&text, usize::from(inner.width)), look.error())];
        }
        put(buf, inner, row, &Line::from(spans));
    }
}

fn rank_line(p: &Placement, host_columns: usize, narrow: bool) -> String {
    let gib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
    let numa = p.numa.map_or_else(|| "–".to_owned(), |node| node.to_string());
    let texts = [
        &p.rank.to_string(),
        &plain(&p.host),
        &p.pid.to_string(),
        &format_ranks(&p.cores),
        &numa,
        &gib(p.memory_available),
        &gib(p.memory_total),
    ];
    columns_of(texts.map(String::as_str), host_columns, narrow)
}

fn columns_of([rank, host, pid, cores, numa, free, total]: [&str; 7], host_columns: usize, narrow: bool) -> String {
    if narrow {
        return format!("{}  {} {} {}", right(rank, 5), left(host, host_columns), right(cores, 7), right(free, 8));
    }
    format!(
        "{}  {} {} {} {} {} {}",
        right(rank, 5),
        left(host, host_columns),
        right(pid, 8),
        right(cores, 9),
        right(numa, 4),
        right(free, 8),
        right(total, 7)
    )
}
