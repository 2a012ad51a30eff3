//! One plan on the timeline: resources with how full they are, stages with what was measured, and who sends to whom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::scale::{Scale, bar};
use crate::plan::Execution;
use crate::tui::draw::text::{cut, cut_name, left, put, right, span, width, window};
use crate::tui::draw::{HitMap, Scene};
use crate::tui::replay::Reel;
use crate::units::{format_count, format_seconds, format_size, plain};

/// What is drawn where.
pub struct Block<'a> {
    pub reel: &'a Reel,
    /// its last run
    pub run: Option<&'a Execution>,
    /// whole rows, labels at the left and the timeline at the right
    pub area: Rect,
    pub scale: Scale,
    /// the keys and the mouse are on this one
    pub active: bool,
}

/// Rows of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// a line above each part but the first says what its columns are
    pub headings: bool,
    /// and an empty one before it
    pub gaps: bool,
    pub resources: usize,
    pub stages: usize,
    pub lanes: usize,
}

impl Rows {
    /// How `height` rows (the axis not counted) are shared by so many resources, stages and lanes.
    pub fn of(height: usize, resources: usize, stages: usize, lanes: usize) -> Self {
        let headings = height >= 14;
        let rest = height.saturating_sub(if headings { 2 } else { 0 });
        // Rounds by the thousand are seen around the play head, no more.
        let few = (rest / 5).max(1).min(rest);
        let own_stages = if stages <= few { stages } else { few.min(MOST_STAGES) };
        let rest = rest - own_stages;
        // Resources first; what they leave is the lanes', and the other way round.
        let half = (rest * 11 / 20).max(1).min(rest);
        let own_lanes = lanes.min(rest - resources.min(half));
        let own_resources = resources.min(rest - own_lanes);
        let own_stages = if stages <= 2 * MOST_STAGES { stages.min(own_stages + rest - own_lanes - own_resources) } else { own_stages };
        let used = own_resources + own_stages + own_lanes + if headings { 2 } else { 0 };
        Self { headings, gaps: headings && height >= used + 2, resources: own_resources, stages: own_stages, lanes: own_lanes }
    }
}

/// Stages that are shown of more.
const MOST_STAGES: usize = 5;

/// Columns of the labels.
pub fn labels(columns: u16) -> u16 {
    (columns * 2 / 5).clamp(24, 62).min(columns)
}

/// Columns of a number of seconds with a space before it.
const SECONDS: usize = 9;
const PERCENT: usize = 6;

