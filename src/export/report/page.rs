//! A written page, whatever it becomes: what HTML and Markdown are made from.

use std::fmt::Write;

use super::matrix::Picture;
use crate::export::svg::svg;
use crate::units::plain;

/// One part of a page.
#[derive(Debug, Clone)]
pub enum Block {
    /// 1 is the page's own
    Heading(u8, String),
    Text(String),
    /// a word and what it says each
    Items(Vec<(&'static str, String)>),
    Table {
        head: Vec<&'static str>,
        rows: Vec<Vec<String>>,
    },
    Picture(Box<Picture>),
}

/// Looks of the page, all within it.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2rem;border-bottom:1px solid #ccc}h3{font-size:1.05rem;margin-bottom:.3rem}\
table{border-collapse:collapse;margin:.8rem 0}th,td{padding:.15rem .7rem;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}\
th{font-weight:600;color:#555}dl{display:grid;grid-template-columns:5.5rem 1fr;gap:.15rem .8rem;margin:.3rem 0}dt{color:#666}dd{margin:0}\
svg{max-width:100%;height:auto}";

/// A file of its own: no script, no style and no picture from elsewhere.
pub fn html(title: &str, blocks: &[Block]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        escape(title)
    );
    for block in blocks {
        match block {
            Block::Heading(level, text) => {
                let _ = writeln!(out, "<h{level}>{}</h{level}>", escape(text));
            }
            Block::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", escape(text));
            }
            Block::Items(items) => {
                out.push_str("<dl>\n");
                for (word, text) in items {
                    let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(word), escape(text));
                }
                out.push_str("</dl>\n");
            }
            Block::Table { head, rows } => {
                let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
                    cells.fold(String::new(), |line, cell| line + &format!("<{tag}>{}</{tag}>", escape(cell)))
                };
                let _ = writeln!(out, "<table>\n<tr>{}</tr>", cells("th", &mut head.iter().copied()));
                for row in rows {
                    let _ = writeln!(out, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
                }
                out.push_str("</table>\n");
            }
            Block::Picture(picture) => {
                // Two pictures of a page share no ids, and an XML namespace needs no link.
                let _ = writeln!(out, "<figure>\n{}</figure>", svg(&picture.canvas(), &picture.title));
            }
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Markdown (`CommonMark` with tables). `beside(number)` is the link to the file of a picture.
pub fn markdown(blocks: &[Block], beside: &dyn Fn(usize) -> String) -> String {
    let mut out = String::new();
    let mut pictures = 0;
    for block in blocks {
        match block {
            Block::Heading(level, text) => {
                let _ = writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), mark(text));
            }
            Block::Text(text) => {
                let _ = writeln!(out, "{}\n", mark(text));
            }
            Block::Items(items) => {
                for (word, text) in items {
                    let _ = writeln!(out, "- *{}*: {}", mark(word), mark(text));
                }
                out.push('\n');
            }
            Block::Table { head, rows } => {
                let _ = writeln!(out, "| {} |", head.join(" | "));
                let _ = writeln!(out, "|{}", " --- |".repeat(head.len()));
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|cell| mark(cell)).collect();
                    let _ = writeln!(out, "| {} |", cells.join(" | "));
                }
                out.push('\n');
            }
            Block::Picture(picture) => {
                let _ = writeln!(out, "![{}](<{}>)\n", mark(&picture.title), beside(pictures));
                pictures += 1;
            }
        }
    }
    out
}

/// Text as HTML may hold it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in plain(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// Text that means nothing but itself in Markdown: what could be markup, HTML or a table's border is escaped.
fn mark(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in plain(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' | '~' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}
