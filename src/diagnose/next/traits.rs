//! How the slowness of a cause behaves: what tests can tell it by.

use super::super::Cause;
use crate::topology::Level;

/// Where it sits, as a slow transfer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Sender,
    Receiver,
    /// one of the two ends
    End,
    /// between two ends that do well with others
    Way,
    /// others that run at the same time
    Beside,
}

/// What the transfers of a fan share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// a fixed rate of the root, whoever its peers are
    Root,
    /// the root, which serves one after another
    Turns,
    /// a fixed rate of the border of the root's unit: only those that cross it
    Border(Level),
    /// nothing: one of them is slow by itself
    Member,
}

/// What a cause says of itself; `None` where it may be either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Traits {
    pub at: Option<At>,
    /// the other direction is as slow
    pub both_ways: Option<bool>,
    /// more messages at a time make up for it
    pub latency: Option<bool>,
    /// it may be over when it is measured again
    pub passing: Option<bool>,
    /// only transfers from or to a device's memory
    pub device: Option<bool>,
    /// only this mover
    pub mover: Option<bool>,
    pub shared: Option<Shared>,
}

/// A link, a port or a device that is as it is: slow for every byte, at any depth, with every mover, always.
const HARDWARE: Traits = Traits {
    at: None,
    both_ways: None,
    latency: Some(false),
    passing: Some(false),
    device: Some(false),
    mover: Some(false),
    shared: Some(Shared::Member),
};

const fn hardware(at: Option<At>, both_ways: Option<bool>) -> Traits {
    Traits { at, both_ways, ..HARDWARE }
}

/// A capacity that several transfers divide: alone each goes at its own rate.
const fn shared(shared: Shared) -> Traits {
    Traits { at: Some(At::Beside), both_ways: None, shared: Some(shared), ..HARDWARE }
}

/// It comes and goes.
const PASSING: Traits = Traits { at: None, both_ways: None, latency: None, passing: Some(true), device: None, mover: None, shared: None };

/// Nothing that a test of transfers could tell.
const SILENT: Traits = Traits { passing: None, ..PASSING };

pub(super) const fn of(cause: Cause) -> Traits {
    use At::{Beside, End, Receiver, Sender, Way};
    match cause {
        Cause::Sender => Traits { at: Some(Sender), passing: Some(false), shared: Some(Shared::Member), ..SILENT },
        Cause::Receiver => Traits { at: Some(Receiver), passing: Some(false), shared: Some(Shared::Root), ..SILENT },
        Cause::Way => Traits { at: Some(Way), passing: Some(false), shared: Some(Shared::Member), ..SILENT },
        Cause::Load => Traits { passing: Some(false), ..shared(Shared::Border(Level::Host)) },
        Cause::TrainedDown | Cause::NarrowSlot | Cause::SmallerDevice => hardware(Some(End), Some(true)),
        Cause::WrongPort | Cause::WrongNuma => hardware(Some(End), None),
        Cause::Throttled => Traits { passing: None, ..hardware(Some(End), None) },
        Cause::BadCable => hardware(None, None),
        Cause::MissingNvlinks | Cause::NoPeerAccess | Cause::FabricManager => {
            Traits { device: Some(true), ..hardware(Some(Way), Some(true)) }
        }
        // Posts go up to the processor and back: each takes longer, many at a time still fill the link.
        Cause::AcsRedirect => Traits { device: Some(true), latency: Some(true), ..hardware(Some(Way), None) },
        Cause::DirectRdmaMissing => Traits { device: Some(true), ..hardware(Some(End), None) },
        Cause::ReadRole => Traits { device: Some(true), ..hardware(Some(Sender), Some(false)) },
        Cause::LongDistance => Traits { latency: Some(true), ..hardware(Some(Way), Some(true)) },
        Cause::TcpFallback => Traits { latency: Some(true), mover: None, ..hardware(Some(Way), Some(true)) },
        // Another flow on the same link, alone or not: the other direction is routed by itself.
        Cause::RouteCollision => Traits { passing: None, shared: Some(Shared::Border(Level::Host)), ..hardware(Some(Way), Some(false)) },
        Cause::CrossSocket => Traits { at: None, ..shared(Shared::Border(Level::Socket)) },
        Cause::SharedUplink => shared(Shared::Border(Level::Switch)),
        Cause::SharedPort | Cause::SharedTrunk => shared(Shared::Border(Level::Host)),
        Cause::Congestion => Traits { at: Some(Beside), passing: None, ..shared(Shared::Border(Level::Host)) },
        Cause::TimeShared => shared(Shared::Turns),
        Cause::ReceiveLimit | Cause::SendLimit => shared(Shared::Root),
        Cause::HostMemory => Traits { at: None, ..shared(Shared::Root) },
        Cause::SharedDirections => Traits { shared: None, ..shared(Shared::Root) },
        Cause::Protocol => Traits { mover: Some(true), latency: None, ..hardware(Some(Way), None) },
        Cause::Interference | Cause::FlappingLink | Cause::PowerSaving => PASSING,
        Cause::PortDown
        | Cause::Cache
        | Cause::EmulatedBridge
        | Cause::SeveralRails
        | Cause::Clock
        | Cause::OtherGroup
        | Cause::ByDesign => SILENT,
    }
}
