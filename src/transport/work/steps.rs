//! Steps that all ranks go through together, where a message needs both of its ranks at once, on streams that take one thing after
//! another (NCCL's groups of one communicator).
//!
//! Each message has a step, and a rank moves all of its messages of a step as one group, then those of its next one. What a message
//! waits for has earlier steps, so the lowest step that is not done can always go on: whatever flows wait for, no ranks wait for each
//! other in a ring. Messages of a step may be of any ranks, also in a cycle: they are in one group on each.

use super::Work;

impl Work {
    /// Of each flow, the first of its steps; it takes one for each message. An error if a flow waits for one of a later stage.
    pub fn steps(&self) -> Result<Vec<usize>, String> {
        let mut messages = vec![0; self.flows.len()];
        for share in self.parts.iter().flat_map(|part| &part.shares) {
            if let Some(count) = messages.get_mut(share.flow) {
                *count = share.messages.len().max(*count);
            }
        }
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&flow| (self.flows[flow].stage, flow));
        let mut firsts = vec![0; self.flows.len()];
        let mut ends: Vec<Option<usize>> = vec![None; self.flows.len()];
        // Of the stage, and of all before it.
        let (mut stage, mut begin, mut last) = (0, 0, 0);
        for number in order {
            let flow = &self.flows[number];
            if flow.stage > stage {
                if (stage + 1..=flow.stage).any(|next| self.waits.get(next) == Some(&true)) {
                    begin = last;
                }
                stage = flow.stage;
            }
            let mut first = begin;
            for &before in &flow.after {
                let end = ends.get(before).copied().flatten();
                first = first.max(end.ok_or_else(|| format!("flow {number} waits for flow {before}, which is of a later stage"))?);
            }
            let end = first + messages[number];
            (firsts[number], ends[number], last) = (first, Some(end), last.max(end));
        }
        Ok(firsts)
    }

    /// Tell each part its steps, and where its rank meets the others.
    pub(crate) fn meeting(&mut self, name: &[u8]) -> Result<(), String> {
        let (firsts, group) = (self.steps()?, self.ranks().collect::<Vec<_>>());
        for part in &mut self.parts {
            part.steps = part.shares.iter().map(|share| firsts.get(share.flow).copied().unwrap_or(0)).collect();
            (part.lies.meeting, part.lies.group) = (name.to_vec(), group.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::work::{Message, Moved, Part, Role, Share};

    /// Flows of (stage, from, to, messages, what they wait for).
    fn work(waits: &[bool], flows: &[(usize, usize, usize, usize, &[usize])]) -> Work {
        let mut work = Work { waits: waits.to_vec(), parts: vec![Part::default(); 4], ..Work::default() };
        for (number, &(stage, from, to, messages, after)) in flows.iter().enumerate() {
            let share = |role, peer| Share {
                flow: number,
                stage,
                role,
                peer,
                tag: 0,
                after: after.to_vec(),
                tell: Vec::new(),
                arena: 0,
                messages: vec![Message::default(); messages],
            };
            work.parts[from].shares.push(share(Role::Send, to));
            work.parts[to].shares.push(share(Role::Receive, from));
            work.flows.push(Moved { stage, from, to, bytes: 0, messages: 0, after: after.to_vec() });
        }
        work
    }

    #[test]
    fn what_waits_has_later_steps_than_what_it_waits_for() {
        let ring = work(&[true], &[(0, 0, 1, 3, &[]), (0, 1, 2, 3, &[]), (0, 2, 0, 3, &[])]);
        assert_eq!(ring.steps(), Ok(vec![0, 0, 0]), "a cycle that waits for nothing is one group on each rank");
        let chain = work(&[true], &[(0, 0, 1, 3, &[]), (0, 2, 3, 5, &[]), (0, 1, 2, 2, &[0]), (0, 2, 0, 1, &[1, 2])]);
        assert_eq!(chain.steps(), Ok(vec![0, 0, 3, 5]));
        let flows: [(usize, usize, usize, usize, &[usize]); 4] =
            [(0, 0, 1, 3, &[]), (1, 1, 2, 2, &[]), (2, 0, 1, 1, &[]), (2, 0, 1, 1, &[1])];
        assert_eq!(work(&[true, true, false], &flows).steps(), Ok(vec![0, 3, 3, 5]), "the last stage begins with the one before");
        assert_eq!(work(&[true, false, true], &flows).steps(), Ok(vec![0, 0, 3, 3]));
        let early = work(&[true, true], &[(1, 0, 1, 1, &[]), (0, 1, 2, 1, &[0])]);
        assert!(early.steps().unwrap_err().contains("flow 1 waits for flow 0"));
    }

    #[test]
    fn parts_are_told_their_own_steps_and_who_meets() {
        let mut work = work(&[true], &[(0, 0, 1, 3, &[]), (0, 1, 3, 1, &[0])]);
        work.meeting(&[7]).unwrap();
        assert_eq!((&work.parts[1].steps, &work.parts[3].steps), (&vec![0, 3], &vec![3]));
        assert!(work.parts.iter().all(|part| (&part.lies.meeting[..], &part.lies.group[..]) == (&[7][..], &[0, 1, 3][..])));
    }
}
