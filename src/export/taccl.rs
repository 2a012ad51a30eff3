use std::path::Path;

use serde::Serialize;

use super::file::{ExportError, write_whole};
use crate::fit::{Fits, Key, Kind};
use crate::topology::{PathClass, Topology};

/// How far apart pairs of a host may lie for one number to stand for all of them.
const UNIFORM: f64 = 0.1;

/// A topology profile as TACCL reads it (Shah et al., NSDI'23; `INPUT_GUIDE.md` of microsoft/taccl): α in µs, β in µs for
/// one chunk of the size told, an "inverse bandwidth" as their sum. Matrices are `[receiver][sender]` there.
///
/// Where all pairs of a host are alike it is a profile of its known topologies (`HubAndSpoke`, `DGX2`), else one of its
/// `custom` topology with a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taccl {
    name: String,
    gpus_per_node: usize,
    nics_per_node: usize,
    alpha: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_betas_list: Option<[f64; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_invbws_list: Option<[f64; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<Vec<u8>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    betas: Option<Vec<Vec<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invbws: Option<Vec<Vec<f64>>>,
    remote_alpha: f64,
    remote_beta: f64,
    remote_invbw: f64,
}

/// The profile of a calibration for chunks of `chunk` bytes.
///
/// TACCL knows one kind of host: all must hold as many ranks, in blocks. What it needs and the fits lack is refused.
pub fn taccl(name: &str, topology: &Topology, fits: &Fits, chunk: u64) -> Result<Taccl, ExportError> {
    let refuse = |why: String| ExportError::NoProfile { why };
    let node_of = topology.node_of();
    let hosts = topology.hosts().len();
    let per_host = topology.world() / hosts.max(1);
    if per_host == 0 || node_of.iter().enumerate().any(|(rank, &node)| node != rank / per_host) {
        return Err(refuse("its hosts must hold as many ranks each, one host after the other".to_owned()));
    }
    let class = |path: PathClass| fits.get(Kind::Peer, &Key::Class { path });
    let beta = |bandwidth: f64| chunk as f64 / bandwidth * 1e6;
    let near = class(PathClass::IntraNode);
    let far = class(PathClass::InterNode);
    let missing = |what: &str| refuse(format!("no fit of peer, {what}: measure peer at two sizes or more"));
    let near = match (near, per_host) {
        (None, 2..) => return Err(missing("intra_node")),
        (near, _) => near,
    };
    if far.is_none() && hosts > 1 {
        return Err(missing("inter_node"));
    }
    // A single host has no remote link; TACCL asks for the numbers all the same.
    let (remote_alpha, remote_beta) = far.map_or((0.0, 0.0), |fit| (fit.line.alpha * 1e6, beta(fit.line.bandwidth)));
    let (alpha, node_beta) = near.map_or((0.0, 0.0), |fit| (fit.line.alpha * 1e6, beta(fit.line.bandwidth)));
    let uniform = near.and_then(|fit| fit.spread.as_ref()).is_none_or(|spread| spread.max <= spread.min * (1.0 + UNIFORM));
    let mut profile = Taccl {
        name: name.to_owned(),
        gpus_per_node: per_host,
        nics_per_node: if hosts > 1 { per_host } else { 1 },
        alpha,
        node_betas_list: uniform.then_some([node_beta]),
        node_invbws_list: uniform.then_some([alpha + node_beta]),
        links: None,
        betas: None,
        invbws: None,
        remote_alpha,
        remote_beta,
        remote_invbw: remote_alpha + remote_beta,
    };
    if !uniform {
        // The first host stands for all.
        let pair = |from: usize, to: usize| fits.get(Kind::Peer, &Key::Pair { from, to });
        let mut links = vec![vec![0; per_host]; per_host];
        let (mut betas, mut invbws) = (vec![vec![0.0; per_host]; per_host], vec![vec![0.0; per_host]; per_host]);
        for (to, from) in (0..per_host).flat_map(|to| (0..per_host).map(move |from| (to, from))).filter(|(to, from)| to != from) {
            let fit = pair(from, to).ok_or_else(|| missing(&format!("{from} to {to}")))?;
            links[to][from] = 1;
            betas[to][from] = beta(fit.line.bandwidth);
            invbws[to][from] = fit.line.alpha * 1e6 + betas[to][from];
        }
        (profile.links, profile.betas, profile.invbws) = (Some(links), Some(betas), Some(invbws));
    }
    Ok(profile)
}

/// Write [`taccl`] to a file, whole or not at all.
pub fn write_taccl(profile: &Taccl, path: &Path) -> Result<(), ExportError> {
    write_whole(path, |out| Ok(serde_json::to_writer_pretty(out, profile)?))
}
