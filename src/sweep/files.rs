//! Files that say what runs at the same time: a pattern file (sets of transfers), a file of peers (fans). Their text, not the
//! files themselves.

use std::collections::HashMap;

use super::Transfer;
use crate::units::{parse_ranks, plain};

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}: expected {expected}")]
pub struct FileError {
    /// from 1
    pub line: usize,
    /// the field and what stands there
    pub what: String,
    pub expected: String,
}

fn wrong<T>(line: usize, what: impl Into<String>, expected: impl Into<String>) -> Result<T, FileError> {
    Err(FileError { line, what: plain(&what.into()), expected: expected.into() })
}

const LINE: &str = "three whole numbers (set, sender, receiver), or a first line that names the columns, set, from and to among them";

/// Lines that say something, with their numbers: neither blank nor a comment.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines()).map(|(number, line)| (number, line.trim())).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The transfers of a pattern file in a job of `world` ranks: those of the same set run at the same time.
///
/// Either three whole numbers a line (set, sender, receiver; between them commas or blanks; `#` begins a comment), or a CSV
/// file (RFC 4180) whose first line names at least the columns `set`, `from` and `to`, in any order; rows with an empty set are
/// skipped, so that a table that this program exported is a pattern file. Where there is a column `bytes`, rows that
/// differ only in what else they tell are the same transfer; without, each transfer may stand in a set once.
pub fn parse_pattern_file(text: &str, world: usize) -> Result<Vec<Transfer>, FileError> {
    let mut lines = lines(text).peekable();
    let Some(&(first, head)) = lines.peek() else { return wrong(1, "the file is empty", LINE) };
    let names: Vec<String> = fields(head).iter().map(|name| name.trim().to_lowercase()).collect();
    let columns = ["set", "from", "to"].map(|name| names.iter().position(|other| other == name));
    let columns = match columns {
        [Some(set), Some(from), Some(to)] => {
            lines.next();
            Some([set, from, to])
        }
        _ if names[0].starts_with(char::is_alphabetic) => {
            return wrong(first, format!("{head:?}"), LINE);
        }
        _ => None,
    };
    let again = columns.is_some() && names.iter().any(|name| name == "bytes");
    let mut seen: HashMap<Transfer, usize> = HashMap::new();
    let mut transfers = Vec::new();
    for (number, line) in lines {
        let Some([set, from, to]) = three(number, line, columns)? else { continue };
        let Ok(id) = set.parse::<u32>() else {
            return wrong(number, format!("set = {set:?}"), "a whole number");
        };
        let rank = |name: &str, text: &str| match text.parse::<usize>() {
            Ok(rank) if rank < world => Ok(rank),
            _ => wrong(number, format!("{name} = {text:?}"), format!("a rank of this job, 0 to {}", world.saturating_sub(1))),
        };
        let transfer = Transfer { set: id, from: rank("from", &from)?, to: rank("to", &to)? };
        if transfer.from == transfer.to {
            return wrong(number, format!("to = {to:?}"), "another rank than the sender; copies within a rank are the pattern local");
        }
        match seen.insert(transfer, number) {
            Some(before) if !again => {
                let what = format!("{from}→{to} is in set {set} already, in line {before}");
                return wrong(number, what, "each transfer once in a set");
            }
            Some(_) => {}
            None => transfers.push(transfer),
        }
    }
    if transfers.is_empty() {
        return wrong(first, "no transfer in the whole file", "rows with a set");
    }
    Ok(transfers)
}

/// Set, sender and receiver of a line; `None` if it has no set.
fn three(number: usize, line: &str, columns: Option<[usize; 3]>) -> Result<Option<[String; 3]>, FileError> {
    let Some(columns) = columns else {
        let line = line.split('#').next().unwrap_or_default().trim();
        let parts: Vec<&str> =
            if line.contains(',') { line.split(',').map(str::trim).collect() } else { line.split_whitespace().collect() };
        return match parts[..] {
            [set, from, to] => Ok(Some([set, from, to].map(str::to_owned))),
            _ => wrong(number, format!("{} fields", parts.len()), LINE),
        };
    };
    let fields = fields(line);
    let field = |at: usize| fields.get(columns[at]).map(|field| field.trim());
    match field(0) {
        None | Some("") => return Ok(None),
        Some(_) => {}
    }
    for (at, name) in [(1, "from"), (2, "to")] {
        if field(at).is_none() {
            return wrong(number, format!("no {name}: {} fields", fields.len()), "as many fields as the first line names");
        }
    }
    Ok(Some([0, 1, 2].map(|at| field(at).unwrap_or_default().to_owned())))
}

/// Fields of a line (RFC 4180, section 2: quoted ones may hold commas, quotes doubled). A field holds no line break here.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let last = fields.len() - 1;
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    fields
}

