//! A text of one tool or of several, one after another, with whatever stands around them: prompts, titles, fences, other output.

use std::collections::HashMap;

use super::format::{known, other};
use super::text::{Line, clean, lines, named, number};
use super::topo_m::headless;
use super::{Format, ImportError, Skips, ib, lspci, lspci_tree, matrix, merge, nccl_log, nvlink, topo_m, topo_p2p};
use crate::topology::Hardware;
use crate::topology::hardware::NoteKind;

/// What was read so far.
#[derive(Default)]
struct Draft {
    formats: Vec<Format>,
    /// the tellings of each host
    hosts: Vec<Vec<Hardware>>,
    /// where the first of each name is
    named: HashMap<String, usize>,
    /// of the last host, the name that its tellings have in common; empty where none has one
    last: String,
    skips: Skips,
    /// host name and kind of peer access, from the command that stands above
    name: String,
    access: Option<&'static str>,
    /// first of the lines that nobody reads, and their number
    strange: Option<(usize, usize, String)>,
    /// a link's state without a device
    unplaced: Option<(usize, String)>,
    /// rows without a header that were given up reach to here
    given_up: usize,
    /// the first of them
    headless: Option<(usize, String)>,
}

/// Formats, hosts, and what was left out.
pub(super) fn read(text: &str, file: &str) -> Result<(Vec<Format>, Vec<Hardware>, Skips), ImportError> {
    let cleaned = clean(text);
    let lines = lines(&cleaned);
    let mut draft = Draft::default();
    let mut at = 0;
    while at < lines.len() {
        let used = draft.block(&lines[at..]);
        if used == 0 {
            draft.around(lines[at]);
        } else {
            draft.flush();
        }
        at += used.max(1);
    }
    draft.flush();
    if draft.hosts.is_empty() {
        return Err(refusal(&draft, &cleaned, &lines, file));
    }
    let hosts = draft.hosts.into_iter().map(merge::join).collect();
    Ok((draft.formats, hosts, draft.skips))
}

