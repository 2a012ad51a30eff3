//! Files that say who holds what.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Kind, PlansError, contents, mooncake, named};
use crate::plan::files::FileError;
use crate::plan::map::{self, Maps};

/// Who holds what, with what else a file tells of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    pub maps: Maps,
    /// bytes of an element by parameter, where the file tells
    pub element_sizes: BTreeMap<String, u64>,
    /// what the locations 0, 1, ... are called in the file; empty where it names them by number
    pub locations: Vec<String>,
}

const LAYOUTS: &str = "who holds what: an affine map (params), or a Mooncake weight placement (topology, tensors, parts)";

/// Read a layout from a text: an affine map as the reference stores it, or a Mooncake weight placement.
pub fn layout(text: &str) -> Result<Layout, FileError> {
    match Kind::of(text, LAYOUTS)? {
        Kind::Mooncake => mooncake::read(text),
        Kind::AffineMap => map::read(text).map(|maps| Layout { maps, ..Layout::default() }).map_err(|error| {
            let (place, what) = error.parts();
            FileError::new(place.to_string(), what)
        }),
        other => Err(FileError::new("", format!("{}: expected {LAYOUTS}", other.name()))),
    }
}

/// Read a layout from a file.
pub fn read_layout(path: &Path) -> Result<Layout, PlansError> {
    named(path, contents(path).and_then(|contents| layout(&contents)))
}
