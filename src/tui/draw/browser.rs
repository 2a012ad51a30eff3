//! The list of sessions, over the tabs or alone on the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::text::{cut, left, panel, put, right, span, typing, window, wrap};
use crate::session::store::shelf::{Entry, State};
use crate::tui::browser::{Browser, Typed};
use crate::tui::look::Look;
use crate::units::{format_count, plain};

/// Columns of what is told besides name and note.
const WHEN: usize = 16;
const ENGINE: usize = 8;
const RANKS: usize = 6;
const HOSTS: usize = 6;
const SAMPLES: usize = 10;
const STATE: usize = 8;

/// Draw the list in all of `area`.
pub fn draw(browser: &Browser, look: &Look, buf: &mut Buffer, area: Rect) {
    Clear.render(area.intersection(buf.area), buf);
    buf.set_style(area, look.popup());
    let inner = panel(buf, area, look, &Line::from(span(title(browser), look.title())));
    let room = usize::from(inner.width);
    if inner.height < 4 {
        return;
    }
    let rows = usize::from(inner.height) - 4;
    if browser.entries.is_empty() {
        let text =
            if browser.known { "no sessions yet: a sweep leaves one, here or with toposcope sweep" } else { "looking for sessions …" };
        put(buf, inner, 1, &Line::from(span(format!(" {}", cut(text, room.saturating_sub(2))), look.dim())));
    } else {
        // What does not fit is left out, the least needed first.
        let wide = room >= 90;
        let fixed = WHEN + STATE + 4 + if wide { ENGINE + RANKS + HOSTS + SAMPLES } else { RANKS + SAMPLES };
        let longest = browser.entries.iter().map(|entry| super::text::width(&entry.name)).max().unwrap_or(0);
        let name = longest.clamp(8, room.saturating_sub(fixed).max(8)).min(44);
        put(buf, inner, 0, &heading(look, name, wide));
        let at = browser.at.min(browser.entries.len() - 1);
        let from = at.saturating_sub(rows.saturating_sub(1) / 2);
        for (y, i) in (1..).zip(window(from, browser.entries.len(), rows)) {
            let entry = &browser.entries[i];
            let marked = browser.marked.as_ref() == Some(&entry.folder);
            put(buf, inner, y, &row(look, entry, (name, room), (i == at, marked, wide)));
        }
    }
    for (y, line) in (inner.height - 3..inner.height).zip(below(browser, look, room)) {
        put(buf, inner, y, &line);
    }
}

fn title(browser: &Browser) -> String {
    match browser.entries.len() {
        0 => "sessions".to_owned(),
        n => format!("sessions · {} of {n}", browser.at.min(n - 1) + 1),
    }
}

fn heading(look: &Look, name: usize, wide: bool) -> Line<'static> {
    let mut text = format!("  {} {}", left("name", name), left("began, UTC", WHEN));
    if wide {
        text.push(' ');
        text += &left("engine", ENGINE - 1);
    }
    text += &right("ranks", RANKS);
    if wide {
        text += &right("hosts", HOSTS);
    }
    text += &right("samples", SAMPLES);
    text += &" ".repeat(STATE + 1);
    text += "note";
    Line::from(span(text, look.dim()))
}

fn row(look: &Look, entry: &Entry, (name, room): (usize, usize), (chosen, marked, wide): (bool, bool, bool)) -> Line<'static> {
    let style = if chosen { look.strong() } else { look.text() };
    let mark = match (chosen, marked) {
        (true, true) => "▸◆",
        (true, false) => "▸ ",
        (false, true) => " ◆",
        (false, false) => "  ",
    };
    let mut spans = vec![span(mark, look.accent()), span(left(&plain(&entry.name), name), style), Span::raw(" ")];
    if let State::Broken(why) = &entry.state {
        spans.push(span(cut(&format!("broken: {}", plain(why)), room.saturating_sub(name + 4)), look.error()));
        return Line::from(spans);
    }
    let started = entry.started.as_deref().map(|text| plain(text).chars().take(WHEN).collect::<String>().replace('T', " "));
    spans.push(span(left(&started.unwrap_or_default(), WHEN), look.text()));
    if wide {
        spans.push(span(format!(" {}", left(entry.engine.as_deref().unwrap_or(""), ENGINE - 1)), look.text()));
    }
    spans.push(span(right(&entry.ranks.to_string(), RANKS), look.text()));
    if wide {
        spans.push(span(right(&entry.hosts.to_string(), HOSTS), look.text()));
    }
    spans.push(span(right(&entry.samples.map_or_else(|| "many".to_owned(), format_count), SAMPLES), look.text()));
    let (word, style) = match entry.state {
        State::Written => ("running", look.accent()),
        State::Cut => ("cut", look.warn()),
        _ => ("", look.text()),
    };
    spans.push(span(format!(" {}", left(word, STATE)), style));
    spans.push(span(plain(entry.note.lines().next().unwrap_or_default()), look.dim()));
    Line::from(spans)
}

/// What is typed, asked or told, and the keys.
fn below(browser: &Browser, look: &Look, room: usize) -> Vec<Line<'static>> {
    let columns = room.saturating_sub(2);
    if let Some((typed, _, line)) = &browser.typing {
        let word = if *typed == Typed::Name { " new name: " } else { " note: " };
        let mut spans = vec![span(word, look.dim())];
        spans.extend(typing(look, line, columns.saturating_sub(word.len())));
        return vec![Line::default(), Line::from(spans), keys(look, &[("enter", "takes it"), ("esc", "drops it")], room)];
    }
    if let Some(folder) = &browser.asked {
        let name = plain(&folder.file_name().unwrap_or_default().to_string_lossy());
        let text = format!(" delete {name} for good? Its samples are gone then.");
        return vec![
            Line::default(),
            Line::from(span(cut(&text, room), look.warn())),
            keys(look, &[("y", "yes"), ("any other key", "no")], room),
        ];
    }
    let told = match (&browser.error, &browser.done) {
        (Some(error), _) => {
            wrap(&plain(error), columns).into_iter().map(|line| Line::from(span(format!(" {line}"), look.error()))).collect()
        }
        (None, Some(done)) => vec![Line::from(span(format!(" {}", cut(&plain(done), columns)), look.good()))],
        (None, None) => browser.chosen().map_or_else(Vec::new, |entry| {
            let place = entry.folder.display().to_string();
            vec![Line::from(span(format!(" {}", cut(&plain(&place), columns)), look.dim()))]
        }),
    };
    let mut told: Vec<Line<'static>> = told;
    told.resize(2, Line::default());
    let compare = if browser.beside { "compare with this" } else { "compare" };
    let mut all =
        vec![("enter", "open"), ("space", "mark"), ("c", compare), ("r", "rename"), ("n", "note"), ("d", "delete"), ("esc", "close")];
    if !browser.opens {
        all.retain(|(key, _)| !matches!(*key, "enter" | "space"));
    }
    told.push(keys(look, &all, room));
    told
}

fn keys(look: &Look, keys: &[(&str, &str)], room: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, word) in keys {
        let wanted = key.len() + word.len() + 3;
        if used + wanted > room {
            break;
        }
        used += wanted;
        spans.extend([span(format!(" {key}"), look.key()), span(format!(" {word} "), look.dim())]);
    }
    Line::from(spans)
}
