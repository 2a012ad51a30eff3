//! The fan under the cursor: what it gives, what its pairs give alone, and what bounds it as far as the numbers tell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::fans::{chosen_fan, rates};
use super::text::{fit, left, panel, put, right, span, width, window, wrap};
use super::{HitMap, Scene};
use crate::sample::Pattern;
use crate::session::curves::pair_rate;
use crate::tui::fans::{Against, Fan, Moved, Other, Root, Why, moved};
use crate::tui::look::Look;
use crate::units::{format_ranks, format_size, plain};

/// Draw it.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, direction: Pattern, hits: &mut HitMap) {
    let way = scene.fans.way(direction);
    let entry = scene.ui.fans.entry.min(scene.fans.entries(direction).saturating_sub(1));
    let look = scene.look;
    let framed = |buf: &mut Buffer, group: &crate::sweep::Group| {
        let title = [group.describe(), format!(" · {}", format_size(scene.fans.bytes))];
        let title = fit(&title, usize::from(area.width).saturating_sub(4));
        panel(buf, area, look, &Line::from(span(title, look.title())))
    };
    if let Some(root) = way.roots.get(entry) {
        let Some(fan) = chosen_fan(scene, root) else { return };
        let inner = framed(buf, &fan.group);
        one(scene, buf, inner, root, fan, hits);
    } else if let Some(other) = scene.fans.others.get(entry - way.roots.len()) {
        let inner = framed(buf, &other.group);
        whole(scene, buf, inner, other, hits);
    }
}

/// Bandwidth of each peer's pair alone, NaN where it is not known.
fn alone(scene: &Scene<'_>, fan: &Fan) -> Vec<(usize, f64)> {
    let root = fan.group.root.unwrap_or(0);
    let pair = |peer: usize| if fan.group.pattern == Pattern::FanIn { (peer, root) } else { (root, peer) };
    let rate = |peer: usize| pair_rate(scene.model, pair(peer), scene.fans.bytes).unwrap_or(f64::NAN);
    fan.group.peers.iter().map(|&peer| (peer, rate(peer))).collect()
}

/// A fan: its number, the pairs', the reason; then all fans of the root; then the peers of this one.
fn one(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, root: &Root, fan: &Fan, hits: &mut HitMap) {
    let (look, rates) = (scene.look, rates(scene));
    let columns = usize::from(area.width);
    let pairs = alone(scene, fan);
    let against = Against::of(fan.aggregate, &pairs);
    let mut lines = vec![headline(scene, fan, columns)];
    let who = if fan.group.pattern == Pattern::FanIn { "sender" } else { "receiver" };
    if let (Some((_, low)), Some((_, high)), true) = (against.slowest, against.fastest, fan.width() > 1) {
        let each = if high > low * 1.02 {
            format!(" one pair alone {} to {}", rates.number(low), rates.number(high))
        } else {
            format!(" one pair alone {}", rates.number(high))
        };
        let mut parts = vec![each];
        if against.sum.is_finite() {
            parts.push(format!(", together {}", rates.number(against.sum)));
        }
        lines.push(Line::from(span(fit(&parts, columns), look.text())));
    }
    let why = reason(against, fan, who, |rate| rates.number(rate));
    let style = if matches!(against.why, Why::Unknown(_) | Why::Pair(_)) { look.dim() } else { look.warn() };
    lines.extend(wrap(&why, columns.saturating_sub(2)).into_iter().map(|line| Line::from(vec![Span::raw(" "), span(line, style)])));
    let mut y = 0;
    for line in lines.iter().take(usize::from(area.height)) {
        put(buf, area, y, line);
        y += 1;
    }
    let rest = area.height.saturating_sub(y + 1);
    // Half for the root's fans, half for the peers of this one, and what one does not need for the other.
    let (fans, peers) = (root.fans.len() as u16 + 1, fan.width() as u16 + 1);
    let table = fans.min((rest / 2).max(rest.saturating_sub(peers + 1))).max(3.min(rest));
    fan_table(scene, buf, Rect { y: area.y + y + 1, height: table.min(rest), ..area }, root, hits);
    y += 1 + table + 1;
    if y + 2 <= area.height {
        let list = Rect { y: area.y + y, height: area.height - y, ..area };
        let size = scene.model.groups.get(&fan.group).iter().find(|size| size.bytes == scene.fans.bytes);
        let mut own: Vec<(usize, Moved)> =
            size.map(moved).unwrap_or_default().into_iter().map(|moved| (peer_of(fan, moved), moved)).collect();
        own.sort_by_key(|(peer, _)| *peer);
        let rows: Vec<Row> = own
            .iter()
            .map(|&(peer, moved)| Row { name: peer.to_string(), host: host(scene, peer), alone: rate_of(&pairs, peer), here: moved.rate })
            .collect();
        rows_of(scene, buf, list, (if fan.width() == 1 { "peer" } else { "peers" }, "fan"), &rows, hits);
    }
}

