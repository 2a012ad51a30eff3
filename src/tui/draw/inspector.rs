//! What is known of the pair under the cursor: the second glance, "why?".

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{count, cut, fit, left, panel, put, right, span, window, wrap};
use super::{HitMap, Scene, route, standout};
use crate::matrix::{Edge, Metric};
use crate::sample::{Pattern, Status};
use crate::session::{Shot, SizeCell};
use crate::sweep::Enough;
use crate::topology::GpuRange;
use crate::tui::atlas::short;
use crate::tui::findings::mark;
use crate::units::{format_seconds, format_size, plain};

/// Columns of the names.
const NAMES: usize = 10;
/// Lines of a finding.
const FINDING: usize = 2;
/// Rows of the size curve that are worth drawing.
const CURVE: std::ops::RangeInclusive<u16> = 4..=9;

/// Draw the inspector.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let title = match scene.view.key.pattern {
        Pattern::Duplex => format!("{from} → {to} · both ways at once"),
        Pattern::HostToDevice if from == to => format!("{from} · copy from its host to its GPU"),
        Pattern::DeviceToHost if from == to => format!("{from} · copy from its GPU to its host"),
        _ if from == to => format!("{from} · copy inside the rank"),
        _ => format!("{from} → {to}"),
    };
    if area.height < 5 {
        put(buf, area, 0, &brief(scene));
        put(buf, area, 1, &brief_why(scene));
        return;
    }
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let beside = inner.height < 8;
    let columns = usize::from(if beside { inner.width / 2 } else { inner.width });
    let mut facts = block(scene, hits.matrix.level(), columns);
    facts.extend(self::facts(scene, columns));
    if beside {
        // Below the matrix: facts side by side.
        let half = inner.width / 2;
        let rows = usize::from(inner.height).max(1);
        for (i, line) in facts.iter().take(rows * 2).enumerate() {
            // Both columns end where they must: a line too long is cut by its column.
            let column = Rect { x: inner.x + if i < rows { 0 } else { half }, width: half, ..inner };
            put(buf, column, (i % rows) as u16, line);
        }
        return;
    }
    let mut y = 0;
    for line in facts.iter().take(usize::from(inner.height)) {
        put(buf, inner, y, line);
        y += 1;
    }
    let sizes = scene.model.cells.sizes_of(scene.view.key.cell(from, to));
    let rest = inner.height.saturating_sub(y);
    let samples = measured(scene).map_or(0, |size| size.shots.len());
    let curve = rest.saturating_sub(1 + (samples as u16).min(rest / 3) + 1).min(*CURVE.end());
    if sizes.len() > 1 && curve >= *CURVE.start() {
        y += 1;
        let curve_area = Rect { y: inner.y + y, height: curve, ..inner };
        look.curve(sizes, scene.view.key.bytes, scene.view.rates(), buf, curve_area);
        y += curve;
    }
    let list = Rect { y: inner.y + y, height: inner.height.saturating_sub(y), ..inner };
    if let Some(size) = measured(scene) {
        shots(scene, size, buf, list, hits);
    }
}

