use std::collections::BTreeMap;

use super::*;
use crate::plan::Transfers;
use crate::plan::work::work;

const MIB: u64 = 1 << 20;

fn ground(hosts: &[usize]) -> Ground {
    let mut next = 0;
    let mut host = |&ranks: &usize| {
        next += ranks;
        (next - ranks..next).collect::<Vec<_>>()
    };
    Ground { world: hosts.iter().sum(), hosts: hosts.iter().map(&mut host).collect() }
}

fn amounts() -> Amounts {
    Amounts { sizes: vec![1000], model: 8 * MIB }
}

fn cases(name: &str, ground: &Ground) -> Vec<Case> {
    let (cases, lacks) = Scenario::named(name).unwrap().cases(ground, &amounts());
    assert_eq!(lacks, [], "{name}");
    cases
}

/// Who sends how much to whom, of all plans of a case together.
fn pairs(case: &Case) -> BTreeMap<(usize, usize), u64> {
    let mut pairs = BTreeMap::new();
    for plan in case.plans(None).unwrap() {
        let traffic = plan.transfers.traffic().unwrap();
        assert_eq!(plan.bytes, traffic.bytes());
        for flow in traffic.flows {
            *pairs.entry((flow.from, flow.to)).or_insert(0) += flow.bytes;
        }
    }
    pairs
}

#[test]
fn every_scenario_is_found_by_its_own_name() {
    let all = Scenario::all();
    for (at, scenario) in all.iter().enumerate() {
        assert_eq!(all.iter().position(|other| other.name() == scenario.name()), Some(at));
        assert_eq!(Scenario::named(&scenario.name()), Some(*scenario));
        assert!(!scenario.about().is_empty());
    }
    assert_eq!(Scenario::named("fan"), None);
}

/// A row of the published tables: name, width, number of plans, and the pairs that its definition has on 2 x 8 ranks.
type Row<'a> = (&'a str, usize, usize, Vec<(usize, usize)>);

#[test]
fn on_two_hosts_of_eight_each_row_has_the_published_width_and_exactly_its_transfers() {
    let ground = ground(&[8, 8]);
    let each = |from: std::ops::Range<usize>, to: std::ops::Range<usize>| -> Vec<(usize, usize)> {
        from.flat_map(|from| to.clone().map(move |to| (from, to))).collect()
    };
    let inside: Vec<_> = each(0..8, 0..8).into_iter().filter(|(from, to)| from != to).collect();
    let partners: Vec<_> = (0..8).flat_map(|rank| [(rank, rank + 8), (rank + 8, rank)]).collect();
    let ring: Vec<_> = (0..8).flat_map(|rank| [(rank, rank + 8), (rank + 8, (rank + 1) % 8)]).collect();
    let rows: Vec<Row<'_>> = vec![
        ("peer", 1, 56, inside),
        ("fan_out", 7, 1, each(0..1, 1..8)),
        ("fan_in", 7, 1, each(1..8, 0..1)),
        ("pairs", 4, 1, vec![(0, 1), (2, 3), (4, 5), (6, 7)]),
        ("bipartite_2x2", 2, 1, each(0..2, 2..4)),
        ("bipartite_4x4", 4, 1, each(0..4, 4..8)),
        ("ring", 8, 1, (0..8).map(|rank| (rank, (rank + 1) % 8)).collect()),
        ("xpeer", 1, 16, partners),
        ("xfan_out", 8, 1, each(0..1, 8..16)),
        ("xfan_in", 8, 1, each(8..16, 0..1)),
        ("xpairs", 8, 1, (0..8).map(|rank| (rank, rank + 8)).collect()),
        ("xbipartite_2x2", 2, 1, each(0..2, 8..10)),
        ("xbipartite_4x4", 4, 1, each(0..4, 8..12)),
        ("xbipartite", 8, 1, each(0..8, 8..16)),
        ("xring", 16, 1, ring),
        ("mixed_fan_out", 15, 1, each(0..1, 1..16)),
    ];
    for (name, width, plans, mut expected) in rows {
        let own = cases(name, &ground);
        let [case] = &own[..] else { panic!("{name}: {own:?}") };
        assert_eq!((case.width, case.plans(None).unwrap().len(), case.bytes), (width, plans, 1000), "{name}");
        expected.sort_unstable();
        assert_eq!(pairs(case).into_iter().collect::<Vec<_>>(), expected.iter().map(|&pair| (pair, 1000)).collect::<Vec<_>>(), "{name}");
    }
}

