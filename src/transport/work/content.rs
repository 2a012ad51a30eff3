//! Content that is a function of its address, so that it can be compared wherever it has travelled.

use serde::{Deserialize, Serialize};

use super::Region;
use super::region::pieces;
use crate::transport::Stop;

/// Address spaces are this far apart: of shards, of flows that have memory of their own.
pub const SPACE: u64 = 1 << 44;
/// A prime, so that content shifted by any power of two does not look right.
const PERIOD: usize = 65_521;
const BLANK: u8 = 0xa5;

/// What a region of memory holds: the content of these addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub region: Region,
    pub address: Region,
}

/// A pseudo-random block, repeated; each repetition changed by a byte of its own.
struct Source(Vec<u8>);

impl Source {
    fn new(seed: u64) -> Self {
        let mut block = vec![0; PERIOD];
        fastrand::Rng::with_seed(seed).fill(&mut block);
        Self(block)
    }

    /// Parts of the content of `length` bytes from `address` on: a piece of the block, and what it is changed by.
    fn parts(&self, address: u64, length: u64) -> impl Iterator<Item = (&[u8], u8)> {
        let period = PERIOD as u64;
        let (mut at, end) = (address, address.saturating_add(length));
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (phase, number) = ((at % period) as usize, at / period);
            let length = ((period - at % period).min(end - at)) as usize;
            at += length as u64;
            Some((&self.0[phase..phase + length], (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8))
        })
    }
}

/// Put content where it belongs.
pub(crate) fn fill(seed: u64, content: &[Content], memory: &mut [u8]) -> Result<(), String> {
    Filling::new(seed, content, memory.len() as u64)?.part(0, memory);
    Ok(())
}

/// Content of a memory that is not one slice: given part by part.
pub(crate) struct Filling<'a> {
    source: Source,
    content: &'a [Content],
    /// each lies behind the one before
    ordered: bool,
}

impl<'a> Filling<'a> {
    /// For so many bytes of memory.
    pub(crate) fn new(seed: u64, content: &'a [Content], memory: u64) -> Result<Self, String> {
        let within = |region: &Region| region.bounds().is_some_and(|(_, end)| end <= memory);
        if let Some(Content { region, .. }) = content.iter().find(|content| !within(&content.region)) {
            return Err(format!("content at {} is outside this rank's memory", region.at));
        }
        let ordered = content.windows(2).all(|pair| ends(&pair[0]).1 <= ends(&pair[1]).0);
        Ok(Self { source: Source::new(seed), content, ordered })
    }

    /// Fill what memory has from `begin` on.
    pub(crate) fn part(&self, begin: u64, memory: &mut [u8]) {
        let end = begin.saturating_add(memory.len() as u64);
        let first = if self.ordered { self.content.partition_point(|content| ends(content).1 <= begin) } else { 0 };
        let near = self.content[first..].iter().take_while(|content| !self.ordered || ends(content).0 < end);
        for Content { region, address } in near.filter(|content| ends(content).1 > begin && ends(content).0 < end) {
            let _ = pieces(std::slice::from_ref(region), std::slice::from_ref(address), |at, address, length| {
                let (low, high) = (at.max(begin), (at + length).min(end));
                if low >= high {
                    return Ok::<(), ()>(());
                }
                let mut place = &mut memory[(low - begin) as usize..(high - begin) as usize];
                for (part, change) in self.source.parts(address + (low - at), high - low) {
                    let (now, rest) = place.split_at_mut(part.len());
                    now.iter_mut().zip(part).for_each(|(to, from)| *to = from ^ change);
                    place = rest;
                }
                Ok(())
            });
        }
    }
}

/// Where a content begins and ends.
fn ends(content: &Content) -> (u64, u64) {
    content.region.bounds().unwrap_or((0, u64::MAX))
}

/// Overwrite memory before a run.
pub(crate) fn clear(memory: &mut [u8]) {
    memory.fill(BLANK);
}

/// Why bytes are not known to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// the number of the first wrong one
    Byte(u64),
    /// they could not be looked at
    Unread(Stop),
}

/// Compares what has arrived with what was sent.
pub(super) struct Check {
    source: Source,
    got: Vec<u8>,
}

