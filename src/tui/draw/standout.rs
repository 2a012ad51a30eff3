//! What is slow, in words: the first glance.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{cut, fit, panel, put, put_at, right, span};
use super::{HitMap, Scene};
use crate::diagnose::Finding;
use crate::diagnose::compare::{Change, Changes};
use crate::matrix::Metric;
use crate::topology::PathClass;
use crate::tui::atlas::{SLOW, short};
use crate::tui::findings::{Told as Diagnosed, direction, mark};
use crate::tui::insight::{Skew, Slow, SlowLine, Way};
use crate::tui::keys::Action;
use crate::units::{format_ranks, format_size, plain};

/// Columns that an asymmetry takes.
const SKEW: u16 = 48;
/// Ranks told one by one that stay behind what is expected.
const BEHIND: usize = 4;

/// Something to tell, and the pair that it leads to.
type Told = (Line<'static>, Option<(usize, usize)>);

/// Ranks that stay behind what their hardware should give.
struct Behind {
    /// none for most of them at once
    rank: Option<usize>,
    parts: Vec<String>,
    pair: (usize, usize),
}

/// One sentence: what stands out most.
pub fn sentence(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let mut told = everything(scene, columns.saturating_sub(1));
    let more = told.len().saturating_sub(1);
    let mut line = if told.is_empty() { Line::default() } else { told.swap_remove(0).0 };
    if more > 0 {
        let hint = format!("  {more} more: {}", scene.look.key_of(Action::NextSuspect));
        if line.width() + super::text::width(&hint) <= columns {
            line.push_span(span(hint, scene.look.dim()));
        }
    }
    line
}

/// Slow ranks, slow pairs and one-sided ones, in a frame.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    if let Some(told) = scene.desk.speaks(scene.model, scene.view.key) {
        draw_found(scene, told, buf, area, hits);
        return;
    }
    let found = scene.view.insight.findings();
    let columns = area.width.saturating_sub(2);
    let rows = usize::from(area.height.saturating_sub(2));
    // Side by side where both can be told, else below one another; a sentence about a rank is long.
    let wide = if found.lines.is_empty() { 72 } else { 110 };
    let slow = scene.view.insight.failed(0).0 + behind(scene).len() + found.lines.len() + found.pairs.len();
    let beside = columns >= wide && !found.skews.is_empty() && slow > 0;
    let split = if beside { columns - (columns / 2).min(SKEW) } else { columns };
    let mut left: Vec<Told> = first(scene, usize::from(split));
    let skews = |width: u16| found.skews.iter().map(move |skew| skew_line(scene, skew, usize::from(width)));
    let mut hidden = 0;
    let mut second: Vec<Told> = Vec::new();
    if beside {
        second = skews(columns - split).take(rows).collect();
    } else if found.skews.is_empty() {
        left.extend(rest(scene));
    } else {
        let kept = rows.saturating_sub(1);
        hidden = left.len().saturating_sub(kept);
        left.truncate(kept);
        left.extend(skews(columns).take(rows - left.len().min(rows)));
    }
    hidden += left.iter().skip(rows).filter(|(_, pair)| pair.is_some()).count();
    let mut title = vec!["what stands out".to_owned()];
    if scene.view.key.bytes > 0 {
        title.push(format!(" · {}", format_size(scene.view.key.bytes)));
    }
    if hidden > 0 {
        title.push(format!(" · {hidden} more: {}", look.key_of(Action::NextSuspect)));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    for (x, lines) in [(0, left), (split, second)] {
        for (row, (line, pair)) in (0..inner.height).zip(lines) {
            put_at(buf, inner, x, row, &line);
            if let Some(pair) = pair {
                hits.pairs.push((Rect { x: inner.x + x, y: inner.y + row, width: line.width() as u16, height: 1 }, pair));
            }
        }
    }
    if inner.height == 0 {
        put(buf, area, 0, &sentence(scene, usize::from(area.width)));
    }
}

