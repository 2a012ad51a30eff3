//! `nvidia-smi topo -m`: path labels between GPUs and NICs, processors and NUMA nodes near GPUs, NVLinks by their number.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Skips;
use super::links::{MOST_LINKS, bundle};
use super::matrix::{Column, Matrix, Row, gpu_number};
use super::text::{Line, list, named, number, shown};
use crate::topology::PathLabel;
use crate::topology::hardware::{Device, Gpu, Hardware, LinkEnd, LinkLayer, Nic, NoteKind, NumaNode, Told, ToldWhat};

/// True if the table's cells are path labels, or if it has no other cells than `X` but titles of affinity.
pub(super) fn is_labels(matrix: &Matrix) -> bool {
    let mut words = matrix.rows.iter().flat_map(|row| row.cells.split_whitespace());
    let told = words.find_map(|word| labels(word)?.into_iter().find(|label| *label != PathLabel::Local));
    told.is_some() || !matrix.columns.is_empty()
}

/// `NODE`, or several that ran together: `SYSSYS`, `NV12NV12`.
pub(super) fn labels(word: &str) -> Option<Vec<PathLabel>> {
    if let Ok(label) = word.parse() {
        return Some(vec![label]);
    }
    let mut found = Vec::new();
    let mut rest = word;
    while !rest.is_empty() && found.len() < 64 {
        let fixed = ["NODE", "SYS", "SOC", "PHB", "PXB", "PIX", "X"].into_iter().find(|label| rest.starts_with(label));
        let length = fixed.map_or_else(|| 2 + rest.bytes().skip(2).take_while(u8::is_ascii_digit).count(), str::len);
        found.push(rest.get(..length)?.parse().ok()?);
        rest = &rest[length..];
    }
    rest.is_empty().then_some(found)
}

/// The labels that a row begins with (`None` for `N/A` and `ERR`), and what stands behind them.
fn cells(row: &Row, most: usize) -> (Vec<Option<PathLabel>>, &str) {
    let mut found = Vec::new();
    let mut rest = row.cells.trim_start();
    while found.len() < most {
        let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match labels(word) {
            Some(labels) => found.extend(labels.into_iter().map(Some)),
            None if matches!(word, "N/A" | "ERR" | "NS") => found.push(None),
            None => break,
        }
        if behind.is_empty() || found.len() >= most {
            return (found, behind);
        }
        rest = behind.trim_start();
    }
    (found, rest)
}

/// The affinity columns of a row by their titles. An empty cell is found by tabs where there are any, else by its looks.
fn affinity<'a>(tail: &'a str, columns: &[Column]) -> Vec<(Column, &'a str)> {
    let words: Vec<&str> = tail.split_whitespace().collect();
    if words.len() >= columns.len() {
        return columns.iter().copied().zip(words).collect();
    }
    let mut left = columns.to_vec();
    let mut found = Vec::new();
    for (at, cell) in tail.split('\t').map(str::trim).enumerate().filter(|(_, cell)| !cell.is_empty() && !cell.contains(' ')) {
        let looks = |column: &Column| match column {
            Column::Cpus => cell.contains(['-', ',']),
            Column::Numa => number(cell).is_some() && !(at > 2 && left.len() > 1 && left.contains(&Column::GpuNuma)),
            Column::GpuNuma => number(cell).is_some() || cell == "N/A",
        };
        if let Some(column) = left.iter().copied().find(looks) {
            left.retain(|other| *other != column);
            found.push((column, cell));
        }
    }
    found
}

