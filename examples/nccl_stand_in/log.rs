//! NCCL's log: `NCCL_DEBUG`, and `NCCL_DEBUG_FILE` with `%h` and `%p`.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::comm::Comm;
use super::described::{Described, has};

/// The name of this host, or what `NCCL_HOSTID` gives it.
pub fn host() -> String {
    std::env::var("NCCL_HOSTID").unwrap_or_else(|_| node())
}

fn node() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().split('.').next().unwrap_or_default().to_owned()
}

fn level() -> u8 {
    match std::env::var("NCCL_DEBUG").unwrap_or_default().to_ascii_uppercase().as_str() {
        "VERSION" => 1,
        "WARN" => 2,
        "INFO" | "TRACE" => 3,
        _ => 0,
    }
}

fn write(text: &str) {
    match std::env::var("NCCL_DEBUG_FILE") {
        Ok(name) => {
            let name = name.replace("%h", &node()).replace("%p", &std::process::id().to_string());
            drop(OpenOptions::new().create(true).append(true).open(name).and_then(|mut file| file.write_all(text.as_bytes())));
        }
        Err(_) => drop(std::io::stdout().write_all(text.as_bytes())),
    }
}

fn line(device: u32, text: &str) {
    // SAFETY: asks for a number.
    let thread = unsafe { libc::gettid() };
    write(&format!("{}:{}:{thread} [{device}] {text}\n", node(), std::process::id()));
}

/// The first line of a process that has a communicator's first rank.
pub fn version(version: i32) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if level() >= 1 && !TOLD.swap(true, Ordering::Relaxed) {
        write(&format!("NCCL version {}.{}.{}+cuda12.8\n", version / 10_000, version / 100 % 100, version % 100));
    }
}

pub fn info(device: u32, text: &str) {
    if level() >= 3 {
        line(device, &format!("NCCL INFO {text}"));
    }
}

pub fn warn(device: u32, text: &str) {
    if level() >= 2 {
        line(device, &format!("NCCL WARN {text}"));
    }
}

/// A rank, as the way between two depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub rank: usize,
    pub gpu: u32,
    pub host: u64,
    pub pid: u32,
}

fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| value == "1")
}

/// The way from one rank to another.
pub fn way(described: &Described, from: End, to: End, reach: bool) -> String {
    if let Some(told) = described.nccl.via.iter().rev().find(|via| has(&via.from, from.rank) && has(&via.to, to.rank)) {
        return told.way.clone();
    }
    match (from.host == to.host, reach && !is_set("NCCL_P2P_DISABLE")) {
        (true, true) if from.pid == to.pid => "P2P/direct pointer".to_owned(),
        (true, true) => "P2P/CUMEM".to_owned(),
        (true, false) if !is_set("NCCL_SHM_DISABLE") => "SHM/direct/direct".to_owned(),
        _ => "NET/Socket/0".to_owned(),
    }
}

/// What NCCL says when a pair of ranks first meets: the sender of every way, the receiver of those over a network.
pub fn channel(comm: &Comm, from: End, to: End, way: &str) {
    let sends = from.rank == comm.rank;
    let network = way.starts_with("NET/");
    if !sends && !network {
        return;
    }
    let side = if network { if sends { "[send] " } else { "[receive] " } } else { "" };
    let number = if way.starts_with("SHM/") { "00" } else { "00/1" };
    let text = format!("Channel {number} : {}[{}] -> {}[{}] {side}via {way}", from.rank, from.gpu, to.rank, to.gpu);
    info(comm.ordinal, &text);
}
