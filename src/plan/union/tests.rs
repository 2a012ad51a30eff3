mod planned;

use std::collections::BTreeMap;

use super::*;

fn piece(shape: &[u64], source: (u64, &[i64]), dest: (u64, &[i64]), holders: &[i64]) -> Piece {
    let walk = |(offset, strides): (u64, &[i64])| Walk { offset, strides: strides.to_vec() };
    Piece { shape: shape.to_vec(), source: walk(source), dest: walk(dest), holders: holders.iter().copied().collect(), scale: 1.0 }
}

fn map(shape: &[u64], shards: Vec<(i64, &[u64], Vec<Piece>)>) -> Map {
    let shard = |(location, shape, pieces): (i64, &[u64], Vec<Piece>)| (location, Shard { shape: shape.to_vec(), pieces });
    Map { shape: shape.to_vec(), shards: shards.into_iter().map(shard).collect() }
}

/// A (rows, columns) tensor cut at `at` along an axis, on locations from `first` on; `copies` hold each cut.
fn cut(shape: [u64; 2], axis: usize, at: &[u64], first: i64, copies: i64) -> Map {
    let mut shards = Vec::new();
    let (mut from, row) = (0, shape[1].cast_signed());
    for (number, &size) in (0_i64..).zip(at) {
        let own = if axis == 0 { [size, shape[1]] } else { [shape[0], size] };
        let offset = if axis == 0 { from * shape[1] } else { from };
        let holders: Vec<i64> = (0..copies).map(|copy| first + number * copies + copy).collect();
        for &location in &holders {
            let pieces = vec![piece(&own, (offset, &[row, 1]), (0, &[own[1].cast_signed(), 1]), &holders)];
            shards.push((location, own.to_vec(), pieces));
        }
        from += size;
    }
    map(&shape, shards.iter().map(|(location, own, pieces)| (*location, &own[..], pieces.clone())).collect())
}

/// Flat partitions of the elements, as ZeRO-3 makes them: up to three blocks (the rest of a row, whole rows, the begin of a row).
fn flat(shape: [u64; 2], ends: &[u64], first: i64) -> Map {
    let row = shape[1];
    let mut shards = Vec::new();
    let mut from = 0;
    for (location, &to) in (first..).zip(ends) {
        let mut pieces = Vec::new();
        let mut at = from;
        while at < to {
            let whole = at % row == 0 && to - at >= row;
            let rows = if whole { (to - at) / row } else { 1 };
            let columns = if whole { row } else { (row - at % row).min(to - at) };
            pieces.push(piece(&[rows, columns], (at, &[row.cast_signed(), 1]), (at - from, &[row.cast_signed(), 1]), &[location]));
            at += rows * columns;
        }
        shards.push((location, vec![to - from], pieces));
        from = to;
    }
    map(&shape, shards.iter().map(|(location, own, pieces)| (*location, &own[..], pieces.clone())).collect())
}

fn walk_of(piece: &Piece) -> Vec<(u64, u64)> {
    let mut walked = vec![(piece.source.offset.cast_signed(), piece.dest.offset.cast_signed())];
    for (a, &size) in piece.shape.iter().enumerate() {
        let step = |&(from, to): &(i64, i64)| {
            let (s, d) = (piece.source.strides[a], piece.dest.strides[a]);
            (0..size.cast_signed()).map(move |i| (from + i * s, to + i * d)).collect::<Vec<_>>()
        };
        walked = walked.iter().flat_map(step).collect();
    }
    walked.into_iter().map(|(from, to)| (from.cast_unsigned(), to.cast_unsigned())).collect()
}

/// By location: shard address -> element of the tensor.
fn extracted(map: &Map) -> BTreeMap<i64, BTreeMap<u64, u64>> {
    let of = |shard: &Shard| shard.pieces.iter().flat_map(walk_of).map(|(element, address)| (address, element)).collect();
    map.shards.iter().map(|(&location, shard)| (location, of(shard))).collect()
}

/// By element: the locations that hold it, and the holders that its pieces tell, which must be the same set in each of them.
fn holders(map: &Map) -> BTreeMap<u64, BTreeSet<i64>> {
    let mut own: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for (&location, elements) in &extracted(map) {
        for &element in elements.values() {
            own.entry(element).or_default().insert(location);
        }
    }
    for (piece, element) in
        map.shards.values().flat_map(|shard| &shard.pieces).flat_map(|piece| walk_of(piece).into_iter().map(move |(e, _)| (piece, e)))
    {
        assert_eq!(piece.holders, own[&element], "element {element}");
    }
    own
}

/// Blocks of the tensor that pieces are, each once: equal or disjoint, or nobody could plan from them.
fn blocks_are_disjoint(map: &Map) {
    let covers: BTreeSet<Vec<u64>> = map
        .shards
        .values()
        .flat_map(|shard| &shard.pieces)
        .map(|piece| walk_of(piece).into_iter().map(|(element, _)| element).collect())
        .collect();
    let mut seen = BTreeSet::new();
    for element in covers.iter().flatten() {
        assert!(seen.insert(element), "element {element} is in two different blocks");
    }
}

