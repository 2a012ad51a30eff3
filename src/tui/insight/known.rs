use crate::topology::PathClass;

/// Bandwidth and path class of every pair that has one: dense, since of many ranks nearly all are measured, and a table of keys
/// would take three times the memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// `[from][to]`, bytes per second; NaN where nothing is known; no longer than they need to be
    rates: Vec<Vec<f64>>,
    classes: Vec<Vec<PathClass>>,
    count: usize,
}

impl Known {
    pub fn get(&self, (from, to): (usize, usize)) -> Option<(f64, PathClass)> {
        Some((self.rate(from, to)?, *self.classes.get(from)?.get(to)?))
    }

    /// Bytes per second.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        self.rates.get(from)?.get(to).copied().filter(|rate| !rate.is_nan())
    }

    /// Put what is known of a pair now; the rate that was known before comes back.
    pub fn set(&mut self, from: usize, to: usize, value: Option<(f64, PathClass)>) -> Option<f64> {
        let old = self.rate(from, to);
        if value.is_none() && old.is_none() {
            return None;
        }
        if self.rates.len() <= from {
            self.rates.resize_with(from + 1, Vec::new);
            self.classes.resize_with(from + 1, Vec::new);
        }
        let (rates, classes) = (&mut self.rates[from], &mut self.classes[from]);
        if rates.len() <= to {
            rates.resize(to + 1, f64::NAN);
            classes.resize(to + 1, PathClass::Local);
        }
        self.count = self.count + usize::from(value.is_some()) - usize::from(old.is_some());
        (rates[to], classes[to]) = value.unwrap_or((f64::NAN, PathClass::Local));
        old
    }

    /// Pairs of which something is known.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Sender, receiver and bytes per second of each.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let rows = self.rates.iter().enumerate();
        rows.flat_map(|(from, row)| row.iter().enumerate().map(move |(to, &rate)| (from, to, rate))).filter(|(.., rate)| !rate.is_nan())
    }
}
