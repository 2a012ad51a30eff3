//! Path classes between the ranks (or GPUs) of a host and its NICs, as `nvidia-smi topo -m` shows them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::text::{left, panel, put, put_at, right, span};
use super::{HitMap, Scene};
use crate::topology::hardware::{Device, Hardware};
use crate::topology::{PathLabel, label};
use crate::tui::atlas::short;
use crate::tui::widgets::heat;
use crate::units::plain;

/// Columns of a class and the space before it.
const CELL: usize = 5;

/// A row or a column.
#[derive(Clone)]
struct End {
    name: String,
    device: Device,
    rank: Option<usize>,
}

/// Draw the panel.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let topology = &scene.model.header.topology;
    let host = scene.atlas.at(scene.ui.topology.at).and_then(|(_, node)| node.host);
    // On a line that is no host's, the host of the selected pair.
    let host = host.or_else(|| scene.atlas.router.end(scene.ui.matrix.cursor.0).map(|(host, _)| host));
    let Some((at, hardware)) = host.and_then(|at| Some((at, topology.hardware.get(at)?))) else {
        let inner = panel(buf, area, look, &Line::from(span("path classes", look.title())));
        put(buf, inner, 0, &Line::from(span(" nothing is known of this host", look.dim())));
        return;
    };
    let ends = ends(scene, at, hardware);
    let nics = nics(hardware);
    let what = if ends.first().is_some_and(|end| end.rank.is_some()) { "ranks" } else { "GPUs" };
    let mut title = vec!["path classes".to_owned(), format!(" · {}", plain(&hardware.host)), format!(" · {what}")];
    let header = ends.iter().map(|end| super::text::width(&end.name)).max().unwrap_or(0).clamp(1, 12);
    let across = usize::from(area.width.saturating_sub(2)).saturating_sub(header + 2) / CELL;
    if across < ends.len() {
        title.push(format!(" · {across} of {}", ends.len()));
    }
    let title = super::text::fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    if ends.is_empty() {
        put(buf, inner, 0, &Line::from(span(" no rank and no GPU is on this host", look.dim())));
        return;
    }
    let down = usize::from(inner.height).saturating_sub(2);
    // A window around the selected pair where not all fit; NICs have the columns that are left.
    let (from, to) = scene.ui.matrix.cursor;
    let place = |rank: usize| ends.iter().position(|end| end.rank == Some(rank)).unwrap_or(0);
    let begin = |at: usize, room: usize| at.saturating_sub(room / 2).min(ends.len().saturating_sub(room));
    let rows: Vec<&End> = ends.iter().skip(begin(place(from), down)).take(down).collect();
    let mut columns: Vec<&End> = ends.iter().skip(begin(place(to), across)).take(across).collect();
    columns.extend(nics.iter().take(across.saturating_sub(columns.len())));
    for (x, column) in columns.iter().enumerate() {
        let x = (header + 2 + x * CELL) as u16;
        put_at(buf, inner, x, 0, &Line::from(span(right(&column.name, CELL), look.dim())));
    }
    for (y, row) in (1_u16..).zip(&rows) {
        put(buf, inner, y, &Line::from(span(format!(" {}", left(&row.name, header)), look.dim())));
        for (x, column) in columns.iter().enumerate() {
            let told = match (row.rank, column.rank) {
                (Some(from), Some(to)) => scene.atlas.router.label(from, to),
                _ => label(hardware, row.device, column.device),
            };
            let text = told.map_or_else(|| "?".to_owned(), |label| label.to_string());
            let x = (header + 2 + x * CELL) as u16;
            let pair = row.rank.zip(column.rank);
            let mut style = told.map_or_else(|| look.dim(), |label| style(scene, label));
            if pair == Some((from, to)) {
                style = style.add_modifier(Modifier::REVERSED | Modifier::BOLD);
            }
            // A column stays free between cells.
            put_at(buf, inner, x + 1, y, &Line::from(span(right(&text, CELL - 1), style)));
            if let Some(pair) = pair {
                let cell = Rect { x: inner.x + x + 1, y: inner.y + y, width: CELL as u16 - 1, height: 1 };
                hits.pairs.push((cell.intersection(inner), pair));
            }
        }
    }
    let y = rows.len() as u16 + 1;
    if nics.iter().any(|nic| nic.name.starts_with("NIC")) && y < inner.height {
        let named = hardware.nics.iter().filter(|nic| nic.pci.is_some()).enumerate();
        let named: Vec<String> = named.map(|(at, nic)| format!("NIC{at} {}", plain(&nic.name))).collect();
        for (y, line) in (y..inner.height).zip(super::text::wrap(&named.join(", "), usize::from(inner.width).saturating_sub(2))) {
            put(buf, inner, y, &Line::from(span(format!(" {line}"), look.dim())));
        }
    }
}

/// The ranks of a host, or its GPUs where it has no ranks.
fn ends(scene: &Scene<'_>, at: usize, hardware: &Hardware) -> Vec<End> {
    let router = &scene.atlas.router;
    let ranks = (0..scene.model.world()).filter_map(|rank| {
        let (host, device) = router.end(rank)?;
        (host == at).then(|| End { name: format!("rank {rank}"), device, rank: Some(rank) })
    });
    let ends: Vec<End> = ranks.collect();
    if !ends.is_empty() {
        // In a column there is no room for more than the number.
        return ends.into_iter().map(|end| End { name: end.rank.map_or_else(String::new, |rank| rank.to_string()), ..end }).collect();
    }
    let gpu = |(at, gpu): (usize, &crate::topology::hardware::Gpu)| End {
        name: short(&format!("GPU{}", gpu.index)),
        device: Device::Gpu(at),
        rank: None,
    };
    hardware.gpus.iter().enumerate().map(gpu).collect()
}

/// NICs that sit on the PCI tree, as nvidia-smi numbers them.
fn nics(hardware: &Hardware) -> Vec<End> {
    let real = hardware.nics.iter().enumerate().filter(|(_, nic)| nic.pci.is_some());
    real.enumerate().map(|(number, (at, _))| End { name: format!("NIC{number}"), device: Device::Nic(at), rank: None }).collect()
}

/// Nearer is brighter.
fn style(scene: &Scene<'_>, label: PathLabel) -> Style {
    let near = match label {
        PathLabel::Local => return scene.look.dim(),
        PathLabel::Nvl(_) => 7.0,
        PathLabel::Pix => 6.0,
        PathLabel::Pxb => 5.0,
        PathLabel::Phb => 4.0,
        PathLabel::Node => 3.0,
        PathLabel::Sys => 2.0,
        PathLabel::Net => 1.0,
    };
    heat::style(&scene.look.theme, near, (1.0, 7.0)).unwrap_or_else(|| scene.look.text())
}
