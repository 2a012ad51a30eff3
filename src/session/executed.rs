//! Plans that were run, as the rules of `diagnose` look at them.

use super::Model;
use crate::diagnose::Executed;
use crate::plan::{Execution, Residual, Traffic};

/// Pairs that are told of a resource.
const MOST_PAIRS: usize = 6;

/// The last run of each plan, against what was foreseen for it.
pub(super) fn executed(model: &Model) -> Vec<Executed> {
    let last = |number: usize, name: &str| !model.executions[number + 1..].iter().any(|later| later.name == name);
    let own = model.executions.iter().enumerate().filter(|(number, execution)| last(*number, &execution.name));
    own.filter_map(|(_, execution)| of(execution, model.plans.iter().find(|plan| plan.name == execution.name))).collect()
}

/// `None` where nothing was foreseen and nothing failed.
fn of(execution: &Execution, traffic: Option<&Traffic>) -> Option<Executed> {
    let base = Executed {
        name: execution.name.clone(),
        mover: execution.carried_by(),
        runs: execution.runs.len(),
        failed: execution.failed.clone(),
        ..Executed::default()
    };
    if !execution.failed.is_empty() {
        return Some(base);
    }
    let residual = execution.residual()?;
    let (stage, took, expected) = slowest(&residual)?;
    let foreseen = execution.foreseen.as_ref()?;
    let measured = execution.median()?;
    let in_stage = |flow: &usize| traffic.and_then(|traffic| traffic.flows.get(*flow)).is_some_and(|flow| flow.stage == stage);
    let busiest = foreseen.resources.iter().position(|(.., flows)| flows.iter().any(in_stage));
    let mut flows: Vec<usize> = busiest.map_or_else(Vec::new, |at| foreseen.resources[at].2.iter().copied().filter(in_stage).collect());
    let end = |flow: &usize| measured.flows.get(*flow).copied().unwrap_or(0.0);
    flows.sort_by(|a, b| end(b).total_cmp(&end(a)));
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for flow in flows.iter().filter_map(|&flow| traffic?.flows.get(flow)).filter(|flow| flow.from != flow.to) {
        if pairs.len() < MOST_PAIRS && !pairs.contains(&(flow.from, flow.to)) {
            pairs.push((flow.from, flow.to));
        }
    }
    let name = traffic.and_then(|traffic| traffic.stages.get(stage)).map_or("", |stage| stage.name.as_str());
    let name = if name.is_empty() { format!("stage {stage}") } else { name.to_owned() };
    Some(Executed {
        seconds: residual.seconds,
        foreseen: residual.foreseen,
        high: residual.high,
        stage: (name, took, expected),
        resource: busiest.map(|at| residual.resources[at].clone()),
        pairs,
        ..base
    })
}

/// The stage that took longest beyond what was foreseen: its number, what it took by itself, and what was foreseen for that.
fn slowest(residual: &Residual) -> Option<(usize, f64, f64)> {
    let mut before = (0.0_f64, 0.0_f64);
    let mut own = Vec::new();
    for (number, &(measured, foreseen)) in residual.stages.iter().enumerate() {
        own.push((number, (measured - before.0).max(0.0), (foreseen - before.1).max(0.0)));
        before = (before.0.max(measured), before.1.max(foreseen));
    }
    own.into_iter().max_by(|a, b| (a.1 - a.2).total_cmp(&(b.1 - b.2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Flow, Foreseen, Run, Stage, Staged};

    fn flow(stage: usize, from: usize, to: usize) -> Flow {
        Flow { stage, from, to, bytes: 8, messages: 1, after: Vec::new(), offset: None, staged: Staged::default() }
    }

    #[test]
    fn the_stage_that_lost_most_and_its_busiest_resource_are_told() {
        let stage = |name: &str| Stage { name: name.to_owned(), waits: true };
        let traffic = Traffic {
            ranks: 3,
            stages: vec![stage("across"), stage("inside")],
            flows: vec![flow(0, 0, 1), flow(1, 1, 2), flow(1, 1, 0)],
            ..Traffic::default()
        };
        let resources = vec![("trunk".to_owned(), 1.0, vec![0]), ("port".to_owned(), 0.5, vec![0, 1, 2])];
        let foreseen = Foreseen { seconds: 1.5, low: 1.4, high: 1.6, stages: vec![1.0, 1.5], bottleneck: String::new(), resources };
        let run = Run { seconds: 2.6, stages: vec![1.1, 2.6], flows: vec![1.1, 2.0, 2.6] };
        let execution = Execution { name: "a".to_owned(), runs: vec![run], foreseen: Some(foreseen), ..Execution::default() };
        let told = of(&execution, Some(&traffic)).unwrap();
        assert_eq!(told.stage, ("inside".to_owned(), 2.6 - 1.1, 0.5));
        assert_eq!((told.resource, told.pairs), (Some(("port".to_owned(), 0.5, 2.6)), vec![(1, 0), (1, 2)]));
        assert_eq!(of(&Execution { foreseen: None, ..execution.clone() }, Some(&traffic)), None);
        let failed = Execution { failed: "no".to_owned(), ..execution };
        assert_eq!(of(&failed, None).unwrap().failed, "no");
    }
}
