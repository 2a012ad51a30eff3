//! Works on a GPU's memory: messages are copied between mapped memory of a host, or sent through NCCL, as the mover says, packed and
//! unpacked by the GPU, and timed by the host's clock, from the release until the GPU was seen to be done. On the host's memory all is
//! `control`'s.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Control;
use super::driver::Gpu;
use super::endpoint::Device;
use super::hold::Hold;
use super::prepare::way;
use super::side::Way;
use super::word;
use crate::sample::{Memory, MoverKind};
use crate::transport::work::{Carrier, Heard, Part, Role, Word};
use crate::transport::{Stop, TransportError};

/// Words are taken at once, or the rank that they are for is lost.
const TAKEN: Duration = Duration::from_secs(2);

/// What ranks tell each other where the receiver fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetch {
    /// a message of this flow can be fetched; where it lies comes next
    Ready(usize),
    /// there
    At(usize),
    /// a message of this flow was fetched
    Fetched(usize),
}

impl Fetch {
    const fn encode(self) -> u64 {
        match self {
            Self::Ready(flow) => word::OWN | (flow as u64) << 2,
            Self::At(place) => word::OWN | (place as u64) << 2 | 1,
            Self::Fetched(flow) => word::OWN | (flow as u64) << 2 | 2,
        }
    }

    const fn decode(word: u64) -> Option<Self> {
        if word < word::OWN {
            return None;
        }
        let value = ((word ^ word::OWN) >> 2) as usize;
        Some(match word & 3 {
            0 => Self::Ready(value),
            1 => Self::At(value),
            _ => Self::Fetched(value),
        })
    }
}

/// Start this rank's GPU, and allocate and fill its memory.
fn take(part: &Part, mover: MoverKind, mates: &[usize]) -> Result<Hold, TransportError> {
    let unready = |reason: String| TransportError::Unready { rank: part.rank, reason };
    let way = way(mover).filter(|_| mover.carries(Memory::Cuda)).ok_or_else(|| {
        let able: Vec<&str> = MoverKind::ALL.into_iter().filter(|mover| mover.carries(Memory::Cuda)).map(MoverKind::name).collect();
        unready(format!("plans on memory of GPUs go by {}, not by {}", able.join(", "), mover.name()))
    })?;
    let far = part.shares.iter().find(|share| share.role != Role::Copy && !mates.contains(&share.peer));
    if let Some(share) = far.filter(|_| way != Way::Joint) {
        let (flow, peer) = (share.flow, share.peer);
        return Err(unready(format!("{} works between ranks of one host, and flow {flow} is with rank {peer} of another", mover.name())));
    }
    let ordinal = part.lies.gpu.as_ref().map(|gpu| gpu.number).ok_or_else(|| unready("it is bound to no GPU".to_owned()))?;
    let gpu = Gpu::open(ordinal).map_err(|error| unready(error.to_string()))?;
    Hold::new(Arc::clone(&gpu), way, part)
}

impl<C: Control + Carrier> Device<C> {
    /// Fetch a message, where both ends of it are known.
    fn fetch(&mut self, share: usize, peer: usize, known: Option<(usize, usize, usize)>) -> Result<(), Stop> {
        match (known, &mut self.hold) {
            (Some((there, here, length)), Some(hold)) => hold.start(share, peer, (there, here), length),
            _ => Ok(()),
        }
    }

    fn heard_fetch(&mut self, from: usize, word: Fetch) -> Result<Option<Heard>, Stop> {
        let Some(hold) = &mut self.hold else { return Ok(None) };
        match word {
            Fetch::Ready(flow) => {
                hold.name(from, flow);
                Ok(None)
            }
            Fetch::At(place) => {
                let Some(share) = hold.named(from) else { return Ok(None) };
                let known = hold.lies(share, place);
                self.fetch(share, from, known).map(|()| None)
            }
            Fetch::Fetched(flow) => Ok(hold.share_of(flow, Role::Send).map(Heard::Sent)),
        }
    }
}

impl<C: Control + Carrier> Carrier for Device<C> {
    fn rank(&self) -> usize {
        Carrier::rank(&self.control)
    }

    fn load(&mut self, part: &Part, mover: MoverKind) -> Result<(), TransportError> {
        if part.lies.memory.is_host() {
            return self.control.load(part, mover);
        }
        // Its words are needed, its memory is not.
        let words = Part { memory: 0, held: 0, content: Vec::new(), ..part.clone() };
        let unspoken = self.control.load(&words, mover).err();
        let rank = Carrier::rank(&self.control);
        let node = |rank: usize| part.lies.nodes.get(rank);
        let mates: Vec<usize> = (0..part.lies.nodes.len()).filter(|&other| other != rank && node(other) == node(rank)).collect();
        let taken = if part.is_idle() { Ok(None) } else { take(part, mover, &mates).map(Some) };
        let (hold, refused) = match taken {
            Ok(hold) => (hold, None),
            Err(error) => (None, Some(error)),
        };
        self.hold = hold;
        self.meet();
        let unreached = self.offer_hold(&mates, part);
        self.met = Some(mates);
        let unmet = self.meet_hold(part);
        let unready = |reason: String| TransportError::Unready { rank, reason };
        refused.or(unspoken).or_else(|| unreached.or(unmet).map(unready)).map_or(Ok(()), Err)
    }

