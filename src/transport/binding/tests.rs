use super::*;
use crate::topology::hardware::{Gpu, Hardware, NumaNode, PciDevice};

/// GPUs of a host, by the last digit of their buses.
fn device(number: usize, bus: usize) -> CudaDevice {
    let address = format!("0000:{bus:02x}:00.0");
    CudaDevice { number, name: "A".to_owned(), uuid: Some(format!("GPU-{bus:04}")), address: address.parse().ok(), memory: 8 << 30 }
}

/// Ranks as they lie on hosts with so many GPUs each, every rank on all 16 cores; near the GPU on bus `b` are cores 4b to 4b + 3.
fn job(hosts: &[(&str, usize)]) -> Topology {
    let mut topology = Topology::default();
    for &(host, ranks) in hosts {
        for _ in 0..ranks {
            let rank = topology.ranks.len();
            topology.ranks.push(Placement { rank, host: host.to_owned(), cores: (0..16).collect(), ..Placement::default() });
        }
        let mut hardware = Hardware { host: host.to_owned(), ..Hardware::default() };
        for bus in 0..4 {
            hardware.pci.push(PciDevice { address: format!("0000:{bus:02x}:00.0").parse().unwrap(), ..PciDevice::default() });
            let cpus = (4 * bus..4 * bus + 4).collect();
            hardware.gpus.push(Gpu { index: bus, pci: Some(bus), cpus, ..Gpu::default() });
        }
        hardware.numa = (0..2).map(|id| NumaNode { id, cpus: (8 * id..8 * id + 8).collect(), ..NumaNode::default() }).collect();
        topology.hardware.push(hardware);
    }
    topology
}

/// Every rank sees the GPUs on these buses.
fn all_see(topology: &Topology, buses: &[usize]) -> Vec<(usize, Sight)> {
    let devices: Vec<CudaDevice> = buses.iter().enumerate().map(|(number, &bus)| device(number, bus)).collect();
    let sight = |place: &Placement| Sight { devices: devices.clone(), cores: place.cores.clone(), ..Sight::default() };
    topology.ranks.iter().map(|place| (place.rank, sight(place))).collect()
}

fn buses(decided: &Decided) -> Vec<u8> {
    decided.bound.iter().map(|bound| bound.gpu.as_ref().unwrap().address.unwrap().bus).collect()
}

fn named(gpus: &[&str]) -> Vec<String> {
    gpus.iter().map(|&gpu| gpu.to_owned()).collect()
}

#[test]
fn ranks_of_each_host_take_its_gpus_in_order_near_their_cores() {
    let topology = job(&[("a", 3), ("b", 2)]);
    let decided = decide(&topology, &all_see(&topology, &[0, 1, 2, 3]), &[], Cores::Near).unwrap();
    assert_eq!(buses(&decided), [0, 1, 2, 0, 1]);
    assert_eq!((decided.bound[2].cores.clone(), decided.bound[2].numa), (vec![8, 9, 10, 11], Some(1)));
    assert_eq!(decided.told, [""; 0]);
    // A rank that takes no part leaves its GPU to the next.
    let some: Vec<_> = all_see(&topology, &[0, 1, 2, 3]).into_iter().filter(|(rank, _)| *rank != 0).collect();
    let decided = decide(&topology, &some, &[], Cores::Near).unwrap();
    assert_eq!((decided.bound.len(), decided.bound[0].rank, buses(&decided)), (4, 1, vec![0, 1, 0, 1]));
}

#[test]
fn it_does_not_matter_who_told_first_what_it_sees() {
    let topology = job(&[("a", 3), ("b", 2)]);
    let mut seen = all_see(&topology, &[0, 1, 2, 3]);
    seen.reverse();
    seen.swap(0, 3);
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    assert_eq!(buses(&decided), [0, 1, 2, 0, 1]);
    let decided = decide(&topology, &seen, &named(&["3", "1", "2"]), Cores::Near).unwrap();
    assert_eq!(buses(&decided), [3, 1, 2, 3, 1]);
}

/// Ranks without a GPU, and why.
fn absent(decided: &Decided) -> Vec<(usize, &str)> {
    decided.absent.iter().map(|absent| (absent.rank, absent.reason.as_str())).collect()
}

