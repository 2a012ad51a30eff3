//! What the fits are made from: plain times with what they belong to.

use std::collections::HashMap;

use super::key::{Fan, Kind};
use crate::topology::PathClass;

/// What a time belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Flow<'a> {
    /// a copy inside a rank
    Local { rank: usize },
    /// one from its host's memory into its GPU's
    HostToDevice { rank: usize },
    /// and back
    DeviceToHost { rank: usize },
    /// one way, alone
    Peer { from: usize, to: usize, path: PathClass },
    /// one direction of two at once
    Duplex { from: usize, to: usize, path: PathClass },
    /// one peer's message of a fan
    Fan {
        fan: Fan,
        root: usize,
        /// in any order
        peers: &'a [usize],
        /// of this peer's message
        path: PathClass,
        /// which repeat of this fan and size it is: its root's time counts once, whichever peers bring it along
        repeat: u64,
        /// the root's time of this repeat, over all its peers' messages, in seconds of one message each
        root_seconds: Option<f64>,
    },
    /// one rank's own time
    Relay { receive_path: PathClass, send_path: PathClass },
}

/// One repeat.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub flow: Flow<'a>,
    /// size of a message
    pub bytes: u64,
    /// time of a message
    pub seconds: f64,
}

/// What a row is of, in one number that sorts by kind, then ranks (or the fan, or the paths), then path class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code(u64);

impl Code {
    const RANK_BITS: u32 = 26;
    const PATH_BITS: u32 = 8;

    /// `None` beyond 67 million ranks.
    pub fn new(kind: Kind, a: usize, b: usize, path: usize) -> Option<Self> {
        let fits = |value: usize, bits: u32| (value >> bits == 0).then_some(value as u64);
        let kind = Kind::ALL.iter().position(|other| *other == kind)? as u64;
        let (a, b, path) = (fits(a, Self::RANK_BITS)?, fits(b, Self::RANK_BITS)?, fits(path, Self::PATH_BITS)?);
        Some(Self((((kind << Self::RANK_BITS) | a) << Self::RANK_BITS | b) << Self::PATH_BITS | path))
    }

    pub fn kind(self) -> Kind {
        Kind::ALL[(self.0 >> (2 * Self::RANK_BITS + Self::PATH_BITS)) as usize]
    }

    pub fn a(self) -> usize {
        (self.0 >> (Self::RANK_BITS + Self::PATH_BITS)) as usize & ((1 << Self::RANK_BITS) - 1)
    }

    pub fn b(self) -> usize {
        (self.0 >> Self::PATH_BITS) as usize & ((1 << Self::RANK_BITS) - 1)
    }

    pub fn path(self) -> usize {
        self.0 as usize & ((1 << Self::PATH_BITS) - 1)
    }
}

/// One time: 24 bytes, since a large world has tens of millions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub code: Code,
    pub bytes: u64,
    pub seconds: f64,
}

/// One repeat of a fan as its root saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootRow {
    /// index of the fan
    pub fan: usize,
    /// of one message
    pub bytes: u64,
    pub repeat: u64,
    pub seconds: f64,
}

/// A fan that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FanKey {
    pub fan: Fan,
    pub root: usize,
    /// ascending
    pub peers: Box<[usize]>,
}

/// Times as they come, until they are fitted.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    pub(super) rows: Vec<Row>,
    pub(super) roots: Vec<RootRow>,
    /// path classes in the order seen; rows hold the index
    pub(super) paths: Vec<PathClass>,
    /// fans in the order seen, and what all their messages travel over; rows hold the index
    pub(super) fans: Vec<(FanKey, Option<PathClass>)>,
    index: HashMap<FanKey, usize>,
    pub(super) ignored: usize,
}

impl Observations {
    /// Room for so many times.
    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Takes one in. A time that is not above 0, or a fan without peers, is counted as ignored and otherwise left out.
    pub fn push(&mut self, observation: Observation<'_>) {
        if self.take(observation).is_none() {
            self.ignored += 1;
        }
    }

