//! Noise of a measured time: a factor whose median is 1, so that what the file says stays what a median finds.

use fastrand::Rng;

/// The shape of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// normal
    Normal,
    /// log-normal: skewed to longer times
    Lognormal,
    /// Student's t with three degrees of freedom: now and then far off
    Heavy,
}

impl NoiseKind {
    /// The name used in fabric files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Lognormal => "lognormal",
            Self::Heavy => "heavy",
        }
    }
}

/// Noise with its coefficient of variation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    pub kind: NoiseKind,
    /// standard deviation by mean; for [`NoiseKind::Heavy`] too, whose variance is finite
    pub cv: f64,
}

/// No transfer is faster than this part of its true time, however unlikely that is.
const LEAST: f64 = 0.05;

impl Noise {
    /// A factor to multiply a true time with.
    pub fn factor(&self, rng: &mut Rng) -> f64 {
        let factor = match self.kind {
            NoiseKind::Normal => 1.0 + self.cv * normal(rng),
            NoiseKind::Lognormal => (self.cv.mul_add(self.cv, 1.0).ln().sqrt() * normal(rng)).exp(),
            NoiseKind::Heavy => {
                let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                // t = z / sqrt(χ²/3) has a variance of 3.
                1.0 + self.cv * normal(rng) / squares.max(f64::MIN_POSITIVE).sqrt()
            }
        };
        factor.max(LEAST)
    }
}

/// A standard normal number (Box & Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    // 1 − f64() is never 0.
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(kind: NoiseKind, cv: f64) -> Vec<f64> {
        let mut rng = Rng::with_seed(7);
        let mut factors: Vec<f64> = (0..100_001).map(|_| Noise { kind, cv }.factor(&mut rng)).collect();
        factors.sort_by(f64::total_cmp);
        factors
    }

    #[test]
    fn the_median_is_one_and_the_spread_is_what_was_asked() {
        for kind in [NoiseKind::Normal, NoiseKind::Lognormal, NoiseKind::Heavy] {
            let factors = sorted(kind, 0.03);
            assert!((factors[50_000] - 1.0).abs() < 5e-4, "{kind:?} {}", factors[50_000]);
            let mean = factors.iter().sum::<f64>() / factors.len() as f64;
            let deviation = (factors.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / factors.len() as f64).sqrt();
            assert!((deviation / mean - 0.03).abs() < 0.003, "{kind:?} {}", deviation / mean);
        }
    }

    #[test]
    fn only_the_heavy_tail_is_heavy_and_nothing_takes_no_time() {
        let far = |kind| sorted(kind, 0.03).iter().filter(|&&f| (f - 1.0).abs() > 0.15).count();
        assert!(far(NoiseKind::Normal) <= 2);
        assert!(far(NoiseKind::Heavy) > 100);
        assert!(sorted(NoiseKind::Heavy, 0.5)[0] >= LEAST);
    }
}
