//! What was measured against what the hops of a way say of themselves.

use super::route::{Flag, Hop, Route};

/// A rate this much above what a link says it is trained to is no noise.
const BEYOND: f64 = 1.02;
/// Hops whose limits are nearer to each other than this are alike.
const ALIKE: f64 = 0.99;

impl Hop {
    /// True if more went over it than what it says it is trained to now: it was at rest when asked, or it lies.
    pub fn overruled(&self, measured: Option<f64>) -> bool {
        matches!((self.now, measured), (Some(now), Some(measured)) if measured > now * BEYOND)
    }

    /// What it can be expected to let through as it is, bytes per second: less than [`Hop::expected`] where it is trained to less
    /// than it could, unless it may be at rest or `measured` says otherwise.
    pub fn limit(&self, measured: Option<f64>) -> Option<f64> {
        if self.flag == Some(Flag::Down) {
            return Some(0.0);
        }
        let share = match (self.now, self.nominal) {
            (Some(now), Some(nominal)) if self.flag == Some(Flag::Narrow) && !self.overruled(measured) => now / nominal,
            _ => 1.0,
        };
        self.expected.map(|expected| expected * share)
    }
}

impl Route {
    /// The hop that lets least through, where hops differ.
    pub fn slowest(&self, measured: Option<f64>) -> Option<usize> {
        let limits = || self.hops.iter().enumerate().filter_map(|(at, hop)| Some((at, hop.limit(measured)?)));
        let (at, least) = limits().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = limits().map(|(_, limit)| limit).fold(0.0, f64::max);
        let one = limits().count() == 1 && self.hops[at].flag.is_some();
        (one || least < most * ALIKE).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hardware::Hardware;
    use super::super::link::Doubt;
    use super::super::route::HopKind;
    use super::*;

    fn hop(nominal: f64, now: f64, flag: Option<Flag>) -> Hop {
        let new = Hop::new(HopKind::Pcie, &Hardware::default(), String::new());
        Hop { nominal: Some(nominal), now: Some(now), expected: Some(nominal * 0.9), flag, ..new }
    }

    fn slowest(hops: &[Hop], measured: Option<f64>) -> Option<usize> {
        Route { hops: hops.to_vec(), ..Route::default() }.slowest(measured)
    }

    #[test]
    fn the_slowest_hop_is_the_narrow_one_until_more_went_over_it() {
        let hops = [hop(60.0, 60.0, None), hop(60.0, 30.0, Some(Flag::Narrow)), hop(50.0, 50.0, None)];
        assert_eq!((slowest(&hops, None), slowest(&hops, Some(27.0))), (Some(1), Some(1)));
        assert!(hops[1].overruled(Some(44.0)) && !hops[1].overruled(Some(30.3)) && !hops[1].overruled(None));
        assert_eq!(slowest(&hops, Some(44.0)), Some(2), "then it is the one that can least");
    }

    #[test]
    fn a_link_at_rest_limits_nothing_and_one_that_is_down_everything() {
        let rest = hop(60.0, 4.0, Some(Flag::Doubt(Doubt::Resting)));
        assert_eq!(slowest(&[rest.clone(), hop(60.0, 60.0, None)], None), None);
        assert!(rest.overruled(Some(52.0)));
        assert_eq!(slowest(&[rest, hop(60.0, 60.0, Some(Flag::Down))], None), Some(1));
        assert_eq!(slowest(&[], None), None);
    }

    #[test]
    fn of_one_hop_only_a_faulty_one_is_named() {
        assert_eq!(slowest(&[hop(60.0, 60.0, None)], None), None);
        assert_eq!(slowest(&[hop(60.0, 30.0, Some(Flag::Narrow))], None), Some(0));
    }
}
