use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::Map;
use super::boxes::Boxes;
use super::frames::{Frames, elements, invalid};
use crate::plan::PlanError;

/// The different blocks of a map, in the order of (origin, extent), and who holds each.
#[derive(Debug, Clone)]
pub struct Regions {
    pub boxes: Boxes,
    /// numbers of frames, block by block, ascending by location
    frames: Vec<u32>,
    /// where each block's frames begin; one more than blocks
    starts: Vec<u32>,
    /// two blocks that have elements in common without being equal: replicas that are cut differently
    pub uneven: Option<(usize, usize)>,
}

impl Regions {
    /// Rules M3 (no location holds an element twice), M4 (every element is held) and M5 (a piece names exactly those who hold its
    /// elements), by blocks alone.
    pub fn of(frames: &Frames) -> Result<Self, PlanError> {
        let mut regions = Self::grouped(frames);
        regions.twice(frames)?;
        regions.holders(frames)?;
        let filled = || (0..regions.boxes.len()).map(|block| regions.boxes.volume(block)).sum::<u64>();
        // Blocks that are apart cover the tensor where their volumes add up to its own.
        if regions.uneven.is_none() && Some(filled()) == elements(frames.shape()) {
            return Ok(regions);
        }
        if let Some((corner, extent)) = regions.boxes.gap(frames.shape()) {
            let what = format!("rule M4: no location holds the block of shape {extent:?} at {corner:?}");
            return Err(invalid(frames.place(), what));
        }
        Ok(regions)
    }

    /// Who holds a block: numbers of frames, ascending by location.
    pub fn held(&self, block: usize) -> &[u32] {
        &self.frames[self.starts[block] as usize..self.starts[block + 1] as usize]
    }

    fn grouped(frames: &Frames) -> Self {
        let mut order: Vec<u32> = (0..frames.len() as u32).collect();
        // Frames are in the order of their locations already.
        order.sort_by(|&one, &other| frames.boxes.order(one as usize, other as usize));
        let mut boxes = Boxes::new(frames.shape().len());
        let mut starts = Vec::new();
        for (at, &frame) in order.iter().enumerate() {
            if at == 0 || frames.boxes.order(order[at - 1] as usize, frame as usize).is_ne() {
                boxes.push(frames.boxes.low(frame as usize), &frames.boxes.extent(frame as usize));
                starts.push(at as u32);
            }
        }
        starts.push(order.len() as u32);
        Self { boxes, frames: order, starts, uneven: None }
    }

    /// M3 for equal blocks.
    fn twice(&self, frames: &Frames) -> Result<(), PlanError> {
        for block in 0..self.boxes.len() {
            let twice = self.held(block).windows(2).find(|pair| frames.location(pair[0] as usize) == frames.location(pair[1] as usize));
            if let Some(&[one, other]) = twice {
                let what = format!("rule M3: piece {} holds the same elements", frames.piece(one as usize));
                return Err(invalid(&frames.at(other as usize), what));
            }
        }
        Ok(())
    }

    /// M5, and M3 for blocks that are not equal.
    fn holders(&mut self, frames: &Frames) -> Result<(), PlanError> {
        // Elements of a block that are also in other blocks, by who holds those.
        let mut elsewhere: BTreeMap<usize, BTreeMap<i64, u64>> = BTreeMap::new();
        let mut fault = None;
        let mut uneven = None;
        let mut meet = |one: usize, other: usize| {
            if one == other {
                return ControlFlow::Continue(());
            }
            uneven = uneven.or(Some((one.min(other), one.max(other))));
            let own: BTreeSet<i64> = self.held(one).iter().map(|&frame| frames.location(frame as usize)).collect();
            let shared = self.boxes.common(one, &self.boxes, other).map_or(0, |(_, extent)| extent.iter().product());
            for &frame in self.held(other) {
                let location = frames.location(frame as usize);
                if own.contains(&location) {
                    let mine = self.held(one).iter().find(|&&mine| frames.location(mine as usize) == location).copied();
                    fault = mine.map(|mine| (mine.min(frame) as usize, mine.max(frame) as usize));
                    return ControlFlow::Break(());
                }
                *elsewhere.entry(one).or_default().entry(location).or_default() += shared;
            }
            ControlFlow::Continue(())
        };
        if self.boxes.overlap().is_some() {
            let _ = self.boxes.join(&self.boxes, &mut meet);
        }
        if let Some((one, other)) = fault {
            let what = format!("rule M3: piece {} holds some of the same elements", frames.piece(one));
            return Err(invalid(&frames.at(other), what));
        }
        self.uneven = uneven;
        for block in 0..self.boxes.len() {
            let held = self.held(block);
            let others = elsewhere.get(&block);
            for &frame in held {
                let frame = frame as usize;
                let named = frames.holders(frame);
                let own = held.iter().map(|&frame| frames.location(frame as usize));
                if others.is_none() {
                    if own.clone().eq(named.iter().copied()) {
                        continue;
                    }
                    let what = format!("rule M5: it names {named:?} as who hold its elements; {:?} do", own.collect::<BTreeSet<i64>>());
                    return Err(invalid(&frames.at(frame), what));
                }
                let volume = self.boxes.volume(block);
                let mut covered: BTreeMap<i64, u64> = others.cloned().unwrap_or_default();
                covered.extend(own.map(|location| (location, volume)));
                if let Some((location, part)) = covered.iter().find(|(location, part)| named.contains(location) && **part != volume) {
                    let what = format!("rule M5: it names location {location}, which holds only {part} of its {volume} elements");
                    return Err(invalid(&frames.at(frame), what));
                }
                if !covered.keys().eq(named.iter()) {
                    let actual: BTreeSet<i64> = covered.into_keys().collect();
                    let what = format!("rule M5: it names {named:?} as who hold its elements; {actual:?} hold some or all of them");
                    return Err(invalid(&frames.at(frame), what));
                }
            }
        }
        Ok(())
    }
}

/// Rules M1 to M5 of a map, by its blocks alone: nothing is walked element by element.
///
/// # Errors
/// The rule that is broken, with location and piece; what is legal but no block of the tensor is told as not supported.
pub fn check(map: &Map, parameter: &str, side: &'static str) -> Result<(), PlanError> {
    Regions::of(&Frames::of(map, parameter, side)?).map(|_| ())
}