fn one(map: &Map) -> Maps {
    Maps::from([("w".to_owned(), map.clone())])
}

fn union_map(maps: &[&Map]) -> Map {
    let layouts: Vec<Maps> = maps.iter().map(|map| one(map)).collect();
    union(&layouts).unwrap().remove("w").unwrap()
}

/// What a union must be, element by element.
fn check(maps: &[&Map]) -> Map {
    let made = union_map(maps);
    let kept: BTreeMap<_, _> = maps.iter().flat_map(|map| extracted(map)).collect();
    assert_eq!(extracted(&made), kept);
    let mut expected: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for map in maps {
        for (element, own) in holders(map) {
            expected.entry(element).or_default().extend(own);
        }
    }
    assert_eq!(holders(&made), expected);
    blocks_are_disjoint(&made);
    made
}

fn pieces(map: &Map) -> usize {
    map.shards.values().map(|shard| shard.pieces.len()).sum()
}

/// Location 0 holds a whole (2, 3), location 1 its rows swapped, location 10 a copy. The reference's first version placed elements twice
/// (#9052).
#[test]
fn replicas_that_split_a_block_differently_are_cut_alike() {
    let rows = |from, dest| piece(&[1, 3], (from, &[3, 1]), (dest, &[3, 1]), &[0, 1]);
    let whole = |holders: &[i64]| piece(&[2, 3], (0, &[3, 1]), (0, &[3, 1]), holders);
    let a = map(&[2, 3], vec![(0, &[2, 3], vec![whole(&[0, 1])]), (1, &[2, 3], vec![rows(0, 3), rows(3, 0)])]);
    let b = map(&[2, 3], vec![(10, &[2, 3], vec![whole(&[10])])]);
    let made = check(&[&a, &b]);
    assert_eq!(pieces(&made), 6);
    assert!(made.shards.values().flat_map(|shard| &shard.pieces).all(|piece| piece.holders == BTreeSet::from([0, 1, 10])));
}

/// The shapes and cuts of the worked cases, by hand.
#[test]
fn rows_and_columns_are_cut_where_the_other_layout_is() {
    let whole = |shape: [u64; 2], first| cut(shape, 0, &[shape[0]], first, 1);
    let cases: [(Vec<Map>, usize); 7] = [
        (vec![whole([8, 6], 0), cut([8, 6], 1, &[3, 3], 10, 1), whole([8, 6], 20)], 6),
        (vec![cut([8, 6], 0, &[3, 3, 2], 0, 1), cut([8, 6], 1, &[2, 2, 1, 1], 10, 1)], 24),
        (vec![cut([12, 5], 0, &[6, 6], 0, 1), whole([12, 5], 10)], 4),
        (vec![whole([12, 5], 0), cut([12, 5], 1, &[2, 1, 1, 1], 10, 1)], 8),
        (vec![whole([8, 6], 0), cut([8, 6], 0, &[4, 4], 10, 1), whole([8, 6], 20)], 6),
        (vec![cut([12, 5], 0, &[3, 3, 3, 3], 0, 1), whole([12, 5], 10)], 8),
        (vec![cut([9, 4], 0, &[5, 4], 0, 1), cut([9, 4], 1, &[2, 2], 10, 1)], 8),
    ];
    for (maps, expected) in cases {
        let made = check(&maps.iter().collect::<Vec<_>>());
        assert_eq!(pieces(&made), expected);
    }
}

#[test]
fn what_no_other_layout_divides_stays_whole() {
    let a = cut([1000, 4], 0, &[500, 500], 0, 2);
    assert_eq!(check(&[&a]), a);
    // A corner of one layout's block cuts the rest into two, not into a grid.
    let corner = map(&[8, 8], vec![(9, &[2, 2], vec![piece(&[2, 2], (0, &[8, 1]), (0, &[2, 1]), &[9])])]);
    assert_eq!(pieces(&check(&[&cut([8, 8], 0, &[8], 0, 1), &corner])), 1 + 3);
}

#[test]
fn empty_pieces_and_tensors_without_axes_or_elements_are_legal() {
    let empty = piece(&[0, 3], (6, &[3, 1]), (6, &[3, 1]), &[7]);
    let mut a = cut([2, 3], 0, &[2], 7, 1);
    a.shards.get_mut(&7).unwrap().pieces.push(empty);
    assert_eq!(pieces(&check(&[&a, &cut([2, 3], 1, &[1, 2], 0, 1)])), 4);
    let scalar = |location| map(&[], vec![(location, &[], vec![piece(&[], (0, &[]), (0, &[]), &[location])])]);
    assert!(union_map(&[&scalar(0), &scalar(1)]).shards[&1].pieces[0].holders == BTreeSet::from([0, 1]));
    let none = |location| map(&[0, 4], vec![(location, &[0, 4], vec![piece(&[0, 4], (0, &[4, 1]), (0, &[4, 1]), &[location])])]);
    assert_eq!(pieces(&union_map(&[&none(0), &none(1)])), 0);
}

