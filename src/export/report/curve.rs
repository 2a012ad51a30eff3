//! Size curves of path classes as pictures: what was measured, and the line that was fitted.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::diagnose::{Measured, Pairs};
use crate::fit::{Fit, Fits, Key, Kind, median};
use crate::topology::PathClass;
use crate::units::{format_seconds, format_size};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 220.0;
/// Room for the labels: left, right, top, bottom.
const ROOM: (f64, f64, f64, f64) = (56.0, 10.0, 8.0, 24.0);

/// Of all pairs of a class at one size: the fastest, the median and the slowest, seconds.
type Band = BTreeMap<u64, (f64, f64, f64)>;

/// One picture a class that has a fit and two sizes: its name, and an SVG that is styled by the page.
pub fn curves(measured: &Measured, fits: &Fits) -> Vec<(String, String)> {
    let mut made = Vec::new();
    for (kind, pairs) in [(Kind::Peer, &measured.peer), (Kind::Duplex, &measured.duplex)] {
        for (path, band) in bands(measured, pairs) {
            if let Some(fit) = fits.get(kind, &Key::Class { path }).filter(|_| band.len() > 1) {
                made.push((format!("{}, {}", kind.name(), path.name()), draw(&band, fit)));
            }
        }
    }
    made
}

fn bands(measured: &Measured, pairs: &Pairs) -> BTreeMap<PathClass, Band> {
    let mut all: BTreeMap<PathClass, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for pair in pairs.iter() {
        let own = all.entry(measured.class(pair).path).or_default();
        for size in pairs.sizes(pair.from as usize, pair.to as usize).iter().filter(|size| size.seconds > 0.0 && size.seconds.is_finite()) {
            own.entry(size.bytes).or_default().push(size.seconds);
        }
    }
    let band = |mut times: Vec<f64>| {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        (least, median(&mut times), most)
    };
    all.into_iter().map(|(path, sizes)| (path, sizes.into_iter().map(|(bytes, times)| (bytes, band(times))).collect())).collect()
}

/// Time over size, both logarithmic.
fn draw(band: &Band, fit: &Fit) -> String {
    let (first, last) = (band.keys().next().copied().unwrap_or(1), band.keys().last().copied().unwrap_or(1));
    let low = band.values().map(|own| own.0).fold(f64::INFINITY, f64::min).ln();
    let high = band.values().map(|own| own.2).fold(0.0, f64::max).ln();
    let (from, to) = ((first as f64).ln(), (last as f64).ln());
    let (low, high) = (low - 0.1, high + 0.1);
    let x = |bytes: f64| ROOM.0 + (bytes.ln() - from) / (to - from) * (WIDTH - ROOM.0 - ROOM.1);
    let y = |seconds: f64| ROOM.2 + (high - seconds.ln().clamp(low, high)) / (high - low) * (HEIGHT - ROOM.2 - ROOM.3);
    let mut out = format!("<svg class=\"curve\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
    let _ = writeln!(out, "<title>time of a message by its size, and the fitted line</title>");
    for decade in (low / std::f64::consts::LN_10).ceil() as i32..=(high / std::f64::consts::LN_10).floor() as i32 {
        let at = y(10_f64.powi(decade));
        let _ = writeln!(out, "<path class=\"rule\" d=\"M{:.1} {at:.1}H{:.1}\"/>", ROOM.0, WIDTH - ROOM.1);
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", ROOM.0 - 6.0, at + 4.0, power(decade));
    }
    // As many names of sizes as have room.
    let step = band.len().div_ceil(5).max(1);
    for (at, &bytes) in band.keys().rev().enumerate().filter(|(at, _)| at % step == 0) {
        let anchor = if at == 0 { "end" } else { "middle" };
        let place = x(bytes as f64);
        let _ = writeln!(out, "<text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>", HEIGHT - 6.0, format_size(bytes));
    }
    let mut area = String::new();
    let forth = band.iter().map(|(&bytes, own)| (bytes, own.2));
    for (bytes, seconds) in forth.chain(band.iter().rev().map(|(&bytes, own)| (bytes, own.0))) {
        let _ = write!(area, "{:.1},{:.1} ", x(bytes as f64), y(seconds));
    }
    let _ = writeln!(out, "<polygon class=\"band\" points=\"{}\"/>", area.trim_end());
    let lines = if fit.segments.is_empty() { vec![fit.line] } else { fit.segments.iter().map(|segment| segment.line).collect() };
    for line in lines {
        let mut points = String::new();
        for step in 0..=32 {
            let (small, large) = ((line.smallest as f64).ln(), (line.largest as f64).ln());
            let bytes = f64::from(step).mul_add((large - small) / 32.0, small).exp();
            let _ = write!(points, "{:.1},{:.1} ", x(bytes), y(line.seconds(bytes as u64)));
        }
        let _ = writeln!(out, "<polyline class=\"line\" points=\"{}\"/>", points.trim_end());
    }
    for (&bytes, own) in band {
        let _ = writeln!(out, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(bytes as f64), y(own.1));
    }
    out.push_str("</svg>\n");
    out
}

/// `10 µs` and the like, without digits that say nothing.
fn power(decade: i32) -> String {
    let told = format_seconds(10_f64.powi(decade) * 1.000_001);
    match told.split_once(' ') {
        Some((number, unit)) => format!("{:.0} {unit}", number.parse::<f64>().unwrap_or(0.0)),
        None => told,
    }
}
