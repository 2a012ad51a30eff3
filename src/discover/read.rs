//! Files of `/sys` and `/proc`, or of a recorded tree, which may hold anything: every read is bounded, nothing is waited for.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::units::plain;

/// More logical processors than any machine has; what is beyond is not believed.
pub(super) const MOST_CORES: usize = 1 << 16;
/// Longest file, bytes: `/proc/cpuinfo` of a thousand processors has a few million.
const LONGEST: u64 = 16 << 20;
/// Longest list of processors, bytes.
const LONGEST_LIST: u64 = 16 << 10;
/// Longest single word or name, characters.
const LONGEST_WORD: usize = 200;
/// Most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 1 << 16;

/// The first bytes of a file, at most `most`; `None` if it cannot be read.
pub(super) fn bytes(path: &Path, most: u64) -> Option<Vec<u8>> {
    // A recorded tree may hold a pipe or a device: opening the one waits, reading the other never ends.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn text_of(path: &Path, most: u64) -> Option<String> {
    bytes(path, most).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A file's text.
pub(super) fn text(path: &Path) -> Option<String> {
    text_of(path, LONGEST)
}

/// The one line of a file, without control characters; `None` for an empty one.
pub(super) fn word(path: &Path) -> Option<String> {
    // Texts of a device tree end with a zero byte.
    let text = text_of(path, 4096)?;
    let word: String = plain(text.trim_matches(|c: char| c.is_whitespace() || c == '\0')).chars().take(LONGEST_WORD).collect();
    (!word.is_empty()).then_some(word)
}

/// A decimal number.
pub(super) fn number(path: &Path) -> Option<i64> {
    word(path)?.parse().ok()
}

/// A number as `0x10de`.
pub(super) fn hex(path: &Path) -> Option<u32> {
    let word = word(path)?;
    u32::from_str_radix(word.strip_prefix("0x").unwrap_or(&word), 16).ok()
}

/// Logical processors that a folder tells as `NAME_list` or `NAMElist` (`0-3,8`) or else as `NAME` or `NAMEmap`
/// (`000000ff,0000000f`), ascending; `None` if none of these can be read.
pub(super) fn cpus(folder: &Path, list: &str, mask: &str) -> Option<Vec<usize>> {
    let listed = text_of(&folder.join(list), LONGEST_LIST).and_then(|text| parse_list(&text));
    listed.or_else(|| text_of(&folder.join(mask), LONGEST_LIST).and_then(|text| parse_mask(&text)))
}

fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut members = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to >= MOST_CORES {
            return None;
        }
        members.resize(members.len().max(to + 1), false);
        members[from..=to].fill(true);
    }
    Some(indices(&members))
}

fn parse_mask(text: &str) -> Option<Vec<usize>> {
    let mut members = Vec::new();
    for part in text.trim().rsplit(',') {
        let bits = u32::from_str_radix(part.trim(), 16).ok()?;
        members.extend((0..32).map(|bit| bits >> bit & 1 == 1));
    }
    (members.len() <= MOST_CORES).then(|| indices(&members))
}

fn indices(members: &[bool]) -> Vec<usize> {
    members.iter().enumerate().filter(|&(_, &member)| member).map(|(index, _)| index).collect()
}

/// Names in a folder, in the order in which a person counts: `eth2` before `eth10`. Empty if there is no such folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MOST_ENTRIES).flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_cached_key(|name| (counted(name), name.clone()));
    names
}

/// A name cut into texts and the numbers behind them.
fn counted(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut digits = false;
    for c in name.chars() {
        let digit = c.to_digit(10);
        if digits && digit.is_none() {
            parts.push((String::new(), 0));
        }
        digits = digit.is_some();
        if let Some(part) = parts.last_mut() {
            match digit {
                Some(digit) => part.1 = part.1.saturating_mul(10).saturating_add(u64::from(digit)),
                None => part.0.push(c),
            }
        }
    }
    parts
}

/// The last name of what a link points to, such as a driver's; `None` if it is no link.
pub(super) fn linked(path: &Path) -> Option<String> {
    let name = fs::read_link(path).ok()?.file_name()?.to_str().map(plain)?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_of_processors_tell_the_same() {
        assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_mask("00000d0f\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_mask("00000001,80000000"), Some(vec![31, 32]));
        assert_eq!(parse_list("\n"), Some(vec![]), "a node of memory alone");
        for bad in ["3-1", "0-99999999", "a", "-1", "0-18446744073709551615"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        assert_eq!(parse_mask("xyz"), None);
    }

    #[test]
    fn names_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["eth10", "eth2", "eth2a", "mlx5_10", "mlx5_9", "99999999999999999999999"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(names(folder.path()), ["99999999999999999999999", "eth2", "eth2a", "eth10", "mlx5_9", "mlx5_10"]);
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), kind, rustix::fs::Mode::RUSR, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("endless")).unwrap();
        std::os::unix::fs::symlink("circle", at("circle")).unwrap();
        for name in ["pipe", "endless", "circle", "absent", "."] {
            assert_eq!(text(&at(name)), None, "{name}");
        }
        fs::write(at("word"), "Grace \u{1b}[31mHopper\0\n").unwrap();
        assert_eq!(word(&at("word")).as_deref(), Some("Grace [31mHopper"));
    }
}
