//! The next test (issue 5, must show e): where two causes fit equally, running it leaves the true one on top; and how tests run beside a
//! sweep, fail, and are kept.

mod running;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use toposcope::diagnose::next::{TestKind, settle};
use toposcope::diagnose::{Cause, Finding, Measured, Severity, Shape, Suspect};
use toposcope::fabric::{Fabric, Noise, NoiseKind};
use toposcope::fit::identify::identify;
use toposcope::measure::{Conductor, Gate, Start};
use toposcope::sample::{MoverKind, Pattern};
use toposcope::session::{Command, Event, Model, Record, measured};
use toposcope::sweep::{Peers, SweepSettings, Target, Transfer, Work};
use toposcope::topology::Efficiency;
use toposcope::transport::sim::Sim;

use crate::closed_loop::header;

/// Seeds of each case, and how many of them must be decided rightly.
const SEEDS: u64 = 100;
const RIGHT: usize = 95;

/// A simulated job and its session.
struct Job<'a> {
    conductor: Conductor<'a>,
    commands: mpsc::Sender<Command>,
    session: Rc<RefCell<(Model, Vec<Record>)>>,
    settings: SweepSettings,
}

impl Job<'_> {
    fn new(fabric: &Arc<Fabric>, settings: &SweepSettings) -> Self {
        let session = Rc::new(RefCell::new((Model::new(header(fabric, settings)), Vec::new())));
        let (commands, orders) = mpsc::channel();
        let told = Rc::clone(&session);
        let sink = move |t: Option<f64>, event: Event| {
            let record = Record { t: t.unwrap(), event };
            let (model, records) = &mut *told.borrow_mut();
            model.apply(&record);
            records.push(record);
        };
        let engine = Box::new(Sim::new(Arc::clone(fabric)));
        let conductor = Conductor::new(engine, orders, Arc::new(Gate::default()), 0, sink, Vec::new);
        Self { conductor, commands, session, settings: settings.clone() }
    }

    fn sweep(&mut self) {
        self.conductor.run(Some(Start::new(self.settings.clone())), true);
    }

    fn measured(&self) -> Measured {
        measured(&self.session.borrow().0, &Efficiency::default())
    }

    /// Run the test that a finding proposes.
    fn run(&mut self, finding: &Finding) {
        let next = finding.next.as_ref().expect("a test");
        assert_eq!(next.cannot, "");
        self.conductor.test(&finding.id, &next.test, &self.settings);
        self.conductor.run(None, true);
    }
}

/// A finding of this shape, with causes that nothing tells apart.
fn finding(shape: Shape, causes: &[Cause]) -> Finding {
    let suspect = |&cause: &Cause| Suspect { cause, weight: 1.0, because: "it fits".to_owned(), against: String::new() };
    Finding {
        id: "the one".to_owned(),
        rule: "made",
        severity: Severity::Warning,
        title: "slow".to_owned(),
        amount: String::new(),
        weight: 1.0,
        shape,
        facts: Vec::new(),
        suspects: causes.iter().map(suspect).collect(),
        next: None,
        told: Vec::new(),
        cells: Vec::new(),
        hop: None,
    }
}

fn settled(measured: &Measured, mut finding: Finding) -> Finding {
    let rate = |from, to| measured.rate(from, to);
    let identified = identify(&measured.units, &rate, &measured.together, &[]);
    settle(measured, &identified, &mut finding);
    finding
}

/// What is left of a case after its test.
struct Decided {
    kind: TestKind,
    after: Finding,
}

/// A sweep of the fabric, what `shape` sees in it, and the one test that is proposed.
fn decide(fabric: &str, seed: u64, settings: &SweepSettings, shape: &dyn Fn(&Measured) -> Shape, causes: &[Cause]) -> Decided {
    let noise = Some(Noise { kind: NoiseKind::Normal, cv: 0.03 });
    let fabric = Arc::new(Fabric::parse(&format!("seed = {seed}\n{fabric}"), "case").unwrap().with_noise(noise));
    let mut job = Job::new(&fabric, settings);
    job.sweep();
    let first = job.measured();
    let before = settled(&first, finding(shape(&first), causes));
    // It is open: no cause weighs more than another.
    let weights: Vec<f64> = before.suspects.iter().map(|suspect| suspect.weight).collect();
    assert!(weights.len() > 1 && weights.iter().all(|weight| (weight - weights[0]).abs() < 1e-12), "{weights:?}");
    let kind = before.next.as_ref().expect("a test").test.kind;
    job.run(&before);
    let now = job.measured();
    let after = settled(&now, finding(shape(&now), causes));
    assert_eq!(after.told.len(), 1, "{:?}", after.told);
    Decided { kind, after }
}

