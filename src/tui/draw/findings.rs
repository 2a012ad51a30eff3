//! The Findings tab: what is wrong, gravest first, and beside it why the chosen one may be so and what would tell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{count, cut, fit, panel, put, right, span, window, wrap};
use super::{HitMap, Scene, changes, finding, matrix};
use crate::diagnose::{Finding, Severity};
use crate::sample::EngineKind;
use crate::tui::atlas::short;
use crate::tui::findings::{FindingsSight, Seen, Told, mark};
use crate::tui::keys::Action;
use crate::units::{format_count, format_size, plain};

/// Lines of a title at most.
const TITLE: usize = 2;
/// Rows of a matrix that are worth drawing.
const LEAST_MATRIX: u16 = 14;
/// Columns from which on the list stands beside the chosen one.
const BESIDE: u16 = 100;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let Some(told) = scene.desk.told() else {
        nothing(scene, buf, area, &[waiting(scene)]);
        return;
    };
    let sight = scene.ui.findings.sight;
    if told.findings().is_empty() && sight == FindingsSight::Findings {
        let mut texts = empty(scene, told);
        texts.extend((!scene.desk.current()).then(|| waiting(scene)));
        nothing(scene, buf, area, &texts);
        return;
    }
    let beside = area.width >= BESIDE;
    let columns = if beside { (area.width * 46 / 100).min(84) } else { area.width };
    let inside = usize::from(columns).saturating_sub(2);
    let wanted = match sight {
        FindingsSight::Findings => lines(told, inside, TITLE).iter().sum::<usize>() as u16 + if beside { 5 } else { 3 },
        FindingsSight::Silenced => told.diagnosis.silenced.len() as u16 + 2,
        FindingsSight::Changes => changes::rows(told, inside),
    };
    // Below one another what is told of one gets more than the list.
    let most = if beside { area.height } else { area.height * 2 / 5 };
    let height = wanted.max(5).min(most);
    let detail = if beside {
        Rect { x: area.x + columns, width: area.width - columns, ..area }
    } else {
        Rect { y: area.y + height, height: area.height - height, ..area }
    };
    // What is left below a short list shows where.
    let rest = Rect { y: area.y + height, height: area.height - height, width: columns, ..area };
    let shows = beside && rest.height >= LEAST_MATRIX && told.seen.pairs > 0 && sight != FindingsSight::Silenced;
    let list_area = Rect { width: columns, height: if beside && !shows { area.height } else { height }, ..area };
    match sight {
        FindingsSight::Findings => {
            list(scene, told, buf, list_area, hits);
            finding::draw(scene, told, buf, detail, hits);
        }
        FindingsSight::Silenced => {
            alarms(scene, told, buf, list_area, hits);
            finding::draw_silenced(scene, told, buf, detail, hits);
        }
        FindingsSight::Changes => {
            changes::list(scene, told, buf, list_area, hits);
            changes::detail(scene, told, buf, detail, hits);
        }
    }
    if shows {
        matrix::draw_marked(scene, buf, rest, hits);
    }
}

/// What is under way, before the first diagnosis or after samples have changed.
fn waiting(scene: &Scene<'_>) -> String {
    let pause = scene.look.key_of(Action::PauseContinue);
    if scene.desk.busy() {
        "looking at what was measured …".to_owned()
    } else if scene.running() {
        format!("samples come in: they are looked at when the sweep ends, or pauses (key {pause})")
    } else {
        "not looked at yet".to_owned()
    }
}

fn nothing(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, texts: &[String]) {
    let look = scene.look;
    let inner = panel(buf, area, look, &Line::from(span("findings", look.title())));
    let mut y = 1;
    for (at, text) in texts.iter().enumerate() {
        for line in wrap(text, usize::from(inner.width).saturating_sub(2)) {
            let style = if at == 0 && texts.len() > 1 { look.good() } else { look.dim() };
            put(buf, inner, y, &Line::from(span(format!(" {line}"), style)));
            y += 1;
        }
        y += 1;
    }
}

