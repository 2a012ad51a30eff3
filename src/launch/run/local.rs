use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::termios::{Termios, tcgetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Plan;
use crate::launch::LaunchError;
use crate::launch::terminal::{self, LEAVE, Terminal, put, restore_settings, still_raw};

/// How long a terminal that takes nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rank 0 draws on this terminal itself; all that is left to do is to wait, and to put it back if nobody did.
pub(super) fn run(plan: &Plan) -> Result<ExitStatus, LaunchError> {
    let kept = Kept::new();
    let mut child = start(plan, |_| {})?;
    pass_signals_on(&child)?;
    let status = child.wait().map_err(LaunchError::at("wait for the launcher"));
    kept.put_back();
    status
}

/// The person's terminal and its settings.
pub(super) struct Kept {
    pub terminal: Option<(Terminal, Termios)>,
}

impl Kept {
    pub(super) fn new() -> Self {
        let terminal = terminal::find(None, None).ok();
        Self { terminal: terminal.and_then(|terminal| tcgetattr(&terminal.file).ok().map(|saved| (terminal, saved))) }
    }

    /// Only what drawing left behind: on a terminal that is in order, these sequences would move the cursor.
    pub(super) fn put_back(&self) {
        if let Some((terminal, saved)) = &self.terminal
            && still_raw(&terminal.file, saved)
        {
            let _ = put(&terminal.file, LEAVE, PATIENCE);
            let _ = restore_settings(&terminal.file, saved);
        }
    }
}

pub(super) fn start(plan: &Plan, prepare: impl FnOnce(&mut Command)) -> Result<Child, LaunchError> {
    let mut command = Command::new(&plan.launcher);
    command.args(&plan.arguments);
    prepare(&mut command);
    command.spawn().map_err(LaunchError::at(format!("start {}", plan.command_line())))
}

/// This process stays until the launcher has ended: signals are the launcher's to act on. Ctrl-C on a terminal reaches
/// it without us.
pub(super) fn pass_signals_on(child: &Child) -> Result<(), LaunchError> {
    let at = || "pass signals on to the launcher".to_owned();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(LaunchError::at(at()))?;
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return Ok(()) };
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(LaunchError::at(at()))?;
    let pass = move || {
        for number in signals.forever().filter(|&number| number != SIGINT) {
            let signal = if number == SIGHUP { Signal::HUP } else { Signal::TERM };
            // It may have ended just now.
            let _ = pidfd_send_signal(&handle, signal);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(pass).map(drop).map_err(LaunchError::at(at()))
}
