use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::paint::Painter;
use super::{MatrixView, Zoom};
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

/// First, number and ranks of each block along an edge; rows in half rows of the screen.
pub(super) type Spans = Vec<(u16, u16, Range<usize>)>;

/// Ranks by host: runs of neighbours on the same host.
#[derive(Debug)]
pub(super) struct Groups {
    /// first rank of each run, and the host's name as shown
    pub runs: Vec<(usize, String)>,
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

impl Groups {
    pub(super) fn of(view: &MatrixView<'_>) -> Self {
        let n = view.grid.world();
        let mut runs: Vec<(usize, String)> = Vec::new();
        let mut last: Option<&str> = None;
        for (rank, placement) in view.topology.ranks.iter().enumerate().take(n) {
            let name = view.groups.and_then(|names| names.get(rank)).map_or(placement.host.as_str(), String::as_str);
            if last != Some(name) {
                runs.push((rank, short(name)));
                last = Some(name);
            }
        }
        let width = runs.iter().map(|(_, name)| Span::raw(name.as_str()).width()).max().unwrap_or(0) as u16;
        // Ranks dealt out over hosts one by one would be ruled to pieces.
        let ruled = runs.len() > 1 && runs.len() * 2 <= n;
        Self { runs, width, ruled }
    }

    /// The first run that begins among these ranks.
    pub(super) fn begins_in(&self, ranks: &Range<usize>) -> Option<&(usize, String)> {
        self.runs.get(self.runs.partition_point(|&(first, _)| first < ranks.start)).filter(|(first, _)| ranks.contains(first))
    }

    /// The run that a rank belongs to.
    pub(super) fn run_of(&self, rank: usize) -> Option<&(usize, String)> {
        self.runs.get(self.runs.partition_point(|&(first, _)| first <= rank).checked_sub(1)?)
    }
}

/// A host's name without control characters; of a long one the end, which tells hosts apart.
fn short(host: &str) -> String {
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
    pub(super) fn choose(view: &MatrixView<'_>, painter: &Painter, groups: &Groups, area: Rect) -> Option<Self> {
        if view.grid.world() == 0 {
            return None;
        }
        let planner = Planner { view, painter, groups, area, rank: digits_of(view.grid.world() - 1) };
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
    groups: &'a Groups,
    area: Rect,
    /// digits of the largest rank
    rank: u16,
}

impl Planner<'_> {
    /// All ranks with digits, with as much else as fits.
    fn all_digits(&self) -> Option<Layout> {
        let n = self.view.grid.world();
        let small = u16::try_from(n).ok().filter(|&n| n <= self.area.height && n <= self.area.width)?;
        let gaps = if self.groups.ruled { self.groups.runs.len() as u16 - 1 } else { 0 };
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
                let lines = if extras.lines { gaps } else { 0 };
                let sides = self.left(extras) + 1 + 2 * lines + if summary { self.summary(number) } else { 0 };
                let edges = 1 + lines + u16::from(summary) + u16::from(legend);
                let least = self.pitch(number, gap);
                if sides + small * least <= self.area.width && edges + small <= self.area.height {
                    // What is left over goes to the cells.
                    let high = ((self.area.height - edges) / small).clamp(1, LARGEST_CELL.1);
                    let most = LARGEST_CELL.0.min(high * SQUARE + 4).max(least);
                    let wide = ((self.area.width - sides) / small).clamp(least, most);
                    // Not higher than wide: a row of a terminal is about two columns high.
                    let high = high.min(wide.div_ceil(2));
                    let number = number.min(self.painter.full_width(self.view.grid));
                    let spare = sides + small * wide < self.area.width;
                    return Some(self.digits(extras, Cells { number, wide, high, indent: u16::from(spare) }, 0..n, 0..n));
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
        let (row, column) = self.view.turn(self.view.cursor);
        let rows = around(row, height, self.view.grid.world())?;
        let cells = Cells { number, wide: self.pitch(number, 1), high: 1, indent: 0 };
        Some(self.digits(extras, cells, rows, around(column, width, self.view.grid.world())?))
    }

    fn digits(&self, extras: Extras, cells: Cells, rows: Range<usize>, columns: Range<usize>) -> Layout {
        let Cells { number, wide: pitch, high, indent } = cells;
        let ruled = |rank: usize| rank > 0 && extras.lines && self.groups.ruled && self.groups.begins_in(&(rank..rank + 1)).is_some();
        let mut lines = (Vec::new(), Vec::new());
        let mut x = self.area.x + self.left(extras) + indent;
        let mut across = Spans::new();
        for rank in columns {
            if ruled(rank) {
                lines.0.push(x + 1);
                x += 2;
            }
            across.push((x, pitch, rank..rank + 1));
            x += pitch;
        }
        let mut y = self.area.y + 1;
        let mut down = Spans::new();
        for rank in rows {
            if ruled(rank) {
                lines.1.push(y);
                y += 1;
            }
            down.push((y * 2, 2 * high, rank..rank + 1));
            y += high;
        }
        let hosts = if extras.hosts { self.groups.width } else { 0 };
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
        let n = self.view.grid.world();
        let extras = Extras { legend: self.area.height >= 4, summary: false, lines: false, hosts: self.area.width >= 30 };
        let left = self.left(extras) + 1;
        let width = self.area.width.checked_sub(left).filter(|&width| width > 0)?;
        let height = self.area.height.checked_sub(1 + u16::from(extras.legend)).filter(|&height| height > 0)? * 2;
        // A glyph that carries an amount needs a whole row.
        let least_y = if self.painter.fills() { 1 } else { 2 };
        let fits = |level: &usize| {
            let side = self.view.grid.side(*level);
            side <= usize::from(width) && side * usize::from(least_y) <= usize::from(height)
        };
        let level = if self.view.zoom == Zoom::Fit { (0..self.view.grid.levels()).find(fits)? } else { 0 };
        let side = self.view.grid.side(level);
        // Two columns by one row are about square.
        let least_x = if least_y == 2 && side * 2 <= usize::from(width) { 2 } else { 1 };
        let scale = if level == 0 && fits(&0) {
            let most = usize::from((width / least_x).min(height / least_y)) / n;
            (most as u16).clamp(1, LARGEST_PIXEL)
        } else {
            1
        };
        let (unit_x, unit_y) = (least_x * scale, least_y * scale);
        let (row, column) = self.view.turn(self.view.cursor);
        let spans = |start: u16, unit: u16, blocks: Range<usize>| -> Spans {
            let first = blocks.start;
            blocks.map(|at| (start + (at - first) as u16 * unit, unit, at << level..((at + 1) << level).min(n))).collect()
        };
        Some(Layout {
            kind: Kind::Pixels { level },
            area: self.area,
            columns: spans(self.area.x + left, unit_x, around(column >> level, width / unit_x, side)?),
            rows: spans((self.area.y + 1) * 2, unit_y, around(row >> level, height / unit_y, side)?),
            lines: (Vec::new(), Vec::new()),
            header: (if extras.hosts { self.groups.width } else { 0 }, self.rank),
            summary: None,
            legend_y: extras.legend.then_some(self.area.bottom() - 1),
        })
    }

    fn left(&self, extras: Extras) -> u16 {
        if extras.hosts && self.groups.width > 0 { 1 + self.groups.width + 1 + self.rank } else { 1 + self.rank }
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

/// Up to `room` of `n` blocks with `at` in the middle, or as near to it as the edges allow.
fn around(at: usize, room: u16, n: usize) -> Option<Range<usize>> {
    let room = usize::from(room).min(n);
    let start = at.saturating_sub(room / 2).min(n - room);
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
