//! In which order the matrix has its ranks, and what its blocks are called.

use std::ops::Range;
use std::sync::Arc;

use crate::matrix::{Axes, Edge, Grid, Tier};
use crate::topology::{Racks, Topology, Units};
use crate::units::plain;

/// In which order ranks stand along the edges of the matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Order {
    #[default]
    Rank,
    /// by rack, host, socket and switch
    Topology,
    /// slowest senders and slowest receivers first
    Slowness,
}

impl Order {
    /// Every order, as a key goes through them.
    pub const ALL: [Self; 3] = [Self::Rank, Self::Topology, Self::Slowness];

    /// The name in commands; with "by" before it on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Topology => "topology",
            Self::Slowness => "slowness",
        }
    }

    /// The order after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Rank => Self::Topology,
            Self::Topology => Self::Slowness,
            Self::Slowness => Self::Rank,
        }
    }
}

/// What was found by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub from: Option<usize>,
    pub to: Option<usize>,
    /// the coarser one of what was named
    pub unit: Seen,
}

/// How much somebody wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    Rank,
    Host,
    Rack,
}

impl Seen {
    /// How far one looks into a table to see it, along [`Axes::stops`].
    pub fn depth(self, axes: &Axes) -> usize {
        let stops = axes.stops();
        let is = |tier: Tier| match self {
            Self::Rank => false,
            Self::Host => matches!(tier, Tier::Host | Tier::Ranks(_)),
            Self::Rack => matches!(tier, Tier::Rack),
        };
        stops.iter().position(|&level| is(axes.tier(level))).unwrap_or(if self == Self::Rack { 0 } else { stops.len() - 1 })
    }
}

/// What the order of ranks, and the names of blocks, are made from.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    host_of: Vec<usize>,
    /// `[host]`, as shown
    hosts: Vec<String>,
    racks: Option<Racks>,
    by_rank: Arc<Axes>,
    by_topology: Arc<Axes>,
}

impl Orders {
    pub fn of(topology: &Topology) -> Self {
        let host_of = topology.node_of();
        let racks = Racks::of(topology);
        let hosts = topology.hosts().into_iter().map(plain).collect();
        let rack_of = racks.as_ref().map(|racks| racks.of.as_slice());
        let mut order: Vec<usize> = (0..topology.world()).collect();
        let by_rank = Arc::new(Axes::snapped(&order, &host_of, rack_of));
        let units = Units::of(topology);
        let number = |rank: usize, level| units.unit(level, rank).map(|unit| unit.number);
        order.sort_by_cached_key(|&rank| {
            use crate::topology::Level::{Socket, Switch};
            (rack_of.map(|of| of[rank]), host_of[rank], number(rank, Socket), number(rank, Switch), rank)
        });
        let by_topology = Arc::new(Axes::snapped(&order, &host_of, rack_of));
        Self { host_of, hosts, racks, by_rank, by_topology }
    }

    /// Places and blocks of an order; by slowness, of the ranks' means in a table, where the worst mean comes first and a rank
    /// that has none last.
    pub fn axes(&self, order: Order, grid: &Grid) -> Arc<Axes> {
        match order {
            Order::Rank => Arc::clone(&self.by_rank),
            Order::Topology => Arc::clone(&self.by_topology),
            Order::Slowness => {
                let slowest = |mean: &dyn Fn(usize) -> f64| {
                    let badness = |rank| match mean(rank) {
                        mean if mean.is_nan() => f64::NEG_INFINITY,
                        mean => grid.metric().badness(mean),
                    };
                    let mut ranks: Vec<(f64, usize)> = (0..grid.world()).map(|rank| (badness(rank), rank)).collect();
                    ranks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                    ranks.into_iter().map(|(_, rank)| rank).collect()
                };
                Arc::new(Axes::apart(slowest(&|rank| grid.row(rank).mean), slowest(&|rank| grid.column(rank).mean)))
            }
        }
    }

    /// An empty table's axes, by rank.
    pub const fn by_rank(&self) -> &Arc<Axes> {
        &self.by_rank
    }

