//! Which way a pair of ranks goes: the finest description that the fabric knows, and the coarser ones that hold it.

use crate::topology::PathClass;

/// A path class of a fabric file. The finer ones stand for nvidia-smi's PIX (`same_switch`), NODE (`same_socket`) and SYS (`cross_socket`),
/// and for what lies between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// a copy within one rank
    Local,
    /// two ranks of one host
    IntraNode,
    /// below one `PCIe` switch
    SameSwitch,
    /// on one socket, but not below one switch
    SameSocket,
    /// between sockets of one host
    CrossSocket,
    /// two ranks on different hosts
    InterNode,
    /// NICs of the same number in one rack: one leaf switch of a rail-optimised network
    SameRail,
    /// hosts of one rack, but not one rail
    SameRack,
    /// between racks
    CrossRack,
}

impl Class {
    pub const ALL: [Self; 9] = [
        Self::Local,
        Self::IntraNode,
        Self::SameSwitch,
        Self::SameSocket,
        Self::CrossSocket,
        Self::InterNode,
        Self::SameRail,
        Self::SameRack,
        Self::CrossRack,
    ];

    /// The name used in fabric files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::IntraNode => "intra_node",
            Self::SameSwitch => "same_switch",
            Self::SameSocket => "same_socket",
            Self::CrossSocket => "cross_socket",
            Self::InterNode => "inter_node",
            Self::SameRail => "same_rail",
            Self::SameRack => "same_rack",
            Self::CrossRack => "cross_rack",
        }
    }

    /// The class that a sample is labelled with.
    pub const fn coarse(self) -> PathClass {
        match self {
            Self::Local => PathClass::Local,
            Self::IntraNode | Self::SameSwitch | Self::SameSocket | Self::CrossSocket => PathClass::IntraNode,
            Self::InterNode | Self::SameRail | Self::SameRack | Self::CrossRack => PathClass::InterNode,
        }
    }

    /// The next coarser class: a pair below one switch is on one socket too, and one of a rail in one rack.
    pub const fn wider(self) -> Option<Self> {
        match self {
            Self::Local | Self::IntraNode | Self::InterNode => None,
            Self::SameSwitch => Some(Self::SameSocket),
            Self::SameSocket | Self::CrossSocket => Some(Self::IntraNode),
            Self::SameRail => Some(Self::SameRack),
            Self::SameRack | Self::CrossRack => Some(Self::InterNode),
        }
    }

    /// This class and the coarser ones that hold it, finest first.
    pub fn chain(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |class| class.wider())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_ends_in_the_one_of_its_samples() {
        for class in Class::ALL {
            assert_eq!(class.chain().last().unwrap().name(), class.coarse().name());
        }
        assert_eq!(Class::SameSwitch.chain().collect::<Vec<_>>(), [Class::SameSwitch, Class::SameSocket, Class::IntraNode]);
    }
}
