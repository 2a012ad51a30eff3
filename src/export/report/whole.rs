//! The whole report as one HTML file: no request leaves it, and it says nothing that the files it was made from did not.

use std::fmt::Write;

use super::curve::curves;
use super::matrix::pictures;
use super::page::{Block, escape, html, titles};
use super::reproduce::reproduce;
use super::ticket::verdict;
use super::{about, fans, identified, machine, mark, nothing, numbers, parts, silenced};
use crate::diagnose::{Diagnosis, Finding, Measured};
use crate::export::svg::svg;
use crate::fit::{Confidence, Fit, Fits, Key};
use crate::session::Model;
use crate::units::{format_gbps, format_seconds, format_size};

/// Own style and script. The page lets in nothing but these: their hashes stand below, and a test says so when they change.
pub const STYLE: &str = include_str!("page.css");
pub const SCRIPT: &str = include_str!("page.js");
/// SHA-256, as a Content-Security-Policy names it.
pub const STYLE_HASH: &str = "sha256-VD2yiC56NKD6WekMHSKUuXezfp6kJLcdi2t5PeCYgG8=";
pub const SCRIPT_HASH: &str = "sha256-NNjm+BEe/1Dyke69w/L802sWakx4VY4t0LkjXkjhzJc=";
/// Pairs of a finding that lead to the matrix.
const SHOWN: usize = 8;
/// Ranks up to which fits have intervals here: a million pairs would take minutes.
const CONFIDENT: usize = 256;
/// Fits of classes that the page tells; all are among its numbers.
const FITS: usize = 64;

/// All of it.
pub fn whole(model: &Model, measured: &Measured, diagnosis: &Diagnosis) -> String {
    let confidence = Confidence::new(0.95);
    let fits = crate::session::fits(model, Some(&confidence).filter(|_| model.world() <= CONFIDENT));
    let (numbers, left_out) = numbers::numbers(model, measured, diagnosis, &fits);
    let title = escape(&numbers::title(model));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p class=\"verdict\">{}</p>\n<nav>",
        escape(&verdict(model, diagnosis))
    );
    let (over, each) = fans::fans(&fits, measured);
    let fans = if over.is_empty() { String::new() } else { html(&over) + &folded("each fan, the slowest for its pairs first", &each) };
    let shared = identified(&diagnosis.identified, true);
    let quiet = silenced(diagnosis);
    let quiet = if quiet.is_empty() { String::new() } else { folded(&format!("{} and why", quiet.len()), &some(quiet)) };
    let sections = [
        ("findings", "Findings", findings(model, diagnosis)),
        ("matrix", "Matrix", matrix(measured, &numbers)),
        ("topology", "Topology", topology(measured)),
        ("fits", "Fits", told_fits(&fits, measured)),
        ("fans", "Fans", fans),
        ("shared", "What transfers at the same time share", html(&shared)),
        ("silenced", "Alarms that were not raised", quiet),
        ("settings", "Settings and software", settings(model, measured)),
        ("numbers", "Numbers", saved(&left_out)),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|(_, _, text)| !text.is_empty()).collect();
    for (id, name, _) in &sections {
        let _ = write!(out, "<a href=\"#{id}\">{}</a> ", escape(name));
    }
    out.push_str("</nav>\n</header>\n<main>\n");
    out.push_str(&html(&[Block::Items(about(model, measured).into_iter().take(4).collect())]));
    for (id, name, text) in &sections {
        let _ = writeln!(out, "<section id=\"{id}\">\n<h2>{}</h2>\n{text}</section>", escape(name));
    }
    let _ = write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        numbers::in_script(&numbers)
    );
    out
}

/// What opens when it is asked for.
fn folded(summary: &str, blocks: &[Block]) -> String {
    format!("<details>\n<summary>{}</summary>\n{}</details>\n", escape(summary), html(blocks))
}