/// Decide a case with every truth in turn. `truths` are what is added to the fabric, and the cause that it is.
fn case(
    fabric: &dyn Fn(usize) -> String,
    truths: &[Cause],
    settings: &SweepSettings,
    shape: &dyn Fn(&Measured) -> Shape,
    causes: &[Cause],
) {
    let mut right = 0;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let truth = seed as usize % truths.len();
        let Decided { kind, after } = decide(&fabric(truth), seed, settings, shape, causes);
        *kinds.entry(format!("{kind:?}")).or_default() += 1;
        let first = &after.suspects[0];
        if first.cause == truths[truth] && first.weight > after.suspects[1].weight {
            right += 1;
        } else {
            wrong.push(format!("seed {seed}: {:?} is {:?}; {:?}", truths[truth], first.cause, after.told));
        }
    }
    println!("{right} of {SEEDS}, by {kinds:?}");
    assert!(right >= RIGHT, "{right} of {SEEDS}: {wrong:#?}");
}

fn settings(patterns: &[Pattern], sizes: &[u64]) -> SweepSettings {
    SweepSettings {
        patterns: patterns.to_vec(),
        sizes: sizes.to_vec(),
        mover: MoverKind::Simulated,
        isolated: true,
        ..SweepSettings::default()
    }
}

/// Pairs that these settings measure.
fn pairs(settings: &SweepSettings, fabric: &str) -> Vec<(usize, usize)> {
    let topology = Fabric::parse(fabric, "case").unwrap().topology();
    let work = Work::new(settings, &topology);
    let of = |target: usize| match work.target(target) {
        Some(Target::Pair(cell)) if cell.pattern == Pattern::Peer => Some((cell.from, cell.to)),
        _ => None,
    };
    (0..work.len()).filter_map(of).collect()
}

const EIGHT_HOSTS: &str = "
[hosts]
count = 8
ranks = 1
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.inter_node]
alpha = \"10us\"
rate = \"25GB/s\"
spread = [\"24GB/s\", \"26GB/s\"]
";

/// Of a sampled sweep: a pair whose ends were measured in no other, in this role.
fn lonely(settings: &SweepSettings) -> (usize, usize) {
    let all = pairs(settings, EIGHT_HOSTS);
    let alone = |&&(from, to): &&(usize, usize)| all.iter().filter(|own| own.0 == from || own.1 == to).count() == 1;
    *all.iter().find(alone).expect("a lonely pair")
}

#[test]
fn of_a_slow_pair_among_sampled_ones_it_is_told_whose_fault_it_is() {
    let settings = SweepSettings { pairs: 1, ..settings(&[Pattern::Peer], &[4096, 16 << 20]) };
    let (from, to) = lonely(&settings);
    let fault = |truth: usize| match truth {
        0 => format!("from = {from}"),
        1 => format!("to = {to}"),
        _ => format!("from = {from}\nto = {to}"),
    };
    let fabric = |truth: usize| format!("{EIGHT_HOSTS}[[fault]]\nkind = \"slow\"\nfactor = 0.4\n{}\n", fault(truth));
    // Without noise the three are the same to the sweep.
    let seen = |truth: usize| {
        let mut job = Job::new(&Arc::new(Fabric::parse(&fabric(truth), "case").unwrap()), &settings);
        job.sweep();
        format!("{:?}", job.measured().peer)
    };
    assert_eq!((seen(0), seen(1)), (seen(1), seen(2)));
    let shape = |seen: &Measured| {
        let pair = seen.peer.get(from, to).unwrap();
        Shape::SlowUntold { from, to, share: seen.share(pair) }
    };
    let truths = [Cause::Sender, Cause::Receiver, Cause::Way];
    // None is named beforehand: these are the ones to ask about.
    case(&fabric, &truths, &settings, &shape, &[]);
}

#[test]
fn of_a_fan_that_does_not_scale_it_is_told_whether_the_receiver_or_the_way_between_sockets_bounds_it() {
    let machine = "
[hosts]
count = 1
ranks = 8
sockets = 2
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.intra_node]
alpha = \"5us\"
rate = \"20GB/s\"
";
    let settings = SweepSettings {
        peers: Peers::Listed(vec![(0, vec![4, 5, 6, 7])]),
        widths: vec![4],
        ..settings(&[Pattern::Peer, Pattern::FanIn], &[4096, 16 << 20])
    };
    let bound = |per: &str| format!("{machine}[[shared]]\nname = \"bound\"\nper = \"{per}\"\ndirection = \"in\"\nrate = \"30GB/s\"\n");
    let fabric = |truth: usize| bound(["rank", "socket"][truth]);
    let shape = |seen: &Measured| {
        let fan = seen.together.iter().find(|own| own.bytes == 16 << 20).unwrap();
        Shape::FanDoesNotScale { roots: vec![0], width: 4, concurrency: fan.aggregate() / 20e9, into: true }
    };
    let causes = [Cause::ReceiveLimit, Cause::CrossSocket];
    case(&fabric, &causes, &settings, &shape, &causes);
}

