use std::ops::Range;

use super::{Mark, MatrixView};
use crate::matrix::{Axes, Edge};

/// What a view says of ranks, by the places at which they stand; rows first, columns second.
pub(super) struct Placed<'a> {
    pub axes: &'a Axes,
    /// places in sight
    pub window: [Range<usize>; 2],
    /// place of the cursor; beyond all places if there is none
    pub cursor: (usize, usize),
    transpose: bool,
    /// places of lost and of slow ranks, ascending
    marks: [[(Mark, Vec<usize>); 2]; 2],
}

impl<'a> Placed<'a> {
    pub fn of(view: &MatrixView<'a>) -> Self {
        let axes: &Axes = view.grid.axes();
        let (row, column) = view.turn(axes.places(view.cursor));
        let window = match view.window {
            Some(window) => {
                let (row, column) = view.turn((window.senders, window.receivers));
                [axes.span(window.level, row), axes.span(window.level, column)]
            }
            None => [0..axes.len(), 0..axes.len()],
        };
        let marks = [Edge::Senders, Edge::Receivers].map(|edge| {
            let places = |ranks: &[usize]| {
                let mut places: Vec<usize> = ranks.iter().map(|&rank| axes.place(edge, rank)).collect();
                places.sort_unstable();
                places
            };
            let slow = if edge == Edge::Senders { view.slow.0 } else { view.slow.1 };
            [(Mark::Lost, places(view.lost)), (Mark::Slow, places(slow))]
        });
        let marks = if view.transpose {
            let [senders, receivers] = marks;
            [receivers, senders]
        } else {
            marks
        };
        Self { axes, window, cursor: (row, column), transpose: view.transpose, marks }
    }

    /// Whose places are along the rows, or along the columns.
    pub const fn edge(&self, row: bool) -> Edge {
        if row == self.transpose { Edge::Receivers } else { Edge::Senders }
    }

    /// The rank of a row, or of a column.
    pub fn rank(&self, row: bool, place: usize) -> usize {
        self.axes.rank(self.edge(row), place)
    }

    /// What is told of ranks beside their row (or above their column): the worst of it, and the first rank that it is of.
    pub fn mark(&self, places: &Range<usize>, row: bool) -> Option<(Mark, usize)> {
        self.marks[usize::from(!row)].iter().find_map(|(mark, marked)| {
            let first = marked.get(marked.partition_point(|&place| place < places.start)).copied();
            first.filter(|place| places.contains(place)).map(|place| (*mark, self.rank(row, place)))
        })
    }
}
