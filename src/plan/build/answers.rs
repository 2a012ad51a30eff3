use super::{Answer, Part, Request};
use crate::plan::map::Boxes;
use crate::plan::{At, Place, PlanError, Segment};

/// An answer names holders of its request, and its parts tile it: each inside, apart from each other, together all of it, none
/// smaller than pays. Then whatever it chose copies the same data.
pub(super) fn check(request: &Request, answer: &Answer, min_split_bytes: u64) -> Result<(), PlanError> {
    let fail = |what: String| {
        let place = At { parameter: request.parameter.to_string(), side: "target map", location: Some(request.target), piece: None };
        Err(PlanError::Policy { place, what: format!("region of shape {:?} at {:?}: {what}", request.shape, request.origin) })
    };
    let held = |location: i64| request.candidates.iter().any(|candidate| candidate.location == location);
    let nobody = |location: i64| {
        let holders: Vec<i64> = request.candidates.iter().map(|candidate| candidate.location).collect();
        format!("location {location} does not hold it; {holders:?} do")
    };
    let parts = match answer {
        Answer::Whole(location) if held(*location) => return Ok(()),
        Answer::Whole(location) => return fail(nobody(*location)),
        Answer::Parts(parts) => parts,
    };
    let axes = request.shape.len();
    let mut boxes = Boxes::new(axes);
    let mut sum = 0_u64;
    for (number, part) in parts.iter().enumerate() {
        let Part { origin, shape, source } = part;
        let what = |what: String| fail(format!("part {number}: {what}"));
        if !held(*source) {
            return what(nobody(*source));
        }
        if origin.len() != axes || shape.len() != axes || !inside(request, part) {
            return what(format!("shape {shape:?} at {origin:?} is not within it"));
        }
        if shape.contains(&0) {
            return what(format!("shape {shape:?} is empty"));
        }
        let elements: u64 = shape.iter().product();
        let bytes = elements.saturating_mul(request.element_size.unwrap_or(1));
        if parts.len() > 1 && bytes < min_split_bytes {
            let unit = if request.element_size.is_some() { "bytes" } else { "elements (of unknown size)" };
            return what(format!("{bytes} {unit}; a part has {min_split_bytes} bytes or more"));
        }
        boxes.push(origin, shape);
        sum = sum.saturating_add(elements);
    }
    if let Some((one, other)) = boxes.overlap() {
        return fail(format!("parts {one} and {other} overlap"));
    }
    let whole: u64 = request.shape.iter().product();
    if sum != whole {
        return fail(format!("its parts have {sum} of its {whole} elements"));
    }
    Ok(())
}

fn inside(request: &Request, part: &Part) -> bool {
    let own = request.origin.iter().zip(&request.shape);
    let mut axes = part.origin.iter().zip(&part.shape).zip(own);
    axes.all(|((&at, &extent), (&from, &whole))| at >= from && extent <= whole && at - from <= whole - extent)
}

/// The segments of an answer that was checked.
pub(super) fn segments(request: Request, answer: Answer, into: &mut Vec<Segment>) {
    let Request { target, origin, shape, offset, strides, candidates, .. } = request;
    match answer {
        Answer::Whole(location) => {
            let Some(from) = candidates.into_iter().find(|candidate| candidate.location == location) else { return };
            let source = Place(location, from.offset, from.strides);
            into.push(Segment { shape, source, target: Place(target, offset, strides) });
        }
        Answer::Parts(parts) => {
            for part in parts {
                let Some(from) = candidates.iter().find(|candidate| candidate.location == part.source) else { continue };
                let moved = |start: u64, strides: &[i64]| {
                    let steps = part.origin.iter().zip(&origin).zip(strides);
                    start.wrapping_add_signed(steps.map(|((at, own), stride)| (at - own).cast_signed() * stride).sum())
                };
                let source = Place(part.source, moved(from.offset, &from.strides), from.strides.clone());
                let target = Place(target, moved(offset, &strides), strides.clone());
                into.push(Segment { shape: part.shape, source, target });
            }
        }
    }
}