#[test]
fn of_transfers_that_are_slow_together_it_is_told_whether_they_are_slow_alone() {
    let machine = "
[hosts]
count = 4
ranks = 2
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.intra_node]
alpha = \"5us\"
rate = \"20GB/s\"
[path.inter_node]
alpha = \"10us\"
rate = \"10GB/s\"
";
    let flows = [(0, 4), (2, 6)];
    let transfers = flows.iter().map(|&(from, to)| Transfer { set: 0, from, to }).collect();
    let sampled = SweepSettings { pairs: 2, transfers, ..settings(&[Pattern::Peer, Pattern::Custom], &[4096, 16 << 20]) };
    // Pairs that do not pass the way in question.
    let over = |&(from, to): &(usize, usize)| from < 4 && to >= 4;
    let seeds = (1..).map(|seed| SweepSettings { seed, ..sampled.clone() });
    let settings = seeds.into_iter().find(|settings| !pairs(settings, machine).iter().any(over)).unwrap();
    let fabric = |truth: usize| match truth {
        0 => format!("{machine}[[trunk]]\nname = \"trunk\"\nfrom = \"0-1\"\nto = \"2-3\"\nrate = \"12GB/s\"\n"),
        _ => format!("{machine}[[fault]]\nkind = \"slow\"\nfrom = \"0-3\"\nto = \"4-7\"\nfactor = 0.6\n"),
    };
    let shape = |seen: &Measured| {
        let ran = seen.together.iter().find(|own| own.bytes == 16 << 20).unwrap();
        Shape::SlowPair { from: 0, to: 4, share: ran.bytes as f64 / ran.own[0] / 10e9 }
    };
    case(&fabric, &[Cause::SharedTrunk, Cause::Way], &settings, &shape, &[Cause::SharedTrunk, Cause::Way]);
}

#[test]
fn of_a_slow_pair_it_is_told_whether_latency_or_rate_bounds_it() {
    let one_size = settings(&[Pattern::Peer], &[256 << 10]);
    // A message of 256 KiB takes 10 + 10.5 µs on the others, 61 µs here.
    let slow = |truth: usize| match truth {
        0 => "rate = \"25GB/s\"\nalpha = \"51us\"",
        _ => "rate = \"5.14GB/s\"\nalpha = \"10us\"",
    };
    let fabric = |truth: usize| {
        let both = [(2, 5), (5, 2)].map(|(from, to)| format!("[[pair]]\nfrom = {from}\nto = {to}\n{}\n", slow(truth)));
        format!("{EIGHT_HOSTS}{}", both.concat())
    };
    let shape = |seen: &Measured| {
        let pair = seen.peer.get(2, 5).unwrap();
        Shape::SlowPair { from: 2, to: 5, share: seen.share(pair) }
    };
    case(&fabric, &[Cause::LongDistance, Cause::NarrowSlot], &one_size, &shape, &[Cause::LongDistance, Cause::NarrowSlot]);
}
