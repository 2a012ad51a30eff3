//! What makes no sense in a work, before any rank sees it: recorded plans and other programs' commands are data.

use std::collections::BTreeMap;

use super::{Message, Part, Region, Role, Share, Work};

impl Work {
    /// True to itself, and of a job of so many ranks: every region lies in its rank's memory, what is held is written by nobody, and
    /// both sides of a flow agree on its messages.
    pub fn check(&self, world: usize) -> Result<(), String> {
        if self.parts.len() != world {
            return Err(format!("this plan is of {} ranks, and the job has {world}", self.parts.len()));
        }
        for flow in self.flows.iter().enumerate().map(|(number, flow)| (number, flow.stage, &flow.after)) {
            let (number, stage, after) = flow;
            if stage >= self.waits.len() || after.iter().any(|&before| before >= number) {
                return Err(format!("flow {number}: its stage, or what it waits for, is not there"));
            }
        }
        let mut sides: BTreeMap<usize, Vec<(&Part, &Share)>> = BTreeMap::new();
        for (rank, part) in self.parts.iter().enumerate().filter(|(_, part)| !part.is_idle()) {
            let wrong = |what: &str| Err(format!("rank {rank}: {what}"));
            let strangers = part.others.iter().chain([&part.coordinator]).any(|&other| other >= world);
            if part.rank != rank || strangers || part.held > part.memory || part.waits != self.waits {
                return wrong("its part is another rank's or another work's");
            }
            if part
                .content
                .iter()
                .any(|content| !within(&content.region, 0, part.held) || content.region.bytes() != content.address.bytes())
            {
                return wrong("what it holds lies outside of what it keeps");
            }
            for share in &part.shares {
                if share.flow >= self.flows.len() || share.stage >= self.waits.len() || share.peer >= world {
                    return wrong(&format!("flow {} is not in this work", share.flow));
                }
                if share.tell.iter().any(|&other| other >= world || other == rank) || share.messages.is_empty() {
                    return wrong(&format!("flow {}: no message, or a rank that is not there", share.flow));
                }
                if let Some(number) = share.messages.iter().position(|message| !message_fits(message, share, part)) {
                    return wrong(&format!("flow {}, message {number}: its regions do not fit its memory", share.flow));
                }
                sides.entry(share.flow).or_default().push((part, share));
            }
        }
        for (number, flow) in self.flows.iter().enumerate() {
            let agree = match sides.get(&number).map(Vec::as_slice) {
                Some([(part, copy)]) => flow.from == flow.to && part.rank == flow.from && copy.role == Role::Copy,
                Some([one, other]) => {
                    let (send, receive) = if one.1.role == Role::Send { (one, other) } else { (other, one) };
                    both(send, receive) && (send.0.rank, receive.0.rank) == (flow.from, flow.to)
                }
                _ => false,
            };
            if !agree {
                return Err(format!("flow {number} ({}→{}): its two ends do not agree", flow.from, flow.to));
            }
        }
        Ok(())
    }
}

fn within(region: &Region, low: u64, high: u64) -> bool {
    region.axes.len() <= Region::MOST_AXES && region.bounds().is_some_and(|(first, end)| first >= low && end <= high)
}

fn message_fits(message: &Message, share: &Share, part: &Part) -> bool {
    let sum = |regions: &[Region]| regions.iter().fold(0_u64, |sum, region| sum.saturating_add(region.bytes()));
    let written = if share.role == Role::Copy { &message.into } else { &message.regions };
    let low = if share.role == Role::Send { 0 } else { part.held };
    let arena = share.arena >= part.held && share.arena.checked_add(message.bytes).is_some_and(|end| end <= part.memory);
    let in_place = message.regions.len() <= 1 && message.regions.iter().all(Region::is_packed);
    sum(&message.regions) == message.bytes
        && message.regions.iter().all(|region| within(region, 0, part.memory))
        && written.iter().all(|region| within(region, low, part.memory))
        && (share.role == Role::Send || sum(&message.expected) == message.bytes)
        && (share.role != Role::Copy || sum(&message.into) == message.bytes)
        && (share.role == Role::Copy || if message.staged { arena } else { in_place })
}

fn both((sender, send): &(&Part, &Share), (receiver, receive): &(&Part, &Share)) -> bool {
    let message = |(out, into): (&Message, &Message)| {
        let place = into.place(receive.arena) as u64;
        // An empty message lands nowhere.
        out.bytes == into.bytes && (out.bytes == 0 || (out.lands, out.lands_staged) == (place, into.staged))
    };
    (send.role, receive.role) == (Role::Send, Role::Receive)
        && (send.peer, receive.peer) == (receiver.rank, sender.rank)
        && (send.tag, send.stage) == (receive.tag, receive.stage)
        && send.messages.len() == receive.messages.len()
        && send.messages.iter().zip(&receive.messages).all(message)
}
