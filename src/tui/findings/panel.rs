use super::{Told, direction, mark};
use crate::matrix::Metric;
use crate::session::Command;
use crate::tui::draw::HitMap;
use crate::tui::feed::Mode;
use crate::tui::keys::Action;
use crate::tui::state::{Tab, Ui};
use crate::tui::update::{Effect, Facts};

/// What the tab lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FindingsSight {
    #[default]
    Findings,
    /// alarms that were not raised
    Silenced,
    /// what changed since another session
    Changes,
}

/// Of what the pairs are marked in the matrix, and the link in the topology.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lit {
    #[default]
    Nothing,
    /// the chosen finding
    Finding,
    /// the chosen change
    Change,
}

/// Pairs to be marked.
pub struct Marked<'a> {
    /// ascending
    pub cells: &'a [(usize, usize)],
    pub mark: &'static str,
    /// what the mark stands for
    pub name: String,
}

/// The Findings tab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingsPanel {
    pub sight: FindingsSight,
    /// the finding with the cursor
    pub at: usize,
    /// its id: the cursor stays with it when the list changes
    chosen: Option<String>,
    /// the alarm with the cursor
    pub silenced: usize,
    /// first line of what is told of it
    pub scroll: usize,
    /// the change with the cursor
    pub change: usize,
    pub lit: Lit,
}

impl FindingsPanel {
    /// Without a cursor.
    pub fn home(&mut self) {
        *self = Self { sight: self.sight, lit: self.lit, ..Self::default() };
    }

    /// Stay with the chosen finding in a list that is new.
    pub fn follow(&mut self, told: Option<&Told>) {
        let findings = told.map_or(&[][..], Told::findings);
        let same = self.chosen.as_ref().and_then(|id| findings.iter().position(|finding| finding.id == *id));
        // Who has not chosen looks at whichever comes first.
        self.at = same.unwrap_or(if self.chosen.is_some() { self.at } else { 0 }).min(findings.len().saturating_sub(1));
        let changes = told.and_then(Told::changes).map_or(0, |changes| changes.changes.len());
        self.change = self.change.min(changes.saturating_sub(1));
        let gone = match self.lit {
            Lit::Nothing => false,
            Lit::Finding => findings.is_empty(),
            Lit::Change => changes == 0,
        };
        if gone {
            self.lit = Lit::Nothing;
        }
        let alarms = told.map_or(0, |told| told.diagnosis.silenced.len());
        self.silenced = self.silenced.min(alarms.saturating_sub(1));
    }

    /// Choose a finding, and mark its cells and hop.
    pub fn choose(&mut self, at: usize, told: &Told) {
        let Some(finding) = told.get(at) else { return };
        self.scroll = if at == self.at { self.scroll } else { 0 };
        (self.at, self.lit) = (at, Lit::Finding);
        self.chosen = Some(finding.id.clone());
    }

    /// The finding whose cells and hop are marked.
    pub fn lit<'a>(&self, told: Option<&'a Told>) -> Option<(usize, &'a crate::diagnose::Finding)> {
        Some((self.at, told?.get(self.at)?)).filter(|_| self.lit == Lit::Finding)
    }

    /// The pairs that are marked.
    pub fn marked<'a>(&self, lit: Lit, told: Option<&'a Told>) -> Option<Marked<'a>> {
        let told = told?;
        match lit {
            Lit::Nothing => None,
            Lit::Finding => {
                let mark = mark(told.get(self.at)?.severity);
                Some(Marked { cells: told.lit(self.at), mark, name: format!("finding {}", self.at + 1) })
            }
            Lit::Change => {
                let change = told.changes()?.changes.get(self.change)?;
                Some(Marked {
                    cells: told.changed(self.change),
                    mark: direction(change.ratio),
                    name: format!("change {}", self.change + 1),
                })
            }
        }
    }
}

impl Ui {
    /// Do what a key asks for on the Findings tab.
    pub(in crate::tui) fn update_findings(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) -> Effect {
        match action {
            Action::ShowSilenced => {
                let alarms = facts.desk.told().map_or(0, |told| told.diagnosis.silenced.len());
                let panel = &mut self.findings;
                panel.sight = match panel.sight {
                    FindingsSight::Silenced => FindingsSight::Findings,
                    _ if alarms > 0 => FindingsSight::Silenced,
                    sight => sight,
                };
                panel.scroll = 0;
                if alarms == 0 {
                    self.say("no alarm was held back", false);
                }
            }
            Action::ShowChanges => {
                let panel = &mut self.findings;
                panel.scroll = 0;
                if facts.desk.other().is_none() {
                    self.say("no other session to compare with: toposcope open SESSION --against OTHER", false);
                } else if panel.sight == FindingsSight::Changes {
                    panel.sight = FindingsSight::Findings;
                    if self.matrix.metric == Metric::Change {
                        self.matrix.metric = Metric::Bandwidth;
                    }
                } else {
                    self.compare();
                }
            }
            Action::SamplesUp => self.findings.scroll = self.findings.scroll.saturating_sub(1),
            Action::SamplesDown => self.findings.scroll = (self.findings.scroll + 1).min(hits.detail.map_or(0, |(_, most)| most)),
            Action::RunTest => return self.run_test(facts),
            Action::ShowCells => self.show_cells(facts),
            Action::ShowHop => self.show_hop(facts),
            _ => self.move_in_findings(action, facts, hits),
        }
        Effect::Nothing
    }

