//! What was measured -> what is wrong, how sure that is, why it may be so, and the test that decides. No I/O.
//!
//! Four steps, each in a place of its own. Rules ([`rule::RULES`]) look at [`Measured`] and say what they see as [`Shape`]s, in
//! order: what one has explained the later ones pass over ([`Claims`]), so that one fault is one finding. [`suspects`] names the
//! likely causes of a shape with what speaks for and against each. [`next`] chooses the cheapest test that tells the leading ones
//! apart, and takes in what came of tests that were run.

mod cause;
mod claims;
pub mod compare;
mod executed;
mod fans;
mod finding;
#[cfg(test)]
mod fixture;
mod hardware;
mod measured;
pub mod next;
pub mod pairs;
mod rule;
mod suspects;

pub use cause::Cause;
pub use claims::Claims;
pub use compare::{Change, Changes, CompareError, compare, compare_diagnosed};
pub use executed::{Executed, MARGIN};
pub use finding::{Diagnosis, Fact, Finding, Severity, Shape, Silenced, Suspect, Ways};
pub use measured::{AtSize, Measured, PairClass, PairSeen, Pairs, Provenance, Selected};
pub use rule::{RULES, Rule, View};

/// Everything there is to say.
pub fn diagnose(measured: &Measured) -> Diagnosis {
    let identified = measured.identified();
    let mut view = View { measured, identified: &identified, claims: Claims::default(), silenced: Vec::new() };
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend((rule.check)(&mut view));
    }
    for finding in &mut findings {
        finding.suspects = suspects::suspects(&view, &finding.shape);
    }
    let silenced = view.silenced;
    for finding in &mut findings {
        next::settle(measured, &identified, finding);
    }
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.weight.total_cmp(&a.weight)).then_with(|| a.id.cmp(&b.id)));
    Diagnosis { findings, silenced, identified }
}
