//! Ways to bring a model from trainers to engines, priced with what was measured, the fastest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::scale::bar;
use crate::plan::strategy::Job;
use crate::tui::draw::text::{cut, cut_lines, fit, left, panel, put, right, span, typing, window, wrap};
use crate::tui::draw::{HitMap, Scene};
use crate::tui::keys::Action;
use crate::tui::replay::FIELDS;
use crate::units::{format_seconds, plain};

/// Columns of a field's name, of a time, and of what is before a strategy's name.
const NAMES: usize = 10;
const SECONDS: usize = 10;
/// Lines of what is told of a strategy, and of what is below them all, at most.
const MOST_TOLD: usize = 4;
const MOST_FOOT: usize = 4;

/// Draw the form, and the strategies below it.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, form) = (scene.look, &scene.ui.replay.form);
    let topology = &scene.model.header.topology;
    let room = usize::from(area.width).saturating_sub(4);
    let choose = look.key_of(Action::Choose);
    let mut parts = vec!["strategies".to_owned(), " · a model from trainers to engines".to_owned()];
    parts.push(format!(" · {choose} changes a line, or looks at a strategy"));
    let inner = panel(buf, area, look, &Line::from(span(fit(&parts, room), look.title())));
    let columns = usize::from(inner.width).saturating_sub(2);
    let job = form.job(topology);
    for (y, (field, (name, means))) in (0_u16..).zip(FIELDS.iter().enumerate()) {
        let here = form.at == field;
        let wrong = job.as_ref().err().filter(|(at, _)| *at == field).map(|(_, why)| why.as_str());
        let mut spans =
            vec![span(if here { "▌" } else { " " }, look.accent()), span(left(name, NAMES), if here { look.strong() } else { look.dim() })];
        if let Some(typed) = form.typing.as_ref().filter(|_| here) {
            spans.extend(typing(look, typed, columns.saturating_sub(NAMES + 1)));
        } else {
            let text = cut(&plain(&form.text(field, topology.world())), columns.saturating_sub(NAMES));
            let rest = columns.saturating_sub(NAMES + 14.max(super::width(&text)));
            spans.push(span(left(&text, 14), look.text()));
            let style = if wrong.is_some() { look.error() } else { look.dim() };
            spans.push(span(cut(&format!("  {}", plain(wrong.unwrap_or(means))), rest), style));
        }
        put(buf, inner, y, &Line::from(spans));
        hits.strategies.push((Rect { y: inner.y + y, height: 1, ..inner }, field));
    }
    let below = Rect { y: inner.y + FIELDS.len() as u16 + 1, height: inner.height.saturating_sub(FIELDS.len() as u16 + 1), ..inner };
    if let Ok(job) = &job {
        list(scene, buf, below, job, hits);
    }
}

fn say(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, mut y: u16, text: &str) -> u16 {
    for line in wrap(text, usize::from(area.width).saturating_sub(2)) {
        put(buf, area, y, &Line::from(span(format!(" {line}"), scene.look.dim())));
        y += 1;
    }
    y
}

