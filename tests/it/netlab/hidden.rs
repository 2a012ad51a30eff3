//! A trunk that no discovery sees is named from what a sweep measures (issue 5, must show b): between the right hosts, with its
//! capacity; and none where the trunk carries whatever comes.

use std::fmt::Write;
use std::fs;

use toposcope::fit::identify::Identified;
use toposcope::session::{Model, measured, store};
use toposcope::topology::Efficiency;

use super::lab::{Lab, payload_rate};
use super::settled;
use super::trunk::{NEAR, RATE, SIZE, Swept, WORLD, shaped, sweep, wide};

/// What the session of a sweep tells of resources.
fn identified(swept: &Swept) -> Identified {
    let read = store::read(&swept.session).unwrap();
    let mut model = Model::new(read.header);
    for record in &read.records {
        model.apply(record);
    }
    measured(&model, &Efficiency::default()).identified()
}

/// Pairs one by one, and sets of them across at the same time, both ways.
fn with_sets(lab: &Lab) -> Swept {
    let sets: [&[(usize, usize)]; 4] = [&[(0, 4), (3, 7)], &[(0, 5), (1, 4), (2, 6), (3, 7)], &[(4, 0), (7, 3)], &[(4, 0), (5, 2), (7, 3)]];
    let mut text = String::from("set,from,to\n");
    for (set, transfers) in sets.iter().enumerate() {
        for (from, to) in *transfers {
            writeln!(text, "{set},{from},{to}").unwrap();
        }
    }
    let file = lab.folder().join("across.csv");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    sweep(lab, "across", &["--patterns", "peer,custom", "--pattern-file", file, "--sizes", SIZE, "--repeats", "6", "--isolated"])
}

/// Both directions, each between the hosts of one bridge and those of the other, and nothing else.
fn is_the_trunk(found: &Identified) {
    let [there, back] = found.hidden.as_slice() else { panic!("{:#?}", found.hidden) };
    let near = |hosts: &[usize]| hosts.len() > 1 && hosts.iter().all(|&host| host < NEAR);
    let far = |hosts: &[usize]| hosts.len() > 1 && hosts.iter().all(|&host| (NEAR..WORLD).contains(&host));
    assert!(near(&there.from_hosts) && far(&there.to_hosts), "{}", there.name);
    assert!(far(&back.from_hosts) && near(&back.to_hosts), "{}", back.name);
    for hidden in [there, back] {
        let share = hidden.capacity / payload_rate(RATE);
        assert!((share - 1.0).abs() < 0.05, "{}: {share:.3} of what was set", hidden.name);
    }
}

#[test]
fn a_shaped_trunk_is_found_from_pairs_at_the_same_time() {
    settled(|| {
        let Some(lab) = shaped(1) else { return };
        is_the_trunk(&identified(&with_sets(&lab)));
    });
}

/// Nothing but pairs: what the planner tried together and alone is evidence.
#[test]
fn a_shaped_trunk_is_found_from_what_the_planner_had_to_keep_apart() {
    settled(|| {
        let Some(lab) = shaped(1) else { return };
        is_the_trunk(&identified(&sweep(&lab, "untold", &["--patterns", "peer", "--sizes", SIZE, "--repeats", "6"])));
    });
}

#[test]
fn of_a_trunk_that_carries_whatever_comes_nothing_is_found() {
    settled(|| {
        let Some(lab) = wide(1) else { return };
        assert_eq!(identified(&with_sets(&lab)).hidden, []);
    });
}
