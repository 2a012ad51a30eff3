//! Every kind of fit from one heap of observations.

use std::collections::HashMap;
use std::num::NonZero;
use std::thread;

use serde::ser::{Serialize, Serializer};

use super::bootstrap::Confidence;
use super::fans::{FanRate, rates};
use super::key::{Key, Kind};
use super::keyed::{Fit, Spread};
use super::line::Point;
use super::observe::{Code, FanKey, Observations, RootRow, Row};
use super::stats::median;
use crate::topology::PathClass;

/// All fits. In files one array of them, the classes first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fits {
    /// of path classes, of fans of a width, of relays; by kind and key. Their times are one heap: an interval says where the
    /// median of the class lies, and the spread where its members do.
    pub classes: Vec<Fit>,
    /// of ranks, pairs and fans; by kind and key
    pub single: Vec<Fit>,
    /// what each fan's root moved, a size each
    pub fans: Vec<FanRate>,
    /// observations left out because they were no times
    pub ignored: usize,
}

impl Fits {
    /// The fit of a key; `None` where fewer than two sizes were measured.
    pub fn get(&self, kind: Kind, key: &Key) -> Option<&Fit> {
        let find = |fits: &[Fit]| fits.binary_search_by(|fit| (fit.kind, &fit.key).cmp(&(kind, key))).ok();
        find(&self.classes).map(|index| &self.classes[index]).or_else(|| find(&self.single).map(|index| &self.single[index]))
    }

    /// What two directions at once leave of each on a path class: a duplex bandwidth over the one-way one.
    pub fn duplex_ratio(&self, path: PathClass) -> Option<f64> {
        let bandwidth = |kind| Some(self.get(kind, &Key::Class { path })?.line.bandwidth);
        Some(bandwidth(Kind::Duplex)? / bandwidth(Kind::Peer)?)
    }
}

impl Serialize for Fits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.classes.iter().chain(&self.single))
    }
}

/// What is pooled: the kind, the paths (of a relay both), the width of a fan (0 otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Class {
    kind: Kind,
    path: PathClass,
    other: Option<PathClass>,
    width: usize,
}

impl Class {
    fn key(self) -> Key {
        match (self.other, self.width) {
            (Some(send_path), _) => Key::Relay { receive_path: self.path, send_path },
            (None, 0) => Key::Class { path: self.path },
            (None, width) => Key::FanClass { path: self.path, width },
        }
    }
}

/// Times of a class by size.
type Pools = HashMap<(Class, u64), Vec<f64>>;

