//! The Topology tab: hosts and devices, what is at fault, and beside them the selected pair's route or the path classes.

use std::collections::HashMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{cut, fit, left, panel, put, right, span, typing, window, wrap};
use super::{HitMap, Scene, classes, route};
use crate::topology::hardware::NoteKind;
use crate::tui::atlas::{Best, Node, NodeKind, SLOW, Sight};
use crate::tui::findings::mark;
use crate::tui::insight::Way;
use crate::tui::keys::Action;
use crate::tui::view::Rates;
use crate::units::{format_ranks, format_seconds, plain};

/// Columns of ranks, of a share, and of both where there is little room.
const RANKS: (usize, usize) = (6, 5);
const SHARE: (usize, usize) = (6, 5);
/// Columns of `53.9 of 54.2`.
const RATE: usize = 14;
/// Columns that a device's state has at least.
const STATE: usize = 14;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if scene.atlas.tree.is_empty() {
        nothing(scene, buf, area);
        return;
    }
    let (tree_area, beside) = if area.width >= 76 {
        let columns = match area.width {
            160.. => area.width * 56 / 100,
            _ => area.width * 54 / 100,
        };
        (Rect { width: columns, ..area }, Rect { x: area.x + columns, width: area.width - columns, ..area })
    } else {
        let height = area.height * 55 / 100;
        (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
    };
    // What is at fault stands below the tree in words, where there is room for both.
    let words = match tree_area.height {
        40.. => 7,
        18.. => 5,
        _ => 0,
    };
    tree(scene, buf, Rect { height: tree_area.height - words, ..tree_area }, hits);
    if words > 0 {
        faults(scene, buf, Rect { y: tree_area.bottom() - words, height: words, ..tree_area });
    }
    let notes = notes_of(scene, usize::from(beside.width).saturating_sub(3));
    let rows = (notes.len() as u16 + 2).min(beside.height * 35 / 100);
    let rows = if notes.is_empty() || rows < 3 { 0 } else { rows };
    let upper = Rect { height: beside.height - rows, ..beside };
    match scene.ui.topology.sight {
        Sight::Route => route::draw(scene, buf, upper),
        Sight::Classes => classes::draw(scene, buf, upper, hits),
    }
    if rows > 0 {
        draw_notes(scene, buf, Rect { y: upper.bottom(), height: rows, ..beside }, &notes, hits);
    }
}

/// What is missing, and how to get it.
fn nothing(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    let inner = panel(buf, area, look, &Line::from(span("topology", look.title())));
    let told = [
        "This session knows its ranks and their hosts, but not what the hosts are made of: no PCIe, NVLink, NUMA or NIC facts were recorded.",
        "A new session finds them out by itself: start toposcope on the machine, or mpirun -n N toposcope across hosts. toposcope discover \
         prints them, and toposcope doctor says what cannot be seen here and why. A simulated one: toposcope --engine sim --fabric NAME \
         (toposcope fabrics lists them).",
    ];
    let mut y = 1;
    for text in told {
        for line in wrap(text, usize::from(inner.width).saturating_sub(2)) {
            put(buf, inner, y, &Line::from(span(format!(" {line}"), look.dim())));
            y += 1;
        }
        y += 1;
    }
}

/// Which columns there is room for.
struct Columns {
    /// columns of each step inwards
    step: usize,
    name: usize,
    state: usize,
    ranks: usize,
    /// of what is reached, one way
    reached: usize,
    /// rates beside what is expected, instead of shares alone
    rates: bool,
}

impl Columns {
    fn of(columns: usize, (widest, deepest): (usize, usize)) -> Self {
        let (narrow, rates) = (columns < 50, columns >= 90);
        let (step, ranks) = if narrow { (1, RANKS.1) } else { (2, RANKS.0) };
        let reached = match (narrow, rates) {
            (true, _) => SHARE.1,
            (_, true) => RATE,
            _ => SHARE.0,
        };
        let rest = columns.saturating_sub(ranks + 2 * reached);
        let name = (3 + deepest * step + widest + 1).min(rest.saturating_sub(STATE));
        Self { step, name, state: rest - name, ranks, reached, rates }
    }

    /// Columns after the state.
    const fn ends(&self) -> usize {
        self.ranks + 2 * self.reached
    }
}