#[test]
fn ranks_beyond_the_gpus_of_their_host_are_absent_with_the_host_and_the_way_out() {
    let topology = job(&[("node1", 2), ("node2", 3)]);
    let mut seen = all_see(&topology, &[0, 1]);
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    let few =
        "host node2: 3 ranks, 2 GPUs; start 2 at most there, or name the GPU of each rank with --gpus (one that is named twice is shared)";
    assert_eq!((buses(&decided), absent(&decided)), (vec![0, 1, 0, 1], vec![(4, few)]));
    for (_, sight) in &mut seen {
        sight.visible = Some("0,1".to_owned());
    }
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    assert!(decided.absent[0].reason.contains("3 ranks, 2 GPUs, with CUDA_VISIBLE_DEVICES=0,1; start 2"), "{decided:?}");
    // The driver of one rank does not start: the next one takes its GPU.
    seen[2].1 = Sight { error: "libcuda.so.1 is not there".to_owned(), visible: Some(String::new()), ..Sight::default() };
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    let none = "host node2: rank 2 sees no GPU: libcuda.so.1 is not there (CUDA_VISIBLE_DEVICES=); see toposcope doctor there";
    let ranks: Vec<usize> = decided.bound.iter().map(|bound| bound.rank).collect();
    assert_eq!((ranks, absent(&decided)), (vec![0, 1, 3, 4], vec![(2, none)]));
}

#[test]
fn a_job_of_which_no_rank_has_a_gpu_is_refused() {
    let topology = job(&[("a", 1), ("b", 1)]);
    let none = |rank| (rank, Sight { error: "no driver".to_owned(), ..Sight::default() });
    let refused = decide(&topology, &[none(0), none(1)], &[], Cores::Near).unwrap_err();
    assert_eq!(refused, "host a: rank 0 sees no GPU: no driver; see toposcope doctor there");
    let refused = decide(&topology, &all_see(&topology, &[0]), &named(&["7"]), Cores::Near).unwrap_err();
    assert!(refused.starts_with("host a: --gpus gives rank 0 the GPU 7, but it sees GPU 0"), "{refused}");
}

#[test]
fn a_launcher_that_gives_each_rank_its_own_gpu_is_followed_and_told() {
    let topology = job(&[("a", 3)]);
    let mut seen = all_see(&topology, &[0]);
    for (rank, bus) in [(0, 2), (1, 0), (2, 3)] {
        seen[rank].1.devices = vec![device(0, bus)];
        seen[rank].1.visible = Some(bus.to_string());
    }
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    assert_eq!(buses(&decided), [2, 0, 3]);
    let told = "host a: CUDA_VISIBLE_DEVICES is 2 for rank 0, 0 for rank 1, 3 for rank 2: each rank has its GPU among its own";
    assert_eq!(decided.told, [told]);
    // Two of them to one GPU, unseen by themselves: both call it 0.
    seen[1].1.devices = vec![device(0, 2)];
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    assert!(matches!(absent(&decided)[..], [(1, why)] if why.starts_with("host a: 3 ranks, 2 GPUs;")), "{decided:?}");
    assert_eq!(buses(&decided), [2, 3], "never two on one");
    seen[1].1.devices = vec![device(0, 2)];
    seen[0].1.devices = vec![device(0, 2), device(1, 1)];
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    let [(1, why)] = absent(&decided)[..] else { panic!("{decided:?}") };
    assert!(why.contains("3 ranks, 3 GPUs, but rank 1 sees only GPU 0 (A, 0000:02:00.0), which other ranks have"), "{why}");
}

#[test]
fn gpus_are_named_by_number_uuid_or_address_in_the_order_of_a_hosts_ranks() {
    let topology = job(&[("a", 3), ("b", 1)]);
    let seen = all_see(&topology, &[0, 1, 2, 3]);
    let decided = decide(&topology, &seen, &named(&["3", "GPU-0001", "0000:00:00.0"]), Cores::Near).unwrap();
    assert_eq!(buses(&decided), [3, 1, 0, 3]);
    let refused = |gpus: &[&str]| decide(&topology, &seen, &named(gpus), Cores::Near).unwrap_err();
    let few = refused(&["3", "1"]);
    assert_eq!(few, "host a: 3 ranks, but --gpus names 2 GPUs; name one for each rank of a host, in their order");
    let decided = decide(&topology, &seen, &named(&["0", "1", "9"]), Cores::Near).unwrap();
    let [(2, why)] = absent(&decided)[..] else { panic!("{decided:?}") };
    assert!(why.starts_with("host a: --gpus gives rank 2 the GPU 9, but it sees GPU 0 (A, 0000:00:00.0), GPU 1"), "{why}");
    assert_eq!(buses(&decided), [0, 1, 0]);
    let both = refused(&["0", "1", "GPU-00"]);
    assert!(both.contains("the GPU GPU-00, which GPU 0 (A, 0000:00:00.0) and GPU 1 (A, 0000:01:00.0) both are"), "{both}");
    assert!(refused(&["0", "1", "x"]).starts_with("--gpus: \"x\" is no GPU"));
}

