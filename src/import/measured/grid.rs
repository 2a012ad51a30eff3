//! Numbers in rows and columns of GPUs, as several tools print them: a header of the columns' numbers, rows that begin with theirs.

use super::dispatch::{MOST_ENDS, MOST_SAMPLES};
use crate::import::Skips;
use crate::import::text::{Line, number};

/// Header and rows.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// number of each column
    pub(super) columns: Vec<usize>,
    /// number of each row, ascending, and its cells, one a column; `None` where the tool put no number
    pub(super) rows: Vec<(usize, Vec<Option<f64>>)>,
    /// lines that it takes
    pub(super) used: usize,
}

/// A cell's number; `Ok(None)` where the tool says that there is none, `Err` for what is no cell.
pub(super) fn cell(text: &str) -> Result<Option<f64>, ()> {
    if matches!(text.to_ascii_lowercase().as_str(), "n/a" | "nan" | "-nan" | "-" | "x") {
        return Ok(None);
    }
    amount(text).map(Some).ok_or(())
}

/// A number as C++ prints it, finite and not negative.
pub(super) fn amount(text: &str) -> Option<f64> {
    let right = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_digit() || b".e+-".contains(&byte));
    text.parse().ok().filter(|value: &f64| right && value.is_finite() && value.is_sign_positive())
}

/// The columns of a header, whose first word may be `corner`; `None` if it is none.
pub(super) fn header(text: &str, corner: Option<&str>) -> Option<Vec<usize>> {
    let mut words = text.split_whitespace();
    if let Some(corner) = corner
        && words.next()? != corner
    {
        return None;
    }
    let columns = words.map(number).collect::<Option<Vec<usize>>>()?;
    // They count from 0 without a gap: so few numbers can never stand for many GPUs.
    (!columns.is_empty() && columns.iter().enumerate().all(|(at, &column)| at == column)).then_some(columns)
}

/// Read a grid whose header is the first of the lines; `None` if it is none. Elided rows and repeated headers are passed over; other
/// lines end it.
pub(super) fn read(lines: &[Line<'_>], corner: Option<&str>, skips: &mut Skips) -> Option<Grid> {
    let first = lines.first()?;
    let columns = header(first.text, corner)?;
    let mut grid = Grid { columns, rows: Vec::new(), used: 1 };
    let n = grid.columns.len();
    if n > MOST_ENDS {
        skips.push(first.number, format!("a header of {n} columns: more than {MOST_ENDS} GPUs"));
        return Some(Grid { used: 1, ..Grid::default() });
    }
    for (at, line) in lines.iter().enumerate().skip(1) {
        let text = line.text.trim();
        if text.is_empty() || matches!(text, "..." | "[...]" | "…" | "<SNIP>") {
            // Some pastes have a blank line after each row; what ends the grid is what comes after.
            continue;
        }
        if header(text, corner).is_some_and(|again| again == grid.columns && (corner.is_some() || n > 1)) {
            grid.used = at + 1;
            continue;
        }
        let mut words = text.split_whitespace();
        let Some(row) = words.next().and_then(number) else { break };
        let Ok(cells) = words.map(cell).collect::<Result<Vec<_>, ()>>() else { break };
        if cells.is_empty() || grid.rows.last().is_some_and(|&(last, _)| row <= last) || row >= n {
            break;
        }
        if (grid.rows.len() + 1).saturating_mul(n) > MOST_SAMPLES {
            skips.push(line.number, format!("more than {MOST_SAMPLES} cells: from here on left out"));
            break;
        }
        grid.used = at + 1;
        if cells.len() == n {
            grid.rows.push((row, cells));
        } else {
            skips.push(line.number, format!("row {row} has {} cells under a header of {n} columns", cells.len()));
        }
    }
    Some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::text::lines;

    fn of(text: &str, corner: Option<&str>) -> (Option<Grid>, Vec<String>) {
        let mut skips = Skips::default();
        let grid = read(&lines(text), corner, &mut skips);
        (grid, skips.sorted().into_iter().map(|skipped| skipped.reason).collect())
    }

    #[test]
    fn rows_are_read_through_elisions_blank_lines_and_repeated_headers() {
        let (grid, skips) = of("   D\\D  0  1\n 0 1.5 N/A\n\n[...]\n   D\\D  0  1\n 1 2e+01 0.00\nDone\n", Some("D\\D"));
        let grid = grid.unwrap();
        assert_eq!(grid.rows, [(0, vec![Some(1.5), None]), (1, vec![Some(20.0), Some(0.0)])]);
        assert_eq!((grid.used, skips.len()), (6, 0));
    }

    #[test]
    fn rows_of_another_length_are_left_out_and_monsters_refused() {
        let (grid, skips) = of("0 1\n0 1 2 3\n1 5 6\n0 1 2\n", None);
        assert_eq!(grid.unwrap().rows, [(1, vec![Some(5.0), Some(6.0)])]);
        assert_eq!(skips, ["row 0 has 3 cells under a header of 2 columns"]);
        let wide: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let (grid, skips) = of(&wide.join(" "), None);
        assert!(grid.unwrap().rows.is_empty());
        assert!(skips[0].contains("100000 columns"), "{skips:?}");
    }

    #[test]
    fn other_lines_are_no_header() {
        for text in ["", "0 0", "1 2", "0 2", "GPU 0 1", "0 1 x", "-1 0"] {
            assert!(header(text, None).is_none(), "{text}");
        }
        assert_eq!(header("GPU 0 1", Some("GPU")), Some(vec![0, 1]));
    }
}
