//! Processes of this host, as `/proc` tells.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::topology::Placement;
use crate::units::plain;

/// One rank as a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub rank: usize,
    /// host name, control characters removed
    pub host: String,
    /// process id on that host
    pub pid: u32,
}

impl From<&Placement> for Member {
    fn from(placement: &Placement) -> Self {
        Self { rank: placement.rank, host: placement.host.clone(), pid: placement.pid }
    }
}

/// What `/proc/PID/stat` says (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// name of the program, at most 15 bytes
    pub name: String,
    /// `R`, `S`, .. `Z` a zombie, `X` dead
    pub state: char,
    pub parent: u32,
    /// process group
    pub group: i32,
    /// major and minor number of the controlling terminal
    pub terminal: Option<(u32, u32)>,
    /// process group in that terminal's foreground
    pub foreground: i32,
}

impl Stat {
    /// Of a process; `None` if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Of this process.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    fn parse(text: &str) -> Option<Self> {
        // The name stands in parentheses and may itself hold blanks and parentheses.
        let (head, rest) = text.rsplit_once(')')?;
        let (pid, name) = head.split_once(" (")?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let terminal: i32 = fields.nth(1)?.parse().ok()?;
        let foreground = fields.next()?.parse().ok()?;
        let number = terminal.cast_unsigned();
        let terminal = (number != 0).then_some(((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00)));
        Some(Self { pid: pid.trim().parse().ok()?, name: plain(name), state, parent, group, terminal, foreground })
    }

    /// Runs, or could.
    pub fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Target of a descriptor, if one may look.
    pub fn descriptor(&self, number: u32) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/fd/{number}", self.pid)).ok()
    }

    /// Its command line, as typed but for the quotes.
    pub fn command_line(&self) -> Option<String> {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).ok()?;
        let words = bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty()).map(|word| quote(&String::from_utf8_lossy(word)));
        Some(words.collect::<Vec<_>>().join(" "))
    }
}

/// A word as a shell would need it, safe to print.
pub(crate) fn quote(word: &str) -> String {
    let word = plain(word);
    let tame = |c: char| c.is_alphanumeric() || "-_./,:=+@%^".contains(c);
    if !word.is_empty() && word.chars().all(tame) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Parent, its parent and so on.
pub fn ancestors() -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    let mut next = Stat::own().map_or(0, |own| own.parent);
    while next > 1 && found.len() < 64 {
        let Some(stat) = Stat::of(next) else { break };
        next = stat.parent;
        found.push(stat);
    }
    found
}

/// The processes between this rank and who typed the command: the parent, and on up to the last ancestor that is known
/// to be part of a launcher.
pub fn launchers() -> Vec<Stat> {
    let mut found = ancestors();
    let last = found.iter().rposition(|stat| is_launcher(&stat.name)).unwrap_or(0);
    found.truncate(last + 1);
    found
}

fn is_launcher(name: &str) -> bool {
    ["mpirun", "mpiexec", "orte", "prte", "prun", "hydra", "srun", "slurmstepd", "aprun", "palsd", "flux"]
        .iter()
        .any(|known| name.starts_with(known))
        || name == "toposcope"
}

/// Name of this host, control characters removed.
pub fn host_name() -> String {
    plain(&rustix::system::uname().nodename().to_string_lossy())
}

/// Which of these ranks are dead already: absent or a zombie. Only ranks of this host can be told.
pub fn dead_ranks(members: &[Member]) -> Vec<usize> {
    let host = host_name();
    let dead = |member: &&Member| member.host == host && Stat::of(member.pid).is_none_or(|stat| !stat.alive());
    members.iter().filter(dead).map(|member| member.rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn names_with_parentheses_are_names() {
        let stat = Stat::parse("42 (a) b) S 7 42 42 34823 43 4194304 1").unwrap();
        assert_eq!((stat.pid, stat.name.as_str(), stat.state, stat.parent), (42, "a) b", 'S', 7));
        assert_eq!((stat.group, stat.terminal, stat.foreground), (42, Some((136, 7)), 43));
        assert_eq!(Stat::parse("1 (x) S 0 1 1 0 -1 0").unwrap().terminal, None);
        // minor numbers above 255 are split
        assert_eq!(Stat::parse("1 (x) S 0 1 1 1083393 -1 0").unwrap().terminal, Some((136, 257)));
    }

    #[test]
    fn the_dead_are_told_from_the_living_and_from_the_far() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let here = |rank, pid| Member { rank, host: host_name(), pid };
        let far = Member { rank: 2, host: "elsewhere.invalid".to_owned(), pid: child.id() };
        let members = [here(0, std::process::id()), here(1, child.id()), far];
        assert_eq!(dead_ranks(&members), [0; 0]);
        child.kill().unwrap();
        // Not waited for: a zombie.
        while Stat::of(child.id()).unwrap().alive() {
            std::thread::yield_now();
        }
        assert_eq!(dead_ranks(&members), [1]);
        child.wait().unwrap();
        assert_eq!(dead_ranks(&members), [1]);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("--sizes=4KiB..1MiB"), "--sizes=4KiB..1MiB");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("a\u{1b}b c"), "'ab c'");
    }
}
