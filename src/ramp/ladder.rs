use std::sync::OnceLock;

use super::{Level, Paint, Rgb, nearest_index, xterm};

/// Least growth of `OKLab` lightness from one entry of the 256-colour ladder to the next.
const LEAST_STEP: f64 = 0.035;
/// Numbers among the 16 colours: one hue for amounts, two for the sides of 0.
const SEQUENTIAL_16: u8 = 6;
const SIDES_16: (u8, u8) = (5, 3);
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Amounts below 0 where there is no colour to tell the side.
const BARS: [char; 5] = [' ', '╌', '─', '═', '≡'];

/// The kind of a colour map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Map {
    /// amounts: 0 dark to 1 light
    Sequential,
    /// -1 purple over 0 light to 1 orange: away from 0 is dark
    Diverging,
}

/// How one value looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shade {
    /// colour of the cell (or of its glyph, where there is one)
    pub paint: Paint,
    /// the shade that carries the amount where colours are few
    pub glyph: Option<char>,
}

impl Shade {
    /// The colour in numbers, as far as the palette's are known; `None` for the terminal's own.
    pub fn rgb(&self) -> Option<Rgb> {
        match self.paint {
            Paint::Rgb(rgb) => Some(rgb),
            Paint::Index(index) => Some(xterm(index)),
            Paint::Plain => None,
        }
    }
}

/// A colour map as far as a terminal can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    map: Map,
    level: Level,
}

impl Ramp {
    /// A map at a level.
    pub fn new(map: Map, level: Level) -> Self {
        Self { map, level }
    }

    /// True if a cell's whole ground carries the value, false if a glyph does.
    pub fn fills(self) -> bool {
        self.level >= Level::Ansi256
    }

    /// How a position looks: 0 to 1, or -1 to 1 for a diverging map; clipped.
    pub fn shade(self, position: f64) -> Shade {
        let position = match self.map {
            Map::Sequential => position.clamp(0.0, 1.0),
            Map::Diverging => position.clamp(-1.0, 1.0),
        };
        match self.level {
            Level::TrueColor => Shade { paint: Paint::Rgb(table(self.map)[step(self.map, position, 256)]), glyph: None },
            Level::Ansi256 => {
                let ladder = ladder(self.map);
                Shade { paint: Paint::Index(ladder[step(self.map, position, ladder.len())]), glyph: None }
            }
            Level::Ansi16 | Level::None => {
                let colored = self.level == Level::Ansi16;
                let at = step(Map::Sequential, position.abs(), SHADES.len());
                let glyph = if position < 0.0 && !colored { BARS[at] } else { SHADES[at] };
                let index = match self.map {
                    Map::Sequential => SEQUENTIAL_16,
                    Map::Diverging if position < 0.0 => SIDES_16.0,
                    Map::Diverging => SIDES_16.1,
                };
                Shade { paint: if colored { Paint::Index(index) } else { Paint::Plain }, glyph: Some(glyph) }
            }
        }
    }

    /// The map in `steps` samples from its low to its high end.
    pub fn legend(self, steps: usize) -> Vec<Shade> {
        let last = steps.saturating_sub(1).max(1) as f64;
        (0..steps)
            .map(|at| {
                let share = at as f64 / last;
                self.shade(if self.map == Map::Diverging { share * 2.0 - 1.0 } else { share })
            })
            .collect()
    }
}

/// Which of `n` entries a position means.
fn step(map: Map, position: f64, n: usize) -> usize {
    let share = if map == Map::Diverging { f64::midpoint(position, 1.0) } else { position };
    ((share * n as f64) as usize).min(n - 1)
}

/// The map in 256 steps.
fn table(map: Map) -> &'static [Rgb; 256] {
    static TABLES: [OnceLock<[Rgb; 256]>; 2] = [OnceLock::new(), OnceLock::new()];
    TABLES[map as usize].get_or_init(|| {
        std::array::from_fn(|at| {
            let gradient = if map == Map::Sequential { colorous::CIVIDIS } else { colorous::PURPLE_ORANGE };
            let color = gradient.eval_rational(at, 256);
            Rgb(color.r, color.g, color.b)
        })
    })
}

