//! What is slow, in words: the first glance.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{cut, panel, put, put_at, right, span};
use super::{HitMap, Scene};
use crate::tui::insight::{Skew, Slow};
use crate::units::{format_gbps, format_size};

/// A pair at or above this share of its class does not stand out.
const PLAIN_SHARE: f64 = 0.9;
/// A ratio of directions up to this does not stand out.
const PLAIN_RATIO: f64 = 1.1;

/// One sentence: what stands out most.
pub fn sentence(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let look = scene.look;
    let insight = &scene.view.insight;
    let (failed, pairs) = insight.failed(1);
    let mut spans = vec![Span::raw(" ")];
    if let Some((from, to)) = pairs.first() {
        let more = if failed > 1 { format!(" and {} more", failed - 1) } else { String::new() };
        spans.push(span(format!("{from}→{to}{more} failed · "), look.error()));
    }
    let (text, style) = if let Some(slow) = insight.slowest(1).first().filter(|slow| slow.share() < PLAIN_SHARE) {
        let text = format!(
            "{}→{} is slow: {} GB/s, {:.2} of typical {}",
            slow.from,
            slow.to,
            format_gbps(slow.rate),
            slow.share(),
            slow.class.name()
        );
        (text, look.warn())
    } else if let Some(slow) = insight.slowest(1).first() {
        (format!("no pair stands out: the slowest has {:.2} of typical {}", slow.share(), slow.class.name()), look.good())
    } else {
        ("nothing to compare yet".to_owned(), look.dim())
    };
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(span(cut(&text, columns.saturating_sub(used)), style));
    Line::from(spans)
}

/// The slowest pairs and the most one-sided ones, in a frame.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let size = if scene.view.key.bytes > 0 { format!(" · {}", format_size(scene.view.key.bytes)) } else { String::new() };
    let inner = panel(buf, area, look, &Line::from(span(format!("what stands out{size}"), look.title())));
    let insight = &scene.view.insight;
    let (failed, pairs) = insight.failed(4);
    // Side by side where both can be told, else below one another.
    let narrow = inner.width < 72;
    let half = if narrow { inner.width } else { inner.width / 2 };
    let mut left: Vec<(Line<'static>, (usize, usize))> = Vec::new();
    if let Some(&first) = pairs.first() {
        let named: Vec<String> = pairs.iter().map(|(from, to)| format!("{from}→{to}")).collect();
        let more = if failed > pairs.len() { ", …" } else { "" };
        let text = format!(" {failed} failed: {}{more}", named.join(", "));
        left.push((Line::from(span(cut(&text, usize::from(half)), look.error())), first));
    }
    left.extend(insight.slowest(3).iter().map(|slow| (slow_line(scene, slow, usize::from(half)), (slow.from, slow.to))));
    let rest = usize::from(if narrow { inner.width } else { inner.width - half });
    let right = insight.skewest(3).into_iter().map(|skew| (skew_line(scene, &skew, rest), (skew.from, skew.to)));
    if left.is_empty() {
        put(buf, inner, 0, &sentence(scene, usize::from(inner.width)));
        return;
    }
    let mut column = |x: u16, lines: Vec<(Line<'static>, (usize, usize))>| {
        for (row, (line, pair)) in (0..inner.height).zip(lines) {
            put_at(buf, inner, x, row, &line);
            hits.pairs.push((Rect { x: inner.x + x, y: inner.y + row, width: line.width() as u16, height: 1 }, pair));
        }
    };
    if narrow {
        left.truncate(usize::from(inner.height).saturating_sub(1));
        left.extend(right.take(1));
        column(0, left);
    } else {
        column(0, left);
        column(half, right.collect());
    }
}

/// A pair in as many columns as the longest one takes.
fn pair(scene: &Scene<'_>, (from, to): (usize, usize)) -> String {
    let digits = scene.model.world().saturating_sub(1).to_string().len();
    right(&format!("{from}→{to}"), 2 * digits + 1)
}

fn slow_line(scene: &Scene<'_>, slow: &Slow, columns: usize) -> Line<'static> {
    let look = scene.look;
    let stands_out = slow.share() < PLAIN_SHARE;
    let style = if stands_out { look.warn() } else { look.text() };
    let head = format!(" {} {}", if stands_out { "▲" } else { " " }, pair(scene, (slow.from, slow.to)));
    let text = format!("{head} {} GB/s  {:.2} of typical {}", right(&format_gbps(slow.rate), 6), slow.share(), slow.class.name());
    let short = format!("{head} {}  {:.2} × {}", right(&format_gbps(slow.rate), 6), slow.share(), slow.class.name());
    Line::from(span(cut(if super::text::width(&text) <= columns { &text } else { &short }, columns), style))
}

fn skew_line(scene: &Scene<'_>, skew: &Skew, columns: usize) -> Line<'static> {
    let look = scene.look;
    let stands_out = skew.ratio() > PLAIN_RATIO;
    let style = if stands_out { look.warn() } else { look.text() };
    let head = format!(" {} {}", if stands_out { "⇄" } else { " " }, pair(scene, (skew.from, skew.to)));
    let text =
        format!("{head} {} GB/s, back {}: {:.1} ×", right(&format_gbps(skew.rate), 6), right(&format_gbps(skew.back), 6), skew.ratio());
    let short = format!("{head} {:.1} × slower than back", skew.ratio());
    Line::from(span(cut(if super::text::width(&text) <= columns { &text } else { &short }, columns), style))
}
