//! What a plan copies, element by element, for any layouts and any policy (issue 6, must show a).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toposcope::plan::build::{
    Answer, Answers, Budget, ElementSizes, FirstHolder, LocalFirst, Part, Policy, Request, Settings, plans, requests,
};
use toposcope::plan::map::{Map, Maps, Piece, Segment, Shard, check, flat, gather, replicated, segmented, split};
use toposcope::plan::{Endpoints, Plan, PlanError};

/// Every index of a shape, row by row.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &extent in shape {
        all = all.into_iter().flat_map(|index| (0..extent).map(move |at| [&index[..], &[at]].concat())).collect();
    }
    all
}

/// Addresses of a walk, in the order of its indices.
fn addresses(shape: &[u64], offset: u64, strides: &[i64]) -> Vec<usize> {
    let at = |index: Vec<u64>| index.iter().zip(strides).map(|(&at, stride)| at.cast_signed() * stride).sum::<i64>();
    indices(shape).into_iter().map(|index| (offset.cast_signed() + at(index)) as usize).collect()
}

/// What a shard holds: the logical address of the element at each of its addresses.
fn contents(shard: &Shard) -> Vec<Option<usize>> {
    let mut held = vec![None; shard.shape.iter().product::<u64>() as usize];
    for Piece { shape, source, dest, .. } in &shard.pieces {
        let from = addresses(shape, source.offset, &source.strides);
        for (logical, at) in from.into_iter().zip(addresses(shape, dest.offset, &dest.strides)) {
            held[at] = Some(logical);
        }
    }
    held
}

/// Run a plan on the shards of the source; then every shard of the target holds what its map says, each address written once.
fn copies_all(plan: &Plan, source: &Map, target: &Map) -> Result<(), TestCaseError> {
    let from: BTreeMap<i64, Vec<Option<usize>>> = source.shards.iter().map(|(&location, shard)| (location, contents(shard))).collect();
    let expected: BTreeMap<i64, Vec<Option<usize>>> = target.shards.iter().map(|(&location, shard)| (location, contents(shard))).collect();
    let mut to: BTreeMap<i64, Vec<Option<usize>>> = expected.iter().map(|(&location, shard)| (location, vec![None; shard.len()])).collect();
    for own in &plan.segments {
        let read = addresses(&own.shape, own.source.1, &own.source.2);
        let written = addresses(&own.shape, own.target.1, &own.target.2);
        for (read, written) in read.into_iter().zip(written) {
            let place = &mut to.get_mut(&own.target.0).unwrap()[written];
            prop_assert!(place.is_none(), "{} is written twice", written);
            *place = from[&own.source.0][read];
        }
    }
    prop_assert_eq!(to, expected);
    Ok(())
}

/// Numbers that add up to `whole`.
fn cuts(whole: u64, parts: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..=whole, parts - 1).prop_map(move |mut edges| {
        edges.sort_unstable();
        edges.push(whole);
        let mut last = 0;
        edges.into_iter().map(|edge| edge - std::mem::replace(&mut last, edge)).collect()
    })
}

/// The same map with every shard's addresses in another order, so that pieces are no blocks of their shards any more: all of them
/// one after another, each column by column.
fn shuffled(mut map: Map) -> Map {
    for shard in map.shards.values_mut() {
        let mut at = 0;
        for piece in shard.pieces.iter_mut().rev() {
            let mut stride = 1;
            piece.dest.offset = at;
            for (own, &extent) in piece.dest.strides.iter_mut().zip(&piece.shape) {
                *own = stride;
                stride *= extent.max(1).cast_signed();
            }
            at += piece.shape.iter().product::<u64>();
        }
        shard.shape = vec![at];
    }
    map
}

/// Every second location is a copy of the one before it.
fn doubled(map: &Map) -> Map {
    let both = |location: &i64| [2 * location, 2 * location + 1];
    let mut shards = BTreeMap::new();
    for (location, shard) in &map.shards {
        let mut shard = shard.clone();
        for piece in &mut shard.pieces {
            piece.holders = piece.holders.iter().flat_map(both).collect();
        }
        shards.extend(both(location).map(|copy| (copy, shard.clone())));
    }
    Map { shape: map.shape.clone(), shards }
}

