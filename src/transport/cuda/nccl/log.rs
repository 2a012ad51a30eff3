//! The path that NCCL takes between two ranks, as it says itself in the lines of `NCCL_DEBUG=INFO` about its channels:
//! `Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM`, `... via SHM/direct/direct`, `... [send] via NET/IB/0/GDRDMA`.
//!
//! The library writes them to a file of this process's own, asked for before it is loaded and only where the person has not asked for
//! such a log; it is read between probes.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::units::plain;

/// What is set, with `NCCL_DEBUG_FILE`.
const ASKED: [(&str, &str); 2] = [("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "INIT,P2P,SHM,NET")];
const FILE: &str = "NCCL_DEBUG_FILE";
/// At most so much is read at a time, bytes.
const PIECE: usize = 1 << 16;
/// Longest line that is looked at, bytes.
const LONGEST: usize = 4096;
/// Longest description of a path.
const MOST: usize = 120;

/// Around the process's number in the file's name.
const BEGIN: &str = "nccl-";
const END: &str = ".log";

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// A rank's sight of its library's log.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: Option<File>,
    read: u64,
    partial: Vec<u8>,
    /// which communicator the lines are of
    id: Vec<u8>,
    group: Vec<usize>,
    channels: Channels,
}

/// Ask NCCL for a log in `folder`, which is this person's alone. Only at the start of the process, while it has one thread: this sets
/// variables. Nothing is asked for where the person has set one of them.
pub fn ask(folder: &Path) {
    if ASKED.iter().map(|(name, _)| *name).chain([FILE]).any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    sweep_out(folder);
    let path = folder.join(format!("{BEGIN}{}{END}", std::process::id()));
    for (name, value) in ASKED {
        // SAFETY: the process has one thread.
        #[allow(unsafe_code, reason = "the only way to tell NCCL")]
        unsafe {
            std::env::set_var(name, value);
        }
    }
    // SAFETY: as above.
    #[allow(unsafe_code, reason = "the only way to tell NCCL")]
    unsafe {
        std::env::set_var(FILE, &path);
    }
    *lock() =
        Some(Log { path, file: None, read: 0, partial: Vec::new(), id: Vec::new(), group: Vec::new(), channels: Channels::default() });
}

/// Remove what processes of this host that are dead left behind.
fn sweep_out(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(BEGIN)?.strip_suffix(END)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The variables that were set here and not by the person; they are no setting of the person's.
pub fn asked() -> Vec<&'static str> {
    if lock().is_none() { Vec::new() } else { ASKED.iter().map(|(name, _)| *name).chain([FILE]).collect() }
}

/// A communicator of these ranks of the job is about to be made; what was read of an earlier one is of no use any more.
pub(super) fn begin(id: &[u8], group: &[usize]) {
    if let Some(log) = lock().as_mut().filter(|log| log.id != id) {
        log.look();
        log.channels = Channels::default();
        (log.id, log.group) = (id.to_vec(), group.to_vec());
    }
}

/// The process ends: nobody needs its log any more.
pub fn end() {
    if let Some(log) = lock().take() {
        let _ = std::fs::remove_file(log.path);
    }
}

/// How bytes go from one rank of the job to another, as far as NCCL has said by now.
pub fn via(from: usize, to: usize) -> Option<String> {
    let mut log = lock();
    let log = log.as_mut()?;
    log.look();
    let number = |rank| log.group.iter().position(|&member| member == rank);
    log.channels.via(number(from)?, number(to)?)
}

fn lock() -> std::sync::MutexGuard<'static, Option<Log>> {
    // Lines are taken one at a time, whoever panicked.
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Read what is new.
    fn look(&mut self) {
        if self.file.is_none() {
            let Ok(file) = File::open(&self.path) else { return };
            self.file = Some(file);
        }
        let Some(file) = &self.file else { return };
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = file.read_at(&mut piece, self.read) {
            self.read += count as u64;
            for part in piece[..count].split_inclusive(|&byte| byte == b'\n') {
                if self.partial.len() < LONGEST {
                    self.partial.extend_from_slice(&part[..part.len().min(LONGEST)]);
                }
                if part.ends_with(b"\n") {
                    self.channels.take(&String::from_utf8_lossy(&self.partial));
                    self.partial.clear();
                }
            }
        }
    }
}

/// What a log tells of each ordered pair of a communicator's ranks.
#[derive(Debug, Default, PartialEq)]
pub struct Channels {
    /// paths of point-to-point channels, and of those for collectives, each with its number of channels
    pairs: BTreeMap<(usize, usize), [Vec<String>; 2]>,
}

impl Channels {
    /// Take a line of the log; one that tells of no channel is passed over.
    pub fn take(&mut self, line: &str) {
        let Some(channel) = Channel::of(line) else { return };
        let ways = &mut self.pairs.entry((channel.from, channel.to)).or_default()[usize::from(channel.collective)];
        // The receiver of the same pair may be in this process, too, and says the same.
        if !ways.contains(&channel.via) && ways.len() < 16 {
            ways.push(channel.via);
        }
    }

    /// How bytes go between two ranks: the paths of their channels, each once, in the order of the log.
    pub fn via(&self, from: usize, to: usize) -> Option<String> {
        let [pairs, collectives] = self.pairs.get(&(from, to))?;
        // Rings and trees may go another way; they tell only where nothing else does.
        let ways = if pairs.is_empty() { collectives } else { pairs };
        let told = ways.join(" + ");
        Some(told.chars().take(MOST).collect())
    }
}

