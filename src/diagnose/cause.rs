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
