//! What the sweep in the form would take, found when the form or the rates have changed: a large world has a million targets.

use super::draw::guess;
use super::form::{Form, FormError};
use super::view::View;
use crate::session::Model;
use crate::sweep::{Estimate, SweepSettings, estimate};
use crate::topology::PathClass;

/// The form's settings, and what they would take.
#[derive(Debug, Clone)]
pub struct Expected {
    pub settings: Result<SweepSettings, FormError>,
    /// `None` where the settings are wrong
    pub estimate: Option<Estimate>,
    /// size of each buffer, bytes
    pub arena: u64,
    rates: Rates,
}

type Rates = [Option<f64>; 3];

impl Expected {
    /// For the form as it stands.
    pub fn of(form: &Form, model: &Model, view: &View) -> Self {
        Self::with(form.settings(model.world()), model, rates(view))
    }

    fn with(settings: Result<SweepSettings, FormError>, model: &Model, rates: Rates) -> Self {
        let topology = &model.header.topology;
        let rate = |class| CLASSES.iter().position(|known| *known == class).and_then(|at| rates[at]).unwrap_or_else(|| guess(class));
        let estimate = settings.as_ref().ok().map(|settings| estimate(settings, topology, rate));
        let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
        let arena = settings.as_ref().map_or(0, |settings| settings.arena_bytes(cache));
        Self { settings, estimate, arena, rates }
    }

    /// Bring it up to date; while a sweep runs, only when the form has changed.
    pub fn settle(&mut self, form: &Form, model: &Model, view: &View, running: bool) {
        let settings = form.settings(model.world());
        let rates = if running { self.rates } else { rates(view) };
        if settings != self.settings || rates != self.rates {
            *self = Self::with(settings, model, rates);
        }
    }
}

const CLASSES: [PathClass; 3] = [PathClass::Local, PathClass::IntraNode, PathClass::InterNode];

fn rates(view: &View) -> Rates {
    CLASSES.map(|class| view.typical(class))
}
