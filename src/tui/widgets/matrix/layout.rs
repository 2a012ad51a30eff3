use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::paint::Painter;
use super::placed::Placed;
use super::{MatrixView, Zoom};
use crate::matrix::Axes;
use crate::units::plain;

/// Widest host name that is shown; of a longer one its end.
const HOST_WIDTH: usize = 12;
/// Largest side of a pixel, in half rows.
const LARGEST_PIXEL: u16 = 6;
/// Largest cell with digits, in columns and rows, and columns for each row: about square.
const LARGEST_CELL: (u16, u16) = (30, 9);
const SQUARE: u16 = 4;
/// Numbers and the space before them, in columns, best first.
const PITCHES: [(u16, u16); 6] = [(6, 2), (6, 1), (5, 2), (5, 1), (4, 1), (3, 1)];

/// First, number and places of each block along an edge; rows in half rows of the screen.
pub(super) type Spans = Vec<(u16, u16, Range<usize>)>;

/// What is in sight along one edge by host: runs of neighbours on the same host.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    /// first place of each run, and the host's name
    pub runs: Vec<(usize, &'a str)>,
    /// columns of the longest name
    pub width: u16,
    /// runs are long enough to be ruled off
    pub ruled: bool,
}

/// What is drawn in the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Digits { number: u16 },
    Pixels { level: usize },
}

/// Where everything goes.
#[derive(Debug)]
pub(super) struct Layout {
    pub kind: Kind,
    pub area: Rect,
    pub columns: Spans,
    pub rows: Spans,
    /// columns and rows of the lines between hosts
    pub lines: (Vec<u16>, Vec<u16>),
    /// columns of the host's name (0: not shown) and of the rank
    pub header: (u16, u16),
    /// column of the summaries of rows, and row of those of columns
    pub summary: Option<(u16, u16)>,
    pub legend_y: Option<u16>,
}

/// What a layout has besides numbers.
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
#[derive(Clone, Copy)]
struct Extras {
    legend: bool,
    summary: bool,
    lines: bool,
    hosts: bool,
}

/// Cells with digits: columns of a number, columns and rows of a cell.
#[derive(Clone, Copy)]
struct Cells {
    number: u16,
    wide: u16,
    high: u16,
    /// free columns before the first cell
    indent: u16,
}

impl<'a> Groups<'a> {
    pub(super) fn of(view: &MatrixView<'a>, placed: &Placed<'_>, row: bool) -> Self {
        let mut runs: Vec<(usize, &str)> = Vec::new();
        let seen = placed.window[usize::from(!row)].clone();
        let count = seen.len();
        for place in seen {
            let rank = placed.rank(row, place);
            let own = view.groups.and_then(|names| names.get(rank)).map(String::as_str);
            let Some(name) = own.or_else(|| view.topology.ranks.get(rank).map(|placement| placement.host.as_str())) else { continue };
            if runs.last().is_none_or(|&(_, last)| last != name) {
                runs.push((place, name));
            }
        }
        // Thousands of names are not all cut to size: as a rule they are plain.
        let width = |name: &str| if plain_ascii(name) { name.len().min(HOST_WIDTH) } else { Span::raw(short(name)).width() };
        let width = runs.iter().map(|(_, name)| width(name)).max().unwrap_or(0) as u16;
        // Ranks dealt out over hosts one by one would be ruled to pieces.
        let ruled = runs.len() > 1 && runs.len() * 2 <= count;
        Self { runs, width, ruled }
    }

    /// The first run that begins among these places.
    pub(super) fn begins_in(&self, places: &Range<usize>) -> Option<&(usize, &'a str)> {
        self.runs.get(self.runs.partition_point(|&(first, _)| first < places.start)).filter(|(first, _)| places.contains(first))
    }

    /// The run that a place belongs to.
    pub(super) fn run_of(&self, place: usize) -> Option<&(usize, &'a str)> {
        self.runs.get(self.runs.partition_point(|&(first, _)| first <= place).checked_sub(1)?)
    }
}

