//! What a fit is of.

use serde::{Deserialize, Serialize};

use crate::topology::PathClass;

/// Which times a fit goes through. `receive` and `send` are no patterns of their own: they are a fan's time as its root saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// copies inside a rank
    Local,
    /// copies from a rank's host memory into its GPU's
    HostToDevice,
    /// and back
    DeviceToHost,
    /// one rank sends to another while all others idle
    Peer,
    /// two ranks send to each other at once; one direction's own time
    Duplex,
    /// 1 → N, the peers' own times
    FanOut,
    /// N → 1, the peers' own times
    FanIn,
    /// N → 1, all bytes against the root's time
    Receive,
    /// 1 → N, all bytes against the root's time
    Send,
    /// every rank receives from one side while it sends to the other; its own time
    Relay,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Local,
        Self::HostToDevice,
        Self::DeviceToHost,
        Self::Peer,
        Self::Duplex,
        Self::FanOut,
        Self::FanIn,
        Self::Receive,
        Self::Send,
        Self::Relay,
    ];

    /// The name used in files and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::HostToDevice => "host_to_device",
            Self::DeviceToHost => "device_to_host",
            Self::Peer => "peer",
            Self::Duplex => "duplex",
            Self::FanOut => "fan_out",
            Self::FanIn => "fan_in",
            Self::Receive => "receive",
            Self::Send => "send",
            Self::Relay => "relay",
        }
    }

    /// True for a rank's own copies, whose key is the rank.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Local | Self::HostToDevice | Self::DeviceToHost)
    }
}

/// Which way a fan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fan {
    /// N → 1
    In,
    /// 1 → N
    Out,
}

impl Fan {
    /// The fit of the peers' own times.
    pub const fn kind(self) -> Kind {
        match self {
            Self::In => Kind::FanIn,
            Self::Out => Kind::FanOut,
        }
    }

    /// The fit of the root's time.
    pub const fn root_kind(self) -> Kind {
        match self {
            Self::In => Kind::Receive,
            Self::Out => Kind::Send,
        }
    }
}

/// Which ranks or paths a fit is of. In files an object with the fields of its variant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Key {
    /// all ranks or pairs of a path class together
    Class {
        path: PathClass,
    },
    /// all fans of a width whose messages take one path class
    FanClass {
        path: PathClass,
        width: usize,
    },
    /// what a relaying rank receives over and sends over
    Relay {
        receive_path: PathClass,
        send_path: PathClass,
    },
    Rank {
        rank: usize,
    },
    /// one direction of a pair
    Pair {
        from: usize,
        to: usize,
    },
    /// one fan; the width alone would average fans that share other resources (8 × B70: 12.6 against 55.2 GB/s at width 2)
    Fan {
        root: usize,
        /// ascending
        peers: Box<[usize]>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_objects_in_files() {
        let json = |key: Key| serde_json::to_value(key).unwrap();
        assert_eq!(json(Key::Class { path: PathClass::IntraNode }), json!({"path": "intra_node"}));
        assert_eq!(json(Key::FanClass { path: PathClass::InterNode, width: 4 }), json!({"path": "inter_node", "width": 4}));
        let relay = Key::Relay { receive_path: PathClass::InterNode, send_path: PathClass::IntraNode };
        assert_eq!(json(relay), json!({"receive_path": "inter_node", "send_path": "intra_node"}));
        assert_eq!(json(Key::Rank { rank: 3 }), json!({"rank": 3}));
        assert_eq!(json(Key::Pair { from: 2, to: 0 }), json!({"from": 2, "to": 0}));
        assert_eq!(json(Key::Fan { root: 0, peers: [1, 2].into() }), json!({"root": 0, "peers": [1, 2]}));
    }

    #[test]
    fn kinds_are_named_as_in_files() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.name()));
        }
    }
}
