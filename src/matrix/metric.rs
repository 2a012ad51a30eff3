use crate::units::format_gbps;

/// What a matrix shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// median bandwidth, bytes per second
    #[default]
    Bandwidth,
    /// median bandwidth over what the hardware between the two should give
    ShareOfExpected,
    /// median time of one message at the smallest measured size, seconds
    SmallTime,
    /// ln(B(i→j)/B(j→i)): 0 where both directions are alike, negative where the cell's own direction is the slower one
    Asymmetry,
    /// bandwidth of `duplex` over that of `peer`: what is left of a direction while the other one is busy too
    DuplexRatio,
    /// half-width of the 95 % interval of the median over the median: how well a cell is known
    Spread,
    /// ln of the bandwidth over that of another session: 0 where nothing changed, negative where it became slower
    Change,
}

/// The unit in which the numbers of a whole matrix are told, so that its heading says it once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// as in a heading: `GB/s`, `µs`; empty for a plain number
    pub name: &'static str,
    /// the metric's own unit in one of these: 1e9, 1e-6
    pub scale: f64,
}

impl Metric {
    /// Every metric, in the order in which a key goes through them.
    pub const ALL: [Self; 7] =
        [Self::Bandwidth, Self::ShareOfExpected, Self::SmallTime, Self::Asymmetry, Self::DuplexRatio, Self::Spread, Self::Change];

