//! A fabric file as it is written: names and spans, nothing checked. `parse` makes a [`super::Fabric`] of it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::layout::Unit;
use super::noise::NoiseKind;
use super::resource::Direction;

pub(super) type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub about: String,
    #[serde(default)]
    pub seed: u64,
    pub hosts: Spanned<Hosts>,
    #[serde(default)]
    pub path: Paths,
    pub matrix: Option<Matrix>,
    #[serde(default)]
    pub pair: Vec<Pair>,
    #[serde(default)]
    pub shared: Vec<Spanned<SharedEntry>>,
    #[serde(default)]
    pub trunk: Vec<TrunkEntry>,
    pub hardware: Option<Spanned<HardwareEntry>>,
    pub noise: Option<NoiseEntry>,
    #[serde(default)]
    pub fault: Vec<Spanned<FaultEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hosts {
    pub count: Option<Spanned<usize>>,
    pub names: Option<Spanned<Vec<String>>>,
    /// on each host
    pub ranks: Spanned<usize>,
    pub sockets: Option<Spanned<Division>>,
    pub switches: Option<Spanned<Division>>,
    pub nics: Option<Spanned<Division>>,
    /// of the hosts
    pub racks: Option<Spanned<Division>>,
    /// of each rank
    pub memory: Text,
    /// that a rank's copies can stay in
    pub cache: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HardwareEntry {
    pub device: String,
    pub pcie: Text,
    pub uplink: Option<Text>,
    pub nvlinks: Option<Spanned<u32>>,
    pub nvlink: Option<Text>,
    pub nic: Option<Text>,
}

/// How ranks of a host, or hosts, fall into groups.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of equal groups, or their members such as [\"0-3\", \"4-7\"]")]
pub(super) enum Division {
    Count(usize),
    Members(Vec<String>),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Paths {
    pub local: Option<Spanned<Path>>,
    pub intra_node: Option<Spanned<Path>>,
    pub same_switch: Option<Spanned<Path>>,
    pub same_socket: Option<Spanned<Path>>,
    pub cross_socket: Option<Spanned<Path>>,
    pub inter_node: Option<Spanned<Path>>,
    pub same_rail: Option<Spanned<Path>>,
    pub same_rack: Option<Spanned<Path>>,
    pub cross_rack: Option<Spanned<Path>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Path {
    pub alpha: Text,
    pub rate: Text,
    pub spread: Option<Spanned<[Text; 2]>>,
    pub duplex: Option<Spanned<f64>>,
    #[serde(default)]
    pub breakpoints: Vec<BreakpointEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BreakpointEntry {
    pub below: Text,
    pub alpha: Text,
    pub rate: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Matrix {
    /// of one unit of a row's numbers, such as "GB/s"
    pub unit: Text,
    /// the message size at which bytes over time are these numbers, α included, as a measured matrix is; without it they are the links'
    /// rates
    pub at: Option<Text>,
    /// `rows[sender][receiver]`; 0 on the diagonal
    pub rows: Spanned<Vec<Spanned<Vec<Spanned<f64>>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    pub from: Spanned<usize>,
    pub to: Spanned<usize>,
    pub rate: Text,
    pub alpha: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SharedEntry {
    pub name: String,
    pub per: Spanned<Unit>,
    pub direction: Spanned<Direction>,
    pub rate: Option<Text>,
    pub concurrency: Option<Spanned<ConcurrencyEntry>>,
    pub path: Option<Text>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number such as 1.02, or one for each width such as { 4 = 3.4, 8 = 3.8 }")]
pub(super) enum ConcurrencyEntry {
    Always(f64),
    ByWidth(BTreeMap<String, f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrunkEntry {
    pub name: String,
    pub from: Spanned<Members>,
    pub to: Spanned<Members>,
    pub rate: Text,
    /// of the way back; as `rate` when left out
    pub back: Option<Text>,
}

/// Ranks or hosts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a set such as \"0-3,7\"")]
pub(super) enum Members {
    One(usize),
    Set(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoiseEntry {
    pub kind: NoiseKind,
    pub cv: Spanned<f64>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum FaultName {
    Slow,
    Flaky,
    Dead,
    Hang,
    Narrow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultEntry {
    pub kind: FaultName,
    pub from: Option<Spanned<Members>>,
    pub to: Option<Spanned<Members>>,
    pub rank: Option<Spanned<Members>>,
    pub factor: Option<Spanned<f64>>,
    pub probability: Option<Spanned<f64>>,
    pub after: Option<Spanned<u64>>,
    pub lanes: Option<Spanned<u32>>,
}
