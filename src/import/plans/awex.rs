//! Awex's debug dumps of its transfer plan: one operation for each overlap of a sender's shard and a receiver's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;

use crate::plan::MOST_RANKS;
use crate::plan::files::{BYTES_PER_PEER, FileError, Given, parse};
use crate::plan::{Batch, Endpoints, Parameter, Place, Plan, Segment};
use crate::units::plain;

/// What of an operation is needed; its slices and further labels tell nothing else.
#[derive(Deserialize)]
struct Operation {
    send_rank: usize,
    send_shard_meta: Shard,
    send_offset: Vec<u64>,
    recv_rank: usize,
    recv_shard_meta: Shard,
    recv_offset: Vec<u64>,
    overlap_shape: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
struct Shard {
    name: String,
    shape: Vec<u64>,
    /// of the shard in the tensor
    global_offset: Vec<u64>,
    /// such as `torch.bfloat16`
    dtype: String,
}

/// A list of operations, of all ranks.
pub(super) fn global(text: &str, given: &Given) -> Result<Batch, FileError> {
    let operations: Vec<Operation> = parse(text)?;
    batch(operations.into_iter().enumerate().map(|(number, operation)| (format!("operation {number}"), operation)), given)
}

/// Operations of one rank, by its peer.
pub(super) fn local(text: &str, given: &Given) -> Result<Batch, FileError> {
    let peers: BTreeMap<u64, Vec<Operation>> = parse(text)?;
    let of = |(peer, operations): (u64, Vec<Operation>)| {
        operations.into_iter().enumerate().map(move |(number, operation)| (format!("peer {peer}, operation {number}"), operation))
    };
    batch(peers.into_iter().flat_map(of), given)
}

/// Bytes of an element of a torch type.
fn size_of(dtype: &str) -> Option<u64> {
    match dtype.strip_prefix("torch.").unwrap_or(dtype) {
        "float64" | "double" | "int64" | "long" | "uint64" | "complex64" => Some(8),
        "float32" | "float" | "int32" | "int" | "uint32" => Some(4),
        "bfloat16" | "float16" | "half" | "int16" | "short" | "uint16" => Some(2),
        "int8" | "uint8" | "bool" => Some(1),
        other if other.starts_with("float8_") => Some(1),
        _ => None,
    }
}

fn batch(operations: impl Iterator<Item = (String, Operation)>, given: &Given) -> Result<Batch, FileError> {
    let mut parameters: BTreeMap<String, Parameter> = BTreeMap::new();
    let mut shards: BTreeMap<(String, bool, usize), Shard> = BTreeMap::new();
    let mut endpoints = Endpoints::default();
    for (place, operation) in operations {
        let name = plain(&operation.send_shard_meta.name);
        let place = format!("{place} ({name})");
        let (segment, logical, element_size) = segment(&operation).map_err(|what| FileError::new(&place, what))?;
        let Operation { send_rank, send_shard_meta, recv_rank, recv_shard_meta, .. } = operation;
        for (sends, rank, shard) in [(true, send_rank, send_shard_meta), (false, recv_rank, recv_shard_meta)] {
            match shards.entry((name.clone(), sends, rank)) {
                Entry::Occupied(known) if *known.get() != shard => {
                    let what = format!("rank {rank} has another shard of it in an earlier operation: expected one a rank");
                    return Err(FileError::new(&place, what));
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(free) => _ = free.insert(shard),
            }
        }
        let new = || Parameter { name: name.clone(), plan: Plan { logical_shape: logical.clone(), segments: Vec::new() }, element_size };
        let parameter = parameters.entry(name.clone()).or_insert_with(new);
        if parameter.element_size != element_size || parameter.plan.logical_shape.len() != logical.len() {
            return Err(FileError::new(&place, "another type or number of axes than in earlier operations of it"));
        }
        for (size, reached) in parameter.plan.logical_shape.iter_mut().zip(logical) {
            *size = reached.max(*size);
        }
        endpoints.source.insert(segment.source.0, send_rank);
        endpoints.target.insert(segment.target.0, recv_rank);
        parameter.plan.segments.push(segment);
    }
    let mut parameters: Vec<Parameter> = parameters.into_values().collect();
    for parameter in &mut parameters {
        parameter.plan.segments.sort_by(|a, b| (&a.target, &a.source, &a.shape).cmp(&(&b.target, &b.source, &b.shape)));
    }
    Ok(Batch {
        parameters,
        endpoints: given.endpoints.clone().unwrap_or(endpoints),
        bytes_per_peer: given.bytes_per_peer.unwrap_or(BYTES_PER_PEER),
    })
}

/// The copy that an operation is, how far its shards reach in the tensor, and the bytes of an element.
fn segment(operation: &Operation) -> Result<(Segment, Vec<u64>, u64), String> {
    let Operation { send_rank, send_shard_meta: sent, send_offset, recv_rank, recv_shard_meta: received, recv_offset, overlap_shape } =
        operation;
    if sent.name != received.name {
        return Err(format!("it is received as {:?}: expected the same name", plain(&received.name)));
    }
    if sent.dtype != received.dtype {
        return Err(format!("{} is sent, {} received: expected one type", plain(&sent.dtype), plain(&received.dtype)));
    }
    let size =
        size_of(&sent.dtype).ok_or_else(|| format!("dtype {:?}: expected a torch type such as torch.bfloat16", plain(&sent.dtype)))?;
    let mut logical = vec![0; overlap_shape.len()];
    let mut sides = Vec::with_capacity(2);
    for (side, &rank, shard, offset) in [("send", send_rank, sent, send_offset), ("recv", recv_rank, received, recv_offset)] {
        let axes = [shard.shape.len(), shard.global_offset.len(), offset.len()];
        if axes != [overlap_shape.len(); 3] {
            let what = format!("{side}: {axes:?} axes of shape, global_offset and {side}_offset");
            return Err(format!("{what}: expected {} each, as in overlap_shape", overlap_shape.len()));
        }
        if rank >= MOST_RANKS {
            return Err(format!("{side}_rank {rank}: expected a rank below {MOST_RANKS}"));
        }
        let mut strides = vec![1_i64; axes[0]];
        let (mut at, mut next) = (0_u64, 1_u64);
        for a in (0..axes[0]).rev() {
            let (from, extent, whole) = (offset[a], overlap_shape[a], shard.shape[a]);
            let fits = extent > 0 && from.checked_add(extent).is_some_and(|end| end <= whole);
            if !fits {
                return Err(format!("{side}: {extent} elements from {from} on along axis {a} of a shard that has {whole}"));
            }
            let reached = shard.global_offset[a].checked_add(whole).filter(|&end| i64::try_from(end).is_ok());
            logical[a] = logical[a].max(reached.ok_or("a shard lies further out than can be counted")?);
            strides[a] = next.cast_signed();
            let step = next;
            next =
                next.checked_mul(whole).filter(|&all| i64::try_from(all).is_ok()).ok_or("a shard has more elements than can be counted")?;
            // Within the shard, whose elements can be counted.
            at += from * step;
        }
        sides.push(Place(i64::try_from(rank).unwrap_or_default(), at, strides));
    }
    let same = |a: usize| {
        i128::from(sent.global_offset[a]) + i128::from(send_offset[a]) == i128::from(received.global_offset[a]) + i128::from(recv_offset[a])
    };
    if let Some(axis) = (0..overlap_shape.len()).find(|&a| !same(a)) {
        return Err(format!("sender and receiver mean different elements along axis {axis}: global_offset + offset differ"));
    }
    match <[Place; 2]>::try_from(sides) {
        Ok([source, target]) => Ok((Segment { shape: overlap_shape.clone(), source, target }, logical, size)),
        Err(_) => Err("no two sides".to_owned()),
    }
}
