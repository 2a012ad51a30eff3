//! A list of causes as it grows.

use crate::diagnose::{Cause, Measured, Suspect, View};

/// Causes worth telling.
const MOST: usize = 6;
/// Weight below which nobody wants to read of a cause.
const LEAST: f64 = 0.15;

pub struct Case<'a> {
    pub view: &'a View<'a>,
    list: Vec<Suspect>,
}

impl<'a> Case<'a> {
    pub const fn new(view: &'a View<'a>) -> Self {
        Self { view, list: Vec::new() }
    }

    pub const fn measured(&self) -> &'a Measured {
        self.view.measured
    }

    /// A cause with what speaks for it and against it; of one that was named before the heavier reason stays.
    pub fn add(&mut self, cause: Cause, weight: f64, because: impl Into<String>, against: impl Into<String>) {
        let against: String = against.into();
        let weight = if against.is_empty() { weight } else { weight / 2.0 };
        let new = Suspect { cause, weight, because: because.into(), against };
        match self.list.iter_mut().find(|known| known.cause == cause) {
            Some(known) if known.weight >= weight => {}
            Some(known) => *known = new,
            None => self.list.push(new),
        }
    }

    pub fn done(mut self) -> Vec<Suspect> {
        self.list.retain(|suspect| suspect.weight >= LEAST);
        self.list.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.cause.cmp(&b.cause)));
        self.list.truncate(MOST);
        self.list
    }
}
