//! Signals as ordinary calls in an ordinary thread, and ranks that do not outlive their launcher.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::job;

/// How long a worker that was told to end stays, so that rank 0 and the guard can tell it from the one that died first.
/// Open MPI kills 1 s after SIGTERM.
pub const LINGER: Duration = Duration::from_millis(500);

/// A signal that ends the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    pub number: i32,
}

impl Caught {
    /// `SIGTERM` and so on.
    pub fn name(self) -> &'static str {
        match self.number {
            SIGTERM => "SIGTERM",
            SIGINT => "SIGINT",
            SIGHUP => "SIGHUP",
            _ => "a signal",
        }
    }

    /// What a shell calls the end by this signal: 128 + its number.
    pub const fn exit_code(self) -> i32 {
        128 + self.number
    }
}

/// On SIGTERM, SIGINT or SIGHUP call `act` in a thread, then end the process: with [`Caught::exit_code`], or, as a rank
/// of a job, by the signal itself. (Hydra lets the other ranks of a job run on after an exit with a code.)
///
/// The end is immediate, without destructors: those of an MPI library may wait for ranks that are gone.
pub fn watch(act: impl FnOnce(Caught) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(number) = signals.forever().next() {
            let caught = Caught { number };
            act(caught);
            if job::detect().is_some() {
                // It returns only if the system refuses.
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
            signal_hook::low_level::exit(caught.exit_code());
        }
    })?;
    Ok(())
}

/// What a rank other than 0 does with signals: end after [`LINGER`].
pub fn watch_as_worker() -> io::Result<()> {
    watch(|_| thread::sleep(LINGER))
}

/// Have this process ended (SIGTERM) when its parent dies, so that `kill -9 mpirun` leaves no rank running.
///
/// Call it before anything else: a parent that is dead already is not noticed later.
pub fn die_with_parent() -> io::Result<()> {
    let before = getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != before {
        signal_hook::low_level::raise(SIGTERM)?;
    }
    Ok(())
}
