//! Who sits where: ranks on hosts, below switches and sockets, behind NICs, in racks. Everything by arithmetic, nothing for each pair.

use super::class::Class;

/// Members put into groups: `of[member]` is the group's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Groups {
    pub of: Vec<usize>,
    pub count: usize,
}

impl Groups {
    /// `members` in order, as evenly as they go.
    pub fn even(members: usize, count: usize) -> Self {
        Self { of: (0..members).map(|member| member * count / members.max(1)).collect(), count }
    }
}

/// Where the ranks of a fabric sit. Ranks are numbered host by host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// host names
    pub hosts: Vec<String>,
    pub ranks_per_host: usize,
    /// of the ranks of each host, where the file says
    pub switches: Option<Groups>,
    pub sockets: Option<Groups>,
    pub nics: Option<Groups>,
    /// of the hosts, where the file says
    pub racks: Option<Groups>,
}

/// What a shared resource is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Rank,
    Switch,
    Socket,
    Nic,
    Host,
    /// the NICs of one number in one rack
    Rail,
    Rack,
    Fabric,
}

impl Layout {
    pub fn world(&self) -> usize {
        self.hosts.len() * self.ranks_per_host
    }

    pub fn host_of(&self, rank: usize) -> usize {
        rank / self.ranks_per_host
    }

    fn local_of(&self, rank: usize) -> usize {
        rank % self.ranks_per_host
    }

    /// The rack that a rank's host stands in; the first where there are none.
    pub(super) fn rack_of(&self, rank: usize) -> usize {
        self.racks.as_ref().map_or(0, |racks| racks.of[self.host_of(rank)])
    }

    /// Number of the rank's socket on its host.
    pub fn socket_of(&self, rank: usize) -> Option<usize> {
        self.sockets.as_ref().map(|sockets| sockets.of[self.local_of(rank)])
    }

    /// The finest class of a pair. A host without sockets is one socket; a fabric without racks is one rack.
    pub fn class(&self, from: usize, to: usize) -> Class {
        let same =
            |groups: &Option<Groups>| groups.as_ref().is_some_and(|groups| groups.of[self.local_of(from)] == groups.of[self.local_of(to)]);
        if from == to {
            Class::Local
        } else if self.host_of(from) == self.host_of(to) {
            if same(&self.switches) {
                Class::SameSwitch
            } else if self.sockets.is_none() || same(&self.sockets) {
                Class::SameSocket
            } else {
                Class::CrossSocket
            }
        } else if self.rack_of(from) != self.rack_of(to) {
            Class::CrossRack
        } else if same(&self.nics) {
            Class::SameRail
        } else {
            Class::SameRack
        }
    }

    /// The finest classes that some pair of ranks has.
    pub fn classes(&self) -> Vec<Class> {
        let mut found: Vec<Class> = Vec::new();
        let mut see = |from: usize, to: usize| {
            let class = self.class(from, to);
            if !found.contains(&class) {
                found.push(class);
            }
        };
        // All hosts are alike inside, and each host's way to another depends on their racks alone.
        let first = |host: usize| host * self.ranks_per_host;
        let mates = (0..self.hosts.len()).find_map(|host| {
            (host + 1..self.hosts.len()).find(|&other| self.rack_of(first(host)) == self.rack_of(first(other))).map(|other| (host, other))
        });
        let strangers = (1..self.hosts.len()).find(|&other| self.rack_of(first(other)) != self.rack_of(0)).map(|other| (0, other));
        for (host, other) in [Some((0, 0)), mates, strangers].into_iter().flatten() {
            for from in first(host)..first(host) + self.ranks_per_host {
                for to in first(other)..first(other) + self.ranks_per_host {
                    see(from, to);
                }
            }
        }
        found
    }

    /// How many units of a kind there are; `None` when the file does not say how they divide hosts or ranks.
    pub fn units(&self, unit: Unit) -> Option<usize> {
        let of_hosts = |groups: &Option<Groups>| groups.as_ref().map(|groups| groups.count * self.hosts.len());
        match unit {
            Unit::Rank => Some(self.world()),
            Unit::Switch => of_hosts(&self.switches),
            Unit::Socket => of_hosts(&self.sockets),
            Unit::Nic => of_hosts(&self.nics),
            Unit::Host => Some(self.hosts.len()),
            Unit::Rail => self.nics.as_ref().map(|nics| nics.count * self.racks.as_ref().map_or(1, |racks| racks.count)),
            Unit::Rack => self.racks.as_ref().map(|racks| racks.count),
            Unit::Fabric => Some(1),
        }
    }

    /// The unit of a kind that a rank belongs to; 0 where there is none of that kind.
    pub fn unit_of(&self, unit: Unit, rank: usize) -> usize {
        let on_host = |groups: &Option<Groups>| {
            groups.as_ref().map_or(0, |groups| self.host_of(rank) * groups.count + groups.of[self.local_of(rank)])
        };
        match unit {
            Unit::Rank => rank,
            Unit::Switch => on_host(&self.switches),
            Unit::Socket => on_host(&self.sockets),
            Unit::Nic => on_host(&self.nics),
            Unit::Host => self.host_of(rank),
            Unit::Rail => self.nics.as_ref().map_or(0, |nics| self.rack_of(rank) * nics.count + nics.of[self.local_of(rank)]),
            Unit::Rack => self.rack_of(rank),
            Unit::Fabric => 0,
        }
    }

    /// A unit as a person names it.
    pub fn unit_name(&self, unit: Unit, number: usize) -> String {
        let on_host = |what: &str, groups: &Option<Groups>| {
            let count = groups.as_ref().map_or(1, |groups| groups.count);
            format!("{what} {} of {}", number % count, self.hosts.get(number / count).map_or("?", String::as_str))
        };
        match unit {
            Unit::Rank => format!("rank {number}"),
            Unit::Switch => on_host("switch", &self.switches),
            Unit::Socket => on_host("socket", &self.sockets),
            Unit::Nic => on_host("NIC", &self.nics),
            Unit::Host => self.hosts.get(number).cloned().unwrap_or_default(),
            Unit::Rail => {
                let count = self.nics.as_ref().map_or(1, |nics| nics.count);
                let rack = if self.racks.is_some() { format!(" of rack {}", number / count) } else { String::new() };
                format!("rail {}{rack}", number % count)
            }
            Unit::Rack => format!("rack {number}"),
            Unit::Fabric => "the fabric".to_owned(),
        }
    }
}
