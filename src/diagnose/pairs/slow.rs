//! Which cells are slow, for all rules that ask where.

use super::SLOW;
use super::cover::Cell;
use super::usual::{Usual, error};
use crate::diagnose::{Silenced, View};

/// So many of a class's ranks must have the same number of slow partners for it to be a matter of how the machine is built.
const REGULAR: f64 = 0.8;

/// So many of its slow cells must be as slow the other way.
const MUTUAL: f64 = 0.95;

/// Every cell that has a rate, by sender, then receiver; slow if it is so by share, beyond chance, not explained by an earlier
/// finding, and not as the machine is built. With it, what was passed over for the last reason.
pub fn cells(view: &View<'_>, usual: &[Usual]) -> (Vec<Cell>, Vec<Silenced>) {
    let measured = view.measured;
    let mut cells: Vec<Cell> = Vec::with_capacity(measured.peer.len());
    for pair in measured.peer.iter().filter(|pair| pair.from != pair.to && pair.rate > 0.0) {
        let Some(usual) = usual.get(usize::from(pair.class)) else { continue };
        let share = pair.rate / usual.value;
        let mut slow = share < SLOW && usual.below(share.ln(), error(pair).unwrap_or(0.0));
        slow = slow && pair.interval.is_none_or(|interval| interval.high < usual.value * (1.0 + SLOW) / 2.0);
        slow = slow && !view.claims.explain(&measured.units, pair.class, pair.from as usize, pair.to as usize, share);
        cells.push(Cell { from: pair.from, to: pair.to, class: pair.class, log: share.ln() as f32, slow });
    }
    let silenced = built(view, usual, &mut cells);
    (cells, silenced)
}

/// How a class's cells are spread over the ranks: all, and slow, of what each sends and receives.
#[derive(Debug, Clone, Default)]
struct Spread {
    sends: Vec<(u32, u32)>,
    receives: Vec<(u32, u32)>,
}

/// The number of slow partners that most ranks have; `None` if no number is that common, or it is none or all of them.
fn regular(counts: &[(u32, u32)]) -> Option<(u32, u32)> {
    let mut present: Vec<(u32, u32)> = counts.iter().copied().filter(|&(all, _)| all > 0).collect();
    present.sort_unstable();
    let (mode, count) = present.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).max_by_key(|&(_, count)| count)?;
    (count as f64 >= REGULAR * present.len() as f64 && mode.1 > 0 && mode.1 < mode.0 && present.len() >= 4).then_some(mode)
}

/// Machines that nobody described in full have classes with two kinds of pairs: near and far racks, one link and four. There
/// each rank has as many of either as any other, and both directions are alike, which no fault is. Of such a class the slower
/// kind is held against itself, and ranks that differ from the others stay suspect.
fn built(view: &View<'_>, usual: &[Usual], cells: &mut [Cell]) -> Vec<Silenced> {
    let world = view.measured.world();
    let mut spreads = vec![Spread::default(); usual.len()];
    let mut slow = vec![0usize; usual.len()];
    for cell in cells.iter() {
        slow[usize::from(cell.class)] += usize::from(cell.slow);
    }
    for cell in cells.iter().filter(|cell| slow[usize::from(cell.class)] > 0) {
        let spread = &mut spreads[usize::from(cell.class)];
        if spread.sends.is_empty() {
            (spread.sends, spread.receives) = (vec![(0, 0); world], vec![(0, 0); world]);
        }
        for count in [&mut spread.sends[cell.from as usize], &mut spread.receives[cell.to as usize]] {
            count.0 += 1;
            count.1 += u32::from(cell.slow);
        }
    }
    let mut silenced = Vec::new();
    for (class, spread) in spreads.iter().enumerate().filter(|&(class, _)| slow[class] > 0) {
        let (Some(sends), Some(receives)) = (regular(&spread.sends), regular(&spread.receives)) else { continue };
        let plain = |cell: &Cell| {
            let of_class = usize::from(cell.class) == class && cell.slow;
            of_class && spread.sends[cell.from as usize] == sends && spread.receives[cell.to as usize] == receives
        };
        let mut logs: Vec<f64> = cells.iter().filter(|cell| plain(cell)).map(|cell| f64::from(cell.log)).collect();
        let level = crate::fit::median(&mut logs);
        let (count, alike) = (logs.len(), logs.iter().filter(|&&log| (log - level).abs() < -SLOW.ln()).count());
        let rows: Vec<usize> = (0..=world).map(|from| cells.partition_point(|cell| (cell.from as usize) < from)).collect();
        let back = |cell: &Cell| {
            let row = &cells[rows[cell.to as usize]..rows[cell.to as usize + 1]];
            row.binary_search_by_key(&cell.from, |back| back.to).is_ok_and(|at| row[at].slow)
        };
        let mutual = cells.iter().filter(|cell| plain(cell) && back(cell)).count();
        if count < 4 || (alike as f64) < MUTUAL * count as f64 || (mutual as f64) < MUTUAL * count as f64 {
            continue;
        }
        let passed: Vec<usize> = (0..cells.len()).filter(|&at| plain(&cells[at]) && f64::from(cells[at].log) - level > SLOW.ln()).collect();
        for &at in &passed {
            cells[at].slow = false;
        }
        let name = view.measured.classes[class].name();
        silenced.push(Silenced {
            rule: super::group::RULE.name,
            say: format!(
                "{} of {} pairs ({name}) give {} of what the others do",
                passed.len(),
                usual[class].count,
                super::words::percent(level.exp())
            ),
            why: format!("every rank has {} such partners, and both directions are alike: as the machine is built", sends.1),
        });
    }
    silenced
}