fn tree(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, atlas, ui) = (scene.look, scene.atlas, &scene.ui.topology);
    let room = usize::from(area.width).saturating_sub(4);
    let title = if let Some(typed) = &ui.typing {
        let mut spans = vec![span("find ", look.title())];
        spans.extend(typing(look, typed, room.saturating_sub(6)));
        Line::from(spans)
    } else {
        let hosts = scene.model.header.topology.hardware.len();
        let mut parts = vec!["topology".to_owned(), format!(" · {}", super::text::count(hosts, "host"))];
        parts.extend(lit_by(scene));
        Line::from(span(fit(&parts, room), look.title()))
    };
    let inner = panel(buf, area, look, &title);
    let columns = Columns::of(usize::from(inner.width), atlas.widest());
    let (sends, gets) = if columns.rates {
        let unit = rates(scene).name();
        (format!("sends {unit}"), format!("gets {unit}"))
    } else {
        ("sends".to_owned(), "gets".to_owned())
    };
    let heading = format!(
        "{}{}{}{}{}",
        left(if columns.step > 1 { "   host, device" } else { "   device" }, columns.name),
        left("link", columns.state),
        right(if columns.ranks > 5 { "ranks" } else { "rank" }, columns.ranks),
        right(if columns.reached > 5 { &sends } else { "out" }, columns.reached),
        right(if columns.reached > 5 { &gets } else { "in" }, columns.reached)
    );
    put(buf, inner, 0, &Line::from(span(heading, look.dim())));
    let rows = usize::from(inner.height.saturating_sub(1));
    let topology = &scene.model.header.topology;
    let lit = scene.ui.findings.lit(scene.desk.told());
    let lit = lit.and_then(|(at, finding)| {
        let (host, hop) = finding.hop.as_ref()?;
        Some((atlas.tree.of_hop(topology, host, hop)?, format!("{} finding {}", mark(finding.severity), at + 1)))
    });
    let lights = lights(scene);
    let total = atlas.rows().len();
    let first = ui.at.saturating_sub(rows / 2).min(total.saturating_sub(rows));
    for (y, row) in (1_u16..).zip((first..total).take(rows)) {
        let Some((node, found)) = atlas.at(row) else { break };
        let open = ui.is_open(&atlas.tree, node);
        let passing = lights.get(&node).map(|rate| format!("▶ {}", rates(scene).text(*rate)));
        let lit = lit.as_ref().filter(|(of, _)| *of == node).map(|(_, text)| text.as_str()).or(passing.as_deref());
        put(buf, inner, y, &line(scene, found, (open, row == ui.at), lit, &columns));
        hits.tree_rows.push((Rect { y: inner.y + y, height: 1, ..inner }, row));
    }
}

/// Which plan lights the links, and at what time of it.
fn lit_by(scene: &Scene<'_>) -> Option<String> {
    let panel = &scene.ui.replay;
    let reel = panel.reel(scene.replays).filter(|_| panel.lit)?;
    Some(format!(" · {} at {}", plain(&reel.traffic.name), format_seconds(panel.head(reel))))
}

/// Bytes per second that pass at the play head, by the line that shows them: what is folded away is seen at what hides it.
fn lights(scene: &Scene<'_>) -> HashMap<u32, f64> {
    let mut lights: HashMap<u32, f64> = HashMap::new();
    if !scene.ui.replay.lit {
        return lights;
    }
    for (node, rate) in scene.lights.rates() {
        let hidden_by = scene.atlas.tree.above(node).skip(1).filter(|&above| !scene.ui.topology.is_open(&scene.atlas.tree, above));
        let most = lights.entry(hidden_by.last().unwrap_or(node)).or_default();
        *most = most.max(rate);
    }
    lights
}

/// The unit of every bandwidth on this tab.
pub fn rates(scene: &Scene<'_>) -> Rates {
    scene.view.rates()
}

