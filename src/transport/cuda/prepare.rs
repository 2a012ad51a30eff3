//! Getting ready for a sweep on GPUs, and leaving one.

use std::sync::Arc;

use super::Control;
use super::driver::{Buffer, CudaError, Gpu};
use super::endpoint::Device;
use super::meet;
use super::side::{Side, Way};
use crate::sample::{Memory, MoverKind};
use crate::sweep::Buffers;
use crate::transport::work::{Part, Role};
use crate::transport::{Setup, TransportError};
use crate::units::format_size;

/// What ranks tell each other when a sweep on GPUs is over: nothing of this rank's GPU uses the other's memory any more, or that is not
/// known.
const DONE: u64 = 1;
const DOUBTFUL: u64 = 2;
/// And whether they reach each other's memory.
const REACHED: u64 = 1;
const SHUT: u64 = 2;

/// Who copies with a mover.
pub(super) fn way(mover: MoverKind) -> Option<Way> {
    match mover {
        MoverKind::Memcpy | MoverKind::CudaIpcPush => Some(Way::Push),
        MoverKind::CudaIpcPull => Some(Way::Pull),
        MoverKind::Nccl | MoverKind::NcclPut => Some(Way::Joint),
        MoverKind::MpiSendrecv | MoverKind::MpiPut => Some(Way::Through),
        _ => None,
    }
}

impl<C: Control> Device<C> {
    pub(super) fn prepare_either(&mut self, setup: &Setup) -> Result<(), TransportError> {
        if let Some(met) = &mut self.met {
            // Who is lost says nothing any more.
            met.retain(|&mate| setup.nodes.get(mate) != Some(&Setup::LOST));
        }
        self.leave();
        self.absent = None;
        if setup.memory == Memory::Host {
            return self.control.prepare(setup);
        }
        let rank = self.control.rank();
        let through = way(setup.mover) == Some(Way::Through);
        // Its words and lanes are needed, its arenas are not, or not yet.
        let mover = if through { MoverKind::MpiSendrecv } else { setup.mover };
        let words = Setup { mover, memory: Memory::Host, arena: 0, ..setup.clone() };
        let unspoken = self.control.prepare(&words).err();
        let node = setup.nodes.get(rank);
        let mates: Vec<usize> = (0..setup.nodes.len()).filter(|&other| other != rank && setup.nodes.get(other) == node).collect();
        let own = if setup.lanes == 0 { Ok(None) } else { self.start(setup).map(Some) };
        // Others wait for this rank's words, whatever has become of it.
        let (side, refused) = match own {
            Ok(side) => (side, None),
            Err(error) => (None, Some(error)),
        };
        self.side = side;
        if self.side.is_none() {
            self.absent = Some(refused.as_ref().map_or_else(|| "it takes no part in this sweep".to_owned(), TransportError::reason));
        }
        self.meet();
        self.offer(&mates);
        self.met = Some(mates);
        self.through = through;
        let ready = if through {
            let of = |side: &Side| [&side.outgoing, &side.landing].map(|buffer| (buffer.address().0, buffer.len()));
            let arenas = self.side.as_ref().map_or([(0, 0); 2], of);
            self.control.prepare_far(setup, arenas)
        } else {
            self.assemble(setup)
        };
        refused.or(unspoken).map_or(ready, Err)
    }

    /// Start this rank's GPU, and allocate and fill its arenas.
    fn start(&mut self, setup: &Setup) -> Result<Side, TransportError> {
        let rank = self.control.rank();
        let unready = |reason: String| TransportError::Unready { rank, reason };
        let way = way(setup.mover).ok_or_else(|| unready(format!("{} moves no memory of GPUs here", setup.mover.name())))?;
        if way == Way::Through {
            self.control.takes_gpus().map_err(unready)?;
        }
        let ordinal = setup.gpu.as_ref().map(|gpu| gpu.number).ok_or_else(|| unready("it is bound to no GPU".to_owned()))?;
        let gpu = Gpu::open(ordinal).map_err(|error| unready(error.to_string()))?;
        let arena = usize::try_from(setup.arena).unwrap_or(usize::MAX);
        let name = gpu.name();
        let refuse = |error: CudaError| match gpu.memory() {
            Ok((free, total)) if error.is_out_of_memory() => TransportError::Memory {
                rank,
                bytes: setup.memory(),
                reason: format!("{name} has {} of {} free", format_size(free), format_size(total)),
            },
            _ => unready(format!("{name}: {error}")),
        };
        // Asked first: a driver may give more than there is, and be slow from then on.
        if gpu.memory().is_ok_and(|(free, _)| free < setup.memory()) {
            return Err(refuse(CudaError::out_of_memory()));
        }
        let arenas = (arena, setup.lanes);
        let side = Side::new(rank, Arc::clone(&gpu), (setup.mover, way), arenas, setup.seed, setup.nodes.clone()).map_err(refuse)?;
        if setup.buffers == Buffers::Rotate && setup.arena < gpu.about().l2 {
            let (arena, l2) = (format_size(setup.arena), format_size(gpu.about().l2));
            self.lines
                .push(format!("{name}: an arena of {arena} fits its cache of {l2}, so bytes may never leave it; --arena {l2} or more"));
        }
        if !side.is_quick() {
            self.lines
                .push(format!("{name}: its driver has no stream waits; a thread of the host lets copies start, some microseconds late"));
        }
        Ok(side)
    }