/// A host from a table, and the `NIC0: mlx5_0` that the legend below it tells.
pub(super) fn host(matrix: &Matrix, legend: &HashMap<String, String>, skips: &mut Skips) -> Hardware {
    let mut host = Hardware::default();
    let devices: Vec<Device> = matrix.devices.iter().map(|name| add(&mut host, name, legend)).collect();
    let mut told: BTreeMap<(usize, usize), PathLabel> = BTreeMap::new();
    let mut nodes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for row in &matrix.rows {
        let (labels, tail) = cells(row, devices.len());
        if labels.len() != devices.len() {
            skips.push(row.line, format!("{} labels where the header has {} devices", labels.len(), devices.len()));
            continue;
        }
        for (to, label) in labels.into_iter().enumerate() {
            match label {
                Some(PathLabel::Local) if to == row.device => {}
                Some(label) if label != PathLabel::Local => _ = told.insert((row.device, to), label),
                _ => skips.push(row.line, format!("no label from {} to {}", matrix.devices[row.device], matrix.devices[to])),
            }
        }
        if let Device::Gpu(gpu) = devices[row.device] {
            near(&mut host, gpu, &affinity(tail, &matrix.columns), &mut nodes, row.line, skips);
        }
    }
    host.numa = nodes.into_iter().map(|(id, cpus)| NumaNode { id, cpus: cpus.into_iter().collect(), ..NumaNode::default() }).collect();
    tell(&mut host, &matrix.devices, &devices, &told);
    nvlinks(&mut host, &devices, &told);
    host
}

/// One device of the header.
fn add(host: &mut Hardware, name: &str, legend: &HashMap<String, String>) -> Device {
    if let Some(index) = gpu_number(name) {
        host.gpus.push(Gpu { index, ..Gpu::default() });
        return Device::Gpu(host.gpus.len() - 1);
    }
    let name = legend.get(name).map_or(name, String::as_str);
    host.nics.push(Nic { name: named(name), layer: LinkLayer::Other, ..Nic::default() });
    Device::Nic(host.nics.len() - 1)
}

/// What a row says of a GPU's neighbourhood.
fn near(
    host: &mut Hardware,
    gpu: usize,
    told: &[(Column, &str)],
    nodes: &mut BTreeMap<usize, BTreeSet<usize>>,
    line: usize,
    skips: &mut Skips,
) {
    let cell = |wanted: Column| told.iter().find(|(column, _)| *column == wanted).map(|(_, cell)| *cell).filter(|cell| *cell != "N/A");
    let cpus = cell(Column::Cpus).map(|cell| (cell, list(cell)));
    if let Some((cell, None)) = cpus {
        skips.push(line, format!("CPU Affinity {} is no list of processors", shown(cell)));
    }
    let node = cell(Column::Numa).and_then(|cell| {
        let node = number(cell);
        if node.is_none() {
            skips.push(line, format!("NUMA Affinity {} is not one node", shown(cell)));
        }
        node
    });
    host.gpus[gpu].cpus = cpus.and_then(|(_, cpus)| cpus).unwrap_or_default();
    host.gpus[gpu].numa = node;
    if let Some(node) = node {
        nodes.entry(node).or_default().extend(&host.gpus[gpu].cpus);
    }
    if let Some(own) = cell(Column::GpuNuma).and_then(number) {
        nodes.entry(own).or_default();
    }
}

/// Labels as told, each pair once; a pair told in two ways is remarked.
fn tell(host: &mut Hardware, names: &[String], devices: &[Device], told: &BTreeMap<(usize, usize), PathLabel>) {
    for (&(from, to), &label) in told {
        let back = told.get(&(to, from));
        if from < to || back.is_none() {
            host.told.push(Told { from: devices[from], to: devices[to], what: ToldWhat::Label(label) });
            if let Some(back) = back.filter(|back| **back != label) {
                let about = format!("{} and {}", names[from], names[to]);
                host.note(NoteKind::Lie, about, format!("{label} in one direction and {back} in the other"));
            }
        }
    }
}

