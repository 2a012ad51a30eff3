use super::Metric;

/// Count and mean of the known off-diagonal values of a row or a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    /// harmonic for rates, geometric for ratios, arithmetic for others; NaN if nothing is known
    pub mean: f64,
}

/// A sum that values can leave again: compensated (Neumaier), so that they leave nothing behind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    total: f64,
    lost: f64,
    count: usize,
}

impl Sum {
    fn accumulate(&mut self, term: f64) {
        let total = self.total + term;
        self.lost += if self.total.abs() >= term.abs() { (self.total - total) + term } else { (term - total) + self.total };
        self.total = total;
    }

    pub(super) fn add(&mut self, metric: Metric, value: f64) {
        self.accumulate(term(metric, value));
        self.count += 1;
    }

    pub(super) fn remove(&mut self, metric: Metric, value: f64) {
        self.count -= 1;
        if self.count == 0 {
            *self = Self::default();
        } else {
            self.accumulate(-term(metric, value));
        }
    }

    pub(super) fn summary(&self, metric: Metric) -> Summary {
        Summary { count: self.count, mean: mean(metric, self.total + self.lost, self.count) }
    }
}

/// What a value adds to a sum whose mean is wanted.
pub(super) fn term(metric: Metric, value: f64) -> f64 {
    if metric.is_rate() {
        value.recip()
    } else if metric.is_ratio() {
        value.ln()
    } else {
        value
    }
}

/// The mean behind a sum of [`term`]s; NaN for none.
pub(super) fn mean(metric: Metric, sum: f64, count: usize) -> f64 {
    match count {
        0 => f64::NAN,
        n if metric.is_rate() => n as f64 / sum,
        n if metric.is_ratio() => (sum / n as f64).exp(),
        n => sum / n as f64,
    }
}