impl Block<'_> {
    /// Draw it, its axis in the first row.
    pub fn draw(&self, scene: &Scene<'_>, buf: &mut Buffer, hits: &mut HitMap) {
        let look = scene.look;
        let chosen = self.chosen(scene).map(|resource| self.reel.loaders(resource));
        let lanes = chosen.map_or(self.reel.lanes.len(), <[_]>::len);
        let replay = &self.reel.replay;
        let height = usize::from(self.area.height.saturating_sub(1));
        let rows = Rows::of(height, replay.resources.len(), replay.stages.len(), lanes);
        let mut y = 0;
        self.heading(scene, buf, y, "resource", &format!("at {}", format_seconds(self.scale.head)), "load");
        self.scale.axis(buf, self.area.y, look);
        y += 1;
        let first = y;
        y = self.resources(scene, buf, y, rows.resources, hits);
        y += u16::from(rows.gaps);
        if rows.headings {
            self.heading(scene, buf, y, "stage", "over at", if self.run.is_some() { "◆ measured" } else { "" });
            y += 1;
        }
        y = self.stages(scene, buf, y, rows.stages);
        y += u16::from(rows.gaps);
        if rows.headings {
            let which = if chosen.is_some() { "its flows" } else { "from → to" };
            let more = if rows.lanes < lanes { format!("{which} · {}", format_count(lanes as u64)) } else { which.to_owned() };
            // Where there is room for one number, that is the rate.
            let first = if self.wide() { "bytes" } else { "rate" };
            self.heading(scene, buf, y, &more, first, "rate");
            y += 1;
        }
        let lane_rows = Rect { y: self.area.y + y, height: rows.lanes as u16, ..self.area };
        let shown = window(if self.active { scene.ui.replay.scroll } else { 0 }, lanes, rows.lanes);
        if self.active {
            hits.lanes = Some((lane_rows, lanes.saturating_sub(rows.lanes)));
        }
        for at in shown {
            let all = || self.reel.lanes.get(at).map(|lane| (at as u32, lane.bytes));
            let Some((number, bytes)) = chosen.map_or_else(all, |chosen| chosen.get(at).copied()) else { break };
            self.lane(scene, buf, y, (number, bytes));
            y += 1;
        }
        let top = self.area.y + first;
        self.scale.play_head(buf, top..(self.area.y + y).min(self.area.bottom()), look.accent());
    }

    fn chosen(&self, scene: &Scene<'_>) -> Option<usize> {
        scene.ui.replay.resource.filter(|_| self.active)
    }

    fn room(&self) -> usize {
        usize::from(self.scale.area.x.saturating_sub(self.area.x)).saturating_sub(1)
    }

    /// True where a label has room for two numbers.
    fn wide(&self) -> bool {
        self.room() >= 40
    }

    fn heading(&self, scene: &Scene<'_>, buf: &mut Buffer, y: u16, what: &str, first: &str, second: &str) {
        let room = self.room();
        let numbers =
            if self.wide() { format!("{}{}", right(first, SECONDS + 2), right(second, SECONDS + 2)) } else { right(first, SECONDS + 3) };
        let name = left(what, room.saturating_sub(numbers.chars().count() + 1));
        put(buf, self.area, y, &Line::from(span(format!(" {name}{numbers}"), scene.look.dim())));
    }

    /// Resources, the busiest first; the next row comes back.
    fn resources(&self, scene: &Scene<'_>, buf: &mut Buffer, y: u16, rows: usize, hits: &mut HitMap) -> u16 {
        let look = scene.look;
        let replay = &self.reel.replay;
        let chosen = self.chosen(scene);
        let at = chosen.unwrap_or(0);
        let shown = window(at.saturating_sub(rows / 2), replay.resources.len(), rows);
        let room = self.room();
        // A narrow label has the name and the share; a wide one a bar and the load as well.
        let (bar_columns, seconds) = match room {
            0..30 => (0, 0),
            30..40 => (6, 0),
            40..52 => (8, SECONDS),
            _ => (12, SECONDS),
        };
        let names = |number: usize| replay.resources.get(number).map_or_else(String::new, |load| plain(&load.resource.name));
        let longest = shown.clone().map(|number| width(&names(number))).max().unwrap_or(0);
        // What differs in names is often at their ends; how full it is now stands in figures, too.
        let free = room.saturating_sub(PERCENT + seconds + 2);
        let bar_columns = if longest + bar_columns < free { bar_columns } else { bar_columns.min(free.saturating_sub(longest + 1)) };
        let bar_columns = if bar_columns < 4 { 0 } else { bar_columns };
        let name_columns = free.saturating_sub(bar_columns + usize::from(bar_columns > 0));
        let mut row = y;
        for number in shown {
            let Some(load) = replay.resources.get(number) else { break };
            let binds = replay.bottleneck.resource == Some(number);
            let here = chosen == Some(number);
            let used = self.reel.used(number, self.scale.head);
            let style = if binds { look.warn() } else { look.bar() };
            let name = match (binds, here) {
                (true, _) => look.warn(),
                (_, true) => look.strong(),
                _ => look.text(),
            };
            let mut spans = vec![
                span(if here { "▌" } else { " " }, look.accent()),
                span(left(&cut_name(&names(number), name_columns), name_columns), name),
                Span::raw(" "),
            ];
            if bar_columns > 0 {
                spans.extend([span(bar(used, bar_columns), style), Span::raw(" ")]);
            }
            spans.push(span(right(&format!("{:.0} %", used * 100.0), PERCENT - 1), if used > 0.0 { name } else { look.dim() }));
            spans.push(span(if binds { "◀" } else { " " }, look.warn()));
            if seconds > 0 {
                spans.push(span(right(&format_seconds(load.busy), seconds), look.dim()));
            }
            put(buf, self.area, row, &Line::from(spans));
            if let Some(strip) = self.reel.strips.get(number) {
                self.scale.heights(buf, self.area.y + row, strip, style);
            }
            if self.active {
                let area = Rect { y: self.area.y + row, height: 1, width: self.scale.area.x.saturating_sub(self.area.x), ..self.area };
                hits.resources.push((area, number));
            }
            row += 1;
        }
        row
    }

    /// Stages around the play head, with what was measured; the next row comes back.
    fn stages(&self, scene: &Scene<'_>, buf: &mut Buffer, y: u16, rows: usize) -> u16 {
        let look = scene.look;
        let stages = &self.reel.replay.stages;
        let at = self.reel.stage(self.scale.head).map(|(number, _)| number);
        let shown = window(at.unwrap_or(0).saturating_sub(rows / 2), stages.len(), rows);
        let room = self.room();
        let mut row = y;
        for number in shown {
            let Some(stage) = stages.get(number) else { break };
            let here = at == Some(number);
            let style = if here { look.strong() } else { look.text() };
            let own = self.run.and_then(|run| super::ended(run, number));
            let mut numbers = vec![span(right(&format_seconds(stage.end), SECONDS), style)];
            if self.wide() {
                let text = own.map_or_else(String::new, format_seconds);
                numbers.push(span(right(&text, SECONDS), look.good()));
            }
            let columns: usize = numbers.iter().map(Span::width).sum();
            let title = if stages.len() > rows { format!("{}/{} {}", number + 1, stages.len(), stage.name) } else { stage.name.clone() };
            let mut spans = vec![Span::raw(" "), span(left(&plain(&title), room.saturating_sub(columns + 1)), style)];
            spans.extend(numbers);
            put(buf, self.area, row, &Line::from(spans));
            let screen = self.area.y + row;
            self.scale.line(buf, screen, (stage.start, stage.end), if here { look.bar() } else { look.dim() });
            self.scale.mark(buf, screen, stage.start, "┝", if here { look.bar() } else { look.dim() });
            if let Some(end) = own {
                self.scale.mark(buf, screen, end, "◆", look.good());
            }
            row += 1;
        }
        row
    }

    fn lane(&self, scene: &Scene<'_>, buf: &mut Buffer, y: u16, (number, bytes): (u32, u64)) {
        let look = scene.look;
        let Some(lane) = self.reel.lanes.get(number as usize) else { return };
        let room = self.room();
        let rate = self.reel.rate(number, self.scale.head).map(|rate| scene.view.rates().text(rate));
        let numbers = if self.wide() {
            let rate_columns = SECONDS + 3;
            format!("{}{}", right(&format_size(bytes), SECONDS + 2), right(rate.as_deref().unwrap_or("–"), rate_columns))
        } else {
            right(rate.as_deref().unwrap_or_default(), SECONDS + 3)
        };
        let times = if lane.flows > 1 { format!("  {} ×", format_count(lane.flows as u64)) } else { String::new() };
        let pair = format!("{}→{}", lane.from, lane.to);
        let columns = room.saturating_sub(numbers.chars().count());
        let style = |on: Style| if rate.is_some() { on } else { look.dim() };
        let spans = vec![
            Span::raw(" "),
            span(pair.clone(), style(look.text())),
            span(
                left(&cut(&times, columns.saturating_sub(pair.chars().count() + 1)), columns.saturating_sub(pair.chars().count() + 1)),
                look.dim(),
            ),
            span(numbers, style(look.text())),
        ];
        put(buf, self.area, y, &Line::from(spans));
        let style = if self.reel.binds(number) { look.warn() } else { look.bar() };
        self.scale.bars(buf, self.area.y + y, &lane.passes, &lane.runs, style, look.dim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_and_none_is_lost() {
        for height in 1..60 {
            for (resources, stages, lanes) in [(1, 1, 1), (3, 2, 8), (40, 1000, 240), (2, 1, 240), (40, 1, 1), (0, 0, 0)] {
                let rows = Rows::of(height, resources, stages, lanes);
                let used = rows.resources + rows.stages + rows.lanes + if rows.headings { 2 } else { 0 };
                let all = resources + stages + lanes + if rows.headings { 2 } else { 0 };
                assert!(used <= height.max(2), "{height} {resources} {stages} {lanes}: {rows:?}");
                assert!(used >= all.min(height) || stages > 2 * MOST_STAGES, "{height} {resources} {stages} {lanes}: {rows:?}");
                assert!(!rows.gaps || used + 2 <= height);
                assert!(rows.resources <= resources && rows.stages <= stages && rows.lanes <= lanes);
                assert!(height < 3 || resources == 0 || rows.resources > 0, "the busiest is always told");
            }
        }
    }
}