/// NVLinks from labels: more of them in a row than a GPU has links can only lead to a switch.
fn nvlinks(host: &mut Hardware, devices: &[Device], told: &BTreeMap<(usize, usize), PathLabel>) {
    let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for (&(from, to), &label) in told {
        if let (Device::Gpu(a), Device::Gpu(b), PathLabel::Nvl(links)) = (devices[from], devices[to], label)
            && links <= MOST_LINKS
        {
            pairs.insert((a, b), links);
            pairs.entry((b, a)).or_insert(links);
        }
    }
    let mut sums: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
    for (&(gpu, _), &links) in &pairs {
        let (sum, most) = sums.entry(gpu).or_default();
        *sum += links;
        *most = links.max(*most);
    }
    if sums.values().any(|&(sum, _)| sum > MOST_LINKS) {
        for (&gpu, &(_, most)) in &sums {
            host.gpu_links.extend(bundle(most, gpu, LinkEnd::Switch));
        }
        return;
    }
    for (&(gpu, peer), &links) in &pairs {
        host.gpu_links.extend(bundle(links, gpu, LinkEnd::Gpu(peer)));
    }
    if sums.len() == 2 && sums.values().any(|&(_, most)| most >= 12) {
        host.note(NoteKind::Unseen, "NVLink", "two GPUs are linked, directly or over a switch: the table does not tell which");
    }
}

/// Rows without a header, from the tail of a longer table: where `X` stands tells which column is which. `Err` with their number
/// if they leave doubt, 0 if none starts here.
pub(super) fn headless(lines: &[Line<'_>]) -> Result<Matrix, usize> {
    let row = |line: &Line<'_>| {
        let (name, cells) = line.text.trim().split_once(char::is_whitespace)?;
        let (kind, at) = name.split_at_checked(3)?;
        let row = Row { line: line.number, device: number(at)?, cells: cells.to_owned() };
        let found = self::cells(&row, 1024).0;
        let own = found.iter().position(|label| *label == Some(PathLabel::Local))?;
        let once = found.iter().filter(|label| **label == Some(PathLabel::Local)).count() == 1;
        (once && found.len() > 2 && matches!(kind, "GPU" | "NIC")).then_some((kind == "GPU", row, own, found.len()))
    };
    let rows: Vec<_> = lines.iter().take(256).map_while(row).collect();
    let used = rows.len();
    let width = rows.first().ok_or(0_usize)?.3;
    // A NIC's X tells how many columns the GPUs have.
    let gpus = rows.iter().find_map(|(gpu, row, own, _)| if *gpu { None } else { own.checked_sub(row.device) }).ok_or(used)?;
    let fits = |(gpu, row, own, wide): &(bool, Row, usize, usize)| {
        let column = if *gpu { Some(row.device).filter(|column| *column < gpus) } else { row.device.checked_add(gpus) };
        *wide == width && column == Some(*own)
    };
    if gpus > width || !rows.iter().all(fits) {
        return Err(used);
    }
    let devices = (0..gpus).map(|at| format!("GPU{at}")).chain((0..width - gpus).map(|at| format!("NIC{at}"))).collect();
    let rows = rows.into_iter().map(|(_, row, own, _)| Row { device: own, ..row }).collect();
    Ok(Matrix { devices, columns: vec![Column::Cpus, Column::Numa, Column::GpuNuma], rows, used })
}

#[cfg(test)]
mod tests {
    use super::super::{matrix, text};
    use super::*;

    fn read(text: &str) -> (Hardware, Vec<super::super::Skipped>) {
        let mut skips = Skips::default();
        let table = matrix::read(&text::lines(text)).unwrap();
        assert!(is_labels(&table));
        (host(&table, &HashMap::from([("NIC0".to_owned(), "mlx5_9".to_owned())]), &mut skips), skips.sorted())
    }

    #[test]
    fn labels_that_ran_together_are_split() {
        use PathLabel::{Node, Nvl, Pix, Sys};
        assert_eq!(labels("SYSSYS"), Some(vec![Sys, Sys]));
        assert_eq!(labels("NODENODEPIX"), Some(vec![Node, Node, Pix]));
        assert_eq!(labels("NV12NV4"), Some(vec![Nvl(12), Nvl(4)]));
        for wrong in ["", "SYSTEM", "NV", "NVX", "0-15", "N/A", "é", "NÄ"] {
            assert_eq!(labels(wrong).unwrap_or_default(), [], "{wrong}");
        }
    }

