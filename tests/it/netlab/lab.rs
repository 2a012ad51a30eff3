//! A network of one's own with known truth: hosts are network namespaces, one bridge joins them or two with a trunk
//! between, link rates are as set.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Of what tbf lets through, the part that is payload: TCP with time stamps in frames of 1500 bytes leaves 1448 bytes;
/// tbf counts the 14 bytes of the Ethernet header too.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;
/// tbf's bucket, bytes: what an idle link sends at once, beyond its rate.
pub const BURST: u32 = 128 * 1024;
/// Present and permitted in every network namespace.
const CONGESTION: &str = "reno";
const PREFIX: &str = "toposcope-lab";

/// Labs share two cores: one at a time.
static TURN: Mutex<()> = Mutex::new(());
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Payload bytes per second of a link shaped to `mbit` Mbit/s.
pub fn payload_rate(mbit: u32) -> f64 {
    f64::from(mbit) * 1e6 / 8.0 * PAYLOAD_SHARE
}

/// Most hosts: two cores serve them all. Seen with plain TCP (`flows`), 12 runs each, every host shaped to 200, 400 or 800
/// Mbit/s: one pair, four pairs at once, fans of 3 and 7 and up to eight flows over the trunk give 0.97–1.02 of what was
/// set, with the cores at most half busy at 800. What does not come out, at any rate and with idle cores, are hosts that
/// send and receive at the same time (0.8–1.0): acknowledgements queue behind data.
const MOST_HOSTS: usize = 8;

/// Hosts `node1`, `node2`, ... on `10.77.0.0/24` behind one bridge, or behind two that a trunk joins. Dropping it ends
/// every process in it and removes it, on panic too.
pub struct Lab {
    prefix: String,
    hosts: usize,
    /// hosts behind the first bridge; the others are behind the second, on the far side of the trunk
    near: usize,
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// What a command in the lab came to.
#[derive(Debug)]
pub struct Ran {
    /// `None` if it had to be killed
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    /// A lab, or `None` where there cannot be one: told loudly on stderr, and a failure under `CI=true`.
    pub fn new(hosts: usize) -> Option<Self> {
        Self::behind(hosts, 0)
    }

    /// A lab with the first `near` hosts behind bridge 0 and the next `far` behind bridge 1, or `None` as [`Self::new`].
    /// The trunk between the bridges is as fast as the machine until it is shaped.
    pub fn with_trunk(near: usize, far: usize) -> Option<Self> {
        assert!(near > 0 && far > 0, "a trunk has hosts on both sides");
        Self::behind(near, far)
    }

    fn behind(near: usize, far: usize) -> Option<Self> {
        let hosts = near + far;
        assert!((1..=MOST_HOSTS).contains(&hosts), "at most {MOST_HOSTS} hosts, not {hosts}");
        if !rustix::process::geteuid().is_root() {
            return skip("needs root");
        }
        for tool in ["ip", "tc", "unshare", "sysctl", "mpirun"] {
            if !on_path(tool) {
                return skip(&format!("needs {tool}, which is not installed (make setup)"));
            }
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        remove_leftovers();
        let prefix = format!("{PREFIX}-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let lab = Self { prefix, hosts, near, folder: tempfile::tempdir().unwrap(), _turn: turn };
        if let Err(reason) = lab.build() {
            drop(lab);
            return skip(&format!("needs network namespaces: {reason}"));
        }
        Some(lab)
    }

    fn build(&self) -> Result<(), String> {
        let switch = self.switch();
        try_ip(&["netns", "add", &switch])?;
        let trunk = self.near < self.hosts;
        for bridge in ["br0", "br1"].iter().take(1 + usize::from(trunk)) {
            try_ip(&["-n", &switch, "link", "add", bridge, "type", "bridge"])?;
            try_ip(&["-n", &switch, "link", "set", bridge, "up"])?;
        }
        if trunk {
            try_ip(&["-n", &switch, "link", "add", "t0", "type", "veth", "peer", "name", "t1"])?;
            try_ip(&["-n", &switch, "link", "set", "t0", "master", "br0", "up"])?;
            try_ip(&["-n", &switch, "link", "set", "t1", "master", "br1", "up"])?;
        }
        for host in 1..=self.hosts {
            let (space, port) = (self.space(host), format!("p{host}"));
            try_ip(&["netns", "add", &space])?;
            try_ip(&["link", "add", "e", "netns", &space, "type", "veth", "peer", "name", &port, "netns", &switch])?;
            try_ip(&["-n", &space, "addr", "add", &format!("10.77.0.{host}/24"), "dev", "e"])?;
            try_ip(&["-n", &space, "link", "set", "e", "up"])?;
            try_ip(&["-n", &space, "link", "set", "lo", "up"])?;
            // The same on every machine, whatever its default.
            try_ip(&["netns", "exec", &space, "sysctl", "-q", "-w", &format!("net.ipv4.tcp_congestion_control={CONGESTION}")])?;
            let bridge = if host <= self.near { "br0" } else { "br1" };
            try_ip(&["-n", &switch, "link", "set", &port, "master", bridge, "up"])?;
        }
        // What ssh would do: the first argument is the host, the rest a command line for its shell.
        let agent =
            format!("#!/bin/sh\nhost=$1\nshift\nexec ip netns exec \"{}-$host\" unshare --uts sh -c \"hostname $host; $*\"\n", self.prefix);
        fs::write(self.agent(), agent).unwrap();
        fs::set_permissions(self.agent(), fs::Permissions::from_mode(0o700)).unwrap();
        Ok(())
    }

    fn agent(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    fn switch(&self) -> String {
        format!("{}-sw", self.prefix)
    }

    fn space(&self, host: usize) -> String {
        assert!((1..=self.hosts).contains(&host), "host {host} of {}", self.hosts);
        format!("{}-node{host}", self.prefix)
    }

    /// A folder for files, which goes with the lab.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Limit what `host` (from 1) sends, Mbit/s.
    pub fn shape_out(&self, host: usize, mbit: u32) {
        shape(&self.space(host), "e", mbit);
    }

    /// Limit what `host` (from 1) receives, Mbit/s.
    pub fn shape_in(&self, host: usize, mbit: u32) {
        shape(&self.switch(), &format!("p{host}"), mbit);
    }

    /// Limit what the trunk carries away from a bridge (0 or 1), Mbit/s.
    pub fn shape_trunk(&self, bridge: usize, mbit: u32) {
        assert!(self.near < self.hosts && bridge < 2, "no trunk from bridge {bridge}");
        shape(&self.switch(), &format!("t{bridge}"), mbit);
    }

    /// Pull the cable of `host` (from 1). Connections hang; nothing is reset.
    pub fn link_down(&self, host: usize) {
        ip(&["-n", &self.switch(), "link", "set", &format!("p{host}"), "down"]);
    }

    /// Put the cable of `host` (from 1) back.
    pub fn link_up(&self, host: usize) {
        ip(&["-n", &self.switch(), "link", "set", &format!("p{host}"), "up"]);
    }

    /// A command that runs on `host` (from 1), which is then also its name: `node1`.
    pub fn on(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host), "unshare", "--uts", "sh", "-c", "hostname \"$0\"; exec \"$@\""]);
        command.arg(format!("node{host}")).arg(program);
        command.env("TMPDIR", self.folder()).stdin(Stdio::null());
        command
    }

