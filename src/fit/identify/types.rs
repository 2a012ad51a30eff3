use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::fit::Interval;
use crate::sample::Pattern;
use crate::topology::{PathClass, Unit};

/// What a pair gives alone, bytes per second.
pub type PairRates<'a> = dyn Fn(usize, usize) -> Option<f64> + 'a;

/// Transfers that ran at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    pub pattern: Pattern,
    /// of a fan
    pub root: Option<usize>,
    /// (sender, receiver) each
    pub flows: Vec<(usize, usize)>,
    /// of one message
    pub bytes: u64,
    /// until the last is through, seconds of one message each: the median; of a fan as its root saw it. Of `peer`, which are
    /// probes that went on each by itself: the longest mean.
    pub seconds: f64,
    /// of that median, 95 %; `None` below 6 repeats
    pub interval: Option<Interval>,
    /// each flow's own median time of a message, seconds, in the order of `flows`; NaN where it has none
    pub own: Vec<f64>,
    /// what each took alone at the same size about the same time, seconds; empty where only the rates of the pairs tell
    pub alone: Vec<f64>,
    /// repeats
    pub n: usize,
}

impl Together {
    /// All bytes over the whole time, bytes per second.
    pub fn aggregate(&self) -> f64 {
        self.bytes as f64 * self.flows.len() as f64 / self.seconds
    }
}

/// What a published table tells of fans: the least or the greatest aggregate among several of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Extreme {
    /// root and peers of each fan-in
    pub fans: Vec<(usize, Vec<usize>)>,
    /// true for the greatest
    pub most: bool,
    /// bytes per second
    pub aggregate: f64,
}

/// Who has a resource, and which way bytes pass it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// a rank, a switch, a socket or a host: what leaves it, enters it, or stays within
    Unit { unit: Unit, side: Side },
    /// all units of one level alike
    Every { level: crate::topology::Level, side: Side },
    /// no known part of the machine: hypothetical, by the hosts (or ranks, within a host) at its ends
    Between { from: Vec<usize>, to: Vec<usize> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Out,
    In,
    Within,
}

/// How the flows of a fan could share what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Explanation {
    /// nothing is shared: the slowest pair decides
    SlowestPair,
    /// fixed capacities of the root and of the links between sockets: the busiest one decides
    Busiest,
    /// the same, with one capacity of the root for each width
    BusiestByWidth,
    /// the root serves one peer after another
    TimeShared,
    /// the same, so many at a time
    TimeSharedBy,
    /// one after another from each socket, the sockets at the same time
    TimeSharedBySocket,
    /// the link between sockets serves one after another, the others overlap
    TimeSharedLink,
    /// between the slowest pair and one after another
    Mixture,
    /// the same, with fixed capacities
    MixtureBusiest,
}

impl Explanation {
    /// All of them; of two that do equally well the earlier one is preferred.
    pub const ALL: [Self; 9] = [
        Self::SlowestPair,
        Self::TimeShared,
        Self::TimeSharedBySocket,
        Self::TimeSharedBy,
        Self::Busiest,
        Self::TimeSharedLink,
        Self::Mixture,
        Self::BusiestByWidth,
        Self::MixtureBusiest,
    ];
}

/// How well an explanation does over all fans of one direction and class of paths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stand {
    pub explanation: Explanation,
    /// `fan_in` or `fan_out`
    pub pattern: Pattern,
    /// of all messages of its fans; `None` for fans that mix them
    pub path: Option<PathClass>,
    /// `R` (of a width: `R4`) and `X` in bytes per second, `c` and `theta` plain; by name, in that order. What binds nowhere is
    /// left out.
    pub parameters: Vec<(Cow<'static, str>, f64)>,
    /// mean of the relative errors, and the largest, without signs
    pub mean: f64,
    pub worst: f64,
    /// mean over fans of more than two peers; NaN without any
    pub wide: f64,
    /// the mean with a penalty for each parameter: what they are ordered by
    pub score: f64,
    /// fans and extremes that it was judged by
    pub n: usize,
}

/// One fan as every explanation has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    pub root: usize,
    /// ascending
    pub peers: Vec<usize>,
    /// `fan_in` or `fan_out`
    pub pattern: Pattern,
    /// measured, bytes per second
    pub aggregate: f64,
    /// Σ bytes/rate alone over the time together; below 1 it is a collapse
    pub concurrency: Option<f64>,
    /// what each would give, bytes per second, and its relative error with its sign
    pub by: Vec<(Explanation, f64, f64)>,
    pub best: Option<Explanation>,
}

/// One published extreme as every explanation has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtremeExplained {
    /// how many fans it is of, and the peers of the widest
    pub fans: usize,
    pub width: usize,
    /// true for the greatest
    pub most: bool,
    /// published, bytes per second
    pub aggregate: f64,
    /// what each would give, bytes per second, and its relative error with its sign
    pub by: Vec<(Explanation, f64, f64)>,
}

/// What passes a resource at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    pub owner: Owner,
    /// such as `link out of NUMA 0 of b70`
    pub name: String,
    /// of the flows that it was seen with; `None` for all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathClass>,
    /// bytes per second; `None` for an endpoint that serves in turns, and where it never bound. With a concurrency besides: the
    /// data do not tell the two apart.
    pub rate: Option<f64>,
    /// of the rate, 95 %
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// effective concurrency of an endpoint that serves in turns; not clamped
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<f64>,
    /// the same by number of peers, ascending
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_width: Vec<(usize, f64)>,
    /// no less than this: so much passed it, in one flow or several; bytes per second
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// measurements in which it bound, or that its concurrency is from
    pub n: usize,
}

/// What is left of a pair's rate when it goes both ways at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuplexRatio {
    pub path: PathClass,
    /// within a host: whether both ranks are of one NUMA node, where that is known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_socket: Option<bool>,
    /// median over the directions of all pairs
    pub ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// directions
    pub n: usize,
}

/// Two explanations that the data do not tell apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Undecided {
    pub one: Explanation,
    pub other: Explanation,
    /// direction of the fans
    pub pattern: Pattern,
    /// a sentence: what is open, by which data
    pub say: String,
    /// the cheapest fan that would tell: root and peers; without peers if there is none
    pub root: usize,
    pub peers: Vec<usize>,
    /// what the two would give there, bytes per second
    pub predicted: (f64, f64),
}

/// Flows that slow each other although nothing known is shared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hidden {
    /// such as `shared link from node1, node2 to node3, node4`
    pub name: String,
    /// hosts (numbers of [`crate::topology::Level::Host`]) at its ends; empty if it is within one host
    pub from_hosts: Vec<usize>,
    pub to_hosts: Vec<usize>,
    /// flows that were seen to share it
    pub flows: Vec<(usize, usize)>,
    /// bytes per second
    pub capacity: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// measurements that it was seen in
    pub n: usize,
}

/// All that was identified.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Identified {
    /// explanations, best first; those of most fans before others; empty without fans
    pub stands: Vec<Stand>,
    pub fans: Vec<Explained>,
    pub extremes: Vec<ExtremeExplained>,
    pub capacities: Vec<Capacity>,
    /// of each class of paths
    pub duplex: Vec<DuplexRatio>,
    pub undecided: Vec<Undecided>,
    pub hidden: Vec<Hidden>,
}
