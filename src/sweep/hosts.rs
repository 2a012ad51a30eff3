//! Who sits together, and rounds of pairs over it: the circle method, host by host.

/// Members by host. A member is a position among the ranks that are measured.
#[derive(Debug, Clone)]
pub(super) struct ByHost {
    hosts: Vec<Vec<u32>>,
}

impl ByHost {
    /// `node_of[member]` names the host.
    pub(super) fn new(node_of: &[usize]) -> Self {
        let mut hosts: Vec<Vec<u32>> = vec![Vec::new(); node_of.iter().max().map_or(0, |&most| most + 1)];
        for (member, &host) in node_of.iter().enumerate() {
            hosts[host].push(member as u32);
        }
        hosts.retain(|members| !members.is_empty());
        Self { hosts }
    }

    /// The hosts and the members of each in a random order.
    pub(super) fn shuffled(&self, rng: &mut fastrand::Rng) -> Vec<Vec<u32>> {
        let mut hosts = self.hosts.clone();
        rng.shuffle(&mut hosts);
        for members in &mut hosts {
            rng.shuffle(members);
        }
        hosts
    }

    /// Members on each host.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.hosts.iter().map(|members| members.len() as u64)
    }

    /// Every pair within hosts, in base rounds in which nobody appears twice, and every pair between hosts likewise;
    /// `both` for both directions, in rounds of their own.
    ///
    /// The circle method within each host takes n − 1 rounds of its members; between hosts, a circle of the hosts and, for
    /// each two that meet, n shifts of the one's members against the other's. With equal hosts that is as many rounds as a
    /// circle of all members would take, but each loads all hosts alike, with one class of paths.
    pub(super) fn rounds(&self, both: bool, rng: &mut fastrand::Rng) -> [Vec<(u32, u32)>; 2] {
        let hosts = self.shuffled(rng);
        [within(&hosts, both, rng), between(&hosts, both, rng)]
    }
}

/// Meetings of one base round of `n` members: the circle method. Nobody meets the empty seat of an odd number.
fn circle(n: usize, round: usize) -> impl Iterator<Item = (usize, usize)> {
    let seats = n + n % 2;
    let turning = seats.max(2) - 1;
    (0..seats / 2).filter_map(move |slot| {
        let (a, b) = if slot == 0 { (turning, round) } else { ((round + slot) % turning, (round + turning - slot) % turning) };
        (a < n && b < n).then_some((a, b))
    })
}

fn turned((a, b): (u32, u32), turn: bool) -> (u32, u32) {
    if turn { (b, a) } else { (a, b) }
}

fn within(hosts: &[Vec<u32>], both: bool, rng: &mut fastrand::Rng) -> Vec<(u32, u32)> {
    let largest = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let turning = (largest + largest % 2).saturating_sub(1);
    let mut rounds: Vec<(usize, bool)> = (0..turning).flat_map(|round| [(round, false), (round, true)]).collect();
    rounds.retain(|&(_, turn)| both || !turn);
    rng.shuffle(&mut rounds);
    let mut pairs = Vec::new();
    for (round, turn) in rounds {
        let begin = pairs.len();
        for members in hosts {
            // A smaller host is done earlier.
            if round + 1 < members.len() + members.len() % 2 {
                pairs.extend(circle(members.len(), round).map(|(a, b)| turned((members[a], members[b]), turn)));
            }
        }
        rng.shuffle(&mut pairs[begin..]);
    }
    pairs
}

fn between(hosts: &[Vec<u32>], both: bool, rng: &mut fastrand::Rng) -> Vec<(u32, u32)> {
    let largest = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let turning = (hosts.len() + hosts.len() % 2).saturating_sub(1);
    // A round out and one back follow each other, with shifts of their own: what leaves and what enters a host may share a
    // round, and then every host has both.
    let mut rounds: Vec<(usize, usize, usize)> = Vec::with_capacity(turning * largest);
    for round in 0..turning {
        let [mut out, mut back]: [Vec<usize>; 2] = std::array::from_fn(|_| (0..largest).collect());
        rng.shuffle(&mut out);
        rng.shuffle(&mut back);
        rounds.extend(out.into_iter().zip(back).map(|(out, back)| (round, out, back)));
    }
    rng.shuffle(&mut rounds);
    let mut pairs = Vec::new();
    for (round, out, back) in rounds {
        for (shift, turn) in [(out, false), (back, true)].into_iter().filter(|&(_, turn)| both || !turn) {
            let begin = pairs.len();
            for (a, b) in circle(hosts.len(), round) {
                let met = |at: usize| hosts[b].get((at + shift) % largest).copied();
                // Half of them the other way around: a round loads both directions of a host alike.
                let way = |at: usize| turn != (at % 2 == 1);
                pairs.extend(hosts[a].iter().enumerate().filter_map(|(at, &one)| Some(turned((one, met(at)?), way(at)))));
            }
            rng.shuffle(&mut pairs[begin..]);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everybody_meets_everybody_once_and_is_in_one_place_at_a_time() {
        for sizes in [vec![1], vec![2], vec![5], vec![8, 8], vec![1, 1, 1, 1, 1], vec![3, 1, 4, 4], vec![2; 7]] {
            let node_of: Vec<usize> = sizes.iter().enumerate().flat_map(|(host, &size)| std::iter::repeat_n(host, size)).collect();
            let n = node_of.len();
            let by_host = ByHost::new(&node_of);
            for both in [false, true] {
                let [within, between] = by_host.rounds(both, &mut fastrand::Rng::with_seed(1));
                assert!(within.iter().all(|&(a, b)| node_of[a as usize] == node_of[b as usize]));
                assert!(between.iter().all(|&(a, b)| node_of[a as usize] != node_of[b as usize]));
                let all: Vec<(u32, u32)> = [within, between].concat();
                let order = |&(a, b): &(u32, u32)| if both { (a, b) } else { (a.min(b), a.max(b)) };
                let distinct: BTreeSet<(u32, u32)> = all.iter().map(order).collect();
                let wanted = if both { n * (n - 1) } else { n * (n - 1) / 2 };
                assert_eq!((all.len(), distinct.len()), (wanted, wanted), "{sizes:?} {both}");
            }
        }
    }

    #[test]
    fn equal_hosts_need_no_more_rounds_than_one_large_circle() {
        let node_of: Vec<usize> = (0..32).map(|member| member / 8).collect();
        let parts = ByHost::new(&node_of).rounds(true, &mut fastrand::Rng::with_seed(2));
        for part in &parts {
            for round in part.chunks(16) {
                let ranks: BTreeSet<u32> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                assert_eq!(ranks.len(), 32, "a whole round, nobody twice");
            }
        }
        let out = |round: &[(u32, u32)]| round.iter().filter(|(a, _)| node_of[*a as usize] == 0).count();
        assert!(parts[1].chunks(16).all(|round| out(round) == 4), "of a host's 8 members half send and half receive");
        assert_eq!(parts.map(|part| part.len() / 16), [2 * 7, 2 * 24]);
    }
}
