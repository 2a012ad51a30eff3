//! How a rank waits between two looks at what is under way.

use std::time::Instant;

use super::Stop;

/// Looks at what is under way without news between two looks at the clock, and before others get the core.
const SPINS: u32 = 64;

/// Counts looks without news; nothing here may allocate or sleep: it is part of timed regions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rest(u32);

impl Rest {
    /// There was news.
    pub const fn over(&mut self) {
        self.0 = 0;
    }

    /// There was none: wait a moment, or give up at the deadline.
    pub fn once(&mut self, deadline: Instant) -> Result<(), Stop> {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(SPINS) {
            if Instant::now() >= deadline {
                return Err(Stop::Deadline);
            }
            if self.0.is_multiple_of(4 * SPINS) {
                // Ranks may share a core: the other one must get to run.
                std::thread::yield_now();
            }
        }
        std::hint::spin_loop();
        Ok(())
    }
}