#[test]
fn parameters_are_merged_by_name_and_those_of_one_layout_stay() {
    let (a, b) = (cut([4, 4], 0, &[4], 0, 1), cut([4, 4], 1, &[2, 2], 10, 1));
    let made = union(&[Maps::from([("w".to_owned(), a.clone()), ("b".to_owned(), a.clone())]), one(&b)]).unwrap();
    assert_eq!(made["b"], a);
    assert_eq!(made["w"], union_map(&[&a, &b]));
}

#[test]
fn what_cannot_be_merged_is_refused_with_its_place() {
    let whole = cut([2, 3], 0, &[2], 0, 1);
    let odd =
        |shape: &[u64], strides: &[i64], offset| map(&[2, 3], vec![(5, &[6], vec![piece(shape, (offset, strides), (0, &[3, 1]), &[5])])]);
    let refused = |maps: &[&Map]| union(&maps.iter().map(|map| one(map)).collect::<Vec<_>>()).unwrap_err().to_string();
    let cases = [
        (refused(&[]), "no layouts"),
        (refused(&[&whole, &whole]), "parameter w, location 0: invalid: in more than one layout"),
        (refused(&[&whole, &cut([3, 2], 0, &[3], 9, 1)]), "parameter w: invalid: its shape is [2, 3] in one layout and [3, 2] in another"),
        (
            refused(&[&whole, &odd(&[3, 2], &[1, 3], 0)]),
            "parameter w, location 5, piece 0: not supported: no block of the tensor: stride 1 on axis 0",
        ),
        (refused(&[&whole, &odd(&[1, 4], &[3, 1], 0)]), "no block of the tensor: 4 elements from 0 on along axis 1, which has 3"),
        (refused(&[&whole, &odd(&[1, 1], &[3, 1], 6)]), "no block of the tensor: 1 elements from 2 on along axis 0, which has 2"),
        (refused(&[&whole, &odd(&[2], &[1], 0)]), "1 axes, 1 source and 2 dest strides: expected 2 of each"),
    ];
    for (told, expected) in cases {
        assert!(told.contains(expected), "{told}\n{expected}");
    }
}

/// Sizes that sum to `whole`.
fn sizes(random: &mut fastrand::Rng, whole: u64) -> Vec<u64> {
    let mut at: BTreeSet<u64> = (0..random.usize(0..4)).map(|_| random.u64(0..whole)).collect();
    at.remove(&0);
    at.insert(whole);
    at.into_iter().scan(0, |from, to| Some(to - std::mem::replace(from, to))).collect()
}

/// A random layout of a tensor: rows, columns or flat partitions, some with replicas.
fn layout(random: &mut fastrand::Rng, shape: [u64; 2], first: i64) -> Map {
    let axis = random.usize(0..3);
    let copies = random.i64(1..3);
    if axis < 2 {
        let at = sizes(random, shape[axis]);
        return cut(shape, axis, &at, first, copies);
    }
    let ends: Vec<u64> = sizes(random, shape[0] * shape[1])
        .into_iter()
        .scan(0, |end, size| {
            *end += size;
            Some(*end)
        })
        .collect();
    flat(shape, &ends, first)
}

#[test]
fn unions_of_300_random_sets_of_layouts_are_right_element_by_element_in_any_order() {
    let mut random = fastrand::Rng::with_seed(9052);
    let mut several = 0;
    for _ in 0..300 {
        let shape = [random.u64(1..10), random.u64(1..10)];
        let count = random.i64(2..5);
        let maps: Vec<Map> = (0..count).map(|at| layout(&mut random, shape, 10 * at)).collect();
        let mut order: Vec<&Map> = maps.iter().collect();
        let made = check(&order);
        several += usize::from(order.len() > 2);
        for _ in 0..3 {
            random.shuffle(&mut order);
            assert_eq!(union_map(&order), made);
        }
        // Merged two by two, the holders are the same.
        let pairwise = order[1..].iter().fold(order[0].clone(), |sum, map| union_map(&[&sum, map]));
        assert_eq!(holders(&pairwise), holders(&made));
    }
    assert!(several > 150);
}

#[test]
fn more_axes_or_cells_than_can_be_looked_at_are_refused_at_once() {
    let whole = |shape: &[u64], holder: i64| {
        let strides: Vec<i64> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<u64>().cast_signed()).collect();
        map(shape, vec![(holder, shape, vec![piece(shape, (0, &strides), (0, &strides), &[holder])])])
    };
    let axes = [1; 9];
    let refused = union(&[one(&whole(&axes, 0)), one(&whole(&axes, 1))]).unwrap_err();
    assert!(matches!(&refused, PlanError::Budget { what, .. } if what.contains("9 axes, 8 at most")), "{refused}");
    // Thin slabs across each of 6 axes: 30^6 cells between their edges.
    let slab = |axis: usize, at: u64| {
        let mut block = Block { origin: vec![0; 6], extent: vec![30; 6] };
        (block.origin[axis], block.extent[axis]) = (at, 1);
        block
    };
    let slabs: Vec<Block> = (0..6).flat_map(|axis| (0..30).map(move |at| slab(axis, at))).collect();
    assert_eq!(refine(&slabs, 10_000), None);
    assert_eq!(refine(&slabs[..60], 10_000).map(|parts| parts.len()), Some(900));
}