fn plain_ascii(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// A host's name without control characters; of a long one the end, which tells hosts apart.
pub(super) fn short(host: &str) -> String {
    let host = plain(host);
    let mut chars: Vec<char> = host.chars().collect();
    if Span::raw(host.as_str()).width() <= HOST_WIDTH {
        return host;
    }
    while !chars.is_empty() && Span::raw(chars.iter().collect::<String>()).width() >= HOST_WIDTH {
        chars.remove(0);
    }
    std::iter::once('…').chain(chars).collect()
}

impl Layout {
    /// The best layout for an area; `None` if not even one pixel fits.
    pub(super) fn choose(
        view: &MatrixView<'_>,
        painter: &Painter,
        placed: &Placed<'_>,
        groups: &[Groups<'_>; 2],
        area: Rect,
    ) -> Option<Self> {
        if placed.window.iter().any(Range::is_empty) {
            return None;
        }
        let planner = Planner { view, painter, placed, groups, area, rank: digits_of(view.grid.world() - 1) };
        match view.zoom {
            Zoom::Fit => planner.all_digits().or_else(|| planner.pixels()),
            Zoom::Pixels => planner.pixels(),
            Zoom::Digits => planner.all_digits().or_else(|| planner.some_digits()).or_else(|| planner.pixels()),
        }
    }
}

fn digits_of(number: usize) -> u16 {
    number.checked_ilog10().map_or(1, |log| log as u16 + 1)
}

struct Planner<'a> {
    view: &'a MatrixView<'a>,
    painter: &'a Painter<'a>,
    placed: &'a Placed<'a>,
    /// of rows and of columns
    groups: &'a [Groups<'a>; 2],
    area: Rect,
    /// digits of the largest rank
    rank: u16,
}

