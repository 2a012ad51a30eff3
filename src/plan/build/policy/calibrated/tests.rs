use proptest::prelude::*;

use super::*;
use crate::fabric::Fabric;
use crate::plan::build::Candidate;

const MIB: u64 = 1 << 20;

fn shipped(name: &str) -> Fabric {
    Fabric::shipped(name).unwrap().unwrap()
}

fn policy(prices: &dyn Prices) -> Calibrated<'_> {
    Calibrated { prices, bytes_per_peer: 8 * MIB, min_split_bytes: 8 * MIB }
}

/// Rows of a matrix of 1024 columns of 2 bytes that some processes hold, for one of them; locations are processes.
fn request(parameter: &str, to: usize, rows: std::ops::Range<u64>, holders: &[usize]) -> Request {
    let candidate = |&process: &usize| Candidate {
        location: i64::try_from(process).unwrap(),
        process: Some(process),
        offset: rows.start * 1024,
        strides: vec![1024, 1],
    };
    Request {
        parameter: parameter.into(),
        target: i64::try_from(to).unwrap(),
        process: Some(to),
        origin: vec![rows.start, 0],
        shape: vec![rows.end - rows.start, 1024],
        offset: 0,
        strides: vec![1024, 1],
        candidates: holders.iter().map(candidate).collect(),
        element_size: Some(2),
    }
}

#[test]
fn the_holder_on_the_own_host_is_asked_and_not_the_least_loaded_one_far_away() {
    let fabric = shipped("h20-2x8");
    // Held by 0 and by 8; wanted by three neighbours of 0. The plain rule takes turns.
    let requests: Vec<Request> = (1..4).map(|to| request("w", to, 0..32_768, &[0, 8])).collect();
    let policy = policy(&fabric);
    let answers = policy.answer(&requests);
    let from_far = answers.iter().zip(&requests).map(|(answer, request)| match answer {
        Answer::Whole(source) => {
            if *source == 8 {
                bytes(request, &request.shape)
            } else {
                0
            }
        }
        Answer::Parts(parts) => parts.iter().filter(|part| part.source == 8).map(|part| bytes(request, &part.shape)).sum(),
    });
    // 79.5 GB/s near and 20.2 far, at once: a fifth may come from far.
    assert!(from_far.sum::<u64>() * 4 < 3 * bytes(&requests[0], &requests[0].shape), "{answers:?}");
    let plain = LocalFirst.answer(&requests);
    assert!(policy.seconds(&requests, &answers).unwrap() < 0.8 * policy.seconds(&requests, &plain).unwrap());
}

#[test]
fn a_region_comes_in_parts_only_where_they_pay() {
    let fabric = shipped("nvswitch-32x8");
    // 256 MiB that eight ranks of another host hold, for one rank alone: its own port is the limit, and parts are of no use.
    let far = [request("w", 0, 0..131_072, &[8, 9, 10, 11])];
    let one_message = Calibrated { bytes_per_peer: 256 * MIB, ..policy(&fabric) };
    assert_eq!(one_message.answer(&far), [Answer::Whole(8)]);
    // In many messages parts are: while one holder's message is on its way, another's passes.
    assert!(matches!(policy(&fabric).answer(&far)[0], Answer::Parts(_)));
    // On the B70, 53 GB/s come from below the next switch and 27 from the other socket, at once.
    let b70 = shipped("b70-8");
    let near = [request("w", 0, 0..131_072, &[2, 3, 4, 5])];
    let chosen = policy(&b70).answer(&near);
    answers::check(&near[0], &chosen[0], 8 * MIB).unwrap();
    assert!(matches!(chosen[0], Answer::Parts(_)));
    // Below what a part costs to begin (0.3 ms at 53 GB/s: 16 MB) nothing is cut.
    let small = [request("w", 0, 0..8192, &[2, 3, 4, 5])];
    assert!(matches!(policy(&b70).answer(&small)[0], Answer::Whole(_)));
}

#[test]
fn without_processes_or_prices_the_plain_rule_answers_and_the_check_says_why() {
    let fabric = shipped("b70-8");
    let mut requests = vec![request("w", 0, 0..1024, &[1, 2]), request("w", 3, 0..1024, &[1, 2])];
    assert_eq!(policy(&fabric).check(&requests), Ok(()));
    requests[1].process = Some(9);
    assert!(policy(&fabric).check(&requests).unwrap_err().contains("rank 9 is not one of the 8 ranks"));
    assert_eq!(policy(&fabric).answer(&requests), LocalFirst.answer(&requests));
    requests[0].process = None;
    assert!(policy(&fabric).check(&requests).unwrap_err().contains("give endpoints"));
    assert_eq!(policy(&fabric).answer(&requests), LocalFirst.answer(&requests));
}

#[test]
fn the_same_requests_get_the_same_answers() {
    let fabric = shipped("b70-8");
    let requests: Vec<Request> =
        (0..8).flat_map(|to| (0..4).map(move |block| request("w", to, block * 20_000..(block + 1) * 20_000, &[1, 3, 5, 7]))).collect();
    let policy = policy(&fabric);
    assert_eq!(policy.answer(&requests), policy.answer(&requests));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn answers_are_valid_and_never_slower_than_the_plain_rule(
        fabric in proptest::sample::select(vec!["b70-8", "h20-8", "h20-2x8", "nvswitch-8"]),
        wanted in proptest::collection::vec((0_usize..16, 1_u64..60_000, proptest::sample::subsequence((0_usize..16).collect::<Vec<_>>(), 1..6)), 1..24),
        least in 1_u64..(32 * MIB),
    ) {
        let fabric = shipped(fabric);
        let world = fabric.world();
        let requests: Vec<Request> = wanted
            .into_iter()
            .enumerate()
            .map(|(number, (to, rows, holders))| {
                let mut holders: Vec<usize> = holders.into_iter().map(|rank| rank % world).collect();
                holders.sort_unstable();
                holders.dedup();
                request(&format!("w{}", number / 4), to % world, 0..rows, &holders)
            })
            .collect();
        let policy = Calibrated { prices: &fabric, bytes_per_peer: 8 * MIB, min_split_bytes: least };
        let chosen = policy.answer(&requests);
        prop_assert_eq!(chosen.len(), requests.len());
        for (request, answer) in requests.iter().zip(&chosen) {
            prop_assert_eq!(answers::check(request, answer, least), Ok(()));
        }
        let plain = policy.seconds(&requests, &LocalFirst.answer(&requests)).unwrap();
        prop_assert!(policy.seconds(&requests, &chosen).unwrap() <= plain);
    }
}
