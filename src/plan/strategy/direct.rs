//! From trainers to engines without a stop.

use super::write::Writer;

/// The first trainer sends the whole model to every engine.
pub(super) fn direct(writer: &mut Writer, root: usize) {
    let job = writer.job;
    writer.stage("to every engine", true);
    for &engine in job.engines.iter().filter(|engine| !job.whole().contains(engine)) {
        writer.flow(root, engine, &(0..job.bytes), &[]);
    }
}

/// Every engine takes the whole model from a trainer of its own host, else from the next one in turn.
pub(super) fn spread(writer: &mut Writer, whole: &[usize]) {
    let job = writer.job;
    let mut turns = vec![0; job.hosts.iter().max().map_or(1, |last| last + 2)];
    let anywhere = turns.len() - 1;
    writer.stage("to every engine", true);
    for &engine in job.engines.iter().filter(|engine| !whole.contains(engine)) {
        let host = job.hosts[engine];
        let near: Vec<usize> = whole.iter().copied().filter(|&trainer| job.hosts[trainer] == host).collect();
        let (from, turn) = if near.is_empty() { (whole, anywhere) } else { (&near[..], host) };
        let root = from[turns[turn] % from.len()];
        turns[turn] += 1;
        writer.flow(root, engine, &(0..job.bytes), &[]);
    }
}

/// Every trainer sends its shard to every engine.
pub(super) fn sharded(writer: &mut Writer) {
    let job = writer.job;
    writer.stage("shards to every engine", true);
    for (number, &trainer) in job.trainers.iter().enumerate() {
        let shard = job.shard(number);
        for &engine in job.engines.iter().filter(|&&engine| !job.holds(engine, &shard)) {
            writer.flow(trainer, engine, &shard, &[]);
        }
    }
}
