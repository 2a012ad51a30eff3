//! Beside the timeline: which ranks send to which at the play head, what the chosen resource is loaded by, and what to doubt.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::ramp::{Map, Ramp};
use crate::tui::draw::Scene;
use crate::tui::draw::text::{cut_lines, cut_name, fit, left, panel, put, right, span, wrap};
use crate::tui::keys::Action;
use crate::tui::replay::Reel;
use crate::tui::widgets::matrix::color;
use crate::units::{format_count, format_seconds, format_size, plain};

/// Ranks of which each has a row.
const MOST: usize = 20;
/// Rows of the links at most, and of the facts at least.
const LINKS: u16 = 14;
const FACTS: u16 = 10;

/// Draw the panels.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, reel: &Reel) {
    let ranks = reel.traffic.ranks;
    let rows = if ranks <= MOST { ranks as u16 + 4 } else { 0 }.min(area.height / 2);
    if rows > 4 {
        matrix(scene, buf, Rect { height: rows, ..area }, reel);
    }
    let mut rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    // Links where they are known, and where they leave enough for the facts.
    let lit = scene.lights.rates().count() as u16;
    let links_height = (lit + 2).min(LINKS).min(rest.height / 2);
    if lit > 0 && links_height > 3 && rest.height - links_height >= FACTS {
        rest.height -= links_height;
        links(scene, buf, Rect { y: rest.y + rest.height, height: links_height, ..rest });
    }
    facts(scene, buf, rest, reel);
}