    fn take(&mut self, Observation { flow, bytes, seconds }: Observation<'_>) -> Option<()> {
        let timed = |seconds: f64| (seconds.is_finite() && seconds > 0.0).then_some(seconds);
        let seconds = timed(seconds)?;
        let mut own = |kind, rank| Code::new(kind, rank, rank, self.path(PathClass::Local));
        let code = match flow {
            Flow::Local { rank } => own(Kind::Local, rank)?,
            Flow::HostToDevice { rank } => own(Kind::HostToDevice, rank)?,
            Flow::DeviceToHost { rank } => own(Kind::DeviceToHost, rank)?,
            Flow::Peer { from, to, path } => Code::new(Kind::Peer, from, to, self.path(path))?,
            Flow::Duplex { from, to, path } => Code::new(Kind::Duplex, from, to, self.path(path))?,
            Flow::Relay { receive_path, send_path } => Code::new(Kind::Relay, self.path(receive_path), self.path(send_path), 0)?,
            Flow::Fan { fan, root, peers, path, repeat, root_seconds } => {
                let index = self.fan(fan, root, peers, path)?;
                if let Some(seconds) = root_seconds.and_then(timed) {
                    self.roots.push(RootRow { fan: index, bytes, repeat, seconds });
                }
                Code::new(fan.kind(), index, 0, 0)?
            }
        };
        self.rows.push(Row { code, bytes, seconds });
        Some(())
    }

    fn path(&mut self, path: PathClass) -> usize {
        self.paths.iter().position(|other| *other == path).unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        })
    }

    fn fan(&mut self, fan: Fan, root: usize, peers: &[usize], path: PathClass) -> Option<usize> {
        if peers.is_empty() {
            return None;
        }
        let mut peers: Box<[usize]> = peers.into();
        peers.sort_unstable();
        let key = FanKey { fan, root, peers };
        if let Some(&index) = self.index.get(&key) {
            let common = &mut self.fans[index].1;
            if *common != Some(path) {
                *common = None;
            }
            return Some(index);
        }
        self.fans.push((key.clone(), Some(path)));
        self.index.insert(key, self.fans.len() - 1);
        Some(self.fans.len() - 1)
    }
}

impl<'a> Extend<Observation<'a>> for Observations {
    fn extend<T: IntoIterator<Item = Observation<'a>>>(&mut self, observations: T) {
        for observation in observations {
            self.push(observation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_sort_by_kind_ranks_and_path_and_give_them_back() {
        let code = Code::new(Kind::FanIn, 5, (1 << 26) - 1, 255).unwrap();
        assert_eq!((code.kind(), code.a(), code.b(), code.path()), (Kind::FanIn, 5, (1 << 26) - 1, 255));
        assert_eq!(Code::new(Kind::Peer, 1 << 26, 0, 0), None);
        assert_eq!(Code::new(Kind::Peer, 0, 0, 256), None);
        let order =
            [(Kind::Local, 9, 9, 9), (Kind::DeviceToHost, 1, 1, 1), (Kind::Peer, 0, 7, 1), (Kind::Peer, 1, 0, 0), (Kind::Relay, 0, 0, 0)];
        let codes: Vec<Code> = order.iter().map(|&(kind, a, b, path)| Code::new(kind, a, b, path).unwrap()).collect();
        assert!(codes.is_sorted());
    }

    #[test]
    fn what_is_no_time_is_counted_and_left_out() {
        let mut observations = Observations::default();
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            observations.push(Observation { flow: Flow::Local { rank: 0 }, bytes: 8, seconds });
        }
        let alone = Flow::Fan { fan: Fan::In, root: 0, peers: &[], path: PathClass::IntraNode, repeat: 0, root_seconds: None };
        observations.push(Observation { flow: alone, bytes: 8, seconds: 1.0 });
        assert_eq!((observations.ignored, observations.rows.len()), (5, 0));
    }
}