/// "2048 MiB": 112 pairs within hosts have 896 MiB of it, 128 pairs across 1024, and what stays where it is 128.
#[test]
fn a_strided_matrix_has_the_published_parts() {
    let model = 8 << 30;
    let (own, _) = Scenario::Strided { across: true }.cases(&ground(&[8, 8]), &Amounts { model, ..amounts() });
    assert_eq!(own.iter().map(|case| (case.width, case.bytes)).collect::<Vec<_>>(), [(16, 512 * MIB), (16, 2048 * MIB)]);
    let pairs = pairs(&own[1]);
    let sum = |want: fn(usize, usize) -> bool| pairs.iter().filter(|((from, to), _)| want(*from, *to)).map(|(_, bytes)| bytes).sum::<u64>();
    assert_eq!(pairs.len(), 256);
    assert_eq!(sum(|from, to| from != to && from / 8 == to / 8), 896 * MIB);
    assert_eq!(sum(|from, to| from / 8 != to / 8), 1024 * MIB);
    assert_eq!(sum(|from, to| from == to), 128 * MIB);
    // Strided where they are read: packed before they are sent.
    let plan = own[1].plans(Some(8 * MIB)).unwrap().remove(0);
    let traffic = plan.transfers.traffic().unwrap();
    assert!(traffic.flows.iter().filter(|flow| flow.from != flow.to).all(|flow| flow.staged.pack_bytes == flow.bytes));
}

#[test]
fn weight_syncs_bring_every_engine_the_model_once_and_incasts_end_in_rank_0() {
    let ground = ground(&[8, 8]);
    for name in ["sync_direct", "sync_relay", "sync_sharded", "sync_plan", "sync_ring"] {
        let own = cases(name, &ground);
        let pairs = pairs(&own[0]);
        for engine in 8..16 {
            let into: u64 = pairs.iter().filter(|((_, to), _)| *to == engine).map(|(_, bytes)| bytes).sum();
            assert_eq!(into, 8 * MIB, "{name}: {engine}");
        }
        assert!(pairs.keys().all(|(_, to)| *to >= 8), "{name}");
        let across: u64 = pairs.iter().filter(|((from, _), _)| *from < 8).map(|(_, bytes)| bytes).sum();
        let times = if matches!(name, "sync_direct" | "sync_sharded") { 8 } else { 1 };
        assert_eq!(across, times * 8 * MIB, "{name}");
    }
    let incast = cases("incast", &ground);
    assert_eq!(incast.iter().map(|case| case.width).collect::<Vec<_>>(), [1, 2, 4, 8]);
    for case in &incast {
        let expected = (8..8 + case.width).map(|from| ((from, 0), MIB)).collect();
        assert_eq!(pairs(case), expected, "an eighth of the model from each");
    }
    let staging = cases("staging", &ground);
    let budgets: Vec<_> = staging.iter().map(|case| (case.pattern.as_str(), case.budget.unwrap() / MIB)).collect();
    let both = ["direct", "sharded direct"].into_iter().flat_map(|name| [8, 64, 256].map(|budget| (name, budget)));
    assert_eq!(budgets, both.collect::<Vec<_>>());
}

#[test]
fn a_staged_method_cuts_what_one_rank_sends_another_into_messages_of_its_budget() {
    let (own, _) = Scenario::Pairs { across: false }.cases(&ground(&[4]), &Amounts { sizes: vec![20 * MIB], model: 1 });
    let messages = |message: Option<u64>| {
        let Transfers::Traffic(traffic) = own[0].plans(message).unwrap().remove(0).transfers else { panic!() };
        traffic.flows.iter().map(|flow| flow.messages).collect::<Vec<_>>()
    };
    assert_eq!((messages(None), messages(Some(8 * MIB))), (vec![1, 1], vec![3, 3]));
    // The row's own budget wins.
    let staging = Scenario::Staging.cases(&ground(&[1, 1]), &Amounts { sizes: vec![1], model: 100 * MIB }).0;
    let messages = |case: &Case| case.plans(Some(MIB)).unwrap()[0].transfers.traffic().unwrap().flows[0].messages;
    assert_eq!(staging.iter().take(3).map(messages).collect::<Vec<_>>(), [13, 2, 1]);
}

