use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Budget, Candidate, Request, Settings};
use crate::plan::map::{Frames, Map, Maps, Regions};
use crate::plan::{At, PlanError, Statistics};

/// A parameter on its way to a plan.
pub(super) struct Draft {
    pub(super) place: At,
    pub(super) shape: Vec<u64>,
    /// how many of all requests are its own
    pub(super) requests: usize,
    /// as far as they are known before segments are
    pub(super) statistics: Statistics,
}

/// Every region that somebody must send, in the order of (parameter, target, origin).
pub(super) fn of(target: &Maps, source: &Maps, settings: &Settings) -> Result<(Vec<Request>, Vec<Draft>), PlanError> {
    let mut requests = Vec::new();
    let mut drafts = Vec::with_capacity(target.len());
    for (parameter, target) in target {
        let place = At { parameter: parameter.clone(), ..At::default() };
        let Some(source) = source.get(parameter) else {
            return Err(PlanError::Invalid { place, what: "the source map does not have it".to_owned() });
        };
        let before = requests.len();
        let statistics = one(&place, target, source, settings, &mut requests)?;
        drafts.push(Draft { place, shape: target.shape.clone(), requests: requests.len() - before, statistics });
    }
    Ok((requests, drafts))
}

fn one(place: &At, target: &Map, source: &Map, settings: &Settings, into: &mut Vec<Request>) -> Result<Statistics, PlanError> {
    if target.shape != source.shape {
        let what = format!("shape {:?} in the target map, {:?} in the source map", target.shape, source.shape);
        return Err(PlanError::Invalid { place: place.clone(), what });
    }
    let budget = &settings.budget;
    for (map, side) in [(source, "source map"), (target, "target map")] {
        affordable(map, budget, &At { side, ..place.clone() })?;
    }
    let sources = Frames::of(source, &place.parameter, "source map")?;
    let targets = Frames::of(target, &place.parameter, "target map")?;
    for frames in [&sources, &targets] {
        unscaled(frames, if std::ptr::eq(frames, &raw const sources) { source } else { target })?;
    }
    let regions = Regions::of(&sources)?;
    if let Some((one, other)) = regions.uneven {
        let (one, other) = (sources.at(regions.held(one)[0] as usize), sources.at(regions.held(other)[0] as usize));
        let of = |at: &At| format!("piece {} of location {}", at.piece.unwrap_or_default(), at.location.unwrap_or_default());
        let what = format!(
            "replicas are cut differently ({} and {} overlap without being equal); `toposcope plan union` cuts them alike",
            of(&one),
            of(&other)
        );
        return Err(PlanError::Unsupported { place: one, what });
    }
    Regions::of(&targets)?;
    let (of_source, of_target) = (regions.boxes.len(), targets.len());
    let squared = of_source.saturating_mul(of_source);
    Budget::keeps("pairs of source regions", squared, budget.pair_checks, place)?;
    let pair_checks = of_source.saturating_mul(of_target);
    Budget::keeps("pairs of a source region and a target piece", pair_checks, budget.pair_checks, place)?;
    ask(place, (&sources, &regions), &targets, settings, into)?;
    Ok(Statistics { source_pieces: of_source, target_pieces: of_target, pair_checks, ..Statistics::default() })
}

/// What the reference refuses before any work.
fn affordable(map: &Map, budget: &Budget, place: &At) -> Result<(), PlanError> {
    Budget::keeps("axes", map.shape.len(), budget.axes, place)?;
    let pieces = map.shards.values().map(|shard| shard.pieces.len()).sum();
    Budget::keeps("pieces", pieces, budget.pieces, place)?;
    let full = map.shards.values().flat_map(|shard| &shard.pieces).filter(|piece| !piece.shape.contains(&0)).count();
    Budget::keeps("pairs of pieces", full.saturating_mul(full), budget.pair_checks, place)?;
    Ok(())
}

/// A scale would have to be applied on the way.
fn unscaled(frames: &Frames, map: &Map) -> Result<(), PlanError> {
    for frame in 0..frames.len() {
        let scale = map.shards[&frames.location(frame)].pieces[frames.piece(frame)].scale;
        if (scale - 1.0).abs() > 0.0 {
            let what = format!("scale {scale}; a plan copies elements as they are");
            return Err(PlanError::Unsupported { place: frames.at(frame), what });
        }
    }
    Ok(())
}

/// The requests of one parameter.
fn ask(
    place: &At,
    (sources, regions): (&Frames, &Regions),
    targets: &Frames,
    settings: &Settings,
    into: &mut Vec<Request>,
) -> Result<(), PlanError> {
    let process = |side: &'static str, location: i64| match settings.endpoints {
        None => Ok(None),
        Some(endpoints) => {
            let of = if side == "target map" { &endpoints.target } else { &endpoints.source };
            let what = || format!("the endpoints name no process for it (under {:?})", &side[..6]);
            let at = At { side, location: Some(location), ..place.clone() };
            of.get(&location).map(|&process| Some(process)).ok_or_else(|| PlanError::Invalid { place: at, what: what() })
        }
    };
    let parameter: Arc<str> = Arc::from(&*place.parameter);
    let mut filled = vec![0_u64; targets.len()];
    let element_size = settings.element_size.of(&place.parameter);
    let pairs = pairs(targets, regions);
    into.reserve(pairs.len());
    for (frame, region) in pairs {
        let (frame, region) = (frame as usize, region as usize);
        let Some((origin, shape)) = targets.boxes.common(frame, &regions.boxes, region) else { continue };
        filled[frame] += shape.iter().product::<u64>();
        let candidates = regions.held(region).iter().map(|&held| {
            let held = held as usize;
            let location = sources.location(held);
            let process = process("source map", location)?;
            Ok(Candidate { location, process, offset: sources.address(held, &origin), strides: sources.strides(held).to_vec() })
        });
        let candidates = candidates.collect::<Result<Vec<_>, PlanError>>()?;
        let target = targets.location(frame);
        into.push(Request {
            parameter: Arc::clone(&parameter),
            target,
            process: process("target map", target)?,
            offset: targets.address(frame, &origin),
            strides: targets.strides(frame).to_vec(),
            origin,
            shape,
            candidates,
            element_size,
        });
    }
    // Regions are apart, so these sums are exact for each block; a sum over the plan would let a gap and an overlap cancel out.
    if let Some(short) = (0..targets.len()).find(|&frame| filled[frame] != targets.boxes.volume(frame)) {
        let what = format!("only {} of its {} elements have a source", filled[short], targets.boxes.volume(short));
        return Err(PlanError::Invalid { place: targets.at(short), what });
    }
    Ok(())
}

/// Target pieces and source regions that have elements in common, in the order of (target location, first coordinate in common).
fn pairs(targets: &Frames, regions: &Regions) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(i64, u32, u32)> = Vec::new();
    let _ = targets.boxes.join(&regions.boxes, &mut |frame, region| {
        pairs.push((targets.location(frame), frame as u32, region as u32));
        ControlFlow::<()>::Continue(())
    });
    let corner = |frame: u32, region: u32| {
        let (one, other) = (targets.boxes.low(frame as usize), regions.boxes.low(region as usize));
        one.iter().zip(other).map(|(&one, &other)| one.max(other))
    };
    // Blocks of a location are apart (M3), so no two of its pairs begin at the same element.
    pairs.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| corner(one.1, one.2).cmp(corner(other.1, other.2))));
    pairs.into_iter().map(|(_, frame, region)| (frame, region)).collect()
}