/// Fans of a file of peers: a root, a colon and its peers a line (`0: 1,2,5-7`); `#` begins a comment. A root may have several
/// lines.
pub fn parse_peers_file(text: &str, world: usize) -> Result<Vec<(usize, Vec<usize>)>, FileError> {
    let mut fans = Vec::new();
    for (number, line) in lines(text) {
        let line = line.split('#').next().unwrap_or_default();
        let Some((root, peers)) = line.split_once(':') else {
            return wrong(number, format!("{:?}", line.trim()), "a root, a colon and its peers, such as 0: 1,2,3");
        };
        let rank = format!("a rank of this job, 0 to {}", world.saturating_sub(1));
        let Some(root) = root.trim().parse::<usize>().ok().filter(|&root| root < world) else {
            return wrong(number, format!("root = {:?}", root.trim()), rank);
        };
        let Ok(peers) = parse_ranks(peers, world) else {
            return wrong(
                number,
                format!("peers = {:?}", peers.trim()),
                format!("ranks of this job, 0 to {}, such as 1,2,5-7", world.saturating_sub(1)),
            );
        };
        if peers.contains(&root) {
            return wrong(number, format!("peers = {root}"), "other ranks than the root");
        }
        fans.push((root, peers));
    }
    if fans.is_empty() { wrong(1, "no fan in the whole file", "a root, a colon and its peers, such as 0: 1,2,3") } else { Ok(fans) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sets(text: &str) -> Vec<(u32, usize, usize)> {
        let transfers = parse_pattern_file(text, 4).unwrap_or_else(|error| panic!("{error}"));
        transfers.into_iter().map(|transfer| (transfer.set, transfer.from, transfer.to)).collect()
    }

    #[test]
    fn three_numbers_a_line_are_a_transfer() {
        assert_eq!(sets("# a shift\n0,0,1\n0, 1 ,2 # and on\n\n7 3 0\n7\t0\t3\r\n"), [(0, 0, 1), (0, 1, 2), (7, 3, 0), (7, 0, 3)]);
    }

    #[test]
    fn a_table_is_read_by_its_columns_and_rows_without_a_set_are_skipped() {
        let table = "pattern,to,from,set,note\ncustom,1,0,4,\"a, \"\"b\"\"\"\npeer,0,1,,\n\nlocal,2,2,\ncustom,0,2,4,x # y\n";
        assert_eq!(sets(table), [(4, 0, 1), (4, 2, 0)]);
        assert_eq!(sets("\u{feff}Set,From,To\r\n1,0,1\r\n"), [(1, 0, 1)]);
    }

    #[test]
    fn sizes_of_one_transfer_are_one_transfer_and_what_stands_twice_is_refused() {
        assert_eq!(sets("set,from,to,bytes\n0,0,1,4096\n0,1,2,4096\n0,0,1,65536\n1,0,1,4096\n"), [(0, 0, 1), (0, 1, 2), (1, 0, 1)]);
        for text in ["0,0,1\n0,1,2\n0,0,1\n", "set,from,to\n0,0,1\n0,1,2\n0,0,1"] {
            let error = parse_pattern_file(text, 4).unwrap_err().to_string();
            assert!(error.contains("0→1 is in set 0 already, in line") && error.ends_with("each transfer once in a set"), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_field() {
        let cases = [
            ("", "line 1: the file is empty: expected three whole numbers"),
            ("# nothing\n", "line 1: the file is empty"),
            ("from,to\n0,1\n", "line 1: \"from,to\": expected three whole numbers"),
            ("0,1,2\n0,1\n", "line 2: 2 fields"),
            ("0 1 2 3\n", "line 1: 4 fields"),
            ("0,0,1\nx,1,2\n", "line 2: set = \"x\": expected a whole number"),
            ("0,0,1\n\n-1,1,2\n", "line 3: set = \"-1\""),
            ("0,0,9\n", "line 1: to = \"9\": expected a rank of this job, 0 to 3"),
            ("set,to,from\n1,2,y\n", "line 2: from = \"y\""),
            ("set,from,to\n1,2\n", "line 2: no to: 2 fields"),
            ("set,from,to\n1,2,2\n", "line 2: to = \"2\": expected another rank"),
            ("set,from,to\n,1,2\n", "line 1: no transfer in the whole file"),
            ("0,0,\u{1b}[31m\n", "line 1: to = "),
        ];
        for (text, expected) in cases {
            let error = parse_pattern_file(text, 4).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
            assert!(!error.chars().any(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn peers_are_read_line_by_line() {
        assert_eq!(
            parse_peers_file("# root: peers\n0: 1,2\n\n3: 0-2 # all\n0: 3\n", 4),
            Ok(vec![(0, vec![1, 2]), (3, vec![0, 1, 2]), (0, vec![3])])
        );
        let cases = [
            ("", "line 1: no fan"),
            ("0: 1\n1\n", "line 2: \"1\": expected a root, a colon"),
            ("4: 1\n", "line 1: root = \"4\": expected a rank of this job, 0 to 3"),
            ("\n0: 1,4\n", "line 2: peers = \"1,4\""),
            ("0:\n", "line 1: peers = \"\""),
            ("0: 0,1\n", "line 1: peers = 0: expected other ranks"),
        ];
        for (text, expected) in cases {
            let error = parse_peers_file(text, 4).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_text_it_is_read_or_refused(text in "[a-z0-9,# \"\n\t:-]{0,60}") {
            let _ = parse_pattern_file(&text, 4);
            let _ = parse_peers_file(&text, 4);
        }
    }
}
