use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::diagnose::compare::{Changes, compare_diagnosed};
use crate::diagnose::{Diagnosis, Finding, Measured, Severity, Shape, Ways, diagnose};
use crate::session::{Model, measured};
use crate::topology::{Efficiency, Unit};

/// How much a diagnosis rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// pairs one way alone and both ways at once, and copies, that have a rate
    pub pairs: usize,
    pub duplex: usize,
    pub copies: usize,
    /// fans, relays and sets
    pub together: usize,
    /// sizes measured, and the one at which rates compare, bytes
    pub sizes: usize,
    pub bytes: u64,
    /// of the pairs, those with too few repeats for an interval
    pub unsure: usize,
}

/// A diagnosis, and what the screen looks up in it.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub diagnosis: Diagnosis,
    pub seen: Seen,
    /// the first finding that each cell belongs to
    cells: HashMap<(usize, usize), usize>,
    /// cells of each finding, ascending
    lit: Vec<Vec<(usize, usize)>>,
    /// ranks found to send slowly, and to receive slowly, ascending
    pub slow: (Vec<usize>, Vec<usize>),
    /// what changed since another session, or why that cannot be told; `None` without one
    pub changes: Option<Result<Arc<Changes>, String>>,
    /// cells of each change, ascending
    changed: Vec<Vec<(usize, usize)>>,
}

/// A session that what is measured is compared with.
pub struct Other {
    pub name: String,
    model: Model,
    /// as rules look at it, made once
    seen: OnceLock<(Measured, Diagnosis)>,
}

impl Other {
    pub fn new(model: Model) -> Self {
        Self { name: crate::units::plain(&model.header.name), model, seen: OnceLock::new() }
    }

    fn seen(&self, efficiency: &Efficiency) -> &(Measured, Diagnosis) {
        self.seen.get_or_init(|| {
            let measured = measured(&self.model, efficiency);
            let diagnosis = diagnose(&measured);
            (measured, diagnosis)
        })
    }
}

impl Told {
    /// Diagnose what was measured, and compare it with another session.
    pub fn of(measured: &Measured, other: Option<&Other>, efficiency: &Efficiency) -> Self {
        let rated = |pairs: &crate::diagnose::Pairs| pairs.iter().filter(|pair| pair.rate.is_finite()).count();
        let seen = Seen {
            pairs: rated(&measured.peer),
            duplex: rated(&measured.duplex),
            copies: rated(&measured.local),
            together: measured.together.len(),
            sizes: measured.sizes.len(),
            bytes: measured.bytes,
            unsure: measured.peer.iter().filter(|pair| pair.rate.is_finite() && pair.interval.is_none()).count(),
        };
        let diagnosis = diagnose(measured);
        let changes = other.map(|other| {
            let (before, known) = other.seen(efficiency);
            compare_diagnosed((before, known), (measured, &diagnosis)).map(Arc::new).map_err(|error| error.to_string())
        });
        Self::with(diagnosis, seen, |unit| measured.units.members(unit)).beside(changes)
    }

    /// `members` are the ranks of a group.
    pub fn with<'a>(diagnosis: Diagnosis, seen: Seen, members: impl Fn(Unit) -> &'a [usize]) -> Self {
        let mut cells = HashMap::new();
        let mut lit = Vec::with_capacity(diagnosis.findings.len());
        let mut slow = (Vec::new(), Vec::new());
        for (at, finding) in diagnosis.findings.iter().enumerate() {
            for &cell in &finding.cells {
                cells.entry(cell).or_insert(at);
            }
            let mut own = finding.cells.clone();
            own.sort_unstable();
            lit.push(own);
            if let Shape::SlowUnit { unit, ways, .. } = finding.shape
                && finding.severity >= Severity::Warning
            {
                let ranks = members(unit);
                if ways != Ways::Receives {
                    slow.0.extend_from_slice(ranks);
                }
                if ways != Ways::Sends {
                    slow.1.extend_from_slice(ranks);
                }
            }
        }
        for ranks in [&mut slow.0, &mut slow.1] {
            ranks.sort_unstable();
            ranks.dedup();
        }
        Self { diagnosis, seen, cells, lit, slow, ..Self::default() }
    }

    /// The same beside another session.
    #[must_use]
    pub fn beside(mut self, changes: Option<Result<Arc<Changes>, String>>) -> Self {
        let all = changes.iter().flatten().flat_map(|changes| &changes.changes);
        self.changed = all
            .map(|change| {
                let mut cells = change.cells.clone();
                cells.sort_unstable();
                cells
            })
            .collect();
        Self { changes, ..self }
    }

    /// What changed since another session.
    pub fn changes(&self) -> Option<&Arc<Changes>> {
        self.changes.as_ref()?.as_ref().ok()
    }

    /// The cells of a change, ascending.
    pub fn changed(&self, at: usize) -> &[(usize, usize)] {
        self.changed.get(at).map_or(&[], Vec::as_slice)
    }

    /// The findings, gravest first.
    pub fn findings(&self) -> &[Finding] {
        &self.diagnosis.findings
    }

    /// Findings that a person should act upon.
    pub fn grave(&self) -> usize {
        self.findings().iter().filter(|finding| finding.severity >= Severity::Warning).count()
    }

    /// The first finding that a cell of the matrix belongs to, from 0.
    pub fn at_cell(&self, cell: (usize, usize)) -> Option<(usize, &Finding)> {
        let &at = self.cells.get(&cell)?;
        Some((at, self.findings().get(at)?))
    }

    /// A finding by its place.
    pub fn get(&self, at: usize) -> Option<&Finding> {
        self.findings().get(at)
    }

    /// The cells of a finding, ascending.
    pub fn lit(&self, at: usize) -> &[(usize, usize)] {
        self.lit.get(at).map_or(&[], Vec::as_slice)
    }
}
