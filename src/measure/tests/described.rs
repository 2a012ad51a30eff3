//! Closed loop over described fabrics: the simulator's engine, with and without its fabric as knowledge.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use crate::fabric::{Fabric, Noise, NoiseKind};
use crate::measure::{Conductor, Described, Gate, Start};
use crate::sample::{MoverKind, Pattern};
use crate::session::Event;
use crate::sweep::{Probe, SweepSettings};
use crate::transport::sim::Sim;

/// Eight hosts, four and four, behind a trunk of one host's rate each way.
const TRUNK: &str = r#"
about = "two bridges and a trunk"
[hosts]
count = 8
ranks = 1
memory = "64GiB"
[path.local]
alpha = "1us"
rate = "10GB/s"
[path.inter_node]
alpha = "60us"
rate = "100MB/s"
[[trunk]]
name = "trunk"
from = "0-3"
to = "4-7"
rate = "100MB/s"
back = "100MB/s"
"#;

/// What a sweep did: events with the engine's time.
struct Swept {
    events: Vec<(f64, Event)>,
}

fn sweep(fabric: Fabric, told: bool, settings: SweepSettings) -> Swept {
    let fabric = Arc::new(fabric);
    let (_commands, orders) = mpsc::channel();
    let mut events = Vec::new();
    let sink = |stamp: Option<f64>, event| events.push((stamp.unwrap_or(f64::NAN), event));
    let mut conductor = Conductor::new(Box::new(Sim::new(Arc::clone(&fabric))), orders, Arc::new(Gate::default()), 0, sink, Vec::new);
    if told {
        conductor.know(Rc::new(Described::new(fabric, Vec::new())));
    }
    conductor.run(Some(Start::new(SweepSettings { mover: MoverKind::Simulated, ..settings })), true);
    assert!(!conductor.blemished());
    drop(conductor);
    Swept { events }
}

impl Swept {
    fn rounds(&self) -> Vec<(f64, Vec<&Probe>)> {
        let mut rounds: Vec<(f64, Vec<&Probe>)> = Vec::new();
        for (t, event) in &self.events {
            if let Event::ProbeStarted { probe } = event {
                match rounds.last_mut() {
                    Some((_, round)) if round[0].round == probe.round => round.push(probe),
                    _ => rounds.push((*t, vec![probe])),
                }
            }
        }
        rounds
    }

    /// Seconds until every target has a value, and in all.
    fn picture(&self) -> (f64, f64) {
        let end = self.events.last().map_or(f64::NAN, |&(t, _)| t);
        let rounds = self.rounds();
        let mut seen = BTreeMap::new();
        for (_, round) in &rounds {
            for probe in round {
                seen.entry(probe.target.clone()).or_insert(probe.round);
            }
        }
        let last = seen.into_values().max().unwrap_or(0);
        let after = rounds.iter().find(|(_, round)| round[0].round > last).map_or(end, |&(t, _)| t);
        (after, end)
    }

    fn notices(&self) -> Vec<&str> {
        self.events.iter().filter_map(|(_, event)| if let Event::Notice { text } = event { Some(text.as_str()) } else { None }).collect()
    }
}

fn settings() -> SweepSettings {
    let sizes = (0..9).map(|step| 4096 << (2 * step)).collect();
    SweepSettings { sizes, ci: 0.05, repeats: 40, patterns: vec![Pattern::Peer], ..SweepSettings::default() }
}

fn crowded(round: &[&Probe]) -> bool {
    let out = |probe: &&&Probe| probe.flows()[0].0 < 4 && probe.flows()[0].1 >= 4;
    let back = |probe: &&&Probe| probe.flows()[0].0 >= 4 && probe.flows()[0].1 < 4;
    round.iter().filter(out).count() > 1 || round.iter().filter(back).count() > 1
}

#[test]
fn a_trunk_is_not_shared_once_it_is_known() {
    let noise = Some(Noise { kind: NoiseKind::Lognormal, cv: 0.03 });
    let fabric = || Fabric::parse(TRUNK, "trunk").unwrap().with_noise(noise);
    let sizes = vec![64 << 10, 1 << 20, 4 << 20];
    let told = sweep(fabric(), true, SweepSettings { sizes: sizes.clone(), ..settings() });
    assert!(told.notices().is_empty() && !told.rounds().iter().any(|(_, round)| crowded(round)));

    let found = sweep(fabric(), false, SweepSettings { sizes, ..settings() });
    let notices = found.notices();
    assert!(notices.iter().any(|text| text.ends_with("between node0-3 and node4-7; such pairs are measured one at a time from now on")));
    assert!(notices.iter().any(|text| text.contains("between node4-7 and node0-3")), "{notices:#?}");
    let last = found.events.iter().rposition(|(_, event)| matches!(event, Event::Notice { .. })).unwrap();
    let after = Swept { events: found.events[last..].to_vec() };
    assert!(!after.rounds().iter().any(|(_, round)| crowded(round)));
    // Finding out costs less than rounds save, even of a sweep as short as this.
    let isolated = sweep(fabric(), false, SweepSettings { sizes: vec![64 << 10, 1 << 20, 4 << 20], isolated: true, ..settings() });
    let ends = [&told, &found, &isolated].map(|swept| swept.picture().1);
    assert!(ends[1] < 1.5 * ends[0] && ends[1] < 0.6 * ends[2], "{ends:?}");
}

#[test]
fn a_fabric_that_is_known_is_measured_in_few_rounds_and_holds_no_surprise() {
    for (name, rounds, faster) in [("h20-2x8", 30, 5.0), ("b70-8", 18, 2.0), ("h20-8", 14, 3.0)] {
        let fabric = || {
            let noise = Some(Noise { kind: NoiseKind::Normal, cv: 0.02 });
            Fabric::shipped(name).unwrap().unwrap().with_noise(noise)
        };
        let told = sweep(fabric(), true, settings());
        assert_eq!(told.notices(), [""; 0], "{name}");
        let (picture, end) = told.picture();
        let isolated = sweep(fabric(), true, SweepSettings { isolated: true, ..settings() }).picture().1;
        assert!(isolated / end > faster, "{name}: {:.2} times faster", isolated / end);
        // Mostly empty round trips, which a probe of one message has as many of as one of six.
        assert!(picture / end < 0.06, "{name}: {:.3}", picture / end);
        // One message, then nine sizes; verification, and what needs more repeats.
        let count = told.rounds().len();
        assert!(count < 10 * rounds * 3 / 2, "{name}: {count}");
    }
}