    /// The name used in files and in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::ShareOfExpected => "share of expected",
            Self::SmallTime => "small-message time",
            Self::Asymmetry => "asymmetry",
            Self::DuplexRatio => "duplex ratio",
            Self::Spread => "spread",
            Self::Change => "change",
        }
    }

    /// A heading with the unit, for values that reach up to `largest`.
    pub fn title(self, largest: f64) -> String {
        match self {
            Self::Bandwidth => format!("bandwidth, {}", self.unit(largest).name),
            Self::ShareOfExpected => "share of expected".to_owned(),
            Self::SmallTime => format!("small-message time, {}", self.unit(largest).name),
            Self::Asymmetry => "asymmetry, ln(B(i→j)/B(j→i))".to_owned(),
            Self::DuplexRatio => "duplex ratio, both ways / alone".to_owned(),
            Self::Spread => "spread, ± % of the median (95 %)".to_owned(),
            Self::Change => "change of bandwidth, %".to_owned(),
        }
    }

    /// The metric after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Bandwidth => Self::ShareOfExpected,
            Self::ShareOfExpected => Self::SmallTime,
            Self::SmallTime => Self::Asymmetry,
            Self::Asymmetry => Self::DuplexRatio,
            Self::DuplexRatio => Self::Spread,
            Self::Spread => Self::Change,
            Self::Change => Self::Bandwidth,
        }
    }

    /// True if values are rates, whose mean is harmonic (Hoefler & Belli, SC'15, rule 3).
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Bandwidth)
    }

    /// True if values are ratios, whose mean is geometric (rule 4 there).
    pub const fn is_ratio(self) -> bool {
        matches!(self, Self::DuplexRatio | Self::ShareOfExpected)
    }

    /// True if values lie on both sides of 0, which is where nothing is wrong.
    pub const fn has_sides(self) -> bool {
        matches!(self, Self::Asymmetry | Self::Change)
    }

    /// True if a value can be shown: finite, and above zero where the metric has no other meaning.
    pub fn accepts(self, value: f64) -> bool {
        value.is_finite() && (self.has_sides() || value > 0.0 || self == Self::Spread && value >= 0.0)
    }

    /// How bad a value is: more is worse. The worst is the lowest bandwidth, the longest time, the largest |asymmetry|, what
    /// became slowest.
    pub fn badness(self, value: f64) -> f64 {
        match self {
            Self::Bandwidth | Self::ShareOfExpected | Self::DuplexRatio | Self::Change => -value,
            Self::SmallTime | Self::Spread => value,
            Self::Asymmetry => value.abs(),
        }
    }

    /// The unit for values that reach up to `largest`.
    pub fn unit(self, largest: f64) -> Unit {
        match self {
            // A matrix of small numbers reads badly; where any value reaches 1 GB/s, that is the unit.
            Self::Bandwidth if largest < 1e9 => Unit { name: "MB/s", scale: 1e6 },
            Self::Bandwidth => Unit { name: "GB/s", scale: 1e9 },
            Self::SmallTime if largest < 1e-6 => Unit { name: "ns", scale: 1e-9 },
            Self::SmallTime if largest < 1e-2 || !largest.is_finite() => Unit { name: "µs", scale: 1e-6 },
            Self::SmallTime if largest < 10.0 => Unit { name: "ms", scale: 1e-3 },
            Self::SmallTime => Unit { name: "s", scale: 1.0 },
            Self::ShareOfExpected | Self::Asymmetry | Self::DuplexRatio => Unit { name: "", scale: 1.0 },
            Self::Spread => Unit { name: "%", scale: 0.01 },
            // Told in percent, though no factor makes them of a logarithm.
            Self::Change => Unit { name: "%", scale: 1.0 },
        }
    }

    /// A value as digits, without its unit: `53.9`, `12.3`, `-1.92`.
    pub fn format(self, value: f64, unit: Unit) -> String {
        match self {
            Self::Bandwidth => format_gbps(value / unit.scale * 1e9),
            Self::Asymmetry => format!("{value:+.2}"),
            Self::Change => match value.exp_m1() * 100.0 {
                v if v.abs() < 0.05 => "0.0".to_owned(),
                v if v.abs() < 9.95 => format!("{v:+.1}"),
                v => format!("{v:+.0}"),
            },
            Self::ShareOfExpected | Self::DuplexRatio => format!("{value:.2}"),
            Self::SmallTime | Self::Spread => {
                let value = value / unit.scale;
                match value {
                    v if v >= 99.95 => format!("{v:.0}"),
                    v if v >= 9.995 => format!("{v:.1}"),
                    v => format!("{v:.2}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_comes_round() {
        let mut metric = Metric::Bandwidth;
        for expected in Metric::ALL.into_iter().skip(1).chain([Metric::Bandwidth]) {
            metric = metric.next();
            assert_eq!(metric, expected);
        }
    }

    #[test]
    fn digits_are_in_the_unit_of_the_heading() {
        let unit = Metric::SmallTime.unit(3e-5);
        assert_eq!(unit.name, "µs");
        for (value, text) in [(8.5e-7, "0.85"), (1.23e-5, "12.3"), (4.56e-3, "4560")] {
            assert_eq!(Metric::SmallTime.format(value, unit), text);
        }
        assert_eq!(Metric::Bandwidth.format(53.9e9, Metric::Bandwidth.unit(1e9)), "53.9");
        assert_eq!(Metric::Bandwidth.format(35.9e6, Metric::Bandwidth.unit(95.7e6)), "35.9");
        assert_eq!((Metric::Bandwidth.title(95.7e6).as_str(), Metric::Bandwidth.unit(f64::NAN).name), ("bandwidth, MB/s", "GB/s"));
        assert_eq!(Metric::Asymmetry.format(-1.918, Metric::Asymmetry.unit(1.0)), "-1.92");
        assert_eq!(Metric::SmallTime.title(5e-4), "small-message time, µs");
        assert_eq!(Metric::DuplexRatio.format(0.8345, Metric::DuplexRatio.unit(1.0)), "0.83");
        let percent = Metric::Spread.unit(0.3);
        assert_eq!((Metric::Spread.format(0.0, percent).as_str(), Metric::Spread.format(0.123, percent).as_str()), ("0.00", "12.3"));
    }

    #[test]
    fn a_change_is_told_in_percent_with_its_sign() {
        let told = |ratio: f64| Metric::Change.format(ratio.ln(), Metric::Change.unit(1.0));
        assert_eq!([told(0.54), told(0.9), told(1.0), told(1.034), told(2.0)], ["-46", "-10", "0.0", "+3.4", "+100"]);
        assert!(Metric::Change.accepts(-0.6) && Metric::Change.badness(-0.6) > Metric::Change.badness(0.6));
    }

    #[test]
    fn a_spread_of_nothing_is_a_value_and_a_ratio_of_nothing_is_none() {
        assert!(Metric::Spread.accepts(0.0) && !Metric::Spread.accepts(-0.1) && !Metric::DuplexRatio.accepts(0.0));
        assert!(
            Metric::DuplexRatio.badness(0.5) > Metric::DuplexRatio.badness(0.9)
                && Metric::Spread.badness(0.5) > Metric::Spread.badness(0.1)
        );
    }
}
