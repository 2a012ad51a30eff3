//! A value's place between 0 and 1 (or -1 and 1) -> a colour that any terminal can show. No I/O, no colour names.
//!
//! Sequential maps are cividis, which reads alike with and without colour vision deficiency (Nuñez et al., 2018);
//! diverging ones purple to orange around 0. Where colours are few, shade glyphs carry the amount.

mod color;
mod ladder;
mod state;

pub use color::{Rgb, contrast, nearest_index, text_on, xterm};
pub use ladder::{Map, Ramp, Shade};
pub use state::{State, state_rgb};

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// no colour at all: glyphs and modifiers
    None,
    /// the 16 colours of every terminal
    Ansi16,
    /// the 256 colours of xterm
    Ansi256,
    /// 24 bits
    TrueColor,
}

/// One colour as a terminal is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Paint {
    Rgb(Rgb),
    /// number in the xterm palette; below 16 the user's own sixteen
    Index(u8),
    /// the terminal's own colour
    Plain,
}