/// The block that the pair was chosen from: what it is of, how many pairs it has, and between what they lie.
fn block(scene: &Scene<'_>, level: usize, columns: usize) -> Vec<Line<'static>> {
    if level == 0 {
        return Vec::new();
    }
    let (look, grid, metric) = (scene.look, &scene.view.grid, scene.view.key.metric);
    let axes = grid.axes();
    let (row, column) = axes.places(scene.ui.matrix.cursor);
    let (row, column) = (axes.block_of(level, row), axes.block_of(level, column));
    let block = grid.block(level, row, column);
    let name = |edge, block| scene.atlas.orders.name(axes, edge, level, block);
    let room = columns.saturating_sub(NAMES + 2);
    let line = |label: &str, text: String| {
        Line::from(vec![span(format!(" {}", left(label, NAMES)), look.dim()), span(cut(&text, room), look.text())])
    };
    let mut told = vec![line("worst of", format!("{} → {}", name(Edge::Senders, row), name(Edge::Receivers, column)))];
    let unit = metric.unit(grid.all().max);
    let number = |value| metric.format(value, unit);
    let mut known = vec![block.count.to_string()];
    if block.count > 0 {
        known.push(format!(", {} – {}", number(block.min), number(block.max)));
        known.push(format!(", mean {}", number(block.mean(metric))));
    }
    told.push(line("its pairs", fit(&known, room)));
    if block.bad() > 0 {
        let parts = [(block.corrupt, "corrupt"), (block.timeout, "timed out"), (block.waived, "waived")];
        let parts: Vec<String> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        told.push(Line::from(span(cut(&format!(" {}", parts.join(", ")), columns), look.error())));
    }
    told
}

/// The pair in one line: `0→1  8.30 GB/s  8.21 – 8.39 (95 %)  back 6.00`.
fn brief(scene: &Scene<'_>) -> Line<'static> {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let rates = scene.view.rates();
    let mut spans = vec![span(format!(" {from}→{to}  "), look.title())];
    match measured(scene).filter(|size| size.count > 0) {
        Some(size) => {
            spans.push(span(rates.text(size.bandwidth()), look.strong()));
            if let Some(interval) = size.bandwidth_interval() {
                spans.push(span(format!("  {} – {} (95 %)", rates.number(interval.low), rates.number(interval.high)), look.text()));
            }
        }
        None => spans.push(span("no measurement", look.dim())),
    }
    let back = scene.model.cells.get(scene.view.key.cell(to, from), scene.view.key.bytes).filter(|size| size.count > 0 && from != to);
    if let Some(back) = back {
        spans.push(span(format!("  back {}", rates.number(back.bandwidth())), look.text()));
    }
    Line::from(spans)
}

/// State, path and comparison of the pair in one line.
fn brief_why(scene: &Scene<'_>) -> Line<'static> {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let class = scene.model.header.topology.path(from, to);
    let mut spans = vec![Span::raw(" ")];
    if let Some(size) = measured(scene) {
        spans.extend(state(scene, size));
        spans.push(Span::raw("  "));
    }
    if let Some((at, found)) = scene.desk.told().and_then(|told| told.at_cell((from, to))) {
        spans.push(span(format!("{} finding {}  ", mark(found.severity), at + 1), look.finding(found.severity)));
    }
    let way = route::brief(scene);
    if way.is_empty() {
        spans.push(span(class.name(), look.text()));
    } else {
        spans.extend(way);
        return Line::from(spans);
    }
    if let (Some(size), Some(typical)) = (measured(scene).filter(|size| size.count > 0), scene.view.typical(class)) {
        let share = size.bandwidth() / typical;
        spans.push(span(
            format!("  {share:.2} × typical {}", scene.view.rates().number(typical)),
            if share < 0.8 { look.warn() } else { look.text() },
        ));
    }
    if let Some(reason) = measured(scene).and_then(|size| newest(size).find_map(|shot| shot.reason())) {
        spans.push(span(format!("  {}", plain(reason)), look.warn()));
    }
    Line::from(spans)
}

/// What is known of the cell under the cursor at the chosen size.
fn measured<'a>(scene: &Scene<'a>) -> Option<&'a SizeCell> {
    let (from, to) = scene.ui.matrix.cursor;
    scene.model.cells.get(scene.view.key.cell(from, to), scene.view.key.bytes)
}

fn facts(scene: &Scene<'_>, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let topology = &scene.model.header.topology;
    let (key, rates) = (scene.view.key, scene.view.rates());
    let room = columns.saturating_sub(NAMES + 2);
    let row = |name: &str, spans: Vec<Span<'static>>| {
        let mut all = vec![span(format!(" {}", left(name, NAMES)), look.dim())];
        all.extend(spans);
        Line::from(all)
    };
    let text = |text: String| vec![span(cut(&text, room), look.text())];
    let mut lines = Vec::new();
    let size = measured(scene);
    match size.filter(|size| size.count > 0) {
        Some(size) => {
            let mut spans = vec![span(format!(" {}", rates.text(size.bandwidth())), look.strong())];
            if let Some(interval) = size.bandwidth_interval() {
                let interval = format!("   {} – {}", rates.number(interval.low), rates.number(interval.high));
                // What it is an interval of is told where there is room.
                let used: usize = spans.iter().map(Span::width).sum();
                let told = used + super::text::width(&interval) + 7 <= columns;
                spans.push(span(interval, look.text()));
                spans.push(span(if told { " (95 %)" } else { "" }, look.dim()));
            } else {
                spans.push(span(format!("   median of {}", size.count), look.dim()));
            }
            lines.push(Line::from(spans));
            let fastest = size.times().into_iter().fold(f64::INFINITY, f64::min);
            lines.push(row("best", text(rates.text(size.bytes as f64 / fastest))));
            lines.push(row("a message", text(format!("{}, {}", format_seconds(size.median), format_size(size.bytes)))));
        }
        None if size.is_none() => lines.push(Line::from(span(" not measured", look.dim()))),
        None => {}
    }
    let smallest = scene.model.cells.sizes_of(key.cell(from, to)).first();
    if let Some(small) = smallest.filter(|small| small.count > 0 && small.bytes < key.bytes) {
        lines.push(row("smallest", text(format!("{}, {}", format_seconds(small.median), format_size(small.bytes)))));
    }
    if let Some(size) = size {
        lines.push(row("state", state(scene, size)));
        lines.extend(reason(scene, size, columns));
    }
    lines.extend(both_ways(scene, room).map(|(name, spans)| row(name, spans)));
    lines.extend(reverse(scene, room).into_iter().map(|(name, spans)| row(name, spans)));
    let host = |rank: usize| topology.ranks.get(rank).map_or_else(|| "?".to_owned(), |p| plain(&p.host));
    let hosts = if host(from) == host(to) { host(from) } else { format!("{} → {}", host(from), host(to)) };
    let path = format!("{}  {hosts}", topology.path(from, to).name());
    let way = route::rows(scene, room);
    if !way.is_empty() {
        lines.extend(way.into_iter().map(|(name, spans)| row(name, spans)));
        if host(from) != host(to) {
            lines.push(row("hosts", text(hosts)));
        }
    } else if super::text::width(&path) <= room {
        lines.push(row("path", text(path)));
    } else {
        lines.push(row("path", text(topology.path(from, to).name().to_owned())));
        lines.push(row("", text(hosts)));
    }
    // What the hosts tell is the way that bytes should go; this is the one they went.
    if let Some(via) = size.and_then(|size| newest(size).filter_map(Shot::via).last()) {
        lines.push(row("went via", text(plain(via))));
    }
    let class = topology.path(from, to);
    if let (Some(size), Some(typical)) = (size.filter(|size| size.count > 0), scene.view.typical(class)) {
        let share = size.bandwidth() / typical;
        let style = if share < 0.8 { look.warn() } else { look.text() };
        lines.push(row("typical", vec![span(cut(&format!("{share:.2} × {}", rates.text(typical)), room), style)]));
        if share < 0.8 && scene.desk.speaks(scene.model, key).is_none() {
            lines.extend(standout::about(scene, (from, to), columns));
        }
    }
    lines.extend(finding(scene, columns));
    lines.extend(change(scene, room).map(|spans| row("change", spans)));
    if let Some(size) = size.filter(|size| !size.shots.is_empty()) {
        let messages = size.shots.last().map_or(0, |shot| shot.messages);
        let take = if size.take > 0 { format!(" · take {}", size.take) } else { String::new() };
        lines.push(row("samples", text(format!("{} × {}{take}", size.shots.len(), count(messages as usize, "message")))));
        lines.push(row("run", text(fit(&run(scene, size), room))));
    }
    for rank in if from == to { vec![from] } else { vec![from, to] } {
        if let Some(range) = scene.model.gpus.get(&rank) {
            lines.extend(gpu(scene, range, columns));
        }
    }
    for (who, rank) in [("sender", from), ("receiver", to)] {
        if let Some(reason) = scene.model.lost.get(&rank) {
            lines.push(Line::from(span(cut(&format!(" {who} lost: {reason}"), columns), look.error())));
        }
        if from == to {
            break;
        }
    }
    if key.bytes == 0 && scene.player.is_none() {
        lines.push(Line::from(span(" start a sweep to measure", look.dim())));
    }
    lines
}