fn layout(shape: Vec<u64>) -> impl Strategy<Value = Map> {
    let axes = shape.len();
    let kinds = (0..axes, 1..5_usize, 0..5_u8).prop_flat_map(move |(axis, parts, kind)| {
        let shape = shape.clone();
        let whole = shape[axis];
        let size: u64 = shape.iter().product();
        match kind {
            0 => Just(replicated(&shape, &(0..parts.cast_signed() as i64).collect::<Vec<_>>()).unwrap()).boxed(),
            1 => cuts(whole, parts).prop_map(move |sizes| split(&shape, axis, &sizes).unwrap()).boxed(),
            2 => cuts(whole, 2)
                .prop_map(move |sizes| {
                    let parts_of = [Segment::even(sizes[0], parts), Segment::replicated(sizes[1])];
                    segmented(&shape, axis, &parts_of, parts).unwrap()
                })
                .boxed(),
            3 => prop::collection::vec(0..parts.cast_signed() as i64, whole as usize)
                .prop_shuffle()
                .prop_map(move |owners| {
                    let mut blocks: BTreeMap<i64, Vec<u64>> =
                        (0..parts.cast_signed() as i64).map(|location| (location, Vec::new())).collect();
                    (0..whole).zip(owners).for_each(|(block, owner)| blocks.get_mut(&owner).unwrap().push(block));
                    gather(&shape, axis, &blocks, 1).unwrap()
                })
                .boxed(),
            _ => cuts(size, parts)
                .prop_map(move |sizes| {
                    let mut at = 0;
                    let ranges = (0..).zip(sizes).map(|(location, size)| {
                        at += size;
                        (location, (at - size, at))
                    });
                    flat(&shape, &ranges.collect()).unwrap()
                })
                .boxed(),
        }
    });
    (kinds, any::<bool>(), any::<bool>()).prop_map(|(map, moved, twice)| {
        let map = if moved { shuffled(map) } else { map };
        if twice { doubled(&map) } else { map }
    })
}

/// Two layouts of a tensor: target, source.
fn pair() -> impl Strategy<Value = (Map, Map)> {
    prop::collection::vec(1..7_u64, 1..4).prop_flat_map(|shape| (layout(shape.clone()), layout(shape)))
}

fn one(map: &Map) -> Maps {
    Maps::from([("w".to_owned(), map.clone())])
}

/// An answer that splits each region at random, down to its elements.
fn split_at_random(request: &Request, random: &mut fastrand::Rng) -> Answer {
    let holder = |random: &mut fastrand::Rng| request.candidates[random.usize(..request.candidates.len())].location;
    if random.u8(..4) == 0 {
        return Answer::Whole(holder(random));
    }
    let mut parts = vec![(request.origin.clone(), request.shape.clone())];
    for _ in 0..random.usize(..4) {
        let at = random.usize(..parts.len());
        let axis = random.usize(..request.shape.len());
        let (mut origin, mut shape) = parts[at].clone();
        if shape[axis] > 1 {
            let first = random.u64(1..shape[axis]);
            parts[at].1[axis] = first;
            origin[axis] += first;
            shape[axis] -= first;
            parts.push((origin, shape));
        }
    }
    random.shuffle(&mut parts);
    Answer::Parts(parts.into_iter().map(|(origin, shape)| Part { origin, shape, source: holder(random) }).collect())
}

fn unsplit(policy: &dyn Policy) -> Settings<'_> {
    Settings { min_split_bytes: 0, ..Settings::new(policy) }
}

