//! The Replay tab: what a plan costs and what binds it. Resources down, time to the right, the bottleneck named.
//!
//! ```text
//! ╭ replay · relay · 2 of 3 · stage 1 of 2: 0→8 · 214 of 557 ms ──────────────────────╮╭ rank to rank ─────────╮
//! │ ◀ host0 nic0 out: 8 GiB over 16.4 GB/s = 0.52 s                                   ││ lit by what passes    │  wide terminals
//! │ predicted 557 ms (540–580)  measured 561 ms, 1 % longer                           ││                       │
//! │ resource           at 214 ms     load  0        100 ms     ▼214 ms     400 ms     ││                       │
//! │ host0 nic0 out  ███████▉ 98 % ◀ 524 ms  ████████████████████│█████████████        ││                       │  block
//! │ relay 0→8                       521 ms  ┝━━━━━━━━━━━━━━━━━━━│━━━━━━━━━━━━━◆       ││                       │
//! │ 0→8           8 GiB    16.4 GB/s        ━━━━━━━━━━━━━━━━━━━━│━━━━━━━━━━━━━        ││                       │
//! ╰───────────────────────────────────────────────────────────────────────────────────╯╰───────────────────────╯
//! ```

mod block;
mod scale;
mod side;
mod strategies;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{cut, cut_lines, cut_name, fit, panel, put, span, width, wrap};
use super::{HitMap, Scene};
use crate::plan::{Execution, Run};
use crate::tui::feed::Mode;
use crate::tui::keys::Action;
use crate::tui::replay::{Made, Reel, ReplaySight};
use crate::tui::state::Tab;
use crate::units::{format_count, format_seconds, format_size, plain};
use block::Block;
use scale::Scale;

/// Columns from which on the ranks stand beside the timeline, and columns that they take.
const BESIDE: u16 = 150;
const SIDE: u16 = 46;
/// Lines of warnings below the timeline.
const WARNINGS: usize = 2;
/// Fewer columns do not tell what binds.
const SHORTEST: usize = 16;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let panel_state = &scene.ui.replay;
    if panel_state.sight == ReplaySight::Strategies && panel_state.typing.is_none() {
        strategies::draw(scene, buf, area, hits);
        return;
    }
    let Some(shown) = scene.replays.shown().get(panel_state.at) else {
        nothing(scene, buf, area, &no_plan(scene));
        return;
    };
    let reel = match &shown.made {
        Made::Reel(reel) => reel,
        Made::Failed(why) => {
            let texts = [format!("{} has no price", plain(&shown.name)), unmeasured(scene).unwrap_or_else(|| plain(why))];
            nothing(scene, buf, area, &texts);
            return;
        }
        Made::Not => {
            nothing(scene, buf, area, &[format!("pricing {} …", plain(&shown.name))]);
            return;
        }
    };
    let beside = panel_state.beside(scene.replays);
    let side = area.width >= BESIDE;
    let (main, side_area) = if side {
        let columns = area.width - SIDE;
        (Rect { width: columns, ..area }, Rect { x: area.x + columns, width: SIDE, ..area })
    } else {
        (area, Rect::default())
    };
    timelines(scene, buf, main, reel, beside.map(AsRef::as_ref), hits);
    if side {
        side::draw(scene, buf, side_area, reel);
    }
}

