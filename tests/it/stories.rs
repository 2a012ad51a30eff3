//! Stories of people who brought up clusters (issue 5, must show d), rebuilt as fabric files from the figures that they published,
//! swept on the simulator and diagnosed. Each names its true cause; those in which nothing was wrong name the reason for silence.

mod alter;
mod planted;

use std::sync::Arc;

use toposcope::diagnose::{Cause, Diagnosis, Measured, Severity, diagnose};
use toposcope::fabric::Fabric;
use toposcope::sample::Pattern;
use toposcope::session::{Header, measured};
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;

use crate::closed_loop::{calibration, sweep};

/// What must come of it.
#[derive(Clone, Copy)]
enum Expect {
    /// the top finding has this cause among its first two
    Top(Cause),
    /// the finding of this rule has it
    Of(&'static str, Cause),
    /// no finding above a note; and where a rule is named, it says why it keeps silent, with these words
    Silent(Option<(&'static str, &'static str)>),
}

struct Story {
    name: &'static str,
    text: &'static str,
    patterns: &'static [Pattern],
    /// what the hosts say of themselves, where a fabric file cannot
    header: fn(&mut Header),
    measured: fn(&mut Measured),
    expect: Expect,
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("stories/", $name, ".toml"))
    };
}

const fn story(name: &'static str, text: &'static str, expect: Expect) -> Story {
    Story { name, text, patterns: &[Pattern::Local, Pattern::Peer], header: |_| {}, measured: |_| {}, expect }
}

const FANS: &[Pattern] = &[Pattern::Local, Pattern::Peer, Pattern::FanIn, Pattern::FanOut];
const RELAY: &[Pattern] = &[Pattern::Local, Pattern::Peer, Pattern::Relay];
const DUPLEX: &[Pattern] = &[Pattern::Local, Pattern::Peer, Pattern::Duplex];

const STORIES: &[Story] = &[
    Story {
        header: |header| alter::redirect(header, "translated"),
        ..story("acs-roce", text!("acs-roce"), Expect::Top(Cause::AcsRedirect))
    },
    // The same, where the control bits cannot be read.
    Story {
        header: |header| alter::iommu(header, "translated"),
        ..story("acs-roce, bits unread", text!("acs-roce"), Expect::Top(Cause::AcsRedirect))
    },
    story("inverted-3090", text!("inverted-3090"), Expect::Top(Cause::NoPeerAccess)),
    story("pair-4090", text!("pair-4090"), Expect::Top(Cause::NoPeerAccess)),
    Story {
        header: |header| alter::redirect(header, "translated"),
        ..story("gdr-dies", text!("gdr-dies"), Expect::Top(Cause::AcsRedirect))
    },
    Story {
        header: |header| {
            alter::redirect(header, "translated");
            alter::direct(header, false);
        },
        ..story("two-causes: ACS", text!("two-causes"), Expect::Top(Cause::AcsRedirect))
    },
    Story {
        header: |header| {
            alter::redirect(header, "translated");
            alter::direct(header, false);
        },
        ..story("two-causes: GDR", text!("two-causes"), Expect::Top(Cause::DirectRdmaMissing))
    },
    Story {
        header: |header| alter::redirect(header, "translated"),
        ..story("plx-5090", text!("plx-5090"), Expect::Top(Cause::AcsRedirect))
    },
    story("small-card", text!("small-card"), Expect::Top(Cause::SmallerDevice)),
    Story {
        header: |header| alter::slot(header, &[1], "Gen2 x4", "Gen2 x4"),
        ..story("z77-slot", text!("z77-slot"), Expect::Top(Cause::NarrowSlot))
    },
    Story {
        header: |header| alter::slot(header, &[0, 1], "Gen3 x8", "Gen1 x8"),
        ..story("z690-slot", text!("z690-slot"), Expect::Of("trained-down", Cause::NarrowSlot))
    },
    story("cxl-x8", text!("cxl-x8"), Expect::Top(Cause::TrainedDown)),
    Story {
        measured: |measured| alter::corrupt(measured, 2),
        ..story("mining-riser", text!("mining-riser"), Expect::Top(Cause::BadCable))
    },
    Story { header: alter::host_memory_of_second_host, ..story("read-role", text!("read-role"), Expect::Top(Cause::ReadRole)) },
    story("four-rails", text!("four-rails"), Expect::Top(Cause::SeveralRails)),
    Story { header: alter::port_moved, ..story("one-port-two-gpus", text!("one-port-two-gpus"), Expect::Top(Cause::SharedPort)) },
    Story {
        header: |header| alter::variable(header, "NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"),
        ..story("first-port", text!("first-port"), Expect::Of("shared-port", Cause::SharedPort))
    },
    story("tcp-alps", text!("tcp-alps"), Expect::Top(Cause::TcpFallback)),
    Story { header: alter::port_names, ..story("port-names", text!("port-names"), Expect::Top(Cause::WrongPort)) },
    Story {
        header: |header| alter::down(header, 3, &[3, 5]),
        ..story("links-down", text!("links-down"), Expect::Top(Cause::MissingNvlinks))
    },
    Story { header: alter::loose_bridge, ..story("loose-bridge", text!("loose-bridge"), Expect::Top(Cause::BadCable)) },
    story("no-nvlink-seen", text!("no-nvlink-seen"), Expect::Top(Cause::FabricManager)),
    story("route-collision", text!("route-collision"), Expect::Top(Cause::RouteCollision)),
    story("flapping", text!("flapping"), Expect::Top(Cause::FlappingLink)),
    story("two-sites", text!("two-sites"), Expect::Top(Cause::LongDistance)),
    // The same, where no variable tells: what all ranks together get does.
    Story { patterns: RELAY, ..story("first-port, untold", text!("first-port"), Expect::Top(Cause::SharedPort)) },
    // Nothing is wrong with these.
    Story {
        header: |header| alter::slot(header, &[0, 1, 2, 3], "Gen5 x16", "Gen1 x16"),
        ..story("idle-link", text!("idle-link"), Expect::Silent(Some(("trained-down", "at rest"))))
    },
    Story { header: alter::emulated, ..story("cloud-vm", text!("cloud-vm"), Expect::Silent(Some(("trained-down", "hypervisor")))) },
    Story { patterns: FANS, ..story("staged-sockets", text!("staged-sockets"), Expect::Silent(None)) },
    Story {
        header: alter::no_bridge,
        ..story("no-bridge", text!("no-bridge"), Expect::Silent(Some(("links-unused", "without a bridge"))))
    },
    story("effective-nvlink", text!("effective-nvlink"), Expect::Silent(None)),
    story("mi250x", text!("mi250x"), Expect::Silent(None)),
    Story {
        patterns: DUPLEX,
        measured: alter::one_way_halved,
        ..story("both-ways", text!("both-ways"), Expect::Silent(Some(("duplex-loss", "healthy"))))
    },
    Story {
        header: alter::storage_ports,
        ..story("storage-ports", text!("storage-ports"), Expect::Silent(Some(("shared-port", "all hosts alike"))))
    },
];

