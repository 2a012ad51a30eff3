//! The topology in an XML text: its root is looked for, so that declarations, document types (and with them entities), licence
//! comments and whatever was pasted around stay outside.

use roxmltree::{Document, Node, ParsingOptions};

use super::format::{known, other_xml};
use super::{Format, ImportError, Skips, hwloc, nccl};
use crate::topology::Hardware;

/// Elements and attributes that one file may have: the largest known has ten thousand.
const MOST_NODES: u32 = 2_000_000;

/// A root element with all that is in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    root: &'a str,
    text: &'a str,
    /// lines before it
    before: usize,
}

impl Piece<'_> {
    /// Tell of a node that is left out.
    pub(super) fn skip(&self, node: Node<'_, '_>, skips: &mut Skips, reason: impl Into<String>) {
        // Lines are counted from the beginning each time, so no more often than anyone would read.
        if !skips.is_full() {
            let start = node.range().start.min(self.text.len());
            skips.push(self.before + newlines(&self.text.as_bytes()[..start]) + 1, reason);
        }
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

/// The name of the element that begins with this `<`, if one does.
fn name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('<')?;
    let end = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'<');
    // No name is longer; and no text of `<` alone is to be searched from each of them.
    let length = rest.bytes().take(64).position(end).or(Some(rest.len()).filter(|length| *length < 64))?;
    rest.get(..length)
}

/// The roots that are read here, one after another; one piece with another root if the text is some other XML; none if it is none.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut at, mut before, mut counted) = (0, 0, 0);
    while let Some(next) = text[at..].find('<').map(|next| at + next) {
        if text[next..].starts_with("<!--") {
            at = text[next..].find("-->").map_or(text.len(), |end| next + end);
            continue;
        }
        let root = name(&text[next..]).unwrap_or_default();
        if !matches!(root, "system" | "topology" | "graphs") {
            at = next + 1;
            continue;
        }
        let end = text[next..].find(&format!("</{root}>")).map_or(text.len(), |end| next + end + root.len() + 3);
        before += newlines(&text.as_bytes()[counted..next]);
        counted = next;
        found.push(Piece { root, text: &text[next..end], before });
        at = end;
    }
    let all = text.trim_start_matches('\u{feff}').trim_start();
    if found.is_empty() && all.starts_with('<') {
        let mut names = all.match_indices('<').filter_map(|(at, _)| name(&all[at..]));
        let root = names.find(|name| !name.starts_with(['?', '!']) && !name.is_empty()).unwrap_or("html");
        found.push(Piece { root, text: all, before: 0 });
    }
    found
}

/// Formats, hosts and what was left out of all the pieces.
pub(super) fn read(pieces: &[Piece<'_>], file: &str) -> Result<(Vec<Format>, Vec<Hardware>, Skips), ImportError> {
    let (mut formats, mut hosts, mut skips) = (Vec::new(), Vec::new(), Skips::default());
    for piece in pieces {
        let format = match piece.root {
            "system" => Format::NcclTopology,
            "topology" => Format::Hwloc,
            other => {
                let (who, what) = other_xml(other)
                    .map_or((format!("XML with the root <{other}>"), String::new()), |(who, what)| (who.to_owned(), what.to_owned()));
                let advice = if what.is_empty() { "see whether the file is what you meant".to_owned() } else { format!("this is {what}") };
                return Err(ImportError::new(file, Some(piece.before + 1), &who, format!("one of {}", known()), advice));
            }
        };
        let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(piece.text, options).map_err(|error| {
            let line = piece.before + (error.pos().row as usize).max(1);
            let advice = if piece.text.ends_with(&format!("</{}>", piece.root)) {
                "mend or write the file anew"
            } else {
                "the file ends early: write it anew"
            };
            ImportError::new(file, Some(line), &error.to_string(), format!("well-formed {}", format.name()), advice)
        })?;
        let told = match format {
            Format::Hwloc => vec![hwloc::read(document.root_element(), piece, &mut skips)],
            _ => nccl::read(document.root_element(), piece, &mut skips),
        };
        if told.iter().all(|host| host.pci.is_empty() && host.gpus.is_empty() && host.numa.is_empty() && host.packages.is_empty()) {
            let advice = "see whether the file is what you meant; it may have been cut by hand";
            let expected = "processors, PCI devices or GPUs in it";
            return Err(ImportError::new(file, Some(piece.before + 1), &format!("<{}>", piece.root), expected, advice));
        }
        if !formats.contains(&format) {
            formats.push(format);
        }
        hosts.extend(told);
    }
    Ok((formats, hosts, skips))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found_behind_what_stands_before() {
        let text = "<?xml version=\"1.0\"?>\n<!-- <system> of\n old -->\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n</topology>\n<system></system>";
        let found = pieces(text);
        assert_eq!(found.iter().map(|piece| (piece.root, piece.before)).collect::<Vec<_>>(), [("topology", 4), ("system", 6)]);
        assert_eq!(pieces("Link 3: <inactive>\n"), []);
        assert_eq!(pieces(" <html><p>").first().map(|piece| piece.root), Some("html"));
        assert_eq!(pieces("log\n```\n<system version=\"1\">"), [Piece { root: "system", text: "<system version=\"1\">", before: 2 }]);
    }

    #[test]
    fn bombs_cuts_and_other_documents_are_refused() {
        let told = |text: &str| read(&pieces(text), "f").err().unwrap().to_string();
        let bomb = "<!DOCTYPE system [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<system><cpu numaid=\"&b;\"/></system>";
        assert!(told(bomb).starts_with("f:2: "), "{}", told(bomb));
        assert!(told("<system>\n<cpu>").contains("ends early"));
        assert!(told("<graphs version=\"1\"></graphs>").contains("NCCL graph XML"));
        assert!(told("<nvidia_smi_log>").contains("nvidia-smi -q -x"));
        assert!(told("<system version=\"1\"></system>").contains("PCI devices"));
    }
}
