use std::ops::Range;

/// What a block of a level is made of: the finest unit of hardware that its edges lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// up to this many neighbouring ranks of one host
    Ranks(usize),
    /// all neighbouring ranks of one host
    Host,
    /// up to this many neighbouring hosts of one rack
    Hosts(usize),
    /// all neighbouring hosts of one rack
    Rack,
    /// up to this many neighbouring racks
    Racks(usize),
    /// everything
    All,
}

/// Blocks of one level along an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    /// first place of each block, then the number of places
    starts: Vec<u32>,
    /// first block of the level below in each block, then the number of those
    parts: Vec<u32>,
    tier: Tier,
}

/// In which order ranks stand along the edges of a table, and in which blocks they are gathered: rank -> host -> rack -> all,
/// in halves within each of these, so that no block crosses an edge of a coarser unit.
///
/// A *place* is a position along an edge, a *rank* is who stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes {
    /// `[senders, receivers][place]`: the rank there
    order: [Vec<u32>; 2],
    /// `[senders, receivers][rank]`: its place
    place: [Vec<u32>; 2],
    /// levels 1..
    levels: Vec<Level>,
}

/// Which edge of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    Senders,
    Receivers,
}

impl Axes {
    /// `n` ranks in order, in blocks of powers of two: nothing is known of where they sit.
    pub fn plain(n: usize) -> Self {
        let order: Vec<usize> = (0..n).collect();
        Self::new([order.clone(), order], None, None)
    }

    /// One order for both edges, with blocks that end where hosts (`host_of[rank]`) and racks (`rack_of[rank]`) do.
    pub fn snapped(order: &[usize], host_of: &[usize], rack_of: Option<&[usize]>) -> Self {
        Self::new([order.to_vec(), order.to_vec()], Some(host_of), rack_of)
    }

    /// An order for each edge, in blocks of powers of two.
    pub fn apart(senders: Vec<usize>, receivers: Vec<usize>) -> Self {
        Self::new([senders, receivers], None, None)
    }

    fn new(order: [Vec<usize>; 2], host_of: Option<&[usize]>, rack_of: Option<&[usize]>) -> Self {
        let n = order[0].len();
        let first = &order[0];
        let group = |of: Option<&[usize]>, place: usize| of.and_then(|of| of.get(*first.get(place)?)).copied();
        // The places where one group ends and the next begins.
        let runs = |of: Option<&[usize]>| -> Vec<bool> { (0..n).map(|at| at == 0 || group(of, at) != group(of, at - 1)).collect() };
        let mut levels: Vec<Level> = Vec::new();
        let mut starts: Vec<u32> = (0..=n as u32).collect();
        let hosts = runs(host_of);
        let racks = runs(rack_of);
        let single = runs(None);
        // Ranks dealt out one by one leave runs of one: such a unit adds no level, and the next is made of ranks.
        let stages = [(host_of.is_some(), &hosts), (rack_of.is_some(), &racks), (true, &single)];
        // What a block is made of when a stage begins.
        let mut unit = Tier::Ranks(1);
        for (at, (_, cut)) in stages.into_iter().enumerate().filter(|(_, stage)| stage.0) {
            let mut step = 1;
            while let Some((next, parts)) = halve(&starts, cut) {
                step *= 2;
                let whole = next.windows(2).skip(1).all(|pair| cut.get(pair[0] as usize).copied().unwrap_or(true));
                let tier = match (at, whole) {
                    (0, true) => Tier::Host,
                    (1, true) => Tier::Rack,
                    (2, true) => Tier::All,
                    _ => match unit {
                        Tier::Ranks(_) => Tier::Ranks(step),
                        Tier::Host | Tier::Hosts(_) => Tier::Hosts(step),
                        _ => Tier::Racks(step),
                    },
                };
                starts.clone_from(&next);
                levels.push(Level { starts: next, parts, tier });
                if matches!(tier, Tier::Host | Tier::Rack | Tier::All) {
                    break;
                }
            }
            if levels.last().is_some_and(|level| matches!(level.tier, Tier::Host | Tier::Rack)) {
                unit = levels.last().map_or(unit, |level| level.tier);
            }
        }
        // One host, or one rack, is everything.
        if let Some(last) = levels.last_mut() {
            last.tier = Tier::All;
        }
        let place = [0, 1].map(|edge| {
            let mut place = vec![0; n];
            for (at, &rank) in order[edge].iter().enumerate() {
                if let Some(place) = place.get_mut(rank) {
                    *place = at as u32;
                }
            }
            place
        });
        Self { order: order.map(|order| order.into_iter().map(|rank| rank as u32).collect()), place, levels }
    }

    /// Number of places along an edge.
    pub fn len(&self) -> usize {
        self.order[0].len()
    }

    /// True without ranks.
    pub fn is_empty(&self) -> bool {
        self.order[0].is_empty()
    }