    #[test]
    fn devices_labels_and_affinity_are_told() {
        let (host, skipped) = read(
            "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
             GPU0\t X \tNODE\tPIX\t0-3,8-11\t0\t\tN/A\nGPU1\tNODE\t X \tSYS\t\t1\t\t2\nNIC0\tPIX\tSYS\t X \t\t\t\t\n",
        );
        assert_eq!((host.gpus.len(), host.nics.len(), host.told.len()), (2, 1, 3));
        assert_eq!(host.nics[0].name, "mlx5_9");
        assert_eq!((host.gpus[0].cpus.len(), host.gpus[0].numa), (8, Some(0)));
        assert_eq!((host.gpus[1].cpus.len(), host.gpus[1].numa), (0, Some(1)));
        assert_eq!(host.numa.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(host.told[2].what, ToldWhat::Label(PathLabel::Sys));
        assert!(skipped.is_empty(), "{skipped:?}");
    }

    #[test]
    fn links_to_a_switch_are_told_from_links_to_peers() {
        let (host, _) = read("GPU0 GPU1 GPU2\nGPU0 X NV18 NV18\nGPU1 NV18 X NV18\nGPU2 NV18 NV18 X\n");
        assert_eq!(host.gpu_links.len(), 54);
        assert!(host.gpu_links.iter().all(|link| link.end == LinkEnd::Switch && link.active));
        let (host, _) = read("GPU0 GPU1 GPU2\nGPU0 X NV1 SYS\nGPU1 NV1 X NV2\nGPU2 SYS NV2 X\n");
        let ends: Vec<_> = host.gpu_links.iter().map(|link| (link.gpu, link.end)).collect();
        let peer = LinkEnd::Gpu;
        assert_eq!(ends, [(0, peer(1)), (1, peer(0)), (1, peer(2)), (1, peer(2)), (2, peer(1)), (2, peer(1))]);
    }

    #[test]
    fn broken_rows_are_left_out_and_told() {
        let (host, skipped) = read("GPU0 GPU1 NUMA\nGPU0 X SYS 0\nGPU1 SYS\n");
        assert_eq!((host.told.len(), host.gpus[0].numa), (1, Some(0)));
        assert_eq!(skipped, [super::super::Skipped { line: 3, reason: "1 labels where the header has 2 devices".to_owned() }]);
        let (host, skipped) = read("GPU0 GPU1 NUMA\nGPU0 X N/A 0-1\nGPU1 PIX X 1\n");
        assert_eq!((host.told.len(), skipped.len()), (1, 2));
        let (host, _) = read("GPU0 GPU1\nGPU0 X SYS\nGPU1 PIX X\n");
        assert_eq!(host.notes[0].kind, NoteKind::Lie);
    }

    #[test]
    fn rows_without_a_header_are_read_where_x_tells_the_columns() {
        let tail = "GPU1 SYS X PIX SYSSYS 4-7 1 N/A\nNIC0 SYS PIX X SYSSYS\n";
        let table = headless(&text::lines(tail)).unwrap();
        assert_eq!(table.devices, ["GPU0", "GPU1", "NIC0", "NIC1", "NIC2"]);
        let host = host(&table, &HashMap::new(), &mut Skips::default());
        assert_eq!((host.gpus[1].numa, host.told.len()), (Some(1), 7));
        for doubt in ["GPU1 SYS X PIX\n", "GPU1 SYS X PIX\nNIC0 SYS X PIX\n", "GPU1 SYS SYS X\nNIC0 SYS SYS X\n"] {
            assert!(headless(&text::lines(doubt)).is_err(), "{doubt}");
        }
    }
}