/// That nothing stands out, of what, and what would let more be said.
fn empty(scene: &Scene<'_>, told: &Told) -> Vec<String> {
    let look = scene.look;
    let seen = &told.seen;
    if let Some(only) = scene.model.only_together() {
        return vec![format!("no pair was measured: {only}")];
    }
    if seen.pairs + seen.copies + seen.duplex + seen.together == 0 {
        let sweep = format!("nothing measured yet: key {}, then {}", look.key_of(Action::Tab2), look.key_of(Action::StartSweep));
        let hardware = !scene.model.header.topology.hardware.is_empty();
        let first = if hardware { "nothing is wrong with the hardware, as far as it tells" } else { "nothing is known yet" };
        return vec![first.to_owned(), sweep];
    }
    let mut texts = vec!["nothing stands out".to_owned(), format!("looked at: {}", looked_at(seen).concat())];
    let more = more(scene, seen);
    if !more.is_empty() {
        texts.push(format!("more could be said with {} (key {})", more.join(", "), look.key_of(Action::Tab2)));
    }
    let alarms = told.diagnosis.silenced.len();
    if alarms > 0 {
        texts.push(format!("{}: key {} says which and why", held_back(alarms), look.key_of(Action::ShowSilenced)));
    }
    texts
}

fn held_back(alarms: usize) -> String {
    format!("{} held back", count(alarms, "alarm"))
}

/// `56 pairs`, `, 8 copies`, `, 32 fans and sets`, ` at 256 MiB`, `, of 3 sizes`
fn looked_at(seen: &Seen) -> Vec<String> {
    let told = |n: usize, one: &str, many: &str| (n > 0).then(|| format!("{} {}", format_count(n as u64), if n == 1 { one } else { many }));
    let kinds = [
        told(seen.pairs, "pair", "pairs"),
        told(seen.duplex, "pair both ways", "pairs both ways"),
        told(seen.copies, "copy", "copies"),
        told(seen.together, "fan or set", "fans and sets"),
    ];
    let mut parts: Vec<String> = kinds.into_iter().flatten().collect();
    for part in parts.iter_mut().skip(1) {
        part.insert_str(0, ", ");
    }
    parts.extend((seen.bytes > 0).then(|| format!(" at {}", format_size(seen.bytes))));
    parts.extend((seen.sizes > 1).then(|| format!(", of {} sizes", seen.sizes)));
    parts
}

/// What has not been measured, and would tell more.
fn more(scene: &Scene<'_>, seen: &Seen) -> Vec<&'static str> {
    if scene.model.header.engine == EngineKind::Imported {
        // What another tool measured elsewhere cannot be measured again from here.
        return Vec::new();
    }
    let several = scene.model.world() > 2;
    let wanted = [
        (seen.pairs == 0, "single pairs (peer)"),
        (seen.unsure > 0, "6 repeats or more"),
        (seen.sizes < 3, "small and large messages (4KiB..256MiB)"),
        (seen.duplex == 0, "both ways at once (duplex)"),
        (seen.together == 0 && several, "fans (fan_in, fan_out)"),
    ];
    wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, what)| what).collect()
}

/// Lines that each finding takes in a list of so many columns.
fn lines(told: &Told, columns: usize, most: usize) -> Vec<usize> {
    told.findings().iter().map(|finding| title(finding, columns, most).len()).collect()
}

/// Columns before the title, and of the amount with the space before it.
const HEAD: usize = 7;
fn tail(finding: &Finding) -> usize {
    super::text::width(&finding.amount) + 3
}

