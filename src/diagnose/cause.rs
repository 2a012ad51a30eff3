//! What can be the matter.

use serde::{Deserialize, Serialize};

/// A cause, as people who bring up clusters know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    // Whose fault, where nothing more is known
    Sender,
    Receiver,
    /// what lies between two ends that do well with others
    Way,
    /// others that ran at the same time
    Load,
    // Links
    TrainedDown,
    /// the slot itself has no more
    NarrowSlot,
    BadCable,
    FlappingLink,
    MissingNvlinks,
    FabricManager,
    // Paths through a host
    AcsRedirect,
    NoPeerAccess,
    SharedUplink,
    CrossSocket,
    WrongNuma,
    HostMemory,
    /// reading from a device is slower than writing to it
    ReadRole,
    // Network
    SharedPort,
    WrongPort,
    PortDown,
    RouteCollision,
    SharedTrunk,
    TcpFallback,
    LongDistance,
    DirectRdmaMissing,
    Congestion,
    // Endpoints
    TimeShared,
    ReceiveLimit,
    SendLimit,
    SharedDirections,
    SmallerDevice,
    Throttled,
    // Measurement
    Cache,
    Protocol,
    Interference,
    PowerSaving,
    EmulatedBridge,
    SeveralRails,
    Clock,
    OtherGroup,
    /// as it was built
    ByDesign,
}

impl Cause {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sender => "the sending side",
            Self::Receiver => "the receiving side",
            Self::Way => "what lies between the two",
            Self::Load => "others that ran at the same time",
            Self::TrainedDown => "a link trained down",
            Self::NarrowSlot => "a slot with few lanes",
            Self::BadCable => "a bad cable or connector",
            Self::FlappingLink => "a link that comes and goes",
            Self::MissingNvlinks => "NVLinks that are down or not fitted",
            Self::FabricManager => "the fabric manager is not running",
            Self::AcsRedirect => "ACS or the IOMMU sends peers' bytes through the processor",
            Self::NoPeerAccess => "no peer access between the devices",
            Self::SharedUplink => "an uplink that several share",
            Self::CrossSocket => "the link between sockets",
            Self::WrongNuma => "cores or memory of another NUMA node",
            Self::HostMemory => "the bandwidth of host memory",
            Self::ReadRole => "reading from a device is slower than writing to it",
            Self::SharedPort => "a network port that several share",
            Self::WrongPort => "another network port than the nearest",
            Self::PortDown => "a network port that is down",
            Self::RouteCollision => "routes that collide in the network",
            Self::SharedTrunk => "a trunk of the network that several share",
            Self::TcpFallback => "TCP instead of RDMA",
            Self::LongDistance => "distance",
            Self::DirectRdmaMissing => "GPUDirect RDMA is not in use",
            Self::Congestion => "congestion",
            Self::TimeShared => "an endpoint that serves one after another",
            Self::ReceiveLimit => "what one receiver can take",
            Self::SendLimit => "what one sender can give",
            Self::SharedDirections => "both directions share one capacity",
            Self::SmallerDevice => "a smaller device",
            Self::Throttled => "a device that is throttled",
            Self::Cache => "copies that come from cache",
            Self::Protocol => "a change of protocol between sizes",
            Self::Interference => "something else on the machine",
            Self::PowerSaving => "power saving",
            Self::EmulatedBridge => "a bridge that a hypervisor made up",
            Self::SeveralRails => "several network ports at once",
            Self::Clock => "clocks or timing",
            Self::OtherGroup => "another group, library or setting",
            Self::ByDesign => "as it was built",
        }
    }
}
