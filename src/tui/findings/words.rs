use crate::diagnose::{Cause, Severity};

/// The mark of a severity.
pub const fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "▲",
        Severity::Warning => "●",
        Severity::Note => "○",
    }
}

/// A cause in a few words.
pub const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Sender => "the sending side",
        Cause::Receiver => "the receiving side",
        Cause::Way => "what lies between the two",
        Cause::Load => "others that ran at the same time",
        Cause::TrainedDown => "a link trained down",
        Cause::NarrowSlot => "a slot with few lanes",
        Cause::BadCable => "a bad cable or connector",
        Cause::FlappingLink => "a link that comes and goes",
        Cause::MissingNvlinks => "NVLinks that are down or not fitted",
        Cause::FabricManager => "the fabric manager is not running",
        Cause::AcsRedirect => "ACS or the IOMMU sends peers' bytes through the processor",
        Cause::NoPeerAccess => "no peer access between the devices",
        Cause::SharedUplink => "an uplink that several share",
        Cause::CrossSocket => "the link between sockets",
        Cause::WrongNuma => "cores or memory of another NUMA node",
        Cause::HostMemory => "the bandwidth of host memory",
        Cause::ReadRole => "reading from a device is slower than writing to it",
        Cause::SharedPort => "a network port that several share",
        Cause::WrongPort => "another network port than the nearest",
        Cause::PortDown => "a network port that is down",
        Cause::RouteCollision => "routes that collide in the network",
        Cause::SharedTrunk => "a trunk of the network that several share",
        Cause::TcpFallback => "TCP instead of RDMA",
        Cause::LongDistance => "distance",
        Cause::DirectRdmaMissing => "GPUDirect RDMA is not in use",
        Cause::Congestion => "congestion",
        Cause::TimeShared => "an endpoint that serves one after another",
        Cause::ReceiveLimit => "what one receiver can take",
        Cause::SendLimit => "what one sender can give",
        Cause::SharedDirections => "both directions share one capacity",
        Cause::SmallerDevice => "a smaller device",
        Cause::Throttled => "a device that is throttled",
        Cause::Cache => "copies that come from cache",
        Cause::Protocol => "a change of protocol between sizes",
        Cause::Interference => "something else on the machine",
        Cause::PowerSaving => "power saving",
        Cause::EmulatedBridge => "a bridge that a hypervisor made up",
        Cause::SeveralRails => "several network ports at once",
        Cause::Clock => "clocks or timing",
        Cause::OtherGroup => "another group, library or setting",
        Cause::ByDesign => "as it was built",
    }
}