#[test]
fn a_gpu_is_shared_only_where_it_is_named_twice_and_then_told() {
    let topology = job(&[("a", 3)]);
    let seen = all_see(&topology, &[0, 1, 2]);
    let decided = decide(&topology, &seen, &named(&["1", "0", "1"]), Cores::Near).unwrap();
    assert_eq!(buses(&decided), [1, 0, 1]);
    assert!(matches!(&decided.told[..], [told] if told.contains("ranks 0,2 share GPU 1 (A, 0000:01:00.0)")), "{:?}", decided.told);
    let refused = decide(&topology, &seen, &named(&["1", "0", "GPU-0001"]), Cores::Near).unwrap_err();
    assert!(refused.contains("1 of rank 0 and GPU-0001 of rank 2 (--gpus) are the same GPU 1"), "{refused}");
    // Numbers are each rank's own: what is 0 to both can be two GPUs, and different numbers the same one.
    let mut own = seen;
    own[1].1.devices = vec![device(0, 1)];
    own[2].1.devices = vec![device(0, 2), device(1, 0)];
    assert_eq!(buses(&decide(&topology, &own, &named(&["0", "0", "0"]), Cores::Near).unwrap()), [0, 1, 2]);
    assert!(decide(&topology, &own, &named(&["0", "0", "1"]), Cores::Near).unwrap_err().contains("are the same"));
}

#[test]
fn versions_are_told_and_hosts_that_have_others() {
    let topology = job(&[("a", 1), ("b", 2)]);
    let mut seen = all_see(&topology, &[0, 1]);
    for (rank, version) in [(0, "12.8"), (1, "12.6"), (2, "12.6")] {
        seen[rank].1.software = [("CUDA driver".to_owned(), version.to_owned())].into();
    }
    let decided = decide(&topology, &seen, &[], Cores::Near).unwrap();
    assert_eq!(decided.software["CUDA driver"], "12.8");
    assert_eq!(decided.told, ["host b: CUDA driver 12.6, elsewhere 12.8"]);
}

#[test]
fn ranks_stay_where_a_launcher_bound_them_and_that_is_told() {
    let mut topology = job(&[("a", 3)]);
    for (rank, cores) in [(0, vec![1, 2]), (1, vec![12]), (2, vec![9, 15])] {
        topology.ranks[rank].cores = cores;
    }
    let decided = decide(&topology, &all_see(&topology, &[0, 1, 2]), &[], Cores::Near).unwrap();
    let cores: Vec<_> = decided.bound.iter().map(|bound| (bound.cores.clone(), bound.numa)).collect();
    assert_eq!(cores, [(vec![1, 2], Some(0)), (vec![12], Some(1)), (vec![9], Some(1))]);
    let [far, kept] = &decided.told[..] else { panic!("{:?}", decided.told) };
    assert!(far.contains("rank 1 runs on core 12, none of them near GPU 1 (A, 0000:01:00.0) (core 4-7)"), "{far}");
    assert!(kept.starts_with("host a: rank 0 stays on the cores that it was started on"), "{kept}");
}

#[test]
fn threads_get_a_core_each_near_their_gpu_and_a_host_that_tells_nothing_is_left_alone() {
    let mut topology = job(&[("a", 4)]);
    for gpu in &mut topology.hardware[0].gpus {
        gpu.cpus = vec![4, 5, 6];
    }
    let all = all_see(&topology, &[0, 1, 2, 3]);
    for (rank, place) in topology.ranks.iter_mut().enumerate() {
        place.cores = vec![rank];
    }
    let decided = decide(&topology, &all, &[], Cores::One).unwrap();
    let cores: Vec<_> = decided.bound.iter().map(|bound| bound.cores.clone()).collect();
    assert_eq!((cores, decided.told), (vec![vec![4], vec![5], vec![6], vec![4]], Vec::new()));
    topology.hardware.clear();
    let decided = decide(&topology, &all, &[], Cores::One).unwrap();
    assert_eq!(decided.bound[3].cores, [3]);
    assert!(matches!(&decided.told[..], [told] if told.contains("near the GPU of rank 0-3")), "{:?}", decided.told);
    // Where the driver tells no cores, those of the GPU's node are near.
    let mut node = job(&[("a", 1)]);
    node.hardware[0].gpus[0] = Gpu { numa: Some(1), pci: Some(0), ..Gpu::default() };
    let decided = decide(&node, &all_see(&node, &[0]), &[], Cores::Near).unwrap();
    assert_eq!((decided.bound[0].cores.clone(), decided.bound[0].numa), ((8..16).collect(), Some(1)));
}
