//! The table of hosts.

use toml::Spanned;

use super::{MOST_PER_HOST, MOST_RANKS, Read, Reader};
use crate::fabric::layout::{Groups, Layout};
use crate::fabric::text::{Division, Hosts};
use crate::units::{parse_ranks, plain};

impl Reader<'_> {
    /// The layout, and memory and cache of each rank, bytes.
    pub(super) fn layout(&self, hosts: &Spanned<Hosts>) -> Read<(Layout, u64, u64)> {
        let told = hosts.get_ref();
        let names: Vec<String> = match (&told.names, &told.count) {
            (Some(names), count) => {
                let list: Vec<String> = names.get_ref().iter().map(|name| plain(name)).collect();
                let distinct: std::collections::BTreeSet<&String> = list.iter().collect();
                if distinct.len() != list.len() || list.iter().any(String::is_empty) {
                    return Err(self.source.error(&names.span(), "host names must be distinct and not empty"));
                }
                if let Some(count) = count.as_ref().filter(|count| *count.get_ref() != list.len()) {
                    return Err(self.source.refuse(&count.span(), count.get_ref(), &format!("the number of names, {}", list.len())));
                }
                list
            }
            (None, Some(count)) if *count.get_ref() <= MOST_RANKS => (0..*count.get_ref()).map(|host| format!("node{host}")).collect(),
            (None, Some(count)) => return Err(self.source.refuse(&count.span(), count.get_ref(), &format!("at most {MOST_RANKS} hosts"))),
            (None, None) => return Err(self.source.error(&hosts.span(), "`count` or `names` is missing: which hosts are there?")),
        };
        let ranks = *told.ranks.get_ref();
        if names.is_empty() {
            return Err(self.source.error(&hosts.span(), "0 hosts is not at least one host"));
        }
        if ranks == 0 || ranks > MOST_PER_HOST || ranks * names.len() > MOST_RANKS {
            let expected = format!("1 to {} ranks on each host", MOST_PER_HOST.min(MOST_RANKS / names.len()));
            return Err(self.source.refuse(&told.ranks.span(), ranks, &expected));
        }
        let of_ranks = |told: &Option<Spanned<Division>>| told.as_ref().map(|told| self.groups(told, ranks, "ranks of a host")).transpose();
        let layout = Layout {
            switches: of_ranks(&told.switches)?,
            sockets: of_ranks(&told.sockets)?,
            nics: of_ranks(&told.nics)?,
            racks: told.racks.as_ref().map(|racks| self.groups(racks, names.len(), "hosts")).transpose()?,
            hosts: names,
            ranks_per_host: ranks,
        };
        let cache = told.cache.as_ref().map(|cache| self.size(cache)).transpose()?;
        Ok((layout, self.size(&told.memory)?, cache.unwrap_or(0)))
    }

    fn groups(&self, told: &Spanned<Division>, members: usize, what: &str) -> Read<Groups> {
        match told.get_ref() {
            Division::Count(count) if (1..=members).contains(count) => Ok(Groups::even(members, *count)),
            Division::Count(count) => {
                Err(self.source.refuse(&told.span(), count, &format!("1 to {members} groups of the {members} {what}")))
            }
            Division::Members(sets) => {
                let mut of = vec![None; members];
                for (group, set) in sets.iter().enumerate() {
                    let expected = || format!("a set of {what} 0 to {}, each in one group", members - 1);
                    let set_of =
                        parse_ranks(set, members).map_err(|_| self.source.refuse(&told.span(), format!("{set:?}"), &expected()))?;
                    for member in set_of {
                        if of[member].replace(group).is_some() {
                            return Err(self.source.refuse(&told.span(), format!("{set:?}"), &expected()));
                        }
                    }
                }
                let grouped: Option<Vec<usize>> = of.iter().copied().collect();
                let left_out = of.iter().position(Option::is_none).unwrap_or(0);
                grouped
                    .map(|of| Groups { of, count: sets.len() })
                    .ok_or_else(|| self.source.error(&told.span(), format!("{left_out} is in no group; all {members} {what} must be")))
            }
        }
    }
}