/// What ranks would compare in the end is what the definition moves, on hosts that are not alike, too.
#[test]
fn all_that_is_possible_can_be_run_whatever_the_hosts() {
    for hosts in [&[2][..], &[3], &[1, 1], &[3, 2], &[2, 4, 1], &[1, 1, 1, 5]] {
        let ground = ground(hosts);
        for scenario in Scenario::all() {
            let (cases, lacks) = scenario.cases(&ground, &amounts());
            assert!(!cases.is_empty() || !lacks.is_empty(), "{hosts:?}: {}", scenario.name());
            for plan in cases.iter().flat_map(|case| case.plans(Some(100_000)).unwrap()) {
                let (work, traffic) = work(&plan.transfers, ground.world).unwrap();
                work.check(ground.world).unwrap();
                assert_eq!(traffic.bytes(), plan.bytes, "{hosts:?}: {}", scenario.name());
            }
        }
    }
}

#[test]
fn what_cannot_be_is_told_with_what_it_needs() {
    let why = |name: &str, hosts: &[usize]| {
        let (cases, mut lacks) = Scenario::named(name).unwrap().cases(&ground(hosts), &amounts());
        assert!(cases.is_empty() && lacks.len() == 1, "{name}: {cases:?}");
        lacks.remove(0).why
    };
    assert!(why("xpeer", &[4]).contains("needs two hosts"));
    assert!(why("sync_plan", &[4]).contains("needs two hosts"));
    assert!(why("bipartite_4x4", &[7, 3]).contains("needs 8 ranks on one host; the most that one has is 7"));
    assert!(why("xbipartite_4x4", &[7, 3]).contains("needs 4 ranks on each of two hosts; there are 7 and 3"));
    assert!(why("peer", &[1, 1]).contains("needs 2 ranks on one host"));
    let (cases, lacks) = Scenario::Incast.cases(&ground(&[2, 3]), &amounts());
    assert_eq!(cases.iter().map(|case| case.width).collect::<Vec<_>>(), [1, 2]);
    let told: Vec<_> = lacks.iter().map(|lack| lack.pattern.as_str()).collect();
    assert!(told == ["incast 4 → 1", "incast 8 → 1"] && lacks[0].why.contains("there are 3"), "{lacks:?}");
}

#[test]
fn sets_of_ranks_are_taken_as_hosts_and_the_others_take_no_part() {
    let given = Ground::given(6, vec![vec![4, 5], vec![1, 2]]).unwrap();
    let own = cases("sync_relay", &given);
    assert_eq!(pairs(&own[0]), [((4, 1), 8 * MIB), ((1, 2), 8 * MIB)].into());
    assert!(Ground::given(4, vec![vec![0, 1], vec![1]]).unwrap_err().contains("rank 1 is in two sets"));
    assert!(Ground::given(4, vec![vec![4]]).unwrap_err().contains("rank 4 is not one of the 4"));
    assert!(Ground::given(4, vec![vec![0], Vec::new()]).is_err());
}

#[test]
fn figures_are_rates_of_all_transfers_together_or_milliseconds_and_medians_over_plans() {
    let ground = ground(&[2, 2]);
    let rate = &cases("peer", &ground)[0];
    assert!((rate.figure(&[2_000_000_000; 3], &[1.0, 4.0, 2.0]) - 1.0).abs() < 1e-12);
    let time = &cases("sync_direct", &ground)[0];
    assert!((time.figure(&[5], &[0.25]) - 250.0).abs() < 1e-12);
    assert!(rate.figure(&[], &[]).is_nan());
}
