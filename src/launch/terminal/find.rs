use std::env;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, major, minor};
use rustix::process::getpgrp;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, ttyname};

use super::{FORWARD, Link, SCREEN_VARIABLE, Terminal, Told};
use crate::launch::process::{self, Stat};
use crate::launch::{LaunchError, job::Job};

/// Find the terminal of the person who started this, to draw on.
///
/// `job` if this is rank 0 of one; `out` where standard output went before it was redirected. The order: the screen
/// that `toposcope run` forwards; standard input, if it is a terminal with this process in its foreground; `/dev/tty`;
/// the first terminal among descriptors 0-2 of the ancestors. The last two only while the launcher holds the terminal's
/// foreground and reads it: from the background no key would ever come.
pub fn find(job: Option<&Job>, out: Option<&File>) -> Result<Terminal, LaunchError> {
    if job.is_some() && env::var_os(SCREEN_VARIABLE).is_some_and(|value| value == FORWARD) {
        return forwarded(out);
    }
    if let Some(terminal) = own() {
        return Ok(terminal);
    }
    if job.is_none() {
        let why = "this process is not in the foreground of one".to_owned();
        return Err(LaunchError::NoTerminal { why });
    }
    shared(&process::ancestors(), &process::launchers())
}

fn forwarded(out: Option<&File>) -> Result<Terminal, LaunchError> {
    let file = match out {
        Some(file) => file.try_clone(),
        None => rustix::io::fcntl_dupfd_cloexec(stdout(), 3).map(File::from).map_err(io::Error::from),
    };
    let file = file.map_err(LaunchError::at("keep standard output for the screen"))?;
    let how = "forwarded by the launcher".to_owned();
    Ok(Terminal { file, link: Link::Forwarded, path: None, how, told: Told::default() })
}

fn own() -> Option<Terminal> {
    let ours = |file: &File| tcgetpgrp(file).is_ok_and(|group| group == getpgrp());
    if isatty(stdin()) {
        let path = ttyname(stdin(), Vec::new()).ok().map(|name| PathBuf::from(name.to_string_lossy().into_owned()));
        // In a container the name may not lead there: then a copy of the descriptor does.
        let opened = path.as_ref().and_then(|path| open(path).ok());
        let named = opened.is_some();
        let file = opened.or_else(|| rustix::io::fcntl_dupfd_cloexec(stdin(), 3).ok().map(File::from))?;
        if ours(&file) {
            let (path, how) = (path.filter(|_| named), "standard input".to_owned());
            return Some(Terminal { file, link: Link::Own, path, how, told: Told::default() });
        }
    }
    let path = PathBuf::from("/dev/tty");
    let file = open(&path).ok().filter(ours)?;
    Some(Terminal { file, link: Link::Own, how: path.display().to_string(), path: Some(path), told: Told::default() })
}

fn shared(ancestors: &[Stat], launchers: &[Stat]) -> Result<Terminal, LaunchError> {
    let none = |why: &str| Err(LaunchError::NoTerminal { why: why.to_owned() });
    let reads = |stat: &Stat| stat.descriptor(0).is_some_and(|path| looks_like_terminal(&path));
    if !launchers.iter().any(reads) {
        return none("the launcher's standard input is not one, so that no key would come");
    }
    let mut candidates = vec![(PathBuf::from("/dev/tty"), "/dev/tty".to_owned())];
    for stat in ancestors {
        let paths = (0..3).filter_map(|number| stat.descriptor(number)).filter(|path| looks_like_terminal(path));
        candidates.extend(paths.map(|path| {
            let how = format!("{} of {} ({})", path.display(), stat.name, stat.pid);
            (path, how)
        }));
    }
    for (path, how) in candidates {
        let Ok(file) = open(&path) else { continue };
        if !isatty(&file) {
            continue;
        }
        if !in_foreground(&file, launchers) {
            return none("the launcher runs in the background of it");
        }
        return Ok(Terminal { file, link: Link::Shared, path: Some(path), how, told: Told::default() });
    }
    none("neither /dev/tty nor an ancestor's descriptor leads to one")
}

/// Opened without becoming anybody's controlling terminal, and without blocking: a terminal that takes nothing must not
/// keep it from being put back.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn looks_like_terminal(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console")
}

/// False only if the terminal controls a launcher that is not in its foreground (`mpirun .. &`).
fn in_foreground(file: &File, launchers: &[Stat]) -> bool {
    let Ok(about) = file.metadata() else { return false };
    let device = about.rdev();
    let device = (major(device), minor(device));
    // `/dev/tty` is a device of its own (5, 0), which means "whichever controls me".
    let controls = |stat: &&Stat| stat.terminal.is_some() && (device == (5, 0) || stat.terminal == Some(device));
    let mut controlled = launchers.iter().filter(controls).peekable();
    controlled.peek().is_none() || controlled.any(|stat| stat.group == stat.foreground)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(group: i32, foreground: i32, terminal: Option<(u32, u32)>) -> Stat {
        Stat { pid: 1, name: "mpirun".to_owned(), state: 'S', parent: 1, group, terminal, foreground }
    }

    #[test]
    fn a_job_in_the_background_gets_no_screen() {
        let master = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let file = open(Path::new(name.to_str().unwrap())).unwrap();
        let device = file.metadata().unwrap().rdev();
        let device = Some((major(device), minor(device)));
        assert!(in_foreground(&file, &[stat(7, 7, device)]));
        assert!(!in_foreground(&file, &[stat(7, 8, device)]));
        // a proxy in a session of its own below the launcher in the foreground (MPICH)
        assert!(in_foreground(&file, &[stat(9, -1, None), stat(7, 7, device)]));
        // controlled by somebody else: nothing to hold against it
        assert!(in_foreground(&file, &[stat(7, 8, Some((4, 1)))]));
    }

    #[test]
    fn only_terminals_count() {
        let check = |path: &str| looks_like_terminal(Path::new(path));
        assert!(check("/dev/pts/3") && check("/dev/tty1") && check("/dev/console"));
        assert!(!check("/dev/null") && !check("pipe:[77]") && !check("/home/x/dev/pts/3"));
    }
}
