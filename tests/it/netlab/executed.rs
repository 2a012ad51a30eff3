//! Plans predicted from the laboratory's own calibration, and run in it with every byte compared (issue 6, must show c): one plan a
//! strategy, each bound by another link that was shaped for it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use toposcope::plan::strategy::{Held, Job, Strategy};
use toposcope::plan::{files, map};

use super::lab::{Lab, payload_rate};
use super::settled;
use crate::place::TOPOSCOPE;
use crate::policies::{Sync, Tensors};

const WORLD: usize = 8;
/// Ports of hosts and the trunk, Mbit/s. What the first trainer sends binds `direct`, what the relay sends the relays, the trunk what
/// all trainers send at once, and what one engine sends binds what engines tell each other.
const PORT: u32 = 200;
const TRUNK: u32 = 200;
/// of a trunk that is worth staying away from
const NARROW: u32 = 80;
const TRAINER: (usize, u32) = (0, 150);
const ENGINE: (usize, u32) = (5, 120);
const BYTES: u64 = 12 << 20;
const LIMIT: Duration = Duration::from_secs(400);

fn shaped(trunk: u32) -> Option<Lab> {
    let lab = Lab::with_trunk(WORLD / 2, WORLD / 2)?;
    for rank in 0..WORLD {
        let slow = [TRAINER, ENGINE].into_iter().find(|&(slow, _)| slow == rank);
        lab.shape_out(rank + 1, slow.map_or(PORT, |(_, rate)| rate));
        lab.shape_in(rank + 1, PORT);
    }
    lab.shape_trunk(0, trunk);
    lab.shape_trunk(1, trunk);
    Some(lab)
}