/// Ways to break answers that are good, each of a request with a region that can be broken so.
fn broken(requests: &[Request], answers: &[Answer], random: &mut fastrand::Rng) -> Vec<(&'static str, Vec<Answer>)> {
    let at = random.usize(..requests.len());
    let request = &requests[at];
    let source = request.candidates[0].location;
    let whole = Part { origin: request.origin.clone(), shape: request.shape.clone(), source };
    let with = |answer: Answer| {
        let mut all = answers.to_vec();
        all[at] = answer;
        all
    };
    let stranger = (0..100).find(|location| request.candidates.iter().all(|own| own.location != *location)).unwrap();
    let axis = random.usize(..request.shape.len());
    let beyond = |by: u64| {
        let mut part = whole.clone();
        part.origin[axis] += by;
        part
    };
    let mut less = whole.clone();
    less.shape[axis] -= 1;
    let mut more = whole.clone();
    more.shape[axis] += 1;
    let mut flat = whole.clone();
    flat.shape.push(1);
    let mut ways = vec![
        ("a stranger", with(Answer::Whole(stranger))),
        ("a stranger's part", with(Answer::Parts(vec![Part { source: stranger, ..whole.clone() }]))),
        ("no part", with(Answer::Parts(Vec::new()))),
        ("an overlap", with(Answer::Parts(vec![whole.clone(), whole.clone()]))),
        ("a gap", with(Answer::Parts(vec![less]))),
        ("too large", with(Answer::Parts(vec![more]))),
        ("beside its box", with(Answer::Parts(vec![beyond(1)]))),
        ("far away", with(Answer::Parts(vec![beyond(u64::MAX - 20)]))),
        ("another number of axes", with(Answer::Parts(vec![flat]))),
        ("too few answers", answers[1..].to_vec()),
        ("too many answers", [answers, &answers[..1]].concat()),
    ];
    if request.shape[axis] > 1 {
        // The last row is missing, the first one there twice: the right number of elements.
        let mut first = whole.clone();
        first.shape[axis] = 1;
        let mut rest = whole;
        rest.shape[axis] -= 1;
        ways.push(("an overlap and a gap that cancel out", with(Answer::Parts(vec![rest, first]))));
    }
    ways
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_layout_that_a_builder_makes_keeps_the_rules((target, source) in pair()) {
        prop_assert_eq!(check(&target, "w", "target map"), Ok(()));
        prop_assert_eq!(check(&source, "w", "source map"), Ok(()));
    }

    #[test]
    fn any_valid_answers_copy_the_same_data_and_invalid_ones_are_refused((target, source) in pair(), seed: u64) {
        let (targets, sources) = (one(&target), one(&source));
        let asked = requests(&targets, &sources, &Settings::new(&FirstHolder)).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let answers: Vec<Answer> = asked.iter().map(|request| split_at_random(request, &mut random)).collect();
        for policy in [&FirstHolder as &dyn Policy, &LocalFirst, &Answers(answers.clone())] {
            let made = plans(&targets, &sources, &unsplit(policy)).unwrap();
            copies_all(&made[0].1, &source, &target)?;
            prop_assert_eq!(made[0].2.plan_bytes, serde_json::to_string(&made[0].1).unwrap().len());
        }
        prop_assume!(!asked.is_empty());
        for (how, bad) in broken(&asked, &answers, &mut random) {
            let refused = plans(&targets, &sources, &unsplit(&Answers(bad)));
            prop_assert!(matches!(refused, Err(PlanError::Policy { .. })), "{}: {:?}", how, refused);
        }
    }

    #[test]
    fn the_order_of_pieces_does_not_change_a_plan((target, source) in pair(), seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut mixed = [target.clone(), source.clone()];
        mixed.iter_mut().flat_map(|map| map.shards.values_mut()).for_each(|shard| random.shuffle(&mut shard.pieces));
        let [other_target, other_source] = &mixed;
        let made = plans(&one(&target), &one(&source), &Settings::new(&LocalFirst)).unwrap();
        prop_assert_eq!(plans(&one(other_target), &one(other_source), &Settings::new(&LocalFirst)).unwrap(), made);
    }

    #[test]
    fn a_map_that_was_damaged_is_refused_by_the_rule_that_it_breaks((map, _) in pair(), seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let full: Vec<i64> =
            map.shards.iter().filter(|(_, shard)| shard.pieces.iter().any(|own| !own.shape.contains(&0))).map(|(&own, _)| own).collect();
        let location = full[random.usize(..full.len())];
        let pieces = &map.shards[&location].pieces;
        let filled: Vec<usize> = (0..pieces.len()).filter(|&own| !pieces[own].shape.contains(&0)).collect();
        let number = filled[random.usize(..filled.len())];
        let damaged = |change: &dyn Fn(&mut Map, usize)| {
            let mut map = map.clone();
            change(&mut map, number);
            check(&map, "w", "source map").map_err(|error| error.to_string())
        };
        let piece = move |map: &mut Map| map.shards[&location].pieces[number].clone();
        let set = move |map: &mut Map, piece: Piece| map.shards.get_mut(&location).unwrap().pieces[number] = piece;
        let rule = |found: Result<(), String>, rules: &[&str]| {
            let told = found.expect_err("damaged");
            assert!(rules.iter().any(|rule| told.contains(rule)) && told.contains("parameter w, source map"), "{told}");
        };
        rule(damaged(&|map, _| { let mut own = piece(map); own.holders = BTreeSet::new(); set(map, own); }), &["rule M1"]);
        rule(damaged(&|map, _| { let mut own = piece(map); own.scale = 0.0; set(map, own); }), &["rule M1"]);
        rule(damaged(&|map, _| { let mut own = piece(map); own.shape.push(1); set(map, own); }), &["rule M1"]);
        rule(damaged(&|map, _| { let mut own = piece(map); own.source.offset += 1_000_000; set(map, own); }), &["rule M1"]);
        rule(damaged(&|map, _| { let mut own = piece(map); own.dest.offset += 1; set(map, own); }), &["rule M2"]);
        rule(damaged(&|map, _| { map.shards.get_mut(&location).unwrap().pieces.remove(number); }), &["rule M2"]);
        rule(damaged(&|map, _| { let own = piece(map); map.shards.get_mut(&location).unwrap().pieces.push(own); }), &["rule M2"]);
        rule(damaged(&|map, _| { let mut own = piece(map); own.holders.insert(99); set(map, own); }), &["rule M5"]);
        rule(damaged(&|map, _| { map.shards.remove(&location); }), &["rule M4", "rule M5"]);
        rule(damaged(&|map, _| {
            let shard = map.shards[&location].clone();
            map.shards.insert(99, shard);
        }), &["rule M5"]);
    }
}

