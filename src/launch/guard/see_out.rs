use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

/// How long a launcher may take to end after rank 0 has.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Wait for a launcher to end, then `tell`, and make it.
///
/// A daemon on this host (orted, a proxy) is left alone: its own launcher, elsewhere, may be in good health.
pub(super) fn see_out(name: &str, launcher: &OwnedFd, patience: Duration, tell: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if !["mpirun", "mpiexec", "orterun", "prterun", "srun"].iter().any(|known| name.starts_with(known)) || ended(launcher, patience) {
        return Ok(());
    }
    tell()?;
    // Not asked first: it is ending the job already, and Open MPI 4.1.4 answers a second request with a segmentation fault.
    let _ = pidfd_send_signal(launcher, Signal::KILL);
    Ok(())
}

fn ended(process: &OwnedFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap_or_default();
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_launcher_that_hangs_is_ended_and_a_daemon_is_not() {
        // Stopped, it follows no request: only SIGKILL ends it.
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        see_out("orted", &handle, PATIENCE, || panic!("left alone")).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let mut told = 0;
        see_out("mpirun.openmpi", &handle, Duration::from_millis(10), || {
            told += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((told, child.wait().unwrap().signal()), (1, Some(9)));
    }
}