/// Pairs, what each host sends and receives at most, and pairs across at the same time: a calibration of all that binds here.
fn calibrated(lab: &Lab) -> PathBuf {
    let sets: [&[(usize, usize)]; 4] = [&[(0, 4), (3, 6)], &[(0, 5), (1, 4), (2, 6), (3, 7)], &[(4, 0), (7, 3)], &[(4, 0), (5, 2), (7, 3)]];
    let mut text = String::from("set,from,to\n");
    for (set, transfers) in sets.iter().enumerate() {
        for (from, to) in *transfers {
            writeln!(text, "{set},{from},{to}").unwrap();
        }
    }
    let file = lab.folder().join("across.csv");
    fs::write(&file, text).unwrap();
    let out = lab.folder().join("cal.json");
    let mut job = lab.mpirun(1, WORLD, [TOPOSCOPE, "sweep", "--engine", "mpi", "--arena", "8MiB", "--isolated"]);
    job.args(["--patterns", "local,peer,fan_in,fan_out,custom", "--widths", "3", "--sizes", "64KiB,2MiB", "--repeats", "6"]);
    job.arg("--pattern-file").arg(&file).arg("--session").arg(lab.folder().join("calibration")).arg("--out").arg(&out);
    let ran = lab.run(&mut job, LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");
    out
}

/// Trainers are the near hosts, engines the far ones.
fn job(held: Held) -> Job {
    let hosts = (0..WORLD).map(|rank| rank / (WORLD / 2)).collect();
    Job { hosts, bytes: BYTES, trainers: (0..4).collect(), engines: (4..8).collect(), held, message: Some(4 << 20) }
}

fn plan(lab: &Lab, strategy: Strategy, held: Held) -> PathBuf {
    let file = lab.folder().join(format!("{}.json", strategy.slug()));
    fs::write(&file, files::write_traffic(&strategy.traffic(&job(held)).unwrap())).unwrap();
    file
}

fn executed(lab: &Lab, calibration: &Path, plan: &Path, mover: &str) -> Value {
    let mut job = lab.mpirun(1, WORLD, [TOPOSCOPE, "replay", "--execute", "--json", "--repeats", "2", "--mover", mover, "--calibration"]);
    let ran = lab.run(job.arg(calibration).arg(plan).arg("--session").arg(plan.with_extension(mover)), LIMIT);
    assert!(ran.status.is_some(), "{ran:?}");
    let mut told: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    told.remove(0)
}

#[test]
fn five_plans_take_what_the_laboratorys_own_calibration_says_and_what_binds_is_what_was_shaped() {
    settled(|| {
        let Some(lab) = shaped(TRUNK) else { return };
        let calibration = calibrated(&lab);
        let seconds = |times: f64, mbit: u32| times * BYTES as f64 / payload_rate(mbit);
        // The strategy, its link, how that is named, and what it takes by what was set.
        let cases = [
            (Strategy::Direct, Held::Whole, "send side of rank 0", seconds(4.0, TRAINER.1)),
            (Strategy::Relay, Held::Whole, "send side of rank 4", seconds(1.0, TRAINER.1) + seconds(3.0, PORT)),
            (Strategy::ShardedDirect, Held::Shards, "shared link from node", seconds(4.0, TRUNK)),
            (Strategy::ShardedPlan, Held::Shards, "send side of rank 5", seconds(1.0, TRUNK) + seconds(0.75, ENGINE.1)),
            (Strategy::PipelinedRelay { slices: 8 }, Held::Whole, "send side of rank 4", seconds(3.0, PORT)),
        ];
        let mut told = String::new();
        let mut good = true;
        for (strategy, held, link, set) in cases {
            let execution = executed(&lab, &calibration, &plan(&lab, strategy, held), "mpi_sendrecv");
            let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            let (measured, foreseen) = (number(&execution["residual"]["seconds"]), number(&execution["foreseen"]["seconds"]));
            let bottleneck = execution["foreseen"]["bottleneck"].as_str().unwrap_or_default().to_owned();
            let verified = execution["verified"].as_u64();
            let bytes = strategy.traffic(&job(held)).unwrap().bytes();
            let whole = verified == Some(3 * bytes) && execution.get("failed").is_none();
            let near = (foreseen / measured - 1.0).abs() < 0.15;
            let named = bottleneck.contains(link);
            good &= whole && near && named;
            writeln!(
                told,
                "{}: measured {measured:.3} s, foreseen {foreseen:.3} s ({:+.1} %), by what was set {set:.3} s; binds: {bottleneck}; {verified:?} bytes{}{}",
                strategy.name(),
                100.0 * (foreseen / measured - 1.0),
                if named { "" } else { " WRONG LINK" },
                if whole { String::new() } else { format!(" NOT WHOLE {}", execution["failed"]) },
            )
            .unwrap();
        }
        eprintln!("{told}");
        assert!(good, "\n{told}");
    });
}

/// The sync as `plan build` plans it by this policy.
fn built(lab: &Lab, (name, sync): (&str, &Sync), policy: &[&str]) -> PathBuf {
    let write = |what: &str, text: String| {
        let file = lab.folder().join(format!("{name}-{what}.json"));
        fs::write(&file, text).unwrap();
        file
    };
    let mut build = Command::new(TOPOSCOPE);
    build
        .args(["plan", "build", "--element-size", "2", "--min-split", "512KiB", "--source"])
        .arg(write("source", map::write(&sync.source)));
    build.arg("--target").arg(write("target", map::write(&sync.target)));
    build.arg("--endpoints").arg(write("endpoints", serde_json::to_string(&sync.endpoints).unwrap()));
    let out = lab.folder().join(format!("{name}-{}.json", policy[0]));
    let ran = build.arg("--policy").args(policy).arg("--out").arg(&out).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    out
}

/// Issue 6, must show d, in the laboratory: who sends is chosen by what links cost, and by load; both run.
#[test]
fn choosing_by_cost_is_not_slower_than_by_load_when_it_is_carried_out() {
    settled(|| {
        let Some(lab) = shaped(NARROW) else { return };
        let calibration = calibrated(&lab);
        let tensor: Tensors<'_> = &[("weight", [2048, 3072], Some(1))];
        let engines = [vec![2, 3, 6, 7]];
        let syncs = [
            ("shards", Sync::new(tensor, 4, &[vec![0, 1], vec![4, 5]], &engines)),
            ("replicas", Sync::new(tensor, 4, &[vec![0], vec![1], vec![4], vec![5]], &engines)),
        ];
        let (mut told, mut good) = (String::new(), true);
        for (name, sync) in &syncs {
            let [plain, chosen] = [&["local_first"][..], &["calibrated", "--calibration", calibration.to_str().unwrap()]].map(|policy| {
                let execution = executed(&lab, &calibration, &built(&lab, (name, sync), policy), "mpi_sendrecv");
                let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
                let (measured, foreseen) = (number(&execution["residual"]["seconds"]), number(&execution["foreseen"]["seconds"]));
                good &= execution.get("failed").is_none() && execution["verified"].as_u64().is_some_and(|bytes| bytes > 0);
                writeln!(told, "{name}, {}: measured {measured:.3} s, foreseen {foreseen:.3} s", policy[0]).unwrap();
                measured
            });
            writeln!(told, "{name}: {:.2} times as fast by cost", plain / chosen).unwrap();
            // What is foreseen is; a moment of noise is not a slower plan.
            good &= chosen <= plain * 1.03;
        }
        eprintln!("{told}");
        assert!(good, "\n{told}");
    });
}