/// The map in xterm's colours: an entry stands only if it is lighter than the one before by a step that can be seen.
/// A diverging map has two such ladders, from either end to the middle.
fn ladder(map: Map) -> &'static [u8] {
    static LADDERS: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    LADDERS[map as usize].get_or_init(|| {
        let table = table(map);
        match map {
            Map::Sequential => climb(table.iter()),
            Map::Diverging => {
                let (mut left, mut right) = (climb(table[..128].iter()), climb(table[128..].iter().rev()));
                // The same number of steps on both sides, so that 0 stays in the middle.
                let steps = left.len().min(right.len());
                left = thin(&left, steps);
                right = thin(&right, steps);
                left.extend(right.into_iter().rev());
                left
            }
        }
    })
}

fn climb<'a>(colors: impl Iterator<Item = &'a Rgb>) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::new();
    let mut lightest = f64::NEG_INFINITY;
    for &color in colors {
        let index = nearest_index(color);
        let [lightness, ..] = xterm(index).oklab();
        if lightness >= lightest + LEAST_STEP {
            kept.push(index);
            lightest = lightness;
        }
    }
    kept
}

/// `n` entries spread over a ladder, both ends kept.
fn thin(entries: &[u8], n: usize) -> Vec<u8> {
    let last = entries.len().saturating_sub(1);
    (0..n).map(|at| entries[if n > 1 { at * last / (n - 1) } else { last }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palette::{IntoColor, Oklab, Srgb};

    use crate::ramp::{State, contrast, state_rgb, text_on};

    fn lightness(index: u8) -> f64 {
        let Rgb(r, g, b) = xterm(index);
        let lab: Oklab<f64> = Srgb::new(r, g, b).into_format::<f64>().into_color();
        lab.l
    }

    #[test]
    fn the_256_ladder_gets_lighter_at_every_step() {
        let amounts = ladder(Map::Sequential);
        assert!((10..=14).contains(&amounts.len()), "{} {amounts:?}", amounts.len());
        assert!(amounts.windows(2).all(|pair| lightness(pair[1]) >= lightness(pair[0]) + LEAST_STEP - 1e-4));
        let sides = ladder(Map::Diverging);
        let half = sides.len() / 2;
        assert!(half >= 5 && sides.len().is_multiple_of(2), "{sides:?}");
        assert!(sides[..half].windows(2).all(|pair| lightness(pair[1]) > lightness(pair[0])), "{sides:?}");
        assert!(sides[half..].windows(2).all(|pair| lightness(pair[1]) < lightness(pair[0])), "{sides:?}");
    }

    #[test]
    fn the_sign_of_an_asymmetry_is_seen_at_every_level() {
        for level in [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None] {
            let ramp = Ramp::new(Map::Diverging, level);
            assert_ne!(ramp.shade(-0.9), ramp.shade(0.9), "{level:?}");
        }
        let Some(Rgb(r, _, b)) = Ramp::new(Map::Diverging, Level::TrueColor).shade(-0.8).rgb() else { panic!() };
        assert!(b > r, "negative is purple");
        let Some(Rgb(r, _, b)) = Ramp::new(Map::Diverging, Level::TrueColor).shade(0.8).rgb() else { panic!() };
        assert!(r > b, "positive is orange");
    }

    #[test]
    fn few_colours_have_five_shades_of_one_hue() {
        for level in [Level::Ansi16, Level::None] {
            let shades = Ramp::new(Map::Sequential, level).legend(50);
            let mut glyphs: Vec<char> = shades.iter().filter_map(|shade| shade.glyph).collect();
            glyphs.dedup();
            assert_eq!(glyphs, SHADES, "{level:?}");
            assert!(shades.iter().all(|shade| shade.paint == shades[0].paint));
        }
    }

    #[test]
    fn digits_read_on_every_colour() {
        for map in [Map::Sequential, Map::Diverging] {
            for level in [Level::TrueColor, Level::Ansi256] {
                for shade in Ramp::new(map, level).legend(256) {
                    let ground = shade.rgb().unwrap();
                    assert!(contrast(text_on(ground), ground) >= 4.5, "{ground:?}");
                }
            }
        }
    }

    #[test]
    fn states_look_like_no_value() {
        for state in State::ALL {
            for dark in [true, false] {
                let own = state_rgb(state, dark);
                for map in [Map::Sequential, Map::Diverging] {
                    for level in [Level::TrueColor, Level::Ansi256] {
                        let nearest = Ramp::new(map, level)
                            .legend(256)
                            .iter()
                            .filter_map(Shade::rgb)
                            .map(|rgb| rgb.distance(own))
                            .fold(9.0, f64::min);
                        assert!(nearest > 0.05, "{state:?} dark {dark} {map:?} {level:?}: {nearest}");
                    }
                }
            }
        }
    }
}