/// All of it below one another, or that there is nothing.
fn everything(scene: &Scene<'_>, columns: usize) -> Vec<Told> {
    if let Some(told) = scene.desk.speaks(scene.model, scene.view.key) {
        return found(scene, told, columns);
    }
    let mut told = first(scene, columns);
    told.extend(scene.view.insight.findings().skews.first().map(|skew| skew_line(scene, skew, columns)));
    if told.is_empty() {
        told.extend(rest(scene));
    }
    told
}

/// What was diagnosed, in a frame: it has looked closer than what stands out at a glance.
fn draw_found(scene: &Scene<'_>, told: &Diagnosed, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let rows = usize::from(area.height.saturating_sub(2));
    let lines = found(scene, told, usize::from(area.width.saturating_sub(2)));
    let mut title = match shown_changes(scene, told) {
        Some(_) => vec!["what changed".to_owned()],
        None => vec!["findings".to_owned(), format!(" · {}", format_size(told.seen.bytes))],
    };
    let hidden = lines.len().saturating_sub(rows);
    let key = look.key_of(Action::Tab6);
    title.push(if hidden > 0 { format!(" · {hidden} more, and why: {key}") } else { format!(" · why: {key}") });
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    for (row, (line, pair)) in (0..inner.height).zip(lines) {
        put(buf, inner, row, &line);
        if let Some(pair) = pair {
            hits.pairs.push((Rect { x: inner.x, y: inner.y + row, width: line.width() as u16, height: 1 }, pair));
        }
    }
}

/// What changed since another session, where that is what the matrix shows.
fn shown_changes<'a>(scene: &Scene<'_>, told: &'a Diagnosed) -> Option<&'a Changes> {
    told.changes().filter(|_| scene.view.key.metric == Metric::Change).map(std::sync::Arc::as_ref)
}

/// Each finding in a line: `▲ 1  0→2 gives 7.9, 2→0 53.9 GB/s  6.8 ×`.
fn found(scene: &Scene<'_>, told: &Diagnosed, columns: usize) -> Vec<Told> {
    let look = scene.look;
    if let Some(changes) = shown_changes(scene, told) {
        let one = |change: &Change| {
            let style = if change.ratio < 1.0 { look.warn() } else { look.good() };
            let words = cut(&short(&change.say), columns.saturating_sub(4));
            (
                Line::from(vec![span(format!(" {} ", direction(change.ratio)), style), span(words, look.text())]),
                change.cells.first().copied(),
            )
        };
        let nothing = || vec![(Line::from(span(" no change beyond noise", look.good())), None)];
        return if changes.changes.is_empty() { nothing() } else { changes.changes.iter().map(one).collect() };
    }
    if told.findings().is_empty() {
        return vec![(Line::from(span(" nothing stands out", look.good())), None)];
    }
    let one = |(at, found): (usize, &Finding)| {
        let style = look.finding(found.severity);
        let (head, amount) = (format!(" {} {}  ", mark(found.severity), at + 1), format!("  {}", plain(&found.amount)));
        let room = columns.saturating_sub(super::text::width(&head) + super::text::width(&amount) + 1);
        let line = vec![span(head, style), span(cut(&short(&found.title), room), look.text()), span(amount, style)];
        (Line::from(line), found.cells.first().copied())
    };
    told.findings().iter().enumerate().map(one).collect()
}