type Limit = fn(&mut Budget) -> &mut usize;

/// 64 x 64, rows on four locations -> columns on eight.
fn rows_to_columns() -> (Maps, Maps) {
    (one(&split(&[64, 64], 1, &[8; 8]).unwrap()), one(&split(&[64, 64], 0, &[16; 4]).unwrap()))
}

#[test]
fn what_is_over_the_budget_is_refused_and_what_is_just_within_is_not() {
    let (target, source) = rows_to_columns();
    let (_, plan, statistics) = &plans(&target, &source, &Settings::new(&FirstHolder)).unwrap()[0];
    assert_eq!(statistics.segments, 32);
    let limits: [(Limit, usize, &str); 6] = [
        (|own| &mut own.axes, 2, "axes"),
        (|own| &mut own.pieces, 8, "pieces"),
        // Eight target pieces squared; 4 x 8 pairs are fewer.
        (|own| &mut own.pair_checks, 64, "pairs"),
        (|own| &mut own.segments, 32, "segments"),
        // Each of 4 x 8 groups has one segment: nothing is compared.
        (|own| &mut own.merge_checks, 0, ""),
        (|own| &mut own.plan_bytes, plan.bytes(), "bytes of the plan"),
    ];
    for (limit, needed, name) in limits {
        let mut settings = Settings::new(&FirstHolder);
        *limit(&mut settings.budget) = needed;
        assert!(plans(&target, &source, &settings).is_ok(), "{name}");
        if needed > 0 {
            *limit(&mut settings.budget) = needed - 1;
            let error = plans(&target, &source, &settings).unwrap_err();
            assert!(matches!(error, PlanError::Budget { .. }), "{error}");
            assert!(error.to_string().contains(name) && error.to_string().contains("parameter w"), "{error}");
        }
    }
    // Blocks in another order: the comparisons are counted as if made one by one.
    let blocks = BTreeMap::from([(0, (0..64).rev().collect())]);
    let (target, source) = (one(&gather(&[64], 0, &blocks, 1).unwrap()), one(&replicated(&[64], &[0]).unwrap()));
    let mut settings = Settings::new(&FirstHolder);
    settings.budget.merge_checks = 64 * 63 / 2;
    assert_eq!(plans(&target, &source, &settings).unwrap()[0].2.segments, 64);
    settings.budget.merge_checks -= 1;
    assert!(plans(&target, &source, &settings).unwrap_err().to_string().contains("comparisons"));
}

