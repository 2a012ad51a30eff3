use std::borrow::Cow;
use std::sync::Arc;

use super::strategies::{FIELDS, StrategyForm};
use super::{Reel, Replays};
use crate::fit::median;
use crate::plan::{Execution, Traffic, Transfers};
use crate::session::{Command, Event, Record};
use crate::tui::draw::HitMap;
use crate::tui::feed::Mode;
use crate::tui::keys::Action;
use crate::tui::state::{Ask, Popup, Tab, Ui};
use crate::tui::typing::Typing;
use crate::tui::update::{Effect, Facts};
use crate::units::{format_seconds, plain};

/// Parts of the whole that a second of playing passes.
pub const SPEEDS: [f64; 9] = [1.0 / 1000.0, 1.0 / 300.0, 1.0 / 100.0, 1.0 / 30.0, 1.0 / 10.0, 1.0 / 5.0, 1.0 / 2.0, 1.0, 2.0];
/// A whole plan in ten seconds.
const USUAL: usize = 4;
/// Most that the timeline is stretched: 4 to the power of this.
const ZOOM: u32 = 8;
/// Said where a plan must be priced first.
const UNPRICED: &str = "no plan is priced";
/// Timed runs of a plan.
const REPEATS: u32 = 5;

/// The Replay tab.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayPanel {
    /// the plan that is looked at
    pub at: usize,
    /// the one beside it
    pub other: Option<usize>,
    /// the play head, seconds; `None` where the bottleneck is fullest
    pub head: Option<f64>,
    pub playing: bool,
    /// index into [`SPEEDS`]
    pub speed: usize,
    /// the timeline is stretched by 4 to the power of this
    pub zoom: u32,
    /// the chosen resource, whose flows are shown
    pub resource: Option<usize>,
    /// first lane shown
    pub scroll: usize,
    /// path of a plan's file, while it is typed
    pub typing: Option<Typing>,
    /// the topology's links are lit by what passes at the play head
    pub lit: bool,
    /// what is run when the question is answered
    pub asked: Option<Command>,
    pub sight: ReplaySight,
    pub form: StrategyForm,
    /// strategies that were chosen, and how often one was
    pub chosen: Vec<Traffic>,
    pub choices: u64,
    /// the one before the last plan stands beside it once they are there
    pub pair: bool,
    /// name of the plan to look at once it is there
    pub wanted: Option<String>,
    /// names of the plans that the screen was opened with: the first is looked at, the second beside it
    pub named: Vec<String>,
    /// plans that there were
    known: usize,
}

/// What the tab shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaySight {
    Plans,
    Strategies,
}

impl Default for ReplayPanel {
    fn default() -> Self {
        Self {
            at: 0,
            other: None,
            head: None,
            playing: false,
            speed: USUAL,
            zoom: 0,
            resource: None,
            scroll: 0,
            typing: None,
            lit: false,
            asked: None,
            sight: ReplaySight::Strategies,
            form: StrategyForm::default(),
            chosen: Vec::new(),
            choices: 0,
            pair: false,
            wanted: None,
            named: Vec::new(),
            known: 0,
        }
    }
}

impl ReplayPanel {
    /// Look at what came last, and stay within what there is.
    pub fn follow(&mut self, replays: &Replays) {
        let count = replays.shown().len();
        let number = |name: &String| replays.shown().iter().rposition(|shown| shown.name == *name);
        let wanted = self.wanted.take().as_ref().and_then(number);
        if let Some(first) = self.named.first().and_then(number).filter(|_| count > self.known) {
            self.look_at(first);
            self.sight = ReplaySight::Plans;
            self.other = self.named.get(1).and_then(number);
        } else if let Some(at) = wanted.or_else(|| (count > self.known).then(|| count - 1)) {
            self.look_at(at);
            self.sight = ReplaySight::Plans;
        }
        self.known = count;
        if self.at >= count {
            self.look_at(count.saturating_sub(1));
        }
        if count > 1 && std::mem::take(&mut self.pair) {
            self.other = self.at.checked_sub(1);
        }
        self.other = self.other.filter(|&other| other < count && other != self.at);
    }

