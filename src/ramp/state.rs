use super::{Level, Paint, Rgb, nearest_index};

/// What a cell can be besides a number. Each has a colour outside every ramp, and a glyph where colours are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Missing,
    Waived,
    Timeout,
    Corrupt,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Waived, Self::Timeout, Self::Corrupt];

    /// The glyph that stands for it in a cell.
    pub const fn glyph(self) -> char {
        match self {
            Self::Missing => '·',
            Self::Waived => '×',
            Self::Timeout => '!',
            Self::Corrupt => '≠',
        }
    }

    /// As the legend says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "not measured",
            Self::Waived => "waived",
            Self::Timeout => "timeout",
            Self::Corrupt => "corrupt",
        }
    }

    /// Its colour; `None` where only the glyph tells it.
    pub fn paint(self, level: Level, dark: bool) -> Paint {
        match level {
            Level::TrueColor => Paint::Rgb(state_rgb(self, dark)),
            Level::Ansi256 => Paint::Index(nearest_index(state_rgb(self, dark))),
            Level::Ansi16 => match self {
                Self::Missing | Self::Waived => Paint::Index(8),
                Self::Timeout => Paint::Index(9),
                Self::Corrupt => Paint::Index(13),
            },
            Level::None => Paint::Plain,
        }
    }
}

/// The colour of a state on a dark or a light ground.
pub fn state_rgb(state: State, dark: bool) -> Rgb {
    match (state, dark) {
        (State::Missing, true) => Rgb(38, 38, 38),
        (State::Missing, false) => Rgb(165, 185, 185),
        (State::Waived, true) => Rgb(0, 95, 95),
        (State::Waived, false) => Rgb(135, 215, 215),
        (State::Timeout, _) => Rgb(255, 0, 0),
        (State::Corrupt, _) => Rgb(255, 0, 255),
    }
}
