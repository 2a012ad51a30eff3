//! Flow lists as CSV.

use super::flows::{self, Name, Row};
use crate::plan::Traffic;
use crate::plan::files::FileError;
use crate::sweep::{fields, lines};
use crate::units::{parse_size, plain};

const COLUMNS: [&str; 7] = ["id", "step", "src", "dst", "bytes", "messages", "after"];

/// True if the first line names the columns of a flow list, at least one of those that it must have.
pub(super) fn is_one(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, head)| names(head).iter().any(|name| ["src", "dst", "bytes"].contains(&&name[..])))
}

/// What else parts the columns of what would be a flow list: Excel's habits.
pub(super) fn other_separator(text: &str) -> Option<&'static str> {
    let (_, head) = lines(text).next()?;
    let parts = |separator: char| {
        let names: Vec<String> = head.split(separator).map(|name| name.trim().to_lowercase()).collect();
        ["src", "dst", "bytes"].iter().all(|wanted| names.iter().any(|name| name == wanted))
    };
    if parts(';') {
        Some("semicolons")
    } else if parts('\t') {
        Some("tabs")
    } else {
        None
    }
}

fn names(head: &str) -> Vec<String> {
    fields(head).iter().map(|name| name.trim().to_lowercase()).collect()
}

/// Read a flow list.
pub(super) fn read(text: &str, name: &str) -> Result<Traffic, FileError> {
    let mut lines = lines(text);
    let Some((first, head)) = lines.next() else { return Err(FileError::new("", "an empty file")) };
    let head = names(head);
    let place = format!("line {first}");
    if let Some(other) = head.iter().find(|name| !COLUMNS.contains(&&name[..])) {
        return Err(FileError::new(place, format!("column {:?}: expected {}", plain(other), COLUMNS.join(", "))));
    }
    for (at, name) in head.iter().enumerate() {
        if head[..at].contains(name) {
            return Err(FileError::new(place, format!("column {name} stands twice")));
        }
    }
    let column = COLUMNS.map(|name| head.iter().position(|other| other == name));
    let [id, step, src, dst, bytes, messages, after] = column;
    let (Some(src), Some(dst), Some(bytes)) = (src, dst, bytes) else {
        return Err(FileError::new(place, format!("columns {}: expected src, dst and bytes among them", plain(&head.join(", ")))));
    };
    let mut rows = Vec::new();
    for (number, line) in lines {
        let place = format!("line {number}");
        let fields = fields(line);
        if fields.len() != head.len() {
            let what = format!("{} fields: expected {}, as many as columns: is the file complete?", fields.len(), head.len());
            return Err(FileError::new(place, what));
        }
        let field = |column: usize| fields[column].trim();
        let told = |column: Option<usize>| column.map(field).filter(|text| !text.is_empty());
        let wrong = |column: &str, text: &str, expected: &str| {
            let text: String = text.chars().take(40).collect();
            FileError::new(format!("{place}, {column}"), format!("{text:?}: expected {expected}"))
        };
        let rank = |column: &str, at: usize| field(at).parse().map_err(|_| wrong(column, field(at), "a rank, a whole number"));
        let named = |text: &str| Name(plain(text));
        let waits = |text: &str| text.split([' ', ';']).filter(|name| !name.is_empty() && *name != "-").map(named).collect();
        let row = Row {
            id: told(id).map(named),
            step: told(step).map(named),
            src: rank("src", src)?,
            dst: rank("dst", dst)?,
            bytes: parse_size(field(bytes)).map_err(|_| wrong("bytes", field(bytes), "a whole number or a size such as 4MiB"))?,
            messages: match told(messages) {
                None => 1,
                Some(text) => text.parse().map_err(|_| wrong("messages", text, "a whole number"))?,
            },
            after: told(after).map(waits),
        };
        rows.push((place.clone(), row));
    }
    flows::traffic(name, None, rows)
}