    /// The rank at a place; beyond the edge the place itself.
    pub fn rank(&self, edge: Edge, place: usize) -> usize {
        self.order[edge as usize].get(place).map_or(place, |&rank| rank as usize)
    }

    /// The place of a rank; of an unknown one its number.
    pub fn place(&self, edge: Edge, rank: usize) -> usize {
        self.place[edge as usize].get(rank).map_or(rank, |&place| place as usize)
    }

    /// Sender and receiver at two places.
    pub fn pair(&self, (row, column): (usize, usize)) -> (usize, usize) {
        (self.rank(Edge::Senders, row), self.rank(Edge::Receivers, column))
    }

    /// The places of a sender and a receiver.
    pub fn places(&self, (from, to): (usize, usize)) -> (usize, usize) {
        (self.place(Edge::Senders, from), self.place(Edge::Receivers, to))
    }

    /// True if ranks stand in their own order along both edges.
    pub fn by_rank(&self) -> bool {
        self.order.iter().all(|order| order.iter().enumerate().all(|(at, &rank)| at as u32 == rank))
    }

    /// Levels: at level 0 a block is one rank, at the last one all.
    pub fn levels(&self) -> usize {
        self.levels.len() + 1
    }

    /// Blocks along an edge at a level.
    pub fn side(&self, level: usize) -> usize {
        match level.checked_sub(1) {
            None => self.len(),
            Some(at) => self.levels.get(at).map_or(1, |level| level.starts.len() - 1),
        }
    }

    /// What a level's blocks are made of.
    pub fn tier(&self, level: usize) -> Tier {
        match level.checked_sub(1) {
            None => Tier::Ranks(1),
            Some(at) => self.levels.get(at).map_or(Tier::All, |level| level.tier),
        }
    }

    /// The places of a block; empty beyond the edge.
    pub fn span(&self, level: usize, block: usize) -> Range<usize> {
        let Some(at) = level.checked_sub(1) else { return block.min(self.len())..(block + 1).min(self.len()) };
        let Some(level) = self.levels.get(at) else { return 0..0 };
        match (level.starts.get(block), level.starts.get(block + 1)) {
            (Some(&start), Some(&end)) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// The block that a place is in, in O(log n).
    pub fn block_of(&self, level: usize, place: usize) -> usize {
        let Some(at) = level.checked_sub(1) else { return place };
        self.levels.get(at).map_or(0, |level| level.starts.partition_point(|&start| start as usize <= place).saturating_sub(1))
    }

    /// Blocks of the level below in a block.
    pub(super) fn parts(&self, level: usize, block: usize) -> Range<usize> {
        let parts = level.checked_sub(1).and_then(|at| self.levels.get(at)).map(|level| &level.parts);
        match parts.and_then(|parts| Some((*parts.get(block)?, *parts.get(block + 1)?))) {
            Some((start, end)) => start as usize..end as usize,
            None => 0..0,
        }
    }

    /// Levels worth a look of their own, from all down to one host (or a few ranks): racks, hosts, and where there are many in
    /// between, some of those. Never more than 32 times the blocks of the one before. A few ranks are seen at once.
    pub fn stops(&self) -> Vec<usize> {
        const MOST: usize = 5;
        const FEW: usize = 16;
        let top = self.levels() - 1;
        if self.len() <= FEW {
            return vec![top];
        }
        let mut ends: Vec<usize> = (0..top).filter(|&level| matches!(self.tier(level), Tier::Host | Tier::Rack)).collect();
        // A host of a few ranks, or a rank alone, needs no further look.
        let finest = ends.first().copied().unwrap_or(top);
        if finest > MOST {
            ends.insert(0, MOST.min(finest - 1).min(4));
        }
        let mut stops = vec![top];
        for &end in ends.iter().rev() {
            let above = stops.last().copied().unwrap_or(top);
            let looks = (above - end).div_ceil(MOST);
            stops.extend((1..=looks).map(|look| above - (above - end) * look / looks.max(1)));
        }
        stops.dedup();
        stops
    }
}

/// Two neighbouring blocks in one, but not across a cut. First places of the new blocks and the end, and their first parts and the
/// end; `None` if there is nothing left to join.
fn halve(starts: &[u32], cut: &[bool]) -> Option<(Vec<u32>, Vec<u32>)> {
    let blocks = starts.len() - 1;
    let (mut next, mut parts) = (Vec::new(), Vec::new());
    let mut taken = 0;
    for (at, &start) in starts.iter().take(blocks).enumerate() {
        if taken == 0 || taken == 2 || cut.get(start as usize).copied().unwrap_or(true) {
            next.push(start);
            parts.push(at as u32);
            taken = 0;
        }
        taken += 1;
    }
    if next.len() == blocks {
        return None;
    }
    next.extend(starts.last());
    parts.push(blocks as u32);
    Some((next, parts))
}
