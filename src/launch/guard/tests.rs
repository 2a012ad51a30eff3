use super::watch::watch;
use super::*;
use crate::launch::terminal::{LEAVE, put, raw_of};
use crate::launch::{keys, process};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::process::Stdio;
use std::thread::JoinHandle;

/// Rank 0's end, the guard in a thread, and a terminal: master and slave.
struct Scene {
    guard: Guard,
    watching: JoinHandle<io::Result<()>>,
    master: File,
    slave: File,
}

fn scene() -> Scene {
    let (master, slave) = keys::raw_pair().unwrap();
    let (master, slave) = (File::from(master), File::from(slave));
    let mut settings = tcgetattr(&slave).unwrap();
    settings.local_modes |= LocalModes::ICANON | LocalModes::ISIG;
    tcsetattr(&slave, OptionalActions::Now, &settings).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let status = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
    let watching = thread::spawn({
        let (status, out) = (status.try_clone().unwrap(), slave.try_clone().unwrap());
        move || watch(theirs, &status, &out)
    });
    let guard = Guard::over(ours, status, None).unwrap();
    guard.begin(true, false).unwrap();
    Scene { guard, watching, master, slave }
}

/// Everything said so far is taken in before it answers: of ranks that it meets dead it cannot know the order.
fn taken_in(scene: &Scene) {
    scene.guard.begin(true, false).unwrap();
}

fn settings(file: &File) -> String {
    format!("{:?}", tcgetattr(file).unwrap())
}

/// Everything the terminal got until its last writer left.
fn shown(mut master: File, slave: File) -> String {
    drop(slave);
    let mut all = Vec::new();
    // The end is EIO.
    let _ = master.read_to_end(&mut all);
    String::from_utf8(all).unwrap()
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn member(rank: usize, pid: u32) -> Member {
    Member { rank, host: process::host_name(), pid }
}

#[test]
fn dismissed_it_leaves_without_a_word() {
    let scene = scene();
    scene.guard.screen(true);
    scene.guard.screen(false);
    scene.guard.dismiss();
    scene.watching.join().unwrap().unwrap();
    assert_eq!(shown(scene.master, scene.slave), "");
}

#[test]
fn it_puts_the_terminal_back_and_names_the_first_to_die() {
    let scene = scene();
    let before = settings(&scene.slave);
    let (mut second, mut first, mut third) = (sleeper(), sleeper(), sleeper());
    scene.guard.ranks(&[member(1, second.id()), member(2, first.id()), member(3, third.id())]);
    taken_in(&scene);
    let status = Status {
        watching: false,
        session: Some(PathBuf::from("/s/lab")),
        samples: 5,
        probe: Some("peer 2 → 0, 4 KiB".to_owned()),
        resume: Some("toposcope --resume /s/lab".to_owned()),
    };
    scene.guard.status(&Status { samples: 999_999_999, probe: Some("an older, longer status".repeat(9)), ..status.clone() });
    scene.guard.status(&status);
    scene.guard.screen(true);
    tcsetattr(&scene.slave, OptionalActions::Now, &raw_of(&tcgetattr(&scene.slave).unwrap())).unwrap();
    assert_ne!(settings(&scene.slave), before);
    // In this order, although the numbers say another one.
    for child in [&mut first, &mut second, &mut third] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    drop(scene.guard);
    scene.watching.join().unwrap().unwrap();
    assert_eq!(settings(&scene.slave), before);
    let text = shown(scene.master, scene.slave);
    assert!(text.starts_with(std::str::from_utf8(LEAVE).unwrap()), "{text:?}");
    assert!(
        text.contains(&format!("rank 2 (process {} on {}) died during peer 2 → 0, 4 KiB", first.id(), process::host_name())),
        "{text:?}"
    );
    assert!(text.contains("5 completed samples are in /s/lab\r\n") && text.contains("toposcope --resume /s/lab"), "{text:?}");
}

#[test]
fn what_a_shell_has_set_meanwhile_stays() {
    let scene = scene();
    scene.guard.screen(true);
    let mut of_a_shell = raw_of(&tcgetattr(&scene.slave).unwrap());
    of_a_shell.output_modes |= rustix::termios::OutputModes::OPOST;
    tcsetattr(&scene.slave, OptionalActions::Now, &of_a_shell).unwrap();
    let (before, mut rank) = (settings(&scene.slave), sleeper());
    scene.guard.ranks(&[member(1, rank.id())]);
    rank.kill().unwrap();
    rank.wait().unwrap();
    drop(scene.guard);
    scene.watching.join().unwrap().unwrap();
    assert_eq!(settings(&scene.slave), before);
    // The screen is left all the same.
    assert!(shown(scene.master, scene.slave).starts_with(std::str::from_utf8(LEAVE).unwrap()));
}

#[test]
fn told_to_end_rank_0_explains_nothing_and_neither_do_those_after_it() {
    let scene = scene();
    let mut rank = sleeper();
    scene.guard.ranks(&[member(1, rank.id()), Member { rank: 2, host: "far".to_owned(), pid: 1 }]);
    scene.guard.signal("SIGTERM");
    taken_in(&scene);
    rank.kill().unwrap();
    rank.wait().unwrap();
    drop(scene.guard);
    scene.watching.join().unwrap().unwrap();
    let text = shown(scene.master, scene.slave);
    assert!(text.contains("rank 0 was told to end (SIGTERM)") && text.contains("another host (far)"), "{text:?}");
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_the_guard() {
    let (_master, slave) = keys::raw_pair().unwrap();
    let slave = File::from(slave);
    rustix::io::ioctl_fionbio(&slave, true).unwrap();
    // The kernel hands bytes on to the master's side a moment later, which makes room: full is what stays full.
    for _ in 0..3 {
        let full = put(&slave, &vec![b'x'; 1 << 20], Duration::from_millis(100)).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::TimedOut);
    }
    assert!(put(&slave, LEAVE, Duration::from_millis(1)).is_err());
}
