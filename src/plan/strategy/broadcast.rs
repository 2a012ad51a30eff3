//! One rank has it all; the others get it from each other: relay, pipelined relay, chains and trees.

use super::write::Writer;

/// Across to one engine of each host, then on inside hosts; `arity` receivers at a time for each sender, in `slices`.
///
/// A host of engines with a trainer that holds the whole model needs nothing from outside: that trainer is its relay.
pub(super) fn relay(writer: &mut Writer, whole: &[usize], arity: usize, slices: u64) {
    let job = writer.job;
    let hosts = job.engine_hosts();
    let own = |host: usize| whole.iter().copied().find(|&trainer| job.hosts[trainer] == host);
    let mut across = vec![whole[0]];
    across.extend(hosts.iter().filter(|(host, _)| own(*host).is_none()).map(|(_, engines)| engines[0]));
    writer.stage("across hosts", true);
    let there = broadcast(writer, &across, None, arity, slices);
    // Whole, a stage waits for the one before, as two calls one after the other do.
    writer.stage("inside hosts", slices <= 1);
    for (host, engines) in &hosts {
        let relay = own(*host).unwrap_or(engines[0]);
        let arrived = across.iter().skip(1).position(|&rank| rank == relay).map(|at| &there[at + 1][..]);
        let mut inside = vec![relay];
        inside.extend(engines.iter().copied().filter(|engine| *engine != relay && !whole.contains(engine)));
        broadcast(writer, &inside, arrived, arity, slices);
    }
}

/// The first of `nodes` sends to the next `arity`, these to the ones after them, and so on: slice by slice, each link one slice after
/// the other, each slice sent on once it is there. `arrived`: flows that bring the slices to the first one, if it has them not.
///
/// Flows by node and slice.
fn broadcast(
    writer: &mut Writer,
    nodes: &[usize],
    arrived: Option<&[Option<usize>]>,
    arity: usize,
    slices: u64,
) -> Vec<Vec<Option<usize>>> {
    // No slice is empty.
    let slices = usize::try_from(slices.clamp(1, writer.job.bytes)).unwrap_or(usize::MAX);
    let mut there: Vec<Vec<Option<usize>>> = vec![Vec::with_capacity(slices); nodes.len()];
    for slice in 0..slices {
        let range = writer.job.part(slice, slices);
        there[0].push(arrived.and_then(|flows| flows.get(slice).copied().flatten()));
        for node in 1..nodes.len() {
            let parent = (node - 1) / arity.max(1);
            let before = there[node].last().copied().flatten();
            let flow = writer.flow(nodes[parent], nodes[node], &range, &[there[parent][slice], before]);
            there[node].push(flow);
        }
    }
    there
}