    /// Look at a strategy.
    fn look_at_strategy(&mut self, traffic: &Traffic) {
        // It takes the place of the one of that name.
        self.chosen.retain(|own| own.name != traffic.name);
        self.chosen.push(traffic.clone());
        self.choices += 1;
        self.wanted = Some(traffic.name.clone());
    }

    /// Look at a plan, where it is tightest.
    pub fn look_at(&mut self, at: usize) {
        if at == self.at {
            return;
        }
        self.at = at;
        (self.head, self.playing, self.resource, self.scroll, self.zoom) = (None, false, None, 0, 0);
    }

    /// The plan that is looked at.
    pub fn reel<'a>(&self, replays: &'a Replays) -> Option<&'a Arc<Reel>> {
        replays.reel(self.at)
    }

    /// The one beside it.
    pub fn beside<'a>(&self, replays: &'a Replays) -> Option<&'a Arc<Reel>> {
        replays.reel(self.other?)
    }

    /// Where the play head is, seconds.
    pub fn head(&self, reel: &Reel) -> f64 {
        self.head.unwrap_or_else(|| reel.tightest())
    }

    /// Seconds until everything in sight is complete.
    pub fn end(&self, replays: &Replays) -> f64 {
        let reels = [self.reel(replays), self.beside(replays)];
        reels.into_iter().flatten().map(|reel| reel.end()).fold(0.0, f64::max)
    }

    /// What part of the time is in sight, around the play head.
    pub fn window(&self, head: f64, end: f64) -> (f64, f64) {
        let span = end / f64::from(4_u32.pow(self.zoom));
        let from = (head - span / 2.0).clamp(0.0, (end - span).max(0.0));
        (from, from + span)
    }

    /// Put the play head somewhere.
    pub fn seek(&mut self, time: f64, replays: &Replays) {
        self.head = Some(time.clamp(0.0, self.end(replays)));
    }

    /// Let time go by; true if the play head moved.
    pub fn tick(&mut self, seconds: f64, replays: &Replays) -> bool {
        let Some(reel) = self.reel(replays).filter(|_| self.playing) else { return false };
        let end = self.end(replays);
        let to = self.head(reel) + seconds * self.pace(end);
        self.playing = to < end;
        self.seek(to, replays);
        true
    }

    /// Seconds of the plan that a second of playing passes.
    pub fn pace(&self, end: f64) -> f64 {
        end * SPEEDS.get(self.speed).copied().unwrap_or(0.1)
    }

    fn play(&mut self, replays: &Replays) {
        let Some(reel) = self.reel(replays) else { return };
        // Who has not chosen a time, or has seen all of it, sees it from the beginning.
        if !self.playing && self.head.is_none_or(|head| head >= reel.end().max(self.end(replays))) {
            self.head = Some(0.0);
        }
        self.playing = !self.playing;
    }

    fn choose(&mut self, resource: Option<usize>) {
        self.scroll = if resource == self.resource { self.scroll } else { 0 };
        self.resource = resource;
    }

    /// Drop what was chosen, and the light.
    pub fn drop_selection(&mut self, tab: Tab) {
        self.lit = false;
        if tab == Tab::Replay {
            self.choose(None);
            (self.other, self.playing) = (None, false);
        }
    }

    /// Choose a resource, or with a second click none.
    pub fn click(&mut self, resource: usize) {
        self.choose(Some(resource).filter(|_| self.resource != Some(resource)));
    }
}

impl Ui {
    /// Show the last two plans side by side.
    pub const fn compare_last_plans(&mut self) {
        self.replay.pair = true;
    }