impl Observations {
    /// Fits everything, on all cores. With a confidence come the intervals.
    pub fn fit(mut self, confidence: Option<&Confidence>) -> Fits {
        self.order_fans();
        let roots = self.take_roots();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let known = Known { paths: &self.paths, fans: &self.fans, confidence };
        let parts: Vec<(Vec<Fit>, Pools)> = thread::scope(|scope| {
            let parts = split(&mut self.rows, threads);
            let handles: Vec<_> = parts.into_iter().map(|rows| scope.spawn(move || known.part(rows))).collect();
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        drop(std::mem::take(&mut self.rows));
        let (mut single, mut pools) = (Vec::new(), Pools::new());
        for (fits, more) in parts {
            if single.is_empty() {
                single = fits;
            } else {
                single.extend(fits);
            }
            for (class, times) in more {
                pools.entry(class).or_default().extend(times);
            }
        }
        let mut classes = classes(pools, confidence);
        spreads(&mut classes, &single);
        let fans = rates(&roots, &self.fans, &single, confidence);
        Fits { classes, single, fans, ignored: self.ignored }
    }

    /// Numbers the fans by key, so that what is sorted by number is sorted by key.
    fn order_fans(&mut self) {
        let mut order: Vec<usize> = (0..self.fans.len()).collect();
        order.sort_unstable_by(|&a, &b| self.fans[a].0.cmp(&self.fans[b].0));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        for row in &mut self.rows {
            if let Kind::FanIn | Kind::FanOut = row.code.kind() {
                row.code = Code::new(row.code.kind(), place[row.code.a()], 0, 0).unwrap_or(row.code);
            }
        }
        for row in &mut self.roots {
            row.fan = place[row.fan];
        }
        self.fans.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    }

    /// The roots' times, each repeat once, sorted by fan and size; they join the rows with all the bytes that the root moved.
    fn take_roots(&mut self) -> Vec<RootRow> {
        let mut roots = std::mem::take(&mut self.roots);
        roots.sort_unstable_by_key(|row| (row.fan, row.bytes, row.repeat));
        roots.dedup_by_key(|row| (row.fan, row.bytes, row.repeat));
        for row in &roots {
            let FanKey { fan, peers, .. } = &self.fans[row.fan].0;
            if let Some(code) = Code::new(fan.root_kind(), row.fan, 0, 0) {
                self.rows.push(Row { code, bytes: row.bytes * peers.len() as u64, seconds: row.seconds });
            }
        }
        roots
    }
}

/// Parts of about equal length, in order of their codes, none of which shares a code with another; each still to be sorted.
fn split(rows: &mut [Row], parts: usize) -> Vec<&mut [Row]> {
    if parts < 2 || rows.is_empty() {
        return vec![rows];
    }
    let mut cut = rows.len() * (parts / 2) / parts;
    let pivot = rows.select_nth_unstable_by_key(cut, |row| row.code).1.code;
    // Rows of the pivot's code may lie on both sides; they go to the right.
    for index in (0..cut).rev() {
        if rows[index].code == pivot {
            cut -= 1;
            rows.swap(index, cut);
        }
    }
    let (left, right) = rows.split_at_mut(cut);
    let mut found = split(left, parts / 2);
    found.extend(split(right, parts - parts / 2));
    found
}

/// What the rows' numbers stand for.
#[derive(Clone, Copy)]
struct Known<'a> {
    paths: &'a [PathClass],
    fans: &'a [(FanKey, Option<PathClass>)],
    confidence: Option<&'a Confidence>,
}

impl Known<'_> {
    /// Fits of the rows' own keys, and the times that their classes share.
    fn part(self, rows: &mut [Row]) -> (Vec<Fit>, Pools) {
        rows.sort_unstable_by_key(|row| (row.code, row.bytes));
        let mut fits = Vec::new();
        let mut pools = Pools::new();
        let (mut points, mut times) = (Vec::new(), Vec::new());
        for own in rows.chunk_by(|a, b| a.code == b.code) {
            let code = own[0].code;
            let class = self.class(code);
            points.clear();
            for size in own.chunk_by(|a, b| a.bytes == b.bytes) {
                times.clear();
                times.extend(size.iter().map(|row| row.seconds));
                if let Some(class) = class {
                    pools.entry((class, size[0].bytes)).or_default().extend_from_slice(&times);
                }
                points.push(Point::of(size[0].bytes, &mut times));
            }
            if let Some(key) = self.key(code)
                && let Ok(fit) = Fit::of(code.kind(), key, class.map(|class| class.path), &mut points, self.confidence)
            {
                fits.push(fit);
            }
        }
        (fits, pools)
    }

    /// `None` for a relay, which has no times but those of its class.
    fn key(self, code: Code) -> Option<Key> {
        Some(match code.kind() {
            Kind::Local | Kind::HostToDevice | Kind::DeviceToHost => Key::Rank { rank: code.a() },
            Kind::Peer | Kind::Duplex => Key::Pair { from: code.a(), to: code.b() },
            Kind::FanOut | Kind::FanIn | Kind::Receive | Kind::Send => {
                let FanKey { root, peers, .. } = &self.fans[code.a()].0;
                Key::Fan { root: *root, peers: peers.clone() }
            }
            Kind::Relay => return None,
        })
    }

