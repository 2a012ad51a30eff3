use super::Metric;

/// Below this ratio of its ends a domain is widened: it would paint noise in all colours.
const LEAST_RATIO: f64 = 1.1;

/// How far beyond its percentile the bad end may reach: what is slow must not look like what is merely slower than the rest,
/// and one value near 0 must not take all colours.
const REACH: f64 = 4.0;

/// Below this number nothing is clipped: each value is worth its own colour, and one slow link may be all there is to see.
const ENOUGH: usize = 100;

/// Spreads up to this one are painted as good: the interval that sweeps stop at.
const QUIET_SPREAD: f64 = 0.05;

/// How a domain's values are spread over the colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// evenly from `lo` to `hi`
    Linear,
    /// evenly in the logarithm
    Log,
    /// from `-hi` over 0 to `hi`
    Symmetric,
}

/// The values between which colours are spread; what lies outside is clipped and the legend says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    pub lo: f64,
    pub hi: f64,
    pub scale: Scale,
}

impl Domain {
    /// From the 2nd to the 98th percentile of `values`, which are reordered; `None` if there are none. The bad end goes on to
    /// the worst value, but not beyond 4 times its percentile. Fewer than 100 values reach from end to end. A share of what is
    /// expected has a scale of its own, 0 to 1: its colours mean the same on every machine.
    pub fn robust(metric: Metric, values: &mut [f64]) -> Option<Self> {
        if metric == Metric::ShareOfExpected {
            return (!values.is_empty()).then_some(Self { lo: 0.0, hi: 1.0, scale: Scale::Linear });
        }
        if metric.has_sides() {
            for value in values.iter_mut() {
                *value = value.abs();
            }
            let limit = quantile(values, 0.98)?.max(LEAST_RATIO.ln());
            return Some(Self { lo: -limit, hi: limit, scale: Scale::Symmetric });
        }
        if metric == Metric::Spread {
            let hi = quantile(values, 0.98)?;
            let worst = values.iter().copied().fold(hi, f64::max).min(hi * REACH);
            return Some(Self { lo: 0.0, hi: worst.max(QUIET_SPREAD), scale: Scale::Linear });
        }
        let (lo, hi) = (quantile(values, 0.02)?, quantile(values, 0.98)?);
        // Widened away from the good end, so that a quiet matrix is bright all over.
        if metric == Metric::SmallTime {
            let worst = values.iter().copied().fold(hi, f64::max).min(hi * REACH);
            Some(Self { lo, hi: worst.max(lo * LEAST_RATIO), scale: Scale::Log })
        } else {
            let worst = values.iter().copied().fold(lo, f64::min).max(lo / REACH);
            Some(Self { lo: worst.min(hi / LEAST_RATIO), hi, scale: Scale::Linear })
        }
    }

    /// Where `value` lies: 0 to 1, or -1 to 1 if symmetric; clipped.
    pub fn position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Symmetric => (value / self.hi).clamp(-1.0, 1.0),
            Scale::Linear => ((value - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0),
            Scale::Log => ((value / self.lo).ln() / (self.hi / self.lo).ln()).clamp(0.0, 1.0),
        }
    }

    /// The value at a position: the inverse of [`Self::position`] within the domain.
    pub fn value(&self, position: f64) -> f64 {
        match self.scale {
            Scale::Symmetric => position * self.hi,
            Scale::Linear => self.lo + position * (self.hi - self.lo),
            Scale::Log => self.lo * (self.hi / self.lo).powf(position),
        }
    }
}

/// The value at `share` of the sorted values (nearest rank); of few values the first or the last.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let share = if values.len() < ENOUGH { share.round() } else { share };
    let at = (share * last as f64).round() as usize;
    Some(*values.select_nth_unstable_by(at.min(last), f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_stretch_the_colours() {
        let mut values: Vec<f64> = (0..200).map(|i| 10e9 + f64::from(i) * 1e8).collect();
        values[7] = 1.0;
        values[8] = 1e15;
        let domain = Domain::robust(Metric::Bandwidth, &mut values).unwrap();
        assert!(domain.lo >= 2.5e9 && domain.hi <= 30e9, "{domain:?}");
        assert!(domain.position(1.0).abs() < 1e-12 && (domain.position(1e15) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_slow_value_among_many_has_a_colour_of_its_own() {
        let mut values: Vec<f64> = (0..200).map(|i| if i % 5 == 0 { 50e9 } else { 12e9 }).collect();
        values[7] = 4e9;
        let domain = Domain::robust(Metric::Bandwidth, &mut values).unwrap();
        assert!(domain.position(4e9).abs() < 1e-12 && domain.position(12e9) > 0.15, "{domain:?}");
        let mut times: Vec<f64> = vec![2e-6; 200];
        times[7] = 7e-6;
        let domain = Domain::robust(Metric::SmallTime, &mut times).unwrap();
        assert!((domain.position(7e-6) - 1.0).abs() < 1e-9 && domain.position(2e-6) < 0.1, "{domain:?}");
    }

    #[test]
    fn few_values_reach_to_both_ends() {
        let mut values: Vec<f64> = (0..56).map(|i| 50e9 + f64::from(i) * 1e8).collect();
        values[30] = 3e9;
        let domain = Domain::robust(Metric::Bandwidth, &mut values).unwrap();
        assert_eq!((domain.lo, domain.hi), (3e9, 55.5e9));
        assert_eq!(Domain::robust(Metric::Bandwidth, &mut []), None);
    }

    #[test]
    fn asymmetry_is_centred_and_time_is_logarithmic() {
        let domain = Domain::robust(Metric::Asymmetry, &mut [-1.5, 1.5, 0.1, -0.1]).unwrap();
        assert_eq!((domain.lo, domain.hi, domain.position(0.0)), (-1.5, 1.5, 0.0));
        let domain = Domain::robust(Metric::SmallTime, &mut [1e-6, 1e-4]).unwrap();
        assert!((domain.position(1e-5) - 0.5).abs() < 1e-9);
        assert!((domain.value(0.5) - 1e-5).abs() < 1e-12);
    }

    #[test]
    fn a_share_of_what_is_expected_has_the_same_colours_everywhere() {
        for mut values in [vec![0.98, 0.99], vec![0.1; 300], vec![13.0]] {
            let domain = Domain::robust(Metric::ShareOfExpected, &mut values).unwrap();
            assert_eq!((domain.lo, domain.hi, domain.position(0.5), domain.position(1.3)), (0.0, 1.0, 0.5, 1.0));
        }
        assert_eq!(Domain::robust(Metric::ShareOfExpected, &mut []), None);
    }

    #[test]
    fn noise_is_not_painted_in_all_colours() {
        let domain = Domain::robust(Metric::Bandwidth, &mut [10.0e9, 10.1e9]).unwrap();
        assert!(domain.position(10.0e9) > 0.85, "{domain:?}");
        let domain = Domain::robust(Metric::Asymmetry, &mut [0.01, -0.01]).unwrap();
        assert!(domain.position(0.01) < 0.15);
        let domain = Domain::robust(Metric::SmallTime, &mut [1e-6]).unwrap();
        assert!(domain.position(1e-6).abs() < 1e-9);
        let domain = Domain::robust(Metric::Spread, &mut [0.0, 0.004]).unwrap();
        assert!(domain.position(0.004) < 0.1 && domain.position(0.0).abs() < 1e-9, "{domain:?}");
        let domain = Domain::robust(Metric::DuplexRatio, &mut [0.99, 1.0]).unwrap();
        assert!(domain.position(0.99) > 0.85, "{domain:?}");
    }
}