    /// Show the plans that the screen was opened with: those that came after all that was measured. `backwards` are the records, the last first.
    pub fn open_plans<'a>(&mut self, backwards: impl Iterator<Item = Cow<'a, Record>>) {
        let measured = |record: &Record| matches!(record.event, Event::ProbeDone { .. } | Event::TestDone { .. } | Event::ExecutionDone(_));
        let name =
            |record: Cow<'_, Record>| if let Event::PlanLoaded { traffic } = &record.event { Some(plain(&traffic.name)) } else { None };
        let mut names: Vec<String> = backwards.take_while(|record| !measured(record)).filter_map(name).collect();
        if !names.is_empty() {
            names.reverse();
            self.tab = Tab::Replay;
            self.replay.named.extend(names);
        }
    }

    /// What was told of a plan that had no price then is not so any more.
    pub(in crate::tui) fn forget_unpriced(&mut self, replays: &Replays) {
        if self.notice.as_ref().is_some_and(|notice| notice.text == UNPRICED) && self.replay.reel(replays).is_some() {
            self.notice = None;
        }
    }

    /// What a run took, once it is known.
    pub(in crate::tui) fn tell_run(&mut self, run: &Execution) {
        let name = plain(&run.name);
        let mut seconds: Vec<f64> = run.runs.iter().map(|run| run.seconds).collect();
        if !run.failed.is_empty() {
            self.say(format!("{name} failed: {}", plain(&run.failed)), true);
        } else if !seconds.is_empty() {
            self.say(format!("{name} was run: it took {}", format_seconds(median(&mut seconds))), false);
        }
    }

    /// Do what a key asks for on the Replay tab.
    pub(in crate::tui) fn update_replay(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) -> Effect {
        if self.replay.sight == ReplaySight::Strategies && !matches!(action, Action::LoadPlan | Action::ShowStrategies) {
            self.move_in_strategies(action, facts);
            return Effect::Nothing;
        }
        match action {
            Action::ShowStrategies => {
                self.replay.sight = match self.replay.sight {
                    ReplaySight::Plans => ReplaySight::Strategies,
                    ReplaySight::Strategies if facts.replays.shown().is_empty() => {
                        self.say("no plan is loaded", false);
                        ReplaySight::Strategies
                    }
                    ReplaySight::Strategies => ReplaySight::Plans,
                };
            }
            Action::LoadPlan => self.replay.typing = Some(Typing::default()),
            Action::ExecutePlan => self.ask_to_execute(facts),
            Action::ComparePlans => self.compare_plans(facts.replays),
            Action::NextPlan => {
                let count = facts.replays.shown().len();
                match count {
                    0 => self.say("no plan is loaded", false),
                    1 => self.say("this is the only plan", false),
                    _ => {
                        let (at, other) = (self.replay.at, self.replay.other);
                        self.replay.look_at((at + 1) % count);
                        self.replay.other = other.map(|other| if other == self.replay.at { at } else { other });
                    }
                }
            }
            Action::LightLinks => {
                if self.replay.reel(facts.replays).is_none() {
                    self.say(UNPRICED, false);
                } else if facts.atlas.tree.is_empty() {
                    self.say("nothing is known of the hardware that it passes", false);
                } else {
                    (self.replay.lit, self.topology.greeted, self.tab) = (true, true, Tab::Topology);
                }
            }
            _ => self.move_in_replay(action, facts, hits),
        }
        Effect::Nothing
    }

    fn move_in_strategies(&mut self, action: Action, facts: &Facts<'_>) {
        let ranking = facts.replays.ranked().and_then(|ranked| ranked.ranking.as_ref().ok());
        let rows = ranking.map_or(&[][..], |ranking| &ranking.rows);
        let form = &mut self.replay.form;
        let last = FIELDS.len() + rows.len() - 1;
        match action {
            Action::Up => form.at = form.at.saturating_sub(1).min(last),
            Action::Down => form.at = (form.at + 1).min(last),
            Action::Home | Action::PageUp => form.at = 0,
            Action::End | Action::PageDown => form.at = last,
            Action::Left | Action::Right => form.turn(),
            Action::Choose => {
                if !form.edit(facts.model.world())
                    && let Some(row) = rows.get(form.at - FIELDS.len())
                {
                    self.replay.look_at_strategy(&row.traffic);
                }
            }
            _ => {}
        }
    }

    fn move_in_replay(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap) {
        let replays = facts.replays;
        let Some(reel) = self.replay.reel(replays).cloned() else { return };
        let panel = &mut self.replay;
        let (head, end) = (panel.head(&reel), panel.end(replays));
        let (from, to) = panel.window(head, end);
        let columns = hits.timeline.map_or(100, |area| area.width.max(1));
        let column = (to - from) / f64::from(columns);
        let last = reel.replay.resources.len().checked_sub(1);
        let page = hits.lanes.map_or(1, |(area, _)| usize::from(area.height.max(1)));
        let most = hits.lanes.map_or(0, |(_, most)| most);
        match action {
            Action::ReplayPlay => panel.play(replays),
            Action::Left => panel.seek(head - column, replays),
            Action::Right => panel.seek(head + column, replays),
            Action::Home => panel.seek(0.0, replays),
            Action::End => panel.seek(end, replays),
            Action::ReplayBack => panel.seek(reel.beside(head, false), replays),
            Action::ReplayForward => panel.seek(reel.beside(head, true), replays),
            Action::ReplayFaster => panel.speed = (panel.speed + 1).min(SPEEDS.len() - 1),
            Action::ReplaySlower => panel.speed = panel.speed.saturating_sub(1),
            Action::Stretch => panel.zoom = (panel.zoom + 1).min(ZOOM),
            Action::Shrink => panel.zoom = panel.zoom.saturating_sub(1),
            Action::Up => panel.choose(panel.resource.and_then(|at| at.checked_sub(1))),
            Action::Down => panel.choose(panel.resource.map_or(last.map(|_| 0), |at| last.map(|last| (at + 1).min(last)))),
            Action::SamplesUp => panel.scroll = panel.scroll.saturating_sub(1),
            Action::SamplesDown => panel.scroll = (panel.scroll + 1).min(most),
            Action::PageUp => panel.scroll = panel.scroll.saturating_sub(page),
            Action::PageDown => panel.scroll = (panel.scroll + page).min(most),
            Action::ShowBottleneck => {
                (panel.head, panel.playing) = (None, false);
                panel.choose(reel.replay.bottleneck.resource);
                self.say(format!("bottleneck: {}", reel.replay.bottleneck.say), false);
            }
            _ => {}
        }
        if matches!(action, Action::Left | Action::Right | Action::Home | Action::End | Action::ReplayBack | Action::ReplayForward) {
            self.replay.playing = false;
        }
    }

    /// Another plan beside this one: each in turn, then none.
    fn compare_plans(&mut self, replays: &Replays) {
        let panel = &mut self.replay;
        let count = replays.shown().len();
        if count < 2 {
            self.say("a second plan is needed: load one, or choose a strategy", false);
            return;
        }
        let next = panel.other.map_or(0, |other| other + 1);
        panel.other = (next..count).find(|&other| other != panel.at);
        panel.scroll = 0;
    }

    /// Ask before a plan is run.
    fn ask_to_execute(&mut self, facts: &Facts<'_>) {
        let Some(reel) = self.replay.reel(facts.replays).cloned() else {
            self.say(UNPRICED, false);
            return;
        };
        let (ranks, world) = (reel.traffic.ranks, facts.model.world());
        let refusal = if facts.mode == Mode::Recorded {
            Some("this session was recorded: a plan runs in a job".to_owned())
        } else if let Some(name) = &facts.model.executing {
            Some(format!("{} is running: wait for it", plain(name)))
        } else if ranks > world {
            Some(format!("this plan is of {ranks} rank{}, the job has {world}", if ranks == 1 { "" } else { "s" }))
        } else {
            let lost = facts.model.lost.keys().find(|&&rank| reel.traffic.flows.iter().any(|flow| flow.from == rank || flow.to == rank));
            lost.map(|rank| format!("rank {rank} is lost, and this plan needs it"))
        };
        if let Some(refusal) = refusal {
            self.say(refusal, true);
            return;
        }
        let traffic = reel.traffic.clone();
        self.replay.asked = Some(Command::Execute { name: traffic.name.clone(), transfers: Transfers::Traffic(traffic), repeats: REPEATS });
        self.popups.push(Popup::Confirm(Ask::Execute));
    }

    /// Run what was asked for.
    pub(in crate::tui) fn execute_asked(&mut self) -> Effect {
        let Some(command) = self.replay.asked.take() else { return Effect::Nothing };
        self.say("asked for: what it took is told here when it is done", false);
        Effect::Send(command)
    }

    /// The path that was typed is to be read.
    pub(in crate::tui) fn load_typed(&mut self) -> Effect {
        let Some(typed) = self.replay.typing.take() else {
            self.replay.form.accept();
            return Effect::Nothing;
        };
        let text = typed.text();
        let text = text.trim();
        if text.is_empty() {
            return Effect::Nothing;
        }
        self.say(format!("reading {}", plain(text)), false);
        Effect::Send(Command::LoadPlan { path: text.into() })
    }
}