    fn begin(&mut self, part: &Part, id: u64) -> Result<(), Stop> {
        Carrier::begin(&mut self.control, part, id)?;
        self.hold.as_ref().map_or(Ok(()), |hold| hold.gpu.enter().map_err(|error| Stop::Failed(error.to_string())))
    }

    fn one_sided(&self) -> bool {
        self.hold.as_ref().map_or_else(|| self.control.one_sided(), |hold| hold.way == Way::Push)
    }

    fn wipe(&mut self) {
        match &mut self.hold {
            Some(hold) => hold.wipe(),
            None => self.control.wipe(),
        }
    }

    fn copy(&mut self, from: usize, to: usize, length: usize) {
        match &mut self.hold {
            Some(hold) => hold.copy(from, to, length),
            None => Carrier::copy(&mut self.control, from, to, length),
        }
    }

    fn rows(&mut self, from: usize, to: usize, size: (usize, usize), steps: (i64, i64)) {
        match &mut self.hold {
            Some(hold) => hold.rows(from, to, size, steps),
            None => self.control.rows(from, to, size, steps),
        }
    }

    fn settle(&mut self, deadline: Instant) -> Result<(), Stop> {
        self.hold.as_mut().map_or(Ok(()), |hold| hold.settle(deadline))
    }

    fn read(&mut self, from: usize, into: &mut [u8]) -> Result<(), Stop> {
        match &mut self.hold {
            Some(hold) => hold.read(from, into),
            None => self.control.read(from, into),
        }
    }

    fn post(&mut self, part: &Part, number: usize, message: usize) -> Result<(), Stop> {
        let Some(hold) = &mut self.hold else { return Carrier::post(&mut self.control, part, number, message) };
        if let Some(groups) = &mut hold.groups {
            groups.ready(part, number, message);
            return Ok(());
        }
        if hold.way == Way::Push {
            return Ok(());
        }
        let share = &part.shares[number];
        let message = &share.messages[message];
        let known = hold.post(number, message.place(share.arena), message.length());
        self.fetch(number, share.peer, known)
    }

    fn send(&mut self, part: &Part, number: usize, message: usize) -> Result<(), Stop> {
        let Some(hold) = &mut self.hold else { return Carrier::send(&mut self.control, part, number, message) };
        let share = &part.shares[number];
        if let Some(groups) = &mut hold.groups {
            if groups.ready(part, number, message) {
                return Ok(());
            }
            // Of nothing but empty messages the receiver is told.
            groups.told(number);
            return self.control.tell(share.peer, Word::Landed(share.flow).encode(), Instant::now() + TAKEN);
        }
        let message = &share.messages[message];
        let place = message.place(share.arena);
        if hold.way == Way::Push {
            let lands = usize::try_from(message.lands).unwrap_or(usize::MAX);
            return hold.start(number, share.peer, (place, lands), message.length());
        }
        let deadline = Instant::now() + TAKEN;
        self.control.tell(share.peer, Fetch::Ready(share.flow).encode(), deadline)?;
        self.control.tell(share.peer, Fetch::At(place).encode(), deadline)
    }

    fn tell(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        self.control.tell(to, word, deadline)
    }

    fn news(&mut self, part: &Part, deadline: Instant) -> Result<Option<Heard>, Stop> {
        let heard = Carrier::news(&mut self.control, part, deadline)?;
        let Some(hold) = &mut self.hold else { return Ok(heard) };
        match heard {
            Some(Heard::Word { from, word }) => {
                return match Fetch::decode(word) {
                    Some(word) => self.heard_fetch(from, word),
                    None => Ok(Some(Heard::Word { from, word })),
                };
            }
            None => {}
            other => return Ok(other),
        }
        if let Some(looked) = hold.look_jointly(part, deadline) {
            return looked;
        }
        let Some(number) = hold.look()? else { return Ok(None) };
        let (way, share) = (hold.way, &part.shares[number]);
        if way == Way::Push {
            self.control.tell(share.peer, Word::Landed(share.flow).encode(), deadline)?;
            return Ok(Some(Heard::Sent(number)));
        }
        self.control.tell(share.peer, Fetch::Fetched(share.flow).encode(), deadline)?;
        Ok(Some(Heard::Arrived(number)))
    }

    fn ways(&mut self, part: &Part) -> Vec<crate::transport::Way> {
        self.hold.as_ref().and_then(|hold| hold.groups.as_ref()).map_or_else(Vec::new, |groups| groups.ways(part))
    }

    fn end(&mut self, deadline: Instant) {
        Carrier::end(&mut self.control, deadline);
        // Its memory stays until all leave together: others may have it mapped.
        if let Some(hold) = &mut self.hold {
            self.lines.extend(hold.end(deadline));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_those_who_fetch_are_no_others() {
        for word in [Fetch::Ready(7), Fetch::At(1 << 40), Fetch::Fetched(0)] {
            assert_eq!(Fetch::decode(word.encode()), Some(word));
            assert!(word.encode() < 1 << 62);
        }
        assert_eq!(Fetch::decode(Word::Go(1 << 30).encode()), None);
    }
}