/// A channel, by numbers of the communicator's ranks.
#[derive(Debug, PartialEq)]
struct Channel {
    from: usize,
    to: usize,
    /// of a ring or a tree
    collective: bool,
    via: String,
}

impl Channel {
    fn of(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(" NCCL INFO Channel ")?;
        let (ends, via) = rest.split_once(" via ")?;
        let (number, ends) = ends.split_once(" : ")?;
        let (from, to) = ends.split_once(" -> ")?;
        // Rank and device, as `1[0]` or `1[9a000]`.
        let rank = |text: &str| text.trim().split_once('[')?.0.parse().ok();
        // Of network channels the receiver chooses its own device: the sender's line stands for both.
        let (to, side) = to.split_once(' ').map_or((to, ""), |(to, side)| (to, side));
        if side.trim() == "[receive]" {
            return None;
        }
        let via = via.trim();
        // Buffers that several channels share are no part of the path.
        let via = via.strip_suffix("/Shared").unwrap_or(via);
        // The second number: 0 for collectives, 1 for sends and receives. Channels over shared memory have none.
        let collective = number.trim().split_once('/').is_some_and(|(_, kind)| kind == "0");
        (!via.is_empty()).then_some(Self { from: rank(from)?, to: rank(to)?, collective, via: plain(via) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Channels {
        let mut channels = Channels::default();
        for line in lines {
            channels.take(&format!("gpu1:812:840 [1] NCCL INFO {line}\n"));
        }
        channels
    }

    #[test]
    fn channels_tell_the_path_of_each_direction() {
        let channels = told(&[
            "Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM",
            "Channel 01/1 : 0[0] -> 1[1] via P2P/CUMEM",
            "Channel 00/1 : 1[1] -> 0[0] via P2P/direct pointer/read",
            "Channel 02 : 1[9a000] -> 2[b2000] via SHM/direct/direct",
            "Channel 00/1 : 0[0] -> 4[0] [send] via NET/IB/0(3)/GDRDMA(PCI)/Shared",
            "Channel 01/1 : 0[0] -> 4[0] [send] via NET/IB/1/GDRDMA/Shared",
            "Channel 00/1 : 4[0] -> 0[0] [receive] via NET/Socket/0",
            "Channel 00/1 : 5[1] -> 6[2] via P2P/indirect/7[3]",
        ]);
        assert_eq!(channels.via(0, 1).unwrap(), "P2P/CUMEM");
        assert_eq!(channels.via(1, 0).unwrap(), "P2P/direct pointer/read");
        assert_eq!(channels.via(1, 2).unwrap(), "SHM/direct/direct");
        assert_eq!(channels.via(0, 4).unwrap(), "NET/IB/0(3)/GDRDMA(PCI) + NET/IB/1/GDRDMA");
        assert_eq!(channels.via(5, 6).unwrap(), "P2P/indirect/7[3]");
        assert_eq!(channels.via(4, 0), None, "the sender tells");
        assert_eq!(channels.via(2, 1), None);
    }

    #[test]
    fn rings_tell_only_where_nothing_else_does() {
        let ring = "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0";
        assert_eq!(told(&[ring]).via(0, 1).unwrap(), "NET/Socket/0");
        let both = told(&[ring, "Channel 00/1 : 0[0] -> 1[1] via P2P/IPC"]);
        assert_eq!(both.via(0, 1).unwrap(), "P2P/IPC");
    }

    #[test]
    fn other_lines_and_broken_ones_are_passed_over() {
        let lines = [
            "Channel 00/02 : 0 1 2 3",
            "Channel 00/1 : x[0] -> 1[1] via P2P/IPC",
            "Channel 00/1 : 0[0] -> 1 via P2P/IPC",
            "Channel 00/1 : 0[0] -> 1[1] via ",
            "Channel : -> via",
            "Connected all rings",
        ];
        assert_eq!(told(&lines), Channels::default());
    }

    #[test]
    fn logs_of_dead_processes_are_removed_and_others_kept() {
        let folder = tempfile::tempdir().unwrap();
        let names = [format!("nccl-{}.log", std::process::id()), "nccl-4294967295.log".to_owned(), "nccl-notes.log".to_owned()];
        for name in &names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        sweep_out(folder.path());
        assert_eq!(names.map(|name| folder.path().join(name).exists()), [true, false, true]);
    }

    #[test]
    fn a_growing_file_is_read_by_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log {
            path: path.clone(),
            file: None,
            read: 0,
            partial: Vec::new(),
            id: Vec::new(),
            group: vec![7, 3],
            channels: Channels::default(),
        };
        log.look();
        let mut writer = File::create(&path).unwrap();
        let mut say = |text: &str| std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        say("h:1:1 [0] NCCL INFO Channel 00/1 : 0[0] -> 1[1] vi");
        log.look();
        assert_eq!(log.channels.via(0, 1), None);
        say(&format!("a P2P/IPC\n{}\nh:1:1 [0] NCCL INFO Channel 00/1 : 1[1] -> 0[0] via SHM\n", "x".repeat(3 * PIECE)));
        log.look();
        assert_eq!((log.channels.via(0, 1).as_deref(), log.channels.via(1, 0).as_deref()), (Some("P2P/IPC"), Some("SHM")));
        assert!(log.partial.is_empty());
    }
}
