//! From a file's text to a [`Fabric`], or to what is wrong with it.

mod entries;
mod hardware;
mod hosts;

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::class::Class;
use super::layout::Layout;
use super::noise::Noise;
use super::resource::Numbering;
use super::rule::{Breakpoint, Rule, Truth};
use super::source::{FabricError, Source};
use super::text::{self, Members, Text};
use super::{Fabric, PairRule};
use crate::units::{UnitError, format_gbps, parse_ranks, parse_rate, parse_seconds, parse_size, plain};

/// Most ranks of a fabric, and of one of its hosts.
const MOST_RANKS: usize = 1 << 16;
const MOST_PER_HOST: usize = 1 << 10;

pub(super) fn fabric(text: &str, name: &str) -> Result<Fabric, FabricError> {
    let source = Source { name, text };
    let file: text::File = toml::from_str(text).map_err(|error| source.syntax(&error))?;
    let reader = Reader { source };
    let (layout, memory, cache) = reader.layout(&file.hosts)?;
    let rules = reader.rules(&file.path, &layout, &file.hosts.span())?;
    let matrix = file.matrix.as_ref().map(|matrix| reader.matrix(matrix, layout.world())).transpose()?;
    let mut pairs = BTreeMap::new();
    for pair in &file.pair {
        let (from, to) = (reader.rank(&pair.from, &layout)?, reader.rank(&pair.to, &layout)?);
        let alpha = pair.alpha.as_ref().map(|alpha| reader.seconds(alpha)).transpose()?;
        if pairs.insert((from, to), PairRule { rate: reader.rate(&pair.rate)?, alpha }).is_some() {
            return Err(reader.source.error(&pair.from.span(), format!("{from} to {to} was told before; each pair once")));
        }
    }
    let shared = file.shared.iter().map(|entry| reader.shared(entry, &layout)).collect::<Result<Vec<_>, _>>()?;
    let trunks = file.trunk.iter().map(|entry| reader.trunk(entry, &layout)).collect::<Result<Vec<_>, _>>()?;
    let parts = file.hardware.as_ref().map(|hardware| reader.hardware(hardware, &layout)).transpose()?;
    let faults = file.fault.iter().map(|entry| reader.fault(entry, &layout, parts.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let noise = match &file.noise {
        Some(entry) => {
            Some(Noise { kind: entry.kind, cv: reader.between(&entry.cv, 0.0, 0.5, "a coefficient of variation from 0 to 0.5")? })
        }
        None => None,
    };
    let mut fabric = Fabric {
        name: plain(name),
        about: plain(&file.about),
        seed: file.seed,
        numbering: Numbering::new(&layout, &shared, trunks.len(), rules.len()),
        layout,
        rules,
        matrix,
        pairs,
        shared,
        trunks,
        parts,
        faults,
        noise,
        memory,
        cache,
    };
    if let Some(matrix) = &file.matrix {
        fabric.matrix = reader.without_latency(matrix, &fabric)?;
    }
    Ok(fabric)
}

/// Checks values where they stand in the text.
struct Reader<'a> {
    source: Source<'a>,
}

type Read<T> = Result<T, FabricError>;

impl Reader<'_> {
    fn unit<T>(&self, text: &Text, parse: impl Fn(&str) -> Result<T, UnitError>) -> Read<T> {
        parse(text.get_ref()).map_err(|error| self.source.error(&text.span(), error.to_string()))
    }

    fn rate(&self, text: &Text) -> Read<f64> {
        self.unit(text, parse_rate)
    }

    fn seconds(&self, text: &Text) -> Read<f64> {
        self.unit(text, parse_seconds)
    }

    fn size(&self, text: &Text) -> Read<u64> {
        let size = self.unit(text, parse_size)?;
        if size == 0 {
            Err(self.source.refuse(&text.span(), format!("{:?}", text.get_ref()), "a size of at least one byte"))
        } else {
            Ok(size)
        }
    }

    fn between(&self, value: &Spanned<f64>, low: f64, high: f64, expected: &str) -> Read<f64> {
        let number = *value.get_ref();
        if (low..=high).contains(&number) { Ok(number) } else { Err(self.source.refuse(&value.span(), number, expected)) }
    }

    fn rank(&self, rank: &Spanned<usize>, layout: &Layout) -> Read<usize> {
        let world = layout.world();
        if *rank.get_ref() < world {
            Ok(*rank.get_ref())
        } else {
            Err(self.source.refuse(&rank.span(), rank.get_ref(), &format!("a rank of this fabric, 0 to {}", world - 1)))
        }
    }

    /// Ascending members below `count`.
    fn members(&self, members: &Spanned<Members>, count: usize, what: &str) -> Read<Vec<usize>> {
        let read = match members.get_ref() {
            Members::One(one) if *one < count => Ok(vec![*one]),
            Members::One(one) => Err(one.to_string()),
            Members::Set(set) => parse_ranks(set, count).map_err(|error| format!("{:?}", error.value)),
        };
        read.map_err(|value| {
            self.source.refuse(&members.span(), value, &format!("a set of {what} 0 to {}, such as 0 or \"0-3,7\"", count.saturating_sub(1)))
        })
    }

    /// The rules given, each class at most once, and one for every pair that exists.
    fn rules(&self, paths: &text::Paths, layout: &Layout, hosts: &Range<usize>) -> Read<Vec<Rule>> {
        let told = [
            (Class::Local, &paths.local),
            (Class::IntraNode, &paths.intra_node),
            (Class::SameSwitch, &paths.same_switch),
            (Class::SameSocket, &paths.same_socket),
            (Class::CrossSocket, &paths.cross_socket),
            (Class::InterNode, &paths.inter_node),
            (Class::SameRail, &paths.same_rail),
            (Class::SameRack, &paths.same_rack),
            (Class::CrossRack, &paths.cross_rack),
        ];
        let classes = layout.classes();
        let mut rules: Vec<Rule> = Vec::new();
        for (class, path) in told {
            let Some(path) = path else { continue };
            if !classes.iter().any(|finest| finest.chain().any(|of| of == class)) {
                let problem = format!("no pair of ranks goes this way; the hosts table makes {}", names(&classes));
                return Err(self.source.error(&path.span(), problem));
            }
            rules.push(self.rule(class, path.get_ref())?);
        }
        match classes.iter().find(|class| !class.chain().any(|class| rules.iter().any(|rule| rule.class == class))) {
            Some(class) => {
                let tables: Vec<String> = class.chain().map(|class| format!("[path.{}]", class.name())).collect();
                Err(self.source.error(hosts, format!("these hosts have pairs of class {}; give {}", class.name(), tables.join(" or "))))
            }
            None => Ok(rules),
        }
    }

    fn rule(&self, class: Class, path: &text::Path) -> Read<Rule> {
        let rate = self.rate(&path.rate)?;
        let mut breakpoints: Vec<Breakpoint> = Vec::new();
        for entry in &path.breakpoints {
            let below = self.size(&entry.below)?;
            if breakpoints.last().is_some_and(|last| last.below >= below) {
                let expected = "above the one before; breakpoints stand in ascending order";
                return Err(self.source.refuse(&entry.below.span(), format!("{:?}", entry.below.get_ref()), expected));
            }
            breakpoints.push(Breakpoint { below, alpha: self.seconds(&entry.alpha)?, rate: self.rate(&entry.rate)? });
        }
        let spread = match &path.spread {
            None => None,
            Some(_) if class == Class::Local => {
                return Err(self.source.error(&path.rate.span(), "local copies have no spread of pairs"));
            }
            Some(ends) => {
                let (low, high) = (self.rate(&ends.get_ref()[0])?, self.rate(&ends.get_ref()[1])?);
                if !(low..=high).contains(&rate) {
                    let value = format!("{} to {} GB/s", format_gbps(low), format_gbps(high));
                    return Err(self.source.refuse(&ends.span(), value, &format!("a range around the rate, {} GB/s", format_gbps(rate))));
                }
                Some((low, high))
            }
        };
        let duplex = match &path.duplex {
            Some(duplex) => self.between(duplex, 0.01, 1.0, "the part of the rate that is left both ways, 0.01 to 1")?,
            None => 1.0,
        };
        Ok(Rule { class, truth: Truth { alpha: self.seconds(&path.alpha)?, rate, breakpoints }, spread, duplex })
    }

    fn matrix(&self, matrix: &text::Matrix, world: usize) -> Read<Vec<f64>> {
        let scale =
            self.unit(&matrix.unit, |unit| parse_rate(&format!("1{unit}")).map_err(|_| UnitError::new(unit, "a unit such as GB/s")))?;
        let rows = matrix.rows.get_ref();
        if rows.len() != world {
            return Err(self.source.error(&matrix.rows.span(), format!("{} rows for {world} ranks; one row for each sender", rows.len())));
        }
        let mut rates = Vec::with_capacity(world * world);
        for (from, row) in rows.iter().enumerate() {
            if row.get_ref().len() != world {
                let problem = format!("{} numbers for {world} ranks; one for each receiver", row.get_ref().len());
                return Err(self.source.error(&row.span(), problem));
            }
            for (to, cell) in row.get_ref().iter().enumerate() {
                let rate = *cell.get_ref();
                let fine = if from == to { rate == 0.0 } else { rate > 0.0 && rate.is_finite() };
                if !fine {
                    let expected = if from == to { "0, as the diagonal is (local copies have [path.local])" } else { "a rate above 0" };
                    return Err(self.source.refuse(&cell.span(), format!("{rate} from {from} to {to}"), expected));
                }
                rates.push(rate * scale);
            }
        }
        Ok(rates)
    }

    /// The links' rates behind a matrix of bytes over time at one size.
    fn without_latency(&self, told: &text::Matrix, fabric: &Fabric) -> Read<Option<Vec<f64>>> {
        let (Some(at), Some(matrix)) = (&told.at, &fabric.matrix) else { return Ok(fabric.matrix.clone()) };
        let (bytes, world) = (self.size(at)? as f64, fabric.world());
        let link = |(cell, &rate): (usize, &f64)| {
            let (from, to) = (cell / world, cell % world);
            let alpha = fabric.link(from, to).alpha;
            let left = if from == to { f64::INFINITY } else { bytes / rate - alpha };
            if left > 0.0 {
                return Ok(bytes / left);
            }
            let problem = format!("{from} to {to} would take no longer than its α of {} µs; a larger size", alpha * 1e6);
            Err(self.source.error(&at.span(), problem))
        };
        matrix.iter().enumerate().map(link).collect::<Read<Vec<f64>>>().map(Some)
    }
}

fn names(classes: &[Class]) -> String {
    classes.iter().map(|class| class.name()).collect::<Vec<_>>().join(", ")
}