fn line(scene: &Scene<'_>, node: &Node, (open, here): (bool, bool), lit: Option<&str>, columns: &Columns) -> Line<'static> {
    let look = scene.look;
    let plain_style = if here { look.strong() } else { look.text() };
    let fold = match (node.children.is_empty(), open) {
        (true, _) => " ",
        (_, true) => "▾",
        (_, false) => "▸",
    };
    let faulty = node.marks.iter().any(|mark| mark.fault);
    // What is folded away says how much is at fault below it.
    let below = if open || faulty { 0 } else { node.faults };
    let indent = usize::from(node.depth).min(12) * columns.step;
    let mut name = format!("{}{fold} {}", " ".repeat(indent), node.name);
    if below > 0 {
        name = format!("{name} ▲{below}");
    }
    // Where nobody sits, a long name and a long state have the columns of ranks and rates.
    let free = node.ranks.is_empty();
    let own = super::text::width(&name) + 2;
    let all = columns.name + columns.state + columns.ends();
    let name_columns = if free { columns.name.max(own).min(all) } else { columns.name };
    let state_columns = if free { all - name_columns } else { columns.state };
    let name_style = match node.kind {
        _ if lit.is_some() => look.lit(),
        NodeKind::Others | NodeKind::Other => look.dim(),
        _ if faulty || below > 0 => look.warn(),
        _ => plain_style,
    };
    let cursor = if here { span("▌", look.accent()) } else { Span::raw(" ") };
    let mut spans = vec![cursor, span(left(&name, name_columns.saturating_sub(2)), name_style), Span::raw(" ")];
    spans.extend(state(scene, node, lit, state_columns));
    if free {
        return Line::from(spans);
    }
    spans.push(span(right(&format_ranks(&node.ranks), columns.ranks), plain_style));
    for way in Way::BOTH {
        // Of several ranks the one that reaches least.
        let bests = node.ranks.iter().filter_map(|&rank| scene.atlas.shares.of(rank, way));
        let best = bests.min_by(|a, b| a.share().total_cmp(&b.share()));
        spans.push(reached(scene, best, columns));
    }
    Line::from(spans)
}

/// How the link is trained, with what is wrong first.
fn state(scene: &Scene<'_>, node: &Node, lit: Option<&str>, columns: usize) -> Vec<Span<'static>> {
    let look = scene.look;
    let mut room = columns.saturating_sub(1);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut put = |text: &str, style| {
        // What would be cut to nothing is left out.
        let gap = if spans.is_empty() { "" } else { " · " };
        if text.is_empty() || room < gap.len() + 4 && !spans.is_empty() {
            return;
        }
        let text = cut(&format!("{gap}{text}"), room);
        room -= super::text::width(&text);
        spans.push(span(text, style));
    };
    put(lit.unwrap_or(""), look.lit());
    let faults: Vec<&str> = node.marks.iter().filter(|mark| mark.fault).map(|mark| mark.text.as_str()).collect();
    // Where the state says the fault, and there is room for it, it is the state that is marked.
    let said = match faults.as_slice() {
        [fault] => node.state.contains(fault) && super::text::width(&node.state) + 3 <= columns,
        _ => false,
    };
    if said {
        put(&format!("▲ {}", node.state), look.warn());
    } else {
        if !faults.is_empty() {
            put(&format!("▲ {}", faults.join(", ")), look.warn());
        }
        // Of several hosts it is what this one differs in.
        let several = scene.model.header.topology.hardware.len() > 1;
        let of_host = several && matches!(node.kind, NodeKind::Host | NodeKind::Alike) && node.faults > 0;
        put(&node.state, if of_host { look.warn() } else { look.dim() });
    }
    for mark in node.marks.iter().filter(|mark| !mark.fault && !node.state.contains(&mark.text)) {
        put(&mark.text, look.dim());
    }
    put(&node.model, look.dim());
    spans.push(Span::raw(" ".repeat(room + usize::from(columns > 0))));
    spans
}

/// What the ranks of a line reach one way, beside what is expected.
fn reached(scene: &Scene<'_>, best: Option<Best>, columns: &Columns) -> Span<'static> {
    let (look, rates) = (scene.look, rates(scene));
    let wide = columns.reached;
    let Some(best) = best else { return span(right("–", wide), look.dim()) };
    let text = if columns.rates {
        format!("{} of {}", rates.number(best.rate), rates.number(best.expected))
    } else {
        format!("{:.2}", best.share())
    };
    span(right(&text, wide), if best.share() < SLOW { look.warn() } else { look.good() })
}

/// What is at fault and which ranks are slow, in words: the first glance.
fn faults(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let (look, atlas) = (scene.look, scene.atlas);
    let rows = usize::from(area.height.saturating_sub(2));
    let mut told: Vec<Vec<String>> = Vec::new();
    let several = scene.model.header.topology.hardware.len() > 1;
    let slow = atlas.slow_ranks();
    let mut explained = Vec::new();
    for &at in atlas.tree.faults().iter().take(rows) {
        let Some(node) = atlas.tree.node(at) else { continue };
        let host = node.host.and_then(|host| scene.model.header.topology.hardware.get(host));
        let host = host.filter(|_| several).map(|host| format!("{} ", plain(&host.host))).unwrap_or_default();
        let marks: Vec<&str> = node.marks.iter().filter(|mark| mark.fault).map(|mark| mark.text.as_str()).collect();
        let mut parts = vec![format!("▲ {host}{}: {}", node.name, marks.join(", "))];
        for &rank in &node.ranks {
            explained.push(rank);
            let mut reached = reached_words(&slow, rank).into_iter();
            parts.extend(reached.next().map(|first| format!(" · {first}")));
            parts.extend(reached);
        }
        told.push(parts);
    }
    let mut more = atlas.tree.faults().len().saturating_sub(told.len());
    let mut ranks: Vec<usize> = Vec::new();
    for &(rank, ..) in &slow {
        if !explained.contains(&rank) && !ranks.contains(&rank) {
            ranks.push(rank);
        }
    }
    if ranks.len() > 4 && ranks.len() * 2 > scene.model.world() {
        ranks.sort_unstable();
        told.push(vec![format!("▲ {} of {} ranks stay below {SLOW} of expected", ranks.len(), scene.model.world())]);
    } else {
        more += ranks.len();
        for &rank in ranks.iter().take(rows.saturating_sub(told.len())) {
            more -= 1;
            let mut reached = reached_words(&slow, rank).into_iter();
            let first = reached.next().map(|first| format!("▲ {first}"));
            told.push(first.into_iter().chain(reached).chain(Some(": no link on its way says why".to_owned())).collect());
        }
    }
    let mut title = vec!["what is at fault".to_owned()];
    if more > 0 {
        title.push(format!(" · {more} more: {}", look.key_of(Action::NextFault)));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let columns = usize::from(inner.width).saturating_sub(1);
    if told.is_empty() {
        put(buf, inner, 0, &Line::from(span(cut(" no link is narrow or down, and no rank stays behind", columns), look.good())));
    }
    for (y, parts) in (0..inner.height).zip(told) {
        put(buf, inner, y, &Line::from(vec![Span::raw(" "), span(fit(&parts, columns), look.warn())]));
    }
}

/// `rank 2 sends 0.49`, `, gets 0.49`, ` of expected`: nothing of a rank that is not slow.
pub fn reached_words(slow: &[(usize, Way, Best)], rank: usize) -> Vec<String> {
    let mut words = Vec::new();
    for &(_, way, best) in slow.iter().filter(|(of, ..)| *of == rank) {
        let verb = if way == Way::Sends { "sends" } else { "gets" };
        let who = if words.is_empty() { format!("rank {rank} ") } else { ", ".to_owned() };
        words.push(format!("{who}{verb} {:.2}", best.share()));
    }
    if !words.is_empty() {
        words.push(" of expected".to_owned());
    }
    words
}

/// Notes of the host under the cursor, in lines of at most `columns`; what costs bandwidth first.
fn notes_of(scene: &Scene<'_>, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    let host = scene.atlas.at(scene.ui.topology.at).and_then(|(_, node)| node.host);
    let Some(hardware) = host.and_then(|host| scene.model.header.topology.hardware.get(host)) else { return Vec::new() };
    let mut notes: Vec<_> = hardware.notes.iter().collect();
    notes.sort_by_key(|note| match note.kind {
        NoteKind::Warning => 0,
        NoteKind::Lie => 1,
        NoteKind::Unseen => 2,
    });
    let mut lines = Vec::new();
    for note in notes {
        let (word, style) = match note.kind {
            NoteKind::Warning => ("▲ ", look.warn()),
            NoteKind::Lie => ("≠ ", look.warn()),
            NoteKind::Unseen => ("? ", look.dim()),
        };
        let text = format!("{}: {}", plain(&note.about), plain(&note.text));
        for (at, line) in wrap(&text, columns.saturating_sub(2)).into_iter().enumerate() {
            let mark = if at == 0 { word } else { "  " };
            lines.push(Line::from(vec![
                Span::raw(" "),
                span(mark, style),
                span(line, if note.kind == NoteKind::Unseen { look.dim() } else { look.text() }),
            ]));
        }
    }
    lines
}

fn draw_notes(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, notes: &[Line<'static>], hits: &mut HitMap) {
    let look = scene.look;
    let rows = usize::from(area.height.saturating_sub(2));
    let shown = window(scene.ui.topology.scroll, notes.len(), rows);
    let host = scene.atlas.at(scene.ui.topology.at).and_then(|(_, node)| node.host);
    let host = host.and_then(|host| scene.model.header.topology.hardware.get(host)).map_or_else(String::new, |host| plain(&host.host));
    let mut title = vec![format!("notes on {host}")];
    if shown.len() < notes.len() {
        let keys = [Action::SamplesDown, Action::SamplesUp].map(|action| look.key_of(action)).join(" ");
        title.push(format!(" · {}–{} of {}", shown.start + 1, shown.end, notes.len()));
        title.push(format!(" · {keys}"));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    hits.notes = Some((area, notes.len().saturating_sub(rows)));
    for (row, line) in (0..inner.height).zip(notes.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
}