/// Why nothing was read.
fn refusal(draft: &Draft, text: &str, lines: &[Line<'_>], file: &str) -> ImportError {
    if let Some((line, text)) = &draft.unplaced {
        let advice = "give `lspci -vv` whole, or keep the lines with addresses: `lspci -vv | grep -E '^[0-9a-f]|LnkCap:|LnkSta:'`";
        return ImportError::new(file, Some(*line), text, "the device's address above the state of its link", advice);
    }
    if let Some((line, text)) = &draft.headless {
        let advice = "give the table with its first line, `GPU0 GPU1 ...`: which column is which cannot be told without";
        return ImportError::new(file, Some(*line), text, "the header of nvidia-smi topo -m above its rows", advice);
    }
    if let Some((who, what)) = other(text) {
        return ImportError::new(file, None, &format!("the output of {who}"), format!("one of {}", known()), format!("this is {what}"));
    }
    let first = lines.iter().find(|line| !line.text.trim().is_empty());
    let advice = "see whether the file is what you meant; the formats are told by content, not by name";
    ImportError::new(file, first.map(|line| line.number), first.map_or("", |line| line.text), format!("one of {}", known()), advice)
}

impl Draft {
    /// Read what begins here; the number of lines that it takes, 0 if nothing that is known begins here.
    fn block(&mut self, lines: &[Line<'_>]) -> usize {
        let first = lines[0].text.trim_start();
        if first.starts_with("GPU") || first.starts_with("NIC") || first.starts_with('|') {
            let used = self.matrix(lines);
            if used > 0 {
                return used;
            }
        }
        if let Some((hosts, used)) = nccl_log::read(lines, &mut self.skips) {
            for host in hosts {
                self.put_named(Format::NcclLog, host);
            }
            return used;
        }
        let (format, (host, used)) = if let Some(found) = nvlink::read(lines, &mut self.skips) {
            (Format::Nvlink, found)
        } else if let Some(found) = ib::ibstat(lines, &mut self.skips) {
            (Format::Ibstat, found)
        } else if let Some(found) = ib::ibdev2netdev(lines) {
            (Format::Ibdev2netdev, found)
        } else if let Some(found) = lspci_tree::read(lines) {
            (Format::LspciTree, found)
        } else if let Some(found) = lspci::read(lines, &mut self.skips) {
            (Format::Lspci, found)
        } else {
            return 0;
        };
        self.put(format, host);
        used
    }

    /// A table of `nvidia-smi topo`, with its legend.
    fn matrix(&mut self, lines: &[Line<'_>]) -> usize {
        let read = matrix::read(lines);
        let header = read.is_some();
        let found = read.or_else(|| {
            let free = lines[0].number > self.given_up;
            match if free { headless(lines) } else { Err(0) } {
                Ok(found) => Some(found),
                Err(rows) => {
                    if rows > 0 {
                        self.given_up = lines[0].number + rows - 1;
                        self.headless.get_or_insert_with(|| (lines[0].number, lines[0].text.to_owned()));
                    }
                    None
                }
            }
        });
        let Some(table) = found else { return 0 };
        let (names, legend) = legend(&lines[table.used.min(lines.len())..]);
        if topo_p2p::is_statuses(&table) {
            let host = topo_p2p::host(&table, self.access.unwrap_or("unknown"), &mut self.skips);
            self.put(Format::PeerMatrix, host);
        } else if topo_m::is_labels(&table) {
            let mut host = topo_m::host(&table, &names, &mut self.skips);
            if !header {
                let rows: Vec<&str> = table.rows.iter().map(|row| table.devices[row.device].as_str()).collect();
                let text = format!("the table has no header: its columns are told by where X stands; only {} have rows", rows.join(", "));
                host.note(NoteKind::Unseen, "nvidia-smi topo -m", text);
            }
            // One table a host.
            if self.hosts.last().is_some_and(|parts| parts.iter().any(|part| part.source == Format::TopoMatrix.name())) {
                self.hosts.push(Vec::new());
                self.last.clear();
            }
            self.put(Format::TopoMatrix, host);
        } else {
            return 0;
        }
        table.used + legend
    }

    /// Add what a tool told to the host at hand.
    fn put(&mut self, format: Format, mut host: Hardware) {
        host.host.clone_from(&self.name);
        format.name().clone_into(&mut host.source);
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
        if self.last.is_empty() || host.host.is_empty() || self.last == host.host {
            let at = self.hosts.len().saturating_sub(1);
            self.put_at(at, host);
        } else {
            self.put_at(self.hosts.len(), host);
        }
    }

    /// Add to the host of a place, or make it there. Its tellings that have a name have the same one.
    fn put_at(&mut self, at: usize, host: Hardware) {
        if at >= self.hosts.len() {
            self.hosts.push(Vec::new());
            self.last.clear();
        }
        if !host.host.is_empty() {
            self.named.entry(host.host.clone()).or_insert(at);
            if at + 1 == self.hosts.len() {
                self.last.clone_from(&host.host);
            }
        }
        if let Some(parts) = self.hosts.get_mut(at) {
            parts.push(host);
        }
    }

    /// Add what a log told to the host that it names, wherever that is.
    fn put_named(&mut self, format: Format, mut host: Hardware) {
        format.name().clone_into(&mut host.source);
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
        let known = self.named.get(&host.host).copied();
        self.put_at(known.unwrap_or(self.hosts.len()), host);
    }

    /// A line that nothing known begins with.
    fn around(&mut self, line: Line<'_>) {
        let text = line.text.trim();
        if let Some(name) = prompt(text) {
            self.name = name;
        }
        self.access = topo_p2p::access(text).or(self.access);
        if text.starts_with("Lnk") && lspci::is_attribute(text) && self.unplaced.is_none() {
            self.unplaced = Some((line.number, text.to_owned()));
        }
        if is_decoration(text) {
            self.flush();
        } else if let Some((_, count, _)) = &mut self.strange {
            *count += 1;
        } else {
            self.strange = Some((line.number, 1, super::text::shown(text)));
        }
    }

    /// Tell of the lines that nobody read.
    fn flush(&mut self) {
        if let Some((line, count, text)) = self.strange.take() {
            let lines = if count > 1 { format!("and {} more lines ", count - 1) } else { String::new() };
            self.skips.push(line, format!("{text} {lines}is nothing that is read here"));
        }
    }
}

/// Names of `NIC0` and so on from what stands below a table, and the number of lines that the legends take.
fn legend(lines: &[Line<'_>]) -> (HashMap<String, String>, usize) {
    let mut names = HashMap::new();
    let mut used = 0;
    for (at, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let (key, value) = text.split_once(':').unwrap_or((text, ""));
        if key.strip_prefix("NIC").and_then(number).is_some() && !value.trim().is_empty() && !value.trim().contains(' ') {
            names.insert(key.to_owned(), named(value));
        } else if !(text.is_empty() || text.ends_with("Legend:") || text.contains(" = ")) {
            break;
        }
        used = at + 1;
    }
    (names, used)
}

/// The host in `user@host:~$ command` or `[user@host dir]# command`.
fn prompt(text: &str) -> Option<String> {
    let (user, rest) = text.trim_start_matches(['[', '(', '$', '#', ' ']).split_once('@')?;
    let end = rest.find([':', ' ', ']', '$', '#'])?;
    let plain =
        |part: &str| !part.is_empty() && part.len() < 64 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let host = &rest[..end];
    (plain(user) && plain(host) && rest.contains(['$', '#', '>'])).then(|| host.to_owned())
}

/// Lines that people and scripts set around outputs.
fn is_decoration(text: &str) -> bool {
    const TOOLS: [&str; 7] = ["NCCL INFO", "nvidia-smi", "lspci", "ibstat", "ibdev2netdev", "NVIDIA Topology", "Legend:"];
    text.is_empty()
        || text.starts_with(['#', '$', '=', '*', '`', '-', '~'])
        || prompt(text).is_some()
        || TOOLS.iter().any(|tool| text.contains(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_name_the_host() {
        for (text, host) in [
            ("$ user@node1:~$ nvidia-smi topo -m", Some("node1")),
            ("[root@gpu-7 ~]# lspci", Some("gpu-7")),
            ("(base) me@h: ls", None),
            ("mail me@example.org", None),
        ] {
            assert_eq!(prompt(text).as_deref(), host, "{text}");
        }
    }

    #[test]
    fn tools_one_after_another_tell_of_one_host() {
        let text = "me@n1:~$ nvidia-smi topo -m\n\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n\nNIC Legend:\n  NIC0: mlx5_0\nhello\nworld\n\
                    GPU 0: A (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n";
        let (formats, hosts, skips) = read(text, "f").unwrap();
        assert_eq!(formats, [Format::TopoMatrix, Format::Nvlink]);
        assert_eq!(hosts.len(), 1);
        assert_eq!((hosts[0].host.as_str(), hosts[0].gpus[0].name.as_str()), ("n1", "A"));
        let skipped = skips.sorted();
        assert_eq!((skipped.len(), skipped[0].line), (1, 8));
        assert!(skipped[0].reason.contains("1 more"), "{skipped:?}");
    }

    #[test]
    fn prompts_of_other_hosts_begin_other_hosts() {
        let text = "[me@a ~]$ ibdev2netdev\nmlx5_0 port 1 ==> eth2 (Up)\n[me@b ~]$ ibdev2netdev\nmlx5_0 port 1 ==> eth2 (Down)\n";
        let hosts = read(text, "f").unwrap().1;
        assert_eq!(hosts.iter().map(|host| (host.host.as_str(), host.nics.len())).collect::<Vec<_>>(), [("a", 1), ("b", 1)]);
    }

    #[test]
    fn each_table_is_a_host() {
        let text = "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n```\n```bash\nGPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n";
        assert_eq!(read(text, "f").unwrap().1.len(), 2);
    }

    #[test]
    fn what_tells_no_topology_is_refused_with_what_it_is() {
        let told = |text: &str| read(text, "f").err().unwrap().to_string();
        assert!(told("# nThread 1\n").contains("nccl-tests"));
        assert!(told("\n hello\n").starts_with("f:2: \"hello\": expected one of nvidia-smi topo -m, "));
        assert!(told("LnkSta: Speed 8GT/s, Width x8\n").contains("address"));
        assert!(told("GPU1 SYS X PIX\n").contains("header"));
    }
}
