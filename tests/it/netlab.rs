//! The network laboratory, and the program in it.

#[cfg(feature = "mpi")]
mod executed;
mod flows;
#[cfg(feature = "mpi")]
mod hidden;
mod lab;
#[cfg(feature = "mpi")]
mod sweeps;
#[cfg(feature = "mpi")]
mod trunk;

use std::process::Command;
use std::time::Duration;

use lab::{Lab, payload_rate};

const MOMENT: Duration = Duration::from_secs(60);

/// Run a test that measures rates until it passes, three times at most. On two cores that others use as well, a moment away
/// looks like a slow link; a fault of ours is there every time.
fn settled(test: impl Fn() + std::panic::RefUnwindSafe) {
    for tries_left in [2, 1, 0] {
        match std::panic::catch_unwind(&test) {
            Ok(()) => return,
            Err(cause) if tries_left == 0 => std::panic::resume_unwind(cause),
            Err(_) => eprintln!("AGAIN ({tries_left} tries left): rates were not as set; see above"),
        }
    }
}

fn spaces() -> String {
    String::from_utf8(Command::new("ip").args(["netns", "list"]).output().unwrap().stdout).unwrap()
}

#[test]
fn ranks_start_on_every_host_under_its_own_name_and_nothing_is_left() {
    let Some(lab) = Lab::new(4) else { return };
    let ran = lab.run(&mut lab.mpirun(1, 4, ["hostname"]), MOMENT);
    let mut names: Vec<&str> = ran.stdout.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["node1", "node2", "node3", "node4"], "{ran:?}");
    assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");

    // A job that never ends is killed with the lab, even when the test panics.
    let mut job = lab.mpirun(1, 4, ["sleep", "1000"]).spawn().unwrap();
    let prefix = format!("toposcope-lab-{}-", std::process::id());
    assert!(spaces().contains(&prefix));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _lab = lab;
        std::panic::resume_unwind(Box::new("a test that fails"));
    }));
    assert!(panicked.is_err());
    assert!(!job.wait().unwrap().success());
    assert!(!spaces().contains(&prefix), "{}", spaces());
}

#[test]
fn leftovers_of_dead_processes_are_removed_and_others_left_alone() {
    if Lab::new(1).is_none() {
        return;
    }
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let (dead, alive) = (format!("toposcope-lab-{}-0-node1", gone.id()), format!("toposcope-lab-{}-99-other", std::process::id()));
    for name in [&dead, &alive] {
        assert!(Command::new("ip").args(["netns", "add", name]).status().unwrap().success());
    }
    drop(Lab::new(1));
    let left = spaces();
    assert!(Command::new("ip").args(["netns", "del", &alive]).status().unwrap().success());
    assert!(!left.contains(&dead) && left.contains(&alive), "{left}");
}

#[test]
fn links_are_shaped_and_pulled_where_told() {
    let Some(lab) = Lab::new(3) else { return };
    lab.shape_out(3, 200);
    lab.shape_in(2, 300);
    let shown = |host: usize| lab.run(lab.on(host, "tc").args(["qdisc", "show", "dev", "e"]), MOMENT).stdout;
    assert!(shown(3).contains("tbf") && shown(3).contains("rate 200Mbit"), "{}", shown(3));
    assert!(!shown(2).contains("tbf"), "{}", shown(2));
    let reaches = |from: usize, to: usize| {
        let script = format!("exec 3<>/dev/tcp/10.77.0.{to}/9");
        // Nobody listens on port 9: a host that is there refuses at once, one that is not does not answer.
        lab.run(lab.on(from, "timeout").args(["2", "bash", "-c", &script]), MOMENT).stderr.contains("refused")
    };
    assert!(reaches(1, 2) && reaches(1, 3));
    lab.link_down(3);
    assert!(reaches(1, 2) && !reaches(1, 3));
    lab.link_up(3);
    assert!(reaches(1, 3));
}

