//! The screen: reads `session::Model`, sends `session::Command`. The only room that knows ratatui.

pub mod keys;
mod level;
pub mod picture;
pub mod theme;
pub mod widgets;

pub use level::level;

/// The name that takes the fewest edits to reach from what was typed (Levenshtein distance).
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.min_by_key(|name| {
        let name: Vec<char> = name.chars().collect();
        let mut row: Vec<usize> = (0..=name.len()).collect();
        for (i, a) in typed.chars().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, &b) in name.iter().enumerate() {
                let substitute = diagonal + usize::from(a != b);
                diagonal = row[j + 1];
                row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[name.len()]
    })
}