#[test]
fn parts_that_are_too_small_to_pay_are_refused() {
    let (target, source) = (one(&replicated(&[8, 4], &[0]).unwrap()), one(&replicated(&[8, 4], &[0, 1]).unwrap()));
    let part = |from: u64, rows: u64, source| Part { origin: vec![from, 0], shape: vec![rows, 4], source };
    let halves = Answers(vec![Answer::Parts(vec![part(0, 4, 0), part(4, 4, 1)])]);
    let uneven = Answers(vec![Answer::Parts(vec![part(0, 5, 0), part(5, 3, 1)])]);
    let settings = |policy| Settings { element_size: ElementSizes::all(2), min_split_bytes: 32, ..Settings::new(policy) };
    assert_eq!(plans(&target, &source, &settings(&halves)).unwrap()[0].1.segments.len(), 2);
    let told = plans(&target, &source, &settings(&uneven)).unwrap_err().to_string();
    assert!(told.contains("part 1: 24 bytes; a part has 32 bytes or more"), "{told}");
    assert!(plans(&target, &source, &Settings::new(&halves)).unwrap_err().to_string().contains("16 elements (of unknown size)"));
}

#[test]
fn endpoints_that_lack_a_location_are_told_and_local_copies_come_first() {
    let (target, source) = (one(&replicated(&[8], &[0, 1]).unwrap()), one(&replicated(&[8], &[0, 1]).unwrap()));
    let mut endpoints = Endpoints { source: BTreeMap::from([(0, 4), (1, 5)]), target: BTreeMap::from([(0, 5), (1, 4)]) };
    let settings = Settings { endpoints: Some(&endpoints), ..Settings::new(&LocalFirst) };
    let plan = &plans(&target, &source, &settings).unwrap()[0].1;
    let ways: Vec<(i64, i64)> = plan.segments.iter().map(|own| (own.source.0, own.target.0)).collect();
    assert_eq!(ways, [(1, 0), (0, 1)]);
    endpoints.source.remove(&1);
    let settings = Settings { endpoints: Some(&endpoints), ..Settings::new(&LocalFirst) };
    let told = plans(&target, &source, &settings).unwrap_err().to_string();
    assert!(told.starts_with("parameter w, source map, location 1: ") && told.contains("\"source\""), "{told}");
}

#[test]
fn a_run_that_wraps_into_the_next_row_is_no_block() {
    let mut map = split(&[2, 3], 0, &[2]).unwrap();
    let piece = &mut map.shards.get_mut(&0).unwrap().pieces[0];
    piece.shape = vec![1, 4];
    assert!(check(&map, "", "").unwrap_err().to_string().contains("leave the tensor"));
}

#[test]
fn pieces_that_interleave_in_a_flat_shard_are_told_apart_and_a_collision_is_found() {
    // Columns 0-1 and 2 of a (4, 3) tensor in one flat shard, as a union with a column split leaves them.
    let whole = flat(&[4, 3], &BTreeMap::from([(0, (0, 12))])).unwrap();
    let cut = |columns: u64, at: u64| {
        let mut piece = whole.shards[&0].pieces[0].clone();
        piece.shape = vec![4, columns];
        (piece.source.offset, piece.dest.offset) = (at, at);
        piece
    };
    let with = |pieces: Vec<Piece>| {
        let mut map = whole.clone();
        map.shards.get_mut(&0).unwrap().pieces = pieces;
        map
    };
    let good = with(vec![cut(2, 0), cut(1, 2)]);
    assert_eq!(check(&good, "", ""), Ok(()));
    let columns = split(&[4, 3], 1, &[1, 2]).unwrap();
    let made = plans(&one(&columns), &one(&good), &Settings::new(&FirstHolder)).unwrap();
    copies_all(&made[0].1, &good, &columns).unwrap();
    let mut clash = cut(1, 2);
    clash.dest.offset = 1;
    let told = check(&with(vec![cut(2, 0), clash]), "", "").unwrap_err().to_string();
    assert!(told.starts_with("location 0, piece 1: ") && told.contains("rule M2: it shares addresses"), "{told}");
}