/// Each host sees its own end of its link, and rank 0 gathers them all.
#[test]
#[cfg(feature = "mpi")]
fn hosts_and_their_links_are_discovered() {
    let Some(lab) = Lab::new(4) else { return };
    let toposcope = env!("CARGO_BIN_EXE_toposcope");
    let run = |more: &[&str]| {
        let ran = lab.run(&mut lab.mpirun(1, 8, [&[toposcope, "discover"], more].concat()), MOMENT);
        assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");
        ran.stdout
    };
    let told: toposcope::topology::Topology = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(told.ranks.len(), 8);
    let hosts: Vec<&str> = told.hardware.iter().map(|hardware| hardware.host.as_str()).collect();
    assert_eq!(hosts, ["node1", "node2", "node3", "node4"]);
    for hardware in &told.hardware {
        let [nic] = hardware.nics.as_slice() else { panic!("{}: {:?}", hardware.host, hardware.nics) };
        // 10 Gbit/s is what the kernel says of every veth, whatever was set.
        assert_eq!((nic.name.as_str(), nic.state.as_str(), nic.rate), ("e", "up", Some(1.25e9)), "{}", hardware.host);
        assert!(hardware.notes.iter().any(|note| note.about == "e"), "{:?}", hardware.notes);
    }
    let text = run(&[]);
    assert_eq!(text.matches("  e  Ethernet, up, 10 Gbit/s\n").count(), 4, "{text}");
}

#[test]
fn payload_is_what_headers_leave() {
    // 800 Mbit/s are 100 MB/s in frames of 1514 bytes with 1448 bytes of payload each.
    assert!((payload_rate(800) - 95.640_687e6).abs() < 10.0);
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let Some(lab) = Lab::new(1) else { return };
    let ran = lab.run(lab.on(1, "sleep").arg("1000"), Duration::from_millis(300));
    assert!(ran.status.is_none(), "{ran:?}");
    assert_eq!(lab.processes(), [0; 0]);
}

/// Every limit has a rate of its own, so that a rate tells which of them bound.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "measures rates: make test runs it alone, with the rest of the laboratory")]
fn eight_hosts_behind_a_trunk_get_what_was_set() {
    settled(|| {
        let Some(lab) = Lab::with_trunk(4, 4) else { return };
        for host in 1..=8 {
            lab.shape_out(host, if host == 1 { 300 } else { 400 });
            lab.shape_in(host, if host == 5 { 250 } else { 400 });
        }
        lab.shape_trunk(0, 350);
        lab.shape_trunk(1, 200);
        let cases: [(&str, &[flows::Pair], u32); 7] = [
            ("a pair behind one bridge", &[(2, 3)], 400),
            ("a pair across", &[(2, 6)], 350),
            ("a pair back", &[(6, 2)], 200),
            ("pairs that share nothing", &[(2, 3), (4, 1), (6, 7)], 3 * 400),
            ("pairs across share the trunk", &[(2, 6), (3, 7), (4, 8)], 350),
            ("a fan-in shares what its root receives", &[(6, 5), (7, 5), (8, 5)], 250),
            ("a fan-out shares what its root sends", &[(1, 2), (1, 3), (1, 4)], 300),
        ];
        for (what, pairs, mbit) in cases {
            // Of three: a core may be away for a moment.
            let mut shares: Vec<f64> = (0..3).map(|_| flows::together(&lab, pairs) / payload_rate(mbit)).collect();
            shares.sort_by(f64::total_cmp);
            assert!((shares[1] - 1.0).abs() < 0.04, "{what}: {shares:.3?} of what was set");
        }
        // The trunk's two directions are apart.
        let both = flows::run(&lab, &[(2, 6), (7, 3)]);
        for (seconds, mbit) in both.into_iter().zip([350, 200]) {
            let share = flows::FLOW as f64 / seconds / payload_rate(mbit);
            assert!((share - 1.0).abs() < 0.1, "{share:.3} of {mbit} Mbit/s");
        }
    });
}

#[test]
fn a_lab_with_a_trunk_is_removed_when_its_test_fails() {
    let Some(lab) = Lab::with_trunk(4, 4) else { return };
    let prefix = format!("toposcope-lab-{}-", std::process::id());
    assert_eq!(spaces().matches(&prefix).count(), 9, "eight hosts and the switches: {}", spaces());
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _lab = lab;
        std::panic::resume_unwind(Box::new("a test that fails"));
    }));
    assert!(failed.is_err());
    assert!(!spaces().contains(&prefix), "{}", spaces());
}

#[test]
fn a_ninth_host_is_refused() {
    for lab in [|| Lab::new(9), || Lab::with_trunk(4, 5)] {
        assert!(std::panic::catch_unwind(lab).is_err());
    }
}
