//! Buffers as text, for snapshots.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::Buffer;

/// The characters alone.
pub(crate) fn text(buffer: &Buffer) -> String {
    let row = |y| (buffer.area.left()..buffer.area.right()).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (buffer.area.top()..buffer.area.bottom()).map(row).collect::<Vec<_>>().join("\n")
}

/// The characters, then a letter for the style of each cell, then what the letters mean.
pub(crate) fn both(buffer: &Buffer) -> String {
    let mut letters = BTreeMap::new();
    let mut out = text(buffer);
    out.push_str("\n\n");
    for y in buffer.area.top()..buffer.area.bottom() {
        for x in buffer.area.left()..buffer.area.right() {
            let cell = &buffer[(x, y)];
            let style = format!("{} on {} {}", cell.fg, cell.bg, format!("{:?}", cell.modifier).trim_start_matches("NONE"));
            let next = letters.len() as u32;
            let letter = *letters.entry(style).or_insert_with(|| char::from_u32(if next < 26 { 97 + next } else { 0x100 + next }).unwrap());
            out.push(letter);
        }
        out.push('\n');
    }
    let mut key: Vec<_> = letters.into_iter().map(|(style, letter)| (letter, style)).collect();
    key.sort();
    for (letter, style) in key {
        writeln!(out, "{letter}  {}", style.trim_end()).unwrap();
    }
    out
}