/// One plan, or two on the same time.
fn timelines(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, reel: &Reel, beside: Option<&Reel>, hits: &mut HitMap) {
    let (look, ui) = (scene.look, &scene.ui.replay);
    let head = ui.head(reel);
    let room = usize::from(area.width).saturating_sub(4);
    let inner = panel(buf, area, look, &title(scene, reel, head, room));
    let columns = usize::from(inner.width).saturating_sub(2);
    let runs = [Some(reel), beside].map(|reel| reel.and_then(|reel| reel.run(&scene.model.executions)));
    // A run that took longer than foreseen ends in sight, too.
    let measured = runs.iter().flatten().filter_map(|run| median(&run.runs, |run| run.seconds));
    let end = measured.fold(ui.end(scene.replays), f64::max);
    let (from, to) = ui.window(head, end);
    let labels = block::labels(inner.width);
    let timeline =
        |area: Rect| Scale { area: Rect { x: area.x + labels, width: area.width.saturating_sub(labels + 1), ..area }, from, to, head };
    let mut y = 0;
    let mut told = vec![binds(scene, reel)];
    if let Some(other) = beside {
        let styles = [look.strong(), look.text()];
        told = difference(reel, other).into_iter().zip(styles).map(|(text, style)| vec![span(text, style)]).collect();
        // A small screen needs its rows for the timelines.
        told.truncate(if inner.height < 18 { 1 } else { 2 });
    }
    for spans in told {
        for line in flow(spans, columns, 2) {
            put(buf, inner, y, &line);
            y += 1;
        }
    }
    let warnings = if area.width >= BESIDE - SIDE && side_shows(scene) { Vec::new() } else { warnings(scene, reel, columns) };
    let bottom = inner.height.saturating_sub(warnings.len() as u16);
    let blocks: Vec<(&Reel, Option<&Execution>)> =
        [(Some(reel), runs[0]), (beside, runs[1])].into_iter().filter_map(|(reel, run)| Some((reel?, run))).collect();
    let height = bottom.saturating_sub(y) / blocks.len() as u16;
    for (at, &(reel, run)) in blocks.iter().enumerate() {
        let top = y + at as u16 * height;
        let last = at + 1 == blocks.len();
        let own = if last { bottom.saturating_sub(top) } else { height };
        let mut line = predicted(scene, reel, run, blocks.len() > 1, columns);
        if blocks.len() > 1 {
            // A line to the right edge tells the two apart.
            let rest = columns.saturating_sub(line.width() + 1);
            line.spans.push(span(format!("  {}", "─".repeat(rest)), look.border()));
        }
        put(buf, inner, top, &line);
        let area = Rect { y: inner.y + top + 1, height: own.saturating_sub(1), ..inner };
        let scale = timeline(area);
        Block { reel, run, area, scale, active: at == 0 }.draw(scene, buf, hits);
    }
    hits.timeline = Some(timeline(Rect { y: inner.y + y, height: bottom.saturating_sub(y), ..inner }).area);
    hits.times = Some((from, to));
    for (row, line) in (bottom..inner.height).zip(&warnings) {
        put(buf, inner, row, line);
    }
}

/// True if the ranks stand beside the timeline.
fn side_shows(scene: &Scene<'_>) -> bool {
    scene.replays.shown().get(scene.ui.replay.at).is_some()
}