    /// `None` for a fan whose messages take different paths.
    fn class(self, code: Code) -> Option<Class> {
        let kind = code.kind();
        let alone = |path| Class { kind, path, other: None, width: 0 };
        match kind {
            Kind::Local | Kind::HostToDevice | Kind::DeviceToHost | Kind::Peer | Kind::Duplex => Some(alone(self.paths[code.path()])),
            Kind::FanOut | Kind::FanIn | Kind::Receive | Kind::Send => {
                let (fan, path) = &self.fans[code.a()];
                path.map(|path| Class { width: fan.peers.len(), ..alone(path) })
            }
            Kind::Relay => Some(Class { other: Some(self.paths[code.b()]), ..alone(self.paths[code.a()]) }),
        }
    }
}

fn classes(pools: Pools, confidence: Option<&Confidence>) -> Vec<Fit> {
    let mut pools: Vec<((Class, u64), Vec<f64>)> = pools.into_iter().collect();
    pools.sort_unstable_by_key(|(class, _)| *class);
    let fit = |sizes: &mut [((Class, u64), Vec<f64>)]| {
        let class = sizes[0].0.0;
        let mut points: Vec<Point> = sizes.iter_mut().map(|((_, bytes), times)| Point::of(*bytes, times)).collect();
        let path = class.other.is_none().then_some(class.path);
        Fit::of(class.kind, class.key(), path, &mut points, confidence).ok()
    };
    let mut fits: Vec<Fit> = pools.chunk_by_mut(|a, b| a.0.0 == b.0.0).filter_map(fit).collect();
    fits.sort_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key)));
    fits
}

/// Gives each class the spread of its members.
fn spreads(classes: &mut [Fit], single: &[Fit]) {
    for class in classes {
        let of_kind = {
            let begin = single.partition_point(|fit| fit.kind < class.kind);
            let end = single.partition_point(|fit| fit.kind <= class.kind);
            &single[begin..end]
        };
        let members = || {
            of_kind.iter().filter(|fit| match (&class.key, &fit.key) {
                (Key::FanClass { width, .. }, Key::Fan { peers, .. }) => fit.path == class.path && peers.len() == *width,
                (Key::Class { .. }, _) => fit.path == class.path,
                _ => false,
            })
        };
        let order = |a: &&Fit, b: &&Fit| a.line.bandwidth.total_cmp(&b.line.bandwidth);
        if let (Some(min), Some(max)) = (members().min_by(order), members().max_by(order)) {
            let mut all: Vec<f64> = members().map(|fit| fit.line.bandwidth).collect();
            class.spread = Some(Box::new(Spread {
                count: all.len(),
                min: min.line.bandwidth,
                min_key: min.key.clone(),
                median: median(&mut all),
                max: max.line.bandwidth,
                max_key: max.key.clone(),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_order_and_share_no_code() {
        let mut random = fastrand::Rng::with_seed(1);
        for (len, ranks, parts) in [(0, 1, 4), (1, 1, 4), (50, 1, 3), (1000, 7, 4), (1000, 900, 5), (1000, 2, 8)] {
            let row = |_| Row { code: Code::new(Kind::Peer, random.usize(..ranks), 0, 0).unwrap(), bytes: 8, seconds: 1.0 };
            let mut rows: Vec<Row> = (0..len).map(row).collect();
            let found = split(&mut rows, parts);
            assert!(found.len() <= parts && found.iter().map(|part| part.len()).sum::<usize>() == len);
            let ends: Vec<(Code, Code)> = found
                .iter()
                .filter_map(|part| Some((part.iter().map(|row| row.code).min()?, part.iter().map(|row| row.code).max()?)))
                .collect();
            assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "{len} {ranks} {parts}");
        }
        // As many codes as these are cut about evenly.
        let mut rows: Vec<Row> =
            (0..1000).rev().map(|rank| Row { code: Code::new(Kind::Peer, rank, 0, 0).unwrap(), bytes: 8, seconds: 1.0 }).collect();
        assert_eq!(split(&mut rows, 4).iter().map(|part| part.len()).collect::<Vec<_>>(), [250; 4]);
    }
}
