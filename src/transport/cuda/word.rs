//! Words about what moves on GPUs, among those of [`Endpoint::notify`](crate::transport::Endpoint::notify).

/// Words below this are others'.
pub(super) const OWN: u64 = 1 << 61;
/// Transfers of a probe that words can name.
pub(super) const MOST_FLOWS: usize = 1 << 19;
const FLOW: u32 = 40;
const KIND: u32 = 59;

/// What one rank tells another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// to the receiver: a window may be fetched
    Launched(usize),
    /// to the receiver: a window is in its memory; what it took, ns
    Landed(usize, u64),
    /// to the sender: a window was received; what it took, ns, or 0 where the receiver does not know
    Acknowledged(usize, u64),
    /// to all of a probe: nothing will come of it, since this rank cannot take part
    Refused(usize),
}

impl Word {
    pub(super) const fn encode(self) -> u64 {
        let (kind, flow, time) = match self {
            Self::Launched(flow) => (0, flow, 0),
            Self::Landed(flow, time) => (1, flow, time),
            Self::Acknowledged(flow, time) => (2, flow, time),
            Self::Refused(rank) => (3, rank, 0),
        };
        OWN | kind << KIND | (flow as u64) << FLOW | time
    }

    /// `None` for a word of somebody else's.
    pub(super) const fn decode(word: u64) -> Option<Self> {
        if word < OWN {
            return None;
        }
        let (flow, time) = ((word >> FLOW) as usize & (MOST_FLOWS - 1), word & ((1 << FLOW) - 1));
        Some(match word >> KIND & 3 {
            0 => Self::Launched(flow),
            1 => Self::Landed(flow, time),
            2 => Self::Acknowledged(flow, time),
            _ => Self::Refused(flow),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::timed::MOST_NANOSECONDS;

    #[test]
    fn words_are_read_as_they_were_written_and_others_are_left_alone() {
        let last = MOST_FLOWS - 1;
        for word in [Word::Launched(3), Word::Landed(last, 7), Word::Acknowledged(last, MOST_NANOSECONDS), Word::Refused(last)] {
            assert_eq!(Word::decode(word.encode()), Some(word));
            assert!(word.encode() < 1 << 62, "engines have the bits above");
        }
        assert_eq!((Word::decode(OWN - 1), Word::decode(0)), (None, None));
    }
}
