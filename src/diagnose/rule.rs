//! The rules, in the order in which they look: what explains most comes first.

use super::{Claims, Finding, Measured, Silenced, executed, fans, hardware, pairs};
use crate::fit::identify::Identified;

/// What a rule sees, and what it may leave for later ones.
#[derive(Debug)]
pub struct View<'a> {
    pub measured: &'a Measured,
    pub identified: &'a Identified,
    /// what earlier rules explained
    pub claims: Claims,
    /// alarms that were not raised, and why
    pub silenced: Vec<Silenced>,
}

/// Check, sentence, summary.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// short and unique: `asymmetry`
    pub name: &'static str,
    /// what it looks for, in one sentence
    pub summary: &'static str,
    pub check: fn(&mut View<'_>) -> Vec<Finding>,
}

/// All of them.
pub const RULES: &[Rule] = &[
    // What does not arrive at all.
    pairs::failed::RULE,
    // What the hardware says, where measurement agrees.
    hardware::TRAINED,
    hardware::MISSING,
    hardware::UNUSED,
    hardware::BAD,
    hardware::UNEQUAL,
    hardware::SHARED,
    hardware::REDIRECT,
    hardware::SEATS,
    hardware::GROUP,
    // What the matrix of pairs shows: whole classes, groups of ranks, single pairs, directions.
    pairs::inverted::RULE,
    pairs::class::RULE,
    pairs::group::RULE,
    pairs::pair::RULE,
    pairs::asymmetry::RULE,
    pairs::latency::RULE,
    // What happens when several run at once.
    fans::COLLAPSE,
    fans::SCALING,
    fans::DUPLEX,
    fans::EXIT,
    fans::HIDDEN,
    // What plans took that were run.
    executed::RULE,
    // How far the measurement itself can be trusted.
    hardware::HELD,
    pairs::nominal::RULE,
    pairs::unsteady::RULE,
    pairs::line::RULE,
];