/// Bytes that are compared at a time.
const STEP: u64 = 64 << 10;

impl Check {
    pub(super) fn new(seed: u64) -> Self {
        Self { source: Source::new(seed), got: vec![0; STEP as usize] }
    }

    /// Compare regions, which `read` gives, with the content of these addresses: bytes compared.
    pub(super) fn compare(
        &mut self,
        regions: &[Region],
        expected: &[Region],
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), Stop>,
    ) -> Result<u64, Fault> {
        let Self { source, got } = self;
        let mut done = 0;
        pieces(regions, expected, |at, address, length| {
            let mut from = 0;
            while from < length {
                let step = STEP.min(length - from);
                let got = &mut got[..step as usize];
                read((at + from) as usize, got).map_err(Fault::Unread)?;
                let mut got = &got[..];
                for (part, change) in source.parts(address + from, step) {
                    let (now, rest) = got.split_at(part.len());
                    if let Some(wrong) = now.iter().zip(part).position(|(got, sent)| *got != sent ^ change) {
                        return Err(Fault::Byte(done + wrong as u64));
                    }
                    done += part.len() as u64;
                    got = rest;
                }
                from += step;
            }
            Ok(())
        })?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_bytes_pass_and_one_wrong_one_is_found() {
        let mut memory = vec![0; 300_000];
        let address = Region::packed(SPACE + 1000, 300_000);
        fill(7, &[Content { region: Region::packed(0, 300_000), address }], &mut memory).unwrap();
        let region = [Region { at: 64, run: 100, axes: vec![(2000, 128)] }];
        let expected = [Region { at: SPACE + 1064, run: 100, axes: vec![(2000, 128)] }];
        let compare = |memory: &[u8], seed, expected: &[Region]| {
            let read = |at: usize, into: &mut [u8]| {
                into.copy_from_slice(&memory[at..at + into.len()]);
                Ok(())
            };
            Check::new(seed).compare(&region, expected, read)
        };
        assert_eq!(compare(&memory, 7, &expected), Ok(200_000));
        assert!(compare(&memory, 8, &expected).is_err(), "another seed");
        for shift in [1, 1 << 12, PERIOD as u64, SPACE] {
            let shifted = [Region { at: expected[0].at + shift, ..expected[0].clone() }];
            assert!(compare(&memory, 7, &shifted).is_err(), "{shift}");
        }
        memory[64 + 128 * 1500 + 3] ^= 1;
        assert_eq!(compare(&memory, 7, &expected), Err(Fault::Byte(150_003)));
        let broken = Stop::Failed("the GPU is gone".to_owned());
        let unread = Check::new(7).compare(&region, &expected, |_, _| Err(broken.clone()));
        assert_eq!(unread, Err(Fault::Unread(broken)), "bytes that nobody has seen are not wrong ones");
    }

    #[test]
    fn memory_that_is_filled_in_parts_holds_what_it_would_as_a_whole() {
        let packed = |at, run| Content { region: Region::packed(at, run), address: Region::packed(SPACE * (at + 1), run) };
        let rows = Region { at: 300, run: 7, axes: vec![(20, 13)] };
        let strided = Content { region: rows, address: Region::packed(9 * SPACE, 140) };
        for content in
            [vec![packed(0, 100), packed(100, 3), packed(150, 100), strided.clone()], vec![strided, packed(200, 70), packed(0, 9)]]
        {
            let mut whole = vec![0; 700];
            fill(7, &content, &mut whole).unwrap();
            assert!(whole.iter().filter(|&&byte| byte != 0).count() > 100);
            for step in [1, 64, 699] {
                let mut parts = vec![0; 700];
                let filling = Filling::new(7, &content, 700).unwrap();
                parts.chunks_mut(step).zip((0..).step_by(step)).for_each(|(part, at)| filling.part(at, part));
                assert!(parts == whole, "{step}");
            }
        }
    }

    #[test]
    fn content_outside_the_memory_is_refused() {
        let far = Content { region: Region::packed(90, 20), address: Region::packed(0, 20) };
        assert!(fill(1, &[far], &mut [0; 100]).unwrap_err().contains("90"));
    }
}
