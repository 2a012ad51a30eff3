//! Mooncake's weight placements: which participant holds which box of which tensor.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Layout;
use crate::plan::files::{FileError, parse};
use crate::plan::map::{Map, Maps, Piece, Shard, Walk, elements, row_major};
use crate::plan::union;
use crate::units::plain;

#[derive(Deserialize)]
struct Document {
    topology: Topology,
    tensors: Vec<Tensor>,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Topology {
    participants: Vec<Participant>,
}

#[derive(Deserialize)]
struct Participant {
    participant_id: String,
}

#[derive(Deserialize)]
struct Tensor {
    #[serde(rename = "tensor_id")]
    id: String,
    global_shape: Vec<u64>,
    /// bytes of an element
    itemsize: u64,
}

#[derive(Deserialize)]
struct Part {
    participant_id: String,
    fragments: Vec<Fragment>,
}

#[derive(Deserialize)]
struct Fragment {
    tensor_id: String,
    global_offset: Vec<u64>,
    local_shape: Vec<u64>,
    nbytes: u64,
}

/// Read a placement. Every fragment is a dense buffer; those that a participant holds of one tensor follow each other in its shard.
pub(super) fn read(text: &str) -> Result<Layout, FileError> {
    let Document { topology, tensors, parts } = parse(text)?;
    let mut locations: BTreeMap<&str, i64> = BTreeMap::new();
    for (number, Participant { participant_id }) in (0_i64..).zip(&topology.participants) {
        if locations.insert(participant_id, number).is_some() {
            return Err(FileError::new(format!("topology, participant {number}"), format!("{participant_id:?} stands twice")));
        }
    }
    let mut known: BTreeMap<&str, &Tensor> = BTreeMap::new();
    for (number, tensor) in tensors.iter().enumerate() {
        let place = || format!("tensor {number} ({})", tensor.id);
        if known.insert(&tensor.id, tensor).is_some() {
            return Err(FileError::new(place(), "stands twice"));
        }
        if tensor.itemsize == 0 {
            return Err(FileError::new(place(), "itemsize is 0: expected bytes of an element, 1 or more"));
        }
        elements(&tensor.global_shape).ok_or_else(|| FileError::new(place(), "global_shape has more elements than can be counted"))?;
    }
    let mut layouts = Vec::with_capacity(parts.len());
    let mut seen = BTreeSet::new();
    for (number, Part { participant_id, fragments }) in parts.iter().enumerate() {
        let place = format!("part {number} ({participant_id})");
        let Some(&location) = locations.get(&participant_id[..]) else {
            return Err(FileError::new(place, "its participant_id is none of the topology's"));
        };
        if !seen.insert(location) {
            return Err(FileError::new(place, "stands twice: expected one part of each participant"));
        }
        let mut own = Maps::new();
        for (number, fragment) in fragments.iter().enumerate() {
            let place = format!("{place}, fragment {number} ({})", fragment.tensor_id);
            let Some(tensor) = known.get(&fragment.tensor_id[..]) else {
                return Err(FileError::new(place, "its tensor_id is none of the tensors"));
            };
            add(&mut own, location, tensor, fragment).map_err(|what| FileError::new(place, what))?;
        }
        layouts.push(own);
    }
    let maps = if layouts.is_empty() { Maps::new() } else { union(&layouts).map_err(|error| FileError::new("", error.to_string()))? };
    if let Some(tensor) = tensors.iter().find(|tensor| !maps.contains_key(&plain(&tensor.id))) {
        return Err(FileError::new(format!("tensor {}", tensor.id), "no part holds any of it"));
    }
    Ok(Layout {
        maps,
        element_sizes: tensors.iter().map(|tensor| (plain(&tensor.id), tensor.itemsize)).collect(),
        locations: topology.participants.iter().map(|participant| plain(&participant.participant_id)).collect(),
    })
}

/// Add a fragment to what a participant holds.
fn add(own: &mut Maps, location: i64, tensor: &Tensor, fragment: &Fragment) -> Result<(), String> {
    let (shape, offset) = (&fragment.local_shape, &fragment.global_offset);
    let axes = tensor.global_shape.len();
    if shape.len() != axes || offset.len() != axes {
        return Err(format!(
            "{} and {} axes of local_shape and global_offset: expected {axes}, as in global_shape",
            shape.len(),
            offset.len()
        ));
    }
    for (axis, ((&extent, &from), &whole)) in shape.iter().zip(offset).zip(&tensor.global_shape).enumerate() {
        if extent == 0 || from.checked_add(extent).is_none_or(|end| end > whole) {
            return Err(format!("{extent} elements from {from} on along axis {axis} of a tensor that has {whole}"));
        }
    }
    let uncounted = "more elements than can be counted";
    let rows = row_major(&tensor.global_shape);
    let elements = elements(shape).ok_or(uncounted)?;
    if elements.checked_mul(tensor.itemsize) != Some(fragment.nbytes) {
        return Err(format!("nbytes is {}: expected {elements} elements of {} bytes", fragment.nbytes, tensor.itemsize));
    }
    // Inside the tensor, whose elements can be counted.
    let at = offset.iter().zip(&rows).map(|(&at, &row)| at * row.cast_unsigned()).sum();
    let new = || Map { shape: tensor.global_shape.clone(), shards: BTreeMap::new() };
    let map = own.entry(plain(&tensor.id)).or_insert_with(new);
    let shard = map.shards.entry(location).or_insert_with(|| Shard { shape: Vec::new(), pieces: Vec::new() });
    let before: u64 = shard.pieces.iter().map(|piece| piece.shape.iter().product::<u64>()).sum();
    let after = before.checked_add(elements).filter(|&all| i64::try_from(all).is_ok()).ok_or(uncounted)?;
    shard.shape = if before == 0 { shape.clone() } else { vec![after] };
    shard.pieces.push(Piece {
        shape: shape.clone(),
        source: Walk { offset: at, strides: rows },
        dest: Walk { offset: before, strides: row_major(shape) },
        holders: BTreeSet::from([location]),
        scale: 1.0,
    });
    Ok(())
}
