use std::collections::BTreeMap;

use super::*;
use crate::plan::{Endpoints, Parameter, Place, Plan};

fn segment(shape: &[u64], source: (i64, u64, &[i64]), target: (i64, u64, &[i64])) -> Segment {
    let place = |(location, offset, strides): (i64, u64, &[i64])| Place(location, offset, strides.to_vec());
    Segment { shape: shape.to_vec(), source: place(source), target: place(target) }
}

fn batch(plans: Vec<Vec<Segment>>, source: &[usize], target: &[usize], bytes_per_peer: u64, element_size: u64) -> Batch {
    let numbered = |processes: &[usize]| (0_i64..).zip(processes.iter().copied()).collect::<BTreeMap<_, _>>();
    let parameter = |(at, segments)| Parameter { name: format!("w{at}"), plan: Plan { logical_shape: Vec::new(), segments }, element_size };
    Batch {
        parameters: plans.into_iter().enumerate().map(parameter).collect(),
        endpoints: Endpoints { source: numbered(source), target: numbered(target) },
        bytes_per_peer,
    }
}

/// (8, 8): rows on two locations, to columns on four.
fn rows_to_columns() -> Vec<Segment> {
    let pair = |column: u64| {
        (0_i64..).zip([0, 8]).map(move |(row, at)| segment(&[4, 2], (row, 2 * column, &[8, 1]), (column.cast_signed(), at, &[2, 1])))
    };
    (0..4).flat_map(pair).collect()
}

/// elements, chunks, sent in place, received in place
type Told = (u64, usize, bool, bool);

type Spoil = fn(&mut Segment);

fn lanes(made: &Schedule) -> Vec<((usize, usize), Vec<Told>)> {
    let round = |round: &Round| (round.elements, round.chunks.len(), round.sent_in_place, round.received_in_place);
    made.lanes.iter().map(|lane| ((lane.from, lane.to), made.rounds_of(lane).iter().map(round).collect())).collect()
}

/// Three parameters, TP2 rows -> TP4 columns, the first two processes being both. Expected by hand from the packing rule.
#[test]
fn a_column_block_of_a_row_shard_is_staged_by_its_sender_and_received_in_place_when_alone() {
    let batch = batch(vec![rows_to_columns(), rows_to_columns(), rows_to_columns()], &[0, 1], &[0, 1, 2, 3], 64, 4);
    let made = schedule(&batch, None).unwrap();
    let both = vec![(16, 2, false, false), (8, 1, false, true)];
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)];
    assert_eq!(lanes(&made), pairs.map(|pair| (pair, both.clone())));
    assert!(made.lanes.iter().all(|lane| (lane.send_arena, lane.receive_arena) == (64, 64)));
    let copies: Vec<_> = made.copies.iter().map(|copy| (copy.process, copy.parameter, copy.elements)).collect();
    assert_eq!(copies, [(0, 0, 8), (0, 1, 8), (0, 2, 8), (1, 0, 8), (1, 1, 8), (1, 2, 8)]);
    let counts = made.counts();
    assert_eq!(counts.values().map(|own| own.rounds).collect::<Vec<_>>(), [2; 4]);
    let one = counts[&1];
    assert_eq!((one.sent_bytes, one.received_bytes, one.packs, one.unpacks), (3 * 96, 96, 9, 2));
    assert_eq!((one.local_copies, one.local_copy_bytes, one.arena_bytes, one.chunks, one.lanes), (3, 96, 4 * 64, 12, 4));
    assert_eq!((counts[&3].sent_bytes, counts[&3].received_bytes, counts[&3].arena_bytes), (0, 2 * 96, 2 * 64));

    // One process sees exactly its own part of the same schedule.
    let own = schedule(&batch, Some(2)).unwrap();
    assert_eq!(lanes(&own), [((0, 2), both.clone()), ((1, 2), both)]);
    assert_eq!(own.counts(), BTreeMap::from([(2, counts[&2])]));
    assert!(own.copies.is_empty());
}