    /// Who is meant by a rank's number, or the name of a host or a rack, or two of them with `:` or `→` in between. The error says
    /// what is not known.
    pub fn find(&self, text: &str) -> Result<Found, String> {
        let text = text.replace("->", "→");
        let mut parts = text.splitn(2, [':', '→']).map(str::trim);
        let (from, to) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if from.is_empty() && to.is_empty() {
            return Err("expected a rank, a host or a pair of them, such as 12, host03 or 12:40".to_owned());
        }
        let one = |word: &str| if word.is_empty() { Ok(None) } else { self.find_one(word).map(Some) };
        let (from, to) = (one(from)?, one(to)?);
        // Both ends in sight: the coarser one decides how closely one looks.
        let unit = [from, to].into_iter().flatten().map(|(_, unit)| unit).max().unwrap_or(Seen::Rank);
        Ok(Found { from: from.map(|(rank, _)| rank), to: to.map(|(rank, _)| rank), unit })
    }

    /// The first rank of what has this name: exactly, else the first whose name has it in it.
    fn find_one(&self, word: &str) -> Result<(usize, Seen), String> {
        let ranks = self.host_of.len();
        if let Ok(rank) = word.parse::<usize>() {
            return if rank < ranks {
                Ok((rank, Seen::Rank))
            } else {
                Err(format!("there is no rank {rank}, only 0 to {}", ranks.saturating_sub(1)))
            };
        }
        let lower = word.to_lowercase();
        let named = |names: &[String], of: &[usize], exact: bool| {
            let is = |name: &String| if exact { name.to_lowercase() == lower } else { name.to_lowercase().contains(&lower) };
            let found = names.iter().position(is)?;
            of.iter().position(|&at| at == found)
        };
        let groups = self.racks.as_ref().map_or((&[][..], &[][..]), |racks| (&racks.names[..], &racks.of[..]));
        for exact in [true, false] {
            if let Some(rank) = named(&self.hosts, &self.host_of, exact) {
                return Ok((rank, Seen::Host));
            }
            if let Some(rank) = named(groups.0, groups.1, exact) {
                return Ok((rank, Seen::Rack));
            }
        }
        Err(format!("no rank, host or rack is called {:?}", plain(word)))
    }

    /// What a block of a table is called: `all`, `rack 3`, `host012`, `host008–015`, `ranks 4–7`.
    pub fn name(&self, axes: &Axes, edge: Edge, level: usize, block: usize) -> String {
        let span = axes.span(level, block);
        let (Some(last), first) = (span.end.checked_sub(1), span.start) else { return String::new() };
        let (first, last) = (axes.rank(edge, first), axes.rank(edge, last));
        let rack = |rank: usize| self.racks.as_ref().and_then(|racks| racks.names.get(*racks.of.get(rank)?)).map_or("?", String::as_str);
        match axes.tier(level) {
            Tier::All => "all".to_owned(),
            Tier::Rack | Tier::Racks(_) => between(rack(first), rack(last)),
            Tier::Host | Tier::Hosts(_) => between(self.host(first), self.host(last)),
            Tier::Ranks(_) if span.len() == 1 => first.to_string(),
            Tier::Ranks(_) if in_turn(axes, edge, &span) => format!("ranks {first}–{last}"),
            Tier::Ranks(_) => format!("places {}–{}", span.start + 1, span.end),
        }
    }

    fn host(&self, rank: usize) -> &str {
        self.host_of.get(rank).and_then(|&host| self.hosts.get(host)).map_or("?", String::as_str)
    }
}

/// True if the ranks of some places follow each other.
fn in_turn(axes: &Axes, edge: Edge, span: &Range<usize>) -> bool {
    let first = axes.rank(edge, span.start);
    span.clone().enumerate().all(|(at, place)| axes.rank(edge, place) == first + at)
}

/// Blocks of a level in words: `2×2 hosts`, `rack pairs`.
pub fn tiers(tier: Tier) -> String {
    let many = |count: usize, what: &str| if count == 1 { String::new() } else { format!("{count}×{count} {what}") };
    match tier {
        Tier::Ranks(count) => many(count, "ranks"),
        Tier::Host => "host pairs".to_owned(),
        Tier::Hosts(count) => many(count, "hosts"),
        Tier::Rack => "rack pairs".to_owned(),
        Tier::Racks(count) => many(count, "racks"),
        Tier::All => "all".to_owned(),
    }
}

/// `host008–015`: what two names have in common is told once, if it ends before a number.
fn between(first: &str, last: &str) -> String {
    if first == last {
        return first.to_owned();
    }
    let common = first.char_indices().zip(last.chars()).take_while(|((_, a), b)| a == b && !a.is_ascii_digit()).last();
    let at = common.map_or(0, |((at, c), _)| at + c.len_utf8());
    format!("{first}–{}", &last[at..])
}
