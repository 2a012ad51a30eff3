//! The table that `nvidia-smi topo` prints, whatever its cells mean: aligned by tabs or blanks, wrapped, fenced or indented.

use super::text::{Line, number};

/// What the columns behind the devices' hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Cpus,
    Numa,
    /// the GPU's own memory as a NUMA node (GH200)
    GpuNuma,
}

/// One row: what stands behind the device's name, with what was wrapped onto further lines.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    /// index in [`Matrix::devices`]
    pub(super) device: usize,
    pub(super) cells: String,
}

/// A table as it stands there.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    /// names as the header has them
    pub(super) devices: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// lines that it takes
    pub(super) used: usize,
}

/// Wider tables are no machine's.
const WIDEST: usize = 1024;

/// The number of `GPU7`.
pub(super) fn gpu_number(name: &str) -> Option<usize> {
    name.strip_prefix("GPU").and_then(number)
}

/// True for `GPU7` and `NIC7`.
fn is_numbered(word: &str) -> bool {
    gpu_number(word).is_some() || word.strip_prefix("NIC").and_then(number).is_some()
}

/// A word that no cell is: names of RDMA devices have small letters and digits (`mlx5_0`, `bnxt_re3`, `rocep49s0`).
fn is_device(word: &str) -> bool {
    let named = word.starts_with(|char: char| char.is_ascii_lowercase()) && word.bytes().any(|byte| byte.is_ascii_digit());
    is_numbered(word)
        || named && word.len() < 32 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// `GPU6GPU7` is two; so wide columns run together.
fn unglued(word: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = word.match_indices("GPU").chain(word.match_indices("NIC")).map(|(at, _)| at).collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([word.len()]);
    let parts: Vec<_> = starts.iter().zip(ends).filter_map(|(&from, to)| word.get(from..to)).collect();
    if parts.len() > 1 && starts[0] == 0 && parts.iter().all(|part| is_numbered(part)) { parts } else { vec![word] }
}

/// The words of a header that is spread over one or more lines.
fn header(words: &[&str]) -> Option<(Vec<String>, Vec<Column>)> {
    let titles = words.iter().position(|word| matches!(*word, "CPU" | "NUMA" | "Affinity" | "GPU")).unwrap_or(words.len());
    let devices: Vec<String> = words[..titles].iter().flat_map(|word| unglued(word)).map(str::to_owned).collect();
    if devices.len() > WIDEST || devices.iter().any(|name| !is_device(name)) || gpu_number(devices.first()?).is_none() {
        return None;
    }
    let mut columns = Vec::new();
    let mut rest = &words[titles..];
    while !rest.is_empty() {
        let (column, taken) = match rest {
            ["CPU", "Affinity", ..] => (Column::Cpus, 2),
            ["CPU", ..] => (Column::Cpus, 1),
            ["NUMA", "Affinity", ..] => (Column::Numa, 2),
            ["NUMA", ..] => (Column::Numa, 1),
            ["GPU", "NUMA", "ID", ..] => (Column::GpuNuma, 3),
            ["GPU", "NUMA", ..] => (Column::GpuNuma, 2),
            _ => return None,
        };
        columns.push(column);
        rest = &rest[taken..];
    }
    Some((devices, columns))
}

/// A line of a table without the bars that markdown sets between cells.
fn unbarred(text: &str) -> String {
    if text.trim_start().starts_with('|') { text.replace('|', "\t") } else { text.to_owned() }
}

/// The table that begins with the first line, if one does: a header, then at least one row that names its device.
pub(super) fn read(lines: &[Line<'_>]) -> Option<Matrix> {
    let first = unbarred(lines.first()?.text);
    let mut words: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    let borrow = |words: &[String]| header(&words.iter().map(String::as_str).collect::<Vec<_>>());
    // Two devices or a title: one word alone is no header. Cells are none either.
    gpu_number(unglued(words.first()?)[0])?;
    let mut found = borrow(&words)?;
    let mut at = 1;
    // Wrapped: further lines of nothing but names and titles.
    while let Some(next) = lines.get(at).map(|line| unbarred(line.text)) {
        let more: Vec<String> = next.split_whitespace().map(str::to_owned).collect();
        if more.is_empty() || at > 16 || words.len() + more.len() > WIDEST + 8 {
            break;
        }
        let joined: Vec<String> = words.iter().chain(&more).cloned().collect();
        // A row of the table, or another header, begins with a name that is there already.
        match borrow(&joined) {
            Some(wider) if !found.0.contains(&more[0]) => (found, words) = (wider, joined),
            _ => break,
        }
        at += 1;
    }
    let (devices, columns) = found;
    let mut matrix = Matrix { devices, columns, rows: Vec::new(), used: at };
    let place = |word: &str, devices: &[String]| devices.iter().position(|name| name == word);
    while let Some(line) = lines.get(at) {
        let text = unbarred(line.text);
        let text = text.trim();
        let (name, cells) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let ruled = !text.is_empty() && text.chars().all(|char| matches!(char, '-' | '\t' | ' ' | ':' | '='));
        if let Some(device) = place(name, &matrix.devices) {
            let again = matrix.rows.iter().any(|row| row.device == device);
            if again || matrix.rows.len() == matrix.devices.len() {
                break;
            }
            matrix.rows.push(Row { line: line.number, device, cells: cells.to_owned() });
        } else if let Some(row) = matrix.rows.last_mut().filter(|row| is_cell(name) && row.cells.len() < 16 * WIDEST) {
            row.cells.push('\t');
            row.cells.push_str(text);
        } else if !(ruled || text.is_empty() && matrix.rows.is_empty()) {
            break;
        }
        at += 1;
        matrix.used = at;
    }
    (!matrix.rows.is_empty()).then_some(matrix)
}

/// A word that may stand in a row: a label, a status, processors, a node.
fn is_cell(word: &str) -> bool {
    matches!(word, "X" | "N/A" | "SYS" | "SOC" | "NODE" | "PHB" | "PXB" | "PIX" | "OK" | "CNS" | "GNS" | "TNS" | "NS" | "DR" | "U")
        || word.strip_prefix("NV").and_then(number).is_some()
        || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b','))
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    fn table(text: &str) -> Option<Matrix> {
        read(&lines(text))
    }

    #[test]
    fn headers_are_told_from_rows_and_words() {
        let matrix = table("\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV1\tSYS\n").unwrap();
        assert_eq!(matrix.devices, ["GPU0", "GPU1", "mlx5_0"]);
        assert_eq!(matrix.columns, [Column::Cpus, Column::Numa, Column::GpuNuma]);
        assert_eq!(matrix.used, 2);
        for text in ["GPU0 is warm\nGPU0 X\n", "GPU0\tX\tSYS\n", "GPU 0: NVIDIA\n", "GPU0 GPU1\nno row\n", "", "GPU0 Power CPU\nGPU0 X"] {
            assert!(table(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn wrapped_ruled_and_glued_tables_are_put_together() {
        let text = "GPU0 GPU1NIC0\nNIC1 CPU Affinity NUMA\nAffinity\n---\nGPU0 X SYS\nSYS SYS 0-3 0\nGPU1 SYS X SYS SYS 4-7 1\n\nLegend:\n";
        let matrix = table(text).unwrap();
        assert_eq!(matrix.devices, ["GPU0", "GPU1", "NIC0", "NIC1"]);
        assert_eq!(matrix.columns, [Column::Cpus, Column::Numa]);
        assert_eq!(matrix.rows[0].cells.split_whitespace().collect::<Vec<_>>(), ["X", "SYS", "SYS", "SYS", "0-3", "0"]);
        assert_eq!(matrix.rows.len(), 2);
        let barred = table("|      | GPU0 | GPU1 |\n|------|------|------|\n| GPU0 | X | SYS |\n").unwrap();
        assert_eq!((barred.devices.len(), barred.rows.len()), (2, 1));
    }

    #[test]
    fn a_second_table_is_not_part_of_the_first() {
        let matrix = table("GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\nGPU0 GPU1\nGPU0 X NV4\n").unwrap();
        assert_eq!(matrix.used, 3);
    }
}