    /// What `work` gives when done on `host` (from 1), where the sockets that it opens stay.
    pub fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let space = fs::File::open(Path::new("/run/netns").join(self.space(host))).unwrap();
        let there = move || {
            // For good: so on a thread of its own.
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(there).join().unwrap())
    }

    /// `mpirun` on `host` (from 1) with `ranks` ranks, dealt to the hosts in turn, and then `args`: program and arguments.
    pub fn mpirun<A: AsRef<OsStr>>(&self, host: usize, ranks: usize, args: impl IntoIterator<Item = A>) -> Command {
        let slots = ranks.div_ceil(self.hosts);
        let list = (1..=self.hosts).fold(String::new(), |mut list, host| {
            let comma = if host > 1 { "," } else { "" };
            write!(list, "{comma}node{host}:{slots}").unwrap();
            list
        });
        let mut command = self.on(host, "mpirun");
        command.args(["-n", &ranks.to_string(), "-H", &list, "--map-by", "node", "--bind-to", "none"]);
        command.args(["--mca", "plm_rsh_agent"]).arg(self.agent());
        for (key, value) in
            [("oob_tcp_if_include", "e"), ("btl_tcp_if_include", "e"), ("btl", "self,tcp"), ("pml", "ob1"), ("mpi_yield_when_idle", "1")]
        {
            command.args(["--mca", key, value]);
        }
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(args);
        command
    }

    /// Run to the end, or for at most `limit`: then everything in the lab is killed.
    pub fn run(&self, command: &mut Command, limit: Duration) -> Ran {
        self.finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), limit)
    }

    /// Wait for a started command (its stdout and stderr piped) as [`Self::run`] does.
    pub fn finish(&self, child: Child, limit: Duration) -> Ran {
        let (done, wait) = mpsc::channel();
        thread::spawn(move || done.send(child.wait_with_output()));
        let in_time = wait.recv_timeout(limit).ok();
        let late = in_time.is_none();
        let output = in_time.unwrap_or_else(|| {
            self.kill_all();
            wait.recv_timeout(Duration::from_secs(30)).expect("killed, but not ended")
        });
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { status: (!late).then_some(output.status), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Processes in the lab.
    pub fn processes(&self) -> Vec<u32> {
        (1..=self.hosts).flat_map(|host| processes_in(&self.space(host))).collect()
    }

    fn kill_all(&self) {
        for host in 1..=self.hosts {
            kill_in(&self.space(host));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in 1..=self.hosts {
            remove(&self.space(host));
        }
        remove(&self.switch());
    }
}

fn skip(reason: &str) -> Option<Lab> {
    let text = format!("\nSKIPPED: network laboratory {reason}\n\n");
    // Not eprintln: a passing test's own output is not shown.
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "in CI the network laboratory must run: it {reason}");
    None
}

pub fn on_path(tool: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()))
}

/// Run `ip`; what it said if it failed.
fn try_ip(args: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(args).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(format!("ip {}: {}", args.join(" "), text(&output.stderr))) }
}

fn ip(args: &[&str]) -> String {
    try_ip(args).unwrap_or_else(|reason| panic!("{reason}"))
}

fn shape(space: &str, device: &str, mbit: u32) {
    let (rate, burst) = (format!("{mbit}mbit"), format!("{BURST}b"));
    let qdisc = ["qdisc", "replace", "dev", device, "root", "tbf", "rate", &rate, "burst", &burst, "latency", "20ms"];
    ip(&[["netns", "exec", space, "tc"].as_slice(), &qdisc].concat());
}

fn processes_in(space: &str) -> Vec<u32> {
    try_ip(&["netns", "pids", space]).unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn kill_in(space: &str) {
    for pid in processes_in(space) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
            // It may just have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Remove one namespace; on the way out, so nothing here panics.
fn remove(space: &str) {
    kill_in(space);
    let _ = try_ip(&["netns", "del", space]);
}

/// Labs of processes that are no more: killed tests leave them.
fn remove_leftovers() {
    for line in try_ip(&["netns", "list"]).unwrap_or_default().lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').nth(1)).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(name);
        }
    }
}