fn list(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, job: &Job, hits: &mut HitMap) {
    let (look, form) = (scene.look, &scene.ui.replay.form);
    let Some(ranked) = scene.replays.ranked().filter(|ranked| ranked.job == *job) else {
        say(scene, buf, area, 0, "pricing the strategies …");
        return;
    };
    let ranking = match &ranked.ranking {
        Ok(ranking) => ranking,
        Err(why) => {
            say(scene, buf, area, 0, &super::unmeasured(scene).unwrap_or_else(|| plain(why)));
            return;
        }
    };
    let doubtful = ranking.rows.iter().filter(|row| !row.warnings.is_empty()).count();
    let foot = footer(scene, (ranking.rows.len(), doubtful), &ranking.refused, usize::from(area.width).saturating_sub(2));
    let chosen = form.at.checked_sub(FIELDS.len()).and_then(|at| ranking.rows.get(at));
    let told: Vec<String> = chosen.map_or_else(Vec::new, |row| {
        let change = plain(&row.change);
        let change = if change.is_empty() { change } else { format!("it {change}") };
        let doubt = row.warnings.first().map_or_else(String::new, |warning| format!("▲ {}", plain(&warning.say)));
        [plain(&row.bottleneck), doubt, change].into_iter().filter(|text| !text.is_empty()).collect()
    });
    let columns = usize::from(area.width).saturating_sub(2);
    let height = usize::from(area.height);
    let foot = cut_lines(foot, height.saturating_sub(3).clamp(1, MOST_FOOT), columns);
    // Three strategies are in sight, however much is told of one.
    let most = height.saturating_sub(2 + foot.len() + 3.min(ranking.rows.len())).min(MOST_TOLD);
    let told = cut_lines(told.iter().flat_map(|text| wrap(text, columns)).collect(), most, columns);
    let rows = height.saturating_sub(1 + foot.len() + told.len() + usize::from(!told.is_empty()));
    let name = (columns * 2 / 5).clamp(20, 36);
    let bars = if columns >= 90 { 16 } else { 0 };
    let slowest = ranking.rows.last().map_or(1.0, |row| row.seconds);
    let at = form.at.saturating_sub(FIELDS.len());
    let shown = window(at.saturating_sub(rows / 2), ranking.rows.len(), rows);
    let hidden = [("above", shown.start), ("below", ranking.rows.len() - shown.end)];
    let hidden: Vec<String> =
        hidden.into_iter().filter(|(_, many)| *many > 0).map(|(where_, many)| format!("{many} more {where_}")).collect();
    let hidden = if hidden.is_empty() { String::new() } else { format!(" · {}", hidden.join(", ")) };
    let head = format!(
        " {}{}{}  bottleneck{hidden}",
        left("   strategy", name + 3),
        right("predicted", SECONDS),
        " ".repeat(bars + 2 * usize::from(bars > 0))
    );
    if !ranking.rows.is_empty() {
        put(buf, area, 0, &Line::from(span(head, look.dim())));
    }
    let mut y = 1;
    for number in shown {
        let Some(row) = ranking.rows.get(number) else { break };
        let here = form.at == FIELDS.len() + number;
        let style = if here { look.strong() } else { look.text() };
        let mut spans = vec![
            span(if here { "▌" } else { " " }, look.accent()),
            span(right(&(number + 1).to_string(), 2), look.dim()),
            // A rank that rests on a guess must not pass for measured.
            span(if row.warnings.is_empty() { " " } else { "▲" }, look.warn()),
            span(left(&row.strategy.name(), name), style),
            span(right(&format_seconds(row.seconds), SECONDS), if number == 0 { look.good() } else { style }),
        ];
        if bars > 0 {
            spans.push(Span::raw("  "));
            spans.push(span(bar(row.seconds / slowest, bars), if number == 0 { look.good() } else { look.bar() }));
        }
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(span(cut(&format!("  {}", plain(&row.bottleneck)), columns.saturating_sub(used)), look.dim()));
        put(buf, area, y, &Line::from(spans));
        hits.strategies.push((Rect { y: area.y + y, height: 1, ..area }, FIELDS.len() + number));
        y += 1;
    }
    y += u16::from(!told.is_empty());
    for text in told {
        put(buf, area, y, &Line::from(span(format!(" {text}"), look.text())));
        y += 1;
    }
    for text in foot {
        put(buf, area, y, &Line::from(span(format!(" {text}"), look.dim())));
        y += 1;
    }
}

/// Why some are missing, and how else to get a plan.
fn footer(scene: &Scene<'_>, (priced, doubtful): (usize, usize), refused: &[(String, String)], columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if priced == 0 {
        // All for the same reason, as a rule: what has not been measured.
        let first = || refused.first().map_or_else(|| "no strategy brings it there".to_owned(), |(_, why)| why.clone());
        let why = super::unmeasured(scene).unwrap_or_else(first);
        lines.extend(wrap(&format!("no strategy has a price: {}", plain(&why)), columns));
    } else if let Some((name, why)) = refused.first() {
        let more = if refused.len() > 1 { format!(", and {} more", refused.len() - 1) } else { String::new() };
        lines.push(cut(&format!("left out: {}: {}{more}", plain(name), plain(why)), columns));
    }
    if doubtful > 0 {
        lines.push(cut(&format!("▲ {doubtful} rest on what was not measured; choose one to see what"), columns));
    }
    let load = scene.look.key_of(Action::LoadPlan);
    let back = scene.look.key_of(Action::ShowStrategies);
    let plans = scene.replays.shown().len();
    let parts = [
        format!("{load} reads a plan's file (or --plan FILE)"),
        if plans > 0 { format!(" · {back} shows {}", crate::tui::draw::text::count(plans, "plan")) } else { String::new() },
    ];
    lines.push(fit(&parts, columns));
    lines
}
