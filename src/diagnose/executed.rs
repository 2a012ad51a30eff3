//! Plans that were run: slower than foreseen, and runs that were not whole.

use super::{Fact, Finding, Rule, Severity, Shape, View};
use crate::units::format_seconds;

/// A plan that was run, against what was foreseen for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Executed {
    pub name: String,
    /// how the bytes went
    pub mover: String,
    /// timed runs
    pub runs: usize,
    /// median of them, what was foreseen, and the slower end of its interval; seconds
    pub seconds: f64,
    pub foreseen: f64,
    pub high: f64,
    /// the stage that took longest beyond what was foreseen: name, seconds of its own, and foreseen
    pub stage: (String, f64, f64),
    /// the busiest resource of that stage: name, seconds of load that were foreseen, when the last of its flows was done
    pub resource: Option<(String, f64, f64)>,
    /// its pairs there, the latest first
    pub pairs: Vec<(usize, usize)>,
    /// what kept it from being whole; empty if nothing did
    pub failed: String,
}

pub const RULE: Rule = Rule {
    name: "execution",
    summary: "a plan that took longer than its predicted interval by more than 15 %, or that was not run whole",
    check,
};

/// Slower than the interval by this share of its end: runs on a quiet machine differ by less.
pub const MARGIN: f64 = 0.15;
/// Twice what was foreseen decides what a job takes.
const TWICE: f64 = 2.0;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    view.measured.executed.iter().filter_map(finding).collect()
}

fn finding(of: &Executed) -> Option<Finding> {
    let fact = |say: String, pairs: &[(usize, usize)]| Fact { say, pairs: pairs.to_vec(), together: Vec::new() };
    if !of.failed.is_empty() {
        let say = format!("the run of {} failed: {}", of.name, of.failed);
        return Some(Finding {
            id: format!("execution {} failed", of.name),
            rule: RULE.name,
            severity: Severity::Problem,
            title: say.clone(),
            amount: "failed".to_owned(),
            weight: 1.0,
            shape: Shape::Other { say },
            facts: vec![fact(format!("{} timed runs by {} were whole before", of.runs, of.mover), &[])],
            suspects: Vec::new(),
            next: None,
            told: Vec::new(),
            cells: Vec::new(),
            hop: None,
        });
    }
    let ratio = of.seconds / of.foreseen;
    if !(of.seconds > of.high * (1.0 + MARGIN) && ratio.is_finite()) {
        return None;
    }
    let (measured, foreseen, high) = (format_seconds(of.seconds), format_seconds(of.foreseen), format_seconds(of.high));
    let mut facts =
        vec![fact(format!("{measured} in the middle of {} runs by {}; {foreseen}, at most {high}, was foreseen", of.runs, of.mover), &[])];
    let (stage, took, expected) = &of.stage;
    let lost = format!("{stage}: {} instead of {}", format_seconds(*took), format_seconds(*expected));
    facts.push(fact(format!("most was lost in {lost}"), &of.pairs));
    if let Some((name, busy, last)) = &of.resource {
        let say = format!(
            "its busiest resource, {name}: {} of load; the last of its flows was done after {}",
            format_seconds(*busy),
            format_seconds(*last)
        );
        facts.push(fact(say, &of.pairs));
    }
    facts.push(fact(
        "to tell whether that is there now: sweep these pairs again, together as the plan has them (--patterns custom), and run it again"
            .to_owned(),
        &of.pairs,
    ));
    let at = of.resource.as_ref().map_or_else(String::new, |(name, ..)| name.clone());
    Some(Finding {
        id: format!("execution {}", of.name),
        rule: RULE.name,
        severity: if ratio >= TWICE { Severity::Problem } else { Severity::Warning },
        title: format!("{} takes {measured}, not the {foreseen} foreseen; most is lost in {stage}", of.name),
        amount: format!("{ratio:.2} ×"),
        weight: ratio.ln(),
        shape: Shape::SlowExecution { name: of.name.clone(), ratio, stage: stage.clone(), resource: at },
        facts,
        suspects: Vec::new(),
        next: None,
        told: Vec::new(),
        cells: of.pairs.clone(),
        hop: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{diagnose, fixture};

    fn executed(seconds: f64, failed: &str) -> Vec<Finding> {
        let mut measured = fixture::measured(2, 1, 0, |from, to| (from != to).then(|| fixture::gives(10.0)));
        measured.executed = vec![Executed {
            name: "relay".to_owned(),
            mover: "mpi_put".to_owned(),
            runs: 5,
            seconds,
            foreseen: 1.0,
            high: 1.1,
            stage: ("inside hosts".to_owned(), seconds - 0.5, 0.5),
            resource: Some(("port of node1".to_owned(), 0.4, seconds)),
            pairs: vec![(0, 1)],
            failed: failed.to_owned(),
        }];
        diagnose(&measured).findings.into_iter().filter(|finding| finding.rule == RULE.name).collect()
    }

    #[test]
    fn a_plan_beyond_its_interval_and_margin_is_told_with_stage_resource_and_pairs() {
        assert_eq!(executed(1.26, "").len(), 0, "1.1 s and 15 % are 1.265 s");
        let findings = executed(1.5, "");
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!((finding.severity, finding.amount.as_str(), &finding.cells[..]), (Severity::Warning, "1.50 ×", &[(0, 1)][..]));
        let said: String = finding.facts.iter().map(|fact| fact.say.as_str()).collect::<Vec<_>>().join("\n");
        assert!(finding.title.contains("inside hosts") && said.contains("port of node1") && said.contains("mpi_put"), "{said}");
        assert!(!finding.suspects.is_empty());
        assert_eq!(executed(2.5, "")[0].severity, Severity::Problem);
    }

    #[test]
    fn a_run_that_was_not_whole_is_a_problem() {
        let findings = executed(0.0, "rank 1: flow 0 (0→1): byte 7 is not what was to be sent");
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert!(finding.severity == Severity::Problem && finding.title.contains("byte 7"), "{finding:?}");
    }
}