impl Planner<'_> {
    /// All ranks with digits, with as much else as fits.
    fn all_digits(&self) -> Option<Layout> {
        let [rows, columns] = self.placed.window.clone();
        let down = u16::try_from(rows.len()).ok().filter(|&n| n <= self.area.height)?;
        let across = u16::try_from(columns.len()).ok().filter(|&n| n <= self.area.width)?;
        let gaps = self.groups.each_ref().map(|groups| if groups.ruled { groups.runs.len() as u16 - 1 } else { 0 });
        let extras = [
            (true, true, true, true),
            (true, true, false, true),
            (true, false, false, true),
            (true, false, false, false),
            (false, false, false, false),
        ];
        let least = self.painter.least_width();
        for (legend, summary, lines, hosts) in extras {
            let extras = Extras { legend, summary, lines, hosts };
            for (number, gap) in PITCHES.into_iter().filter(|&(number, _)| number >= least) {
                let lines = gaps.map(|gaps| if extras.lines { gaps } else { 0 });
                let sides = self.left(extras) + 1 + 2 * lines[1] + if summary { self.summary(number) } else { 0 };
                let edges = 1 + lines[0] + u16::from(summary) + u16::from(legend);
                let least = self.pitch(number, gap);
                if sides + across * least <= self.area.width && edges + down <= self.area.height {
                    // What is left over goes to the cells.
                    let high = ((self.area.height - edges) / down).clamp(1, LARGEST_CELL.1);
                    let most = LARGEST_CELL.0.min(high * SQUARE + 4).max(least);
                    let wide = ((self.area.width - sides) / across).clamp(least, most);
                    // Not higher than wide: a row of a terminal is about two columns high.
                    let high = high.min(wide.div_ceil(2));
                    let number = number.min(self.painter.full_width(self.view.grid));
                    let spare = sides + across * wide < self.area.width;
                    return Some(self.digits(extras, Cells { number, wide, high, indent: u16::from(spare) }, rows, columns));
                }
            }
        }
        None
    }

    /// As many ranks around the cursor as fit with digits.
    fn some_digits(&self) -> Option<Layout> {
        let extras = Extras { legend: self.area.height >= 6, summary: false, lines: false, hosts: self.area.width >= 40 };
        let number = self.painter.least_width().max(5);
        let width = self.area.width.checked_sub(self.left(extras) + 1)? / self.pitch(number, 1);
        let height = self.area.height.checked_sub(1 + u16::from(extras.legend))?;
        let (row, column) = self.placed.cursor;
        let [rows, columns] = &self.placed.window;
        let rows = around(row, height, rows)?;
        let cells = Cells { number, wide: self.pitch(number, 1), high: 1, indent: 0 };
        Some(self.digits(extras, cells, rows, around(column, width, columns)?))
    }

    fn digits(&self, extras: Extras, cells: Cells, rows: Range<usize>, columns: Range<usize>) -> Layout {
        let Cells { number, wide: pitch, high, indent } = cells;
        let first = (rows.start, columns.start);
        let ruled = |groups: &Groups<'_>, place: usize| extras.lines && groups.ruled && groups.begins_in(&(place..place + 1)).is_some();
        let mut lines = (Vec::new(), Vec::new());
        let mut x = self.area.x + self.left(extras) + indent;
        let mut across = Spans::new();
        for place in columns {
            if place > first.1 && ruled(&self.groups[1], place) {
                lines.0.push(x + 1);
                x += 2;
            }
            across.push((x, pitch, place..place + 1));
            x += pitch;
        }
        let mut y = self.area.y + 1;
        let mut down = Spans::new();
        for place in rows {
            if place > first.0 && ruled(&self.groups[0], place) {
                lines.1.push(y);
                y += 1;
            }
            down.push((y * 2, 2 * high, place..place + 1));
            y += high;
        }
        let hosts = if extras.hosts { self.groups[0].width } else { 0 };
        Layout {
            kind: Kind::Digits { number },
            area: self.area,
            columns: across,
            rows: down,
            lines,
            header: (hosts, self.rank),
            summary: extras.summary.then_some((x + 1, y)),
            legend_y: extras.legend.then_some(self.area.bottom() - 1),
        }
    }

    /// Pixels: of one pair each, or in the fit zoom of blocks of pairs if there are too many.
    fn pixels(&self) -> Option<Layout> {
        let axes = self.placed.axes;
        let extras = Extras { legend: self.area.height >= 4, summary: false, lines: false, hosts: self.area.width >= 30 };
        let left = self.left(extras) + 1;
        let width = self.area.width.checked_sub(left).filter(|&width| width > 0)?;
        let height = self.area.height.checked_sub(1 + u16::from(extras.legend)).filter(|&height| height > 0)? * 2;
        // A glyph that carries an amount needs a whole row.
        let least_y = if self.painter.fills() { 1 } else { 2 };
        let blocks = |level: usize| self.placed.window.clone().map(|window| blocks_of(axes, level, &window));
        let fits = |level: &usize| {
            let [down, across] = blocks(*level);
            across.len() <= usize::from(width) && down.len() * usize::from(least_y) <= usize::from(height)
        };
        let level = if self.view.zoom == Zoom::Fit { (0..axes.levels()).find(fits)? } else { 0 };
        let [down, across] = blocks(level);
        // Two columns by one row are about square.
        let least_x = if least_y == 2 && across.len() * 2 <= usize::from(width) { 2 } else { 1 };
        let scale = if fits(&level) {
            let most = (usize::from(width / least_x) / across.len()).min(usize::from(height / least_y) / down.len());
            (most as u16).clamp(1, LARGEST_PIXEL)
        } else {
            1
        };
        let (unit_x, unit_y) = (least_x * scale, least_y * scale);
        let (row, column) = self.placed.cursor;
        let (row, column) = (axes.block_of(level, row), axes.block_of(level, column));
        let spans = |start: u16, unit: u16, blocks: Range<usize>| -> Spans {
            let first = blocks.start;
            blocks.map(|at| (start + (at - first) as u16 * unit, unit, axes.span(level, at))).collect()
        };
        Some(Layout {
            kind: Kind::Pixels { level },
            area: self.area,
            columns: spans(self.area.x + left, unit_x, around(column, width / unit_x, &across)?),
            rows: spans((self.area.y + 1) * 2, unit_y, around(row, height / unit_y, &down)?),
            lines: (Vec::new(), Vec::new()),
            header: (if extras.hosts { self.groups[0].width } else { 0 }, self.rank),
            summary: None,
            legend_y: extras.legend.then_some(self.area.bottom() - 1),
        })
    }

    fn left(&self, extras: Extras) -> u16 {
        if extras.hosts && self.groups[0].width > 0 { 1 + self.groups[0].width + 1 + self.rank } else { 1 + self.rank }
    }

    fn pitch(&self, number: u16, gap: u16) -> u16 {
        gap + number + u16::from(!self.painter.fills())
    }

    /// Columns of the summaries of rows.
    #[allow(clippy::unused_self, reason = "stands with the other widths")]
    fn summary(&self, number: u16) -> u16 {
        number.max(5) + 2
    }
}

/// Blocks of a level among places that begin and end with one.
fn blocks_of(axes: &Axes, level: usize, places: &Range<usize>) -> Range<usize> {
    axes.block_of(level, places.start)..axes.block_of(level, places.end.saturating_sub(1)) + 1
}

/// Up to `room` of some blocks with `at` in the middle, or as near to it as the edges allow.
fn around(at: usize, room: u16, all: &Range<usize>) -> Option<Range<usize>> {
    let room = usize::from(room).min(all.len());
    let start = at.saturating_sub(room / 2).clamp(all.start, all.end - room);
    (room > 0).then_some(start..start + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_hosts_keep_their_end_and_lose_their_control_characters() {
        assert_eq!(short("\u{1b}[2Jevil\u{202e}"), "[2Jevil");
        assert_eq!(short("node-7"), "node-7");
        assert_eq!(short("cluster-node-0042"), "…r-node-0042");
        assert_eq!(Span::raw(short("漢漢漢漢漢漢漢9")).width(), 12);
    }
}