    /// Offer this rank's memory to the others of its host, and reach theirs.
    fn offer(&mut self, mates: &[usize]) {
        let mut words = Vec::new();
        if let Some(side) = self.side.as_ref().filter(|side| side.way != Way::Through) {
            let offered = if side.way == Way::Push { &side.landing } else { &side.outgoing };
            if side.way == Way::Joint {
                // NCCL reaches it by itself.
            } else if C::ONE_PROCESS {
                let (start, context) = offered.address();
                words = vec![start, context as u64, side.gpu.about().ordinal as u64];
            } else {
                match offered.handle() {
                    Ok(handle) => words = meet::words(&handle),
                    Err(error) => {
                        self.lines.push(format!("{}: its memory cannot be shared with other processes: {error}", side.gpu.name()));
                    }
                }
            }
        }
        let said = self.exchange(mates, |_| words.clone());
        let mut answers = std::collections::BTreeMap::new();
        for &mate in mates {
            let Some(side) = &mut self.side else { break };
            let Some(words) = said.get(&mate).filter(|words| !words.is_empty()) else { continue };
            let length = if side.way == Way::Push { side.landing.len() } else { side.outgoing.len() };
            let (gpu, rank) = (&side.gpu, side.rank);
            let reached =
                if C::ONE_PROCESS { reach(gpu, rank, mate, words, length, &mut self.lines) } else { map(gpu, mate, words, length) };
            answers.insert(mate, if reached.is_ok() { REACHED } else { SHUT });
            if let Err(why) = &reached {
                self.lines.push(format!("rank {}: {why}", side.rank));
            }
            side.reached.insert(mate, reached);
        }
        let said = self.exchange(mates, |mate| answers.get(&mate).map_or_else(Vec::new, |&answer| vec![answer]));
        if let Some(side) = &mut self.side {
            side.shut = said.into_iter().filter(|(_, words)| words.first() == Some(&SHUT)).map(|(mate, _)| mate).collect();
        }
    }

    /// Leave a sweep on GPUs, together with the other ranks of the host: nobody's memory is given back while another rank's GPU uses it.
    pub(super) fn leave(&mut self) {
        let Some(mates) = self.met.take() else { return };
        let mut own = true;
        if std::mem::take(&mut self.through) {
            own = !self.control.disturbed();
            // It lets go of the arenas before they are given back.
            own &= self.control.prepare(&Setup::host(MoverKind::MpiSendrecv, Buffers::default(), 0, 0, 0)).is_ok();
        }
        self.meet();
        let mut word = DONE;
        if let Some(side) = &mut self.side {
            // Of a GPU with an error that stays, nothing can be let go of either.
            if side.gpu.disturbed() || side.gpu.health().is_err() {
                word = DOUBTFUL;
            }
            side.reached.clear();
        }
        if let Some(hold) = &mut self.hold {
            if hold.gpu.disturbed() {
                word = DOUBTFUL;
            }
            hold.reached.clear();
        }
        let said = self.exchange(&mates, |_| vec![word]);
        let settled = own && mates.iter().all(|mate| said.get(mate).is_some_and(|words| words.first() == Some(&DONE)));
        let stays = |gpu: &Gpu, why: &str| format!("{}: its buffers stay allocated: {why}", gpu.name());
        if let Some(mut side) = self.side.take() {
            let _ = side.gpu.enter();
            self.lines.extend(side.joint.close());
            if side.way == Way::Joint && (side.gpu.disturbed() || side.joint.hangs()) {
                self.lines.push(stays(&side.gpu, "work of NCCL that was given up has not ended"));
                side.leak();
            } else if !settled {
                self.lines.push(stays(&side.gpu, "a transfer that was given up may still use them"));
                side.leak();
            }
        }
        if let Some(mut hold) = self.hold.take() {
            let _ = hold.gpu.enter();
            let groups = hold.groups.as_mut();
            let hangs = groups.is_some_and(|groups| {
                self.lines.extend(groups.close());
                groups.hangs()
            });
            if hangs || !settled {
                self.lines.push(stays(&hold.gpu, "a message that was given up may still use them"));
                hold.leak();
            }
        }
    }