fn title(finding: &Finding, columns: usize, most: usize) -> Vec<String> {
    let room = columns.saturating_sub(HEAD + tail(finding)).max(8);
    let mut lines = wrap(&short(&finding.title), room);
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(cut(&rest, room));
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

fn list(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, ui) = (scene.look, &scene.ui.findings);
    let room = usize::from(area.width).saturating_sub(4);
    let inner = panel(buf, area, look, &Line::from(span(fit(&heading(scene, told), room), look.title())));
    let columns = usize::from(inner.width);
    // What it rests on stands below, where there is room for it.
    let foot = if inner.height > 8 { 2 } else { u16::from(inner.height > 2) };
    let rows = usize::from(inner.height - foot);
    // More of them are seen in one line each; the chosen one is told in full beside.
    let whole = lines(told, columns, TITLE);
    let most = if whole.iter().sum::<usize>() > rows { 1 } else { TITLE };
    let lines = lines(told, columns, most);
    let mut first = 0;
    while lines.get(first..=ui.at).is_some_and(|before| before.iter().sum::<usize>() > rows) && first < ui.at {
        first += 1;
    }
    // A list that ends above the last row starts earlier.
    while first > 0 && lines[first - 1..].iter().sum::<usize>() <= rows {
        first -= 1;
    }
    let mut y = 0;
    for (at, found) in told.findings().iter().enumerate().skip(first) {
        if usize::from(y) + lines[at] > rows && y > 0 {
            break;
        }
        let here = at == ui.at;
        for (line, text) in title(found, columns, most).into_iter().enumerate() {
            put(buf, inner, y + line as u16, &Line::from(entry(scene, found, at, line, text, columns)));
        }
        let height = (lines[at] as u16).min(inner.height.saturating_sub(y));
        hits.findings.push((Rect { y: inner.y + y, height, ..inner }, at));
        if here {
            for row in y..y + height {
                put(buf, inner, row, &Line::from(span("▌", look.accent())));
            }
        }
        y += height;
    }
    let alarms = told.diagnosis.silenced.len();
    let held = (alarms > 0).then(|| format!("{}: {}", held_back(alarms), look.key_of(Action::ShowSilenced)));
    let room = columns.saturating_sub(2);
    let mut texts = vec![fit(&looked_at(&told.seen), room)];
    match held {
        Some(held) if foot > 1 => texts.push(cut(&held, room)),
        Some(held) => texts = vec![fit(&[vec![held, " · ".to_owned()], looked_at(&told.seen)].concat(), room)],
        None => {}
    }
    for (row, text) in (inner.height - foot..inner.height).zip(texts) {
        put(buf, inner, row, &Line::from(span(format!(" {text}"), look.dim())));
    }
}

/// One line of an entry: mark, number, title and amount; of the second line the title alone.
fn entry(scene: &Scene<'_>, found: &Finding, at: usize, line: usize, text: String, columns: usize) -> Vec<Span<'static>> {
    let look = scene.look;
    let here = at == scene.ui.findings.at;
    let style = look.finding(found.severity);
    let title = if here { look.strong() } else { look.text() };
    if line > 0 {
        return vec![Span::raw(" ".repeat(HEAD)), span(text, title)];
    }
    let testing = scene.model.testing.as_ref().is_some_and(|(of, _)| *of == found.id);
    let (amount, style) = if testing { ("testing …".to_owned(), look.accent()) } else { (plain(&found.amount), style) };
    let room = columns.saturating_sub(HEAD + super::text::width(&text) + 1);
    vec![
        Span::raw(" "),
        span(mark(found.severity), style),
        span(format!("{}  ", right(&(at + 1).to_string(), 3)), look.dim()),
        span(text, title),
        span(right(&amount, room), style),
    ]
}

/// `findings · 2 problems · 1 warning · 3 notes`
fn heading(scene: &Scene<'_>, told: &Told) -> Vec<String> {
    let mut parts = vec!["findings".to_owned()];
    for severity in [Severity::Problem, Severity::Warning, Severity::Note] {
        let n = told.findings().iter().filter(|finding| finding.severity == severity).count();
        parts.extend((n > 0).then(|| format!(" · {}", count(n, severity.name()))));
    }
    if !scene.desk.current() {
        parts.push(if scene.desk.busy() { " · looking again …".to_owned() } else { " · samples came in since".to_owned() });
    }
    parts
}

/// Alarms that were not raised.
fn alarms(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, at) = (scene.look, scene.ui.findings.silenced);
    let all = &told.diagnosis.silenced;
    let title =
        ["held back".to_owned(), format!(" · {}", count(all.len(), "alarm")), format!(" · {} findings", look.key_of(Action::ShowSilenced))];
    let inner = panel(buf, area, look, &Line::from(span(fit(&title, usize::from(area.width).saturating_sub(4)), look.title())));
    let rows = usize::from(inner.height);
    let shown = window(at.saturating_sub(rows / 2), all.len(), rows);
    for (y, row) in (0_u16..).zip(shown) {
        let here = row == at;
        let text = cut(&plain(&all[row].say), usize::from(inner.width).saturating_sub(4));
        let line = vec![
            span(if here { "▌" } else { " " }, look.accent()),
            span("– ", look.dim()),
            span(text, if here { look.strong() } else { look.text() }),
        ];
        put(buf, inner, y, &Line::from(line));
        hits.findings.push((Rect { y: inner.y + y, height: 1, ..inner }, row));
    }
}