fn some(items: Vec<(&'static str, String)>) -> Vec<Block> {
    if items.is_empty() { Vec::new() } else { vec![Block::Items(items)] }
}

fn findings(model: &Model, diagnosis: &Diagnosis) -> String {
    if diagnosis.findings.is_empty() {
        return html(&[Block::Text(nothing(model))]);
    }
    let mut out = String::new();
    for (finding, number) in diagnosis.findings.iter().zip(1..) {
        let _ = writeln!(
            out,
            "<article class=\"{}\" id=\"finding-{number}\">\n<h3><span class=\"mark\">{}</span> {number} {} <span class=\"amount\">{}</span></h3>",
            finding.severity.name(),
            mark(finding.severity),
            escape(&finding.title),
            escape(&finding.amount)
        );
        out.push_str(&html(&some(parts(finding))));
        buttons(&mut out, finding);
        out.push_str("</article>\n");
    }
    out
}

/// What leads to the matrix; without a script there is none to be led to.
fn buttons(out: &mut String, finding: &Finding) {
    let cells = &finding.cells;
    if cells.is_empty() {
        return;
    }
    out.push_str("<p class=\"pairs scripted\" hidden>in the matrix: ");
    for (from, to) in cells.iter().take(SHOWN) {
        let _ = write!(out, "<button type=\"button\" data-from=\"{from}\" data-to=\"{to}\">{from} → {to}</button> ");
    }
    if cells.len() > SHOWN {
        let _ = write!(out, "and {} more", cells.len() - SHOWN);
    }
    out.push_str("</p>\n");
}

/// A place for the script to draw in; without one, pictures.
fn matrix(measured: &Measured, numbers: &numbers::Numbers) -> String {
    if numbers.tables.is_empty() {
        return html(&[Block::Text("No pair was measured.".to_owned())]);
    }
    let mut out = MATRIX.to_owned();
    out.push_str("<noscript>\n");
    for picture in pictures(measured) {
        // Two pictures of a page share no ids, and an XML namespace needs no link.
        let _ = writeln!(out, "<figure>\n{}</figure>", svg(&picture.canvas(), &picture.title));
    }
    out.push_str("</noscript>\n");
    out
}

const MATRIX: &str = "<div class=\"scripted\" hidden>
<div class=\"choices\">
<label>show <select id=\"metric\"></select></label>
<label>pattern <select id=\"pattern\"></select></label>
<label>size <select id=\"size\"></select></label>
<label><input type=\"checkbox\" id=\"marked\" checked> mark the pairs of findings</label>
<span class=\"zoom\"><button type=\"button\" id=\"closer\" aria-label=\"closer\">+</button> <button type=\"button\" id=\"wider\" \
aria-label=\"wider\">−</button> <button type=\"button\" id=\"all\">all</button></span>
</div>
<p id=\"cell\" aria-live=\"polite\"></p>
<div class=\"sight\">
<div class=\"plot\">
<canvas id=\"plot\" tabindex=\"0\" role=\"application\" aria-label=\"matrix of all pairs: the row sends, the column receives; arrow keys move \
to another pair\" aria-describedby=\"cell\"></canvas>
<canvas id=\"ramp\" aria-hidden=\"true\"></canvas>
<p id=\"legend\"></p>
<p class=\"hint\">Row sends, column receives. Hover or tap a pair; arrow keys move, with shift by eight; + − zoom, 0 shows all, n goes to the \
next pair of a finding.</p>
</div>
<div class=\"pair\">
<div id=\"curve\"></div>
<div id=\"pair\" class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"the pair at every size\"></div>
</div>
</div>
</div>
";

fn topology(measured: &Measured) -> String {
    html(&machine::hosts(&measured.topology)) + &folded(&format!("{} ranks", measured.world()), &machine::ranks(measured))
}

fn told_fits(fits: &Fits, measured: &Measured) -> String {
    if fits.classes.is_empty() {
        return String::new();
    }
    let mut out = html(&[Block::Table {
        head: titles(["what", "α", "GB/s", "95 %", "largest error", "times", "sizes", "changes at", "members, GB/s"]),
        rows: fits.classes.iter().take(FITS).map(row).collect(),
    }]);
    if fits.classes.len() > FITS {
        out.push_str(&html(&[Block::Text(format!("and {} more, among the numbers below.", fits.classes.len() - FITS))]));
    }
    let curves = curves(measured, fits);
    if !curves.is_empty() {
        out.push_str("<div class=\"curves\">\n");
        for (name, picture) in curves {
            let _ = writeln!(out, "<figure>\n{picture}<figcaption>{}</figcaption>\n</figure>", escape(&name));
        }
        out.push_str(
            "</div>\n<p class=\"hint\">Time of a message over its size, both logarithmic: medians of all pairs (dots), from the \
                      fastest to the slowest pair (band), and what was fitted (line).</p>\n",
        );
    }
    out
}

fn row(fit: &Fit) -> Vec<String> {
    let what = match &fit.key {
        Key::Class { path } => format!("{}, {}", fit.kind.name(), path.name()),
        Key::FanClass { path, width } => format!("{} of {width}, {}", fit.kind.name(), path.name()),
        Key::Relay { receive_path, send_path } => format!("{}, {} in, {} out", fit.kind.name(), receive_path.name(), send_path.name()),
        _ => fit.kind.name().to_owned(),
    };
    let none = || "–".to_owned();
    let interval = fit
        .intervals
        .as_ref()
        .map_or_else(none, |both| format!("{}–{}", format_gbps(both.bandwidth.low), format_gbps(both.bandwidth.high)));
    let breaks: Vec<String> = fit.breakpoints().map(format_size).collect();
    let spread = fit.spread.as_ref().map_or_else(none, |spread| {
        format!("{} of {}: {} to {}", format_gbps(spread.median), spread.count, format_gbps(spread.min), format_gbps(spread.max))
    });
    vec![
        what,
        format_seconds(fit.line.alpha),
        format_gbps(fit.line.bandwidth),
        interval,
        format!("{:.1} %", fit.line.max_rel_error * 100.0),
        fit.n.to_string(),
        fit.sizes.to_string(),
        if breaks.is_empty() { none() } else { breaks.join(", ") },
        spread,
    ]
}

fn settings(model: &Model, measured: &Measured) -> String {
    let mut out = html(&[Block::Items(about(model, measured))]);
    let (command, beware) = reproduce(model);
    let _ = write!(out, "<p>To measure it again:</p>\n<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(&command));
    out.push_str(&html(&beware.into_iter().map(Block::Text).collect::<Vec<_>>()));
    out
}

fn saved(left_out: &[String]) -> String {
    let mut out =
        "<p>All numbers that this page draws are in it, as JSON. <button type=\"button\" id=\"save\" class=\"scripted\" hidden>Save \
                   the numbers</button></p>\n"
            .to_owned();
    if left_out.is_empty() {
        out.push_str(&html(&[Block::Text("Nothing that was measured is left out.".to_owned())]));
    } else {
        out.push_str("<p>Left out, so that the page stays small:</p>\n<ul>\n");
        for what in left_out {
            let _ = writeln!(out, "<li>{}</li>", escape(what));
        }
        out.push_str("</ul>\n");
    }
    out
}
