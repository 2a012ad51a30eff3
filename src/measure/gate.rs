use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keeps drawing out of timed regions on the host that rank 0 shares with measuring ranks.
///
/// The measuring thread closes the gate around each probe; whoever wants the processor for something else (the
/// screen, the socket) passes through it between probes. A probe that lasts longer than the patience of the
/// one who waits is drawn over, since a person must be able to see a hang.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// a probe is running
    measuring: bool,
    /// how many wait to pass
    waiting: u32,
    /// how many are passing
    inside: u32,
}

impl Gate {
    /// The longest time that the measuring thread waits for others before a probe.
    const COURTESY: Duration = Duration::from_millis(100);

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is three numbers, whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Close the gate: let those who wait pass first, but not for longer than [`Self::COURTESY`].
    pub fn close(&self) {
        let end = Instant::now() + Self::COURTESY;
        let mut state = self.lock();
        while state.waiting + state.inside > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.measuring = true;
    }

    /// Open the gate after a probe.
    pub fn open(&self) {
        self.lock().measuring = false;
        self.changed.notify_all();
    }

    /// True while a probe runs.
    pub fn measuring(&self) -> bool {
        self.lock().measuring
    }

    /// Do `work` between probes, or after `patience` in any case.
    pub fn pass<T>(&self, patience: Duration, work: impl FnOnce() -> T) -> T {
        let end = Instant::now() + patience;
        let mut state = self.lock();
        state.waiting += 1;
        while state.measuring {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        state.inside += 1;
        drop(state);
        let done = work();
        self.lock().inside -= 1;
        self.changed.notify_all();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn nobody_passes_while_a_probe_runs_and_somebody_after() {
        let gate = Arc::new(Gate::default());
        gate.close();
        let passed = Arc::new(AtomicBool::new(false));
        let worker = std::thread::spawn({
            let (gate, passed) = (Arc::clone(&gate), Arc::clone(&passed));
            move || gate.pass(Duration::from_secs(60), || passed.store(true, Ordering::SeqCst))
        });
        while gate.lock().waiting == 0 {
            std::thread::yield_now();
        }
        assert!(!passed.load(Ordering::SeqCst));
        gate.open();
        worker.join().unwrap();
        assert!(passed.load(Ordering::SeqCst));
    }

    #[test]
    fn the_next_probe_waits_for_those_who_waited() {
        let gate = Arc::new(Gate::default());
        gate.close();
        let worker = std::thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.pass(Duration::from_secs(60), || assert!(!gate.measuring()))
        });
        while gate.lock().waiting == 0 {
            std::thread::yield_now();
        }
        gate.open();
        gate.close();
        worker.join().unwrap();
        assert!(gate.measuring());
    }

    #[test]
    fn patience_ends() {
        let gate = Gate::default();
        gate.close();
        assert_eq!(gate.pass(Duration::from_millis(1), || 7), 7);
    }
}