    /// Meet the other ranks of a work through NCCL, if it goes so; why that cannot be. Collective.
    pub(super) fn meet_hold(&mut self, part: &Part) -> Option<String> {
        if part.lies.meeting.is_empty() {
            return None;
        }
        // Of ranks that take no part, too: their words go by the same count.
        self.meet();
        let all = self.all_here(&part.lies.group, self.hold.as_ref().is_some_and(|hold| hold.groups.is_some()));
        // Those that are missing say why.
        let groups = self.hold.as_mut().filter(|_| all)?.groups.as_mut()?;
        groups.meet(part).err()
    }

    /// Offer this rank's memory of a work to the others of its host, and reach that of those it has flows with. Why that cannot be.
    pub(super) fn offer_hold(&mut self, mates: &[usize], part: &Part) -> Option<String> {
        let mut words = Vec::new();
        let mut why = None;
        // NCCL reaches it by itself.
        if let Some(hold) = self.hold.as_ref().filter(|hold| hold.way != Way::Joint) {
            words.push(hold.memory.len() as u64);
            if C::ONE_PROCESS {
                let (start, context) = hold.memory.address();
                words.extend([start, context as u64, hold.gpu.about().ordinal as u64]);
            } else {
                match hold.memory.handle() {
                    Ok(handle) => words.extend(meet::words(&handle)),
                    Err(error) => why = Some(format!("{}: its memory cannot be shared with other processes: {error}", hold.gpu.name())),
                }
            }
        }
        let said = self.exchange(mates, |_| words.clone());
        let (rank, hold) = (part.rank, self.hold.as_mut().filter(|hold| hold.way != Way::Joint)?);
        let role = if hold.way == Way::Push { Role::Send } else { Role::Receive };
        for peer in part.shares.iter().filter(|share| share.role == role).map(|share| share.peer) {
            if hold.reached.contains_key(&peer) {
                continue;
            }
            let reached = match said.get(&peer).and_then(|words| words.split_first()) {
                Some((&length, words)) => {
                    let length = usize::try_from(length).unwrap_or(0);
                    let gpu = &hold.gpu;
                    if C::ONE_PROCESS { reach(gpu, rank, peer, words, length, &mut self.lines) } else { map(gpu, peer, words, length) }
                }
                None => Err(format!("rank {peer} offered no memory")),
            };
            if let Err(reason) = &reached {
                why.get_or_insert_with(|| reason.clone());
            }
            hold.reached.insert(peer, reached);
        }
        why
    }
}

/// Reach the memory of another thread.
fn reach(gpu: &Arc<Gpu>, rank: usize, mate: usize, words: &[u64], length: usize, lines: &mut Vec<String>) -> Result<Buffer, String> {
    let &[start, context, ordinal] = words else { return Err(format!("rank {mate} offered no memory")) };
    let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX);
    let direct = gpu.reach_ordinal(ordinal).map_err(|error| format!("{}: {error}", gpu.name()))?;
    if !direct {
        let own = gpu.about().ordinal;
        lines.push(format!(
            "{rank}→{mate}: GPU {own} cannot reach the memory of GPU {ordinal}; the driver takes copies through the host's memory"
        ));
    }
    Ok(Buffer::lent(gpu, (start, usize::try_from(context).unwrap_or(0)), length))
}

/// Reach the memory of another process.
fn map(gpu: &Arc<Gpu>, mate: usize, words: &[u64], length: usize) -> Result<Buffer, String> {
    let handle = meet::handle(words).ok_or_else(|| format!("rank {mate} offered no memory"))?;
    Buffer::map(gpu, handle, length)
        .map_err(|error| format!("{} cannot map the memory of rank {mate}: {error}; is there peer access between the GPUs?", gpu.name()))
}
