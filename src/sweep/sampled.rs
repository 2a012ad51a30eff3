//! Large worlds: some pairs of each rank instead of all.

use super::hosts::ByHost;

/// Pairs (sender, receiver) with `k` from each rank, as positions in `by_host`'s numbering; ascending.
///
/// In equal parts within hosts and between them, as far as a rank's host has so many ranks; the seed decides which. Every
/// rank receives about as many as it sends: the pairs are taken from permutations (a shift within each host; a shift of
/// the hosts together with a shift within them).
pub(super) fn sampled(by_host: &ByHost, k: usize, seed: u64) -> Vec<(u32, u32)> {
    let mut rng = fastrand::Rng::with_seed(seed ^ 0x5a3b_1e4d);
    let hosts = by_host.shuffled(&mut rng);
    let (count, largest) = (hosts.len(), hosts.iter().map(Vec::len).max().unwrap_or(0));
    let total: usize = hosts.iter().map(Vec::len).sum();
    // What one class cannot give, the other does.
    let (inside, outside) = (largest.saturating_sub(1), total - hosts.iter().map(Vec::len).min().unwrap_or(0));
    let outside = if count > 1 { outside } else { 0 };
    let within = (k / 2).max(k.saturating_sub(outside)).min(inside);
    let between = (k - within.min(k)).min(outside);
    let mut shifts: Vec<usize> = (1..largest).collect();
    rng.shuffle(&mut shifts);
    let mut ways: Vec<(usize, usize)> = (1..count).flat_map(|step| (0..largest).map(move |shift| (step, shift))).collect();
    rng.shuffle(&mut ways);
    let mut pairs = Vec::with_capacity(total * k);
    for (host, members) in hosts.iter().enumerate() {
        for (at, &from) in members.iter().enumerate() {
            let own = shifts.iter().filter(|&&shift| shift < members.len()).map(|&shift| members[(at + shift) % members.len()]);
            pairs.extend(own.take(within).map(|to| (from, to)));
            let others = ways.iter().filter_map(|&(step, shift)| hosts[(host + step) % count].get((at + shift) % largest).copied());
            pairs.extend(others.take(between).map(|to| (from, to)));
        }
    }
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sizes: &[usize], k: usize) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let node_of: Vec<usize> = sizes.iter().enumerate().flat_map(|(host, &size)| std::iter::repeat_n(host, size)).collect();
        let pairs = sampled(&ByHost::new(&node_of), k, 3);
        let (mut sent, mut received, mut within) = (vec![0; node_of.len()], vec![0; node_of.len()], vec![0; node_of.len()]);
        assert!(pairs.windows(2).all(|two| two[0] < two[1]), "each once, in order");
        for (from, to) in pairs {
            let (from, to) = (from as usize, to as usize);
            assert_ne!(from, to);
            sent[from] += 1;
            received[to] += 1;
            within[from] += usize::from(node_of[from] == node_of[to]);
        }
        (sent, received, within)
    }

    #[test]
    fn every_rank_sends_and_receives_its_share_in_both_classes() {
        let (sent, received, within) = counts(&[8; 16], 8);
        assert!(sent.iter().chain(&received).all(|&count| count == 8) && within.iter().all(|&count| count == 4));
        // One host, and hosts of one rank: there is one class only.
        let (sent, _, within) = counts(&[16], 5);
        assert!(sent == [5; 16] && within == [5; 16]);
        let (sent, received, within) = counts(&[1; 16], 5);
        assert!(sent == [5; 16] && received == [5; 16] && within == [0; 16]);
        // Two hosts: a shift of the hosts alone would give one way only.
        let (sent, received, within) = counts(&[8, 8], 8);
        assert!(sent.iter().chain(&received).all(|&count| count == 8) && within == [4; 16]);
        // Hosts too small for their half.
        let (sent, _, within) = counts(&[2; 8], 8);
        assert!(sent == [8; 16] && within == [1; 16], "{sent:?} {within:?}");
    }

    #[test]
    fn unequal_hosts_come_close() {
        let (sent, received, _) = counts(&[8, 8, 3, 8, 5], 6);
        assert!(sent.iter().all(|&count| (5..=6).contains(&count)), "{sent:?}");
        assert!(received.iter().all(|&count| (3..=10).contains(&count)), "{received:?}");
    }

    #[test]
    fn more_than_there_are_is_all_of_them() {
        let (sent, _, _) = counts(&[3, 3], 100);
        assert_eq!(sent, [5; 6]);
    }
}
