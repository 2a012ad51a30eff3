/// Red, green and blue, 0 to 255 each (sRGB).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The values of the 16 colours as xterm has them; a terminal may have its own.
const SIXTEEN: [Rgb; 16] = [
    Rgb(0, 0, 0),
    Rgb(205, 0, 0),
    Rgb(0, 205, 0),
    Rgb(205, 205, 0),
    Rgb(0, 0, 238),
    Rgb(205, 0, 205),
    Rgb(0, 205, 205),
    Rgb(229, 229, 229),
    Rgb(127, 127, 127),
    Rgb(255, 0, 0),
    Rgb(0, 255, 0),
    Rgb(255, 255, 0),
    Rgb(92, 92, 255),
    Rgb(255, 0, 255),
    Rgb(0, 255, 255),
    Rgb(255, 255, 255),
];
/// Steps of a channel in xterm's 6 x 6 x 6 cube.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

impl Rgb {
    /// `share` of the way to another colour.
    #[must_use]
    pub fn blend(self, other: Self, share: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    /// Lightness, green-red and blue-yellow (Ottosson's `OKLab`, 2020).
    #[allow(clippy::many_single_char_names, reason = "the names that the colour spaces give")]
    pub fn oklab(self) -> [f64; 3] {
        let [r, g, b] = self.linear();
        let l = 0.412_221_470_8_f64.mul_add(r, 0.536_332_536_3_f64.mul_add(g, 0.051_445_992_9 * b)).cbrt();
        let m = 0.211_903_498_2_f64.mul_add(r, 0.680_699_545_1_f64.mul_add(g, 0.107_396_956_6 * b)).cbrt();
        let s = 0.088_302_461_9_f64.mul_add(r, 0.281_718_837_6_f64.mul_add(g, 0.629_978_700_5 * b)).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    /// Perceived difference to another colour: distance in `OKLab`.
    pub fn distance(self, other: Self) -> f64 {
        let (a, b) = (self.oklab(), other.oklab());
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    fn linear(self) -> [f64; 3] {
        [self.0, self.1, self.2].map(|channel| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Relative luminance (WCAG 2).
    fn luminance(self) -> f64 {
        let [r, g, b] = self.linear();
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }
}

/// Contrast of two colours, 1 to 21 (WCAG 2); text wants 4.5.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (a.luminance(), b.luminance());
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The darkest or the lightest text, whichever reads better on a ground.
pub fn text_on(ground: Rgb) -> Rgb {
    let (dark, light) = (Rgb(0, 0, 0), Rgb(255, 255, 255));
    if contrast(dark, ground) >= contrast(light, ground) { dark } else { light }
}

/// The colour of a number in xterm's palette.
pub fn xterm(index: u8) -> Rgb {
    match index {
        0..=15 => SIXTEEN[usize::from(index)],
        16..=231 => {
            let at = usize::from(index - 16);
            Rgb(CUBE[at / 36], CUBE[at / 6 % 6], CUBE[at % 6])
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}

/// The number in xterm's palette that comes nearest, never one of the first 16, which users redefine.
pub fn nearest_index(color: Rgb) -> u8 {
    let nearest = |channel: u8| (0..6_u8).min_by_key(|&step| CUBE[usize::from(step)].abs_diff(channel)).unwrap_or(0);
    let cube = 16 + 36 * nearest(color.0) + 6 * nearest(color.1) + nearest(color.2);
    let mean = (u16::from(color.0) + u16::from(color.1) + u16::from(color.2)) / 3;
    let grey = 232 + (mean.saturating_sub(3) / 10).min(23) as u8;
    if xterm(grey).distance(color) < xterm(cube).distance(color) { grey } else { cube }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palette::{IntoColor, Oklab, Srgb};

    #[test]
    fn oklab_agrees_with_palette() {
        for color in [Rgb(0, 0, 0), Rgb(255, 255, 255), Rgb(12, 200, 99), Rgb(253, 231, 37)] {
            let theirs: Oklab<f64> = Srgb::new(color.0, color.1, color.2).into_format::<f64>().into_color();
            let ours = color.oklab();
            for (a, b) in ours.iter().zip([theirs.l, theirs.a, theirs.b]) {
                assert!((a - b).abs() < 1e-4, "{color:?} {ours:?} {theirs:?}");
            }
        }
    }

    #[test]
    fn palette_numbers_find_themselves() {
        for index in 16..=255 {
            assert_eq!(xterm(nearest_index(xterm(index))), xterm(index), "{index}");
        }
    }

    #[test]
    fn text_reads_on_every_ground() {
        for (r, g, b) in (0..=255).step_by(15).flat_map(|r| (0..=255).step_by(15).map(move |g| (r, g, 255 - r / 2))) {
            let ground = Rgb(r, g, b);
            assert!(contrast(text_on(ground), ground) >= 4.5, "{ground:?}");
        }
    }
}