    fn move_in_findings(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) {
        let Some(told) = facts.desk.told() else { return };
        let panel = &mut self.findings;
        let (at, count) = match panel.sight {
            FindingsSight::Findings => (panel.at, told.findings().len()),
            FindingsSight::Silenced => (panel.silenced, told.diagnosis.silenced.len()),
            FindingsSight::Changes => (panel.change, told.changes().map_or(0, |changes| changes.changes.len())),
        };
        let last = count.saturating_sub(1);
        let page = hits.findings.len().max(1);
        let to = match action {
            Action::Up => at.saturating_sub(1),
            Action::Down => (at + 1).min(last),
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => (at + page).min(last),
            Action::Home => 0,
            Action::End => last,
            _ => return,
        };
        panel.go(to, told);
    }

    /// Run the test that tells the causes of the chosen finding apart.
    fn run_test(&mut self, facts: &Facts<'_>) -> Effect {
        let Some((_, finding)) = self.chosen_finding(facts) else { return Effect::Nothing };
        let Some(next) = &finding.next else {
            self.say("no test would tell more of this one", false);
            return Effect::Nothing;
        };
        if !next.cannot.is_empty() {
            self.say(format!("this test cannot be run here: {}", next.cannot), true);
            return Effect::Nothing;
        }
        if facts.mode == Mode::Recorded {
            self.say("this session was recorded: the test needs the job", true);
            return Effect::Nothing;
        }
        if facts.model.testing.is_some() {
            self.say("a test is running: wait for it, or abort it", true);
            return Effect::Nothing;
        }
        self.say(format!("test asked for: {}", next.test.say), false);
        Effect::Send(Command::RunTest { finding: finding.id.clone(), test: next.test.clone() })
    }

    /// To the Matrix, the chosen finding's cells marked and the cursor on the first.
    fn show_cells(&mut self, facts: &Facts<'_>) {
        if self.findings.sight == FindingsSight::Changes {
            self.show_change(facts);
            return;
        }
        let Some((at, finding)) = self.chosen_finding(facts) else { return };
        let Some(&cell) = finding.cells.first() else {
            self.say("this finding is of no pair", false);
            return;
        };
        self.light(at, facts);
        self.matrix.put(cell, facts.model.world());
        (self.matrix.pinned, self.matrix.anchor) = (true, None);
        // Findings are of pairs alone, at the size where rates compare.
        self.matrix.pattern = None;
        self.matrix.size = facts.desk.told().map(|told| told.seen.bytes);
        self.tab = Tab::Matrix;
    }

    /// To the Matrix, the chosen change's pairs marked.
    fn show_change(&mut self, facts: &Facts<'_>) {
        let change = facts.desk.told().and_then(|told| told.changes()?.changes.get(self.findings.change));
        let Some(&cell) = change.and_then(|change| change.cells.first()) else {
            self.say("this change is of no pair", false);
            return;
        };
        self.findings.lit = Lit::Change;
        self.matrix.put(cell, facts.model.world());
        (self.matrix.pinned, self.matrix.anchor) = (true, None);
        self.matrix.metric = Metric::Change;
        self.tab = Tab::Matrix;
    }

    /// To the Topology, the cursor on the device whose link is the chosen finding's hop, and a pair of it as the route.
    fn show_hop(&mut self, facts: &Facts<'_>) {
        let Some((at, finding)) = self.chosen_finding(facts) else { return };
        let cell = finding.cells.first().copied();
        let node = finding.hop.as_ref().and_then(|(host, hop)| facts.atlas.tree.of_hop(&facts.model.header.topology, host, hop));
        let node = node.or_else(|| facts.atlas.tree.of_rank(cell?.0));
        let Some(node) = node else {
            self.say("nothing is known of the hardware that this finding is of", false);
            return;
        };
        if finding.hop.is_none() {
            self.say("no single link is named: this is where its ranks sit", false);
        }
        self.light(at, facts);
        self.topology.go(&facts.atlas.tree, node);
        self.topology.greeted = true;
        self.topology.sight = crate::tui::atlas::Sight::Route;
        if let Some(cell) = cell {
            self.matrix.put(cell, facts.model.world());
            self.matrix.pinned = true;
        }
        self.tab = Tab::Topology;
    }

    /// From the Matrix to the finding that the pair under the cursor belongs to.
    pub(in crate::tui) fn show_finding(&mut self, facts: &Facts<'_>) {
        let cell = self.matrix.cursor;
        let Some((told, at)) = facts.desk.told().and_then(|told| Some((told, told.at_cell(cell)?.0))) else {
            self.say(format!("no finding is of {}→{}", cell.0, cell.1), false);
            return;
        };
        self.findings.sight = FindingsSight::Findings;
        self.findings.choose(at, told);
        self.tab = Tab::Findings;
    }

    fn light(&mut self, at: usize, facts: &Facts<'_>) {
        if let Some(told) = facts.desk.told() {
            self.findings.choose(at, told);
        }
    }

    fn chosen_finding<'a>(&mut self, facts: &Facts<'a>) -> Option<(usize, &'a crate::diagnose::Finding)> {
        let found = facts.desk.told().and_then(|told| told.get(self.findings.at));
        if found.is_none() || self.findings.sight != FindingsSight::Findings {
            self.say("choose a finding first", false);
            return None;
        }
        found.map(|finding| (self.findings.at, finding))
    }
}

impl FindingsPanel {
    /// Put the cursor on an entry of what is listed.
    pub fn go(&mut self, to: usize, told: &Told) {
        match self.sight {
            FindingsSight::Findings => self.choose(to, told),
            FindingsSight::Silenced => {
                self.scroll = if to == self.silenced { self.scroll } else { 0 };
                self.silenced = to;
            }
            FindingsSight::Changes => {
                self.scroll = if to == self.change { self.scroll } else { 0 };
                (self.change, self.lit) = (to, Lit::Change);
            }
        }
    }
}
