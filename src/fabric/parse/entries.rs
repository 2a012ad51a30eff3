//! Shared resources, trunks and faults.

use toml::Spanned;

use super::{Read, Reader, names};
use crate::fabric::class::Class;
use crate::fabric::fault::{Fault, FaultKind};
use crate::fabric::layout::{Layout, Unit};
use crate::fabric::machine::Parts;
use crate::fabric::resource::{Capacity, Concurrency, Direction, Shared, Trunk};
use crate::fabric::text::{ConcurrencyEntry, FaultEntry, FaultName, Members, SharedEntry, TrunkEntry};
use crate::units::plain;

impl Reader<'_> {
    pub(super) fn shared(&self, entry: &Spanned<SharedEntry>, layout: &Layout) -> Read<Shared> {
        let (span, entry) = (entry.span(), entry.get_ref());
        let (per, direction) = (*entry.per.get_ref(), *entry.direction.get_ref());
        if layout.units(per).is_none() {
            let missing = match per {
                Unit::Switch => "switches",
                Unit::Socket => "sockets",
                Unit::Nic | Unit::Rail => "nics",
                _ => "racks",
            };
            return Err(self.source.error(&entry.per.span(), format!("the hosts table does not say which `{missing}` there are")));
        }
        if per == Unit::Fabric && direction != Direction::Within {
            return Err(self.source.error(&entry.direction.span(), "nothing leaves or enters the fabric; use \"within\""));
        }
        let path = match &entry.path {
            None => None,
            Some(path) => Some(Class::ALL.into_iter().find(|class| class.name() == path.get_ref()).ok_or_else(|| {
                self.source.refuse(&path.span(), format!("{:?}", path.get_ref()), &format!("a path class: {}", names(&Class::ALL)))
            })?),
        };
        let capacity = match (&entry.rate, &entry.concurrency) {
            (Some(rate), None) => Capacity::Rate(self.rate(rate)?),
            (None, Some(concurrency)) => Capacity::TimeShared(self.concurrency(concurrency)?),
            _ => return Err(self.source.error(&span, "give either `rate` or `concurrency`")),
        };
        Ok(Shared { name: plain(&entry.name), per, direction, capacity, path })
    }

    fn concurrency(&self, entry: &Spanned<ConcurrencyEntry>) -> Read<Concurrency> {
        let refuse = |value: String, expected: &str| self.source.refuse(&entry.span(), value, expected);
        let check = |c: f64| {
            if c > 0.0 && c.is_finite() {
                Ok(c)
            } else {
                Err(refuse(c.to_string(), "a concurrency above 0; 1 is strictly one after another"))
            }
        };
        match entry.get_ref() {
            ConcurrencyEntry::Always(c) => Ok(Concurrency::Always(check(*c)?)),
            ConcurrencyEntry::ByWidth(table) => {
                let mut points = Vec::new();
                for (width, c) in table {
                    let width: usize = width
                        .parse()
                        .ok()
                        .filter(|&width| width >= 2)
                        .ok_or_else(|| refuse(format!("{width:?}"), "a width of 2 or more"))?;
                    points.push((width, check(*c)?));
                }
                points.sort_unstable_by_key(|&(width, _)| width);
                points.dedup_by_key(|&mut (width, _)| width);
                if points.is_empty() { Err(refuse("{}".to_owned(), "at least one width")) } else { Ok(Concurrency::ByWidth(points)) }
            }
        }
    }

    pub(super) fn trunk(&self, entry: &TrunkEntry, layout: &Layout) -> Read<Trunk> {
        let hosts = layout.hosts.len();
        let side = |members: &Spanned<Members>| -> Read<Vec<bool>> {
            let mut side = vec![false; hosts];
            for host in self.members(members, hosts, "hosts")? {
                side[host] = true;
            }
            Ok(side)
        };
        let (near, far) = (side(&entry.from)?, side(&entry.to)?);
        if let Some(host) = (0..hosts).find(|&host| near[host] && far[host]) {
            return Err(self.source.error(&entry.to.span(), format!("host {host} is on both sides of the trunk")));
        }
        let rate = self.rate(&entry.rate)?;
        let back = entry.back.as_ref().map(|back| self.rate(back)).transpose()?;
        Ok(Trunk { name: plain(&entry.name), near, far, rates: [rate, back.unwrap_or(rate)] })
    }

    pub(super) fn fault(&self, entry: &Spanned<FaultEntry>, layout: &Layout, parts: Option<&Parts>) -> Read<Fault> {
        let (span, entry) = (entry.span(), entry.get_ref());
        // Of a rank, not of a link.
        let (hang, narrow) = (entry.kind == FaultName::Hang, entry.kind == FaultName::Narrow);
        let own = hang || narrow;
        let fits = [
            ("from", entry.from.as_ref().map(Spanned::span), !own),
            ("to", entry.to.as_ref().map(Spanned::span), !own),
            ("rank", entry.rank.as_ref().map(Spanned::span), own),
            ("after", entry.after.as_ref().map(Spanned::span), hang),
            ("lanes", entry.lanes.as_ref().map(Spanned::span), narrow),
            ("factor", entry.factor.as_ref().map(Spanned::span), matches!(entry.kind, FaultName::Slow | FaultName::Flaky)),
            ("probability", entry.probability.as_ref().map(Spanned::span), entry.kind == FaultName::Flaky),
        ];
        for (field, given, fits) in fits {
            if let Some(span) = given.filter(|_| !fits) {
                return Err(self.source.error(&span, format!("`{field}` has no meaning for this kind of fault")));
            }
        }
        let missing = |field: &str| self.source.error(&span, format!("`{field}` is missing for this kind of fault"));
        let part = |value: &Option<Spanned<f64>>, field: &str, low: f64, high: f64| {
            let value = value.as_ref().ok_or_else(|| missing(field))?;
            self.between(value, low, high, &format!("a {field} from {low} to {high}"))
        };
        let ranks = |members: &Option<Spanned<Members>>| members.as_ref().map(|m| self.members(m, layout.world(), "ranks")).transpose();
        let kind = match entry.kind {
            FaultName::Slow => FaultKind::Slow { factor: part(&entry.factor, "factor", 1e-6, 1.0)? },
            FaultName::Flaky => FaultKind::Flaky {
                probability: part(&entry.probability, "probability", 0.0, 1.0)?,
                factor: part(&entry.factor, "factor", 1e-6, 1.0)?,
            },
            FaultName::Dead => FaultKind::Dead,
            FaultName::Narrow => {
                let lanes = entry.lanes.as_ref().ok_or_else(|| missing("lanes"))?;
                let Some(parts) = parts else {
                    return Err(self
                        .source
                        .error(&lanes.span(), "of how many? there is no [hardware] table that says what the slots have"));
                };
                let (lanes, most) = ((*lanes.get_ref(), lanes.span()), parts.pcie.width);
                if lanes.0 == 0 || lanes.0 >= most {
                    return Err(self.source.refuse(&lanes.1, lanes.0, &format!("fewer than the {most} lanes that the slots have")));
                }
                FaultKind::Narrow { lanes: lanes.0, factor: f64::from(lanes.0) / f64::from(most) }
            }
            FaultName::Hang => FaultKind::Hang { after: entry.after.as_ref().map_or(0, |after| *after.get_ref()) },
        };
        let from = ranks(if own { &entry.rank } else { &entry.from })?;
        if own && from.is_none() {
            return Err(missing("rank"));
        }
        Ok(Fault { kind, from, to: ranks(&entry.to)? })
    }
}
