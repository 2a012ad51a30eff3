//! Identification in the closed loop (issue 5, must show b on the simulator): what flows share comes back from what was measured,
//! and where nothing is hidden nothing is found.

use toposcope::fit::identify::{Capacity, Identified};
use toposcope::sample::Pattern;
use toposcope::session::measured;
use toposcope::sweep::{Peers, Transfer};
use toposcope::topology::Efficiency;

use super::trunk::TRUNK;
use super::*;

fn identified(run: &Run) -> Identified {
    measured(&run.model, &Efficiency::default()).identified()
}

#[track_caller]
fn near(what: &str, found: f64, truth: f64, part: f64) {
    assert!((found / truth - 1.0).abs() <= part, "{what}: {found} instead of {truth}");
}

fn find<'a>(found: &'a Identified, name: &str) -> &'a Capacity {
    let names: Vec<&str> = found.capacities.iter().map(|capacity| capacity.name.as_str()).collect();
    found.capacities.iter().find(|capacity| capacity.name == name).unwrap_or_else(|| panic!("no {name}: {names:?}"))
}

/// The planner, told nothing of the trunk, finds that pairs slow each other; that alone tells where it is and what it carries.
#[test]
fn a_trunk_that_is_not_told_is_named_between_its_hosts_with_its_capacity() {
    let fabric = Arc::new(Fabric::parse(&format!("{TRUNK}[noise]\nkind = \"lognormal\"\ncv = 0.005\n"), "trunk").unwrap());
    for seed in 1..=10 {
        let settings = SweepSettings {
            patterns: vec![Pattern::Peer],
            sizes: vec![1 << 16, 1 << 20, 1 << 22],
            timeout: 60.0,
            seed,
            ..calibration(0.05)
        };
        let run = sweep(&fabric, &settings, false);
        let found = identified(&run);
        let ends: Vec<_> = found.hidden.iter().map(|hidden| (hidden.from_hosts.as_slice(), hidden.to_hosts.as_slice())).collect();
        assert_eq!(ends, [(&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]), (&[4, 5, 6, 7], &[0, 1, 2, 3])], "seed {seed}");
        for hidden in &found.hidden {
            near(&hidden.name, hidden.capacity, 25e6, 0.05);
        }
        assert!(run.records.iter().any(|record| matches!(&record.event, Event::Shared(conflict) if conflict.flows.len() > 1)));
    }
}

/// Fans over the trunk alone are explained by their roots, which are as wide; sets of pairs are not.
#[test]
fn sets_of_pairs_show_a_trunk_that_no_probe_ever_shared() {
    let set = |set: u32, pairs: &[(usize, usize)]| pairs.iter().map(|&(from, to)| Transfer { set, from, to }).collect::<Vec<_>>();
    let there = |shift: usize| (0..4).map(|a| (a, 4 + (a + shift) % 4)).collect::<Vec<_>>();
    let transfers = [set(0, &there(0)), set(1, &there(1)), set(2, &[(0, 1), (2, 3), (4, 5), (6, 7)])].concat();
    let text =
        |rate: &str| format!("{}\n[noise]\nkind = \"lognormal\"\ncv = 0.01\n", TRUNK.replace("to = \"4-7\"\nrate = \"200Mbit/s\"", rate));
    for (rate, capacity) in [("to = \"4-7\"\nrate = \"500Mbit/s\"", Some(62.5e6)), ("to = \"4-7\"\nrate = \"900Mbit/s\"", None)] {
        let fabric = Arc::new(Fabric::parse(&text(rate), "trunk").unwrap());
        for seed in 1..=10 {
            let settings = SweepSettings {
                patterns: vec![Pattern::Peer, Pattern::FanIn, Pattern::Custom],
                sizes: vec![1 << 16, 1 << 22],
                widths: vec![3],
                peers: Peers::Next,
                transfers: transfers.clone(),
                isolated: true,
                timeout: 60.0,
                seed,
                ..calibration(0.05)
            };
            let found = identified(&sweep(&fabric, &settings, false));
            match capacity {
                Some(capacity) => {
                    let [hidden] = found.hidden.as_slice() else { panic!("seed {seed}: {:?}", found.hidden) };
                    assert_eq!((&hidden.from_hosts[..], &hidden.to_hosts[..]), (&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]), "seed {seed}");
                    near(&hidden.name, hidden.capacity, capacity, 0.05);
                    assert!(hidden.interval.is_some());
                }
                None => assert_eq!(found.hidden, [], "seed {seed}"),
            }
        }
    }
}

/// Everything that runs together on machines without a hidden link.
fn all_patterns(world: usize) -> SweepSettings {
    let patterns = vec![Pattern::Local, Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::FanOut, Pattern::Relay];
    let shifts = if world > 2 { vec![1, world / 2] } else { vec![1] };
    SweepSettings { patterns, shifts, sizes: vec![1 << 12, 1 << 24], repeats: 6, ..calibration(0.0) }
}

