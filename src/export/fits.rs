use std::io::Write;
use std::path::Path;

use super::csv::number;
use super::file::{ExportError, write_whole};
use crate::fit::{Fit, Fits, Key};
use crate::units::format_ranks;

/// Columns, with their units.
const HEADER: &str = "pattern,path,receive_path,send_path,from,to,root,peers,width,alpha_us,alpha_us_low,alpha_us_high,gbps,gbps_low,gbps_high,\
                      max_rel_error,n,sizes,smallest,largest,breakpoints,pairs,pairs_min_gbps,pairs_median_gbps,pairs_max_gbps";

/// Write every fit as a JSON array, one a line. Fits are for reading: they are always made again from raw samples.
pub fn write_fits(fits: &Fits, path: &Path) -> Result<(), ExportError> {
    write_whole(path, |out| write_json(fits, out))
}

/// Every fit as a JSON array, one a line.
pub fn write_json(fits: &Fits, mut out: impl Write) -> std::io::Result<()> {
    out.write_all(b"[")?;
    for (number, fit) in fits.classes.iter().chain(&fits.single).enumerate() {
        out.write_all(if number == 0 { b"\n  " } else { b",\n  " })?;
        serde_json::to_writer(&mut out, fit)?;
    }
    out.write_all(b"\n]\n")
}

/// Write every fit as a table (RFC 4180): a row each, classes first; values that do not exist are empty.
pub fn write_fits_csv(fits: &Fits, path: &Path) -> Result<(), ExportError> {
    write_whole(path, |out| {
        write!(out, "{HEADER}\r\n")?;
        fits.classes.iter().chain(&fits.single).try_for_each(|fit| write!(out, "{}\r\n", row(fit)))
    })
}

fn row(fit: &Fit) -> String {
    let class = |path: Option<crate::topology::PathClass>| path.map_or("", |path| path.name()).to_owned();
    let (mut receive, mut send, mut ends, mut fan) =
        (String::new(), String::new(), [String::new(), String::new()], [String::new(), String::new(), String::new()]);
    match &fit.key {
        Key::Class { .. } => {}
        Key::FanClass { width, .. } => fan[2] = width.to_string(),
        Key::Relay { receive_path, send_path } => (receive, send) = (class(Some(*receive_path)), class(Some(*send_path))),
        Key::Rank { rank } => ends = [rank.to_string(), rank.to_string()],
        Key::Pair { from, to } => ends = [from.to_string(), to.to_string()],
        // Peers such as 1-3,7 hold a comma: the field is quoted.
        Key::Fan { root, peers } => fan = [root.to_string(), format!("\"{}\"", format_ranks(peers)), peers.len().to_string()],
    }
    let of = |pick: fn(&crate::fit::LineIntervals) -> crate::fit::Interval, scale: f64| {
        fit.intervals.as_ref().map_or([String::new(), String::new()], |both| {
            let interval = pick(both).times(scale);
            [number(interval.low), number(interval.high)]
        })
    };
    let [alpha_low, alpha_high] = of(|both| both.alpha, 1e6);
    let [low, high] = of(|both| both.bandwidth, 1e-9);
    let spread = fit.spread.as_ref().map_or([String::new(), String::new(), String::new(), String::new()], |spread| {
        [spread.count.to_string(), number(spread.min / 1e9), number(spread.median / 1e9), number(spread.max / 1e9)]
    });
    let breaks: Vec<String> = fit.breakpoints().map(|bytes| bytes.to_string()).collect();
    let [from, to] = ends;
    let [root, peers, width] = fan;
    let line = &fit.line;
    let fields = [
        fit.kind.name().to_owned(),
        class(fit.path),
        receive,
        send,
        from,
        to,
        root,
        peers,
        width,
        number(line.alpha * 1e6),
        alpha_low,
        alpha_high,
        number(line.bandwidth / 1e9),
        low,
        high,
        number(line.max_rel_error),
        fit.n.to_string(),
        fit.sizes.to_string(),
        line.smallest.to_string(),
        line.largest.to_string(),
        breaks.join(" "),
    ];
    fields.into_iter().chain(spread).collect::<Vec<_>>().join(",")
}
