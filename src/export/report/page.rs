//! Parts of a written page, whatever it becomes, and their text in HTML and in Markdown.

use std::fmt::Write;

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
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
}

/// The head of a table whose columns are always the same.
pub fn titles<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Parts of a page as HTML.
pub fn html(blocks: &[Block]) -> String {
    let mut out = String::new();
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
            Block::Table { head, rows } => table(&mut out, &mut head.iter().map(String::as_str), rows),
        }
    }
    out
}

/// A table that scrolls by itself where it is wider than the page; the keyboard reaches it, too.
fn table(out: &mut String, head: &mut dyn Iterator<Item = &str>, rows: &[Vec<String>]) {
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        cells.fold(String::new(), |line, cell| line + &format!("<{tag}>{}</{tag}>", escape(cell)))
    };
    let _ = writeln!(
        out,
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"table\">\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>",
        cells("th", head)
    );
    for row in rows {
        let _ = writeln!(out, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Parts of a page as Markdown (`CommonMark` with tables).
pub fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    let table = |out: &mut String, head: Vec<String>, rows: &[Vec<String>]| {
        let _ = writeln!(out, "| {} |", head.join(" | "));
        let _ = writeln!(out, "|{}", " --- |".repeat(head.len()));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| escape_markdown(cell)).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out.push('\n');
    };
    for block in blocks {
        match block {
            Block::Heading(level, text) => {
                let _ = writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), escape_markdown(text));
            }
            Block::Text(text) => {
                let _ = writeln!(out, "{}\n", escape_markdown(text));
            }
            Block::Items(items) => {
                for (word, text) in items {
                    let _ = writeln!(out, "- *{}*: {}", escape_markdown(word), escape_markdown(text));
                }
                out.push('\n');
            }
            Block::Table { head, rows } => table(&mut out, head.iter().map(|word| escape_markdown(word)).collect(), rows),
        }
    }
    out
}

/// Lines to type, as Markdown shows them: with a fence longer than any within.
pub fn fenced(text: &str) -> String {
    let text = text.lines().map(plain).collect::<Vec<_>>().join("\n");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}\n\n")
}

/// Text as HTML may hold it.
pub fn escape(text: &str) -> String {
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
pub fn escape_markdown(text: &str) -> String {
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