/// How a rank's GPU was doing while the sweep ran; what is not as it should be stands out.
fn gpu(scene: &Scene<'_>, range: &GpuRange, columns: usize) -> Vec<Line<'static>> {
    let style = if range.throttled > 0 || range.narrow > 0 { scene.look.warn() } else { scene.look.text() };
    let told = format!("GPU of {}: {}", range.rank, range.told().join(" · "));
    wrap(&told, columns.saturating_sub(2)).into_iter().take(3).map(|line| Line::from(span(format!(" {line}"), style))).collect()
}

/// How much the pair changed since the other session.
fn change(scene: &Scene<'_>, room: usize) -> Option<Vec<Span<'static>>> {
    let (from, to) = scene.ui.matrix.cursor;
    let changes = scene.view.changes.as_deref()?;
    let ratio = changes.ratio(from, to)?;
    let beyond = changes.beyond(from, to);
    let amount = format!("{} %", Metric::Change.format(ratio.ln(), Metric::Change.unit(1.0)));
    let words = if beyond { ", beyond noise" } else { ", within noise" };
    let style = if beyond && ratio < 1.0 { scene.look.warn() } else { scene.look.text() };
    Some(vec![span(fit(&[amount, words.to_owned()], room), style)])
}

/// The finding that the pair belongs to, in two lines at most.
fn finding(scene: &Scene<'_>, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    let Some((at, found)) = scene.desk.told().and_then(|told| told.at_cell(scene.ui.matrix.cursor)) else { return Vec::new() };
    let head = format!(" {} finding {}  ", mark(found.severity), at + 1);
    let indent = super::text::width(&head);
    let lines = wrap(&short(&found.title), columns.saturating_sub(indent + 1));
    let more = lines.len() > FINDING;
    let told = lines.into_iter().take(FINDING).enumerate().map(|(row, line)| {
        let first = if row == 0 { head.clone() } else { " ".repeat(indent) };
        let line = if more && row + 1 == FINDING { cut(&format!("{line} …"), columns.saturating_sub(indent)) } else { line };
        Line::from(vec![span(first, look.finding(found.severity)), span(line, look.text())])
    });
    told.collect()
}

fn state(scene: &Scene<'_>, size: &SizeCell) -> Vec<Span<'static>> {
    let look = scene.look;
    let style = match size.status {
        Status::Ok => look.good(),
        Status::Waived => look.dim(),
        Status::Timeout | Status::Corrupt => look.error(),
    };
    vec![span(size.status.name(), style), span(format!(", {} of {} good", size.count, newest(size).count()), look.dim())]
}

/// Beside which other transfers it was measured, and why it was not measured longer.
fn run(scene: &Scene<'_>, size: &SizeCell) -> Vec<String> {
    let (all, alone) = newest(size).fold((0, 0), |(all, alone), shot| (all + 1, alone + usize::from(shot.isolated)));
    let beside = match alone {
        0 => "beside others".to_owned(),
        _ if alone == all => "alone".to_owned(),
        _ => format!("{alone} of {all} alone"),
    };
    let settings = scene.model.sweep.as_ref().map(|sweep| &sweep.settings);
    let why = size.enough.map(|enough| match (enough, settings) {
        (Enough::Interval, Some(settings)) => format!(", at ±{} %", settings.ci * 100.0),
        (Enough::Interval, None) => ", sure enough".to_owned(),
        (Enough::Repeats, _) => ", all done".to_owned(),
        (Enough::Budget, _) => ", out of time".to_owned(),
    });
    std::iter::once(beside).chain(why).collect()
}

/// The same direction of the same pair as the other pattern has it: alone, or while both directions are busy.
fn both_ways(scene: &Scene<'_>, room: usize) -> Option<(&'static str, Vec<Span<'static>>)> {
    let (from, to) = scene.ui.matrix.cursor;
    let key = scene.view.key.other();
    let other = scene.model.cells.get(key.cell(from, to), key.bytes).filter(|size| size.count > 0 && from != to)?.bandwidth();
    let rates = scene.view.rates();
    let mut parts = vec![rates.text(other)];
    let name = if key.pattern == Pattern::Duplex { "duplex" } else { "alone" };
    if let Some(own) = measured(scene).filter(|size| size.count > 0).map(SizeCell::bandwidth) {
        let ratio = if key.pattern == Pattern::Duplex { other / own } else { own / other };
        parts.push(format!("  ratio {ratio:.2}"));
    }
    Some((name, vec![span(fit(&parts, room), scene.look.text())]))
}

/// Shots of the newest take.
fn newest(size: &SizeCell) -> impl Iterator<Item = &Shot> {
    size.shots.iter().filter(|shot| shot.take == size.take && !shot.warmup)
}

fn reason(scene: &Scene<'_>, size: &SizeCell, columns: usize) -> Vec<Line<'static>> {
    let Some(reason) = newest(size).filter(|shot| shot.status == size.status).find_map(|shot| shot.reason()) else {
        return Vec::new();
    };
    let lines = wrap(&plain(reason), columns.saturating_sub(2));
    lines.into_iter().take(3).map(|line| Line::from(span(format!(" {line}"), scene.look.warn()))).collect()
}

/// The other direction, and how many times faster the faster one is.
fn reverse(scene: &Scene<'_>, room: usize) -> Vec<(&'static str, Vec<Span<'static>>)> {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    if from == to {
        return Vec::new();
    }
    let back = scene.model.cells.get(scene.view.key.cell(to, from), scene.view.key.bytes).filter(|size| size.count > 0);
    let Some(back) = back.map(SizeCell::bandwidth) else { return vec![("reverse", vec![span("not measured", look.dim())])] };
    let mut rows = vec![("reverse", vec![span(format!("{}  {to} → {from}", scene.view.rates().text(back)), look.text())])];
    if let Some(forth) = measured(scene).filter(|size| size.count > 0).map(SizeCell::bandwidth) {
        let ratio = (forth / back).max(back / forth);
        // Whichever way the cursor looks, the slow direction is named.
        let (slow, word) = if forth < back { (format!("{from}→{to} "), "slower") } else { (format!("{to}→{from} "), "faster") };
        let (text, style) = if ratio < 1.05 {
            (format!("{ratio:.2} ×"), look.text())
        } else {
            let named = format!("{slow}{ratio:.1} × slower");
            (if super::text::width(&named) <= room { named } else { format!("{ratio:.1} × {word}") }, look.warn())
        };
        rows.push(("asymmetry", vec![span(text, style)]));
    }
    rows
}

/// The raw samples, as they came.
fn shots(scene: &Scene<'_>, size: &SizeCell, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if area.height < 2 {
        return;
    }
    let look = scene.look;
    let rows = usize::from(area.height - 1);
    hits.samples = Some((area, size.shots.len().saturating_sub(rows)));
    let range = window(scene.ui.matrix.scroll, size.shots.len(), rows);
    let more =
        if rows < size.shots.len() { format!("  {}–{} of {}", range.start + 1, range.end, size.shots.len()) } else { String::new() };
    let heading = format!(" {} {} {}{more}", right("#", 4), right(scene.view.rates().name(), 7), right("time", 9));
    put(buf, area, 0, &Line::from(span(heading, look.dim())));
    for (row, shot) in (1_u16..).zip(size.shots.get(range).unwrap_or(&[])) {
        let number = if shot.take > 0 { format!("{}.{}", shot.take, shot.repeat) } else { shot.repeat.to_string() };
        let old = shot.take < size.take;
        let seconds = shot.seconds().map(|seconds| seconds / f64::from(shot.messages.max(1)));
        let (rate, time) = match seconds {
            Some(seconds) => (scene.view.rates().number(size.bytes as f64 / seconds), format_seconds(seconds)),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let style = match shot {
            _ if old || shot.warmup => look.dim(),
            _ if shot.outlier => look.warn(),
            _ => look.text(),
        };
        let mut spans = vec![span(format!(" {} {} {}", right(&number, 4), right(&rate, 7), right(&time, 9)), style)];
        if shot.warmup {
            spans.push(span(" warm-up", look.dim()));
        } else if shot.status != Status::Ok {
            spans.push(span(format!(" {}", shot.status.name()), look.error()));
        } else if shot.outlier {
            spans.push(span(" outlier", look.warn()));
        } else if !shot.isolated {
            spans.push(span(" shared", look.dim()));
        }
        put(buf, area, row, &Line::from(spans));
    }
}
