//! What is refused before anything is scheduled.

use std::collections::BTreeSet;

use super::ScheduleError;
use crate::plan::{Batch, MOST_RANKS, Place, Segment};
use crate::units::{format_ranks, plain};

/// Whom a schedule is for, ascending.
pub(super) fn processes(batch: &Batch, process: Option<usize>) -> Result<Vec<usize>, ScheduleError> {
    let named: BTreeSet<usize> = batch.endpoints.source.values().chain(batch.endpoints.target.values()).copied().collect();
    if let Some(&process) = named.last().filter(|&&process| process >= MOST_RANKS) {
        return Err(ScheduleError::Endpoints { process, most: MOST_RANKS });
    }
    match process {
        None => Ok(named.into_iter().collect()),
        Some(process) if named.contains(&process) => Ok(vec![process]),
        Some(process) => {
            let named: Vec<usize> = named.into_iter().collect();
            let known = if named.is_empty() { "they name none".to_owned() } else { format_ranks(&named) };
            Err(ScheduleError::Process { process, known })
        }
    }
}

/// At least one element of every parameter can be staged.
pub(super) fn budget(batch: &Batch) -> Result<(), ScheduleError> {
    let bytes_per_peer = batch.bytes_per_peer;
    if bytes_per_peer == 0 {
        return Err(ScheduleError::Budget { parameter: String::new(), bytes_per_peer, element_size: 1 });
    }
    for parameter in &batch.parameters {
        let (element_size, name) = (parameter.element_size, || plain(&parameter.name));
        if element_size == 0 {
            return Err(ScheduleError::ElementSize { parameter: name() });
        }
        if bytes_per_peer < element_size {
            return Err(ScheduleError::Budget { parameter: name(), bytes_per_peer, element_size });
        }
    }
    Ok(())
}

/// Bytes of a segment, or what is wrong with its geometry.
pub(super) fn bytes(segment: &Segment, element_size: u64) -> Result<u64, String> {
    for (side, place) in [("source", &segment.source), ("target", &segment.target)] {
        let (axes, strides) = (segment.shape.len(), place.2.len());
        if axes != strides {
            return Err(format!("{axes} axes in its shape, but {strides} strides at its {side}"));
        }
        reach(&segment.shape, place, element_size).ok_or_else(|| format!("its {side} reaches outside what can be addressed"))?;
    }
    let elements = segment.shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
    let bytes = elements.and_then(|elements| elements.checked_mul(element_size)).filter(|&bytes| i64::try_from(bytes).is_ok());
    bytes.ok_or_else(|| "more bytes than can be counted".to_owned())
}

/// First and last byte address of a region are in 0..2^63: no address of it wraps.
fn reach(shape: &[u64], place: &Place, element_size: u64) -> Option<()> {
    if shape.contains(&0) {
        return Some(());
    }
    let (mut low, mut high) = (i128::from(place.1), i128::from(place.1));
    for (&size, &stride) in shape.iter().zip(&place.2) {
        let span = i128::from(size - 1).checked_mul(i128::from(stride))?;
        low = low.checked_add(span.min(0))?;
        high = high.checked_add(span.max(0))?;
    }
    let last = high.checked_add(1)?.checked_mul(i128::from(element_size))?;
    (low >= 0 && last <= i128::from(i64::MAX)).then_some(())
}
