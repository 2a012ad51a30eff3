//! The fabrics that come with the program.

use super::{Fabric, FabricError};

/// Name and text, from small to large.
const FILES: [(&str, &str); 10] = [
    ("laptop", include_str!("shipped/laptop.toml")),
    ("b70-8", include_str!("shipped/b70-8.toml")),
    ("l20-8", include_str!("shipped/l20-8.toml")),
    ("h20-8", include_str!("shipped/h20-8.toml")),
    ("h20-2x8", include_str!("shipped/h20-2x8.toml")),
    ("h20-2x8-windows", include_str!("shipped/h20-2x8-windows.toml")),
    ("h20-2x8-pr8966", include_str!("shipped/h20-2x8-pr8966.toml")),
    ("nvswitch-8", include_str!("shipped/nvswitch-8.toml")),
    ("nvswitch-32x8", include_str!("shipped/nvswitch-32x8.toml")),
    ("nvswitch-128x8", include_str!("shipped/nvswitch-128x8.toml")),
];

impl Fabric {
    /// Names of the fabrics that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|&(name, _)| name)
    }

    /// The text of a fabric that comes with the program: a pattern for one's own.
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        FILES.iter().find(|&&(known, _)| known == name).map(|&(_, text)| text)
    }

    /// A fabric that comes with the program; `None` when none has that name.
    pub fn shipped(name: &str) -> Option<Result<Self, FabricError>> {
        Self::shipped_text(name).map(|text| Self::parse(text, name))
    }
}
