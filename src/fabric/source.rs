//! A fabric file's text and what is wrong with it: line, field, value and what was expected.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::units::plain;

/// A fabric file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}, line {line}{}: {problem}", if field.is_empty() { String::new() } else { format!(", {field}") })]
pub struct FabricError {
    /// the file, as it was named
    pub name: String,
    /// from 1
    pub line: usize,
    /// such as `path.intra_node.rate` or `pair[2].from`; empty when the text is not TOML
    pub field: String,
    /// the value and what was expected instead
    pub problem: String,
}

/// A file's name and text.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// `problem` at `span` of the text.
    pub fn error(&self, span: &Range<usize>, problem: impl Into<String>) -> FabricError {
        let start = span.start.min(self.text.len());
        let line = self.text.get(..start).unwrap_or(self.text).matches('\n').count() + 1;
        let mut field = String::new();
        if let Ok(document) = DeTable::parse(self.text) {
            walk(document.get_ref(), "", start, &mut field);
        }
        FabricError { name: plain(self.name), line, field: plain(&field), problem: plain(&problem.into()) }
    }

    /// What `value`, found at `span`, should have been.
    pub fn refuse(&self, span: &Range<usize>, value: impl std::fmt::Display, expected: &str) -> FabricError {
        self.error(span, format!("{value} is not {expected}"))
    }

    /// What the TOML parser said.
    pub fn syntax(&self, error: &toml::de::Error) -> FabricError {
        // An error of the whole document, such as a missing table, has no place of its own.
        self.error(&error.span().unwrap_or(0..0), error.message().replace('\n', " "))
    }
}

/// The path of the deepest key whose own text or value holds `at`.
fn walk(table: &DeTable<'_>, prefix: &str, at: usize, found: &mut String) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        // The end of a value counts: text that breaks off there is its fault.
        if key.span().contains(&at) || (value.span().start..=value.span().end).contains(&at) {
            found.clone_from(&path);
        }
        descend(value.get_ref(), &path, at, found);
    }
}

fn descend(value: &DeValue<'_>, path: &str, at: usize, found: &mut String) {
    match value {
        DeValue::Table(table) => walk(table, path, at, found),
        DeValue::Array(array) => {
            for (number, item) in array.iter().enumerate() {
                let path = format!("{path}[{number}]");
                if item.span().contains(&at) {
                    found.clone_from(&path);
                }
                descend(item.get_ref(), &path, at, found);
            }
        }
        _ => {}
    }
}
