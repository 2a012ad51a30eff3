//! Text as terminals, launchers, chats and wikis leave it, made plain; lists and masks of processors.

use crate::units::plain;

/// Processor numbers above are nonsense: twice what Linux can be built for.
const MOST_CPUS: usize = 16_384;

/// A line of a cleaned text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// from 1
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// UTF-8 with faults replaced, or the UTF-16 that PowerShell redirects to; `None` for binary data.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
    let pairs = |big: bool| {
        let units = bytes.as_chunks::<2>().0.iter().skip(1);
        char::decode_utf16(units.map(|&pair| if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }))
            .map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>()
    };
    match bytes {
        [0xff, 0xfe, ..] => Some(pairs(false)),
        [0xfe, 0xff, ..] => Some(pairs(true)),
        _ if bytes.contains(&0) => None,
        _ => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Without escape sequences, control characters, quote marks and launchers' tags; lines keep their numbers.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.trim_start_matches('\u{feff}').split('\n') {
        let start = out.len();
        unescape(line, &mut out);
        let kept = untagged(&out[start..]).len();
        out.replace_range(start..out.len() - kept, "");
        out.push('\n');
    }
    out
}

/// Append a line without escape sequences (ECMA-48) and other control characters; hard blanks become blanks.
fn unescape(line: &str, out: &mut String) {
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => match chars.next() {
                Some('[') => _ = chars.find(|char| ('@'..='~').contains(char)),
                // A title or link: to the bell, or to the string terminator, whose second half is a backslash.
                Some(']') => _ = chars.find(|char| matches!(char, '\u{7}' | '\\')),
                _ => {}
            },
            '\u{9b}' => _ = chars.find(|char| ('@'..='~').contains(char)),
            '\u{a0}' | '\u{3000}' => out.push(' '),
            '\t' => out.push('\t'),
            char if char.is_control() || char == '\u{200b}' || char == '\u{feff}' => {}
            char => out.push(char),
        }
    }
}

/// Without `[1,0]<stdout>:`, as `mpirun --tag-output` writes, and without the mark of a quotation.
fn untagged(line: &str) -> &str {
    let tagged = line.strip_prefix('[').and_then(|rest| rest.split_once("]<std"));
    let tagged = tagged.filter(|(rank, _)| rank.bytes().all(|byte| byte.is_ascii_digit() || byte == b','));
    let line = tagged.and_then(|(_, rest)| rest.split_once(">:")).map_or(line, |(_, rest)| rest);
    line.strip_prefix("> ").unwrap_or(line)
}

/// The lines of a cleaned text.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().enumerate().map(|(at, text)| Line { number: at + 1, text }).collect()
}

/// A value for a message: plain, quoted, and short.
pub(super) fn shown(text: &str) -> String {
    let text = plain(text.trim());
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// A name from outside: plain, trimmed, and no longer than names are.
pub(super) fn named(text: &str) -> String {
    plain(text.trim()).chars().take(160).collect()
}

/// A number of a name such as `GPU12`: digits only, at most six.
pub(super) fn number(digits: &str) -> Option<usize> {
    let right = !digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| right)
}

/// `0-19,40-59`, ascending; `None` if it is no such list.
pub(super) fn list(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from.trim())?, number(to.trim())?);
        if from > to || to >= MOST_CPUS || found.len() > MOST_CPUS {
            return None;
        }
        found.extend(from..=to);
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Set bits of words such as `000000ff,ffff0000`, the most significant first, 32 bits each, with or without `0x`, an empty word
/// being 0; `None` if it is none or endless (`0xf...f`).
pub(super) fn mask(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for (at, word) in text.trim().rsplit(',').enumerate() {
        let word = word.trim();
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
        if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || at * 32 >= MOST_CPUS {
            return None;
        }
        let bits = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? };
        found.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| at * 32 + bit));
    }
    Some(found)
}

/// A decimal number that is finite and not negative.
pub(super) fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let right = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.len() <= 24;
    text.parse().ok().filter(|amount: &f64| right && amount.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_and_launchers_add_is_taken_off() {
        let cases = [
            ("\t\u{1b}[4mGPU0\tGPU1\u{1b}[0m\r", "\tGPU0\tGPU1\n"),
            ("\u{1b}]0;title\u{7}a\u{1b}(", "a\n"),
            ("\u{feff}x\u{8}\u{7}\u{a0}y", "x y\n"),
            ("[1,12]<stdout>:GPU0", "GPU0\n"),
            ("[1,x]<stdout>:GPU0", "[1,x]<stdout>:GPU0\n"),
            ("[0000:3b]<std", "[0000:3b]<std\n"),
            ("> nvidia-smi\n>b", "nvidia-smi\n>b\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lists_and_masks_of_processors_are_read() {
        assert_eq!(list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(list("7"), Some(vec![7]));
        for wrong in ["", "N/A", "3-1", "0-", "-4", "0-99999", "1,,2", "+1"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
        assert_eq!(mask("00000001,80000003"), Some(vec![0, 1, 31, 32]));
        assert_eq!(mask("0x3,,0x0"), Some(vec![64, 65]));
        assert_eq!(mask("3ff,f0003fff").unwrap().len(), 28);
        for wrong in ["0xf...f", "xyz", "123456789"] {
            assert_eq!(mask(wrong), None, "{wrong}");
        }
        assert_eq!(mask(&"f,".repeat(100_000)), None);
    }

    #[test]
    fn files_of_other_encodings_are_read_and_binary_ones_are_told() {
        let wide: Vec<u8> = [0xfeff_u16].into_iter().chain("GPU0\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&wide).as_deref(), Some("GPU0\n"));
        assert_eq!(decode(b"caf\xe9").as_deref(), Some("caf\u{fffd}"));
        assert_eq!(decode(b"BZh9\0"), None);
    }

    #[test]
    fn values_in_messages_are_short_and_plain() {
        assert_eq!(shown(" a\u{1b}[0m "), "\"a[0m\"");
        assert_eq!(shown(&"x".repeat(99)).chars().count(), 63);
    }
}
