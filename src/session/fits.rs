//! Every fit of a model's samples.

use super::{GroupShot, Model};
use crate::fit::{Confidence, Fan, Fits, Flow, Observation, Observations};
use crate::sample::Pattern;
use crate::sweep::Group;

/// The good times of every cell's and group's newest take, as fits take them. Sets of a pattern file have no fit: what
/// they are, only their writer knows.
pub fn observations(model: &Model) -> Observations {
    let topology = &model.header.topology;
    let mut all = Observations::with_capacity(usize::try_from(model.samples()).unwrap_or(0));
    let node_of = topology.node_of();
    for (cell, sizes) in model.cells.iter() {
        let path = crate::topology::path_of(&node_of, cell.from, cell.to);
        let flow = match cell.pattern {
            Pattern::Local => Flow::Local { rank: cell.from },
            Pattern::HostToDevice => Flow::HostToDevice { rank: cell.from },
            Pattern::DeviceToHost => Flow::DeviceToHost { rank: cell.from },
            Pattern::Duplex => Flow::Duplex { from: cell.from, to: cell.to, path },
            _ => Flow::Peer { from: cell.from, to: cell.to, path },
        };
        for size in sizes {
            let times = size.shots.iter().filter(|shot| shot.take == size.take).filter_map(super::Shot::seconds_per_message);
            all.extend(times.map(|seconds| Observation { flow, bytes: size.bytes, seconds }));
        }
    }
    for (group, sizes) in model.groups.iter() {
        for size in sizes {
            let newest = size.shots.iter().filter(|shot| shot.shot.take == size.take);
            all.extend(newest.filter_map(|shot| {
                Some(Observation { flow: flow(group, shot)?, bytes: size.bytes, seconds: shot.shot.seconds_per_message()? })
            }));
        }
    }
    all
}

/// Every fit, with intervals if asked for.
pub fn fits(model: &Model, confidence: Option<&Confidence>) -> Fits {
    observations(model).fit(confidence)
}

fn flow<'a>(group: &'a Group, shot: &GroupShot) -> Option<Flow<'a>> {
    let fan = match group.pattern {
        Pattern::FanIn => Fan::In,
        Pattern::FanOut => Fan::Out,
        Pattern::Relay => return Some(Flow::Relay { receive_path: shot.receive_path?, send_path: shot.path }),
        _ => return None,
    };
    let messages = f64::from(shot.shot.messages.max(1));
    Some(Flow::Fan {
        fan,
        root: group.root?,
        peers: &group.peers,
        path: shot.path,
        repeat: u64::from(shot.shot.repeat),
        root_seconds: shot.root_seconds.map(|seconds| seconds / messages),
    })
}
