use serde::{Deserialize, Serialize};

use crate::units::plain;

/// What one rank sends to another within a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// number of its stage
    pub stage: usize,
    /// sending rank
    pub from: usize,
    /// receiving rank; `from` for a copy inside a rank
    pub to: usize,
    /// of all its messages together
    pub bytes: u64,
    /// that follow each other: the rounds of a schedule; at least 1, of about equal size
    pub messages: u32,
    /// flows (by their numbers in [`Traffic::flows`]) that must be complete before it begins
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// where its bytes begin in what is moved, the same on both sides; absent if it has memory of its own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// what is packed before and unpacked after
    #[serde(default, skip_serializing_if = "Staged::is_none")]
    pub staged: Staged,
}

/// Copies through staging arenas (a strided region is packed, sent, unpacked).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// copies into the sender's arena, and their bytes
    pub packs: u32,
    pub pack_bytes: u64,
    /// copies out of the receiver's arena, and their bytes
    pub unpacks: u32,
    pub unpack_bytes: u64,
}

impl Staged {
    /// True when everything is sent and received in place.
    pub const fn is_none(&self) -> bool {
        self.packs == 0 && self.unpacks == 0
    }
}

/// A part of the whole that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    /// true: its flows begin when the stage before is complete; false: as soon as their `after` allow (a pipeline)
    pub waits: bool,
}

/// Ranks are numbered below this: files and recorded sessions are data.
pub const MOST_RANKS: usize = 1 << 20;
/// Messages of all flows together: each is something to keep.
pub const MOST_MESSAGES: u64 = 1 << 24;

/// Flows between ranks, in stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub name: String,
    /// ranks are numbered below this
    pub ranks: usize,
    pub stages: Vec<Stage>,
    pub flows: Vec<Flow>,
    /// chunks that are prepared once, before the first run (0: unknown)
    #[serde(default)]
    pub chunks: u64,
    /// staging memory of each rank, bytes; empty if there is none
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arenas: Vec<u64>,
}

impl Traffic {
    /// What makes no sense in it, by flow: files and recorded sessions are data.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: String| Err(format!("{}: {what}", plain(&self.name)));
        if self.ranks > MOST_RANKS {
            return wrong(format!("{} ranks: {MOST_RANKS} at most", self.ranks));
        }
        if !self.arenas.is_empty() && self.arenas.len() != self.ranks {
            return wrong(format!("{} arenas: none, or one for each of the {} ranks", self.arenas.len(), self.ranks));
        }
        let mut latest = 0;
        for (number, flow) in self.flows.iter().enumerate() {
            let wrong = |what: String| Err(format!("{}: flow {number}: {what}", plain(&self.name)));
            if let Some(rank) = [flow.from, flow.to].into_iter().find(|&rank| rank >= self.ranks) {
                return wrong(format!("rank {rank} is not one of its {} ranks", self.ranks));
            }
            if flow.stage >= self.stages.len() {
                return wrong(format!("stage {} is not one of its {} stages", flow.stage, self.stages.len()));
            }
            if flow.stage < latest {
                return wrong(format!("stage {} comes after stage {latest}; flows go by stage", flow.stage));
            }
            if flow.messages == 0 {
                return wrong("no message; 1 or more".to_owned());
            }
            if let Some(&before) = flow.after.iter().find(|&&before| before >= number) {
                return wrong(format!("waits for flow {before}, which does not come before it"));
            }
            latest = flow.stage;
        }
        Ok(())
    }

    /// The same with names that are safe to show.
    #[must_use]
    pub fn plain(&self) -> Self {
        let mut own = self.clone();
        own.name = plain(&own.name);
        for stage in &mut own.stages {
            stage.name = plain(&stage.name);
        }
        own
    }

    /// Bytes of all flows together, copies inside ranks included.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().fold(0, |sum, flow| flow.bytes.saturating_add(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_that_makes_no_sense_is_told_from_one_that_does() {
        let flow = |from, to, after: &[usize]| Flow {
            stage: 0,
            from,
            to,
            bytes: 8,
            messages: 1,
            after: after.to_vec(),
            offset: None,
            staged: Staged::default(),
        };
        let stages = vec![Stage { name: "a\u{1b}[2Jb".to_owned(), waits: true }];
        let good = Traffic { ranks: 2, stages, flows: vec![flow(0, 1, &[]), flow(1, 0, &[0])], ..Traffic::default() };
        assert_eq!(good.check(), Ok(()));
        assert!(!good.plain().stages[0].name.contains('\u{1b}'));
        let with = |change: fn(&mut Traffic)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.check().unwrap_err()
        };
        assert!(with(|t| t.ranks = 1).contains("flow 0: rank 1"));
        assert!(with(|t| t.flows[1].after = vec![1]).contains("flow 1: waits for flow 1"));
        assert!(with(|t| t.flows[1].stage = 1).contains("stage 1 is not one of its 1"));
        assert!(with(|t| t.flows[0].messages = 0).contains("no message"));
        // A line of a recorded session must not cost all memory.
        assert!(with(|t| t.ranks = 1_000_000_000_000_000).contains("ranks: 1048576 at most"));
        assert!(with(|t| t.arenas = vec![8]).contains("one for each of the 2 ranks"));
    }
}