/// `replay · relay · 2 of 3 · stage 1 of 2: 0→8 · 214 ms of 557 ms · ▶ 56 ms a second`
fn title(scene: &Scene<'_>, reel: &Reel, head: f64, room: usize) -> Line<'static> {
    let (look, ui) = (scene.look, &scene.ui.replay);
    if let Some(typed) = &ui.typing {
        let mut spans = vec![span("plan file ", look.title())];
        spans.extend(super::text::typing(look, typed, room.saturating_sub(11)));
        return Line::from(spans);
    }
    let mut parts = vec![format!("replay · {}", plain(&reel.traffic.name))];
    let plans = scene.replays.shown().len();
    if plans > 1 {
        parts.push(format!(" · plan {} of {plans}", ui.at + 1));
    }
    let mut now = vec![format!("{} of {}", format_seconds(head), format_seconds(reel.end()))];
    if let Some((number, _)) = reel.stage(head).filter(|_| reel.replay.stages.len() > 1) {
        now.push(format!("stage {} of {}", number + 1, format_count(reel.replay.stages.len() as u64)));
    }
    let steps = reel.steps();
    if steps > 1 {
        now.push(format!("step {} of {}", format_count(reel.step(head) as u64), format_count(steps as u64)));
    }
    if ui.zoom > 0 {
        now.push(format!("{} ×", format_count(u64::from(4_u32.pow(ui.zoom)))));
    }
    let mark = if ui.playing { "▶" } else { "‖" };
    let speed = format!(" · {mark} {} a second", format_seconds(ui.pace(ui.end(scene.replays))));
    parts.extend(now.into_iter().map(|part| format!(" · {part}")));
    parts.push(speed);
    if scene.replays.stale(ui.at) {
        parts.insert(1, if scene.replays.busy() { " · pricing again …" } else { " · samples came in since" }.to_owned());
    }
    if scene.model.executing.as_deref() == Some(reel.traffic.name.as_str()) {
        parts.insert(1, " · running …".to_owned());
    }
    Line::from(span(fit(&parts, room), look.title()))
}

/// `◀ bottleneck  host0 nic0 out: 8 GiB over 16.4 GB/s = 0.52 s, 94 % of the time`
fn binds(scene: &Scene<'_>, reel: &Reel) -> Vec<Span<'static>> {
    let look = scene.look;
    let bottleneck = &reel.replay.bottleneck;
    let share = bottleneck.seconds / reel.replay.seconds;
    let mut spans = vec![span("◀ bottleneck  ", look.warn()), span(plain(&bottleneck.say), look.strong())];
    if share.is_finite() && share > 0.0 {
        spans.push(span(format!(", {:.0} % of the time", (share * 100.0).min(100.0)), look.dim()));
    }
    spans
}

/// `predicted 557 ms (540 ms–580 ms)  measured 561 ms, 0.7 % longer (5 runs)  prepared once 9.2 ms`, after its name where two are
/// compared.
fn predicted(scene: &Scene<'_>, reel: &Reel, run: Option<&Execution>, named: bool, columns: usize) -> Line<'static> {
    let look = scene.look;
    let replay = &reel.replay;
    let mut spans = vec![Span::raw(" ")];
    if named {
        spans.push(span(format!("{}  ", cut(&plain(&reel.traffic.name), columns / 3)), look.accent()));
    }
    spans.push(span("predicted ", look.dim()));
    spans.push(span(format_seconds(replay.seconds), look.strong()));
    let interval = replay.interval;
    if interval.high > interval.low {
        spans.push(span(format!(" ({})", between(interval.low, interval.high)), look.dim()));
    }
    let mut more: Vec<Vec<Span<'static>>> = Vec::new();
    if let Some(run) = run {
        more.push(measured_words(scene, reel, run));
    }
    if !named {
        let flows = reel.traffic.flows.len();
        more.push(vec![
            span(format_size(reel.bytes()), look.text()),
            span(format!(" in {} flow{}", format_count(flows as u64), if flows == 1 { "" } else { "s" }), look.dim()),
        ]);
        if replay.prepare > 0.0 {
            more.push(vec![span("prepared once in ", look.dim()), span(format_seconds(replay.prepare), look.text())]);
        }
    }
    let mut used: usize = spans.iter().map(Span::width).sum();
    for part in more {
        let wide: usize = part.iter().map(Span::width).sum();
        if used + 2 + wide > columns + 1 {
            continue;
        }
        used += 2 + wide;
        spans.push(Span::raw("  "));
        spans.extend(part);
    }
    let room = columns.saturating_sub(used + 4);
    if named && room >= SHORTEST {
        spans.extend([span("  ◀ ", look.warn()), span(tight(reel, room), look.text())]);
    }
    Line::from(spans)
}

/// `host0 nic0 out 524 ms`: what binds a plan, in so many columns.
fn tight(reel: &Reel, columns: usize) -> String {
    let bottleneck = &reel.replay.bottleneck;
    let Some(load) = bottleneck.resource.and_then(|number| reel.replay.resources.get(number)) else {
        return cut(&plain(&bottleneck.say), columns);
    };
    let busy = format!(" {}", format_seconds(load.busy));
    format!("{}{busy}", cut_name(&plain(&load.resource.name), columns.saturating_sub(width(&busy))))
}

fn measured_words(scene: &Scene<'_>, reel: &Reel, run: &Execution) -> Vec<Span<'static>> {
    let look = scene.look;
    if !run.failed.is_empty() {
        return vec![span(format!("run failed: {}", plain(&run.failed)), look.error())];
    }
    let Some(seconds) = median(&run.runs, |run| run.seconds) else { return Vec::new() };
    // What was foreseen when it ran: prices may be others by now.
    let (foreseen, low, high) = run.foreseen.as_ref().map_or_else(
        || (reel.replay.seconds, reel.replay.interval.low, reel.replay.interval.high),
        |told| (told.seconds, told.low, told.high),
    );
    let off = (seconds / foreseen - 1.0) * 100.0;
    let style = if (low..=high).contains(&seconds) || off.abs() < 5.0 { look.good() } else { look.warn() };
    let mut spans = vec![span("measured ", look.dim()), span(format_seconds(seconds), style)];
    if off.is_finite() {
        spans.push(span(format!(", {}", than_foreseen(seconds / foreseen)), style));
    }
    spans.push(span(format!(" ({})", super::text::count(run.runs.len(), "run")), look.dim()));
    spans
}

/// `1.3 % longer`, `5.1 × as long`: a time beside the one that was foreseen.
fn than_foreseen(ratio: f64) -> String {
    let word = if ratio >= 1.0 { "longer" } else { "shorter" };
    match ratio {
        10.0.. => format!("{ratio:.0} × as long"),
        2.0.. => format!("{ratio:.1} × as long"),
        _ => format!("{:.1} % {word}", ((ratio - 1.0) * 100.0).abs()),
    }
}

/// `741–795 ms`, with both units where they differ.
fn between(low: f64, high: f64) -> String {
    let (low, high) = (format_seconds(low), format_seconds(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// When a stage was over, from the start: the middle of the runs.
fn ended(run: &Execution, stage: usize) -> Option<f64> {
    let all = run.runs.iter().all(|run| stage < run.stages.len());
    median(&run.runs, |run| run.stages.get(stage).copied().unwrap_or(f64::NAN)).filter(|_| all)
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let high = values.get(values.len() / 2)?;
    let low = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*low, *high))
}

/// How two plans differ, in words.
fn difference(a: &Reel, b: &Reel) -> Vec<String> {
    let names = [a, b].map(|reel| plain(&reel.traffic.name));
    let (ours, theirs) = (a.replay.seconds, b.replay.seconds);
    let ratio = ours.max(theirs) / ours.min(theirs);
    let first = if ratio < 1.005 {
        format!("{} and {} take the same time, {}", names[0], names[1], format_seconds(ours))
    } else {
        let (fast, slow) = if ours < theirs { (0, 1) } else { (1, 0) };
        let by = format_seconds((ours - theirs).abs());
        format!("{} is {ratio:.2} × faster than {}: {by} less", names[fast], names[slow])
    };
    // Their intervals overlap: a run may find them the other way round.
    let sure = a.replay.interval.high < b.replay.interval.low || b.replay.interval.high < a.replay.interval.low;
    let doubt = if sure || ratio < 1.005 { String::new() } else { "; their intervals overlap".to_owned() };
    let (mine, other) = (a.bytes(), b.bytes());
    let bytes = if mine == other {
        format!("; both move {}", format_size(mine))
    } else {
        format!("; {} moves {}, {} {}", names[0], format_size(mine), names[1], format_size(other))
    };
    vec![format!("{first}{doubt}{bytes}"), bound_by([a, b], &names)]
}

/// What binds the one and the other: the same, or what.
fn bound_by(reels: [&Reel; 2], names: &[String; 2]) -> String {
    let binding = |reel: &Reel| {
        let load = reel.replay.resources.get(reel.replay.bottleneck.resource?)?;
        // Over all of it in both, whatever stages they have.
        Some((plain(&load.resource.name), load.busy))
    };
    let told = |reel: &Reel| match binding(reel) {
        Some((name, seconds)) => format!("{name} for {}", format_seconds(seconds)),
        None => plain(&reel.replay.bottleneck.say),
    };
    match reels.map(binding) {
        [Some((one, mine)), Some((other, theirs))] if one == other => {
            let rest = |at: usize, seconds: f64| format_seconds((reels[at].replay.seconds - seconds).max(0.0));
            let loads = if (mine / theirs - 1.0).abs() < 0.005 {
                format!("for {} in each", format_seconds(mine))
            } else {
                format!("for {} and {}", format_seconds(mine), format_seconds(theirs))
            };
            format!("{one} binds both, {loads}; the rest of {} takes {}, of {} {}", names[0], rest(0, mine), names[1], rest(1, theirs))
        }
        _ => format!("{} is bound by {}, {} by {}", names[0], told(reels[0]), names[1], told(reels[1])),
    }
}

/// Warnings in lines that start with a mark.
fn warnings(scene: &Scene<'_>, reel: &Reel, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    let all = &reel.replay.warnings;
    let mut lines: Vec<String> = Vec::new();
    for warning in all {
        lines.extend(wrap(&format!("▲ {}", plain(&warning.say)), columns));
    }
    if lines.len() > WARNINGS {
        let more = all.len() - 1;
        let tail = if more > 0 { format!(" · {more} more") } else { String::new() };
        lines = cut_lines(lines, WARNINGS, columns.saturating_sub(width(&tail)));
        if let Some(last) = lines.last_mut() {
            last.push_str(&tail);
        }
    }
    lines.into_iter().map(|line| Line::from(span(format!(" {line}"), look.warn()))).collect()
}

/// Spans broken at words into `rows` lines of at most `columns`.
fn flow(spans: Vec<Span<'static>>, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let whole: usize = spans.iter().map(Span::width).sum();
    if whole <= columns {
        let mut own = vec![Span::raw(" ")];
        own.extend(spans);
        return vec![Line::from(own)];
    }
    let style = spans.iter().map(|span| span.style).nth(1).or_else(|| spans.first().map(|span| span.style)).unwrap_or_default();
    let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
    cut_lines(wrap(&text, columns), rows, columns).into_iter().map(|line| Line::from(span(format!(" {line}"), style))).collect()
}

/// What to do first, where nothing was measured at all.
fn unmeasured(scene: &Scene<'_>) -> Option<String> {
    let live = scene.mode == Mode::Live;
    let text = || {
        if live {
            format!("nothing is measured yet: {} on tab {} does it", scene.look.key_of(Action::StartSweep), Tab::Sweep.number())
        } else {
            "nothing was measured in this session".to_owned()
        }
    };
    (scene.model.samples() == 0).then(text)
}

/// What the tab is for, and how to get a plan.
fn no_plan(scene: &Scene<'_>) -> Vec<String> {
    vec![
        "no plan is loaded".to_owned(),
        format!("{} reads a plan's file: a plan, a schedule, a list of flows; so does --plan FILE", scene.look.key_of(Action::LoadPlan)),
        "scenario:NAME in its place makes a benchmark scenario for these ranks, such as scenario:xfan_in (toposcope scenarios)".to_owned(),
    ]
}

fn nothing(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, texts: &[String]) {
    let look = scene.look;
    let room = usize::from(area.width).saturating_sub(4);
    let title = match &scene.ui.replay.typing {
        Some(typed) => {
            let mut spans = vec![span("plan file ", look.title())];
            spans.extend(super::text::typing(look, typed, room.saturating_sub(11)));
            Line::from(spans)
        }
        None => Line::from(span("replay", look.title())),
    };
    let inner = panel(buf, area, look, &title);
    let mut y = 1;
    for (at, text) in texts.iter().enumerate() {
        for line in wrap(text, usize::from(inner.width).saturating_sub(2)) {
            put(buf, inner, y, &Line::from(span(format!(" {line}"), if at == 0 { look.text() } else { look.dim() })));
            y += 1;
        }
        y += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_far_from_what_was_foreseen_are_told_as_ratios() {
        let told = [1.0129, 0.9, 5.143, 51.4, 1.99, 2.0].map(than_foreseen);
        assert_eq!(told, ["1.3 % longer", "10.0 % shorter", "5.1 × as long", "51 × as long", "99.0 % longer", "2.0 × as long"]);
    }
}