#[test]
fn packed_rows_need_no_staging() {
    let rows = [(0, 0), (0, 16), (1, 0), (1, 16)];
    let segments = (0_i64..).zip(rows).map(|(to, (from, at))| segment(&[4, 4], (from, at, &[4, 1]), (to, 0, &[4, 1])));
    let made = schedule(&batch(vec![segments.collect()], &[0, 1], &[2, 3, 4, 5], 64, 4), None).unwrap();
    let one = vec![(16, 1, true, true)];
    assert_eq!(lanes(&made), [(0, 2), (0, 3), (1, 4), (1, 5)].map(|pair| (pair, one.clone())));
    assert!(made.counts().values().all(|own| own.arena_bytes == 0 && own.rounds == 1 && own.packs + own.unpacks == 0));
}

#[test]
fn a_copy_inside_a_process_is_neither_cut_nor_staged() {
    let all = segment(&[4, 4], (0, 0, &[4, 1]), (0, 0, &[4, 1]));
    let batch = batch(vec![vec![all]], &[0], &[0], 8, 4);
    let made = schedule(&batch, None).unwrap();
    assert_eq!((made.lanes.len(), made.chunks.len()), (0, 0));
    assert_eq!(made.copies, [LocalCopy { process: 0, parameter: 0, segment: 0, elements: 16, bytes: 64 }]);
    let traffic = made.traffic(&batch);
    assert_eq!(traffic.check(), Ok(()));
    assert_eq!(traffic.flows.iter().map(|flow| (flow.from, flow.to, flow.bytes)).collect::<Vec<_>>(), [(0, 0, 64)]);
}

#[test]
fn large_segments_are_cut_along_the_outermost_axis_whose_inside_fits() {
    // 7 elements hold one row of 6: rows one by one. 20 hold three rows of a plane of 5: three and two. 60 hold two planes.
    for (most, sizes) in [(7, vec![6; 20]), (20, [18, 12].repeat(4)), (60, vec![60, 60]), (4, [4, 2].repeat(20))] {
        let shape = [4, 5, 6];
        let cut = Cut::new(&shape, most);
        let blocks: Vec<_> = (0..cut.chunks).map(|number| cut.block(&shape, number)).collect();
        assert_eq!(blocks.iter().map(|block| block.shape.iter().product()).collect::<Vec<u64>>(), sizes, "{most}");
        // In packing order the chunks walk through the segment without a gap.
        let first = |origin: &[u64]| (origin[0] * 5 + origin[1]) * 6 + origin[2];
        let starts: Vec<u64> = sizes.iter().scan(0, |at, size| Some(std::mem::replace(at, *at + size))).collect();
        assert_eq!(blocks.iter().map(|block| first(&block.origin)).collect::<Vec<_>>(), starts, "{most}");
    }
}

#[test]
fn chunks_tell_where_they_lie_on_both_sides() {
    // A (3, 4) block in a row of 8 columns, from element 2 on; 4 elements of 2 bytes a message: row by row.
    let batch = batch(vec![vec![segment(&[3, 4], (0, 2, &[8, 1]), (0, 100, &[1, 3]))]], &[5], &[1], 9, 2);
    let made = schedule(&batch, Some(5)).unwrap();
    let regions: Vec<_> = made.chunks.iter().map(|&chunk| Schedule::region(&batch, chunk).unwrap()).collect();
    assert_eq!(regions.iter().map(|at| (at.source, at.target)).collect::<Vec<_>>(), [(2, 100), (10, 101), (18, 102)]);
    assert!(regions.iter().all(|at| at.shape == [1, 4] && at.source_strides == [8, 1] && at.element_size == 2));
    assert_eq!(lanes(&made), [((5, 1), vec![(4, 1, true, false); 3])]);
    assert_eq!(Schedule::region(&batch, Chunk { parameter: 0, segment: 0, number: 3 }), None);
}

