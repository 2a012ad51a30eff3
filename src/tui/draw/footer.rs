//! Which keys the last line tells, most useful first. What they are called comes from the key table.

use super::Scene;
use crate::session::Running;
use crate::tui::feed::Mode;
use crate::tui::form::Field;
use crate::tui::keys::Action;
use crate::tui::replay::ReplaySight;
use crate::tui::state::{Popup, Tab};

/// Actions that matter now, with a word for each.
pub fn actions(scene: &Scene<'_>) -> Vec<(Action, &'static str)> {
    match scene.ui.popups.last() {
        Some(Popup::Help { .. }) => return vec![(Action::Cancel, "close"), (Action::Down, "down"), (Action::Up, "up")],
        Some(Popup::Confirm(_) | Popup::Palette | Popup::Sessions) => return Vec::new(),
        None => {}
    }
    let recorded = scene.mode == Mode::Recorded;
    let running = scene.model.sweep.as_ref().map(|sweep| sweep.running);
    let mut actions = Vec::new();
    match scene.ui.tab {
        Tab::Topology => actions.extend([
            (Action::NextFault, "next fault"),
            (Action::Fold, "fold"),
            (Action::OtherSight, "route/classes"),
            (Action::RouteFrom, "from here"),
            (Action::RouteTo, "to here"),
            (Action::TurnRoute, "turn round"),
            (Action::Find, "find"),
            (Action::SamplesDown, "notes"),
        ]),
        Tab::Sweep if recorded => {}
        Tab::Sweep => {
            let runs = matches!(running, Some(Running::Measuring | Running::Paused));
            if !runs {
                actions.push((Action::StartSweep, "start"));
            }
            if scene.ui.form.field != Field::Start {
                actions.push((Action::Toggle, "change"));
            }
            actions.extend([(Action::Up, "up"), (Action::Down, "down")]);
        }
        Tab::Matrix => {
            let parts = scene.view.grid.axes().stops().len() > 1;
            if parts {
                // Of many ranks, where to look goes before what to look at.
                actions.extend([(Action::NextSuspect, "next suspect"), (Action::ZoomIn, "closer"), (Action::ZoomOut, "back")]);
                actions.extend([(Action::FindPair, "find"), (Action::NextOrder, "order"), (Action::NextReduce, "worst/mean")]);
            }
            actions.extend([(Action::NextMetric, "metric"), (Action::NextPattern, "pattern"), (Action::NextSize, "size")]);
            if !parts {
                actions.push((Action::NextSuspect, "next suspect"));
            }
            if !recorded {
                actions.extend([
                    (Action::Remeasure, "re-measure"),
                    (Action::Select, "block"),
                    (Action::RemeasureBlock, "re-measure block"),
                ]);
            }
            if scene.atlas.router.knows() {
                actions.push((Action::NextGrouping, "group"));
            }
            actions.extend([(Action::Zoom, "zoom"), (Action::Transpose, "transpose"), (Action::SamplesDown, "samples")]);
        }
        Tab::Fits => actions.extend([
            (Action::SortColumn, "sort"),
            (Action::SortReverse, "reverse"),
            (Action::Filter, "filter"),
            (Action::Up, "up"),
            (Action::Down, "down"),
        ]),
        Tab::Fans => actions.extend([
            (Action::Down, "next root"),
            (Action::Right, "wider"),
            (Action::OtherDirection, "in/out"),
            (Action::NextSize, "size"),
            (Action::SamplesDown, "peers"),
        ]),
        Tab::Findings => {
            let next = scene.desk.told().and_then(|told| told.get(scene.ui.findings.at)).and_then(|finding| finding.next.as_ref());
            if next.is_some_and(|next| next.cannot.is_empty()) && !recorded {
                actions.push((Action::RunTest, "run the test"));
            }
            actions.extend([
                (Action::ShowCells, "pairs"),
                (Action::ShowHop, "link"),
                (Action::ShowSilenced, "held back"),
                (Action::ShowChanges, "changes"),
                (Action::Down, "next"),
                (Action::SamplesDown, "more"),
            ]);
        }
        Tab::Replay => actions = replay(scene, recorded),
        Tab::Session => actions.extend([(Action::Right, "next rank"), (Action::Up, "older"), (Action::SamplesDown, "facts")]),
    }
    if recorded && scene.ui.tab != Tab::Replay {
        let play = [(Action::PlayPause, "play"), (Action::StepBack, "back"), (Action::StepForward, "forward"), (Action::Faster, "faster")];
        // In a recording, time comes first.
        actions.splice(0..0, play);
    } else {
        let pause = match running {
            Some(Running::Measuring) => Some("pause"),
            Some(Running::Paused) => Some("continue"),
            _ => None,
        };
        if let Some(pause) = pause {
            actions.splice(0..0, [(Action::PauseContinue, pause), (Action::Abort, "abort")]);
        }
    }
    actions.extend([(Action::Help, "help"), (Action::NextTheme, "theme"), (Action::Palette, "commands")]);
    actions
}

/// What is being typed on the Replay tab, where other keys are letters.
pub fn typed(scene: &Scene<'_>) -> Option<&'static str> {
    let panel = &scene.ui.replay;
    if scene.ui.tab != Tab::Replay || !scene.ui.popups.is_empty() {
        return None;
    }
    let value = || panel.form.typing.is_some().then_some("type a value:");
    panel.typing.as_ref().map(|_| "type the path of a plan's file, or scenario:NAME:").or_else(value)
}

/// Those of the Replay tab.
fn replay(scene: &Scene<'_>, recorded: bool) -> Vec<(Action, &'static str)> {
    let panel = &scene.ui.replay;
    if panel.sight == ReplaySight::Strategies {
        return vec![(Action::Choose, "choose"), (Action::Down, "next"), (Action::LoadPlan, "load"), (Action::ShowStrategies, "plans")];
    }
    if panel.reel(scene.replays).is_none() {
        return vec![(Action::LoadPlan, "load a plan"), (Action::ShowStrategies, "strategies"), (Action::NextPlan, "next plan")];
    }
    let mut actions = vec![
        (Action::ReplayPlay, "play"),
        (Action::Right, "scrub"),
        (Action::ReplayForward, "step"),
        (Action::ShowBottleneck, "bottleneck"),
        (Action::Down, "resource"),
        (Action::NextPlan, "next plan"),
        (Action::ComparePlans, "compare"),
    ];
    actions.extend((!recorded).then_some((Action::ExecutePlan, "execute")));
    actions.extend([
        (Action::LoadPlan, "load"),
        (Action::ShowStrategies, "strategies"),
        (Action::LightLinks, "links"),
        (Action::Stretch, "stretch"),
        (Action::ReplayFaster, "faster"),
    ]);
    actions
}
