use std::ops::Range;

/// The pairs of ranks under a point of the screen, by their places along the edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// places of senders
    pub from: Range<usize>,
    /// places of receivers
    pub to: Range<usize>,
}

/// Which pairs of ranks were drawn where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HitMap {
    /// screen columns, ascending: first, number, places along the row
    pub(super) columns: Vec<(u16, u16, Range<usize>)>,
    /// half rows of the screen (2 · row, and + 1 for the lower half), ascending: first, number, places down the column
    pub(super) rows: Vec<(u16, u16, Range<usize>)>,
    pub(super) transpose: bool,
    pub(super) level: usize,
}

impl HitMap {
    /// The pairs at a cell of the screen; `lower` asks for the lower half of the cell.
    pub fn at(&self, column: u16, row: u16, lower: bool) -> Option<Hit> {
        let along = find(&self.columns, column)?;
        let half = row.checked_mul(2)? + u16::from(lower);
        let down = find(&self.rows, half)?;
        let (from, to) = if self.transpose { (along, down) } else { (down, along) };
        Some(Hit { from, to })
    }

    /// The level of the pyramid whose blocks were drawn: what one press of an arrow moves by.
    pub const fn level(&self) -> usize {
        self.level
    }

    /// Blocks drawn across and down.
    pub fn drawn(&self) -> (usize, usize) {
        (self.columns.len(), self.rows.len())
    }
}

fn find(spans: &[(u16, u16, Range<usize>)], at: u16) -> Option<Range<usize>> {
    let index = spans.partition_point(|&(first, ..)| first <= at).checked_sub(1)?;
    let (first, count, ranks) = spans.get(index)?;
    (at < first + count).then(|| ranks.clone())
}