#[test]
fn rounds_follow_the_plans_order_whatever_the_order_of_the_segments() {
    let mut shuffled = rows_to_columns();
    shuffled.reverse();
    let (given, turned) = (vec![rows_to_columns()], vec![shuffled]);
    let blocks = |plans: Vec<Vec<Segment>>| {
        let batch = batch(plans, &[0, 0], &[1, 1, 1, 1], 1 << 20, 4);
        let made = schedule(&batch, None).unwrap();
        made.chunks.iter().map(|&chunk| Schedule::region(&batch, chunk).map(|at| (at.source, at.target)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(blocks(turned), blocks(given));
}

#[test]
fn a_budget_below_one_element_is_refused_even_where_nothing_is_moved() {
    for (bytes_per_peer, element_size) in [(0, 4), (3, 4), (1, 2)] {
        let error = schedule(&batch(vec![Vec::new()], &[0], &[1], bytes_per_peer, element_size), None).unwrap_err();
        assert!(error.to_string().contains("less than one element"), "{error}");
    }
    let none = Batch { parameters: Vec::new(), endpoints: Endpoints::default(), bytes_per_peer: 0 };
    assert!(schedule(&none, None).is_err());
    let weightless = schedule(&batch(vec![Vec::new()], &[0], &[1], 64, 0), None).unwrap_err();
    assert!(weightless.to_string().contains("parameter w0: elements of 0 bytes"), "{weightless}");
}

#[test]
fn a_process_that_the_endpoints_do_not_name_is_an_error() {
    let batch = batch(vec![rows_to_columns()], &[0, 1], &[0, 1, 2, 3], 64, 4);
    let error = schedule(&batch, Some(7)).unwrap_err();
    assert_eq!(error.to_string(), "process 7 is none that the endpoints name (0-3); processes are ranks of the transfer's group");
}

#[test]
fn segments_that_make_no_sense_are_refused_with_their_place() {
    let fine = || segment(&[2, 2], (0, 0, &[2, 1]), (0, 0, &[2, 1]));
    let cases: [(Spoil, &str); 7] = [
        (|at| at.source.0 = 9, "source location 9 has no process in the endpoints"),
        (|at| at.target.0 = -1, "target location -1 has no process in the endpoints"),
        (|at| at.source.2 = vec![1], "2 axes in its shape, but 1 strides at its source"),
        (|at| at.target.2 = vec![-2, 1], "its target reaches outside"),
        (|at| at.source.1 = u64::MAX, "its source reaches outside"),
        (|at| at.shape = vec![1 << 62, 4], "its source reaches outside"),
        (|at| (at.shape, at.source.2, at.target.2) = (vec![1 << 40, 1 << 40], vec![0, 0], vec![0, 0]), "more bytes than can be counted"),
    ];
    for (spoil, expected) in cases {
        let mut bad = fine();
        spoil(&mut bad);
        let error = schedule(&batch(vec![vec![fine(), bad]], &[0], &[1], 64, 4), None).unwrap_err().to_string();
        assert!(error.starts_with("parameter w0, segment 1: ") && error.contains(expected), "{error}");
    }
    let dust = batch(vec![vec![segment(&[1 << 40], (0, 0, &[1]), (0, 0, &[1]))]], &[0], &[1], 1, 1);
    assert_eq!(schedule(&dust, None), Err(ScheduleError::Chunks { chunks: 1 << 40 }));
}

#[test]
fn parameters_of_different_element_sizes_fill_rounds_by_bytes() {
    let mut batch = batch(vec![vec![segment(&[6], (0, 0, &[1]), (0, 0, &[1]))]; 3], &[0], &[1], 32, 4);
    batch.parameters[1].element_size = 1;
    batch.parameters[2].element_size = 2;
    let made = schedule(&batch, None).unwrap();
    // 24 + 6 bytes, then 12.
    assert_eq!(made.rounds.iter().map(|round| round.bytes).collect::<Vec<_>>(), [30, 12]);
}

#[test]
fn traffic_carries_the_schedules_bytes_rounds_and_staging() {
    let batch = batch(vec![rows_to_columns(); 3], &[0, 1], &[0, 1, 2, 3], 64, 4);
    let made = schedule(&batch, None).unwrap();
    let traffic = made.traffic(&batch);
    assert_eq!(traffic.check(), Ok(()));
    assert_eq!((traffic.ranks, traffic.flows.len(), traffic.chunks), (4, 8, 18));
    assert_eq!(traffic.arenas, [256, 256, 128, 128]);
    assert_eq!(traffic.bytes(), 3 * 256);
    let flow = &traffic.flows[1];
    assert_eq!((flow.from, flow.to, flow.bytes, flow.messages), (0, 2, 96, 2));
    assert_eq!((flow.staged.packs, flow.staged.pack_bytes, flow.staged.unpacks, flow.staged.unpack_bytes), (3, 96, 2, 64));
    assert_eq!(traffic.stages.iter().map(|stage| &stage.name[..]).collect::<Vec<_>>(), ["rounds", "local copies"]);
}

/// A region is packed exactly when its addresses, walked row-major, are consecutive (zero extents aside). The reference compares its
/// rule with tensors' over 2000 random cases of the same make (#9027).
#[test]
fn packed_is_told_from_strided_in_2000_random_regions() {
    let mut random = fastrand::Rng::with_seed(9027);
    let mut seen = [0, 0];
    for _ in 0..2000 {
        let shape: Vec<u64> = (0..random.usize(0..5)).map(|_| random.u64(0..4)).collect();
        let mut strides = vec![0_i64; shape.len()];
        let mut next = 1;
        for a in (0..shape.len()).rev() {
            strides[a] = if random.f64() < 0.7 { next } else { random.i64(1..=8) };
            next *= (shape[a].cast_signed()).max(1);
        }
        let mut addresses = vec![0_i64];
        for (&size, &stride) in shape.iter().zip(&strides) {
            addresses = addresses.iter().flat_map(|&at| (0..size.cast_signed()).map(move |i| at + i * stride)).collect();
        }
        let consecutive = (0..).zip(&addresses).all(|(expected, &at)| expected == at);
        assert_eq!(is_packed(&shape, &strides), consecutive, "{shape:?} {strides:?}");
        seen[usize::from(consecutive)] += 1;
        // The same through a schedule.
        let batch = batch(vec![vec![segment(&shape, (0, 0, &strides), (0, 0, &strides))]], &[0], &[1], 1 << 20, 4);
        let round = schedule(&batch, None).unwrap().rounds[0].clone();
        assert_eq!((round.sent_in_place, round.received_in_place), (consecutive, consecutive));
    }
    assert!(seen[0] > 300 && seen[1] > 300, "{seen:?}");
}

/// Over random batches: what leaves arrives, every element of every segment travels once, no round exceeds the budget, and staging
/// memory stays within its bound.
#[test]
fn random_batches_lose_nothing_and_keep_to_their_budget() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut in_place = [0, 0];
    for _ in 0..200 {
        let budget = 4 * random.u64(1..20);
        let segments = (0..random.usize(0..12)).map(|_| {
            let shape = [random.u64(1..5), random.u64(1..5), random.u64(1..5)];
            let inner = [(shape[1] * shape[2]).cast_signed(), shape[2].cast_signed(), 1];
            let wide = [inner[0] * 2, inner[1] * 2, 1];
            let strides = |wider: bool| if wider { wide } else { inner };
            segment(
                &shape,
                (random.i64(0..3), random.u64(0..50), &strides(random.bool())),
                (random.i64(0..4), random.u64(0..50), &strides(random.bool())),
            )
        });
        let batch = batch(vec![segments.collect()], &[0, 1, 2], &[1, 2, 3, 4], budget, 4);
        let made = schedule(&batch, None).unwrap();
        let mut travelled = vec![0; batch.parameters[0].plan.segments.len()];
        for round in &made.rounds {
            assert!(round.bytes <= budget && !round.chunks.is_empty());
            for &chunk in made.chunks_of(round) {
                let region = Schedule::region(&batch, chunk).unwrap();
                travelled[chunk.segment as usize] += region.shape.iter().product::<u64>();
            }
            in_place[usize::from(round.sent_in_place)] += 1;
        }
        for copy in &made.copies {
            travelled[copy.segment as usize] += copy.elements;
        }
        let segments = &batch.parameters[0].plan.segments;
        assert_eq!(travelled, segments.iter().map(Segment::elements).collect::<Vec<_>>());
        let counts = made.counts();
        let (sent, received) = (counts.values().map(|own| own.sent_bytes), counts.values().map(|own| own.received_bytes));
        assert_eq!(sent.sum::<u64>(), received.sum::<u64>());
        assert!(counts.values().all(|own| own.arena_bytes <= own.lanes * budget));
        for process in 0..5 {
            let own = schedule(&batch, Some(process)).unwrap();
            assert_eq!(own.counts()[&process], counts[&process]);
        }
    }
    assert!(in_place[0] > 50 && in_place[1] > 50, "{in_place:?}");
}
