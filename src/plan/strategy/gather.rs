//! Once across in shards, then gathered inside each host.

use std::collections::BTreeMap;
use std::ops::Range;

use super::write::{Writer, joined};
use super::{Held, Job};

/// Name of the stage that a library's all-gather may do.
pub(super) const RING: &str = "ring all-gather inside hosts";

/// The engines of a host, and what each has after the first stage.
struct Host {
    engines: Vec<usize>,
    /// cuts of the model, ascending: none crosses a trainer's shard or an engine's part
    pieces: Vec<Range<u64>>,
    /// of each piece: which of the engines has it then
    owner: Vec<usize>,
}

/// The cuts of a host; what its engines lack is written as flows from the trainers.
fn across(writer: &mut Writer, host: usize, engines: Vec<usize>) -> Host {
    let job = writer.job;
    let (shards, parts) = (job.trainers.len(), engines.len());
    let mut cuts: Vec<u64> =
        (0..shards).map(|i| job.shard(i).start).chain((0..parts).map(|j| job.part(j, parts).start)).chain([job.bytes]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let pieces: Vec<Range<u64>> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let near: Vec<usize> = job.trainers.iter().copied().filter(|&trainer| job.hosts[trainer] == host).collect();
    let mut owner = Vec::with_capacity(pieces.len());
    let mut sent: BTreeMap<(usize, usize), Vec<Range<u64>>> = BTreeMap::new();
    for piece in &pieces {
        let inside = |of: Range<u64>| of.start <= piece.start && piece.end <= of.end;
        let part = (0..parts).find(|&j| inside(job.part(j, parts))).unwrap_or(0);
        // An engine that was trained with it need not get it.
        let holders: Vec<usize> = (0..parts).filter(|&j| job.holds(engines[j], piece)).collect();
        if holders.is_empty() {
            let shard = (0..shards).find(|&i| inside(job.shard(i))).unwrap_or(0);
            let from = if job.held == Held::Whole && !near.is_empty() { near[part % near.len()] } else { job.trainers[shard] };
            sent.entry((from, engines[part])).or_default().push(piece.clone());
            owner.push(part);
        } else {
            owner.push(if holders.contains(&part) { part } else { holders[part % holders.len()] });
        }
    }
    for ((from, to), ranges) in sent {
        for range in joined(ranges) {
            writer.flow(from, to, &range, &[]);
        }
    }
    Host { engines, pieces, owner }
}

impl Host {
    /// What `owner` has and `engine` lacks at first.
    fn lacks(&self, job: &Job, owner: usize, engine: usize) -> Vec<Range<u64>> {
        let pieces = self.pieces.iter().zip(&self.owner).filter(|&(piece, &of)| of == owner && !job.holds(self.engines[engine], piece));
        joined(pieces.map(|(piece, _)| piece.clone()))
    }
}

fn hosts(writer: &mut Writer) -> Vec<Host> {
    writer.stage("shards across", true);
    writer.job.engine_hosts().into_iter().map(|(host, engines)| across(writer, host, engines)).collect()
}

/// Every engine reads the rest from its neighbours, all at once.
pub(super) fn by_plan(writer: &mut Writer) {
    let hosts = hosts(writer);
    writer.stage("gather inside hosts", true);
    for host in &hosts {
        let members = host.engines.len();
        for engine in 0..members {
            // Each begins with the one after it, so that no sender is everybody's first.
            for owner in (1..members).map(|step| (engine + step) % members) {
                for range in host.lacks(writer.job, owner, engine) {
                    writer.flow(host.engines[owner], host.engines[engine], &range, &[]);
                }
            }
        }
    }
}

/// Around a ring: at step s, each passes on what it got at step s − 1 (Thakur, Rabenseifner & Gropp, IJHPCA 2005).
pub(super) fn by_ring(writer: &mut Writer) {
    let hosts = hosts(writer);
    writer.stage(RING, true);
    for host in &hosts {
        let members = host.engines.len();
        // Flows of the step before: into each engine.
        let mut before: Vec<Vec<Option<usize>>> = vec![Vec::new(); members];
        for step in 1..members {
            let mut now = vec![Vec::new(); members];
            for engine in 0..members {
                let (sender, owner) = ((engine + members - 1) % members, (engine + members - step) % members);
                // What it passes on is there, and its link is free.
                let after: Vec<Option<usize>> = before[sender].iter().chain(&before[engine]).copied().collect();
                for range in host.lacks(writer.job, owner, engine) {
                    now[engine].push(writer.flow(host.engines[sender], host.engines[engine], &range, &after));
                }
                if now[engine].is_empty() {
                    now[engine] = after;
                }
            }
            before = now;
        }
    }
}
