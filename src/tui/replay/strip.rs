/// How much something is in use over time: parts of time that do not overlap, ascending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strip {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    start: f64,
    end: f64,
    /// 0 to 1
    share: f64,
    /// seconds in use before `start`, each weighted with its share
    before: f64,
}

/// Shares closer than this are the same.
const SAME: f64 = 1e-6;

impl Strip {
    /// Use of so much from `start` to `end`, at the end of what there is.
    pub fn push(&mut self, start: f64, end: f64, share: f64) {
        let start = self.parts.last().map_or(start, |last| start.max(last.end));
        if end <= start || share <= 0.0 {
            return;
        }
        let before = self.parts.last().map_or(0.0, |last| last.before + last.share * (last.end - last.start));
        match self.parts.last_mut() {
            Some(last) if last.end >= start && (last.share - share).abs() < SAME => last.end = end,
            _ => self.parts.push(Part { start, end, share, before }),
        }
    }

    /// Seconds in use until `time`.
    fn until(&self, time: f64) -> f64 {
        let after = self.parts.partition_point(|part| part.start <= time);
        let Some(part) = after.checked_sub(1).and_then(|at| self.parts.get(at)) else { return 0.0 };
        part.before + part.share * (time.min(part.end) - part.start)
    }

    /// Mean use between two times, 0 to 1.
    pub fn mean(&self, from: f64, to: f64) -> f64 {
        if to <= from { self.at(from) } else { ((self.until(to) - self.until(from)) / (to - from)).clamp(0.0, 1.0) }
    }

    /// Use at a time.
    pub fn at(&self, time: f64) -> f64 {
        let after = self.parts.partition_point(|part| part.start <= time);
        after.checked_sub(1).and_then(|at| self.parts.get(at)).filter(|part| time < part.end).map_or(0.0, |part| part.share)
    }

    /// The middle of the longest time in which it is fullest.
    pub fn fullest(&self) -> Option<f64> {
        let most = self.parts.iter().map(|part| part.share).fold(0.0, f64::max);
        let full = self.parts.iter().filter(|part| part.share > most - 0.01);
        // Of equal ones the first.
        let longer = |longest: &'_ Part, part: &'_ Part| part.end - part.start > (longest.end - longest.start) * (1.0 + 1e-6);
        let longest = full.reduce(|longest, part| if longer(longest, part) { part } else { longest })?;
        Some(f64::midpoint(longest.start, longest.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip() -> Strip {
        let mut strip = Strip::default();
        for (start, end, share) in [(1.0, 2.0, 0.5), (2.0, 3.0, 0.5), (4.0, 6.0, 1.0), (6.0, 6.5, 0.25)] {
            strip.push(start, end, share);
        }
        strip
    }

    #[test]
    fn means_are_what_adding_up_gives() {
        let strip = strip();
        assert_eq!(strip.parts.len(), 3, "what is alike is one part");
        for (from, to, mean) in
            [(0.0, 1.0, 0.0), (1.0, 3.0, 0.5), (0.0, 4.0, 0.25), (3.5, 4.5, 0.5), (2.0, 6.5, 2.625 / 4.5), (7.0, 9.0, 0.0), (5.0, 5.0, 1.0)]
        {
            assert!((strip.mean(from, to) - mean).abs() < 1e-12, "{from} to {to}: {}", strip.mean(from, to));
        }
        let at = [0.5, 1.0, 3.0, 4.0, 6.2, 6.5].map(|time| (strip.at(time) * 4.0) as u8);
        assert_eq!(at, [0, 2, 0, 4, 1, 0]);
        assert_eq!(strip.fullest(), Some(5.0));
    }

    #[test]
    fn what_overlaps_counts_once() {
        let mut strip = Strip::default();
        strip.push(0.0, 2.0, 1.0);
        strip.push(1.0, 3.0, 1.0);
        strip.push(1.0, 2.0, 1.0);
        assert!((strip.mean(0.0, 4.0) - 0.75).abs() < 1e-12);
    }
}