/// Failed pairs, slow ranks, slow pairs.
fn first(scene: &Scene<'_>, columns: usize) -> Vec<Told> {
    let look = scene.look;
    let insight = &scene.view.insight;
    let (failed, pairs) = insight.failed(4);
    let mut told: Vec<Told> = Vec::new();
    if let Some(&first) = pairs.first() {
        let named: Vec<String> = pairs.iter().map(|(from, to)| format!("{from}→{to}")).collect();
        let more = if failed > pairs.len() { ", …" } else { "" };
        let text = format!(" ! {failed} failed: {}{more}", named.join(", "));
        told.push((Line::from(span(cut(&text, columns), look.error())), Some(first)));
    }
    let found = insight.findings();
    let warn = |parts: &[String]| warning(scene, parts, columns);
    let behind = behind(scene);
    told.extend(behind.iter().map(|behind| (warn(&behind.parts), Some(behind.pair))));
    // What stays behind what is expected need not be told again as slower than others.
    let again = |line: &&SlowLine| !line.ranks.iter().all(|rank| behind.iter().any(|behind| behind.rank == Some(*rank)));
    told.extend(found.lines.iter().filter(again).map(|line| (warn(&line_parts(scene, line)), Some(line.pair))));
    told.extend(found.pairs.iter().map(|slow| (warn(&pair_parts(scene, slow)), Some((slow.from, slow.to)))));
    told
}

/// Ranks that stay behind what their hardware should give, and the fault that says why; each with a pair that shows it. What is
/// typical of a path class cannot tell that: where half of the pairs cross sockets, a near pair at half its rate is no slower.
fn behind(scene: &Scene<'_>) -> Vec<Behind> {
    let (atlas, world) = (scene.atlas, scene.model.world());
    let slow = atlas.slow_ranks();
    let mut ranks: Vec<usize> = Vec::new();
    for &(rank, ..) in &slow {
        if !ranks.contains(&rank) {
            ranks.push(rank);
        }
    }
    let pair_of = |rank: usize| slow.iter().find(|(of, ..)| *of == rank).map_or((rank, rank), |(_, way, best)| way.pair(rank, best.other));
    if ranks.len() > BEHIND && ranks.len() * 2 > world {
        let worst = ranks.first().copied().unwrap_or(0);
        let parts = vec![format!("▲ {} of {world} ranks stay below {SLOW}", ranks.len()), " of expected".to_owned()];
        return vec![Behind { rank: None, parts, pair: pair_of(worst) }];
    }
    ranks.truncate(BEHIND);
    let told = |rank: usize| {
        let mut parts = super::topology::reached_words(&slow, rank);
        let node = atlas.tree.of_rank(rank).and_then(|at| atlas.tree.node(at));
        let fault = node.and_then(|node| node.marks.iter().find(|mark| mark.fault).map(|mark| format!("{} {}: ", node.name, mark.text)));
        if let Some(first) = parts.first_mut() {
            first.insert_str(0, &format!("▲ {}", fault.unwrap_or_default()));
        }
        Behind { rank: Some(rank), parts, pair: pair_of(rank) }
    };
    ranks.into_iter().map(told).collect()
}

/// That nothing stands out, or what is with all the rest; quietly.
fn rest(scene: &Scene<'_>) -> Option<Told> {
    let (look, insight) = (scene.look, &scene.view.insight);
    let found = insight.findings();
    let quiet = |text: String, style: Style| Some((Line::from(span(text, style)), None));
    let others = insight.failed(0).0 + behind(scene).len() + found.lines.len() + found.pairs.len() + found.skews.len();
    match found.rest {
        Some(rest) if found.compared > 1 => {
            let percent = ((1.0 - rest.share()) * 100.0).ceil().max(1.0);
            if others > 0 {
                quiet(format!("   all else is within {percent:.0} % of typical"), look.dim())
            } else {
                quiet(format!(" nothing stands out: all within {percent:.0} % of typical"), look.good())
            }
        }
        _ if others > 0 => None,
        _ => match scene.model.only_together() {
            Some(only) => quiet(format!(" no pair was measured: {only}"), look.dim()),
            None => quiet(" nothing to compare yet".to_owned(), look.dim()),
        },
    }
}

