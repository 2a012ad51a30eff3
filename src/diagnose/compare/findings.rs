//! Findings that came and went.

use std::collections::{HashMap, HashSet};

use super::{Change, FindingChange};
use crate::diagnose::{Diagnosis, Finding, Severity, Shape};

/// Findings of warning level and above that only one has. Where ranks are numbered otherwise their names say nothing.
pub(super) fn told(
    old: &Diagnosis,
    new: &Diagnosis,
    ranks: &[Option<usize>],
    changes: &[Change],
    moved_together: &HashSet<usize>,
) -> Vec<FindingChange> {
    if !ranks.iter().enumerate().all(|(rank, before)| before.is_none_or(|before| before == rank)) {
        return Vec::new();
    }
    let cells: HashSet<(usize, usize)> = changes.iter().flat_map(|change| change.cells.iter().copied()).collect();
    let ids = |diagnosis: &'_ Diagnosis| diagnosis.findings.iter().map(|own| (own.id.clone(), own.severity)).collect::<HashMap<_, _>>();
    let (before, after) = (ids(old), ids(new));
    // One that was a note and is a warning now came, too.
    let grave = |finding: &&Finding| finding.severity >= Severity::Warning;
    let other = |known: &HashMap<String, Severity>, finding: &Finding| !known.contains_key(&finding.id);
    let rests_on_change = |finding: &Finding, together: bool| {
        let pairs = finding.cells.iter().chain(finding.facts.iter().flat_map(|fact| &fact.pairs));
        let groups = finding.facts.iter().flat_map(|fact| &fact.together);
        pairs.clone().any(|cell| cells.contains(cell))
            || together && groups.clone().any(|index| moved_together.contains(index))
            || pairs.count() + groups.count() == 0 && of_hardware(&finding.shape)
    };
    let tell = |finding: &Finding, came: bool| FindingChange {
        id: finding.id.clone(),
        title: finding.title.clone(),
        severity: finding.severity,
        came,
        changed: rests_on_change(finding, came),
    };
    let came = new.findings.iter().filter(grave).filter(|own| other(&before, own)).map(|own| tell(own, true));
    let went = old.findings.iter().filter(grave).filter(|own| other(&after, own)).map(|own| tell(own, false));
    came.chain(went).collect()
}

/// True if the hardware says so itself, whatever was measured.
fn of_hardware(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::TrainedDown { .. }
            | Shape::MissingLinks { .. }
            | Shape::LinksUnused { .. }
            | Shape::UnequalPorts { .. }
            | Shape::SharedPort { .. }
            | Shape::Misbound { .. }
            | Shape::BadPort { .. }
            | Shape::Redirected { .. }
    )
}