/// The devices whose links carry most at the play head.
fn links(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    let key = look.key_of(Action::LightLinks);
    let title = fit(&["links in use".to_owned(), format!(" · {key} shows where")], usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let mut lit: Vec<(u32, f64)> = scene.lights.rates().collect();
    lit.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let topology = &scene.model.header.topology;
    let several = topology.hardware.len() > 1;
    let room = usize::from(inner.width).saturating_sub(2);
    for (y, (node, rate)) in (0..inner.height).zip(lit) {
        let Some(node) = scene.atlas.tree.node(node) else { continue };
        let host = node.host.and_then(|host| topology.hardware.get(host)).filter(|_| several).map(|host| plain(&host.host));
        let name = host.map_or_else(|| node.name.clone(), |host| if host == node.name { host } else { format!("{host} {}", node.name) });
        let rate = scene.view.rates().text(rate);
        let name = left(&name, room.saturating_sub(super::width(&rate) + 1));
        put(buf, inner, y, &Line::from(vec![span(format!(" {name} "), look.text()), span(rate, look.lit())]));
    }
}

/// Who sends to whom at the play head; row sends.
fn matrix(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, reel: &Reel) {
    let look = scene.look;
    let head = scene.ui.replay.head(reel);
    let title = format!("who sends to whom at {}", format_seconds(head));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let rates = reel.rates(head);
    let most = rates.iter().map(|rate| rate.1).fold(0.0, f64::max);
    let ranks = reel.traffic.ranks;
    // Numbers of two digits would touch.
    let label = |rank: usize| if ranks > 10 && !rank.is_multiple_of(2) { String::new() } else { rank.to_string() };
    let head: String = (0..ranks).map(|rank| right(&label(rank), 2)).collect();
    put(buf, inner, 0, &Line::from(span(format!(" to   {head}"), look.dim())));
    let ramp = Ramp::new(Map::Sequential, look.theme.level());
    let mut cells = vec![None; ranks * ranks];
    for &(lane, rate) in rates {
        if let Some(cell) = reel.lanes.get(lane as usize).and_then(|lane| cells.get_mut(lane.from * ranks + lane.to)) {
            *cell = Some(rate);
        }
    }
    for (y, row) in (1..inner.height.saturating_sub(1)).zip(cells.chunks(ranks.max(1)).enumerate()) {
        let (from, row) = row;
        let mut spans = vec![span(format!("{} ", right(&from.to_string(), 5)), look.dim())];
        for (to, rate) in row.iter().enumerate() {
            spans.push(match rate {
                Some(rate) if most > 0.0 => {
                    // The slowest that passes is still seen.
                    let shade = ramp.shade(0.35 + 0.65 * rate / most);
                    let glyph = shade.glyph.map_or_else(|| "██".to_owned(), |glyph| glyph.to_string().repeat(2));
                    span(glyph, Style::default().fg(color(shade.paint)))
                }
                _ => span(if from == to { " ╲" } else { " ·" }, look.dim()),
            });
        }
        put(buf, inner, y, &Line::from(spans));
    }
    let most = if most > 0.0 { format!(" brightest {}", scene.view.rates().text(most)) } else { " no bytes pass".to_owned() };
    put(buf, inner, inner.height.saturating_sub(1), &Line::from(span(most, look.dim())));
}

fn facts(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, reel: &Reel) {
    let look = scene.look;
    let replay = &reel.replay;
    let number = scene.ui.replay.resource.or(replay.bottleneck.resource);
    let Some(load) = number.and_then(|number| replay.resources.get(number)) else {
        let inner = panel(buf, area, look, &Line::from(span("what binds", look.title())));
        let mut y = 0;
        lines(buf, inner, &mut y, &replay.bottleneck.say, look.text());
        doubt(scene, buf, inner, y, reel);
        return;
    };
    let room = usize::from(area.width).saturating_sub(4);
    let title = cut_name(&plain(&load.resource.name), room);
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let number = number.unwrap_or(0);
    let mut y = 0;
    let mut row = |name: &str, text: String, style: Style| {
        put(buf, inner, y, &Line::from(vec![span(format!(" {}", left(name, 9)), look.dim()), span(text, style)]));
        y += 1;
    };
    let head = scene.ui.replay.head(reel);
    row("now", format!("{:.0} % full", reel.used(number, head) * 100.0), look.strong());
    row("load", format!("{} of {}", format_seconds(load.busy), format_seconds(replay.seconds)), look.text());
    row("bytes", format_size(load.bytes.max(0.0) as u64), look.text());
    let full = reel.strips.get(number).map_or(0.0, |strip| strip.mean(0.0, replay.seconds));
    row("over all", format!("{:.0} % full on average", full * 100.0), look.text());
    let loaders = reel.loaders(number);
    let all = reel.loaded(number) as f64;
    y += 1;
    put(buf, inner, y, &Line::from(span(format!(" loaded by {}", super::super::text::count(loaders.len(), "pair")), look.title())));
    y += 1;
    let columns = usize::from(inner.width).saturating_sub(2);
    let doubts = if replay.warnings.is_empty() { 0 } else { warned(columns, reel).len() as u16 + 1 };
    // One pair at least, however much there is to doubt.
    let rows = usize::from(inner.height.saturating_sub(y + doubts).max(2));
    // The last row tells how many more there are.
    let rows = if loaders.len() > rows { rows - 1 } else { rows };
    for &(lane, bytes) in loaders.iter().take(rows) {
        let Some(lane) = reel.lanes.get(lane as usize) else { continue };
        let share = bytes as f64 / all.max(1.0);
        let spans = vec![
            span(format!(" {}", left(&format!("{}→{}", lane.from, lane.to), 9)), look.text()),
            span(right(&format_size(bytes), 10), look.text()),
            Span::raw("  "),
            span(super::scale::bar(share, 12), look.bar()),
            span(right(&format!("{:.0} %", share * 100.0), 6), look.dim()),
        ];
        put(buf, inner, y, &Line::from(spans));
        y += 1;
    }
    if loaders.len() > rows {
        let more = format_count((loaders.len() - rows) as u64);
        put(buf, inner, y, &Line::from(span(format!(" and {more} more"), look.dim())));
        y += 1;
    }
    doubt(scene, buf, inner, y + 1, reel);
}

fn lines(buf: &mut Buffer, inner: Rect, y: &mut u16, text: &str, style: Style) {
    for line in wrap(&plain(text), usize::from(inner.width).saturating_sub(2)) {
        put(buf, inner, *y, &Line::from(span(format!(" {line}"), style)));
        *y += 1;
    }
}

/// What to doubt, in lines.
fn warned(columns: usize, reel: &Reel) -> Vec<String> {
    reel.replay.warnings.iter().flat_map(|warning| wrap(&format!("▲ {}", plain(&warning.say)), columns)).collect()
}

fn doubt(scene: &Scene<'_>, buf: &mut Buffer, inner: Rect, y: u16, reel: &Reel) {
    let columns = usize::from(inner.width).saturating_sub(2);
    let rows = usize::from(inner.height.saturating_sub(y));
    for (y, line) in (y..).zip(cut_lines(warned(columns, reel), rows, columns)) {
        put(buf, inner, y, &Line::from(span(format!(" {line}"), scene.look.warn())));
    }
}