/// `▲ rank 3 (node4) sends at 0.25 of typical`, and what may be left out of it where room is short.
fn line_parts(scene: &Scene<'_>, line: &SlowLine) -> Vec<String> {
    let topology = &scene.model.header.topology;
    let rank = line.ranks.first().copied().unwrap_or(0);
    let host = topology.ranks.get(rank).map_or_else(|| "?".to_owned(), |place| plain(&place.host));
    let (one, many, to) = match line.way {
        Way::Sends => ("sends", "send", "to"),
        Way::Receives => ("receives", "receive", "from"),
    };
    let several = line.ranks.len() > 1;
    let who = if several { format!("ranks {} ({host}) {many}", format_ranks(&line.ranks)) } else { format!("rank {rank} ({host}) {one}") };
    let mut parts = vec![format!("▲ {who} at {:.2} of typical", line.share())];
    let whom = if line.slow == line.of { format!("all {}", line.of) } else { format!("{} of {}", line.slow, line.of) };
    let inside = line.classes.contains(&PathClass::IntraNode);
    parts.push(match line.classes[..] {
        [PathClass::IntraNode] if several => " to each other".to_owned(),
        _ if several => format!(" {to} other hosts"),
        _ => format!(" {to} {whom}"),
    });
    // Which paths, unless there is but one kind.
    let kinds = topology.hosts().len();
    if !several && line.classes.len() == 1 && kinds > 1 && kinds < topology.world() {
        parts.push(if inside { " on its host" } else { " on other hosts" }.to_owned());
    }
    let rates = scene.view.rates();
    parts.push(format!("  {} of {}", rates.number(line.best), rates.text(line.typical)));
    parts
}

/// What is known of the slow ranks at the ends of a pair, for its inspector.
pub fn about(scene: &Scene<'_>, (from, to): (usize, usize), columns: usize) -> Vec<Line<'static>> {
    let class = scene.model.header.topology.path(from, to);
    let ends = |line: &&SlowLine| line.classes.contains(&class) && line.ranks.contains(if line.way == Way::Sends { &from } else { &to });
    let lines = scene.view.insight.findings().lines.iter().filter(ends);
    let told = |line: &SlowLine| {
        let parts = match line.way {
            Way::Sends => [format!("▲ rank {from} sends slowly"), " to all".to_owned()],
            Way::Receives => [format!("▲ rank {to} receives slowly"), " from all".to_owned()],
        };
        let [head, tail] = parts;
        warning(scene, &[head, tail, format!(": {:.2} of typical", line.share())], columns)
    };
    lines.map(told).collect()
}

/// As many of `parts` as fit, beside a free column: what is underlined begins at its mark.
fn warning(scene: &Scene<'_>, parts: &[String], columns: usize) -> Line<'static> {
    Line::from(vec![Span::raw(" "), span(fit(parts, columns.saturating_sub(1)), scene.look.warn())])
}

/// A pair in as many columns as the longest one takes.
fn pair(scene: &Scene<'_>, (from, to): (usize, usize)) -> String {
    let digits = scene.model.world().saturating_sub(1).to_string().len();
    right(&format!("{from}→{to}"), 2 * digits + 1)
}

fn pair_parts(scene: &Scene<'_>, slow: &Slow) -> Vec<String> {
    let rates = scene.view.rates();
    let of = pair(scene, (slow.from, slow.to));
    let mut parts = vec![format!("▲ {of} {:>5}", rates.number(slow.rate)), format!(" {}", rates.name())];
    parts.push(format!("  {:.2} of typical", slow.share()));
    parts.push(format!(" {}", slow.class.name()));
    parts
}

fn skew_line(scene: &Scene<'_>, skew: &Skew, columns: usize) -> Told {
    let rates = scene.view.rates();
    let parts = [
        format!("⇄ {} × slower  {}", right(&format!("{:.1}", skew.ratio()), 4), pair(scene, (skew.from, skew.to))),
        format!(" {:>5}, back {:>5}", rates.number(skew.rate), rates.number(skew.back)),
        format!(" {}", rates.name()),
    ];
    (warning(scene, &parts, columns), Some((skew.from, skew.to)))
}