fn told(story: &Story) -> Diagnosis {
    let fabric = Arc::new(Fabric::parse(story.text, story.name).unwrap_or_else(|error| panic!("{}: {error}", story.name)));
    let sizes = vec![4096, 32 << 10, 128 << 10, 1 << 20, 16 << 20, 64 << 20];
    let settings = SweepSettings { patterns: story.patterns.to_vec(), sizes, repeats: 7, isolated: true, ..calibration(0.0) };
    // Relays go to the next host.
    let settings = SweepSettings { shifts: vec![fabric.world() / 2], ..settings };
    let mut run = sweep(&fabric, &settings, false);
    (story.header)(&mut run.model.header);
    let mut seen = measured(&run.model, &Efficiency::default());
    (story.measured)(&mut seen);
    diagnose(&seen)
}

/// One line of the table, and what is wrong with it.
fn row(story: &Story, diagnosis: &Diagnosis) -> (String, Option<String>) {
    let finding = match story.expect {
        Expect::Of(rule, _) => diagnosis.findings.iter().find(|finding| finding.rule == rule),
        Expect::Top(_) | Expect::Silent(_) => diagnosis.findings.first(),
    };
    let causes: Vec<Cause> = finding.iter().flat_map(|finding| finding.suspects.iter().take(2)).map(|suspect| suspect.cause).collect();
    let head =
        finding.map_or_else(|| "–".to_owned(), |finding| format!("{} [{}] {}", finding.severity.name(), finding.rule, finding.title));
    let silence = |rule: &str, words: &str| diagnosis.silenced.iter().any(|silenced| silenced.rule == rule && silenced.why.contains(words));
    let (expected, fault) = match story.expect {
        Expect::Top(cause) | Expect::Of(_, cause) => {
            let fine = causes.contains(&cause) && finding.is_some_and(|finding| !finding.suspects.is_empty());
            (format!("{cause:?}"), (!fine).then(|| format!("{cause:?} is not among the first two")))
        }
        Expect::Silent(why) => {
            let loud = diagnosis.worst().is_some_and(|worst| worst > Severity::Note);
            let unsaid = why.filter(|(rule, words)| !silence(rule, words));
            let fault = if loud {
                Some("it is not silent".to_owned())
            } else {
                unsaid.map(|(rule, words)| format!("{rule} does not say {words:?}"))
            };
            (why.map_or_else(|| "silent".to_owned(), |(rule, words)| format!("silent, {rule}: {words}")), fault)
        }
    };
    (format!("{:<24} | {head} | {causes:?} | {expected}", story.name), fault)
}

#[test]
fn every_story_has_its_true_cause_among_the_first_two_and_false_alarms_stay_silent() {
    let only = std::env::var("STORY").ok();
    let mut faults = Vec::new();
    println!("story | finding | first two causes | expected");
    for story in STORIES.iter().filter(|story| only.as_ref().is_none_or(|only| story.name.contains(only.as_str()))) {
        let diagnosis = told(story);
        let (line, fault) = row(story, &diagnosis);
        println!("{line}");
        if only.is_some() {
            println!("{}", serde_json::to_string_pretty(&diagnosis).unwrap());
        }
        faults.extend(fault.map(|fault| format!("{}: {fault}", story.name)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