fn peer_of(fan: &Fan, moved: Moved) -> usize {
    if fan.group.pattern == Pattern::FanIn { moved.from } else { moved.to }
}

fn rate_of(pairs: &[(usize, f64)], peer: usize) -> f64 {
    pairs.iter().find(|(known, _)| *known == peer).map_or(f64::NAN, |(_, rate)| *rate)
}

fn host(scene: &Scene<'_>, rank: usize) -> String {
    scene.model.header.topology.ranks.get(rank).map(|p| plain(&p.host)).unwrap_or_default()
}

/// `12.6 GB/s   12.5 – 12.7 (95 %)   width 2`
fn headline(scene: &Scene<'_>, fan: &Fan, columns: usize) -> Line<'static> {
    let (look, rates) = (scene.look, rates(scene));
    if !fan.aggregate.is_finite() {
        return Line::from(span(format!(" {}", fan.status.name()), look.error()));
    }
    let mut spans = vec![span(format!(" {}", rates.text(fan.aggregate)), look.strong())];
    let mut used = spans[0].width();
    let interval =
        fan.interval.map(|interval| (format!("   {} – {}", rates.number(interval.low), rates.number(interval.high)), look.text()));
    let parts = interval.map(|told| [told, (" (95 %)".to_owned(), look.dim())]).into_iter().flatten();
    for (text, style) in parts.chain([(format!("   width {}", fan.width()), look.dim())]) {
        if used + width(&text) <= columns {
            used += width(&text);
            spans.push(span(text, style));
        }
    }
    Line::from(spans)
}

/// What bounds it, in words that say no more than the numbers.
fn reason(against: Against, fan: &Fan, who: &str, number: impl Fn(f64) -> String) -> String {
    let (c, k) = (against.concurrency, fan.width());
    match against.why {
        Why::Unknown(1) => "why: the pair of one peer is not measured; switch on peer".to_owned(),
        Why::Unknown(n) => format!("why: the pairs of {n} peers are not measured; switch on peer"),
        Why::Pair(rate) => {
            let share = fan.aggregate / rate;
            let told = if share.is_finite() { format!(", {share:.2} of it here") } else { String::new() };
            format!("one peer: the pair itself, {} alone{told}", number(rate))
        }
        Why::Slowest(rank, rate) => {
            format!("▲ bound by the slowest {who}: rank {rank} at {} alone, {k} × that is {}", number(rate), number(rate * k as f64))
        }
        Why::InTurn => format!("▲ served in turn: c {c:.2}, as if one peer after another"),
        Why::InTurnOrLimit => {
            format!(
                "▲ served in turn (c {c:.2}), or a limit of {} for all: its pairs are alike, unlike ones would tell",
                number(fan.aggregate)
            )
        }
        Why::Collapse => format!("▲ slower than one peer after another: c {c:.2}"),
        Why::Shared => format!(
            "▲ shared: c {c:.2} of {k} peers' worth at a time; the slowest allows {}",
            against.slowest.map_or_else(String::new, |(_, rate)| number(rate * k as f64))
        ),
        Why::Faster => format!("▲ faster than {k} × its slowest pair: measure the pairs again"),
    }
}

/// All fans of the root.
fn fan_table(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, root: &Root, hits: &mut HitMap) {
    if area.height < 2 {
        return;
    }
    let (look, rates) = (scene.look, rates(scene));
    let columns = usize::from(area.width);
    // What matters most goes last to be left out.
    let (interval, slowest, sum) = (columns >= 70, columns >= 50, columns >= 36);
    let fixed = 2 + 5 + 7 + 6 + if interval { 15 } else { 0 } + if slowest { 13 } else { 0 } + if sum { 8 } else { 0 };
    let peers = columns.saturating_sub(fixed).clamp(4, 24);
    let cells = |texts: [&str; 7]| {
        let [k, who, rate, ci, pairs, slow, c] = texts;
        let mut line = format!("{} {}{}", right(k, 5), left(who, peers), right(rate, 7));
        if interval {
            line.push_str(&right(ci, 15));
        }
        if sum {
            line.push_str(&right(pairs, 8));
        }
        if slowest {
            line.push_str(&right(slow, 13));
        }
        line.push_str(&right(c, 6));
        line
    };
    let heading = cells(["width", "peers", rates.name(), "95 %", "pairs", "slowest", "c"]);
    put(buf, area, 0, &Line::from(span(format!(" {heading}"), look.dim())));
    let rows = usize::from(area.height - 1);
    let at = scene.ui.fans.fan.min(root.fans.len().saturating_sub(1));
    let first = at.saturating_sub(rows / 2).min(root.fans.len().saturating_sub(rows));
    for (row, (number, fan)) in (1_u16..).zip(root.fans.iter().enumerate().skip(first).take(rows)) {
        let against = Against::of(fan.aggregate, &alone(scene, fan));
        let rate = if fan.aggregate.is_finite() { rates.number(fan.aggregate) } else { fan.status.name().to_owned() };
        let or_dash = |value: f64, text: String| if value.is_finite() { text } else { "–".to_owned() };
        let line = cells([
            &fan.width().to_string(),
            &format_ranks(&fan.group.peers),
            &rate,
            &fan.interval.map_or_else(|| "–".to_owned(), |ci| format!("{} – {}", rates.number(ci.low), rates.number(ci.high))),
            &or_dash(against.sum, rates.number(against.sum)),
            &against.slowest.map_or_else(|| "–".to_owned(), |(rank, rate)| format!("{rank} at {}", rates.number(rate))),
            &or_dash(against.concurrency, format!("{:.2}", against.concurrency)),
        ]);
        let here = number == at;
        let style = if here { look.strong() } else { look.text() };
        put(buf, area, row, &Line::from(vec![span(if here { "▸" } else { " " }, look.accent()), span(line, style)]));
        hits.fans.push((Rect { y: area.y + row, height: 1, ..area }, number));
    }
}

/// One transfer of a group against its pair alone.
struct Row {
    name: String,
    host: String,
    alone: f64,
    here: f64,
}

/// A relay or a set: its number, then its transfers, the slowest first.
fn whole(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, other: &Other, hits: &mut HitMap) {
    let (look, rates) = (scene.look, rates(scene));
    let relay = other.group.pattern == Pattern::Relay;
    let mut lines = Vec::new();
    if let (Some(slowest), Some(fastest)) = (other.moved.first(), other.moved.last()) {
        lines.push(Line::from(span(
            format!(" slowest {}, rank {} → {}", rates.text(slowest.rate), slowest.from, slowest.to),
            look.strong(),
        )));
        lines.push(Line::from(span(format!(" fastest {}, rank {} → {}", rates.text(fastest.rate), fastest.from, fastest.to), look.text())));
    }
    let what = if relay {
        "each rank's own time: it receives from below while it sends"
    } else {
        "all at the same time, each transfer's own time"
    };
    lines.extend(
        wrap(what, usize::from(area.width).saturating_sub(2)).into_iter().map(|line| Line::from(span(format!(" {line}"), look.dim()))),
    );
    let mut y = 0;
    for line in lines.iter().take(usize::from(area.height)) {
        put(buf, area, y, line);
        y += 1;
    }
    if y + 3 <= area.height {
        let rows: Vec<Row> = other
            .moved
            .iter()
            .map(|moved| Row {
                name: format!("{}→{}", moved.from, moved.to),
                host: host(scene, moved.from),
                alone: pair_rate(scene.model, (moved.from, moved.to), scene.fans.bytes).unwrap_or(f64::NAN),
                here: moved.rate,
            })
            .collect();
        let list = Rect { y: area.y + y + 1, height: area.height - y - 1, ..area };
        rows_of(scene, buf, list, ("transfer", if relay { "relay" } else { "set" }), &rows, hits);
    }
}

/// Transfers with their bandwidth alone and here.
fn rows_of(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, (what, here): (&str, &str), all: &[Row], hits: &mut HitMap) {
    if area.height < 2 {
        return;
    }
    let (look, rates) = (scene.look, rates(scene));
    let rows = usize::from(area.height - 1);
    hits.peers = Some((area, all.len().saturating_sub(rows)));
    let names = all.iter().map(|row| width(&row.name)).max().unwrap_or(0).max(what.len());
    let pitch = if area.width < 36 { 7 } else { 8 };
    let hosts = usize::from(area.width).saturating_sub(names + 3 + 3 * pitch).min(16);
    let hosts = if hosts < 4 { 0 } else { hosts };
    let range = window(scene.ui.fans.scroll, all.len(), rows);
    let more = if rows < all.len() { format!("  {}–{} of {}", range.start + 1, range.end, all.len()) } else { String::new() };
    let line = |name: &str, host: &str, numbers: [&str; 3]| {
        let [a, b, c] = numbers.map(|number| right(number, pitch));
        format!(" {} {}{a}{b}{c}", right(name, names), if hosts > 0 { format!("{} ", left(host, hosts)) } else { String::new() })
    };
    let heading = fit(&[line(what, "host", ["alone", here, "share"]), more], usize::from(area.width));
    put(buf, area, 0, &Line::from(span(heading, look.dim())));
    for (y, row) in (1_u16..).zip(all.get(range).unwrap_or(&[])) {
        let number = |rate: f64| if rate.is_finite() { rates.number(rate) } else { "–".to_owned() };
        let share = row.here / row.alone;
        let share = if share.is_finite() { format!("{share:.2}") } else { "–".to_owned() };
        let text = line(&row.name, &row.host, [&number(row.alone), &number(row.here), &share]);
        put(buf, area, y, &Line::from(span(text, style_of(look, row))));
    }
}

fn style_of(look: &Look, row: &Row) -> ratatui::style::Style {
    if row.here.is_finite() { look.text() } else { look.error() }
}