#[test]
fn nothing_hidden_is_found_on_shipped_fabrics() {
    for name in Fabric::names() {
        let fabric = shipped(name);
        let settings = match fabric.world() {
            0..=32 => all_patterns(fabric.world()),
            world => {
                SweepSettings { pairs: 1, patterns: vec![Pattern::Peer, Pattern::FanIn, Pattern::Relay], repeats: 3, ..all_patterns(world) }
            }
        };
        let found = identified(&sweep(&fabric, &settings, false));
        assert_eq!(found.hidden, [], "{name}");
        assert!(!found.capacities.is_empty() && (fabric.world() > 32 || !found.stands.is_empty()), "{name}");
    }
}

#[test]
fn nothing_hidden_is_found_on_noisy_healthy_fabrics() {
    let healthy = TRUNK.replace("[[trunk]]\nname = \"trunk\"\nfrom = \"0-3\"\nto = \"4-7\"\nrate = \"200Mbit/s\"\n", "");
    assert!(!healthy.contains("trunk\"\nfrom"));
    for (cv, seeds) in [("0.03", 1..=20), ("0.1", 1..=5)] {
        let fabric = Arc::new(Fabric::parse(&format!("{healthy}[noise]\nkind = \"lognormal\"\ncv = {cv}\n"), "healthy").unwrap());
        for seed in seeds {
            let settings = SweepSettings { seed, timeout: 60.0, sizes: vec![1 << 14, 1 << 22], ..all_patterns(8) };
            let found = identified(&sweep(&fabric, &settings, false));
            assert_eq!(found.hidden, [], "{cv} seed {seed}");
        }
    }
}

fn with_fans(widths: &[usize], peers: Peers) -> SweepSettings {
    SweepSettings {
        patterns: vec![Pattern::Peer, Pattern::FanIn, Pattern::FanOut],
        sizes: vec![1 << 12, 256 << 20],
        widths: widths.to_vec(),
        peers,
        repeats: 6,
        ..calibration(0.0)
    }
}

/// The concurrencies and capacities that the files of fabrics state.
#[test]
fn roots_of_fans_have_what_their_fabrics_state() {
    let l20 = identified(&sweep(&shipped("l20-8"), &with_fans(&[2, 4, 7], Peers::Nearest), true));
    near("l20 in", find(&l20, "receive side of every rank within its host").concurrency.unwrap(), 1.05, 0.01);
    near("l20 out", find(&l20, "send side of every rank within its host").concurrency.unwrap(), 1.0, 0.01);

    let nvswitch = identified(&sweep(&shipped("nvswitch-8"), &with_fans(&[2, 4, 7], Peers::Nearest), true));
    for side in ["receive", "send"] {
        near(side, find(&nvswitch, &format!("{side} side of every rank within its host")).rate.unwrap(), 396e9, 0.02);
    }

    let h20 = identified(&sweep(&shipped("h20-2x8"), &with_fans(&[7], Peers::SameHost), true));
    near("h20 in", find(&h20, "receive side of every rank within its host").rate.unwrap(), 94.4e9, 0.02);
    near("h20 out", find(&h20, "send side of every rank within its host").rate.unwrap(), 79.5e9, 0.02);
    let across = identified(&sweep(&shipped("h20-2x8"), &with_fans(&[4, 8], Peers::CrossHost), true));
    let out = find(&across, "send side of every rank to other hosts");
    assert_eq!(out.by_width.iter().map(|own| own.0).collect::<Vec<_>>(), [4, 8]);
    near("h20 across 4", out.by_width[0].1, 3.32, 0.02);
    near("h20 across 8", out.by_width[1].1, 3.77, 0.02);
}

/// The box of the thread as its fabric file has it: receivers in turns, and a link between sockets that sets of pairs fill.
#[test]
fn eight_b70_have_receivers_in_turns_and_a_link_that_sets_fill() {
    let set = |set: u32, pairs: [(usize, usize); 4]| pairs.map(|(from, to)| Transfer { set, from, to });
    let transfers = [set(0, [(4, 0), (5, 1), (6, 2), (7, 3)]), set(1, [(0, 4), (1, 5), (2, 6), (3, 7)])].concat();
    let mut settings = with_fans(&[2, 4, 7], Peers::Next);
    settings.patterns = vec![Pattern::Peer, Pattern::FanIn, Pattern::Custom];
    let found = identified(&sweep(&shipped("b70-8"), &SweepSettings { transfers, ..settings }, true));
    assert_eq!(found.stands[0].explanation, toposcope::fit::identify::Explanation::TimeSharedBy);
    near("c", found.stands[0].parameters[0].1, 1.02, 0.01);
    near("c of roots", find(&found, "receive side of every rank within its host").concurrency.unwrap(), 1.02, 0.01);
    near("link", find(&found, "link out of every socket").rate.unwrap(), 28.7e9, 0.02);
    assert_eq!(found.hidden, []);
}

#[test]
fn both_ways_cost_what_the_fabric_states() {
    let settings = SweepSettings { patterns: vec![Pattern::Peer, Pattern::Duplex], ..with_fans(&[7], Peers::Nearest) };
    let found = identified(&sweep(&shipped("h20-8"), &settings, true));
    let [ratio] = found.duplex.as_slice() else { panic!("{:?}", found.duplex) };
    near("both ways", ratio.ratio, 0.85, 0.01);
    assert_eq!(ratio.n, 56);
}
