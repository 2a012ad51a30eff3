use std::collections::HashMap;

use crate::diagnose::{Diagnosis, Finding, Measured, Severity, Shape, Ways, diagnose};
use crate::topology::Unit;

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
}

impl Told {
    /// Diagnose what was measured.
    pub fn of(measured: &Measured) -> Self {
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
        let members = |unit| measured.units.members(unit);
        Self::with(diagnose(measured), seen, members)
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
        Self { diagnosis, seen, cells, lit, slow }
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
