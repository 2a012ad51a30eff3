//! The rows of the table: which, and in which order.

use super::{Book, CLASS, Column, Id, NONE, Row};
use crate::fit::Kind;

/// What a person wants to see.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub column: Column,
    pub descending: bool,
    pub filter: &'a str,
}

/// Rows in order: numbers of rows, those of classes marked.
#[derive(Debug, Clone)]
pub struct Order {
    pub ids: Vec<u32>,
    /// version of the book that it is of
    pub version: u64,
    column: Column,
    descending: bool,
    filter: String,
}

impl Default for Order {
    fn default() -> Self {
        // No book has counted so far.
        Self { ids: Vec::new(), version: u64::MAX, column: Column::Kind, descending: false, filter: String::new() }
    }
}

impl Order {
    /// True if it is what is asked for, though perhaps not of the newest rows.
    pub fn answers(&self, asked: &Asked<'_>) -> bool {
        self.version != u64::MAX && (self.column, self.descending, self.filter.as_str()) == (asked.column, asked.descending, asked.filter)
    }
}

/// Put the rows of a book into order; some 10 ms for a million as they are, 50 ms by a column.
pub fn make(book: &Book, asked: &Asked<'_>) -> Order {
    let filter = Filter::of(asked.filter);
    let mut ids = natural(book);
    if book.gone > 0 || !filter.0.is_empty() {
        ids.retain(|&id| {
            let row = book.row(id);
            row.n > 0 && filter.takes(book, row)
        });
    }
    if asked.column == Column::Kind {
        if asked.descending {
            ids.reverse();
        }
    } else {
        // A number that sorts as the value does, and the place so far: whole numbers sort fastest.
        let mut keyed: Vec<u64> =
            ids.iter().enumerate().map(|(place, &id)| u64::from(key(book, book.row(id), asked)) << 32 | place as u64).collect();
        keyed.sort_unstable();
        ids = keyed.into_iter().map(|key| ids[(key & u64::from(u32::MAX)) as usize]).collect();
    }
    Order { ids, version: book.version, column: asked.column, descending: asked.descending, filter: asked.filter.to_owned() }
}

/// Classes, then single fits, each by kind and key.
fn natural(book: &Book) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..book.classes.len() as u32).map(|at| at | CLASS).collect();
    ids.sort_by_key(|&id| (book.row(id).kind, book.row(id).id));
    let mut fans: Vec<(&Kind, &crate::sweep::Group, u32)> = book.fan_rows.iter().map(|((kind, group), &row)| (kind, group, row)).collect();
    fans.sort_unstable_by(|a, b| (a.0, a.1.root, a.1.peers.len(), &a.1.peers).cmp(&(b.0, b.1.root, b.1.peers.len(), &b.1.peers)));
    ids.reserve(book.rows.len());
    // The kinds of pairs come before those of fans.
    ids.extend(book.pairs.iter().flatten().filter(|&&row| row != NONE));
    ids.extend(fans.into_iter().map(|(.., row)| row));
    ids
}

fn key(book: &Book, row: &Row, asked: &Asked<'_>) -> u32 {
    let key = match asked.column {
        Column::Kind => 0,
        Column::Key => {
            let (a, b) = match row.id {
                Id::Class(_) | Id::FanClass(..) | Id::Relay(..) => (0, 0),
                Id::Rank(rank) => (rank + 1, 0),
                Id::Pair(from, to) => (from + 1, to + 1),
                Id::Fan(number) => {
                    book.fans.get(number as usize).map_or((0, 0), |fan| (fan.root.unwrap_or(0) as u32 + 1, fan.peers.len() as u32))
                }
            };
            a.min(0xffff) << 16 | b.min(0xffff)
        }
        Column::Alpha => ordered(row.alpha),
        Column::Bandwidth => ordered(row.bandwidth),
        Column::Error => ordered(f64::from(row.error)),
        Column::N => row.n,
        Column::Breaks => u32::from(row.breaks) << 24 | (row.first_break.checked_ilog2().unwrap_or(0) << 16),
    };
    if asked.descending { !key } else { key }
}

/// Bits of a number that is not negative order as it does; what is no number comes last.
fn ordered(value: f64) -> u32 {
    if value.is_nan() { u32::MAX } else { (value.max(0.0) as f32).to_bits() }
}

/// What is typed to narrow the table down: words that must all fit.
struct Filter(Vec<Word>);

enum Word {
    /// a rank that takes part
    Rank(usize),
    /// a pair; an end left out is any
    Pair(Option<usize>, Option<usize>),
    /// part of a kind or a path class
    Text(String),
}

impl Filter {
    fn of(text: &str) -> Self {
        let word = |word: &str| {
            let end = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
            let pair = |(from, to): (&str, &str)| Some(Word::Pair(end(from)?, end(to)?));
            let pair = ["->", "→", ">"].into_iter().find_map(|arrow| word.split_once(arrow)).and_then(pair);
            let rank = || word.parse().ok().map(Word::Rank);
            pair.or_else(rank).unwrap_or_else(|| Word::Text(word.to_lowercase()))
        };
        Self(text.split_whitespace().map(word).collect())
    }

    fn takes(&self, book: &Book, row: &Row) -> bool {
        self.0.iter().all(|word| word.takes(book, row))
    }
}

impl Word {
    fn takes(&self, book: &Book, row: &Row) -> bool {
        match self {
            &Self::Rank(rank) => match row.id {
                Id::Rank(own) => own as usize == rank,
                Id::Pair(from, to) => from as usize == rank || to as usize == rank,
                Id::Fan(number) => {
                    book.fans.get(number as usize).is_some_and(|fan| fan.root == Some(rank) || fan.peers.binary_search(&rank).is_ok())
                }
                Id::Class(_) | Id::FanClass(..) | Id::Relay(..) => false,
            },
            &Self::Pair(from, to) => match row.id {
                Id::Pair(a, b) => from.is_none_or(|from| from == a as usize) && to.is_none_or(|to| to == b as usize),
                _ => false,
            },
            Self::Text(text) => {
                let path = |path: crate::topology::PathClass| path.name().contains(text.as_str());
                row.kind.name().contains(text.as_str())
                    || row.path.is_some_and(path)
                    || matches!(row.id, Id::Relay(receive, send) if path(receive) || path(send))
            }
        }
    }
}
